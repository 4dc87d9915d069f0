//! The input of a request, which checks repeatedly that the request is still authorized.
//!
//! A push may take hours, and a conversation over SSH may contain any number of fetches. If the
//! user, token, key or role is removed in the meantime, the request fails.

use std::io::{self, Read};

use crate::{Error, ErrorKind, Result};

/// The error message for the client.
pub(crate) const REVOKED: &str = "your access was withdrawn during this request";

/// The input of a request. Reads fail after the request has lost its authorization.
pub(crate) struct RevocableInput<R, F> {
    input: R,
    is_revoked: F,
}

impl<R, F: Fn() -> bool> RevocableInput<R, F> {
    /// Returns the input of a request. `is_revoked` returns whether the request has lost its
    /// authorization.
    pub(crate) fn new(input: R, is_revoked: F) -> Self {
        RevocableInput { input, is_revoked }
    }
}

impl<R: Read, F: Fn() -> bool> Read for RevocableInput<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        // The read may have waited for a long time.
        match (self.is_revoked)() {
            true => Err(io::Error::new(io::ErrorKind::PermissionDenied, REVOKED)),
            false => Ok(count),
        }
    }
}

/// Returns `done`, the result of a request. If the request has lost its authorization, the result
/// is [`ErrorKind::Denied`], whatever error the service returned.
pub(crate) fn judged(done: Result<()>, is_revoked: impl Fn() -> bool) -> Result<()> {
    done.map_err(|error| match is_revoked() {
        true => Error::new(ErrorKind::Denied, REVOKED),
        false => error,
    })
}

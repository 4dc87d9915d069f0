//! The input of a request, which is asked again whether it is allowed as its input comes.
//!
//! A push may take hours, and a conversation over SSH has any number of fetches. A user who is removed meanwhile, or whose
//! token, key or role is, gets no further.

use std::io::{self, Read};

use crate::{Error, ErrorKind, Result};

/// The reason for the client.
pub(crate) const REVOKED: &str = "this request is not allowed any more";

/// The input of a request. It fails once the request is not allowed any more.
pub(crate) struct Watched<R, F> {
    input: R,
    is_revoked: F,
}

impl<R, F: Fn() -> bool> Watched<R, F> {
    /// Returns the input of a request. `is_revoked` says whether it is not allowed any more.
    pub(crate) fn new(input: R, is_revoked: F) -> Self {
        Watched { input, is_revoked }
    }
}

impl<R: Read, F: Fn() -> bool> Read for Watched<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        // The wait may have been long.
        match (self.is_revoked)() {
            true => Err(io::Error::new(io::ErrorKind::PermissionDenied, REVOKED)),
            false => Ok(count),
        }
    }
}

/// Returns the result of a request. Its error is that it is not allowed any more, if that is so, whatever the service makes
/// of it.
pub(crate) fn judged(done: Result<()>, is_revoked: impl Fn() -> bool) -> Result<()> {
    done.map_err(|error| match is_revoked() {
        true => Error::new(ErrorKind::Denied, REVOKED),
        false => error,
    })
}

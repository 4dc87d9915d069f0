//! The input of a request whose user is looked up again as it comes.
//!
//! A push may take hours, and a conversation over SSH has any number of fetches. A user who is removed meanwhile, or whose
//! token or key is, gets no further.

use std::io::{self, Read};

use crate::work::Work;
use crate::{Error, ErrorKind, Result};

/// The reason for the client.
pub(crate) const GONE: &str = "the user of this request is not known any more";

/// The input of a request. It fails once the user is gone.
pub(crate) struct Watched<'a, R> {
    input: R,
    work: &'a Work,
}

impl<'a, R> Watched<'a, R> {
    pub(crate) fn new(input: R, work: &'a Work) -> Self {
        Watched { input, work }
    }
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        // The wait may have been long.
        match self.work.user_is_gone() {
            true => Err(io::Error::new(io::ErrorKind::PermissionDenied, GONE)),
            false => Ok(count),
        }
    }
}

/// Returns the result of a request. Its error is that the user is gone, if that is so, whatever the service makes of it.
pub(crate) fn judged(work: &Work, done: Result<()>) -> Result<()> {
    done.map_err(|error| match work.user_is_gone() {
        true => Error::new(ErrorKind::Denied, GONE),
        false => error,
    })
}

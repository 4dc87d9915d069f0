//! On systems without leases, files are never replaced in place.

use std::convert::Infallible;
use std::io;

use super::{Directory, Metadata};

/// There is none.
#[derive(Debug)]
pub struct Overwriter(Infallible);

impl Overwriter {
    /// `None`.
    pub fn new(_: &Directory, _: bool) -> Option<Overwriter> {
        None
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn overwrite(
        &self,
        _: &Directory,
        _: &[u8],
        _: bool,
        _: &[u8],
    ) -> io::Result<Option<Metadata>> {
        match self.0 {}
    }
}

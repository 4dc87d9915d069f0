//! The replacement of the module `overwrite` on systems without leases. No file is overwritten in
//! place.

use std::convert::Infallible;
use std::io;

use super::{Directory, Metadata};

/// An overwriter, which cannot be created on this system.
#[derive(Debug)]
pub struct Overwriter(Infallible);

impl Overwriter {
    /// Returns `None`.
    pub fn new(_: &Directory, _: bool) -> Option<Overwriter> {
        None
    }

    /// Cannot be called, because no value of the type exists.
    ///
    /// # Errors
    /// Returns no error.
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

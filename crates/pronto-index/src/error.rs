//! Errors of an index.

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not an index, or it is damaged.
    Corrupt,
    /// The index has a version or an extension that is not known.
    Unsupported,
    /// The file could not be read or written.
    Io,
    /// Another process holds `index.lock`.
    Locked,
    /// The bytes do not have the digest that the trailer says.
    Checksum,
}

/// The error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

//! Errors of an index.

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not an index, or is malformed.
    Corrupt,
    /// The version or a required extension of the index is not supported.
    Unsupported,
    /// The file cannot be read or written.
    Io,
    /// Another process holds `index.lock`.
    Locked,
    /// The checksum in the trailer does not match the content.
    Checksum,
}

/// The error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

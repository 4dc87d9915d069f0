//! What can go wrong between two peers.

/// The sorts of errors of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The peer sent bytes that are not the protocol.
    Malformed,
    /// The peer sent more than it was granted.
    Exceeded,
    /// The caller asked for what the protocol cannot carry.
    Unsupported,
}

/// The error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

pub(crate) fn malformed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Malformed, message)
}

pub(crate) fn exceeded(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Exceeded, message)
}

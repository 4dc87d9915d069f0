//! Errors of transports and protocols.

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The remote side violated the protocol.
    Malformed,
    /// The remote side refused with a message.
    Remote,
    /// The connection ended in the middle of a message.
    Disconnected,
    /// The connection could not be made, or failed.
    Connection,
    /// There is no repository at the address.
    NotFound,
    /// The remote side requires credentials, or rejected those that were sent.
    Authentication,
    /// The address cannot be used: it is malformed, or a part looks like an option.
    Address,
    /// The user's settings forbid this transport (`protocol.allow`).
    Forbidden,
    /// The remote side or this build does not support the request.
    Unsupported,
    /// A callback of the caller failed, or local data could not be read or written.
    Local,
    /// The operation was interrupted.
    Interrupted,
}

/// The error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// Creates the error for a violation of the protocol.
pub(crate) fn malformed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Malformed, message)
}

/// Creates the error for a connection that ended too early.
pub(crate) fn hung_up() -> Error {
    Error::new(
        ErrorKind::Disconnected,
        "the remote end hung up unexpectedly",
    )
}

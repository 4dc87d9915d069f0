//! Errors of transports and protocols.

/// The sorts of errors of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The other side sent bytes that are not the protocol.
    Malformed,
    /// The other side refused and said why.
    Remote,
    /// The connection ended in the middle of something.
    Disconnected,
    /// The connection could not be made, or broke.
    Connection,
    /// There is no repository at that address.
    NotFound,
    /// The other side wants credentials that it was not given, or did not accept them.
    Authentication,
    /// The address is not one that can be used: unknown scheme, or parts that look like options.
    Address,
    /// The settings of the user forbid this transport.
    Forbidden,
    /// The other side cannot do what was asked for.
    Unsupported,
    /// The caller's code that supplies local objects or receives new ones failed.
    Local,
    /// The operation was asked to stop.
    Interrupted,
}

/// The error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The other side broke the rules of the protocol.
pub(crate) fn malformed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Malformed, message)
}

/// The connection ended where more had to come.
pub(crate) fn hung_up() -> Error {
    Error::new(
        ErrorKind::Disconnected,
        "the remote end hung up unexpectedly",
    )
}

//! Errors of the server.

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration, or the file of users, is malformed. The message names file and line.
    Config,
    /// A name of a repository or a user is not allowed.
    InvalidName,
    /// There is no such repository, user or address.
    NotFound,
    /// There is a repository or user of that name already.
    Exists,
    /// The request needs a user, or a valid token.
    Unauthenticated,
    /// The user may not do that.
    Denied,
    /// The request is malformed.
    Malformed,
    /// The request has more bytes than it may have.
    TooLarge,
    /// The request is for a host that this server does not answer for.
    Misdirected,
    /// The request asks for something that this server does not do.
    Unsupported,
    /// Too many requests of this user or address are under way.
    TooMany,
    /// The server has no room for the request.
    Overloaded,
    /// So many requests wait for a slot that this one may not wait, too.
    QueueFull,
    /// The store of the repositories, or the disk of its cache, cannot be used for the moment.
    Unavailable,
    /// The store refuses, or is damaged: an operator has to look.
    Store,
    /// The operating system refused.
    Io,
    /// The repository or the protocol failed; the client has been told if that was possible.
    Failed,
}

/// The error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the error of a request for which a budget has no room. `reason` says whose requests hold too much.
pub(crate) fn without_room(reason: impl std::fmt::Display) -> Error {
    let message = format!("{reason} (limits.memory_bytes of the server)");
    Error::new(ErrorKind::TooMany, message)
}

/// Returns the message of an error as clients may read it: paths and reasons of the system are not for
/// them.
pub fn public_message(error: &Error) -> &str {
    match error.kind() {
        ErrorKind::Config | ErrorKind::Io | ErrorKind::Failed => "the server failed",
        _ => error.message(),
    }
}

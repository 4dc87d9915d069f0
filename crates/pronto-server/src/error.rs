//! Errors of the server.

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration or the file of users is malformed. The message names file and line.
    Config,
    /// The name of a repository or a user is not allowed.
    InvalidName,
    /// The repository, user or address does not exist.
    NotFound,
    /// A repository or user of that name exists already.
    Exists,
    /// The request needs a user, or a valid token.
    Unauthenticated,
    /// The user is not permitted to do this.
    Denied,
    /// The request is malformed.
    Malformed,
    /// The request exceeds its size limit.
    TooLarge,
    /// The request names a host that this server does not serve.
    Misdirected,
    /// The request needs a feature that this server does not support.
    Unsupported,
    /// The user or address has too many requests in flight.
    TooMany,
    /// The server has no room for the request.
    Overloaded,
    /// The queue of waiting requests is full.
    QueueFull,
    /// The store of the repositories, or the disk of its cache, is temporarily unavailable.
    Unavailable,
    /// The store refuses access or is damaged, so an operator has to act.
    Store,
    /// A system call failed.
    Io,
    /// The repository or the protocol failed. The error has been reported to the client, if that
    /// was possible.
    Failed,
}

/// The error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the error of a request that exceeds a memory budget. `reason` names the owner of the
/// budget.
pub(crate) fn without_room(reason: impl std::fmt::Display) -> Error {
    let message = format!("{reason} (limits.memory_bytes of the server)");
    Error::new(ErrorKind::TooMany, message)
}

/// Returns the message of an error for clients, without paths and error messages of the system.
pub fn public_message(error: &Error) -> &str {
    match error.kind() {
        ErrorKind::Config | ErrorKind::Io | ErrorKind::Failed => {
            "internal server error; see the log of the server"
        }
        _ => error.message(),
    }
}

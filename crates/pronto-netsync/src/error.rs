//! Errors of a session between two peers.

/// The kinds of errors of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The peer sent bytes that violate the protocol.
    Malformed,
    /// The peer sent more bytes than its credit allows.
    Exceeded,
    /// The request of the caller exceeds the limits of the protocol.
    Unsupported,
    /// The stream ended before the session did.
    Closed,
    /// The two sides support no common protocol version.
    Version,
    /// The two repositories have different object formats.
    ObjectFormat,
    /// The request of the peer is not permitted, or the peer is unknown.
    Denied,
    /// The repository does not exist, or cannot be synchronised.
    NoRepository,
    /// The two histories have no common commit, and one side does not allow unrelated histories.
    Unrelated,
    /// The peer sent more bytes than the session accepts.
    Quota,
    /// Another session holds the resource.
    Busy,
    /// A repository operation failed.
    Repository,
}

/// The error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The error codes of the protocol, with the corresponding kinds.
const CODES: [(u64, ErrorKind); 10] = [
    (1, ErrorKind::Malformed),
    (2, ErrorKind::Exceeded),
    (3, ErrorKind::Version),
    (4, ErrorKind::ObjectFormat),
    (5, ErrorKind::Denied),
    (6, ErrorKind::NoRepository),
    (7, ErrorKind::Unrelated),
    (8, ErrorKind::Quota),
    (9, ErrorKind::Busy),
    (10, ErrorKind::Repository),
];

impl ErrorKind {
    /// Returns the protocol code of an error of this kind.
    pub fn code(self) -> u64 {
        let found = CODES.iter().find(|(_, kind)| *kind == self);
        found.map_or(10, |(code, _)| *code)
    }

    /// Returns the kind for an error code. An unknown code is a failure of the peer's repository.
    pub fn from_code(code: u64) -> ErrorKind {
        let found = CODES.iter().find(|(known, _)| *known == code);
        found.map_or(ErrorKind::Repository, |(_, kind)| *kind)
    }
}

pub(crate) fn malformed(message: impl Into<String>) -> Error {
    let message = format!("netsync protocol error: {}", message.into());
    Error::new(ErrorKind::Malformed, message)
}

pub(crate) fn exceeded(message: impl Into<String>) -> Error {
    let message = format!("netsync protocol error: {}", message.into());
    Error::new(ErrorKind::Exceeded, message)
}

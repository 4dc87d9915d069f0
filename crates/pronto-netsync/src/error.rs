//! Errors between two peers.

/// The kinds of errors of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The peer sent bytes that are not the protocol.
    Malformed,
    /// The peer sent more than it was granted.
    Exceeded,
    /// The caller asked for what the protocol cannot carry.
    Unsupported,
    /// The stream ended before the session did.
    Closed,
    /// There is no version that both speak.
    Version,
    /// The two repositories have object ids of different formats.
    ObjectFormat,
    /// The peer may not do what it requested, or is unknown.
    Denied,
    /// There is no such repository, or it cannot take part.
    NoRepository,
    /// The two histories have nothing in common, and not both sides agree to that.
    Unrelated,
    /// The peer sent more than a session accepts.
    Quota,
    /// Another session holds the resource.
    Busy,
    /// A repository failed.
    Repository,
}

/// The error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The codes of errors on the wire, with the corresponding kinds.
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
    /// The code of a refusal for this reason.
    pub fn code(self) -> u64 {
        let found = CODES.iter().find(|(_, kind)| *kind == self);
        found.map_or(10, |(code, _)| *code)
    }

    /// Returns the kind for the code of an error; unknown codes are failures of the peer.
    pub fn from_code(code: u64) -> ErrorKind {
        let found = CODES.iter().find(|(known, _)| *known == code);
        found.map_or(ErrorKind::Repository, |(_, kind)| *kind)
    }
}

pub(crate) fn malformed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Malformed, message)
}

pub(crate) fn exceeded(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Exceeded, message)
}

//! Errors of the operations of this crate.

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system reported an error.
    Io,
    /// An object does not exist.
    MissingObject,
    /// An object exists and is malformed.
    CorruptObject,
    /// The operating system refused to read an object.
    UnreadableObject,
    /// A path that must never be written, such as `.git` in any spelling.
    HostilePath,
    /// A filter of `.gitattributes` failed.
    Filter,
    /// A filter process did not deliver a file for which it had delayed the answer.
    DelayedFilter,
    /// An attributes, ignore or sparse-checkout file cannot be used.
    Patterns,
    /// The index cannot be used.
    Index,
    /// The operation would lose content that is not recorded as an object.
    WouldLose,
    /// The operation was interrupted.
    Interrupted,
    /// A pathspec is invalid.
    Pathspec,
    /// The operation needs a feature that is not implemented.
    Unsupported,
}

/// An error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The kind of a repository's error that corresponds to a kind of this crate.
impl From<ErrorKind> for pronto_config::ErrorKind {
    fn from(kind: ErrorKind) -> Self {
        use pronto_config::ErrorKind as Repository;
        match kind {
            ErrorKind::MissingObject => Repository::MissingObject,
            ErrorKind::CorruptObject => Repository::Corrupt,
            ErrorKind::Interrupted => Repository::Interrupted,
            ErrorKind::WouldLose => Repository::Refused,
            ErrorKind::Io | ErrorKind::UnreadableObject => Repository::Io,
            ErrorKind::HostilePath => Repository::Hostile,
            _ => Repository::Worktree,
        }
    }
}

impl From<pronto_io::interrupt::Interrupted> for ErrorKind {
    fn from(_: pronto_io::interrupt::Interrupted) -> Self {
        ErrorKind::Interrupted
    }
}

/// Returns an error after an interrupt was requested.
pub(crate) fn check(interrupt: &pronto_io::interrupt::Interrupt) -> Result<(), Error> {
    interrupt
        .check()
        .map_err(|reason| Error::new(ErrorKind::Interrupted, reason.to_string()))
}

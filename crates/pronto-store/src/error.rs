//! Errors of the store.

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument, such as the URL of a store, is not valid.
    Options,
    /// There is no such repository or generation.
    NotFound,
    /// The bucket, the database or its tables do not exist.
    NoStore,
    /// The repository has its generations in another place: in the store, in a database, or under another name there.
    Misplaced,
    /// The clock of this machine is far behind that of the store.
    Clock,
    /// There is a repository of that name already.
    Exists,
    /// An object that a generation names is not in the store.
    Missing,
    /// An object of the store is not what was written: its digest or its form is wrong.
    Corrupt,
    /// The store has an older state than it had before: it was restored, or replaced.
    Restored,
    /// The store does not answer, or refuses for the moment. Calls were repeated.
    Unavailable,
    /// The store refuses the credentials.
    Denied,
    /// A commit was sent, but no answer tells whether it happened.
    Unknown,
    /// The change took longer than uploaded objects are kept.
    Expired,
    /// The change replaces what is not there any more.
    Conflict,
    /// The store, or the repository, needs a feature that this version lacks.
    Unsupported,
    /// The caller ended the operation.
    Interrupted,
    /// Another process uses the directory.
    InUse,
    /// A file of this machine cannot be read or written.
    Io,
    /// The repository on disk cannot be read or written.
    Repository,
}

/// The error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

pub(crate) fn interrupted(_: pronto_io::interrupt::Interrupted) -> Error {
    Error::new(ErrorKind::Interrupted, "interrupted")
}

//! Errors of the store.

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument, such as the URL of a store, is not valid.
    Options,
    /// The repository or the generation does not exist.
    NotFound,
    /// The bucket, the database or its tables do not exist.
    NoStore,
    /// The generations of the repository are stored elsewhere: in the store, in a database, or
    /// under another name in the database.
    Misplaced,
    /// The clock of this machine is far behind the clock of the store.
    Clock,
    /// A repository with that name exists already.
    Exists,
    /// An object that a generation references is not in the store.
    Missing,
    /// An object of the store has another content than the written one: its digest or its format is
    /// wrong.
    Corrupt,
    /// The store has an older state than before, because it was restored or replaced.
    Restored,
    /// The store does not respond, or refuses calls temporarily. Calls were retried.
    Unavailable,
    /// The store refuses the credentials.
    Denied,
    /// The environment has no credentials for the store.
    NoCredentials,
    /// A commit was sent, but its result is unknown.
    Unknown,
    /// The change took longer than uploaded objects are kept.
    Expired,
    /// The data that the change replaces no longer exists.
    Conflict,
    /// The store, or the repository, needs a feature that this version lacks.
    Unsupported,
    /// The caller ended the operation.
    Interrupted,
    /// Another process uses the directory.
    InUse,
    /// A file of this machine cannot be read or written, for example because the disk is full. The
    /// file may be one of a store in a directory.
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

//! Errors of this crate, and of the crates that use a repository.

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The given path is not a repository.
    NotARepository,
    /// There is no repository in the directory or in its parents.
    NoRepository,
    /// The repository has a version or an extension that Git does not support.
    UnknownFormat,
    /// The repository belongs to another user (`safe.directory`), or is bare where
    /// `safe.bareRepository` forbids that.
    Unsafe,
    /// The repository or the request needs a feature that this build does not support. The message
    /// names the feature.
    Unsupported,
    /// A configuration file cannot be read or parsed, or a key is malformed.
    Config,
    /// A configured value does not have the requested type.
    ConfigValue,
    /// A system call failed. The message names the call and the path.
    Io,
    /// A ref has an invalid name or content, or its update was refused.
    Reference,
    /// Another process holds a lock.
    Locked,
    /// A ref cannot be created because of a directory/file conflict with the name of another ref.
    NameConflict,
    /// A ref does not have the expected value, because another process has updated it.
    Moved,
    /// A revision cannot be resolved.
    UnknownRevision,
    /// A reflog is empty, or has fewer entries than a revision such as `@{5}` requires.
    ShortReflog,
    /// An abbreviated object id or a name is ambiguous.
    Ambiguous,
    /// An object is not of the required type, or cannot be used.
    Object,
    /// An object is missing.
    MissingObject,
    /// An object, a pack, the index or another file of the repository is damaged.
    Corrupt,
    /// The author or the committer is unknown.
    Identity,
    /// The date of the author or the committer is malformed (`GIT_AUTHOR_DATE`, `GIT_COMMITTER_DATE`).
    IdentityDate,
    /// A hook exited with an error, or could not be run.
    Hook,
    /// An argument (such as a branch name, a template or a date) is malformed.
    InvalidInput,
    /// A directory exists and is not empty, so that nothing can be created there.
    AlreadyExists,
    /// The operation needs a worktree, but the repository has none.
    NoWorkTree,
    /// The operation was interrupted.
    Interrupted,
    /// A connection failed, or the remote side reported an error.
    Transport,
    /// The remote side supports only a protocol version that cannot express the request.
    ProtocolTooOld,
    /// The memory limit of this client, or of all clients, is reached. A later retry may succeed.
    Exhausted,
    /// The operation would overwrite local changes, or the state of the index or the worktree does
    /// not permit it.
    Refused,
    /// The index or the worktree cannot be read or written.
    Worktree,
    /// A bundle cannot be used: prerequisite commits are missing (each line of the message is a
    /// separate error), or its pack cannot be read (the source is the cause).
    Bundle,
    /// The remote side did not send all required objects.
    Incomplete,
    /// A received pack exceeds the limit of the receiver (`receive.maxInputSize`).
    PackTooLarge,
    /// An object of a received pack is malformed (`transfer.fsckObjects`).
    Rejected,
    /// An object of a received pack refers to an object that is missing or has the wrong type.
    BrokenLink,
    /// A text cannot be signed, or a signature cannot be verified.
    Signing,
    /// A signature is missing, or has an unknown format.
    UnknownSignature,
    /// A tree contains a path that must never be written, such as any spelling of `.git`.
    Hostile,
}

impl ErrorKind {
    /// Returns whether an error of this kind ends the whole command in Git, wherever it occurs: a
    /// refusing hook, a malformed setting, a committer without a name or with a malformed date, or an
    /// interruption. Git reports other errors for the one ref, file or reflog, and continues.
    pub fn ends_command(self) -> bool {
        matches!(
            self,
            ErrorKind::Hook
                | ErrorKind::ConfigValue
                | ErrorKind::Identity
                | ErrorKind::IdentityDate
                | ErrorKind::Interrupted
        )
    }
}

/// The error type of this crate: a kind, a message in Git's words, and the context.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

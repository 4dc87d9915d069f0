//! Errors of a repository.

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no repository at the given place.
    NotARepository,
    /// There is no repository in the directory or above it.
    NoRepository,
    /// The repository is of a version, or has an extension, that Git does not know.
    UnknownFormat,
    /// The repository belongs to another user, or is bare where that is not allowed.
    Unsafe,
    /// The repository, or the request, needs a feature that this build lacks. The message names it.
    Unsupported,
    /// A configuration file cannot be read or parsed, or a key is malformed.
    Config,
    /// A configured value is not of the requested type.
    ConfigValue,
    /// The operating system refused; the message names the call and the path.
    Io,
    /// A ref has an invalid name or content, or an update of it is refused.
    Reference,
    /// A lock is held by another process.
    Locked,
    /// A ref cannot be created because its name is a directory of another one, or the reverse.
    NameConflict,
    /// A ref does not have the expected value: another process has changed it.
    Moved,
    /// A revision cannot be resolved.
    UnknownRevision,
    /// A reflog is empty, or has fewer entries than a revision such as `@{5}` needs.
    ShortReflog,
    /// An abbreviated object id, or a name, is ambiguous.
    Ambiguous,
    /// An object is not of the required type, or cannot be used.
    Object,
    /// An object is missing.
    MissingObject,
    /// An object, a pack, the index or another file of the repository is damaged.
    Corrupt,
    /// The author or the committer is unknown.
    Identity,
    /// A hook refused, or could not be run.
    Hook,
    /// An argument (a branch name, a template, a date) is malformed.
    InvalidInput,
    /// The operation needs a worktree, and there is none.
    NoWorkTree,
    /// The operation was interrupted.
    Interrupted,
    /// A connection or its remote side failed.
    Transport,
    /// The other side speaks a version of the protocol that cannot express the request.
    ProtocolTooOld,
    /// The requests of this client, or of all, hold as much memory as they may. A later attempt may succeed.
    Exhausted,
    /// Local changes would be lost, or the state of the index or worktree forbids it.
    Refused,
    /// The index or the worktree cannot be read or written.
    Worktree,
    /// A bundle cannot be used: commits that it requires are missing (each line of the message is an
    /// error of its own), or its pack cannot be read (the cause says why).
    Bundle,
    /// The other side did not send all objects that are needed.
    Incomplete,
    /// A received pack is larger than the limit of the receiver.
    PackTooLarge,
    /// An object of a received pack is malformed.
    Rejected,
    /// An object of a received pack links to one that is not there, or of another type.
    BrokenLink,
    /// A text cannot be signed, or a signature cannot be checked.
    Signing,
    /// A signature is missing, or in a format that is not known.
    UnknownSignature,
    /// A tree has a path that must never be written, such as `.git` in any spelling.
    Hostile,
}

/// The error of this crate: a kind, a message in Git's words, and where it happened.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

//! What can go wrong with a repository as a whole.

/// The sort of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no repository where one was looked for.
    NotARepository,
    /// The repository belongs to someone else, or is bare where that is not allowed.
    Unsafe,
    /// The repository is of a version, or has an extension, that Git does not know.
    UnknownFormat,
    /// The repository, or what was asked, needs something that this build does not have. The
    /// message names it.
    Unsupported,
    /// A configuration file cannot be read or parsed, or a key is not well formed.
    Config,
    /// A configured value is not of the type that was asked for.
    ConfigValue,
    /// The operating system refused; the message names the call and the path.
    Io,
    /// A reference has an invalid name or invalid contents, or an update of it is refused.
    Reference,
    /// A lock is held by another process.
    Locked,
    /// A reference does not hold what was expected: another process has changed it.
    Moved,
    /// A revision does not name anything.
    UnknownRevision,
    /// A short object id, or a name, could mean several things.
    Ambiguous,
    /// An object is missing, broken, or not of the kind that was needed.
    Object,
    /// Nobody said who the author or the committer is.
    Identity,
    /// A hook refused, or could not be run.
    Hook,
    /// A value passed in (a branch name, a template, a date) is not well formed.
    InvalidInput,
    /// The operation needs a work tree, and there is none.
    NoWorkTree,
    /// The operation was asked to stop.
    Interrupted,
    /// The other side of a connection, or the way to it, failed.
    Transport,
    /// Local changes would be lost, or the state of the index or work tree forbids it.
    Refused,
    /// The index or the work tree cannot be read or written.
    Worktree,
    /// A tree has a path that must never be written, such as `.git` in any spelling.
    Hostile,
}

/// The error of this crate: a kind, a message in Git's words, and where it happened.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// What fallible calls of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

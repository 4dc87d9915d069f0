//! Errors of reftables.

/// The error of this module: a kind and where it happened.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The outcome of what can fail so.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused.
    Io,
    /// The bytes are not what the format says.
    Corrupt,
    /// A version or a hash function that is not known.
    Unsupported,
    /// The hash function of a table is not the one of the repository.
    WrongHash,
    /// `tables.list` names a table that does not exist.
    Missing,
    /// Another process holds the lock.
    Locked,
    /// Another process has changed the stack meanwhile.
    Outdated,
    /// A record cannot be written: its name, its order, its update index or its size.
    Record,
    /// An option is out of range.
    Options,
}

/// A fault in the bytes of a block, before it is known which file it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) message: &'static str,
    /// From the start of the block.
    pub(crate) at: usize,
}

impl Fault {
    #[cold]
    pub(crate) fn new(message: &'static str, at: usize) -> Fault {
        Fault { message, at }
    }
}

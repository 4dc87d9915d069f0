//! Errors of the reftable module.

/// The error of this module: a kind, a message and the path of the file.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The result type of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A system call failed.
    Io,
    /// The bytes of a file are malformed.
    Corrupt,
    /// The version or the hash function of a table is not supported.
    Unsupported,
    /// The hash function of a table is not that of the repository.
    WrongHash,
    /// `tables.list` names a table that does not exist.
    Missing,
    /// Another process holds the lock.
    Locked,
    /// Another process has changed the stack in the meantime.
    Outdated,
    /// A record cannot be written because of its name, its order, its update index or its size.
    Record,
    /// An option is out of range.
    Options,
}

/// A fault in the bytes of a block, before the path of the file is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockFault {
    pub(crate) message: &'static str,
    /// The offset of the fault from the start of the block.
    pub(crate) at: usize,
}

impl BlockFault {
    #[cold]
    pub(crate) fn new(message: &'static str, at: usize) -> BlockFault {
        BlockFault { message, at }
    }
}

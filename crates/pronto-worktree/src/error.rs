//! Errors of operations between index and files.

/// The sorts of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused.
    Io,
    /// An object is not there.
    MissingObject,
    /// An object exists and is invalid.
    CorruptObject,
    /// The operating system refused to read an object.
    UnreadableObject,
    /// A path that must never be written, such as `.git` in any spelling.
    HostilePath,
    /// A filter of `.gitattributes` did not do its work.
    Filter,
    /// A program that filters did not deliver a file that it had delayed.
    DelayedFilter,
    /// An attributes, ignore or pattern file cannot be used.
    Patterns,
    /// The index cannot be used.
    Index,
    /// The operation would lose something that is recorded nowhere.
    WouldLose,
    /// The operation was asked to stop.
    Interrupted,
    /// A pathspec cannot be used.
    Pathspec,
    /// Something that is not done here.
    Unsupported,
}

/// An error of this crate.
pub type Error = pronto_io::error::Error<ErrorKind>;

impl From<pronto_io::interrupt::Interrupted> for ErrorKind {
    fn from(_: pronto_io::interrupt::Interrupted) -> Self {
        ErrorKind::Interrupted
    }
}

/// Returns an error when it is time to stop.
pub(crate) fn check(interrupt: &pronto_io::interrupt::Interrupt) -> Result<(), Error> {
    interrupt
        .check()
        .map_err(|reason| Error::new(ErrorKind::Interrupted, reason.to_string()))
}

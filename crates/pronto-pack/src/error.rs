//! Errors of packs and the files beside them.

/// The error of this crate: a kind and where it happened.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused.
    Io,
    /// The operation was asked to stop.
    Interrupted,
    /// The bytes are not what the format says.
    Corrupt,
    /// The input ends before it should.
    Truncated,
    /// A checksum is not that of the bytes it covers.
    Checksum,
    /// Bytes follow where the input should end.
    Trailing,
    /// A version or feature of a format that is not known.
    Unsupported,
    /// A limit that the caller set, or that the format or the machine has, is exceeded.
    Limit,
    /// An object that should be there is not: the base of a delta, for example.
    Missing,
    /// Two different objects have one id, or an object looks made to collide.
    Collision,
    /// The inspector refused an object.
    Rejected,
}

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
    /// The input does not begin like a pack.
    NotAPack,
    /// The entry of a pack has a type that does not exist.
    UnknownType {
        /// The number of the type.
        number: u8,
    },
    /// zlib rejects a stream, or it is not of the size that is claimed.
    Inflate,
    /// The offset of the base of a delta lies outside of the pack.
    BaseOffset,
    /// The base of a delta is not of the size that the delta expects.
    BaseSize,
    /// A delta has an instruction that does not exist.
    DeltaOpcode,
    /// The fanout of an index does not ascend.
    FanoutOrder,
    /// An index is not of the size that its number of objects takes.
    IndexSize,
    /// The input ends before it should.
    Truncated,
    /// A file is too small for its header.
    NoHeader,
    /// A file is one of repositories with another hash function.
    OtherHash,
    /// A checksum is not that of the bytes it covers.
    Checksum,
    /// Bytes follow where the input should end.
    Trailing,
    /// A version or feature of a format that is not known.
    Unsupported,
    /// A pack is of a version that is not known.
    PackVersion {
        /// The version.
        version: u32,
    },
    /// An index of a pack is of a version that is not known.
    IndexVersion {
        /// The version.
        version: u32,
    },
    /// A limit that the caller set, or that the format or the machine has, is exceeded.
    Limit,
    /// A pack is larger than the caller permits.
    PackTooLarge,
    /// An object that should be there is not: the base of a delta, for example.
    Missing,
    /// Deltas of a pack have no base.
    Unresolved,
    /// An object links to one that is missing, or is of another type.
    BrokenLink,
    /// A pack holds an object twice.
    Duplicate,
    /// Two different objects have one id, or an object looks made to collide.
    Collision,
    /// The inspector refused an object.
    Rejected,
    /// The inspector refused a blob that trees give a meaning, such as `.gitmodules`.
    RejectedBlob {
        /// Whether the pack holds it.
        in_pack: bool,
    },
    /// The inspector cannot parse an object.
    Unparsable,
    /// Another thread of the operation failed; the operation returns its error.
    Stopped,
}

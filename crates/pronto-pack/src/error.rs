//! Errors of packs and of the files that belong to them.

/// The error of this crate: a kind, a message and the position in the file.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A system call failed.
    Io,
    /// The operation was cancelled.
    Interrupted,
    /// The bytes are malformed.
    Corrupt,
    /// The input does not begin with the signature of a pack.
    NotAPack,
    /// A pack entry has an unknown type.
    UnknownType {
        /// The number of the type.
        number: u8,
    },
    /// zlib rejects a stream, or the inflated size differs from the declared size.
    Inflate,
    /// The offset of a delta base is outside the pack.
    BaseOffset,
    /// The size of a delta base differs from the size in the delta.
    BaseSize,
    /// A delta contains an unknown instruction.
    DeltaOpcode,
    /// The values in the fanout of an index are not in ascending order.
    FanoutOrder,
    /// The size of an index does not match its number of objects.
    IndexSize,
    /// The input ends too early.
    Truncated,
    /// A file is too small for its header.
    NoHeader,
    /// A file was written for another hash function.
    OtherHash,
    /// A checksum does not match the bytes that it covers.
    Checksum,
    /// There are bytes after the end of the input.
    Trailing,
    /// A version or feature of a format is not supported.
    Unsupported,
    /// The version of a pack is not supported.
    PackVersion {
        /// The version of the pack.
        version: u32,
    },
    /// The version of a pack index is not supported.
    IndexVersion {
        /// The version of the index.
        version: u32,
    },
    /// A limit of the caller, the format or the machine is exceeded.
    Limit,
    /// A pack is larger than the caller permits (`--max-input-size`).
    PackTooLarge,
    /// A required object is missing, such as a delta base.
    Missing,
    /// Deltas of a pack have no base.
    Unresolved,
    /// An object links to an object that is missing or of another type.
    BrokenLink,
    /// A pack contains an object twice.
    Duplicate,
    /// Two different objects have the same id, or an object is part of a known collision attack.
    Collision,
    /// The inspector rejected an object.
    Rejected,
    /// The inspector rejected a blob with a special meaning in trees, such as `.gitmodules`.
    RejectedBlob {
        /// Whether the pack contains the blob.
        in_pack: bool,
    },
    /// The inspector cannot parse an object.
    Unparsable,
    /// Another thread of the operation failed; the operation returns the error of that thread.
    Stopped,
}

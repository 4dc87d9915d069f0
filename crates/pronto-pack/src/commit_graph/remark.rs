//! Problems of commit-graphs that can be done without.

use std::fmt;

use pronto_hash::ObjectId;

use crate::chunks::TableFault;

/// A problem of a graph that can be done without. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    /// The file is too small.
    TooSmall,
    /// The file begins with another signature.
    Signature {
        /// The signature of the file.
        found: u32,
        /// That of a commit-graph.
        expected: u32,
    },
    /// The file has another version of the format.
    Version {
        /// The version of the file.
        found: u8,
        /// The known version.
        expected: u8,
    },
    /// The file is of another hash function.
    HashVersion {
        /// The number of its hash function.
        found: u8,
        /// That of the repository.
        expected: u8,
    },
    /// The file is too small for its table of chunks.
    TooSmallForChunks {
        /// The number of chunks that it announces.
        count: u8,
    },
    /// The table of chunks is malformed.
    Chunks(TableFault),
    /// The fanout has the wrong size.
    FanoutSize,
    /// The fanout does not ascend.
    FanoutOrder,
    /// The fanout is missing, or invalid for the reason before.
    NoFanout,
    /// The table of ids has the wrong size.
    IdsSize,
    /// The table of ids is missing, or invalid for the reason before.
    NoIds,
    /// The commit data have the wrong size.
    CommitsSize,
    /// The commit data are missing, or invalid for the reason before.
    NoCommits,
    /// The checksum cannot be read.
    Checksum {
        /// The reason of the operating system.
        reason: String,
    },
    /// The generation data have the wrong size.
    GenerationsSize,
    /// The index of the changed-path filters is too small.
    FilterIndexSize,
    /// The data of the changed-path filters are too small.
    FilterDataSize {
        /// Their size in bytes.
        len: u64,
        /// The least size in bytes.
        least: u64,
    },
    /// The list of a chain is too small.
    ChainTooSmall,
    /// A line of the list of a chain is no id.
    ChainLine {
        /// The line.
        line: String,
    },
    /// A file of a chain is missing, or does not fit to those below it.
    ChainFileMissing,
    /// A file of a chain does not name those below it.
    NoBaseGraphs,
    /// A file of a chain names too few of those below it.
    BaseGraphsTooSmall,
    /// A file of a chain names others than those below it.
    ChainMismatch,
    /// The files of a chain have too many commits.
    TooManyCommits {
        /// The commits in the files below.
        below: u32,
    },
    /// The changed-path filters of a layer are made in another way than those above.
    FiltersIncompatible {
        /// The id of the layer.
        layer: ObjectId,
    },
}

impl Remark {
    /// Whether Git reports it as an error and not as a warning.
    pub fn is_error(&self) -> bool {
        !matches!(
            self,
            Remark::FilterIndexSize
                | Remark::FilterDataSize { .. }
                | Remark::ChainTooSmall
                | Remark::ChainLine { .. }
                | Remark::ChainFileMissing
                | Remark::NoBaseGraphs
                | Remark::BaseGraphsTooSmall
                | Remark::ChainMismatch
                | Remark::TooManyCommits { .. }
                | Remark::FiltersIncompatible { .. }
        )
    }

    /// The message, if it is always the same.
    fn fixed(&self) -> Option<&'static str> {
        Some(match self {
            Remark::TooSmall => "commit-graph file is too small",
            Remark::FanoutSize => "commit-graph oid fanout chunk is wrong size",
            Remark::FanoutOrder => "commit-graph fanout values out of order",
            Remark::NoFanout => "commit-graph required OID fanout chunk missing or corrupted",
            Remark::IdsSize => "commit-graph OID lookup chunk is the wrong size",
            Remark::NoIds => "commit-graph required OID lookup chunk missing or corrupted",
            Remark::CommitsSize => "commit-graph commit data chunk is wrong size",
            Remark::NoCommits => "commit-graph required commit data chunk missing or corrupted",
            Remark::GenerationsSize => "commit-graph generations chunk is wrong size",
            Remark::FilterIndexSize => "commit-graph changed-path index chunk is too small",
            Remark::ChainTooSmall => "commit-graph chain file too small",
            Remark::ChainFileMissing => "unable to find all commit-graph files",
            Remark::NoBaseGraphs => "commit-graph has no base graphs chunk",
            Remark::BaseGraphsTooSmall => "commit-graph base graphs chunk is too small",
            Remark::ChainMismatch => "commit-graph chain does not match",
            _ => return None,
        })
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::Signature { found, expected } => write!(
                f,
                "commit-graph signature {found:X} does not match signature {expected:X}"
            ),
            Remark::Version { found, expected } => write!(
                f,
                "commit-graph version {found:X} does not match version {expected:X}"
            ),
            Remark::HashVersion { found, expected } => write!(
                f,
                "commit-graph hash version {found:X} does not match version {expected:X}"
            ),
            Remark::TooSmallForChunks { count } => {
                write!(f, "commit-graph file is too small to hold {count} chunks")
            }
            Remark::Chunks(fault) => fault.fmt(f),
            Remark::Checksum { reason } => write!(f, "cannot read the checksum: {reason}"),
            Remark::FilterDataSize { len, least } => write!(
                f,
                "ignoring too-small changed-path chunk ({len} < {least}) in commit-graph file"
            ),
            Remark::ChainLine { line } => {
                write!(f, "invalid commit-graph chain: line '{line}' not a hash")
            }
            Remark::TooManyCommits { below } => {
                write!(f, "commit count in base graph too high: {below}")
            }
            Remark::FiltersIncompatible { layer } => write!(
                f,
                "disabling Bloom filters for commit-graph layer '{layer}' due to incompatible \
                 settings"
            ),
            _ => f.write_str(self.fixed().unwrap_or_default()),
        }
    }
}

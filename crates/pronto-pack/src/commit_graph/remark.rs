//! Problems of commit-graphs, which are not fatal because a commit-graph is optional.

use std::fmt;

use pronto_hash::ObjectId;

use crate::chunks::TableFault;

/// A problem of a commit-graph, which is not fatal. [`Display`](fmt::Display) writes Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    /// The file is too small.
    TooSmall,
    /// The file begins with another signature.
    Signature {
        /// The signature of the file.
        found: u32,
        /// The signature of a commit-graph.
        expected: u32,
    },
    /// The version of the file is not supported.
    Version {
        /// The version of the file.
        found: u8,
        /// The supported version.
        expected: u8,
    },
    /// The file was written for another hash function.
    HashVersion {
        /// The number of the hash function of the file.
        found: u8,
        /// The number of the hash function of the repository.
        expected: u8,
    },
    /// The file is too small for its table of contents.
    TooSmallForChunks {
        /// The declared number of chunks.
        count: u8,
    },
    /// The table of contents is malformed.
    Chunks(TableFault),
    /// The fanout has the wrong size.
    FanoutSize,
    /// The values of the fanout are not in ascending order.
    FanoutOrder,
    /// The fanout is missing, or invalid for a reason reported before.
    NoFanout,
    /// The table of ids has the wrong size.
    IdsSize,
    /// The table of ids is missing, or invalid for a reason reported before.
    NoIds,
    /// The commit data have the wrong size.
    CommitsSize,
    /// The commit data are missing, or invalid for a reason reported before.
    NoCommits,
    /// The trailing checksum cannot be read.
    Checksum {
        /// The message of the operating system.
        reason: String,
    },
    /// The generation data have the wrong size.
    GenerationsSize,
    /// The index of the changed-path filters is too small.
    FilterIndexSize,
    /// The data of the changed-path filters are too small.
    FilterDataSize {
        /// The size of the filters in bytes.
        len: u64,
        /// The smallest valid size in bytes.
        least: u64,
    },
    /// The list of the layers is too small.
    ChainTooSmall,
    /// A line of the list of the layers is not an id.
    ChainLine {
        /// The malformed line.
        line: String,
    },
    /// A layer is missing, or does not match the layers below.
    ChainFileMissing,
    /// A layer has no base graphs chunk.
    NoBaseGraphs,
    /// The base graphs chunk of a layer is too small.
    BaseGraphsTooSmall,
    /// The base graphs chunk of a layer does not match the layers below.
    ChainMismatch,
    /// The layers have too many commits.
    TooManyCommits {
        /// The number of commits in the layers below.
        below: u32,
    },
    /// The settings of the changed-path filters of a layer differ from those of the layers above.
    FiltersIncompatible {
        /// The id of the layer.
        layer: ObjectId,
    },
}

impl Remark {
    /// Returns whether Git reports the problem as an error instead of a warning.
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

    /// Returns the message, if it has no parameters.
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

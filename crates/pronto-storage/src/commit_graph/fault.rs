//! Defects of a commit-graph file.

use std::fmt;

use pronto_hash::ObjectId;

/// A defect of a commit-graph file. [`Display`](fmt::Display) writes Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphFault {
    /// The checksum is wrong.
    Checksum,
    /// An entry of the fanout table is wrong.
    Fanout {
        /// The index of the entry.
        byte: usize,
        /// The recorded value.
        recorded: u32,
        /// The number of ids with this or a smaller first byte.
        actual: u32,
    },
    /// Two consecutive ids are not in ascending order.
    Order {
        /// The id of the first row.
        before: ObjectId,
        /// The id of the following row.
        after: ObjectId,
    },
    /// An object cannot be read. [`Unparsable`](Self::Unparsable) is reported next.
    Unreadable(ObjectId),
    /// This object cannot be parsed as a commit.
    Unparsable(ObjectId),
    /// The recorded tree of a commit is wrong.
    Tree {
        /// The commit.
        commit: ObjectId,
        /// The recorded tree.
        recorded: ObjectId,
        /// The tree of the commit.
        actual: ObjectId,
    },
    /// The file records more parents for this commit than the commit has.
    TooManyParents(ObjectId),
    /// The file records fewer parents for this commit than the commit has.
    TooFewParents(ObjectId),
    /// A recorded parent of a commit is wrong.
    Parent {
        /// The commit.
        commit: ObjectId,
        /// The recorded parent.
        recorded: ObjectId,
        /// The parent of the commit.
        actual: ObjectId,
    },
    /// Some commits have a generation number of zero, and others do not.
    MixedGenerations {
        /// The last commit with generation number zero.
        zero: ObjectId,
        /// The last commit with another generation number.
        other: ObjectId,
    },
    /// The generation number of a commit is not larger than those of its parents.
    Generation {
        /// The commit.
        commit: ObjectId,
        /// The recorded generation number.
        recorded: u64,
        /// The smallest valid generation number.
        least: u64,
    },
    /// The recorded date of a commit is wrong.
    Date {
        /// The commit.
        commit: ObjectId,
        /// The recorded date, in seconds since 1970.
        recorded: u64,
        /// The date of the commit.
        actual: u64,
    },
}

impl fmt::Display for GraphFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphFault::Checksum => {
                f.write_str("the commit-graph file has incorrect checksum and is likely corrupt")
            }
            GraphFault::Fanout {
                byte,
                recorded,
                actual,
            } => write!(
                f,
                "commit-graph has incorrect fanout value: fanout[{byte}] = {recorded} != {actual}"
            ),
            GraphFault::Order { before, after } => write!(
                f,
                "commit-graph has incorrect OID order: {before} then {after}"
            ),
            GraphFault::Unreadable(id) => write!(f, "Could not read {id}"),
            GraphFault::Unparsable(id) => write!(
                f,
                "failed to parse commit {id} from object database for commit-graph"
            ),
            GraphFault::Tree {
                commit,
                recorded,
                actual,
            } => write!(
                f,
                "root tree OID for commit {commit} in commit-graph is {recorded} != {actual}"
            ),
            GraphFault::TooManyParents(id) => {
                write!(f, "commit-graph parent list for commit {id} is too long")
            }
            GraphFault::TooFewParents(id) => write!(
                f,
                "commit-graph parent list for commit {id} terminates early"
            ),
            GraphFault::Parent {
                commit,
                recorded,
                actual,
            } => write!(
                f,
                "commit-graph parent for {commit} is {recorded} != {actual}"
            ),
            numbers => numbers.write_numbers(f),
        }
    }
}

impl GraphFault {
    /// Writes the message about generation numbers or dates.
    fn write_numbers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphFault::MixedGenerations { zero, other } => write!(
                f,
                "commit-graph has both zero and non-zero generations (e.g., commits '{zero}' and '{other}')"
            ),
            GraphFault::Generation {
                commit,
                recorded,
                least,
            } => write!(
                f,
                "commit-graph generation for commit {commit} is {recorded} < {least}"
            ),
            GraphFault::Date {
                commit,
                recorded,
                actual,
            } => write!(
                f,
                "commit date for commit {commit} in commit-graph is {recorded} != {actual}"
            ),
            _ => Ok(()),
        }
    }
}

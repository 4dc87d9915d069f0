//! The faults of a commit-graph.

use std::fmt;

use pronto_hash::ObjectId;

/// A fault of a commit-graph. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The checksum is wrong.
    Checksum,
    /// An entry of the fanout is wrong.
    Fanout {
        /// The number of the entry.
        byte: usize,
        /// The recorded value.
        recorded: u32,
        /// The number of ids with such a first byte, or a smaller one.
        actual: u32,
    },
    /// Two ids do not ascend.
    Order {
        /// The first id.
        before: ObjectId,
        /// The id that follows.
        after: ObjectId,
    },
    /// An object cannot be read. [`Unparsable`](Self::Unparsable) follows.
    Unreadable(ObjectId),
    /// The object of this commit cannot be read, or is no commit.
    Unparsable(ObjectId),
    /// A commit is recorded with another tree.
    Tree {
        /// The commit.
        commit: ObjectId,
        /// The recorded tree.
        recorded: ObjectId,
        /// The tree of the commit.
        actual: ObjectId,
    },
    /// This commit is recorded with more parents than it has.
    TooManyParents(ObjectId),
    /// This commit is recorded with fewer parents than it has.
    TooFewParents(ObjectId),
    /// A commit is recorded with another parent.
    Parent {
        /// The commit.
        commit: ObjectId,
        /// The recorded parent.
        recorded: ObjectId,
        /// The parent of the commit.
        actual: ObjectId,
    },
    /// Some commits have a generation number, and others have none.
    MixedGenerations {
        /// The last commit without a generation number.
        zero: ObjectId,
        /// The last commit with one.
        other: ObjectId,
    },
    /// The generation number of a commit is too small for its parents.
    Generation {
        /// The commit.
        commit: ObjectId,
        /// The recorded generation number.
        recorded: u64,
        /// The smallest correct generation number.
        least: u64,
    },
    /// A commit is recorded with another date.
    Date {
        /// The commit.
        commit: ObjectId,
        /// The recorded date, in seconds since 1970.
        recorded: u64,
        /// The date of the commit.
        actual: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Checksum => {
                f.write_str("the commit-graph file has incorrect checksum and is likely corrupt")
            }
            Fault::Fanout {
                byte,
                recorded,
                actual,
            } => write!(
                f,
                "commit-graph has incorrect fanout value: fanout[{byte}] = {recorded} != {actual}"
            ),
            Fault::Order { before, after } => write!(
                f,
                "commit-graph has incorrect OID order: {before} then {after}"
            ),
            Fault::Unreadable(id) => write!(f, "Could not read {id}"),
            Fault::Unparsable(id) => write!(
                f,
                "failed to parse commit {id} from object database for commit-graph"
            ),
            Fault::Tree {
                commit,
                recorded,
                actual,
            } => write!(
                f,
                "root tree OID for commit {commit} in commit-graph is {recorded} != {actual}"
            ),
            Fault::TooManyParents(id) => {
                write!(f, "commit-graph parent list for commit {id} is too long")
            }
            Fault::TooFewParents(id) => write!(
                f,
                "commit-graph parent list for commit {id} terminates early"
            ),
            Fault::Parent {
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

impl Fault {
    /// Writes a fault of generation numbers and dates.
    fn write_numbers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::MixedGenerations { zero, other } => write!(
                f,
                "commit-graph has both zero and non-zero generations (e.g., commits '{zero}' and '{other}')"
            ),
            Fault::Generation {
                commit,
                recorded,
                least,
            } => write!(
                f,
                "commit-graph generation for commit {commit} is {recorded} < {least}"
            ),
            Fault::Date {
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

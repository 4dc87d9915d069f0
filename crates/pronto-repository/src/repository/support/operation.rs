//! The operations of the library that the tables of unsupported settings distinguish.

/// An operation of the library. Most variants are named after a command of Git. The other variants
/// are parts that several operations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Reading a repository. All operations imply `Read`.
    Read,
    /// Reading attributes, for conversions, differences and archives.
    ReadAttributes,
    /// Writing refreshed stat data into the index.
    RefreshIndex,
    /// Writing the index.
    WriteIndex,
    /// Writing a tree into an empty worktree, as a clone does.
    CheckOutTree,
    /// Writing refs and reflogs.
    WriteRefs,
    /// Writing symbolic refs.
    WriteSymbolicRefs,
    /// Connecting to another repository as its client.
    Connect,
    /// `add`.
    Add,
    /// `archive` of a local repository.
    Archive,
    /// `check-ignore`.
    CheckIgnore,
    /// `checkout` of paths, `restore`, `checkout-index`.
    CheckoutFiles,
    /// `clone`.
    Clone,
    /// `commit`.
    Commit,
    /// `bundle create`.
    CreateBundle,
    /// `fetch`.
    Fetch,
    /// `fetch-pack`: fetching objects without refs.
    FetchPack,
    /// `init`.
    Init,
    /// `ls-remote`.
    ListRemote,
    /// `ls-tree`.
    ListTree,
    /// The subcommands of `remote` that connect or that change refs.
    ManageRemotes,
    /// `pack-objects`.
    PackObjects,
    /// `push` and `send-pack`.
    Push,
    /// `read-tree`.
    ReadTree,
    /// `receive-pack`.
    ReceivePack,
    /// `receive-pack` into a view of a stored repository. The files of the view are temporary.
    ReceivePackIntoView,
    /// `repack`.
    Repack,
    /// `reset`.
    Reset,
    /// Serving a peer of netsync.
    ServePeer,
    /// `sparse-checkout`.
    SparseCheckout,
    /// `status`.
    Status,
    /// `switch` and `checkout` of a branch or commit.
    Switch,
    /// Synchronising with a peer of netsync.
    Sync,
    /// `update-index`.
    UpdateIndex,
    /// `upload-archive`.
    UploadArchive,
    /// `upload-pack`.
    UploadPack,
    /// `worktree`: changing linked worktrees.
    Worktrees,
    /// `commit-graph write`.
    WriteCommitGraph,
    /// `write-tree`.
    WriteTree,
}

impl Operation {
    /// Returns the set of this operation and all operations that this operation implies.
    pub const fn with_implied(self) -> Operations {
        use Operation::*;
        let parts: &[Operation] = match self {
            Read | CheckIgnore | CreateBundle | Init | ListTree | WriteCommitGraph | WriteTree
            | ReadAttributes | RefreshIndex | WriteRefs | Connect | ReceivePackIntoView => &[],
            WriteIndex => &[RefreshIndex],
            WriteSymbolicRefs | ServePeer | Sync => &[WriteRefs],
            Archive | CheckOutTree | PackObjects | UploadPack => &[ReadAttributes],
            Repack => &[PackObjects, ReadAttributes],
            UploadArchive => &[Archive, ReadAttributes],
            Status => &[ReadAttributes, RefreshIndex],
            Add | CheckoutFiles | ReadTree | SparseCheckout | UpdateIndex => {
                &[ReadAttributes, WriteIndex, RefreshIndex]
            }
            Commit | Reset => &[ReadAttributes, WriteIndex, RefreshIndex, WriteRefs],
            Switch | Worktrees => &[
                ReadAttributes,
                WriteIndex,
                RefreshIndex,
                WriteRefs,
                WriteSymbolicRefs,
            ],
            ListRemote | FetchPack => &[Connect],
            Push => &[Connect, WriteRefs],
            ManageRemotes => &[Connect, WriteRefs, WriteSymbolicRefs],
            Fetch => &[FetchPack, Connect, WriteRefs, WriteSymbolicRefs],
            Clone => &[
                Connect,
                CheckOutTree,
                ReadAttributes,
                WriteRefs,
                WriteSymbolicRefs,
            ],
            ReceivePack => &[ReceivePackIntoView, WriteRefs],
        };
        Operations::of(parts).or(Operations::of(&[Read, self]))
    }
}

/// A set of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations(u64);

impl Operations {
    /// The empty set.
    pub const NONE: Self = Operations(0);

    /// The set of `operations`.
    pub(super) const fn of(operations: &[Operation]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < operations.len() {
            bits |= 1 << operations[at] as u64;
            at += 1;
        }
        Operations(bits)
    }

    /// Returns whether `operation` is in the set.
    pub const fn contains(self, operation: Operation) -> bool {
        self.0 & (1 << operation as u64) != 0
    }

    /// Returns whether the sets have an operation in common.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the union of both sets.
    pub(super) const fn or(self, other: Self) -> Self {
        Operations(self.0 | other.0)
    }
}

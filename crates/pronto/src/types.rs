//! The types of lower crates that occur in signatures and fields. `cargo xtask exports` finds what is missing.

/// Object ids and the hash functions that make them (`extensions.objectFormat`).
pub mod hash {
    pub use pronto_hash::{IdCache, Kind, NotAnId, ObjectId, oid, parse_hex};
}

/// The index as [`Repository::index`](crate::Repository::index) reads it.
pub mod index {
    pub use pronto_index::NameList;
    pub use pronto_index::{
        Bitmap, CachedDirectory, CachedTree, CachedTreeBuilder, Cover, Entry, EntryRef, Error,
        ErrorKind, ExcludeFile, Filler, Flags, Fsmonitor, Index, IndexContent, IndexFileIdentity,
        IndexOutline, IndexTime, IndexVersion, OffsetTable, OpenOptions, PlainEntry, ResolveUndo,
        SharedIndex, Splitting, Stat, StatChange, StatRules, Unmerged, UntrackedCache,
        UntrackedDirectory, UntrackedList, Writer, mode,
    };
}

/// Parts of signatures that have nothing to do with Git: errors, directories, memory budgets, file
/// removal.
pub mod io {
    pub use pronto_io::budget::{Exhausted, MemoryAccount, RequestBudget};
    pub use pronto_io::cleanup::Guard;
    pub use pronto_io::dir::{
        BlockSharing, Directory, DirectoryListing, EntryKind, FileTime, Metadata, NewFile,
        SkipReason,
    };
    pub use pronto_io::error::{Error, reason};
    pub use pronto_io::file_system::FileSystem;
    pub use pronto_io::interrupt::Interrupted;
    pub use pronto_io::lock_file::{ErrorKind as LockErrorKind, LockFile};
    pub use pronto_io::pool::Workers;
    pub use pronto_io::sync::SyncMethod;
    pub use pronto_io::view::{Advice, FileView, ViewAccess, ViewIdentity};
}

/// Objects by id: the loose objects and packs of a repository and of its alternates.
pub mod object_store {
    pub use pronto_odb::packing::{
        BitmapSubset, Options as PackingOptions, PackContents, PackCounts, PackMember,
    };
    pub use pronto_odb::{
        Bitmapped, Bulk, Error, ErrorKind, FirstUse, Inventory, LinkedPack, NumberedObjects,
        ObjectData, ObjectReader, Options as StoreOptions, PackLocation, PrefixMatches,
        PromisedObjects, Pruning, Quarantine, Salvaged, Store, StoreIds, StoredForm, WritingTurn,
    };
    pub use pronto_pack::bitmap::{BitmapFile, Bits};
}

/// Types of pack files, bundles and commit-graphs.
pub mod pack {
    pub use pronto_pack::bundle::{BadHeader, BundleHeader, BundleRef, Prerequisite};
    pub use pronto_pack::commit_graph::{
        ChangedPaths, CommitGraph, GraphCommit, GraphPosition, OpenedGraph,
        Options as CommitGraphOptions, Remark, TableFault, bloom::Settings as ChangedPathSettings,
    };
    pub use pronto_pack::entry::{Entry, EntryHeader};
    pub use pronto_pack::idx::{IndexEntry, IndexRows, PackIndex};
    pub use pronto_pack::idx::{IndexPosition, PackIndexVersion};
    pub use pronto_pack::indexer::{
        ExistingObjects, InFiles, IndexContext, IndexedObjects, Inspect, Options as IndexOptions,
        Outcome as IndexOutcome,
    };
    pub use pronto_pack::pack::{
        BaseCache, CachedBase, EntryListPiece, EntryReader, PackKey, PackOrder, PackPosition,
        PackReader, Spooled,
    };
    pub use pronto_pack::pack::{
        LinkTarget, PackFiles, PackOffset, Scan, Tree, TreeEntryKind, TreeLinks,
    };
    pub use pronto_pack::rev::ReverseIndex;
    pub use pronto_pack::salvage::{Damage, Options as SalvageOptions};
    pub use pronto_pack::search::Options as DeltaSearchOptions;
    pub use pronto_pack::writer::Encoded;
    pub use pronto_pack::writer::sink::Streamed;
    pub use pronto_pack::writer::sink::{PackSink, PackStream};
    pub use pronto_pack::writer::{Encoder, Options as WriterOptions, PackWriter, WrittenPack};
    pub use pronto_pack::{Error, ErrorKind};
}

/// Types of reftables (`extensions.refStorage`).
pub mod reftable {
    pub use pronto_refs::reftable::{
        Additions, Error, ErrorKind, LogEntry, LogExpiryLimits, RefEntry, RefRecord, RefTable,
        ReftableStack, SnapshotLogs, SnapshotRefs, StackOptions, StackSnapshot, StackTransaction,
        TableName, TableWriteOptions, TableWriter, UpdateIndexRange,
    };
    pub use pronto_refs::reftable::{
        LogCursor, LogRecord, ObjectCursor, RefCursor, RefValue, WrittenTable,
    };
}

/// Types of signed pushes (`receive.certNonceSeed`).
pub mod signing {
    pub use pronto_signing::Nonces;
}

/// Types of Git's protocols: addresses, advertised refs, negotiation.
pub mod wire {
    pub use pronto_wire::address::{RemoteAddress, is_url};
    pub use pronto_wire::advertisement::{LsRefs, ProtocolVersion, RemoteRef};
    pub use pronto_wire::capabilities::Capabilities;
    pub use pronto_wire::client::{FetchClient, IncomingPack, Response};
    pub use pronto_wire::fetch::WantedRef;
    pub use pronto_wire::fetch::{Deepen, FetchInfo, Negotiator, Nothing, Request, ShallowUpdate};
    pub use pronto_wire::negotiate::AddTips;
    pub use pronto_wire::negotiate::{CommitInfo, CommitSupplier, Consecutive, Skipping};
    pub use pronto_wire::policy::{Allow, TransportPolicy};
    pub use pronto_wire::push::RewrittenRef;
    pub use pronto_wire::transport::LowSpeed;
    pub use pronto_wire::transport::http::{
        CredentialProvider, HttpSecret, Settings as HttpSettings, Unset, UrlSettings,
    };
    pub use pronto_wire::transport::http::{ExtraHeader, Options as HttpOptions, Redirects};
    pub use pronto_wire::transport::{
        AddressFamily, Connection, Options as TransportOptions, SshOptions, Timeouts,
    };
    pub use pronto_wire::url::{Url, UrlOrigin};
    pub use pronto_wire::{Error, ErrorKind};
}

/// Types of files in a worktree: results of a checkout, filters, pathspecs, sparse patterns.
pub mod worktree {
    pub use pronto_worktree::attributes::{AttributeStack, Files as AttributeFiles};
    pub use pronto_worktree::checkout::SourceWorktree;
    pub use pronto_worktree::checkout::{
        CheckoutFailure, CheckoutWarning, InPlace, Obstructions, Options as CheckoutOptions,
        Outcome as CheckoutOutcome, ReflinkSources,
    };
    pub use pronto_worktree::filter::Internal;
    pub use pronto_worktree::filter::{
        Delayed, Driver, EncodingFlaw, FileToSmudge, FilterAnswer, FilterPrograms, FilterWarning,
        LineEnding, MalformedSetting, PathConversion, SafeCrlf, Settings as FilterSettings, ToGit,
        Warnings,
    };
    pub use pronto_worktree::pathspec::{DirectoryRelation, Pathspec, PathspecDefaults};
    pub use pronto_worktree::sparse::{Leftover, Sparse, SparseDefinition};
    pub use pronto_worktree::status::Options as WalkOptions;
    pub use pronto_worktree::trees::TreeFault;
    pub use pronto_worktree::unpack::{ObstructedPath, Refusals};
    pub use pronto_worktree::{Error, ErrorKind, ObjectSource, Protect};
}

//! The index file: read in place, edited as a merge, written as Git writes it.
//!
//! - [`Index`] reads versions 2, 3 and 4 with SHA-1 or SHA-256, including split indexes. Entries
//!   of versions 2 and 3 are read in place; extensions are parsed on demand.
//! - [`IndexOutline`] reads the file and its extensions without the entries.
//! - [`Stat`] holds the recorded stat data of a file, and [`StatRules`] selects the compared fields.
//! - [`SharedIndex`] is the shared index of split indexes, and [`Writer`] writes both files.
//! - [`IndexEdit`] collects changes to an index, [`Writer`] encodes entries and extensions, and
//!   [`IndexLock`] replaces the index by one rename.
//!
//! ```
//! use pronto_index::{IndexEdit, Entry, Flags, Index, Stat, Writer, mode};
//! use pronto_hash::{Kind, ObjectId};
//!
//! let empty = Index::empty(Kind::Sha1);
//! let mut edit = IndexEdit::new(&empty);
//! edit.set(Entry {
//!     path: "README".into(),
//!     id: ObjectId::empty_blob(Kind::Sha1),
//!     mode: mode::FILE,
//!     flags: Flags::default(),
//!     stat: Stat::default(),
//! });
//! let bytes = Writer::default().encode(&edit.content())?;
//! let index = Index::from_bytes(bytes, Kind::Sha1)?;
//! assert_eq!(index.entry(0).path, "README");
//! # Ok::<(), pronto_index::Error>(())
//! ```
//!
//! The format is described in Git's `gitformat-index` manual page.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod bytes;
mod cached_tree;
mod carry;
mod digest;
mod edit;
mod entry;
mod error;
mod ewah;
mod extension;
mod file;
mod fsmonitor;
mod identity;
mod index;
mod layout;
mod lengths;
mod link;
mod lock;
mod nesting;
mod open;
mod outline;
mod plain;
mod resolve_undo;
mod sparse;
mod split;
mod stat;
mod untracked;
mod untracked_list;
mod writer;

pub use cached_tree::{
    CachedTree, CachedTreeDirectory as CachedDirectory, TreeBuilder as CachedTreeBuilder,
};
pub use edit::IndexEdit;
pub use entry::{Entry, EntryRef, Flags, mode};
pub use error::{Error, ErrorKind};
pub use ewah::Bitmap;
pub use fsmonitor::Fsmonitor;
pub use identity::IndexFileIdentity;
pub use index::Index;
pub use lock::{IndexLock, replace};
pub use open::OpenOptions;
pub use outline::IndexOutline;
pub use plain::PlainEntry;
pub use resolve_undo::{ResolveUndo, Unmerged};
pub use sparse::{Cover, Filler};
pub use split::SharedIndex;
pub use stat::{IndexTime, Stat, StatChange, StatRules};
pub use untracked::{ExcludeFile, NameList, UntrackedCache, UntrackedDirectory};
pub use untracked_list::{NamesDigest, UntrackedList};
pub use writer::{IndexContent, IndexVersion, OffsetTable, Splitting, Writer};

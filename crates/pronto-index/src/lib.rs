//! The index file: read in place, edited as a merge, written as Git writes it.
//!
//! - [`Index`] reads versions 2, 3 and 4 with SHA-1 or SHA-256, including split indexes. Entries
//!   of versions 2 and 3 are read in place; extensions are parsed on demand.
//! - [`Outline`] reads the file and its extensions without the entries.
//! - [`Stat`] holds the recorded stat data of a file, and [`Rules`] selects the compared fields.
//! - [`SharedIndex`] is the shared index of split indexes, and [`Writer`] writes both files.
//! - [`Edit`] collects changes to an index, [`Writer`] encodes entries and extensions, and
//!   [`Lock`] replaces the index by one rename.
//!
//! ```
//! use pronto_index::{Edit, Entry, Flags, Index, Stat, Writer, mode};
//! use pronto_hash::{Kind, ObjectId};
//!
//! let empty = Index::empty(Kind::Sha1);
//! let mut edit = Edit::new(&empty);
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

pub use cached_tree::{Builder as CachedTreeBuilder, CachedTree, Directory as CachedDirectory};
pub use edit::Edit;
pub use entry::{Entry, EntryRef, Flags, mode};
pub use error::{Error, ErrorKind};
pub use ewah::Bitmap;
pub use fsmonitor::Fsmonitor;
pub use identity::Identity;
pub use index::Index;
pub use lock::{Lock, replace};
pub use open::OpenOptions;
pub use outline::Outline;
pub use plain::Plain;
pub use resolve_undo::{ResolveUndo, Unmerged};
pub use sparse::{Cover, Filler};
pub use split::SharedIndex;
pub use stat::{Change, Rules, Stat, Time};
pub use untracked::{ExcludeFile, Names, UntrackedCache, UntrackedDirectory};
pub use untracked_list::{NamesDigest, UntrackedList};
pub use writer::{Content, OffsetTable, Splitting, Version, Writer};

//! The reftable format: refs and their reflogs in sorted, immutable tables.
//!
//! A [`RefTable`] is one file. A [`ReftableStack`] is the directory `reftable/` of a repository: the tables
//! that `tables.list` names, of which newer ones hide records of older ones. A [`StackSnapshot`] is the
//! content of a stack at one moment; it is cheap to copy and can be read by many threads. A
//! [`StackTransaction`] holds the lock of the stack and adds tables.
//!
//! ```
//! use pronto_hash::{Kind, ObjectId};
//! use pronto_refs::reftable::{Additions, RefRecord, RefValue, ReftableStack, StackOptions};
//!
//! let directory = std::env::temp_dir().join(format!("pronto-reftable-{}", std::process::id()));
//! std::fs::create_dir_all(&directory)?;
//! let stack = ReftableStack::open(&directory, Kind::Sha1, StackOptions::default())?;
//! let id = ObjectId::empty_tree(Kind::Sha1);
//!
//! let mut transaction = stack.begin()?;
//! assert!(transaction.snapshot().find("refs/heads/main")?.is_none());
//! let update_index = transaction.next_update_index();
//! let mut additions = Additions::at(update_index);
//! additions.refs.push(RefRecord {
//!     name: "refs/heads/main".into(),
//!     update_index,
//!     value: RefValue::Direct(&id),
//! });
//! transaction.add(&mut additions)?;
//! transaction.commit()?;
//!
//! let snapshot = stack.snapshot()?;
//! let found = snapshot.find("refs/heads/main")?.map(|entry| entry.value);
//! assert_eq!(found, Some(RefValue::Direct(&id)));
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod format;
mod reader;
mod record;
mod stack;
mod varint;
mod writer;

pub use error::{Error, ErrorKind, Result};
pub use format::UpdateIndexRange;
pub use reader::{LogCursor, ObjectCursor, RefCursor, RefTable};
pub use record::{LogEntry, LogRecord, RefEntry, RefRecord, RefValue};
pub use stack::{
    Additions, LogExpiryLimits, ReftableStack, SnapshotLogs, SnapshotRefs, StackOptions,
    StackSnapshot, StackTransaction, TableName,
};
pub use writer::{TableWriteOptions, TableWriter, WrittenTable};

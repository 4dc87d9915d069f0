//! Repositories in an object store. See `docs/design/store.md`.
//!
//! A [`Repository`] is a sequence of generations, each of which is an immutable manifest. A change
//! is committed by the conditional creation of the next generation. All other data is immutable,
//! too, and the name of an object is never reused.
//!
//! This crate contains no rules of Git's protocol. Packs are files, and refs are reftables.
//!
//! ```
//! use pronto::Environment;
//! use pronto_store::{Change, Creating, Expected, Push, RefUpdate, Store, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let url = format!("file://{}", directory.path().display());
//! let store = Store::open(&url, &Environment::empty("/"))?;
//! let repository = store.repository("team/project")?;
//! store.wait(repository.create(&Creating::default(), Push::default()))?;
//!
//! let mut push = Push::default();
//! push.updates.push(RefUpdate {
//!     name: "HEAD".into(),
//!     old: Expected::Missing,
//!     new: Some(Value::Symbolic("refs/heads/main".into())),
//! });
//! let outcome = store.wait(repository.commit(Change::Push(push)))?;
//! assert_eq!(outcome.generation, 2);
//! assert!(store.wait(repository.latest())?.refs.find("HEAD")?.is_some());
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod backend;
mod blocking;
mod blocks;
mod bucket;
mod cache;
mod change;
mod clock;
mod commit;
mod creation;
mod database;
mod digest;
mod download;
mod error;
mod exchange;
mod generations;
mod hex;
mod manifest;
mod name;
mod queue;
mod refs;
mod repository;
mod settings;
#[cfg(test)]
mod simulation;
mod tables;
mod tls;
mod upkeep;
mod upload;
mod verify;
mod view;

pub use backend::{Backend, Placed, Plain};
pub use blocking::{Store, Stored};
pub use blocks::{BlockCache, BlockCounts, BlockOptions, RangedView};
pub use bucket::{
    Bucket, Call, CallKind, Cloud, Content, Creation, Entry, Location, Metered, Observer, Page,
};
pub use cache::{Cache, Counts, PushView, View};
pub use change::{
    Bounds, Change, Configuration, MergedLayers, MergedTables, Outcome, Push, Replacement, Uploaded,
};
pub use clock::{Clock, SystemClock};
pub use commit::Creating;
pub use database::{Database, DatabaseAddress};
pub use digest::{Digest, Digester, Digests};
pub use error::{Error, ErrorKind, Result};
pub use exchange::{Source, Written};
pub use generations::{Generations, InBucket, Listed, MOST_MANIFEST_BYTES};
pub use manifest::{
    File, FileKind, Layer, LayerKind, Manifest, Nonce, Object, Pack, Place, Policy, TableRecord,
};
pub use name::UploadId;
pub use refs::{Expected, RefUpdate, Value, Verdict};
pub use repository::{Generation, Options, Repository};
pub use settings::{EXPORT_OK, EXPORT_OK_FILE, Settings, check_key};
pub use upkeep::{Deleted, Pass, Repacked, Upkeep, UpkeepOptions, UpkeepRole};
pub use upload::{NewFile, NewPack};
pub use verify::{Problem, Verified};

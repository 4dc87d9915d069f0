//! Repositories in an object store. See `docs/design/store.md`.
//!
//! A [`StoreRepository`] is a sequence of generations, each of which is an immutable manifest. A change
//! is committed by the conditional creation of the next generation. All other data is immutable,
//! too, and the name of an object is never reused.
//!
//! This crate contains no rules of Git's protocol. Packs are files, and refs are reftables.
//!
//! ```
//! use pronto::Environment;
//! use pronto_store::{StoreChange, Creating, ExpectedRefValue, PackPush, RefUpdate, BlockingStore, StoredRefValue};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let url = format!("file://{}", directory.path().display());
//! let store = BlockingStore::open(&url, &Environment::empty("/"))?;
//! let repository = store.repository("team/project")?;
//! store.wait(repository.create(&Creating::default(), PackPush::default()))?;
//!
//! let mut push = PackPush::default();
//! push.updates.push(RefUpdate {
//!     name: "HEAD".into(),
//!     old: ExpectedRefValue::Missing,
//!     new: Some(StoredRefValue::Symbolic("refs/heads/main".into())),
//! });
//! let outcome = store.wait(repository.commit(StoreChange::Push(push)))?;
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

pub use backend::{GenerationStorage, StoreBackend, SystemBackend};
pub use blocking::{BlockingStore, StoredRepository};
pub use blocks::{BlockCache, BlockCounts, BlockOptions, RangedView};
pub use bucket::{
    Bucket, CallKind, CallObserver, Cloud, CreationResult, Entry, ListingPage, Metered,
    MeteredCall, StoreLocation, UploadContent,
};
pub use cache::{CacheCounters, GenerationView, PushView, ViewCache};
pub use change::{
    Configuration, GenerationBounds, MergedLayers, MergedTables, Outcome, PackPush,
    PackReplacement, StoreChange, Uploaded,
};
pub use clock::{Clock, SystemClock};
pub use commit::Creating;
pub use database::{Database, DatabaseAddress};
pub use digest::{BlockDigester, Digest, StreamDigests};
pub use error::{Error, ErrorKind, Result};
pub use exchange::{CopyCounts, CopySource};
pub use generations::{GenerationStore, GenerationSummary, InBucket, MOST_MANIFEST_BYTES};
pub use manifest::{
    FileKind, LayerKind, Manifest, Nonce, RepositoryLayer, RetentionPolicy, StoreObject,
    StoredFile, StoredPack, TableRecord, TableStorage,
};
pub use name::UploadId;
pub use refs::{ExpectedRefValue, RefDecision, RefUpdate, StoredRefValue};
pub use repository::{Generation, Options, StoreRepository};
pub use settings::{EXPORT_OK, EXPORT_OK_FILE, Settings, check_key};
pub use upkeep::{Deleted, Pass, Repacked, UpkeepOptions, UpkeepPass, UpkeepRole};
pub use upload::{NewPack, UploadFile};
pub use verify::{StoreProblem, Verified};

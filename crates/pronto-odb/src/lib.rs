//! The object database: reads and writes objects by id, in loose files, packs, multi-pack-indexes
//! and alternates.
//!
//! [`Store`] reads and writes objects; [`Quarantine`] holds received objects until they are
//! checked.
//!
//! ```no_run
//! use pronto_odb::{Options, Store};
//! let store = Store::open(".git/objects", Options::default())?;
//! let id = gix_object::Kind::Blob;
//! let id = store.write(id, b"hello")?;
//! let mut content = Vec::new();
//! assert_eq!(store.find(&id, &mut content)?, Some(gix_object::Kind::Blob));
//! # Ok::<(), pronto_odb::Error>(())
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod alternates;
mod bulk;
mod error;
mod loose;
mod options;
mod packs;
mod quarantine;
mod snapshot;
mod store;
mod traits;
mod turns;

pub use bulk::{Bulk, PACKED_FROM};
pub use error::{Error, ErrorKind};
pub use options::Options;
pub use pronto_config::shared::SharedPermissions;
pub use quarantine::Quarantine;
pub use store::packing;
pub use store::{
    Bitmapped, FirstUse, Inventory, LinkedPack, NumberedObjects, ObjectData, ObjectReader,
    ObjectSet, PackLocation, PrefixMatches, PromisedObjects, Salvaged, Store, StoreIds, StoredForm,
};
pub use turns::{Pruning, WritingTurn};

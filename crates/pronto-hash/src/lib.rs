//! Object ids, and fast digests of many objects.
//!
//! [`Digester`] and [`digest`] compute the [`ObjectId`] of one stream. [`digest_many`] does this
//! for a batch of independent messages, several at once, and [`DigestStream`] for messages that
//! arrive one after another. SHA-1 is always computed with collision detection: a message with a
//! known type of attack returns [`Collision`] instead of an id. The exception is
//! [`TrailerDigester`], for the checksums at the end of packs and indexes, which protect only
//! against accidental corruption.
//!
//! ```
//! use pronto_hash::{Kind, DigestMessage, digest, digest_many};
//!
//! let id = digest(Kind::Sha1, &[b"blob 0\0"])?;
//! assert!(id.is_empty_blob());
//!
//! let mut ids = Vec::new();
//! digest_many(
//!     Kind::Sha1,
//!     &[DigestMessage { header: b"blob 0\0", body: b"" }, DigestMessage { header: b"tree 0\0", body: b"" }],
//!     &mut ids,
//! );
//! assert_eq!(ids[0], Ok(id));
//! assert!(ids[1].as_ref().is_ok_and(|id| id.is_empty_tree()));
//! # Ok::<(), pronto_hash::Collision>(())
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod collision;
mod digester;
mod hex;
mod id_cache;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod many;
#[cfg(target_arch = "x86_64")]
mod stream;
mod trailer;

pub use collision::Collision;
pub use digester::{Digester, digest};
pub use gix_hash::{Kind, ObjectId, Prefix, oid};
pub use hex::{Hex, NotAnId, hex, parse_hex};
pub use id_cache::IdCache;
pub use many::{DigestBackend, DigestMessage, ManyDigester, digest_many};
pub use stream::{DigestBody, DigestStream};
pub use trailer::TrailerDigester;

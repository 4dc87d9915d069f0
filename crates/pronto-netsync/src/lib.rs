//! Netsync: peer-to-peer reconciliation of repositories over a stream of bytes.
//!
//! - [`varint`], [`frame`]: the wire format, and the credits that stop a sender when the receiver
//!   stops.
//! - [`message`]: the content of frames.
//! - [`session`], [`repository`]: the order of messages, and the interface to the repository.
//! - [`reconcile`]: the difference of two sorted sets, at a cost proportional to it.
//!
//! This crate uses no socket, clock, thread or repository. The caller passes received bytes in and
//! sends the returned bytes, so every run is reproducible.
//!
//! ```
//! use pronto_netsync::reconcile::{Fingerprinter, Options, Reconciler, SetBuilder};
//! let key = Fingerprinter::new([7; 32]);
//! let (mut ours, mut theirs) = (SetBuilder::default(), SetBuilder::default());
//! ours.push(b"refs/heads/main", b"1");
//! ours.push(b"refs/heads/topic", b"2");
//! theirs.push(b"refs/heads/main", b"1");
//! let (ours, theirs) = (ours.finish(&key)?, theirs.finish(&key)?);
//! let mut here = Reconciler::new(&ours, &key, Options::default());
//! let mut there = Reconciler::new(&theirs, &key, Options::default());
//! let mut message = Some(here.start());
//! while let Some(question) = message {
//!     let Some(answer) = there.receive(&question)? else { break };
//!     message = here.receive(&answer)?;
//! }
//! assert_eq!(there.learned()[0].key, b"refs/heads/topic");
//! assert_eq!(here.lacking(), [1]);
//! # Ok::<(), pronto_netsync::Error>(())
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod error;
pub mod frame;
pub mod message;
pub mod reconcile;
pub mod repository;
pub mod session;
pub mod varint;

pub use error::{Error, ErrorKind};

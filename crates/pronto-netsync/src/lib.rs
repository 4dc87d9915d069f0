//! Two repositories become one history: peer-to-peer reconciliation over a stream of bytes.
//!
//! - [`varint`], [`frame`]: what is on the wire; credits that stop a sender when the receiver does.
//! - [`message`]: what the frames of a session say.
//! - [`session`], [`repository`]: who says what when, and what that needs of a repository.
//! - [`reconcile`]: which entries of two sorted sets differ, at the cost of the difference.
//!
//! Nothing here knows a socket, a clock, a thread or a repository: bytes go in and come out, so
//! that every run can be repeated.
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

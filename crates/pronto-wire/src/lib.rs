//! Git's smart protocol as state machines over bytes, and its transports.
//!
//! - [`pktline`], [`reader`], [`sideband`]: framing.
//! - [`capabilities`], [`advertisement`]: the refs and capabilities of the remote side.
//! - [`fetch`], [`negotiate`]: requesting a pack, and negotiating its content.
//! - [`request`]: parsing the request lines of a fetch in a server.
//! - [`push`], [`receive`]: the sending and the receiving side of a push.
//! - [`certificate`]: the push certificate, which a signed push sends instead of its commands.
//! - [`url`], [`address`], [`policy`], [`transport`]: connections to the remote side.
//! - [`tls`]: the certificates of servers that are trusted.
//! - [`archive`]: both sides of a request for an archive.
//! - [`client`]: the blocking client that combines these modules.
//!
//! The crate reads no configuration and no environment: callers pass all settings.
//!
//! ```
//! use pronto_wire::pktline::{self, Packet, Parsed};
//! let mut out = Vec::new();
//! pktline::write(&mut out, b"hello\n")?;
//! let Parsed::Complete { packet, length } = pktline::parse(&out)? else { unreachable!() };
//! assert_eq!((packet, length), (Packet::Data(b"hello\n"), 10));
//! # Ok::<(), pronto_wire::Error>(())
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod address;
pub mod advertisement;
pub mod archive;
mod bounds;
pub mod capabilities;
pub mod certificate;
pub mod client;
mod error;
mod escapes;
pub mod fetch;
pub mod negotiate;
pub mod netrc;
pub mod pktline;
pub mod policy;
pub mod push;
pub mod reader;
pub mod receive;
pub mod request;
mod sanitize;
pub mod sideband;
pub mod tls;
pub mod transport;
pub mod url;

pub use error::{Error, ErrorKind};

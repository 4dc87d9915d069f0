//! Makes and verifies signatures as Git does: with the programs gpg, gpgsm and ssh-keygen, or with
//! configured programs.
//!
//! - [`SignatureFormat`]: the three signature formats, and the position of the signature in a signed text.
//! - [`Settings`]: `user.signingKey`, `gpg.format`, `gpg.program` and related settings.
//! - [`Signer`]: signs a text and verifies a signature.
//! - [`Nonces`]: the nonces that a server sends to clients for signed pushes.
//!
//! A call of [`Signer`] runs one program, or up to three for SSH, and blocks until they exit. A
//! program is killed when the caller's [`Interrupt`](pronto_io::interrupt::Interrupt) is triggered,
//! and its output is limited to 1 MiB. All types are `Send + Sync`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod check;
mod format;
mod nonce;
mod program;
mod settings;
mod signer;
mod status;
mod temporary;

pub use check::{KeyTrust, SignatureCheck, SignatureStatus};
pub use format::{SignatureFormat, signature_start};
pub use nonce::Nonces;
pub use settings::Settings;
pub use signer::{Signer, SigningKey};

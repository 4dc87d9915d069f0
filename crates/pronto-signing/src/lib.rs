//! Signatures as Git makes and checks them: by the programs gpg, gpgsm and ssh-keygen, or others that
//! the configuration names.
//!
//! - [`Format`]: the three formats, and where the signature of a signed text begins.
//! - [`Settings`]: `user.signingKey`, `gpg.format`, `gpg.program` and the others.
//! - [`Signer`]: signs a text, and checks a signature.
//! - [`Nonces`]: the nonces that a server gives to clients that sign their pushes.
//!
//! A call of [`Signer`] runs one program, or up to three for SSH, and blocks until they have ended. Each run of a program
//! ends when the caller's [`Interrupt`](pronto_io::interrupt::Interrupt) is triggered, and its output has at most 1 MiB.
//! All types are `Send + Sync`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod check;
mod format;
mod nonce;
mod program;
mod settings;
mod signer;
mod status;
mod temporary;

pub use check::{Check, Status, Trust};
pub use format::{Format, signature_start};
pub use nonce::Nonces;
pub use settings::Settings;
pub use signer::{Key, Signer};

//! Code that several commands share.

pub(crate) mod bad_pack;
pub(crate) mod checkout_failures;
pub(crate) mod diffing;
pub(crate) mod staging_failures;
pub(crate) mod submodules;

use std::fmt::Display;

/// Returns a count with its noun, which is in the plural unless the count is 1.
pub(crate) fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

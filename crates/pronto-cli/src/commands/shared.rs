//! Code that several commands share.

pub(crate) mod bad_pack;
pub(crate) mod checkout_failures;
pub(crate) mod diffing;
pub(crate) mod staging_failures;
pub(crate) mod submodules;

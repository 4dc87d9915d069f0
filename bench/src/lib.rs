//! What the programs of this crate share.

pub mod plot;

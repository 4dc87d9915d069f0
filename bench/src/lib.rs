//! What the programs of this crate share.

pub mod machine;
pub mod plot;
pub mod sampler;

//! Code that the programs of this crate share.

pub mod beside;
pub mod load;
pub mod machine;
pub mod plot;
pub mod sampler;

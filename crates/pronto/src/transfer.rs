//! Other repositories: what is taken from them and given to them.

pub mod clone;
mod enter;
pub mod fetch;
mod meters;
pub mod push;
pub mod receive_pack;
pub mod remote;
pub mod upload_pack;

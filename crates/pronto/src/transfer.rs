//! Other repositories: what is taken from them and given to them.

pub mod clone;
pub mod fetch;
pub mod remote;
pub mod upload_pack;

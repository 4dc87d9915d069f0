//! What keeps a repository fast over time.

pub mod maintenance;

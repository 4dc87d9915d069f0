//! The staging index file and all its extensions.

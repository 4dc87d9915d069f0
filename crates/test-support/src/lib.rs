//! Support code that the tests of several crates share: certificate authorities, keys, git
//! programs, scratch directories, servers, proxies with faults, random numbers, free ports, default
//! signals, and skipping of tests.

pub mod authority;
pub mod cut_proxy;
pub mod git;
pub mod keys;
mod need;
mod port;
pub mod postgres;
mod program;
mod random;
pub mod s3;
mod scratch;
mod signals;
mod skip;
pub mod store_proxy;

pub use need::Need;
pub use port::free_port;
pub use program::{may_mount, on_path, output_if_installed};
pub use random::{Random, Seed};
pub use scratch::{Scratch, copy_program, write_program};
pub use signals::{DEFAULT_SIGNALS, ignoring_signal, with_default_signals};
pub use skip::{INSTALL, NO_REFERENCE, may_skip, report_missing_reference, report_skip};

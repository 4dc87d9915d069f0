//! The ground floor: everything between pronto and the operating system that knows nothing of Git.
//!
//! - [`error`]: the one error type all crates share, with a kind of their own each.
//! - [`progress`]: counters that hot loops bump and a front end watches.
//! - [`interrupt`]: a flag that long operations look at, so that they can be cancelled.
//! - [`lock_file`]: creating `NAME.lock`, with a bounded wait for its holder.
//! - [`replacement`]: a new file that takes the place of another one.
//! - [`dir`]: directory handles whose every call follows no symbolic link.
//! - [`file_system`]: what is known of the kinds of file systems.
//! - [`pool`]: workers whose number follows what the work waits for.
//! - [`cleanup`]: files and directories that must not outlive an operation that fails.
//! - [`view`]: files opened for random reading, mapped or by position.
//! - [`child`]: starting child processes, and their entries in the trace.
//! - [`process`]: how the process starts.
//! - [`shell`]: quoting words for the shell.
//! - [`signals`]: being asked to end, and ending cleanly.
//! - [`descriptor`]: descriptors that the process was started with.
//! - [`sync`]: waiting until a file has left the memory of the system.
//! - [`untrusted`]: reading files that an attacker may have put in place.
//! - [`queue`]: bytes on their way in and out, bounded in bytes, copied as little as can be.
//!
//! ```
//! use pronto_io::error::Error;
//! #[derive(Debug, Clone, Copy, PartialEq, Eq)]
//! enum Kind { Corrupt }
//! let error = Error::new(Kind::Corrupt, "bad magic").at_path("x.idx").at_offset(4);
//! assert_eq!(error.to_string(), "bad magic in 'x.idx' at offset 4");
//! ```
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(
    unsafe_code,
    reason = "memory maps, inherited descriptors, write-out of files, the start and the end of the process; every block states why it is sound"
)]

#[cfg(unix)]
pub mod child;
pub mod cleanup;
#[cfg(unix)]
pub mod descriptor;
#[cfg(unix)]
pub mod dir;
pub mod error;
pub mod ewah;
#[cfg(target_os = "linux")]
pub mod fanotify;
pub mod file_system;
pub mod interrupt;
pub mod lock_file;
pub mod memory;
#[cfg(unix)]
pub mod pool;
#[cfg(unix)]
pub mod process;
pub mod progress;
pub mod queue;
#[cfg(unix)]
pub mod replacement;
pub mod shell;
#[cfg(unix)]
pub mod signals;
#[cfg(unix)]
pub mod sync;
#[cfg(unix)]
pub mod untrusted;
pub mod view;

#[doc(hidden)]
pub use tracing as __tracing;

/// Enters a region of the trace until the returned guard is dropped: category and label as in
/// Git's trace2 (`region_enter`, `region_leave`). A load and a branch when nobody listens.
///
/// ```
/// let _region = pronto_io::region!("index", "do_read_index");
/// ```
#[macro_export]
macro_rules! region {
    ($category:literal, $label:literal) => {
        $crate::__tracing::info_span!(target: "pronto::region", $label, category = $category)
            .entered()
    };
}

/// Records one datum of the trace: category, key and a value that can be displayed, as in Git's
/// trace2 `data` events.
///
/// ```
/// pronto_io::data!("index", "read/cache_nr", 42);
/// ```
#[macro_export]
macro_rules! data {
    ($category:literal, $key:literal, $value:expr) => {
        $crate::__tracing::info!(
            target: "pronto::data", category = $category, key = $key, value = %$value
        )
    };
}

//! The operating system interface of pronto. Nothing in this crate depends on Git's formats.
//!
//! - [`error`]: the error type of all crates, with a kind for each crate.
//! - [`progress`]: counters that hot loops increment and a front end reads.
//! - [`interrupt`]: a flag that long operations check, so that callers can cancel them.
//! - [`watch`]: progress and interruption of an operation, in one parameter.
//! - [`lock_file`]: creates `NAME.lock`, with a bounded wait for its holder.
//! - [`lock_wait`]: reports long waits for locks.
//! - [`replacement`]: a new file that replaces an existing file.
//! - [`dir`]: directory handles whose calls follow no symbolic link.
//! - [`file_system`]: properties of file systems.
//! - [`getent`]: entries of the databases of the system, such as accounts.
//! - [`hosts`]: the addresses of hosts.
//! - [`pool`]: worker threads whose number adapts to the work.
//! - [`cleanup`]: files and directories that are removed after a failed operation.
//! - [`view`]: files opened for random reading, mapped or read by position.
//! - [`child`]: starts child processes and records them in the trace.
//! - [`process`]: the umask and the entry point of the process.
//! - [`shell`]: quotes words for the shell.
//! - [`signals`]: cleans up when a signal ends the process.
//! - [`descriptor`]: inherited file descriptors.
//! - [`sync`]: flushes files to disk.
//! - [`untrusted`]: reads files that an attacker may have placed.
//! - [`queue`]: queues of received and sent bytes, limited in bytes.
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
pub mod budget;
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
pub mod getent;
pub mod hosts;
pub mod interrupt;
pub mod lock_file;
pub mod lock_wait;
pub mod memory;
#[cfg(unix)]
pub mod pool;
#[cfg(unix)]
pub mod process;
pub mod progress;
pub mod queue;
#[cfg(unix)]
pub mod replacement;
#[cfg(unix)]
mod retry;
pub mod shell;
pub mod short;
#[cfg(unix)]
pub mod signals;
#[cfg(unix)]
pub mod sync;
#[cfg(unix)]
pub mod untrusted;
pub mod view;
pub mod watch;

#[doc(hidden)]
pub use tracing as __tracing;

/// Enters a region of the trace until the returned guard is dropped. Category and label are as in
/// Git's trace2 (`region_enter`, `region_leave`). Costs a load and a branch if there is no
/// subscriber.
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

/// Records a JSON value in the trace: category, key and the value as text, as in Git's trace2
/// `data_json` events.
///
/// ```
/// pronto_io::data_json!("bloom", "settings", r#"{"num_hashes":7}"#);
/// ```
#[macro_export]
macro_rules! data_json {
    ($category:literal, $key:literal, $value:expr) => {
        $crate::__tracing::info!(
            target: "pronto::data", category = $category, key = $key, json = %$value
        )
    };
}

/// Records one value in the trace: category, key and a value that can be displayed, as in Git's
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

//! Child processes, as the trace tells of them.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// A child process that the trace knows of; [`ended`](Self::ended) is to be called once. Costs a load and a branch when nobody listens.
#[derive(Clone, Copy, Debug)]
#[must_use = "the trace expects to hear of its end"]
pub struct Child(Option<(u64, Instant)>);

/// Tells the trace that `command` is about to be started, as a child of `class` ("hook",
/// "transport/ssh", "filter": the names Git uses where it has them).
pub fn started(class: &str, command: &Command) -> Child {
    if !tracing::enabled!(target: "pronto::child", tracing::Level::INFO) {
        return Child(None);
    }
    static ISSUED: AtomicU64 = AtomicU64::new(0);
    let id = ISSUED.fetch_add(1, Relaxed);
    let mut arguments = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args().map(OsStr::to_string_lossy) {
        arguments.push('\0');
        arguments.push_str(&argument);
    }
    let argv = arguments.as_str();
    match command.get_current_dir() {
        Some(directory) => {
            let cd = &*directory.to_string_lossy();
            tracing::info!(target: "pronto::child", id, class, cd, argv);
        }
        None => tracing::info!(target: "pronto::child", id, class, argv),
    }
    Child(Some((id, Instant::now())))
}

impl Child {
    /// Tells the trace how process number `pid` ended.
    pub fn ended(self, pid: u32, status: ExitStatus) {
        let Some((id, begun)) = self.0 else {
            return;
        };
        let by_signal = || status.signal().map_or(-1, |signal| 128 + signal);
        let code = i64::from(status.code().unwrap_or_else(by_signal));
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let pid = u64::from(pid);
        tracing::info!(target: "pronto::child", id, pid, code, micros);
    }
}

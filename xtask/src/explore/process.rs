//! Runs a process in a process group with a time limit.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The time limit of a call.
const LIMIT: Duration = Duration::from_secs(20);

/// The interval at which the time limits are checked.
const INTERVAL: Duration = Duration::from_millis(500);

/// The output and the exit status of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessOutput {
    /// The exit code, or a description of the signal or timeout.
    pub(super) end: String,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// The running processes with their deadlines.
type ProcessDeadlines = Mutex<BTreeMap<u32, Instant>>;

/// A thread that kills process groups whose time limit has expired.
#[derive(Clone, Debug)]
pub(super) struct Watchdog(Arc<ProcessDeadlines>);

impl Watchdog {
    /// Starts the thread, which ends after the last clone is dropped.
    pub(super) fn start() -> Self {
        let running = Arc::new(ProcessDeadlines::default());
        let watched = Arc::downgrade(&running);
        std::thread::spawn(move || watch(&watched));
        Watchdog(running)
    }

    /// Runs `command` with `input` as standard input. Its output is collected in files in
    /// `directory`.
    ///
    /// # Errors
    /// Fails if the process cannot be started, or if a file cannot be read or written.
    pub(super) fn run(
        &self,
        command: &mut Command,
        input: &str,
        directory: &Path,
    ) -> io::Result<ProcessOutput> {
        let [stdin, stdout, stderr] =
            ["stdin", "stdout", "stderr"].map(|name| directory.join(name));
        let input = match input {
            "" => Stdio::null(),
            input => {
                std::fs::write(&stdin, input)?;
                File::open(&stdin)?.into()
            }
        };
        let mut child = command
            .stdin(input)
            .stdout(File::create(&stdout)?)
            .stderr(File::create(&stderr)?)
            .process_group(0)
            .spawn()?;
        let deadline = Instant::now() + LIMIT;
        self.lock().insert(child.id(), deadline);
        let status = child.wait();
        self.lock().remove(&child.id());
        let status = status?;
        let end = match (status.code(), status.signal()) {
            (Some(code), _) => code.to_string(),
            (None, _) if Instant::now() >= deadline => "time limit".to_owned(),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        };
        let text = |path| {
            let bytes = std::fs::read(path)?;
            Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let (stdout, stderr) = (text(&stdout)?, text(&stderr)?);
        Ok(ProcessOutput {
            end,
            stdout,
            stderr,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn watch(running: &Weak<ProcessDeadlines>) {
    while let Some(running) = running.upgrade() {
        let now = Instant::now();
        let table = running.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, _) in table.iter().filter(|(_, deadline)| **deadline <= now) {
            let pid = Pid::from_raw((*id).cast_signed());
            if let Some(pid) = pid {
                // The process group may have ended already.
                let _ = kill_process_group(pid, Signal::KILL);
            }
        }
        drop(table);
        drop(running);
        std::thread::sleep(INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_exit_code_are_returned() {
        let scratch = test_support::Scratch::new();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "cat; echo warning >&2; exit 3"]);
        let output = Watchdog::start().run(&mut command, "input\n", scratch.path());
        let expected = ProcessOutput {
            end: "3".to_owned(),
            stdout: "input\n".to_owned(),
            stderr: "warning\n".to_owned(),
        };
        assert_eq!(output.expect("sh runs"), expected);
    }
}

//! Runs programs and measures their resource usage.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bench::sampler::{Sampled, Sampler};
use wait4::Wait4 as _;

use crate::relay;

/// The resource usage of a process with or without its descendants.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) cpu_seconds: f64,
    pub(crate) memory: Sampled,
}

/// The counters of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessCounters {
    pub(crate) copied: u64,
    pub(crate) allocated: u64,
}

/// Runs `program` and returns its output.
pub(crate) fn output<S: AsRef<OsStr> + Debug>(
    program: &OsStr,
    arguments: &[S],
    directory: Option<&Path>,
) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    let output = surroundings(&mut command)
        .output()
        .map_err(|error| format!("cannot run {program:?}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program:?} {arguments:?} failed: {}", said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs stock git for preparation and verification.
pub(crate) fn git<S: AsRef<OsStr> + Debug>(
    directory: &Path,
    arguments: &[S],
) -> Result<String, String> {
    output(OsStr::new("git"), arguments, Some(directory))
}

/// Sets the same environment for all programs.
fn surroundings(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "bench")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "bench@example.com")))
}

/// Runs the command to its end. The usage of a relay and of the processes that it starts is
/// excluded.
pub(crate) fn used(mut command: Command) -> Result<Used, String> {
    let child = surroundings(&mut command)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let sampler = Sampler::without(child.id(), Some(relay::NAME));
    let mut child = child;
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
    }
    let ended = child.wait4().map_err(|error| error.to_string())?;
    let memory = sampler.finish();
    if !ended.status.success() {
        return Err(format!("{command:?} failed: {}", said.trim()));
    }
    Ok(Used {
        cpu_seconds: (ended.rusage.utime + ended.rusage.stime).as_secs_f64(),
        memory,
    })
}

/// A directory that holds the counters of processes.
pub(crate) struct CounterDirectory {
    directory: PathBuf,
}

impl CounterDirectory {
    /// Creates the directory `directory`.
    pub(crate) fn new(directory: PathBuf) -> Result<Self, String> {
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory.join(relay::SERVER)).map_err(|e| e.to_string())?;
        Ok(CounterDirectory { directory })
    }

    /// Makes `command` and its descendants count.
    pub(crate) fn of(&self, command: &mut Command) -> Result<(), String> {
        command
            .env("LD_PRELOAD", bench::beside::built("libcounter.so")?)
            .env("COUNTER_DIRECTORY", &self.directory);
        Ok(())
    }

    /// Returns the sums of this side and of the side behind the relay.
    pub(crate) fn read(&self) -> Result<(ProcessCounters, ProcessCounters), String> {
        Ok((
            sum(&self.directory)?,
            sum(&self.directory.join(relay::SERVER))?,
        ))
    }
}

fn sum(directory: &Path) -> Result<ProcessCounters, String> {
    let mut sum = ProcessCounters::default();
    let cannot = |error: std::io::Error| format!("{}: {error}", directory.display());
    for entry in std::fs::read_dir(directory).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.is_dir() {
            continue;
        }
        let bytes = std::fs::read(&path).map_err(cannot)?;
        let number = |at: usize| {
            let bytes = bytes.get(at * 8..at * 8 + 8)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        };
        let command = String::from_utf8_lossy(bytes.get(64..).unwrap_or_default()).into_owned();
        if command.split(' ').any(|word| word == relay::NAME) {
            continue;
        }
        sum.copied += number(0).unwrap_or(0);
        sum.allocated += number(2).unwrap_or(0);
    }
    Ok(sum)
}

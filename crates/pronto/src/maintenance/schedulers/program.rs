//! Runs the program of a scheduler.

use std::fs::OpenOptions;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind as Io, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pronto_io::child;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;

use super::{Scheduler, Schedules};
use crate::{Error, ErrorKind, Result};

impl Schedules<'_> {
    /// Returns a command that runs the program of `scheduler`, or its replacement in tests.
    pub(super) fn program(&self, scheduler: Scheduler) -> Command {
        let given = self.stand_in(scheduler).unwrap_or(scheduler.program());
        let mut words = given.split_whitespace();
        let mut command = child::command(words.next().unwrap_or_default());
        command.args(words);
        command
    }
}

/// Disconnects the standard streams of a command.
pub(super) fn silent(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
}

/// Runs `command`, waits for its end, and returns whether the command succeeded.
///
/// # Errors
/// Fails with `failure` if the command cannot be started.
pub(super) fn run(command: &mut Command, failure: Error) -> Result<bool> {
    let traced = child::started("?", command);
    let cannot = |error| failure.because(error);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Err(cannot(error)),
    };
    let status = child.wait().map_err(cannot)?;
    traced.ended(child.id(), status);
    Ok(status.success())
}

/// A file that the program of a scheduler reads. Dropping the value deletes the file.
pub(super) struct ScheduleFile {
    path: PathBuf,
    #[expect(dead_code, reason = "dropping it removes the file")]
    guard: Guard,
}

impl ScheduleFile {
    /// Creates a file in `directory` whose name starts with `prefix` and that only its owner may
    /// read.
    ///
    /// # Errors
    /// Fails with `failure` if the file cannot be created, and with [`ErrorKind::Io`] if it cannot
    /// be written.
    pub(super) fn write(
        directory: &Path,
        prefix: &str,
        content: &[u8],
        failure: Error,
    ) -> Result<Self> {
        let random = RandomState::new();
        let mut number = 0u32;
        let (path, mut file) = loop {
            let path = directory.join(format!("{prefix}{:016x}", random.hash_one(number)));
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == Io::AlreadyExists && number < 100 => number += 1,
                Err(error) => return Err(failure.because(error)),
            }
        };
        let guard = Guard::new(&path);
        (file.write_all(content)).context(ErrorKind::Io, "cannot write", &path)?;
        Ok(ScheduleFile { path, guard })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

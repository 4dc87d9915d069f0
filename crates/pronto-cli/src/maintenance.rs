//! Automatic maintenance after commands that add objects. It is git's work, and runs beside the
//! user's next commands: no command waits for it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use bstr::ByteSlice;
use pronto::Repository;
use rustix::process::{Pid, setpriority_process};

use crate::{CliError, Context, fallback};

/// Starts git's maintenance if there is likely to be something to do, detached from this process and
/// at low priority. Without a git that may be called nothing is done.
///
/// Costs a listing of two directories where there is nothing to do. With `maintenance.autoDetach` or
/// `gc.autoDetach` off it waits for the end, as git does.
pub(crate) fn maintain(repository: &Repository, context: &Context) -> Result<(), CliError> {
    let config = repository.config();
    let objects_at_most = config.i64("gc.auto")?.unwrap_or(6700);
    let packs_at_most = config.i64("gc.autopacklimit")?.unwrap_or(50);
    if objects_at_most <= 0 || !config.bool_or("maintenance.auto", true)? {
        return Ok(());
    }
    let count = |directory: &str, extension: &str| {
        let entries = std::fs::read_dir(repository.objects_dir().join(directory));
        let entries = entries.into_iter().flatten().flatten();
        let counted = entries.filter(|entry| {
            extension.is_empty()
                || entry
                    .path()
                    .extension()
                    .is_some_and(|found| found == extension)
        });
        counted.count() as i64
    };
    // One of 256 directories stands for all.
    let is_task = |key: &str| {
        key == "maintenance.strategy"
            || key.starts_with("maintenance.") && key.ends_with(".enabled")
    };
    let has_tasks = config
        .iter()
        .any(|entry| entry.key.to_str().is_ok_and(is_task));
    let is_needed = has_tasks
        || count("17", "") > (objects_at_most + 255) / 256
        || (packs_at_most > 0 && count("pack", "pack") > packs_at_most);
    if is_needed && let Ok(git) = fallback::git(&context.globals) {
        let detaches = match config.bool("maintenance.autodetach")? {
            Some(detaches) => detaches,
            None => config.bool_or("gc.autodetach", true)?,
        };
        let mut command = git.command();
        command.args(["maintenance", "run", "--auto", "--quiet"]);
        // Maintenance that fails now is tried again after another command.
        let _ = match detaches {
            true => detach(command),
            false => command.status().map(|_| ()),
        };
    }
    Ok(())
}

/// How much less of the processor than others a detached process gets.
const NICENESS: i32 = 10;

/// Starts `command` and leaves it: with streams that lead nowhere, in a process group of its own,
/// so that neither a signal from the terminal nor its end stops it.
fn detach(mut command: Command) -> io::Result<()> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let child = command.spawn()?;
    if let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // A process that is over by now needs no priority.
        let _ = setpriority_process(Some(process), NICENESS);
    }
    Ok(())
}

//! systemd: a timer for each frequency, and one service for all.

use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};

use super::super::conditions::failed;
use super::program::{run, silent};
use super::{Scheduler, Schedules, frequencies};
use crate::{Error, ErrorKind, Result};
use pronto_io::error::OsReason;
use pronto_repository::Notice;

const HEAD: &str = "\
# This file was created and is maintained by Git.
# Any edits made in this file might be replaced in the future
# by a Git command.

[Unit]
Description=Optimize Git repositories data

";

const LIMITS: &str = "\
LockPersonality=yes
MemoryDenyWriteExecute=yes
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_VSOCK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
";

pub(super) fn is_available(schedules: &Schedules<'_>) -> bool {
    let mut list = schedules.program(Scheduler::Systemd);
    let list = silent(list.args(["--user", "list-timers"]));
    run(list, failed("systemctl")).unwrap_or(false)
}

/// Writes the units and enables the timers. If one of them fails, removes all.
pub(super) fn start(schedules: &Schedules<'_>) -> Result<()> {
    let started = write(&unit(schedules, "", "service")?, &service(schedules)).and_then(|()| {
        for frequency in frequencies() {
            let timer = timer(frequency, schedules.minute);
            let file = unit(schedules, frequency, "timer")?;
            write(&file, timer.as_bytes())?;
            if !turn(schedules, frequency, true)? {
                return Err(failed("failed to run systemctl"));
            }
        }
        Ok(())
    });
    match started {
        Ok(()) => remove_stale(schedules),
        Err(error) => {
            stop(schedules)?;
            Err(error)
        }
    }
}

/// Disables the timers and deletes the units.
pub(super) fn stop(schedules: &Schedules<'_>) -> Result<()> {
    for frequency in frequencies() {
        // systemd reports a failure if the timer is disabled already.
        turn(schedules, frequency, false)?;
    }
    remove_stale(schedules)?;
    let timers = frequencies().map(|frequency| (frequency, "timer"));
    for (name, ending) in timers.chain([("", "service")]) {
        let file = unit(schedules, name, ending)?;
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != Io::NotFound => {
                let message = format!("failed to delete '{}'", file.display());
                let error = Error::new(ErrorKind::Io, message).because(OsReason(error));
                schedules.repository.notify(Notice::Failure(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Deletes the units of older versions of Git, which had one timer for all frequencies.
fn remove_stale(schedules: &Schedules<'_>) -> Result<()> {
    let file = unit(schedules, "", "timer")?;
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != Io::NotFound => {
            let message = format!("failed to delete '{}'", file.display());
            let error = Error::new(ErrorKind::Io, message);
            schedules.repository.notify(Notice::Ignored(error));
        }
        _ => {}
    }
    Ok(())
}

fn turn(schedules: &Schedules<'_>, frequency: &str, on: bool) -> Result<bool> {
    let mut command = schedules.program(Scheduler::Systemd);
    command.args(["--user", if on { "enable" } else { "disable" }, "--now"]);
    command.arg(format!("git-maintenance@{frequency}.timer"));
    if !on {
        command.stderr(std::process::Stdio::null());
    }
    run(&mut command, failed("failed to start systemctl"))
}

/// Returns the path of a unit file of the user.
fn unit(schedules: &Schedules<'_>, frequency: &str, ending: &str) -> Result<PathBuf> {
    let environment = schedules.repository.environment();
    let home = || environment.home().map(|home| home.join(".config"));
    let base = environment.path("XDG_CONFIG_HOME");
    let base = base.filter(|path| !path.as_os_str().is_empty());
    let base = base.map(|path| environment.absolute(path)).or_else(home);
    let base = base.ok_or_else(|| failed("$HOME not set"))?;
    let name = format!("git-maintenance@{frequency}.{ending}");
    Ok(base.join("systemd/user").join(name))
}

fn write(file: &Path, text: &[u8]) -> Result<()> {
    let refused = |what: &str, error: std::io::Error| -> Error {
        failed(format!("{what} '{}'", file.display())).because(error)
    };
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent)
            .map_err(|error| refused("failed to create directories for", error))?;
    }
    std::fs::write(file, text).map_err(|error| refused("failed to write to", error))
}

fn timer(frequency: &str, minute: u64) -> String {
    let when = match frequency {
        "hourly" => format!("*-*-* 1..23:{minute:02}:00"),
        "daily" => format!("Tue..Sun *-*-* 0:{minute:02}:00"),
        _ => format!("Mon 0:{minute:02}:00"),
    };
    format!(
        "{HEAD}[Timer]\n\
         OnCalendar={when}\n\
         Persistent=true\n\n\
         [Install]\n\
         WantedBy=timers.target\n"
    )
}

fn service(schedules: &Schedules<'_>) -> Vec<u8> {
    let start = format!("{HEAD}[Service]\nType=oneshot\nExecStart=");
    // systemd replaces `%i` with the frequency.
    let arguments = format!(" {}\n", schedules.arguments("%i"));
    [
        start.as_bytes(),
        &schedules.quoted_program(),
        arguments.as_bytes(),
        LIMITS.as_bytes(),
    ]
    .concat()
}

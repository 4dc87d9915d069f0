//! launchd of macOS: a property list for each frequency.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::conditions::failed;
use super::program::{run, silent};
use super::{COMMAND, CONFIGURATION, Scheduler, Schedules, fatal, frequencies};
use crate::lock::Lock;
use crate::{Result, path};

pub(super) fn start(schedules: &Schedules<'_>) -> Result<()> {
    frequencies().try_for_each(|frequency| schedule(schedules, frequency))
}

/// Unloads and deletes the property lists, up to the first that launchd fails to unload.
pub(super) fn stop(schedules: &Schedules<'_>) -> Result<()> {
    for frequency in frequencies() {
        let file = file(schedules, frequency)?;
        let is_gone = boot(schedules, &file, false)?;
        // A missing file is no error.
        let _ = std::fs::remove_file(&file);
        if !is_gone {
            break;
        }
    }
    Ok(())
}

fn name(frequency: &str) -> String {
    format!("org.git-scm.git.{frequency}")
}

fn file(schedules: &Schedules<'_>, frequency: &str) -> Result<PathBuf> {
    let name = format!("Library/LaunchAgents/{}.plist", name(frequency));
    let home = schedules.repository.environment().home();
    let home = home.ok_or_else(|| fatal(format!("failed to expand path '~/{name}'")))?;
    Ok(home.join(name))
}

fn boot(schedules: &Schedules<'_>, file: &Path, on: bool) -> Result<bool> {
    let mut command = schedules.program(Scheduler::Launchd);
    let user = format!("gui/{}", rustix::process::getuid().as_raw());
    command
        .args([if on { "bootstrap" } else { "bootout" }, &user])
        .arg(file);
    run(silent(&mut command), fatal("failed to start launchctl"))
}

fn is_known(schedules: &Schedules<'_>, frequency: &str) -> Result<bool> {
    let mut command = schedules.program(Scheduler::Launchd);
    command.args(["list", &name(frequency)]);
    run(silent(&mut command), fatal("failed to start launchctl"))
}

fn schedule(schedules: &Schedules<'_>, frequency: &str) -> Result<()> {
    let file = file(schedules, frequency)?;
    let list = list(schedules, frequency);
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).map_err(|error| {
            let message = format!("failed to create directories for '{}'", file.display());
            failed(message).because(error)
        })?;
    }
    let config = schedules.repository.config();
    let patience = config.u64("gc.launchctlplistlocktimeoutms")?.unwrap_or(150);
    let mut lock = Lock::acquire(&file, Duration::from_millis(patience))?.recorded(config);
    let is_same = std::fs::read(&file).is_ok_and(|old| old == list);
    if is_same && is_known(schedules, frequency)? {
        return Ok(());
    }
    lock.write_and_close(&list)?;
    lock.commit()?;
    // The job may not be loaded.
    boot(schedules, &file, false)?;
    match boot(schedules, &file, true)? {
        true => Ok(()),
        false => {
            let message = format!("failed to bootstrap service {}", file.display());
            Err(fatal(message))
        }
    }
}

fn list(schedules: &Schedules<'_>, frequency: &str) -> Vec<u8> {
    let head = format!(
        "<?xml version=\"1.0\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
         \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\"><dict>\n\
         <key>Label</key><string>{}</string>\n\
         <key>ProgramArguments</key>\n<array>\n<string>",
        name(frequency)
    );
    let mut rest = String::from("</string>\n");
    let mut word = |word: &str, more: &str| {
        // Writing to a `String` cannot fail.
        let _ = writeln!(rest, "<string>{word}{more}</string>");
    };
    for setting in CONFIGURATION {
        word("-c", "");
        word(setting, "");
    }
    let (last, words) = COMMAND.split_last().unwrap_or((&"", &[]));
    words.iter().for_each(|it| word(it, ""));
    word(last, frequency);
    rest.push_str("</array>\n<key>StartCalendarInterval</key>\n<array>\n");
    let mut moment = |day: Option<u32>, hour: u32| {
        rest.push_str("<dict>\n");
        if let Some(day) = day {
            let _ = writeln!(rest, "<key>Weekday</key><integer>{day}</integer>");
        }
        let minute = schedules.minute;
        let _ = writeln!(rest, "<key>Hour</key><integer>{hour}</integer>");
        let _ = writeln!(rest, "<key>Minute</key><integer>{minute}</integer>");
        rest.push_str("</dict>\n");
    };
    match frequency {
        "hourly" => (1..=23).for_each(|hour| moment(None, hour)),
        "daily" => (1..=6).for_each(|day| moment(Some(day), 0)),
        _ => moment(Some(0), 0),
    }
    rest.push_str("</array>\n</dict>\n</plist>\n");
    let program = path::as_bytes(schedules.runs);
    [head.as_bytes(), program, rest.as_bytes()].concat()
}

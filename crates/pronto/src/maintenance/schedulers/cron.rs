//! cron: maintenance is a delimited region of the user's crontab.

use std::path::Path;
use std::process::Stdio;

use bstr::ByteSlice;

use super::super::conditions::failed;
use super::program::{ScheduleFile, run, silent};
use super::{Scheduler, Schedules};
use crate::Result;

const BEGIN: &str = "# BEGIN GIT MAINTENANCE SCHEDULE";
const END: &str = "# END GIT MAINTENANCE SCHEDULE";

pub(super) fn is_available(schedules: &Schedules<'_>) -> bool {
    let mut list = schedules.program(Scheduler::Cron);
    // `crontab -l` fails if the user has no crontab yet.
    run(silent(list.arg("-l")), failed("crontab")).is_ok()
}

/// Rewrites the region, or removes it.
pub(super) fn update(schedules: &Schedules<'_>, runs: bool) -> Result<()> {
    let mut list = schedules.program(Scheduler::Cron);
    list.arg("-l").stdin(Stdio::null()).stderr(Stdio::inherit());
    let listed = list.output().map_err(|error| {
        failed("failed to run 'crontab -l'; your system might not support 'cron'").because(error)
    })?;
    let table = table(&listed.stdout, runs.then_some(schedules));
    let environment = schedules.repository.environment();
    let directory = environment.path("TMPDIR").unwrap_or(Path::new("/tmp"));
    let cannot = failed("failed to create crontab temporary file");
    let file = ScheduleFile::write(directory, ".git_cron_edit_tmp", &table, cannot)?;
    let mut edit = schedules.program(Scheduler::Cron);
    let cannot = failed("failed to run 'crontab'; your system might not support 'cron'");
    match run(edit.arg(file.path()), cannot)? {
        true => Ok(()),
        false => Err(failed("'crontab' died")),
    }
}

/// Returns `old` without the region, and with a new region if `schedules` is given.
fn table(old: &[u8], schedules: Option<&Schedules<'_>>) -> Vec<u8> {
    let mut table = Vec::with_capacity(old.len());
    let mut is_inside = false;
    for line in old.lines_with_terminator() {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if !is_inside && line == BEGIN.as_bytes() {
            is_inside = true;
        } else if is_inside && line == END.as_bytes() {
            is_inside = false;
        } else if !is_inside {
            table.extend_from_slice(line);
            table.push(b'\n');
        }
    }
    let Some(schedules) = schedules else {
        return table;
    };
    let head = format!(
        "{BEGIN}\n\
         # The following schedule was created by Git\n\
         # Any edits made in this region might be\n\
         # replaced in the future by a Git command.\n\n"
    );
    table.extend_from_slice(head.as_bytes());
    let times = [
        ("1-23", "*", "hourly"),
        ("0", "1-6", "daily"),
        ("0", "0", "weekly"),
    ];
    for (hours, days, frequency) in times {
        let when = format!("{} {hours} * * {days} ", schedules.minute);
        table.extend_from_slice(when.as_bytes());
        table.extend_from_slice(&schedules.quoted_program());
        let arguments = format!(" {}\n", schedules.arguments(frequency));
        table.extend_from_slice(arguments.as_bytes());
    }
    table.extend_from_slice(format!("\n{END}\n").as_bytes());
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_stays() {
        let old = format!("a\n{BEGIN}\nx\n{END}\n{END}\nb");
        let kept = table(old.as_bytes(), None);
        assert_eq!(kept.as_bstr(), format!("a\n{END}\nb\n").as_str());
        assert_eq!(table(b"", None), b"");
        // A region without an end extends to the end of the crontab.
        assert_eq!(table(format!("a\n{BEGIN}\nx\n").as_bytes(), None), b"a\n");
    }
}

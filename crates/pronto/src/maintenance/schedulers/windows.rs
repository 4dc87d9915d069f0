//! The task scheduler of Windows: a task for each frequency, described in XML.

use super::super::conditions::failed;
use super::program::{ScheduleFile, run, silent};
use super::{Scheduler, Schedules, fatal, frequencies};
use crate::Result;

const HEAD: &str = "<?xml version=\"1.0\" ?>
<Task version=\"1.4\" xmlns=\"http://schemas.microsoft.com/windows/2004/02/mit/task\">
<Triggers>
<CalendarTrigger>
";

const MIDDLE: &str = "</CalendarTrigger>
</Triggers>
<Principals>
<Principal id=\"Author\">
<LogonType>InteractiveToken</LogonType>
<RunLevel>LeastPrivilege</RunLevel>
</Principal>
</Principals>
<Settings>
<MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
<Enabled>true</Enabled>
<Hidden>true</Hidden>
<UseUnifiedSchedulingEngine>true</UseUnifiedSchedulingEngine>
<WakeToRun>false</WakeToRun>
<ExecutionTimeLimit>PT72H</ExecutionTimeLimit>
<Priority>7</Priority>
</Settings>
<Actions Context=\"Author\">
<Exec>
<Command>";

const TAIL: &str = "</Arguments>
</Exec>
</Actions>
</Task>
";

pub(super) fn start(schedules: &Schedules<'_>) -> Result<()> {
    for frequency in frequencies() {
        let directory = schedules.repository.common_dir();
        let prefix = format!("schedule_{frequency}_");
        let task = task(schedules, frequency);
        let cannot = fatal("failed to create temp xml file");
        let file = ScheduleFile::write(directory, &prefix, &task, cannot)?;
        let mut command = schedules.program(Scheduler::Windows);
        command
            .args(["/create", "/tn", &name(frequency), "/f", "/xml"])
            .arg(file.path());
        if !run(silent(&mut command), fatal("failed to start schtasks"))? {
            return Err(failed("'schtasks' rejected the task"));
        }
    }
    Ok(())
}

/// Deletes the tasks, up to the first that cannot be deleted.
pub(super) fn stop(schedules: &Schedules<'_>) -> Result<()> {
    for frequency in frequencies() {
        let mut command = schedules.program(Scheduler::Windows);
        command.args(["/delete", "/tn", &name(frequency), "/f"]);
        if !run(&mut command, failed("failed to start schtasks"))? {
            break;
        }
    }
    Ok(())
}

fn name(frequency: &str) -> String {
    format!("Git Maintenance ({frequency})")
}

fn task(schedules: &Schedules<'_>, frequency: &str) -> Vec<u8> {
    let program = schedules.quoted_program();
    let arguments = schedules.arguments(frequency);
    [
        HEAD.as_bytes(),
        trigger(frequency, schedules.minute).as_bytes(),
        MIDDLE.as_bytes(),
        &program,
        b"</Command>\n<Arguments>",
        arguments.as_bytes(),
        TAIL.as_bytes(),
    ]
    .concat()
}

fn trigger(frequency: &str, minute: u64) -> String {
    let hour = if frequency == "hourly" { 1 } else { 0 };
    let start = format!(
        "<StartBoundary>2020-01-01T{hour:02}:{minute:02}:00</StartBoundary>\n\
         <Enabled>true</Enabled>\n"
    );
    let days: &[&str] = match frequency {
        "hourly" => {
            let rest = "<ScheduleByDay>\n\
                        <DaysInterval>1</DaysInterval>\n\
                        </ScheduleByDay>\n\
                        <Repetition>\n\
                        <Interval>PT1H</Interval>\n\
                        <Duration>PT23H</Duration>\n\
                        <StopAtDurationEnd>false</StopAtDurationEnd>\n\
                        </Repetition>\n";
            return start + rest;
        }
        "daily" => &[
            "Monday",
            "Tuesday",
            "Wednesday",
            "Thursday",
            "Friday",
            "Saturday",
        ],
        _ => &["Sunday"],
    };
    let days: String = days.iter().map(|day| format!("<{day} />\n")).collect();
    format!(
        "{start}<ScheduleByWeek>\n\
         <DaysOfWeek>\n{days}</DaysOfWeek>\n\
         <WeeksInterval>1</WeeksInterval>\n\
         </ScheduleByWeek>\n"
    )
}

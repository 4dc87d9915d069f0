//! `GIT_TRACE_PERFORMANCE`: a line for each region that ended, and one for the whole command.

use std::time::Duration;

use crate::basic::MESSAGE_COLUMN;
use crate::clock;
use crate::quote;
use crate::record::{Event, Record, Region};

/// The line for a region that ended. `nesting` counts the regions around it and the command.
pub(crate) fn region(record: &Record<'_>) -> Option<String> {
    let Event::RegionLeave { region, lasted } = &record.event else {
        return None;
    };
    let spaces = " ".repeat(record.nesting);
    Some(line(
        record.file,
        record.line,
        *lasted,
        &format!("{spaces}{}", label(region)),
    ))
}

/// The line for the whole command.
pub(crate) fn command(arguments: &[String], lasted: Duration) -> String {
    let label = format!("git command: {}", quote::arguments(arguments));
    line("pronto-trace/performance.rs", line!(), lasted, &label)
}

fn line(file: &str, line: u32, lasted: Duration, label: &str) -> String {
    let place = format!("{} {file}:{line} ", clock::local_time());
    let (seconds, nanos) = (lasted.as_secs(), lasted.subsec_nanos());
    format!("{place:MESSAGE_COLUMN$}performance: {seconds}.{nanos:09} s: {label}")
}

/// What Git calls the region in this trace, which is older than the names of regions.
fn label(region: &Region) -> String {
    let name = match (region.category.as_str(), region.label) {
        ("index", "do_read_index") => "read cache",
        ("index", "refresh") => "refresh index",
        ("index", "preload") => "preload index",
        ("index", "do_write_index") => "write index",
        ("status", "worktrees") => "diff-files",
        ("status", "index") => "diff-index",
        (_, label) => label,
    };
    if region.detail.is_empty() {
        name.to_owned()
    } else {
        format!("{name} {}", region.detail)
    }
}

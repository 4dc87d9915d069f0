//! `GIT_TRACE_PERFORMANCE`: one line for each region that has ended, and one for the command.

use std::time::Duration;

use crate::basic::place;
use crate::quote;
use crate::record::{Event, Region, TraceRecord};

/// Formats the line of a region that has ended.
pub(crate) fn region(record: &TraceRecord<'_>, is_brief: bool) -> Option<String> {
    let Event::RegionLeave { region, lasted } = &record.event else {
        return None;
    };
    let spaces = " ".repeat(record.nesting);
    let place = place(record.file, record.line, is_brief);
    Some(line(&place, *lasted, &format!("{spaces}{}", label(region))))
}

/// Formats the line of the whole command.
pub(crate) fn command(arguments: &[String], lasted: Duration, is_brief: bool) -> String {
    let label = format!("git command: {}", quote::arguments(arguments));
    let place = place("pronto-trace/performance.rs", line!(), is_brief);
    line(&place, lasted, &label)
}

fn line(place: &str, lasted: Duration, label: &str) -> String {
    let (seconds, nanos) = (lasted.as_secs(), lasted.subsec_nanos());
    format!("{place}performance: {seconds}.{nanos:09} s: {label}")
}

/// Returns Git's name of the region in this trace, which differs from that in trace2.
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

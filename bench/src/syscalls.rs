//! Counts system calls by kind with `strace -c`, including those of child processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::measure::{CommandInput, quiet};

/// Runs `inner` under strace and returns the counts.
pub(crate) fn count(
    inner: &Command,
    surroundings: &CommandInput,
    scratch: &Path,
) -> Result<BTreeMap<String, u64>, String> {
    let log = scratch.join("strace");
    let mut outer = Command::new("strace");
    outer
        .args(["-f", "-c", "-o"])
        .arg(&log)
        .arg(inner.get_program())
        .args(inner.get_args());
    if let Some(directory) = inner.get_current_dir() {
        outer.current_dir(directory);
    }
    quiet(&mut outer, surroundings)?;
    let status = outer
        .status()
        .map_err(|error| format!("cannot run strace: {error}"))?;
    let counts = parse(&log);
    let _ = std::fs::remove_file(&log);
    if status.success() {
        Ok(counts)
    } else {
        Err(format!("{inner:?} failed under strace"))
    }
}

/// Lines of `strace -c`: percent, seconds, microseconds per call, calls, errors (if any), name.
fn parse(log: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(calls), Some(name)) = (words.get(3), words.last()) else {
            continue;
        };
        if let (Ok(calls), false) = (calls.parse(), *name == "total") {
            counts.insert((*name).to_owned(), calls);
        }
    }
    counts
}

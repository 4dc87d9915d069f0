//! Counts the costs of one call, with callgrind, strace and statistics of the kernel.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, WaitId, WaitIdOptions};

/// The number of runs. The lowest number of page faults counts, because it varies slightly with the
/// addresses.
const RUNS: usize = 9;

/// The costs of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartupCost {
    instructions: u64,
    page_faults: u64,
    system_calls: u64,
}

impl StartupCost {
    pub(super) const fn new(instructions: u64, page_faults: u64, system_calls: u64) -> Self {
        Self {
            instructions,
            page_faults,
            system_calls,
        }
    }

    /// Describes the costs that exceed `bound`, if any.
    pub(super) fn above(&self, bound: &Self) -> Option<String> {
        let all = [
            (self.instructions, bound.instructions, "instructions"),
            (self.page_faults, bound.page_faults, "page faults"),
            (self.system_calls, bound.system_calls, "system calls"),
        ];
        let excess: Vec<String> = all
            .into_iter()
            .filter(|(counted, bound, _)| counted > bound)
            .map(|(counted, bound, name)| format!("{counted} {name}, more than {bound}"))
            .collect();
        (!excess.is_empty()).then(|| excess.join(", "))
    }
}

impl fmt::Display for StartupCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            instructions,
            page_faults,
            system_calls,
        } = self;
        write!(f, "{instructions}, {page_faults}, {system_calls}")
    }
}

/// Counts `call` of `program` in `repository`, without the environment and the configuration of the user.
pub(super) fn of_call(
    program: &Path,
    repository: &Path,
    call: &str,
) -> Result<StartupCost, String> {
    let counted = |runner: &mut Command| {
        runner.args(call.split(' ')).current_dir(repository);
        runner.env_clear().env("PATH", "/usr/bin:/bin");
        runner.env("HOME", "/nonexistent").stdin(Stdio::null());
        runner
            .output()
            .map_err(|error| format!("cannot run {}: {error}", runner.get_program().display()))
    };

    let profile = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--compress-strings=no"]);
    valgrind.arg(format!("--callgrind-out-file={}", profile.path().display()));
    let said = counted(valgrind.arg(program))?.stderr;
    let said = String::from_utf8_lossy(&said);
    let instructions = said
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok())
        .ok_or_else(|| format!("valgrind did not count: {said}"))?;
    let profile = fs::read_to_string(profile.path()).map_err(|error| error.to_string())?;
    refuse_questions(&profile)?;

    let table = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-o"]).arg(table.path());
    counted(strace.arg(program))?;
    let table = fs::read_to_string(table.path()).map_err(|error| error.to_string())?;
    let system_calls = table
        .lines()
        .find_map(|line| line.trim_end().strip_suffix("total"))
        .and_then(|total| total.split_ascii_whitespace().nth(3)?.parse().ok())
        .ok_or_else(|| format!("strace did not count: {table}"))?;

    let mut fewest = u64::MAX;
    for _ in 0..RUNS {
        let mut command = Command::new(program);
        command.args(call.split(' ')).current_dir(repository);
        command.env_clear().env("PATH", "/usr/bin:/bin");
        command.env("HOME", "/nonexistent").stdin(Stdio::null());
        fewest = fewest.min(page_faults(&mut command)?);
    }
    Ok(StartupCost::new(instructions, fewest, system_calls))
}

/// Functions that query the processor for its vector instructions. In a virtual machine, each of
/// their `cpuid` instructions takes microseconds, which a count of instructions does not show.
const QUESTIONS: [&str; 4] = [
    "std_detect",
    "core_detect",
    "vectorization_support",
    "_cpuid",
];

/// Reports functions in `profile` that query the processor.
fn refuse_questions(profile: &str) -> Result<(), String> {
    let functions = profile.lines().filter_map(|line| line.strip_prefix("fn="));
    let mut asking = functions.filter(|name| QUESTIONS.iter().any(|part| name.contains(part)));
    match asking.next() {
        None => Ok(()),
        Some(name) => Err(format!(
            "a small call asks the processor for its vectors: {name}"
        )),
    }
}

/// Runs `command` and returns the number of minor page faults.
fn page_faults(command: &mut Command) -> Result<u64, String> {
    let failed = |error: std::io::Error| format!("cannot count page faults: {error}");
    command.stdout(Stdio::null());
    let mut process = command.spawn().map_err(failed)?;
    let id = Pid::from_child(&process);
    // The kernel keeps the statistics of a process until the parent has waited for it.
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::Pid(id), ended).map_err(|error| failed(error.into()))?;
    let state = fs::read_to_string(format!("/proc/{}/stat", process.id())).map_err(failed)?;
    process.wait().map_err(failed)?;
    // After the name in parentheses: state, parent, group, session, terminal, its group, flags, minor faults.
    let fields = state.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let faults = fields
        .split(' ')
        .nth(7)
        .and_then(|field| field.parse().ok());
    faults.ok_or_else(|| format!("the kernel did not count: {state}"))
}

/// Returns the number of relocations in `program` that are applied at its start.
pub(super) fn relocations(program: &Path) -> Result<u64, String> {
    let read = Command::new("readelf")
        .args(["--relocs", "--wide"])
        .arg(program)
        .output()
        .map_err(|error| format!("cannot run readelf: {error}"))?;
    let text = String::from_utf8_lossy(&read.stdout);
    let mut count = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // A packed section has one line about its entries, and one line about the relocations that
        // they stand for.
        let packed = line.contains("'.relr.dyn'");
        let number = match words.as_slice() {
            [number, "offsets"] => number,
            [.., "contains", number, _] if !packed => number,
            _ => continue,
        };
        count += number.parse::<u64>().unwrap_or_default();
    }
    match count {
        0 => Err(format!("readelf did not count: {text}")),
        _ => Ok(count),
    }
}

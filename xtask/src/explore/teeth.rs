//! Plants faults one by one and counts the scenarios until each is found.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::compare::{self, ComparisonResult, OutcomeDifference, Outcomes};
use super::faults::{FAULTS, SourceFault};
use super::run::Bench;
use super::scenario::Scenario;
use super::{Machine, Options};

/// The largest number of scenarios within which a fault must be found.
const LIMIT: u64 = 20_000;

/// The directory of the changed source and of its build.
const DIRECTORY: &str = "target/teeth";

/// Plants the faults `names` (`all`, or names separated by commas), and returns an error for each
/// fault that is not found. `check` only checks that each fault can be planted.
///
/// # Errors
/// Fails if the source cannot be copied or built, or if a scenario cannot be run.
pub(super) fn run(root: &Path, options: &Options, names: &str) -> Result<Vec<String>, String> {
    let is_all = ["all", "check"].contains(&names);
    let wanted = |fault: &&SourceFault| is_all || names.split(',').any(|name| name == fault.name);
    let wanted: Vec<&SourceFault> = FAULTS.iter().filter(wanted).collect();
    if wanted.is_empty() {
        return Err(format!("no fault is called '{names}'"));
    }
    let (mut changes, mut problems) = (Vec::new(), Vec::new());
    for fault in wanted {
        let text = fs::read_to_string(root.join(fault.file))
            .map_err(|error| format!("{}: {error}", fault.file))?;
        match fault.plant(&text) {
            Ok(changed) => changes.push((fault, changed)),
            Err(problem) => problems.push(problem),
        }
    }
    if names == "check" {
        return Ok(problems);
    }
    let clean = match &options.program {
        Some(program) => program.clone(),
        None => build(root, None)?,
    };
    let mut machine = Machine::new(root, clean.clone())?;
    println!("seed {}", options.seed);
    println!("| fault | scenarios | found by |\n|---|---|---|");
    for (fault, changed) in changes {
        machine.programs.pronto = match &options.planted {
            Some(planted) => planted.clone(),
            None => build(root, Some((fault, &changed)))?,
        };
        match find(&machine, options.seed, &clean)? {
            Some((number, found)) => println!(
                "| `{}`: {} | {} | `{}`, {} |",
                fault.name,
                fault.effect,
                number + 1,
                found.command,
                found.kind
            ),
            None => problems.push(format!(
                "explore: '{}' is not found within {LIMIT} scenarios of the seed {}",
                fault.name, options.seed
            )),
        }
    }
    Ok(problems)
}

/// Copies the tracked files that differ from those in `source`. Unchanged files keep their times,
/// so that they are not rebuilt.
fn copy_source(root: &Path, source: &Path) -> Result<(), String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run git: {error}"))?;
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        copy_file(&root.join(name), &source.join(name))
            .map_err(|error| format!("cannot copy '{name}': {error}"))?;
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    // Symbolic links and submodules are not part of the build.
    if !from
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file())
    {
        return Ok(());
    }
    let content = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == content) {
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::write(to, content)
}

/// Builds the program, with a fault or without, and returns its path.
fn build(root: &Path, change: Option<(&SourceFault, &String)>) -> Result<PathBuf, String> {
    let directory = root.join(DIRECTORY);
    let source = directory.join("source");
    copy_source(root, &source)?;
    let mut name = "clean";
    if let Some((fault, changed)) = change {
        name = fault.name;
        fs::write(source.join(fault.file), changed)
            .map_err(|error| format!("cannot plant '{name}': {error}"))?;
    }
    let target = directory.join("target");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--package", "pronto-cli", "--locked"])
        .current_dir(&source)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the source of '{name}' cannot be built"));
    }
    // The program is moved, because the next build replaces it.
    let kept = directory.join(name);
    fs::copy(target.join("debug/pronto"), &kept)
        .map_err(|error| format!("cannot keep '{name}': {error}"))?;
    Ok(kept)
}

/// Returns the number of the first scenario with a difference that the unchanged program `clean`
/// does not have.
fn find(
    machine: &Machine,
    seed: u64,
    clean: &Path,
) -> Result<Option<(u64, OutcomeDifference)>, String> {
    let found = Mutex::new(None);
    let first = AtomicU64::new(u64::MAX);
    let is_over = |number| number > first.load(Ordering::Relaxed);
    let programs = [machine.programs.pronto.as_path(), clean];
    machine.each(0..LIMIT, is_over, |bench, number| {
        let scenario = machine.generator.scenario(seed, number);
        let Some(difference) = only_with_fault(machine, bench, &scenario, programs)? else {
            return Ok(());
        };
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        if number < first.fetch_min(number, Ordering::Relaxed) {
            *found = Some((number, difference));
        }
        Ok(())
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the difference of `scenario` that the first of `programs` has and the second does not
/// have.
fn only_with_fault(
    machine: &Machine,
    bench: &mut Bench,
    scenario: &Scenario,
    programs: [&Path; 2],
) -> Result<Option<OutcomeDifference>, String> {
    let mut verdicts = Vec::new();
    for program in programs {
        bench.with_program(program);
        let (pronto, git) = bench.run(scenario)?;
        let Some(git) = git else { return Ok(None) };
        let outcomes = Outcomes {
            git: &git,
            pronto: &pronto,
        };
        match compare::judge(scenario, &outcomes, &machine.known) {
            ComparisonResult::Different(difference) => verdicts.push(difference),
            ComparisonResult::Same | ComparisonResult::Known(_) => break,
        }
    }
    let [first, second] = [0, 1].map(|position| verdicts.get(position).cloned());
    Ok(first.filter(|first| second.is_none_or(|second| second.cause() != first.cause())))
}

//! The operations of an editor plugin: `editor DIR status|stage PATH|unstage PATH|discard PATH|branches`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program prints"
)]

use std::ops::ControlFlow;
use std::process::ExitCode;

use pronto::bstr::{BStr, ByteSlice};
use pronto::status::{ChangeKind, ConflictStages, Divergence, Pathspec};
use pronto::{Environment, ErrorKind, Repository, Result, Watch};
use pronto::{add, checkout_paths, reset, status};

#[path = "shared/hints.rs"]
mod hints;

use hints::{conclude, failure};

const USAGE: &str = "editor DIR status|stage PATH|unstage PATH|discard PATH|branches";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    conclude(run(&arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()))
}

fn run(arguments: &[&str]) -> Result<()> {
    let [directory, command @ ..] = arguments else {
        return Err(failure(ErrorKind::InvalidInput, USAGE));
    };
    // Paths of the caller are relative to DIR, as with `git -C DIR`.
    let mut environment = Environment::from_process()?;
    let directory = environment.absolute(directory);
    environment.set_current_dir(&directory);
    let repository = Repository::discover(&directory, &environment)?;
    match command {
        ["status"] => show_status(&repository),
        ["stage", path] => stage(&repository, path),
        ["unstage", path] => unstage(&repository, path),
        ["discard", path] => discard(&repository, path),
        ["branches"] => branches(&repository),
        _ => Err(failure(ErrorKind::InvalidInput, USAGE)),
    }
}

/// Returns a pathspec for one path: a name in an editor is not a pattern.
fn only(repository: &Repository, path: &str) -> Result<Pathspec> {
    repository.literal_pathspec([BStr::new(path)])
}

fn show_status(repository: &Repository) -> Result<()> {
    let report = status::status(repository, &status::Options::default(), &Watch::none())?;
    for entry in &report.entries {
        if let Some(stages) = &entry.stages {
            println!("conflict: {} ({})", entry.path, conflict(stages));
            continue; // `index` and `worktree` describe the sides then
        }
        if let Some(kind) = entry.index {
            println!("staged: {} ({})", entry.path, word(kind));
        }
        if let Some(kind) = entry.worktree {
            println!("changed: {} ({})", entry.path, word(kind));
        }
    }
    for path in &report.untracked {
        println!("untracked: {path}");
    }
    for problem in &report.problems {
        eprintln!("warning: {}: {}", problem.path, problem.error);
    }
    Ok(())
}

fn word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Copied => "copied",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Modified => "modified",
        ChangeKind::Renamed => "renamed",
        ChangeKind::TypeChanged => "type changed",
        ChangeKind::Unmerged => "unmerged",
    }
}

fn conflict(stages: &ConflictStages) -> &'static str {
    match (
        stages.base.is_some(),
        stages.ours.is_some(),
        stages.theirs.is_some(),
    ) {
        (true, true, true) => "both modified",
        (true, true, false) => "deleted by them",
        (true, false, true) => "deleted by us",
        (true, false, false) => "both deleted",
        (false, true, true) => "both added",
        (false, true, false) => "added by us",
        (false, false, _) => "added by them",
    }
}

fn stage(repository: &Repository, path: &str) -> Result<()> {
    let mut options = add::Options::default();
    options.pathspec = only(repository, path)?;
    let report = add::add(repository, &options, &Watch::none())?;
    report.into_result().map(drop)
}

fn unstage(repository: &Repository, path: &str) -> Result<()> {
    // Before the first commit, HEAD stands for the empty tree here.
    let mut options = reset::Options::new(reset::target(repository, "HEAD".into(), true)?);
    options.pathspec = only(repository, path)?;
    let outcome = reset::reset(repository, &options, &Watch::none())?;
    outcome.into_result().map(drop)
}

fn discard(repository: &Repository, path: &str) -> Result<()> {
    let options = checkout_paths::Options::new(only(repository, path)?);
    let report = checkout_paths::checkout_paths(repository, &options, &Watch::none())?;
    println!("restored {} file(s)", report.into_result()?.updated);
    Ok(())
}

fn branches(repository: &Repository) -> Result<()> {
    let head = repository.head()?;
    repository.refs().for_each("refs/heads/", |branch| {
        let mark = if head.name() == Some(branch.name) {
            '*'
        } else {
            ' '
        };
        let short = branch
            .name
            .strip_prefix(b"refs/heads/")
            .unwrap_or(branch.name)
            .as_bstr();
        print!("{mark} {short}");
        let upstream = status::upstream(
            repository,
            branch.name,
            Some(branch.id),
            true,
            &Watch::none(),
        )?;
        match upstream.map(|upstream| (upstream.short_name, upstream.divergence)) {
            None => println!(" (no upstream)"),
            Some((name, None)) => println!(" -> {name} (gone)"),
            Some((name, Some(Divergence::Same))) => println!(" -> {name} (up to date)"),
            Some((name, Some(Divergence::Different))) => println!(" -> {name} (differs)"),
            Some((name, Some(Divergence::Counted { ahead, behind }))) => {
                println!(" -> {name} (ahead {ahead}, behind {behind})");
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

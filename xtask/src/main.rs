//! Development commands:
//!
//! - `cargo xtask tidy`: checks the rules of `ARCHITECTURE.md` and `CONTRIBUTING.md`; `--ratchet`
//!   lowers the exemptions.
//! - `cargo xtask docs`: writes the command reference, the manual pages and the completions from
//!   the definitions of the arguments; `--check` lists stale files.
//! - `cargo xtask exports DIRECTORY`: lists the types in the documentation of crate `pronto` (made by
//!   `cargo doc`, in `DIRECTORY`) that the crate does not export.
//! - `cargo xtask demo [DIRECTORY]`: builds pronto and compares it with git on 50,000 files.
//! - `cargo xtask explore [--program PATH] [--seed N] [--count N | --seconds N] [--replay
//!   SEED:NUMBER] [--table FILE] [--keep DIRECTORY] [--show-known] [--teeth all|NAME,...|check
//!   [--planted PATH]]`: compares pronto with git in random scenarios; `--teeth` plants faults and
//!   counts the scenarios until each fault is found.
//! - `cargo xtask package [--program-dir DIRECTORY] [--target TRIPLE] [--output DIRECTORY]
//!   [--check]`: writes the packages of a release; `--check` installs and uses each.
//! - `cargo xtask reference-git [--print] [--update] [--source DIRECTORY]`: builds the reference
//!   git in the user's cache, from Debian's source package or a source tree.
//! - `cargo xtask git-suite [--native] [--program PATH] [--served [--server PATH]] [SCRIPT...]`:
//!   runs Git's own tests against pronto and compares the failures with
//!   `xtask/git-suite-allowed.txt`; `--served` selects the tests that start servers, and replaces
//!   the servers by `pronto serve`. `git-suite-front` is a part of this mode.
//! - `cargo xtask site [DIRECTORY]`: builds the documents as a searchable site (needs `mdbook`).
//! - `cargo xtask startup`: counts the costs of small calls, and fails if a cost exceeds its bound.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a development tool"
)]

mod demo;
mod explore;
mod exports;
mod git_suite;
mod package;
mod reference_git;
mod site;
mod startup;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let problems = match words.as_slice() {
        ["tidy"] => tidy::run(&root()),
        ["tidy", "--ratchet"] => tidy::ratchet(&root()),
        ["docs", arguments @ ..] => docs(&root(), arguments),
        ["exports", directory] => exports::run(Path::new(directory)),
        ["demo", arguments @ ..] => demo::run(&root(), arguments),
        ["explore", arguments @ ..] => explore::run(&root(), arguments),
        ["git-suite", arguments @ ..] => git_suite::run(&root(), arguments),
        ["git-suite-front", arguments @ ..] => git_suite::run_front(arguments),
        ["package", arguments @ ..] => package::run(&root(), arguments),
        ["reference-git", arguments @ ..] => reference_git::run(arguments),
        ["site", arguments @ ..] => site::run(&root(), arguments),
        ["startup"] => startup::run(&root()),
        _ => vec![
            "usage: cargo xtask tidy [--ratchet] | docs [--check] | exports DIRECTORY | demo [DIRECTORY] \
             | site [DIRECTORY] | startup | explore [--program PATH] [--seed N] [--count N | --seconds N] [--replay SEED:NUMBER] [--table FILE] \
             [--keep DIRECTORY] [--show-known] [--teeth all|NAME,...|check [--planted PATH]] \
             | package [--program-dir DIRECTORY] [--target TRIPLE] [--output DIRECTORY] [--check] \
             | reference-git [--print] [--update] [--source DIRECTORY] \
             | git-suite [--native] [--program PATH] [--served [--server PATH]] [SCRIPT...]"
                .to_owned(),
        ],
    };
    for problem in &problems {
        eprintln!("{problem}");
    }
    if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs the program that generates documents. It is a separate package because it depends on
/// pronto, which other commands need not build.
fn docs(root: &Path, arguments: &[&str]) -> Vec<String> {
    let status = cargo()
        .args(["run", "--quiet", "--package", "xtask-docs", "--"])
        .args(arguments)
        .current_dir(root)
        .status();
    match status {
        Ok(status) if status.success() => Vec::new(),
        Ok(_) => vec!["docs: not everything is in order".to_owned()],
        Err(error) => vec![format!("cannot run cargo: {error}")],
    }
}

/// Returns the top directory of the workspace.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// Returns cargo's target directory.
fn target(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target.map_or_else(|| root.join("target"), |target| root.join(target))
}

/// Returns the path of the optimized program.
fn released_pronto(root: &Path) -> PathBuf {
    target(root).join("release/pronto")
}

/// Returns a command that runs cargo as a user would: without the environment variables that cargo
/// sets for the program of a package. Build scripts that watch these variables would run again, and
/// all dependent crates would be rebuilt.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let of_package = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if of_package {
            command.env_remove(name);
        }
    }
    command
}

/// Builds the optimized programs: `pronto` and `pronto-server`.
fn build_release(root: &Path) -> Result<(), String> {
    build_released(root, &[])
}

/// Builds the targets `targets` of the optimized package.
fn build_released(root: &Path, targets: &[&str]) -> Result<(), String> {
    let built = cargo()
        .args(["build", "--quiet", "--release", "--package", "pronto-cli"])
        .args(targets)
        .current_dir(root)
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    match built.success() {
        true => Ok(()),
        false => Err("pronto does not build".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let problems = tidy::run(&root());
        assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    }
}

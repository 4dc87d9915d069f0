//! Checks before a push: refuses calls and settings, or hands them to git.

use bstr::ByteSlice;
use pronto::config::{Config, ConfigEntry};
use pronto::{Repository, remote};

use super::Args;
use super::submodules::Recursion;
use crate::terminal::colors::{ADVICE, PUSH, RemoteWords};
use crate::{CliError, Context};

/// Hands calls of `push` to git if a setting is malformed, because git prints warnings about such
/// values, or if a setting requests something that pronto lacks.
pub(super) fn refuse_malformed_settings(repository: &Repository) -> Result<(), CliError> {
    let config = repository.config();
    for key in ["hook.jobs", "hook.pre-push.jobs"] {
        // Git warns about other values when it looks for the first hook.
        let is_number = |entry: &ConfigEntry<'_>| matches!(entry.i32(), Ok(-1 | 1..));
        if !config.entries(key).all(|entry| is_number(&entry)) {
            return Err(CliError::unsupported(format!("this value of '{key}'")));
        }
    }
    refuse_settings(repository)
}

/// Hands calls of `push` and `send-pack` to git if settings are malformed, or request something
/// that pronto lacks.
pub(in crate::commands) fn refuse_settings(repository: &Repository) -> Result<(), CliError> {
    let (config, environment) = (repository.config(), repository.environment());
    if RemoteWords::are_malformed(config, environment) {
        return Err(CliError::unsupported("a malformed color.* setting"));
    }
    remote::check_promisors(repository).map_err(CliError::of)
}

/// Hands a push to git if the search for submodules would need missing trees.
pub(super) fn refuse_submodules(
    repository: &Repository,
    recursion: Recursion,
) -> Result<(), CliError> {
    if recursion != Recursion::Off && repository.has_promisor().map_err(CliError::of)? {
        return Err(CliError::unsupported(
            "pushing submodules from a partial clone",
        ));
    }
    Ok(())
}

/// Checks the settings that end every push if they are malformed.
pub(super) fn check_settings(config: &Config, context: &Context) -> Result<(), CliError> {
    for entry in config.iter() {
        let key = entry.key.as_bytes();
        if key.starts_with(b"branch..") {
            return Err(entry.bad_variable().into());
        }
        if key == b"push.pushoption" {
            entry.string()?;
        }
        if key == b"push.default" {
            check_default(&entry)?;
        }
    }
    let environment = context.environment()?;
    ADVICE.read(config, &environment)?;
    PUSH.read(config, &environment)?;
    Ok(())
}

fn check_default(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    const KNOWN: [&[u8]; 6] = [
        b"nothing",
        b"matching",
        b"simple",
        b"upstream",
        b"tracking",
        b"current",
    ];
    let value = entry.string()?;
    if KNOWN.contains(&value.as_bytes()) {
        return Ok(());
    }
    Err(CliError::from(entry.bad_variable())
        .after(format!("malformed value for push.default: {value}"))
        .after("must be one of nothing, matching, simple, upstream or current"))
}

/// Refuses options that exclude each other.
pub(super) fn check_combinations(args: &Args) -> Result<(), CliError> {
    let given = [
        (args.delete, "'--delete'"),
        (args.tags, "'--tags'"),
        (args.all || args.branches, "'--all/--branches'"),
        (args.mirror, "'--mirror'"),
    ];
    let given: Vec<&str> = given
        .into_iter()
        .filter(|(is_given, _)| *is_given)
        .map(|(_, name)| name)
        .collect();
    let excluding = match given[..] {
        [] | [_] => None,
        [one, other] => Some(format!("{one} and {other}")),
        [ref others @ .., last] => Some(format!("{}, and {last}", others.join(", "))),
    };
    if let Some(excluding) = excluding {
        let message = format!("options {excluding} cannot be used together");
        return Err(CliError::fatal(message));
    }
    if args.delete && args.refspecs.is_empty() {
        let message = "--delete doesn't make sense without any refs";
        return Err(CliError::fatal(message));
    }
    Ok(())
}

/// Refuses refspecs beside `--all` and `--branches`.
pub(super) fn check_refspecs(args: &Args) -> Result<(), CliError> {
    if (args.all || args.branches) && !args.refspecs.is_empty() {
        return Err(CliError::fatal("--all can't be combined with refspecs"));
    }
    Ok(())
}

//! `worktree add`: create a linked worktree.

use pronto::switch::Oneline;
use std::ffi::OsString;
use std::io::Write;

use bstr::{BString, ByteSlice};
use pronto::config::Config;
use pronto::path;
use pronto::reset::{Outcome, Report};
use pronto::switch::{Tracking, UpstreamSetup};
use pronto::worktrees::{
    AddStep, AddWorktreeOptions, AddedWorktree, BlockSharing, Branching, Carry,
};
use pronto::{ErrorKind, PartialFailure, Repository, Watch};

use super::Args;
use crate::commands::shared::submodules;
use crate::commands::switching::{follows_nothing, print_failures, text};
use crate::terminal::text::sanitized_bytes;
use crate::{CliError, Context, ExitCode};

pub(super) fn run(
    args: &Args,
    place: &BString,
    commit: Option<&BString>,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let branching = branching(args, commit.is_some())?;
    let lock = match (args.lock, &args.reason) {
        (false, Some(_)) => {
            return Err(CliError::fatal("the option '--reason' requires '--lock'"));
        }
        (false, None) => None,
        (true, Some(reason)) => text(Some(reason)),
        (true, None) => Some("added with --lock".into()),
    };
    let tracking = tracking(args, context)?;
    let repository = context.repository()?;
    let configured = || repository.config().bool_or("worktree.guessremote", false);
    let guess_remote = args.guess_remote.map_or_else(configured, Ok)?;
    let mut options = AddWorktreeOptions::default();
    options.place = place.clone();
    options.commit = commit.cloned();
    options.branching = branching;
    options.tracking = tracking;
    options.guess_remote = guess_remote;
    options.force = args.force;
    options.no_checkout = args.no_checkout;
    options.lock = lock;
    options.quiet = args.quiet;
    options.carry = carry(args, repository.config())?;
    options.share_submodules = recurses(args, repository.config())?;
    let addition = pronto::worktrees::plan(&repository, options);
    context.report();
    let addition = addition.map_err(CliError::of)?;
    if !args.quiet {
        let what = match &addition.preparation {
            AddStep::NewBranch(name) => format!("new branch '{name}'"),
            AddStep::Reset(name, old) => format!("resetting branch '{name}'; was at {old}"),
            AddStep::Branch(name) => format!("checking out '{name}'"),
            AddStep::Detached(commit) => format!("detached HEAD {commit}"),
        };
        context.remark(&format!("Preparing worktree ({what})"));
    }
    let processes = processes_of(&addition.preparation);
    context.repeat_warnings(repository.config(), processes, true);
    let progress = context.progress(None, args.quiet);
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt).with_progress(&*progress);
    let outcome = pronto::worktrees::add(&repository, &addition, &watch);
    context.report();
    match outcome {
        Ok(added) => {
            let code = print(&added, args.quiet, context)?;
            match added.has_submodules {
                true => update_submodules(args, &repository, place, context)
                    .map(|failed| failed.unwrap_or(code)),
                false => Ok(code),
            }
        }
        Err(failure) => Err(failed(failure, args.quiet, context)?),
    }
}

/// Reports the work done before the failure of `worktree add`, and returns the error.
fn failed(
    failure: PartialFailure<AddedWorktree>,
    quiet: bool,
    context: &mut Context,
) -> Result<CliError, CliError> {
    let error = failure.error;
    Ok(match failure.report {
        // Git's exit code is -1.
        Some(added) if added.lacks_branch => CliError::from(error).with_code(ExitCode::new(255)),
        Some(added) => {
            tell_upstream(&added, quiet, context)?;
            match error.kind() {
                ErrorKind::Hook => CliError::fatal(error.to_string()),
                _ => CliError::error(error.to_string()),
            }
        }
        // The call can no longer be handed over to git.
        None if error.kind() == ErrorKind::Unsupported => CliError::fatal(error.to_string()),
        None => CliError::of(error),
    })
}

/// Returns the number of processes that Git starts to fill the worktree. Each of them reads the
/// settings.
fn processes_of(preparation: &AddStep) -> u8 {
    match preparation {
        AddStep::Detached(_) => 1,
        _ => 2,
    }
}

/// Returns the selection of ignored files to copy to the worktree, from the options and the
/// configuration.
fn carry(args: &Args, config: &Config) -> Result<Carry, CliError> {
    if !args.carry.is_empty() && (args.no_checkout || args.orphan) {
        let other = if args.orphan { "orphan" } else { "no-checkout" };
        let message = format!("options '--carry' and '--{other}' cannot be used together");
        return Err(CliError::fatal(message));
    }
    let mut patterns: Vec<BString> = Vec::new();
    if !args.no_checkout && !args.orphan {
        patterns.extend(config.strings("worktree.carry").map(ToOwned::to_owned));
    }
    patterns.extend(args.carry.iter().filter_map(|pattern| text(Some(pattern))));
    // An empty value clears the earlier values, as in other lists of git's configuration.
    if let Some(last) = patterns.iter().rposition(|pattern| pattern.is_empty()) {
        patterns.drain(..=last);
    }
    let key = "worktree.carryReflink";
    let (value, name) = match &args.carry_reflink {
        Some(value) => (Some(value.as_str().into()), "--carry-reflink"),
        None => (config.string(key)?, key),
    };
    let sharing = match value.map(|value| value.as_bytes()) {
        None | Some(b"auto") => BlockSharing::Auto,
        Some(b"always") => BlockSharing::Always,
        Some(b"never") => BlockSharing::Never,
        Some(other) => {
            let other = other.as_bstr();
            let message =
                format!("bad value '{other}' for '{name}': use 'auto', 'always' or 'never'");
            return Err(CliError::fatal(message));
        }
    };
    Ok(Carry { patterns, sharing })
}

/// Returns the upstream tracking that the options request (`--track`, `--no-track`).
fn tracking(args: &Args, context: &Context) -> Result<Option<Tracking>, CliError> {
    match args.track.as_deref() {
        Some("direct") => Ok(Some(Tracking::Direct)),
        Some(_) => Err(CliError::unsupported("this value of option '--track'")),
        None => Ok(follows_nothing(context).then_some(Tracking::Never)),
    }
}

/// Checks out the submodules of the new worktree at `place`. Returns the exit code of git if that
/// failed.
fn update_submodules(
    args: &Args,
    repository: &Repository,
    place: &BString,
    context: &mut Context,
) -> Result<Option<ExitCode>, CliError> {
    context.out.flush()?;
    // git may start processes that prune objects.
    repository.objects()?.finish_writing();
    let place = repository.environment().absolute(path::borrow(place));
    let quiet: Option<OsString> = args.quiet.then(|| "--quiet".into());
    let made = "the worktree was created, but its submodules were not checked out";
    submodules::update(&place, quiet.as_slice(), made, context)
}

/// Returns whether submodules are checked out: never with `--no-checkout`.
fn recurses(args: &Args, config: &Config) -> Result<bool, CliError> {
    let has_files = !args.no_checkout && !args.orphan;
    match args.recurse_submodules {
        Some(true) if !has_files => {
            let other = if args.orphan { "orphan" } else { "no-checkout" };
            let message =
                format!("options '--recurse-submodules' and '--{other}' cannot be used together");
            Err(CliError::fatal(message))
        }
        Some(recurses) => Ok(recurses),
        None => Ok(has_files && config.bool_or("worktree.recursesubmodules", false)?),
    }
}

fn branching(args: &Args, has_commit: bool) -> Result<Branching, CliError> {
    let together = |message: &str| {
        let message = format!("{message} cannot be used together");
        Err(CliError::fatal(message))
    };
    let (create, force) = (text(args.create.as_ref()), text(args.force_create.as_ref()));
    if u8::from(args.detach) + u8::from(create.is_some()) + u8::from(force.is_some()) > 1 {
        return together("options '-b', '-B', and '--detach'");
    }
    if args.orphan {
        if args.detach {
            return together("options '--orphan' and '--detach'");
        }
        if args.track.is_some() {
            return together("options '--orphan' and '--track'");
        }
        if args.no_checkout {
            return together("options '--orphan' and '--no-checkout'");
        }
        if has_commit {
            return together("option '--orphan' and commit-ish");
        }
        return Ok(Branching::Orphan(create.or(force)));
    }
    Ok(match (args.detach, create, force) {
        (true, ..) => Branching::Detach,
        (_, Some(name), _) => Branching::New(name),
        (_, _, Some(name)) => Branching::Force(name),
        _ => Branching::Guess,
    })
}

fn tell_upstream(
    added: &AddedWorktree,
    quiet: bool,
    context: &mut Context,
) -> Result<(), CliError> {
    match &added.set_up {
        Some(own @ UpstreamSetup::OwnUpstream { .. }) => context.warn(&own.to_string()),
        Some(upstream) if !quiet => writeln!(context.out, "{upstream}")?,
        _ => {}
    }
    Ok(())
}

fn print(added: &AddedWorktree, quiet: bool, context: &mut Context) -> Result<ExitCode, CliError> {
    tell_upstream(added, quiet, context)?;
    let name = "HEAD";
    let not_reset = || CliError::fatal(format!("Could not reset index file to revision '{name}'."));
    match &added.reset {
        None => {}
        Some(Outcome::Refused(refusals)) => {
            if let Some(refusal) = refusals.first() {
                context.report_error(&refusal.to_string());
            }
            return Err(not_reset());
        }
        Some(Outcome::Done(report)) => {
            if print_failures(context, &report.warnings, &report.failed) {
                return Err(not_reset());
            }
            if !quiet {
                print_head(report, context)?;
            }
        }
        Some(other) => return Err(CliError::unknown_outcome(other)),
    }
    let code = added.hook.unwrap_or(0);
    Ok(ExitCode::new(u8::try_from(code & 0xff).unwrap_or(u8::MAX)))
}

fn print_head(report: &Report, context: &mut Context) -> Result<(), CliError> {
    if let Some(Oneline { id, title }) = &report.head {
        let line: BString = match title.is_empty() {
            true => format!("HEAD is now at {id}\n").into(),
            false => [
                b"HEAD is now at ",
                id.as_slice(),
                b" ",
                &sanitized_bytes(title),
                b"\n",
            ]
            .concat()
            .into(),
        };
        context.out.write_all(&line)?;
    }
    Ok(())
}

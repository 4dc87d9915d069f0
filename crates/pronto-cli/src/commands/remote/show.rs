//! `remote show NAME`.

use std::io::Write;

use bstr::{BString, ByteSlice};
use pronto::Watch;
use pronto::configured_remotes::{
    self, BranchState, ConfiguredBranch, ConfiguredPush, PullRebase, PushState, RemoteState,
};
use pronto::remote::Remote;

use super::{Args, update};
use crate::{CliError, Context, ExitCode};

pub(super) fn run(
    args: &Args,
    names: &[BString],
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let asks = !args.dry_run;
    let mut found = Vec::new();
    for name in names {
        let remote = Remote::find(&repository, name.as_bstr()).map_err(CliError::of)?;
        if asks {
            update::check_connection(&repository, &remote)?;
        }
        found.push(remote);
    }
    let progress = context.progress(Some(false), false);
    for remote in found {
        let watch = Watch::from(&context.interrupt).with_progress(&*progress);
        let state = configured_remotes::state(&repository, &remote, asks, &watch)?;
        context.report();
        show_urls(&remote, &state, context)?;
        show_branches(&remote, &state, context)?;
        show_pulls(&state, context)?;
        if remote.is_mirror {
            writeln!(context.out, "  Local refs will be mirrored by 'git push'")?;
        }
        show_pushes(&state, context)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_urls(remote: &Remote, state: &RemoteState, context: &mut Context) -> Result<(), CliError> {
    let out = &mut context.out;
    writeln!(out, "* remote {}", remote.name)?;
    writeln!(out, "  Fetch URL: {}", remote.url()?)?;
    for url in &state.push_urls {
        writeln!(out, "  Push  URL: {url}")?;
    }
    if state.push_urls.is_empty() {
        writeln!(out, "  Push  URL: (no URL)")?;
    }
    match state.heads.as_deref() {
        None => writeln!(out, "  HEAD branch: (not queried)")?,
        Some([]) => writeln!(out, "  HEAD branch: (unknown)")?,
        Some([head]) => writeln!(out, "  HEAD branch: {head}")?,
        Some(several) => {
            writeln!(
                out,
                "  HEAD branch (remote HEAD is ambiguous, may be one of the following):"
            )?;
            for head in several {
                writeln!(out, "    {head}")?;
            }
        }
    }
    Ok(())
}

/// Returns the suffix of headings for remotes that were not queried (`remote show -n`).
fn not_queried(state: &RemoteState) -> &'static str {
    match state.heads {
        None => " (status not queried)",
        Some(_) => "",
    }
}

fn show_branches(
    remote: &Remote,
    state: &RemoteState,
    context: &mut Context,
) -> Result<(), CliError> {
    let out = &mut context.out;
    let note = not_queried(state);
    match state.branches.len() {
        0 => {}
        1 => writeln!(out, "  Remote branch:{note}")?,
        _ => writeln!(out, "  Remote branches:{note}")?,
    }
    let names = state.branches.iter().map(|branch| branch.name.len());
    let width = names.max().unwrap_or(0);
    for branch in &state.branches {
        out.write_all(b"    ")?;
        out.write_all(&branch.name)?;
        if branch.standing.is_some() {
            pad(out, branch.name.len(), width)?;
        }
        match branch.standing {
            None => {}
            Some(BranchState::New) => write!(
                out,
                " new (next fetch will store in remotes/{})",
                remote.name
            )?,
            Some(BranchState::Tracked) => write!(out, " tracked")?,
            Some(BranchState::Skipped) => write!(out, " skipped")?,
            Some(BranchState::Stale) => write!(out, " stale (use 'git remote prune' to remove)")?,
            Some(other) => return Err(CliError::unknown_outcome(&other)),
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes blanks after a text of `length` bytes.
fn pad(out: &mut impl Write, length: usize, width: usize) -> std::io::Result<()> {
    write!(out, "{:1$}", "", width.saturating_sub(length))
}

fn show_pulls(state: &RemoteState, context: &mut Context) -> Result<(), CliError> {
    match state.pulls.len() {
        0 => return Ok(()),
        1 => writeln!(context.out, "  Local branch configured for 'git pull':")?,
        _ => writeln!(context.out, "  Local branches configured for 'git pull':")?,
    }
    let names = state.pulls.iter().map(|branch| branch.name.len());
    let width = names.max().unwrap_or(0);
    let any_rebases = state
        .pulls
        .iter()
        .any(|branch| branch.rebase != PullRebase::No);
    for branch in &state.pulls {
        if branch.rebase != PullRebase::No && branch.merges.len() > 1 {
            context.report_error(&format!(
                "invalid branch.{}.merge; cannot rebase onto > 1 branch",
                branch.name
            ));
            continue;
        }
        write!(context.out, "    {}", branch.name)?;
        pad(&mut context.out, branch.name.len(), width)?;
        show_pull(branch, width, any_rebases, context)?;
    }
    Ok(())
}

fn show_pull(
    branch: &ConfiguredBranch,
    mut width: usize,
    any_rebases: bool,
    context: &mut Context,
) -> Result<(), CliError> {
    let out = &mut context.out;
    let first = branch.merges.first().cloned().unwrap_or_default();
    width += 4;
    match branch.rebase {
        PullRebase::Yes => writeln!(out, " rebases onto remote {first}")?,
        PullRebase::Interactive => writeln!(out, " rebases interactively onto remote {first}")?,
        PullRebase::Merges => {
            writeln!(
                out,
                " rebases interactively (with merges) onto remote {first}"
            )?;
        }
        _ if any_rebases => {
            writeln!(out, "  merges with remote {first}")?;
            width += 1;
        }
        _ => writeln!(out, " merges with remote {first}")?,
    }
    for merge in branch.merges.iter().skip(1) {
        writeln!(out, "{:width$}    and with remote {merge}", "")?;
    }
    Ok(())
}

fn show_pushes(state: &RemoteState, context: &mut Context) -> Result<(), CliError> {
    let out = &mut context.out;
    let note = not_queried(state);
    match state.pushes.len() {
        0 => {}
        1 => writeln!(out, "  Local ref configured for 'git push'{note}:")?,
        _ => writeln!(out, "  Local refs configured for 'git push'{note}:")?,
    }
    let longest = |length: fn(&ConfiguredPush) -> usize| state.pushes.iter().map(length).max();
    let source_width = longest(|push| push.source.len()).unwrap_or(0);
    let width = longest(|push| push.destination.len()).unwrap_or(0);
    for push in &state.pushes {
        let status = match push.state {
            None => None,
            Some(PushState::Create) => Some("create"),
            Some(PushState::Delete) => Some("delete"),
            Some(PushState::UpToDate) => Some("up to date"),
            Some(PushState::FastForward) => Some("fast-forwardable"),
            Some(PushState::OutOfDate) => Some("local out of date"),
            Some(other) => return Err(CliError::unknown_outcome(&other)),
        };
        let source = match push.state {
            Some(PushState::Delete) => "(none)".into(),
            _ => push.source.as_bstr(),
        };
        let verb = if push.forced { "forces" } else { "pushes" };
        write!(out, "    {source}")?;
        pad(out, source.len(), source_width)?;
        write!(out, " {verb} to {}", push.destination)?;
        if let Some(status) = status {
            pad(out, push.destination.len(), width)?;
            write!(out, " ({status})")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

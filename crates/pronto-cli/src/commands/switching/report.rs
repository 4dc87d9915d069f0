//! Reports the result of a switch.

use pronto::switch::{LocalChange, Oneline};
use std::io::Write;

use bstr::{BStr, ByteSlice};
use pronto::Repository;
use pronto::switch::{BranchChange, LeftBehind, NewHead, Options, Report, UpstreamSetup};

use super::{SwitchOptions, advises, print_failures, quoted, upstream};
use crate::commands::shared::checkout_failures::code_of_failures;
use crate::{CliError, Context, ExitCode};

/// Reports a completed switch of `HEAD`.
pub(super) fn print(
    repository: &Repository,
    context: &mut Context,
    common: &SwitchOptions,
    options: &Options,
    report: &Report,
) -> Result<ExitCode, CliError> {
    print_moved_files(repository, context, common, report)?;
    let code = code_of_failures(&report.failed);
    if code == ExitCode::FATAL {
        return Ok(code);
    }
    if !common.quiet {
        print_new_head(repository, context, report, options.detach)?;
        for what in &report.cancelled {
            context.warn(&format!("cancelling a {what} in progress"));
        }
        let follows = match &report.new_head {
            NewHead::Branch(..) => true,
            NewHead::Stayed | NewHead::NotRenamed => !options.detach,
            NewHead::Detached(_) => false,
        };
        if follows {
            upstream::print(repository, context, report.upstream.as_ref())?;
        }
    }
    let refused = report.hook.is_some_and(|code| code != 0);
    Ok(match refused {
        true => ExitCode::FAILURE,
        false => code,
    })
}

/// Reports failed files, local changes, commits that are left behind, and the new upstream, before
/// the message about `HEAD`.
pub(super) fn print_moved_files(
    repository: &Repository,
    context: &mut Context,
    common: &SwitchOptions,
    report: &Report,
) -> Result<(), CliError> {
    print_failures(context, &report.warnings, &report.failed);
    if common.quiet {
        return Ok(());
    }
    for LocalChange { kind, path, .. } in &report.local_changes {
        let path = quoted(repository, path.as_bstr())?;
        writeln!(context.out, "{}\t{path}", char::from(kind.letter()))?;
    }
    if let Some(left) = &report.left_behind {
        print_left_behind(repository, context, left)?;
    }
    match &report.set_up {
        Some(own @ UpstreamSetup::OwnUpstream { .. }) => context.warn(&own.to_string()),
        Some(upstream) => writeln!(context.out, "{upstream}")?,
        None => {}
    }
    Ok(())
}

fn print_left_behind(
    repository: &Repository,
    context: &mut Context,
    left: &LeftBehind,
) -> Result<(), CliError> {
    match left {
        LeftBehind::Connected(Oneline { id, title }) => {
            context.remark(&format!("Previous HEAD position was {id} {title}"));
        }
        LeftBehind::Lost {
            count,
            shown,
            newest,
        } => {
            let commits = if *count == 1 { "commit" } else { "commits" };
            let mut list: String = shown
                .iter()
                .map(|Oneline { id, title }| format!("  {id} {title}\n"))
                .collect();
            if *count > shown.len() {
                list.push_str(&format!(" ... and {} more.\n", count - shown.len()));
            }
            context.remark(&format!(
                "Warning: you are leaving {count} {commits} behind, not connected to\n\
                 any of your branches:\n\n{list}"
            ));
            if advises(repository, "detachedHead")? {
                let them = if *count == 1 { "it" } else { "them" };
                context.remark(&format!(
                    "If you want to keep {them} by creating a new branch, this may be a good time\n\
                     to do so with:\n\n git branch <new-branch-name> {newest}\n"
                ));
            }
        }
    }
    Ok(())
}

fn print_new_head(
    repository: &Repository,
    context: &mut Context,
    report: &Report,
    detach: bool,
) -> Result<(), CliError> {
    match &report.new_head {
        NewHead::Stayed | NewHead::NotRenamed => {}
        NewHead::Detached(name) => {
            if report.left_branch && !detach && advises(repository, "detachedHead")? {
                context.remark(&detached_advice(name.as_bstr()));
            }
            if let Some(Oneline { id, title }) = &report.commit {
                context.remark(&format!("HEAD is now at {id} {title}"));
            }
        }
        NewHead::Branch(name, manner) => context.remark(&match manner {
            BranchChange::Already => format!("Already on '{name}'"),
            BranchChange::Reset => format!("Reset branch '{name}'"),
            BranchChange::Switched => format!("Switched to branch '{name}'"),
            BranchChange::New => format!("Switched to a new branch '{name}'"),
            BranchChange::ExistingReset => format!("Switched to and reset branch '{name}'"),
        }),
    }
    Ok(())
}

fn detached_advice(name: &BStr) -> String {
    format!(
        "Note: switching to '{name}'.\n\n\
         You are in 'detached HEAD' state. You can look around, make experimental\n\
         changes and commit them, and you can discard any commits you make in this\n\
         state without impacting any branches by switching back to a branch.\n\n\
         If you want to create a new branch to retain commits you create, you may\n\
         do so (now or later) by using -c with the switch command. Example:\n\n  \
         git switch -c <new-branch-name>\n\n\
         Or undo this operation with:\n\n  git switch -\n\n\
         Turn off this advice by setting config variable advice.detachedHead to false\n"
    )
}

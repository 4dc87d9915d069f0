//! Pushes to a group of remotes (`remotes.GROUP`) with one process for each remote, as Git does.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use bstr::{BStr, BString, ByteSlice};
use pronto::config::Config;
use pronto::push::Signed;

use super::Args;
use crate::maintenance::own_program;
use crate::{CliError, Context, ExitCode};

/// Returns the members of the group `name`; empty if `name` is not a group.
pub(super) fn members(config: &Config, name: &BStr) -> Vec<BString> {
    let lists = config.strings([b"remotes.", name.as_bytes()].concat());
    lists
        .flat_map(|list| list.split(|byte| b" \t\n\r".contains(byte)))
        .filter(|member| !member.is_empty())
        .map(BString::from)
        .collect()
}

/// Pushes to each of `members`, and continues after a failure.
pub(super) fn push(
    args: &Args,
    members: &[BString],
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    if args.atomic {
        let message = "--atomic can only be used when pushing to one remote";
        return Err(CliError::fatal(message));
    }
    let mut code = ExitCode::SUCCESS;
    for member in members {
        if !args.quiet {
            writeln!(context.out, "Pushing to {member}")?;
        }
        if !push_to(args, member.as_bstr(), context)? {
            context.report_error(&format!("could not push to {member}"));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Pushes to one member. Returns whether it succeeded.
fn push_to(args: &Args, member: &BStr, context: &mut Context) -> Result<bool, CliError> {
    let mut command = own_program(context)?;
    command
        .arg("push")
        .args(options(args)?)
        .arg("--")
        .arg(OsStr::from_bytes(member))
        .args(&args.refspecs)
        .stdin(Stdio::null());
    context.out.flush()?;
    let traced = pronto_io::child::started_as("?", context.program(), &command);
    let cannot = |error: std::io::Error| {
        let reason = pronto_io::error::reason(&error);
        CliError::fatal(format!("cannot push to '{member}': {reason}"))
    };
    let mut child = command.spawn().map_err(cannot)?;
    let status = child.wait().map_err(cannot)?;
    traced.ended(child.id(), status);
    Ok(status.success())
}

/// Returns the options for the push to a member. As in Git, options that turn off a setting are not
/// passed on, and neither is `--force-with-lease` without a ref.
fn options(args: &Args) -> Result<Vec<OsString>, CliError> {
    let mut options: Vec<OsString> = Vec::new();
    match args.quiet {
        true => options.push("--quiet".into()),
        false => options.extend((0..args.verbose).map(|_| OsString::from("--verbose"))),
    }
    let flags = [
        (args.all || args.branches, "--all"),
        (args.mirror, "--mirror"),
        (args.delete, "--delete"),
        (args.tags, "--tags"),
        (args.dry_run, "--dry-run"),
        (args.porcelain, "--porcelain"),
        (args.force, "--force"),
        (args.force_if_includes == Some(true), "--force-if-includes"),
        (args.thin == Some(false), "--no-thin"),
        (args.set_upstream, "--set-upstream"),
        (args.progress == Some(true), "--progress"),
        (args.progress == Some(false), "--no-progress"),
        (args.prune, "--prune"),
        (args.no_verify, "--no-verify"),
        (args.follow_tags == Some(true), "--follow-tags"),
        (args.ipv4, "--ipv4"),
        (args.ipv6, "--ipv6"),
    ];
    let given = flags.into_iter().filter(|(is_given, _)| *is_given);
    options.extend(given.map(|(_, flag)| OsString::from(flag)));
    let leases = args.force_with_lease.iter().filter(|it| !it.is_empty());
    options.extend(leases.map(|lease| value("--force-with-lease=", lease)));
    let recursion = args.recurse_submodules.iter();
    options.extend(recursion.map(|it| value("--recurse-submodules=", it.as_ref())));
    let program = args.receive_pack.as_ref().or(args.exec.as_ref());
    options.extend(program.map(|program| value("--receive-pack=", program)));
    match args.signed.as_deref() {
        Some(signed) if super::signed::given(signed)? != Signed::Never => {
            options.push(value("--signed=", signed.as_ref()));
        }
        _ => {}
    }
    let push_options = args.push_option.iter();
    options.extend(push_options.map(|option| value("--push-option=", option)));
    Ok(options)
}

fn value(option: &str, value: &OsStr) -> OsString {
    let mut argument = OsString::from(option);
    argument.push(value);
    argument
}

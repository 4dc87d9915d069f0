//! `remote add`.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};
use pronto::configured_remotes::{self, AddRemoteOptions, Mirror};
use pronto::refs::RefName;
use pronto::remote::Tags;

use super::{Args, EXISTS, update};
use crate::{CliError, Context, ExitCode};

pub(super) fn run(
    args: &Args,
    name: &BString,
    url: &BString,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let mut options = AddRemoteOptions::new(name.clone(), url.clone());
    options.mirror = mirror(args, context)?;
    if options.mirror.is_some() && args.master.is_some() {
        let message = "specifying a master branch makes no sense with --mirror";
        return Err(CliError::fatal(message));
    }
    let branches = args.track.iter();
    options.branches = branches.map(|branch| branch.as_bytes().into()).collect();
    if options.mirror == Some(Mirror::Push) && !options.branches.is_empty() {
        let message = "specifying branches to track makes sense only with fetch mirrors";
        return Err(CliError::fatal(message));
    }
    options.tags = args.tags.map(|all| match all {
        true => Tags::All,
        false => Tags::None,
    });
    if configured_remotes::find(&repository, name.as_bstr())
        .map_err(CliError::of)?
        .is_some()
    {
        context.report();
        let message = format!("remote {name} already exists.");
        return Err(CliError::error(message).with_code(EXISTS));
    }
    configured_remotes::add(&repository, &options)?;
    if args.fetch && !fetch(name, context)? {
        return Ok(ExitCode::FAILURE);
    }
    let Some(branch) = &args.master else {
        return Ok(ExitCode::SUCCESS);
    };
    let branch = branch.as_bytes().as_bstr();
    let head = format!("refs/remotes/{name}/HEAD");
    let set = RefName::new(format!("refs/remotes/{name}/{branch}")).is_ok_and(|target| {
        let mut transaction = repository.transaction();
        transaction.set_symbolic(&head, target, Some("remote add".into()));
        transaction.commit().is_ok()
    });
    match set {
        true => Ok(ExitCode::SUCCESS),
        false => Err(CliError::error(format!(
            "Could not setup master '{branch}'"
        ))),
    }
}

fn mirror(args: &Args, context: &mut Context) -> Result<Option<Mirror>, CliError> {
    let Some(how) = &args.mirror else {
        return Ok(None);
    };
    // clap gives this value to an option without one.
    let has_value = |argument: &std::ffi::OsString| argument == "--mirror=both";
    match how.as_bytes() {
        b"fetch" => Ok(Some(Mirror::Fetch)),
        b"push" => Ok(Some(Mirror::Push)),
        b"both" if !context.arguments.iter().any(has_value) => {
            context.warn(
                "--mirror is dangerous and deprecated; please\n\
                 \t use --mirror=fetch or --mirror=push instead",
            );
            Ok(Some(Mirror::Both))
        }
        other => {
            let message = format!("unknown --mirror argument: {}", other.as_bstr());
            Err(CliError::usage(message))
        }
    }
}

/// Fetches from the new remote (`remote add -f`). Reports a failure, and returns whether the fetch
/// succeeded.
fn fetch(name: &BString, context: &mut Context) -> Result<bool, CliError> {
    writeln!(context.out, "Updating {name}")?;
    let arguments = ["fetch".into(), update::word(name)];
    let is_done = update::run_own(&arguments, context)?;
    if !is_done {
        context.report_error(&format!("Could not fetch {name}"));
    }
    Ok(is_done)
}

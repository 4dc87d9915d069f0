//! `commit`: record the staged changes.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};
use pronto::Watch;
use pronto::commit::{Options, Outcome};
use pronto::refs::HeadValue;
use pronto_object::message::{Cleanup, joined};

use crate::{CliError, Context, ExitCode};

/// Arguments of `commit`. All other options, and commits that need a summary or an editor, are
/// handed to git.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print no summary (required: a commit with a summary is made by git)
    #[arg(long, short)]
    quiet: bool,
    /// The commit message; each further one is a paragraph
    #[arg(long, short, value_name = "MESSAGE")]
    message: Vec<OsString>,
    /// Read the commit message from this file
    #[arg(long, short = 'F', value_name = "FILE", conflicts_with = "message")]
    file: Option<OsString>,
    /// Skip the hooks pre-commit and commit-msg
    #[arg(long, short = 'n')]
    no_verify: bool,
    /// Allow a commit without changes
    #[arg(long)]
    allow_empty: bool,
    /// Allow an empty message
    #[arg(long)]
    allow_empty_message: bool,
    /// Cleanup of the message: verbatim, whitespace, strip or default
    #[arg(long, value_name = "MODE")]
    cleanup: Option<String>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if !args.quiet {
        return Err(CliError::unsupported("commit without -q"));
    }
    let cleanup = args.cleanup.as_deref().map(|name| {
        Cleanup::named(name.as_bytes().as_bstr())
            .ok_or_else(|| CliError::unsupported("this value of '--cleanup'"))
    });
    let repository = context.repository()?;
    context.repeat_warnings(repository.config(), 1, false);
    let mut options = Options::default();
    options.message = message(args, &repository)?;
    if options.message.contains(&0) {
        return Err(CliError::unsupported("messages that contain NUL"));
    }
    options.cleanup = cleanup.transpose()?;
    options.allow_empty = args.allow_empty;
    options.allow_empty_message = args.allow_empty_message;
    options.no_verify = args.no_verify;
    let interrupt = context.interrupt.clone();
    let outcome =
        pronto::commit::commit(&repository, &options, &Watch::from(&interrupt)).map_err(failure)?;
    match outcome {
        Outcome::Done(_) => {
            crate::maintenance::maintain(&repository, args.quiet, context)?;
            Ok(ExitCode::SUCCESS)
        }
        Outcome::EmptyMessage => {
            context.remark("Aborting commit due to empty commit message.");
            Ok(ExitCode::FAILURE)
        }
        Outcome::NothingToCommit => nothing_to_commit(&repository, context),
        other => Err(CliError::unknown_outcome(&other)),
    }
}

/// Prints the status of the worktree, as git does if there is nothing to commit, even with `--quiet`.
fn nothing_to_commit(
    repository: &pronto::Repository,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let is_first = matches!(repository.head()?, HeadValue::Unborn { .. });
    // git prints another text before the first commit, and adds differences.
    if is_first || repository.config().contains("commit.verbose") {
        return Err(CliError::unsupported("this commit with nothing to commit"));
    }
    super::status::show_long(context)?;
    Ok(ExitCode::FAILURE)
}

/// Converts an error of the commit. git prints the advice about an identity that is not configured and
/// about unmerged files, because nothing has changed yet.
fn failure(error: pronto::Error) -> CliError {
    match error.kind() {
        pronto::ErrorKind::Identity | pronto::ErrorKind::Refused => CliError::lacking(error),
        _ => CliError::of(error),
    }
}

fn message(args: &Args, repository: &pronto::Repository) -> Result<BString, CliError> {
    match &args.file {
        // Standard input can be read only once, and git may need it.
        Some(file) if file == "-" => Err(CliError::unsupported("'commit -F -'")),
        Some(file) => {
            let path = repository.environment().current_dir().join(file);
            let read = std::fs::read(path).map(BString::from);
            read.map_err(|_| CliError::unsupported("'commit -F' with an unreadable file"))
        }
        None if args.message.is_empty() => Err(CliError::unsupported("commit without -m or -F")),
        None => Ok(joined(
            args.message.iter().map(|text| text.as_bytes().as_bstr()),
        )),
    }
}

//! `reset`: set the current branch, the index and the worktree to another commit.

use pronto::switch::Oneline;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use pronto::reset::{Mode, Options, Outcome, Report};
use pronto::revision::ExpectedType;
use pronto::{ErrorKind, Repository, Watch};

use crate::commands::pathspecs::{self, PathspecSource};
use crate::commands::shared::checkout_failures::code_of_failures;
use crate::commands::{checkout, switching};
use crate::paths::pathspec_error;
use crate::terminal::text::sanitized_bytes;
use crate::{CliError, Context, ExitCode};

/// Arguments of `reset`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
    /// Do not refresh the index afterwards
    #[arg(long)]
    no_refresh: bool,
    /// Reset HEAD and the index (the default)
    #[arg(long, overrides_with_all = ["soft", "hard", "merge", "keep"])]
    mixed: bool,
    /// Reset only HEAD
    #[arg(long, overrides_with_all = ["mixed", "hard", "merge", "keep"])]
    soft: bool,
    /// Reset HEAD, the index and the worktree
    #[arg(long, overrides_with_all = ["mixed", "soft", "merge", "keep"])]
    hard: bool,
    /// Reset HEAD, the index and the worktree, but keep unstaged changes
    #[arg(long, overrides_with_all = ["mixed", "soft", "hard", "keep"])]
    merge: bool,
    /// Reset HEAD, but keep local changes
    #[arg(long, overrides_with_all = ["mixed", "soft", "hard", "merge"])]
    keep: bool,
    /// Update submodules, too (handed to git)
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, default_missing_value = "yes")]
    recurse_submodules: Option<String>,
    /// Choose changes interactively (handed to git)
    #[arg(short, long)]
    patch: bool,
    /// Record removed paths with an intent to add them later
    #[arg(short = 'N', long)]
    intent_to_add: bool,
    /// Read paths from this file
    #[arg(long, value_name = "FILE")]
    pathspec_from_file: Option<OsString>,
    /// Paths in that file are separated by NUL
    #[arg(long)]
    pathspec_file_nul: bool,
    /// A commit, and paths
    #[arg(value_name = "COMMIT-OR-PATH")]
    plain: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.patch {
        return Err(CliError::unsupported("option '--patch' of 'reset'"));
    }
    let repository = context.repository()?;
    switching::check_submodules(&repository, args.recurse_submodules.as_deref())?;
    let (mut name, paths) = split(&repository, context, &args.plain)?;
    if name == "@" {
        name = "HEAD".into();
    }
    let specs = pathspecs::read(&PathspecSource {
        given: paths,
        file: args.pathspec_from_file.as_deref(),
        ends_with_nul: args.pathspec_file_nul,
    })?;
    let to = pronto::reset::target(&repository, name.as_bstr(), !specs.is_empty());
    context.report();
    let mut options = Options::new(to?);
    options.mode = mode(args, &repository, context, !specs.is_empty())?;
    options.pathspec = repository
        .pathspec(specs.iter().map(|spec| spec.as_bstr()))
        .map_err(pathspec_error)?;
    options.intent_to_add = args.intent_to_add;
    options.no_refresh = args.no_refresh;
    let progress = context.progress(None, args.quiet);
    let interrupt = context.interrupt.clone();
    match pronto::reset::reset(
        &repository,
        &options,
        &Watch::from(&interrupt).with_progress(&*progress),
    ) {
        Ok(Outcome::Done(report)) => print(context, &options, &report, args.quiet),
        Ok(Outcome::Refused(refusals)) => {
            if let Some(refusal) = refusals.first() {
                context.report_error(&refusal.to_string());
            }
            Err(not_reset(&options))
        }
        Ok(Outcome::NoHead) => {
            context.report_error("You do not have a valid HEAD.");
            Err(not_reset(&options))
        }
        Ok(other) => Err(CliError::unknown_outcome(&other)),
        Err(failure) => {
            let (error, report) = (failure.error, failure.report);
            if let Some(report) = &report {
                print(context, &options, report, args.quiet)?;
            }
            Err(match (error.kind(), report) {
                (ErrorKind::Hostile, None) => {
                    context.report_error(&error.to_string());
                    not_reset(&options)
                }
                (_, None) => CliError::of(error),
                (kind, _) if kind.ends_command() => CliError::of(error),
                _ => CliError::of(error).into_error(),
            })
        }
    }
}

fn not_reset(options: &Options) -> CliError {
    let name = &options.to.name;
    CliError::fatal(format!("Could not reset index file to revision '{name}'."))
}

/// Splits the arguments into a commit and paths. An ambiguous argument needs `--`.
fn split<'a>(
    repository: &Repository,
    context: &Context,
    plain: &'a [OsString],
) -> Result<(BString, &'a [OsString]), CliError> {
    let head = || BString::from("HEAD");
    let spelled = |name: &OsString| BString::from(name.as_bytes());
    match (context.separator, plain) {
        (Some(0), paths) => return Ok((head(), paths)),
        (None, []) => return Ok((head(), &[])),
        (Some(1), [name, paths @ ..]) => return Ok((spelled(name), paths)),
        (Some(_), _) => {
            let what = "'reset' with several arguments before '--'";
            return Err(CliError::unsupported(what));
        }
        (None, _) => {}
    }
    let (name, paths) = (&plain[0], &plain[1..]);
    let want = match paths {
        [] => ExpectedType::Committish,
        _ => ExpectedType::Treeish,
    };
    let spec: &BStr = name.as_bytes().as_bstr();
    if repository.try_resolve(spec, want)?.is_some() {
        if repository.work_tree().is_some() {
            checkout::refuse_ambiguous(repository, name)?;
        }
        return Ok((spelled(name), paths));
    }
    repository.verify_file_name(spec, true)?;
    Ok((head(), plain))
}

/// Returns the mode of the reset (`--soft`, `--mixed`, `--hard`, `--merge`, `--keep`), if the
/// options can be combined.
fn mode(
    args: &Args,
    repository: &Repository,
    context: &mut Context,
    has_paths: bool,
) -> Result<Mode, CliError> {
    let given = [
        (args.mixed, Mode::Mixed),
        (args.soft, Mode::Soft),
        (args.hard, Mode::Hard),
        (args.merge, Mode::Merge),
        (args.keep, Mode::Keep),
    ];
    let given = given
        .iter()
        .find(|(given, _)| *given)
        .map(|(_, mode)| *mode);
    match given {
        Some(Mode::Mixed) if has_paths => {
            context.warn("--mixed with paths is deprecated; use 'git reset -- <paths>' instead.")
        }
        Some(mode) if has_paths => {
            let message = format!("Cannot do {} reset with paths.", mode.name());
            return Err(CliError::fatal(message));
        }
        _ => {}
    }
    let mode = given.unwrap_or_default();
    if mode == Mode::Mixed && repository.is_bare() {
        let message = "mixed reset is not allowed in a bare repository";
        return Err(CliError::fatal(message));
    }
    if mode == Mode::Mixed && repository.work_tree().is_none() {
        return Err(CliError::unsupported("'reset --mixed' without a worktree"));
    }
    if mode != Mode::Soft {
        repository.require_work_tree()?;
    }
    if args.intent_to_add && mode != Mode::Mixed {
        return Err(CliError::fatal("the option '-N' requires '--mixed'"));
    }
    Ok(mode)
}

fn print(
    context: &mut Context,
    options: &Options,
    report: &Report,
    quiet: bool,
) -> Result<ExitCode, CliError> {
    switching::print_failures(context, &report.warnings, &report.failed);
    match code_of_failures(&report.failed) {
        ExitCode::SUCCESS => {}
        ExitCode::FATAL => return Ok(ExitCode::FATAL),
        _ => return Err(not_reset(options)),
    }
    if quiet {
        return Ok(ExitCode::SUCCESS);
    }
    if !report.unstaged.is_empty() {
        writeln!(context.out, "Unstaged changes after reset:")?;
    }
    for outdated in &report.unstaged {
        write!(context.out, "{}\t", char::from(outdated.kind.letter()))?;
        context.out.write_all(&sanitized_bytes(&outdated.path))?;
        writeln!(context.out)?;
    }
    if let Some(Oneline { id, title }) = &report.head {
        write!(context.out, "HEAD is now at {id}")?;
        if !title.is_empty() {
            context.out.write_all(b" ")?;
            context.out.write_all(&sanitized_bytes(title))?;
        }
        writeln!(context.out)?;
    }
    Ok(ExitCode::SUCCESS)
}

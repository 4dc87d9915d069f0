//! `add`: stage the content of files.

use pronto::status::ChangeKind;
use std::ffi::OsString;
use std::io::Write;

use bstr::{BString, ByteSlice};
use pronto::add::{AddSelection, Event, Options, Report};
use pronto::gitmodules::{self, Gitmodules};
use pronto::status::Pathspec;
use pronto::{PartialFailure, Repository, Watch};

use crate::commands::pathspecs::{self, PathspecSource};
use crate::commands::shared::staging_failures::{report_conversion, report_failure};
use crate::terminal::text::sanitized_bytes;
use crate::{CliError, Context, ExitCode};

/// Arguments of `add`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Show what would be done without doing it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Show the files that are added and removed
    #[arg(short, long)]
    verbose: bool,
    /// Choose interactively (handed to git)
    #[arg(short, long)]
    interactive: bool,
    /// Choose hunks interactively (handed to git)
    #[arg(short, long)]
    patch: bool,
    /// Edit the difference and apply it (handed to git)
    #[arg(short, long)]
    edit: bool,
    /// Add ignored files too
    #[arg(short, long)]
    force: bool,
    /// Update tracked files
    #[arg(short, long)]
    update: bool,
    /// Convert the line endings of tracked files again (implies -u)
    #[arg(long)]
    renormalize: bool,
    /// Record only the intent to add the files later
    #[arg(short = 'N', long)]
    intent_to_add: bool,
    /// Stage changes of all tracked and untracked files
    #[arg(short = 'A', long)]
    all: Option<bool>,
    /// Do not stage removals (same as --no-all)
    #[arg(long)]
    ignore_removal: Option<bool>,
    /// Refresh stat data in the index without adding content
    #[arg(long)]
    refresh: bool,
    /// Continue after files that cannot be added
    #[arg(long)]
    ignore_errors: Option<bool>,
    /// Report whether missing files would be ignored (with --dry-run)
    #[arg(long)]
    ignore_missing: bool,
    /// Also update entries outside of the sparse checkout
    #[arg(long)]
    sparse: bool,
    /// Mark the files as executable in the index (+x), or not (-x)
    #[arg(long, value_name = "(+|-)x", allow_hyphen_values = true)]
    chmod: Option<String>,
    /// Do not warn about embedded repositories
    #[arg(long, hide = true)]
    no_warn_embedded_repo: bool,
    /// Read paths from this file
    #[arg(long, value_name = "FILE")]
    pathspec_from_file: Option<OsString>,
    /// Paths in that file are separated by NUL
    #[arg(long)]
    pathspec_file_nul: bool,
    /// Files to add
    #[arg(value_name = "PATHSPEC")]
    path: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    for (given, what) in [
        (args.interactive, "option '--interactive' of 'add'"),
        (args.patch, "option '--patch' of 'add'"),
        (args.edit, "option '--edit' of 'add'"),
    ] {
        if given {
            return Err(CliError::unsupported(what));
        }
    }
    let repository = context.repository()?;
    repository.require_work_tree()?;
    let mut options = understand(args, &repository)?;
    let specs = pathspecs::read(&PathspecSource {
        given: &args.path,
        file: args.pathspec_from_file.as_deref(),
        ends_with_nul: args.pathspec_file_nul,
    })?;
    if specs.is_empty() && needs_paths(args) {
        nothing_specified(&repository, context);
        return Ok(ExitCode::SUCCESS);
    }
    if ignores_submodules(&repository) {
        return Err(CliError::unsupported(
            "'add' with a submodule whose 'ignore' setting is 'all'",
        ));
    }
    options.pathspec = repository
        .pathspec(specs.iter().map(|spec| spec.as_bstr()))
        .map_err(CliError::of)?;
    if args.refresh {
        return refresh(&repository, options.pathspec, args.verbose, context);
    }
    // `add PATH` also stages removals.
    options.ignore_removal = !args.update && !all(args).unwrap_or(!specs.is_empty());
    let interrupt = context.interrupt.clone();
    match pronto::add::add(&repository, &options, &Watch::from(&interrupt)) {
        Ok(report) => print(&report, &repository, args, context),
        Err(failure) => Err(failed(failure, &repository, args, context)?),
    }
}

/// Prints the events before the failure of an `add`, and returns the error.
fn failed(
    failure: PartialFailure<Report>,
    repository: &Repository,
    args: &Args,
    context: &mut Context,
) -> Result<CliError, CliError> {
    let Some(report) = failure.report else {
        return Ok(CliError::of(failure.error));
    };
    print(&report, repository, args, context)?;
    if report.is_explained {
        return Ok(CliError::silent(ExitCode::FATAL));
    }
    if let Some(hint) = failure.error.hint() {
        context.explain(hint);
    }
    Ok(CliError::fatal(failure.error.to_string()))
}

/// Returns whether a submodule is configured to be ignored (`submodule.NAME.ignore`), which `add`
/// obeys.
fn ignores_submodules(repository: &Repository) -> bool {
    let Some(top) = repository.work_tree().filter(|top| gitmodules::is_in(top)) else {
        return false;
    };
    let modules = Gitmodules::read(top);
    let config = repository.config();
    modules.names().into_iter().any(|name| {
        let configured = config.raw(format!("submodule.{name}.ignore"));
        configured
            .or_else(|| modules.value(name, "ignore"))
            .is_some_and(|value| value == "all")
    })
}

/// Handles `--refresh`: lists differing files only on request, but always lists conflicts.
fn refresh(
    repository: &Repository,
    pathspec: Pathspec,
    verbose: bool,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let mut options = pronto::refresh::Options::default();
    options.pathspec = pathspec;
    let interrupt = context.interrupt.clone();
    let refreshed = pronto::refresh::refresh_index(repository, &options, &Watch::from(&interrupt));
    let refreshed = refreshed.map_err(CliError::of)?;
    let out = &mut context.out;
    if verbose && !refreshed.outdated.is_empty() {
        writeln!(out, "Unstaged changes after refreshing the index:")?;
    }
    for outdated in &refreshed.outdated {
        if verbose {
            write!(out, "{}\t", char::from(outdated.kind.letter()))?;
            out.write_all(&sanitized_bytes(&outdated.path))?;
            writeln!(out)?;
        } else if outdated.kind == ChangeKind::Unmerged {
            out.write_all(&sanitized_bytes(&outdated.path))?;
            writeln!(out, ": needs merge")?;
        }
    }
    match refreshed.unmatched {
        Some(spec) => {
            let message = format!("pathspec '{spec}' did not match any files");
            Err(CliError::fatal(message))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Returns the value of `--all`, or the opposite of `--ignore-removal`.
fn all(args: &Args) -> Option<bool> {
    args.all.or(args.ignore_removal.map(|ignore| !ignore))
}

fn needs_paths(args: &Args) -> bool {
    !(args.update || all(args) == Some(true))
}

/// Converts the arguments into options of the library, and checks that they can be combined.
fn understand(args: &Args, repository: &Repository) -> Result<Options, CliError> {
    if all(args) == Some(true) && args.update {
        let message = "options '-A' and '-u' cannot be used together";
        return Err(CliError::fatal(message));
    }
    if args.ignore_missing && !args.dry_run {
        let message = "the option '--ignore-missing' requires '--dry-run'";
        return Err(CliError::fatal(message));
    }
    let executable = match args.chmod.as_deref() {
        None => None,
        Some("+x") => Some(true),
        Some("-x") => Some(false),
        Some(other) => {
            let message = format!("--chmod param '{other}' must be either -x or +x");
            return Err(CliError::fatal(message));
        }
    };
    let config = repository.config();
    let ignore_errors = match args.ignore_errors {
        Some(given) => given,
        None => match config.bool("add.ignoreErrors")? {
            Some(value) => value,
            None => config.bool_or("add.ignore-errors", false)?,
        },
    };
    let mut options = Options::default();
    options.selection = match (args.renormalize, args.update) {
        (true, _) => AddSelection::Renormalize,
        (_, true) => AddSelection::Tracked,
        _ => AddSelection::All,
    };
    options.force = args.force;
    options.intent_to_add = args.intent_to_add;
    options.dry_run = args.dry_run;
    options.ignore_errors = ignore_errors;
    options.ignore_missing = args.ignore_missing;
    options.sparse = args.sparse;
    options.executable = executable;
    options.verbose = args.verbose;
    Ok(options)
}

fn nothing_specified(repository: &Repository, context: &mut Context) {
    context.remark("Nothing specified, nothing added.");
    let advice = "Maybe you wanted to say 'git add .'?";
    context.advise(repository.config(), "addEmptyPathspec", advice);
}

fn print(
    report: &Report,
    repository: &Repository,
    args: &Args,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let mut advised = false;
    for event in &report.events {
        match event {
            Event::Added(path) => print_path(context, "add", path)?,
            Event::Removed(path) => print_path(context, "remove", path)?,
            Event::Conversion(warning) => report_conversion(context, warning),
            Event::Failure(failure) => report_failure(context, failure),
            Event::Unexamined(path, error) => {
                let reason = pronto_io::error::reason(error);
                match path.ends_with(b"/") || path.is_empty() {
                    true => context.warn(&format!("could not open directory '{path}': {reason}")),
                    false => context.remark(&format!("{path}: {reason}")),
                }
            }
            Event::Unmatched(spec) => context.report_error(&format!(
                "pathspec '{spec}' did not match any file(s) known to git"
            )),
            Event::ModeKept(path, executable) => {
                let sign = if *executable { '+' } else { '-' };
                context.report_error(&format!("cannot chmod {sign}x '{path}'"));
            }
            Event::Ignored(paths) => {
                context.remark("The following paths are ignored by one of your .gitignore files:");
                list(context, paths);
                let advice = "Use -f if you really want to add them.";
                context.advise(repository.config(), "addIgnoredFile", advice);
            }
            Event::OutsideSparse(paths) => {
                context.remark(
                    "The following paths and/or pathspecs matched paths that exist\n\
                     outside of your sparse-checkout definition, so will not be\n\
                     updated in the index:",
                );
                list(context, paths);
                let advice = "If you intend to update such entries, try one of the following:\n\
                              * Use the --sparse option.\n\
                              * Disable or modify the sparsity rules.";
                context.advise(repository.config(), "updateSparsePath", advice);
            }
            Event::Embedded(_) if args.no_warn_embedded_repo => {}
            Event::Embedded(path) => {
                context.warn(&format!("adding embedded git repository: {path}"));
                if !advised {
                    advised = true;
                    context.advise(repository.config(), "addEmbeddedRepo", &embedded(path));
                }
            }
            _ => {}
        }
    }
    Ok(match (report.mode_kept, report.failed) {
        (true, _) => ExitCode::new(255),
        (_, true) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

fn print_path(context: &mut Context, verb: &str, path: &BString) -> Result<(), CliError> {
    let out = &mut context.out;
    write!(out, "{verb} '")?;
    out.write_all(&sanitized_bytes(path))?;
    Ok(out.write_all(b"'\n")?)
}

fn list(context: &mut Context, paths: &[BString]) {
    for path in paths {
        context.remark(&path.to_string());
    }
}

fn embedded(path: &BString) -> String {
    format!(
        "You've added another git repository inside your current repository.\n\
         Clones of the outer repository will not contain the contents of\n\
         the embedded repository and will not know how to obtain it.\n\
         If you meant to add a submodule, use:\n\n\
         \tgit submodule add <url> {path}\n\n\
         If you added this path by mistake, you can remove it from the\n\
         index with:\n\n\
         \tgit rm --cached {path}\n\n\
         See \"git help submodule\" for more information."
    )
}

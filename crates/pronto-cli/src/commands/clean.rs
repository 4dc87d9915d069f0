//! `clean`: remove untracked files.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};
use pronto::clean::{CleanPath, CleanSelection, Event, Options};
use pronto::{Repository, Watch};

use crate::paths::{pathspec_error, relative};
use crate::{CliError, Context, ExitCode};

/// Arguments of `clean`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
    /// Show what would be removed without removing it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Remove files; twice: embedded repositories, too
    #[arg(short, long, action = clap::ArgAction::Count)]
    force: u8,
    /// Choose interactively (handed to git)
    #[arg(short, long)]
    interactive: bool,
    /// Remove untracked directories too
    #[arg(short = 'd')]
    directories: bool,
    /// Ignore files that match this pattern, too
    #[arg(short, long, value_name = "PATTERN")]
    exclude: Vec<OsString>,
    /// Remove ignored files too
    #[arg(short = 'x')]
    all: bool,
    /// Remove only ignored files
    #[arg(short = 'X')]
    ignored: bool,
    /// Paths to clean
    #[arg(value_name = "PATHSPEC")]
    paths: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.interactive {
        return Err(CliError::unsupported("option '--interactive' of 'clean'"));
    }
    let repository = context.repository()?;
    repository.require_work_tree()?;
    let requires_force = repository.config().bool("clean.requireForce")?;
    if !args.dry_run && args.force == 0 && requires_force != Some(false) {
        return Err(CliError::fatal(
            "clean.requireForce is true and -f not given: refusing to clean",
        ));
    }
    if args.all && args.ignored {
        return Err(CliError::fatal(
            "options '-x' and '-X' cannot be used together",
        ));
    }
    let options = understand(args, &repository)?;
    let count = options.pathspec.len();
    if (0..count).any(|at| options.pathspec.excludes(at)) {
        return Err(CliError::unsupported("'clean' with an excluding pathspec"));
    }
    let interrupt = context.interrupt.clone();
    let said = pronto::clean::clean(&repository, &options, &Watch::from(&interrupt))
        .map_err(CliError::of)?;
    context.report();
    print_all(&repository, context, args, &said)
}

/// Converts the arguments into options of the library.
fn understand(args: &Args, repository: &Repository) -> Result<Options, CliError> {
    let prefix = repository.prefix_or_empty();
    let mut specs: Vec<BString> = args
        .paths
        .iter()
        .map(|path| path.as_bytes().into())
        .collect();
    if specs.is_empty() && !prefix.is_empty() {
        specs.push(".".into());
    }
    let mut options = Options::default();
    options.what = match (args.all, args.ignored) {
        (true, _) => CleanSelection::All,
        (_, true) => CleanSelection::Ignored,
        _ => CleanSelection::Untracked,
    };
    options.directories = args.directories || !args.paths.is_empty();
    options.repositories = args.force > 1;
    options.patterns = args
        .exclude
        .iter()
        .map(|given| given.as_bytes().into())
        .collect();
    options.pathspec = repository
        .pathspec(specs.iter().map(|spec| spec.as_bstr()))
        .map_err(pathspec_error)?;
    options.dry_run = args.dry_run;
    Ok(options)
}

/// Prints the removed and skipped paths, relative to the current directory.
fn print_all(
    repository: &Repository,
    context: &mut Context,
    args: &Args,
    said: &[Event],
) -> Result<ExitCode, CliError> {
    let prefix = repository.prefix_or_empty();
    let all = repository.config().bool_or("core.quotepath", true)?;
    let shown = |place: &CleanPath| {
        // Paths below a directory are relative to the same directory as the path of the directory
        // itself.
        let (root, below) = place.path.split_at(place.root);
        let seen = match root {
            b"" => relative(place.path.as_bstr(), prefix.as_bstr()),
            root => [relative(root.into(), prefix.as_bstr()).as_slice(), below]
                .concat()
                .into(),
        };
        pronto::quote::c_quote(seen.as_bstr(), all)
    };
    let mut failed = false;
    for said in said {
        match said {
            Event::Failed(path, error) => {
                let (path, reason) = (shown(path), pronto_io::error::reason(error));
                context.warn(&format!("failed to remove {path}: {reason}"));
                failed = true;
            }
            _ if args.quiet => {}
            Event::Removed(path) => print(
                context,
                verbs(args, "Would remove", "Removing"),
                &shown(path),
            )?,
            Event::Repository(path) => {
                let verb = verbs(args, "Would skip repository", "Skipping repository");
                print(context, verb, &shown(path))?;
            }
            Event::Here => {
                let verb = verbs(args, "Would refuse to remove", "Refusing to remove");
                writeln!(context.out, "{verb} current working directory")?;
            }
            _ => {}
        }
    }
    Ok(match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn verbs(args: &Args, would: &'static str, does: &'static str) -> &'static str {
    match args.dry_run {
        true => would,
        false => does,
    }
}

fn print(context: &mut Context, verb: &str, path: &BString) -> Result<(), CliError> {
    let out = &mut context.out;
    write!(out, "{verb} ")?;
    out.write_all(path)?;
    Ok(out.write_all(b"\n")?)
}

//! `checkout-index`: copy files from the index.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use pronto::checkout_index::{Options, Report, Stages, TemporaryEntry};
use pronto::{Repository, Watch};

use crate::commands::shared::checkout_failures::{code_of_failures, print_failures};
use crate::paths::{InputNames, Quoting, shown_path};
use crate::{CliError, Context, ExitCode};

/// Arguments of `checkout-index`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Copy all files of the index
    #[arg(short, long)]
    all: bool,
    /// Include files outside of the sparse checkout
    #[arg(long)]
    ignore_skip_worktree_bits: bool,
    /// Overwrite existing files
    #[arg(short, long)]
    force: bool,
    /// Do not report files that exist or are not in the index
    #[arg(short, long)]
    quiet: bool,
    /// Do not create new files
    #[arg(short = 'n', long)]
    no_create: bool,
    /// Record the stat data of written files in the index
    #[arg(short = 'u', long)]
    index: bool,
    /// Separate paths with NUL in input and output
    #[arg(short = 'z')]
    null: bool,
    /// Read paths from standard input
    #[arg(long)]
    stdin: bool,
    /// Write to temporary files and print their names
    #[arg(long)]
    temp: Option<bool>,
    /// Prepend this to file names
    #[arg(long, value_name = "STRING")]
    prefix: Option<OsString>,
    /// For conflicts, use this stage (1, 2, 3 or all)
    #[arg(long, value_name = "STAGE")]
    stage: Option<String>,
    /// Files to copy
    #[arg(value_name = "FILE")]
    files: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let top = repository.require_work_tree()?.to_owned();
    let stages = match args.stage.as_deref() {
        None => Stages::Merged,
        Some("all") => Stages::All,
        Some(given) => match given.as_bytes().first() {
            Some(digit @ b'1'..=b'3') => Stages::One(digit - b'0'),
            _ => return Err(CliError::fatal("stage should be between 1 and 3 or all")),
        },
    };
    if stages == Stages::All && args.temp == Some(false) {
        let message = "options '--stage=all' and '--no-temp' cannot be used together";
        return Err(CliError::fatal(message));
    }
    let prefix = args.prefix.as_deref().map(OsStrExt::as_bytes);
    let prefix = prefix.filter(|prefix| !prefix.is_empty());
    if prefix.is_some_and(|prefix| !prefix.ends_with(b"/")) {
        let what = "'checkout-index --prefix' with a value that does not end in a slash";
        return Err(CliError::unsupported(what));
    }
    let paths = paths(args, &repository, &top)?;
    let below = repository.prefix_or_empty();
    let mut options = Options::default();
    options.paths = paths;
    options.all_below = args.all.then_some(below);
    options.stages = stages;
    options.force = args.force;
    options.no_create = args.no_create;
    options.update_index = args.index;
    options.ignore_skip_worktree = args.ignore_skip_worktree_bits;
    options.directory = prefix.map(BString::from);
    options.temporary = args.temp.unwrap_or(stages == Stages::All);
    let progress = context.progress(Some(false), true);
    let interrupt = context.interrupt.clone();
    let done = pronto::checkout_index::checkout_index(
        &repository,
        &options,
        &Watch::from(&interrupt).with_progress(&*progress),
    );
    match done {
        Ok(report) => print(&repository, context, args, &options, &report),
        Err(failure) => {
            if let Some(report) = &failure.report {
                print(&repository, context, args, &options, report)?;
            }
            Err(CliError::of(failure.error))
        }
    }
}

/// Returns the named paths, relative to the top of the worktree.
fn paths(args: &Args, repository: &Repository, top: &Path) -> Result<Vec<BString>, CliError> {
    let mixed = |what: &str| {
        let message = format!("git checkout-index: don't mix {what}");
        Err(CliError::fatal(message))
    };
    match (args.all, args.stdin, args.files.is_empty()) {
        (true, _, false) => return mixed("'--all' and explicit filenames"),
        (_, true, false) => return mixed("'--stdin' and explicit filenames"),
        (true, true, _) => return mixed("'--all' and '--stdin'"),
        _ => {}
    }
    let given = args
        .files
        .iter()
        .map(|file| from_top(file.as_bytes().as_bstr(), repository, top));
    let mut paths: Vec<BString> = given.collect::<Result<_, _>>()?;
    if args.stdin {
        let mut names = InputNames::new(args.null);
        while let Some(name) = names.next()? {
            paths.push(from_top(name.as_bstr(), repository, top)?);
        }
    }
    Ok(paths)
}

fn from_top(name: &BStr, repository: &Repository, top: &Path) -> Result<BString, CliError> {
    let prefix = repository.prefix_or_empty();
    pronto_worktree::pathspec::entry_from_top(name, prefix.as_bstr(), top)
        .map_err(|error| CliError::fatal(error.message()))
}

fn print(
    repository: &Repository,
    context: &mut Context,
    args: &Args,
    options: &Options,
    report: &Report,
) -> Result<ExitCode, CliError> {
    if !args.quiet {
        for message in &report.unknown {
            context.remark(&format!("git checkout-index: {message}"));
        }
        for path in &report.refused {
            let prefix = options
                .directory
                .as_ref()
                .map_or(b"".as_bstr(), |directory| directory.as_bstr());
            context.remark(&format!("{prefix}{path} already exists, no checkout"));
        }
    }
    print_failures(context, &report.warnings, &report.failed);
    for temporary in &report.temporaries {
        print_temporary(repository, context, args.null, options.stages, temporary)?;
    }
    let code = code_of_failures(&report.failed);
    Ok(match report.is_incomplete() && code == ExitCode::SUCCESS {
        true => ExitCode::FAILURE,
        false => code,
    })
}

fn print_temporary(
    repository: &Repository,
    context: &mut Context,
    null: bool,
    stages: Stages,
    temporary: &TemporaryEntry,
) -> Result<(), CliError> {
    let shown = |at: usize| {
        temporary.files[at]
            .as_ref()
            .map_or(b".".as_bstr(), |name| name.as_bstr())
    };
    let names: Vec<&BStr> = match stages {
        Stages::All => (1..4).map(shown).collect(),
        Stages::One(stage) => vec![shown(usize::from(stage))],
        Stages::Merged => vec![shown(0)],
    };
    let out = &mut context.out;
    out.write_all(&bstr::join(" ", names))?;
    out.write_all(b"\t")?;
    let prefix = repository.prefix_or_empty();
    match null {
        true => {
            out.write_all(&crate::paths::relative(
                temporary.path.as_bstr(),
                prefix.as_bstr(),
            ))?;
            out.write_all(b"\0")?;
        }
        false => {
            let all = repository.config().bool_or("core.quotepath", true)?;
            out.write_all(&shown_path(
                temporary.path.as_bstr(),
                prefix.as_bstr(),
                Quoting {
                    non_ascii: all,
                    spaces: false,
                },
            ))?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

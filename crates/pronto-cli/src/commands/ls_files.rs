//! `ls-files`: list index entries and untracked files.

mod format;
mod listing;

use crate::paths::pathspec_error;
use crate::{CliError, Context, ExitCode};
use bstr::{BString, ByteSlice};
use format::ListFormat;
use gix_object::Kind as ObjectKind;
use listing::{FileLister, ListedEntries};
use pronto::revision::ExpectedType;
use pronto::status::{Patterns, UntrackedSearch};
use pronto::{Repository, Watch};
use pronto_hash::ObjectId;
use pronto_index::Index;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

/// Arguments of `ls-files`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Terminate paths with NUL
    #[arg(short = 'z')]
    null: bool,
    /// Prefix each path with a letter for its state
    #[arg(short = 't')]
    tags: bool,
    /// Like -t, with lower case for files marked assume-unchanged
    #[arg(short = 'v')]
    valid_bit: bool,
    /// Like -t, with lower case for files that the monitor vouches for
    #[arg(short = 'f')]
    fsmonitor_bit: bool,
    /// List tracked files (the default)
    #[arg(short, long)]
    cached: bool,
    /// List tracked files that are missing from the worktree
    #[arg(short, long)]
    deleted: bool,
    /// List tracked files that have changed
    #[arg(short, long)]
    modified: bool,
    /// List untracked files
    #[arg(short, long)]
    others: bool,
    /// List ignored files: untracked with -o, tracked with -c
    #[arg(short, long)]
    ignored: bool,
    /// Show mode, id and stage of each entry
    #[arg(short, long)]
    stage: bool,
    /// List untracked files that are in the way of tracked ones
    #[arg(short, long)]
    killed: bool,
    /// List an untracked directory instead of its files
    #[arg(long)]
    directory: bool,
    /// Show the line endings of files
    #[arg(long)]
    eol: bool,
    /// With --directory, list empty directories, too
    #[arg(long)]
    empty_directory: Option<bool>,
    /// List files in conflict
    #[arg(short, long)]
    unmerged: bool,
    /// Show conflicts that were resolved
    #[arg(long)]
    resolve_undo: bool,
    /// Treat untracked files that match this pattern as ignored
    #[arg(short = 'x', long, value_name = "PATTERN")]
    exclude: Vec<OsString>,
    /// Read ignore patterns from this file
    #[arg(short = 'X', long, value_name = "FILE")]
    exclude_from: Vec<OsString>,
    /// Read ignore patterns from files of this name in each directory
    #[arg(long, value_name = "FILE")]
    exclude_per_directory: Option<OsString>,
    /// Use the standard ignore files
    #[arg(long)]
    exclude_standard: bool,
    /// Show paths relative to the top of the worktree
    #[arg(long)]
    full_name: bool,
    /// Exit with an error if a path is not in the index
    #[arg(long)]
    error_unmatch: bool,
    /// Treat files of this tree that are not in the index as present
    #[arg(long, value_name = "TREE-ISH")]
    with_tree: Option<OsString>,
    /// Show ids with this many digits
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "")]
    abbrev: Option<OsString>,
    /// Show all fields of each entry
    #[arg(long)]
    debug: bool,
    /// List each path only once
    #[arg(long)]
    deduplicate: bool,
    /// Show directories of a sparse index as single entries
    #[arg(long)]
    sparse: bool,
    /// The format of each entry
    #[arg(long, value_name = "FORMAT")]
    format: Option<OsString>,
    /// Paths to list
    file: Vec<OsString>,
}

/// Returns the index. The stat data of entries is refreshed if the output shows it.
fn index(args: &Args, repository: &Repository, context: &mut Context) -> Result<Index, CliError> {
    let index = match args.sparse {
        true => repository.sparse_index()?,
        false => repository.index()?,
    };
    for signature in index.ignored_extensions() {
        context.remark(&format!("ignoring {} extension", signature.escape_ascii()));
    }
    let shows_tags = args.tags || args.valid_bit || args.fsmonitor_bit;
    if shows_tags || args.deleted || args.modified {
        return Ok(repository.with_present_files(index)?);
    }
    Ok(index)
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let format = check(args)?;
    let repository = context.repository()?;
    let needs_work_tree = args.deleted || args.modified || args.others || args.killed;
    if needs_work_tree && repository.work_tree().is_none() {
        return Err(CliError::fatal("this operation must be run in a work tree"));
    }
    if args.fsmonitor_bit && repository.config().contains("core.fsmonitor") {
        return Err(CliError::unsupported("'ls-files -f' with core.fsmonitor"));
    }
    let index = index(args, &repository, context)?;
    let pathspec = pathspec(args, &repository)?;
    let excludes = Excludes::read(args, &repository)?;
    let wanted = ListedEntries::of(args);
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt);
    let older = match &args.with_tree {
        Some(name) => pronto::status::entries_of_tree(
            &repository,
            &index,
            tree(name, &repository)?,
            &pathspec,
        )?,
        None => Vec::new(),
    };
    let mut listing = FileLister::new(&repository, &index, args, format, &pathspec)?;
    let find = |directories| {
        let search = UntrackedSearch {
            patterns: &excludes.patterns,
            ignore_file: excludes.per_directory.clone(),
            pathspec: &pathspec,
            ignored: args.ignored,
            directories,
            empty_directories: args.empty_directory != Some(false),
        };
        pronto::status::untracked_files(&repository, &index, &search, &watch)
    };
    let mut each = None;
    if args.others {
        let others = find(args.directory)?;
        listing.others(&others, &mut context.out)?;
        each = Some(others).filter(|_| !args.directory);
    }
    if args.killed {
        // `--killed` needs all files below a directory that replaces a tracked file.
        let each = each.map_or_else(|| find(false), Ok)?;
        listing.killed(&each, &mut context.out)?;
    }
    if wanted.cached || wanted.stage || args.deleted || args.modified {
        let states = match (args.modified, args.deleted) {
            (true, _) => pronto::status::changed_files(&repository, &index, &pathspec, &watch)?,
            (false, true) => pronto::status::deleted_files(&repository, &index, &pathspec, &watch)?,
            (false, false) => Default::default(),
        };
        listing.entries(&states, &older, &excludes, &mut context.out)?;
    }
    if args.resolve_undo {
        listing.resolve_undo(&mut context.out)?;
    }
    let unmatched = listing.unmatched();
    context.out.flush()?;
    index
        .intact()
        .map_err(|error| CliError::fatal(error.to_string()))?;
    if args.error_unmatch && !unmatched.is_empty() {
        return Ok(report_unmatched(&unmatched, context));
    }
    Ok(ExitCode::SUCCESS)
}

fn report_unmatched(unmatched: &[BString], context: &mut Context) -> ExitCode {
    for spec in unmatched {
        context.report_error(&format!(
            "pathspec '{spec}' did not match any file(s) known to git"
        ));
    }
    context.remark("Did you forget to 'git add'?");
    ExitCode::FAILURE
}

fn tree(name: &OsStr, repository: &Repository) -> Result<ObjectId, CliError> {
    let name = name.as_bytes().as_bstr();
    let id = repository.try_resolve(name, ExpectedType::Treeish)?;
    let id = id.ok_or_else(|| CliError::misuse(format!("tree-ish {name} not found")))?;
    let tree = repository.peel_to(id, ObjectKind::Tree)?;
    tree.ok_or_else(|| CliError::fatal(format!("bad tree-ish {name}")))
}

/// Refuses invalid combinations, in Git's words.
fn check(args: &Args) -> Result<Option<ListFormat>, CliError> {
    let shows_tags = args.tags || args.valid_bit || args.fsmonitor_bit;
    if args.format.is_some()
        && (args.stage
            || args.others
            || args.killed
            || args.resolve_undo
            || args.deduplicate
            || args.eol
            || shows_tags)
    {
        // Git prints its usage.
        return Err(CliError::unsupported(
            "'ls-files --format' with this combination of options",
        ));
    }
    if args.with_tree.is_some() {
        if args.stage || args.unmerged {
            let message = "options 'ls-files --with-tree' and '-s/-u' cannot be used together";
            return Err(CliError::fatal(message));
        }
        let looks = args.deleted || args.modified || args.others || args.killed;
        if looks || args.ignored || args.resolve_undo {
            return Err(CliError::unsupported(
                "'ls-files --with-tree' with this combination of options",
            ));
        }
    }
    let has_excludes = !args.exclude.is_empty()
        || !args.exclude_from.is_empty()
        || args.exclude_per_directory.is_some()
        || args.exclude_standard;
    if args.ignored && !args.others && !args.cached {
        return Err(CliError::fatal(
            "ls-files -i must be used with either -o or -c",
        ));
    }
    if args.ignored && !has_excludes {
        return Err(CliError::fatal(
            "ls-files --ignored needs some exclude pattern",
        ));
    }
    if args.ignored && args.directory {
        return Err(CliError::unsupported("'ls-files --directory --ignored'"));
    }
    args.format
        .as_ref()
        .map(|format| ListFormat::parse(format.as_bytes()))
        .transpose()
}

fn pathspec(args: &Args, repository: &Repository) -> Result<pronto::status::Pathspec, CliError> {
    if repository.work_tree().is_none() {
        return match args.file.is_empty() {
            true => Ok(pronto::status::Pathspec::default()),
            false => Err(CliError::unsupported(
                "'ls-files' with paths, but without a worktree",
            )),
        };
    }
    let mut specs: Vec<&[u8]> = args.file.iter().map(|file| file.as_bytes()).collect();
    if specs.is_empty() && repository.prefix().is_some() {
        specs.push(b".");
    }
    repository
        .pathspec_below_here(specs.iter().map(|spec| spec.as_bstr()))
        .map_err(pathspec_error)
}

/// The exclude patterns of the command line (`--exclude`, `--exclude-from`,
/// `--exclude-per-directory`).
struct Excludes {
    patterns: Patterns,
    per_directory: Option<BString>,
}

impl Excludes {
    fn read(args: &Args, repository: &Repository) -> Result<Excludes, CliError> {
        let mut per_directory = args
            .exclude_per_directory
            .as_deref()
            .map(|name| OsStr::as_bytes(name).into());
        let mut patterns = Patterns::new(repository.config().bool_or("core.ignoreCase", false)?);
        if args.exclude_standard {
            patterns = pronto::status::ignore_patterns(repository)?;
            per_directory = Some(".gitignore".into());
        }
        for file in &args.exclude_from {
            // Unlike other arguments, the file is relative to the top of the worktree.
            let path = repository.environment().resolve(file);
            let content = std::fs::read(path).map_err(|_| {
                let file = file.as_bytes().as_bstr();
                CliError::fatal(format!("cannot use {file} as an exclude file"))
            })?;
            patterns.add_file(file.as_bytes().into(), content);
        }
        for pattern in &args.exclude {
            patterns.add_pattern(pattern.as_bytes());
        }
        Ok(Excludes {
            patterns,
            per_directory,
        })
    }
}

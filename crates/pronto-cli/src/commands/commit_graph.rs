//! `commit-graph`: write and verify the commit-graph file.

use std::ffi::OsString;
use std::io::BufRead as _;
use std::path::PathBuf;

use bstr::{BString, ByteSlice};
use pronto::commit_graph::{
    self, CommitSource, GraphFault, GraphWriteOptions, SplitStrategy, VerifyGraphOptions,
};
use pronto::{ErrorKind, Repository, Watch};

use crate::{CliError, Context, ExitCode};

/// Arguments of `commit-graph`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The object directory: the repository's own or one of its alternates
    #[arg(long, value_name = "DIR")]
    object_dir: Option<PathBuf>,
    /// Write the commits reachable from refs
    #[arg(long)]
    reachable: bool,
    /// Write the commits of packs whose indexes are named on standard input
    #[arg(long)]
    stdin_packs: bool,
    /// Write the commits whose ids are on standard input
    #[arg(long)]
    stdin_commits: bool,
    /// Also keep the commits of the present graph
    #[arg(long)]
    append: bool,
    /// Write Bloom filters of changed paths
    #[arg(long)]
    changed_paths: Option<bool>,
    /// Compute at most this many new filters
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_new_filters: Option<String>,
    /// Write a layer on top of others: `no-merge` keeps them, `replace` replaces them
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "STRATEGY")]
    split: Option<String>,
    /// Merge layers until the new one has at most this many commits
    #[arg(long, value_name = "N")]
    max_commits: Option<String>,
    /// Merge layers that are at most this many times as large as the new one
    #[arg(long, value_name = "N")]
    size_multiple: Option<String>,
    /// Keep files that are younger than this
    #[arg(long, value_name = "DATE")]
    expire_time: Option<String>,
    /// Verify only the topmost layer
    #[arg(long)]
    shallow: bool,
    /// Show progress
    #[arg(long)]
    progress: Option<bool>,
    /// `write` or `verify`
    #[arg(value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let command: Vec<_> = args.command.iter().map(|word| word.to_str()).collect();
    match command.as_slice() {
        [Some("write")] if !args.shallow => write(args, context),
        [Some("verify")] if !args.writes() => verify(args, context),
        _ => Err(CliError::unsupported(
            "this combination of arguments of 'commit-graph'",
        )),
    }
}

impl Args {
    /// Returns whether an option of the subcommand `write` is given.
    fn writes(&self) -> bool {
        let texts = [
            &self.max_new_filters,
            &self.split,
            &self.max_commits,
            &self.size_multiple,
            &self.expire_time,
        ];
        self.reachable
            || self.stdin_packs
            || self.stdin_commits
            || self.append
            || self.changed_paths.is_some()
            || texts.iter().any(|text| text.is_some())
    }

    fn options(&self, repository: &Repository) -> Result<GraphWriteOptions, CliError> {
        let split = match self.split.as_deref() {
            None => None,
            Some("") => Some(SplitStrategy::Merge),
            Some("no-merge") => Some(SplitStrategy::NoMerge),
            Some("replace") => Some(SplitStrategy::Replace),
            Some(other) => {
                let message = format!("unrecognized --split argument, {other}");
                return Err(CliError::fatal(message));
            }
        };
        let expire_before = self.expire_time.as_ref().map(|date| {
            let message = || format!("malformed expiration date '{date}'");
            pronto::revision::parse_expiry(date.as_str().into())
                .ok_or_else(|| CliError::fatal(message()))
        });
        let config = repository.config();
        let configured = config.i64("commitgraph.maxnewfilters")?;
        let limit = number(self.max_new_filters.as_deref())?.or(configured);
        let size_multiple = number(self.size_multiple.as_deref())?;
        let defaults = GraphWriteOptions::default();
        let mut options = GraphWriteOptions::default();
        options.object_dir = self.object_dir.clone();
        options.source = self.source()?;
        options.append = self.append;
        options.split = split;
        options.size_multiple = size_multiple
            .and_then(|number| u64::try_from(number).ok())
            .filter(|number| *number > 0)
            .unwrap_or(defaults.size_multiple);
        options.max_commits = number(self.max_commits.as_deref())?
            .and_then(|number| u64::try_from(number).ok())
            .unwrap_or(defaults.max_commits);
        options.expire_before = expire_before.transpose()?;
        // The value `false` has the same effect as an unset key.
        let by_default = config.bool_or("commitgraph.changedpaths", false)?;
        options.changed_paths = self.changed_paths.or(by_default.then_some(true));
        options.max_new_filters = limit.and_then(|limit| usize::try_from(limit).ok());
        Ok(options)
    }

    fn source(&self) -> Result<CommitSource, CliError> {
        let ways = [self.reachable, self.stdin_packs, self.stdin_commits];
        if ways.into_iter().filter(|way| *way).count() > 1 {
            let message = "use at most one of --reachable, --stdin-commits, or --stdin-packs";
            return Err(CliError::fatal(message));
        }
        if self.reachable {
            return Ok(CommitSource::Reachable);
        }
        if self.stdin_packs {
            return Ok(CommitSource::Packs(lines()?));
        }
        if !self.stdin_commits {
            return Ok(CommitSource::Packed);
        }
        let mut ids = Vec::new();
        for line in lines()? {
            // Text after the id is ignored.
            let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
            let id = pronto_hash::parse_hex(&line[..digits.count()]);
            let message = || CliError::error(format!("unexpected non-hex object ID: {line}"));
            ids.push(id.map_err(|_| message())?);
        }
        Ok(CommitSource::Commits(ids))
    }
}

fn number(text: Option<&str>) -> Result<Option<i64>, CliError> {
    let parse = |text: &str| {
        let number = text.parse();
        number.map_err(|_| CliError::unsupported(format!("the number '{text}'")))
    };
    text.map(parse).transpose()
}

/// Reads the lines of standard input.
pub(super) fn lines() -> Result<Vec<BString>, CliError> {
    let failed = |error: std::io::Error| CliError::fatal(format!("cannot read: {error}"));
    let mut lines = Vec::new();
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line.map_err(failed)?;
        lines.push(
            line.strip_suffix(b"\r")
                .unwrap_or(&line)
                .as_bstr()
                .to_owned(),
        );
    }
    Ok(lines)
}

fn write(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let options = args.options(&repository)?;
    let progress = context.progress(args.progress, false);
    let interrupt = context.interrupt.clone();
    match commit_graph::write(
        &repository,
        &options,
        &Watch::from(&interrupt).with_progress(&*progress),
    ) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            Err(CliError::error(error.to_string()))
        }
        Err(error) => Err(CliError::of(error)),
    }
}

fn verify(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let progress = context.progress(args.progress, false);
    let interrupt = context.interrupt.clone();
    let mut wrong = Vec::new();
    let mut options = VerifyGraphOptions::default();
    options.object_dir.clone_from(&args.object_dir);
    options.shallow = args.shallow;
    let verdict = commit_graph::verify(
        &repository,
        &options,
        &Watch::from(&interrupt).with_progress(&*progress),
        &mut |fault| {
            wrong.push(match fault {
                GraphFault::Unreadable(_) => format!("error: {fault}"),
                _ => fault.to_string(),
            });
        },
    );
    context.remark_all(&wrong)?;
    Ok(ExitCode::new(verdict.map_err(CliError::of)?.code))
}

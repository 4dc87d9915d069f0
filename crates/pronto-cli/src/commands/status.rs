//! `status`: show changes and operations in progress.

mod colours;
mod document;
mod lines;
mod long;
mod porcelain;
mod settings;
mod short;
mod verbose;

use crate::arguments::complete;
use crate::paths::{Quoting, shown_path};
use crate::{CliError, Context, ExitCode};
use bstr::{BString, ByteSlice};
use colours::{ColourSlot, StatusColours};
use pronto::status::Problem;
use pronto::status::{Ignored, Renames, Report, TrackedUpstream, Untracked};
use pronto::{ErrorKind, Repository, Watch, refs::HeadValue};
use settings::Settings;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;
use verbose::Differences;

/// Arguments of `status`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Show the short format
    #[arg(short, long, overrides_with_all = ["long", "porcelain"])]
    short: bool,
    /// Show staged changes as a patch; twice, unstaged changes as well
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Show the branch
    #[arg(short, long)]
    branch: Option<bool>,
    /// Show the number of stash entries
    #[arg(long)]
    show_stash: Option<bool>,
    /// Count the commits ahead of and behind the upstream
    #[arg(long)]
    ahead_behind: Option<bool>,
    /// Show a stable format for scripts
    #[arg(
        long, value_name = "VERSION", num_args = 0..=1, default_missing_value = "v1",
        overrides_with_all = ["short", "long"]
    )]
    porcelain: Option<OsString>,
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
    /// Show the long format (the default)
    #[arg(long, overrides_with_all = ["short", "porcelain"])]
    long: bool,
    /// Terminate entries with NUL
    #[arg(short = 'z', long)]
    null: bool,
    /// Show untracked files: all, normal, no
    #[arg(short, long, value_name = "MODE", num_args = 0..=1, default_missing_value = "all")]
    untracked_files: Option<OsString>,
    /// Show ignored files: traditional, matching, no
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "traditional")]
    ignored: Option<OsString>,
    /// Ignore changes to submodules: all, dirty, untracked, none
    #[arg(long, value_name = "WHEN", num_args = 0..=1, default_missing_value = "all")]
    ignore_submodules: Option<OsString>,
    /// Detect renames
    #[arg(long)]
    renames: Option<bool>,
    /// Detect renames, optionally with a similarity
    #[arg(short = 'M', long, value_name = "N", num_args = 0..=1, default_missing_value = "")]
    find_renames: Option<OsString>,
    /// List untracked files in columns: always, never, auto, column, row, plain, dense, nodense
    #[arg(
        long, value_name = "STYLE", num_args = 0..=1, default_missing_value = "",
        overrides_with = "no_column"
    )]
    column: Option<OsString>,
    /// List each untracked file on a line
    #[arg(long, overrides_with = "column")]
    no_column: bool,
    /// Paths to examine
    pathspec: Vec<OsString>,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusFormat {
    Long,
    Short,
    Porcelain,
    PorcelainV2,
    Json,
}

/// The data that the output shows.
struct StatusView {
    report: Report,
    upstream: Option<TrackedUpstream>,
    stash_count: Option<usize>,
    settings: Settings,
    look: StatusColours,
    /// The directory to which printed paths are relative.
    prefix: BString,
    null: bool,
}

/// Prints the long format with the settings of the user, for a commit that has nothing to commit.
pub(super) fn show_long(context: &mut Context) -> Result<(), CliError> {
    context.obey_as("status")?;
    let definition = complete(<Args as clap::Args>::augment_args(clap::Command::new(
        "status",
    )));
    let args = super::parse::<Args>(definition, vec!["--long".into(), "--".into()])?;
    run(&args, context).map(drop)
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    if repository.require_work_tree().is_err() {
        return Err(CliError::fatal("this operation must be run in a work tree"));
    }
    let (settings, options) = prepare(args, &repository, context)?;
    let started = Instant::now();
    let report = pronto::status::status(&repository, &options, &Watch::from(&context.interrupt))
        .map_err(failure)?;
    context.report();
    if report.has_foreign_cache {
        context.warn("untracked cache is disabled on this system or location");
    }
    for Problem { path, error, .. } in &report.problems {
        let reason = pronto_io::error::reason(error);
        let what = match path.ends_with(b"/") {
            true => "open directory",
            false => "look at",
        };
        context.warn(&format!("could not {what} '{path}': {reason}"));
    }
    let view = gather(&repository, context, report, settings, args.null)?;
    let is_wide = |path: &BString| !view.path(path, false).is_ascii();
    let mut others = view.report.untracked.iter().chain(&view.report.ignored);
    if view.settings.columns.is_some() && others.any(is_wide) {
        return Err(CliError::unsupported(
            "'status --column' with a name that is not ASCII",
        ));
    }
    let differences = match (view.settings.format, args.verbose) {
        (StatusFormat::Long, times @ 1..) => {
            Differences::prepare(&view, times, !args.pathspec.is_empty(), context)?
        }
        _ => None,
    };
    match view.settings.format {
        StatusFormat::Long => long::print(
            &view,
            &repository,
            differences.as_ref(),
            started.elapsed(),
            &mut context.out,
        )?,
        StatusFormat::Short | StatusFormat::Porcelain => short::print(&view, &mut context.out)?,
        StatusFormat::PorcelainV2 => porcelain::print(&view, &mut context.out)?,
        StatusFormat::Json => context.print_document(document::fields(&view))?,
    }
    context.out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Converts an error. git runs the calls that pronto does not support, because nothing has changed
/// yet.
fn failure(error: pronto::Error) -> CliError {
    match error.kind() {
        ErrorKind::Unsupported => CliError::lacking(error.message()),
        _ => error.into(),
    }
}

fn prepare(
    args: &Args,
    repository: &Repository,
    context: &mut Context,
) -> Result<(Settings, pronto::status::Options), CliError> {
    let settings = Settings::read(args, repository, context)?;
    let specs = args.pathspec.iter().map(|spec| spec.as_bytes().as_bstr());
    let pathspec = repository.pathspec(specs).map_err(failure)?;
    let optional_locks = repository
        .environment()
        .boolean("GIT_OPTIONAL_LOCKS", true)?;
    let mut options = pronto::status::Options::default();
    options.untracked = settings.untracked;
    options.ignored = settings.ignored;
    options.pathspec = pathspec;
    options.renames = settings.renames;
    options.ignore_submodules = settings.ignore_submodules;
    options.state = matches!(settings.format, StatusFormat::Long | StatusFormat::Json);
    options.detached_from = matches!(settings.format, StatusFormat::Long);
    options.write_back = optional_locks;
    options.settle = pronto::status::Options::default().settle;
    options.monitor_program = crate::programs::own().ok();
    Ok((settings, options))
}

fn gather(
    repository: &Repository,
    context: &Context,
    report: Report,
    settings: Settings,
    null: bool,
) -> Result<StatusView, CliError> {
    let wants_branch =
        settings.branch || matches!(settings.format, StatusFormat::Long | StatusFormat::Json);
    let upstream = match report.head.name().filter(|_| wants_branch) {
        Some(name) if settings.format != StatusFormat::Long || report.head.id().is_some() => {
            context.check_remotes(repository.config())?;
            let tip = report.head.id();
            pronto::status::upstream(
                repository,
                name,
                tip,
                settings.ahead_behind,
                &Watch::from(&context.interrupt),
            )?
        }
        _ => None,
    };
    let stash_count = match settings.show_stash {
        true => repository
            .refs()
            .log("refs/stash")?
            .map(|log| log.oldest_first().count()),
        false => None,
    };
    let relative = settings.relative_paths && settings.format != StatusFormat::Porcelain;
    let prefix = if relative {
        repository.prefix_or_empty()
    } else {
        BString::default()
    };
    let colored = matches!(settings.format, StatusFormat::Long | StatusFormat::Short);
    let look = StatusColours::read(repository, colored)?;
    Ok(StatusView {
        report,
        upstream,
        stash_count,
        settings,
        look,
        prefix,
        null,
    })
}

impl StatusView {
    /// Returns the displayed name of the branch.
    fn branch(&self) -> Option<&bstr::BStr> {
        let name = self.report.head.name()?;
        Some(name.strip_prefix(b"refs/heads/").unwrap_or(name).as_bstr())
    }

    fn is_detached(&self) -> bool {
        matches!(self.report.head, HeadValue::Detached { .. })
    }

    fn is_initial(&self) -> bool {
        self.report.head.id().is_none()
    }

    /// Formats `path` relative to the current directory, quoted if necessary. With `space`, a path
    /// that contains a space is quoted, too.
    fn path(&self, path: &BString, space: bool) -> BString {
        let quoting = Quoting {
            non_ascii: self.settings.quote_path,
            spaces: space,
        };
        shown_path(path.as_bstr(), self.prefix.as_bstr(), quoting)
    }
}

/// Returns the two letters of a conflict.
fn conflict_letters(mask: u8) -> &'static str {
    match mask {
        1 => "DD",
        2 => "AU",
        3 => "UD",
        4 => "UA",
        5 => "DU",
        6 => "AA",
        _ => "UU",
    }
}

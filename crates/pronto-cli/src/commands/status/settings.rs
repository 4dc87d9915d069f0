//! Reads the settings of a status from arguments and configuration.

use super::{Args, Ignored, Renames, StatusFormat, Untracked};
use crate::commands::shared::diffing::score;
use crate::terminal::columns::Columns;
use crate::{CliError, Context};
use bstr::{BStr, ByteSlice};
use pronto::Repository;
use pronto::config::BoolOrInt;
use pronto::status::IgnoreSubmodules;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The parts of the status to compute, and their presentation.
pub(super) struct Settings {
    pub(super) format: StatusFormat,
    pub(super) branch: bool,
    pub(super) show_stash: bool,
    pub(super) ahead_behind: bool,
    pub(super) untracked: Untracked,
    pub(super) ignored: Ignored,
    pub(super) ignore_submodules: Option<IgnoreSubmodules>,
    pub(super) renames: Option<Renames>,
    pub(super) relative_paths: bool,
    pub(super) quote_path: bool,
    pub(super) hints: bool,
    pub(super) comment_prefix: bool,
    pub(super) advise_untracked: bool,
    /// The column layout of untracked files in the long format (`--column`), and the width of a
    /// line.
    pub(super) columns: Option<(Columns, usize)>,
}

impl Settings {
    pub(super) fn read(
        args: &Args,
        repository: &Repository,
        context: &mut Context,
    ) -> Result<Settings, CliError> {
        let config = repository.config();
        refuse_foreign(repository)?;
        let (format, deferred) = format(args, repository)?;
        let branch = match args.branch {
            Some(branch) => branch,
            None => deferred && config.bool_or("status.branch", false)?,
        };
        let ahead_behind = match args.ahead_behind {
            Some(full) => full,
            None => !deferred || config.bool_or("status.aheadBehind", true)?,
        };
        let show_stash = match args.show_stash {
            Some(show) => show,
            None => config.bool_or("status.showStash", false)?,
        };
        let untracked = untracked(args, repository, context)?;
        let ignored = match args.ignored.as_deref().map(OsStr::as_bytes) {
            None | Some(b"no") => Ignored::No,
            Some(b"traditional") => Ignored::Traditional,
            Some(b"matching") => Ignored::Matching,
            Some(other) => {
                return Err(CliError::fatal(format!(
                    "Invalid ignored mode '{}'",
                    other.as_bstr()
                )));
            }
        };
        if ignored == Ignored::Matching && untracked == Untracked::No {
            return Err(CliError::fatal(
                "Unsupported combination of ignored and untracked-files arguments",
            ));
        }
        let advises = context.wants_advice();
        let advice = |name: &str| config.bool_or(name, true).map(|wanted| wanted && advises);
        Ok(Settings {
            format,
            branch,
            show_stash,
            ahead_behind,
            untracked,
            ignored,
            ignore_submodules: ignore_submodules(args)?,
            renames: renames(args, repository)?,
            relative_paths: config.bool_or("status.relativePaths", true)?,
            quote_path: config.bool_or("core.quotePath", true)?,
            hints: advice("advice.statusHints")?,
            comment_prefix: config.bool_or("status.displayCommentPrefix", false)?,
            advise_untracked: advice("advice.statusUoption")?,
            columns: columns(args, repository)?,
        })
    }
}

fn columns(args: &Args, repository: &Repository) -> Result<Option<(Columns, usize)>, CliError> {
    let given = args
        .column
        .as_deref()
        .map(|words| words.as_bytes().as_bstr());
    let columns = match args.no_column {
        true => Columns::default(),
        false => Columns::read(repository, "status", given)?,
    };
    let width = || crate::terminal::columns::line_width(repository);
    Ok(columns.is_active().then(|| (columns, width())))
}

/// Hands calls to git whose output only git formats.
fn refuse_foreign(repository: &Repository) -> Result<(), CliError> {
    let config = repository.config();
    let summary = match config.bool_or_i64("status.submoduleSummary")? {
        None | Some(BoolOrInt::Bool(false) | BoolOrInt::Int(0)) => false,
        Some(_) => true,
    };
    if summary {
        return Err(CliError::unsupported("status.submoduleSummary"));
    }
    let is_commented = config.bool_or("status.displayCommentPrefix", false)?;
    let comment = ["core.commentChar", "core.commentString"];
    if is_commented && comment.iter().any(|key| config.contains(key)) {
        return Err(CliError::unsupported(
            "status.displayCommentPrefix together with core.commentChar or core.commentString",
        ));
    }
    Ok(())
}

/// Returns the format, and whether the configuration for interactive use applies (`status.short`,
/// `status.branch` and others).
fn format(args: &Args, repository: &Repository) -> Result<(StatusFormat, bool), CliError> {
    if args.json {
        let others = [
            ("--porcelain", args.porcelain.is_some()),
            ("--short", args.short),
            ("--long", args.long),
            ("-z", args.null),
            ("--verbose", args.verbose > 0),
        ];
        if let Some((other, _)) = others.iter().find(|(_, given)| *given) {
            let message = format!("options '--json' and '{other}' cannot be used together");
            return Err(CliError::fatal(message));
        }
        return Ok((StatusFormat::Json, false));
    }
    let asked = match (&args.porcelain, args.short, args.long) {
        (Some(version), ..) => Some(match version.as_bytes() {
            b"" | b"1" | b"v1" => StatusFormat::Porcelain,
            b"2" | b"v2" => StatusFormat::PorcelainV2,
            other => {
                let other = other.as_bstr();
                return Err(CliError::fatal(format!(
                    "unsupported porcelain version '{other}'"
                )));
            }
        }),
        (None, true, _) => Some(StatusFormat::Short),
        (None, _, true) => Some(StatusFormat::Long),
        _ => None,
    };
    if args.null && asked == Some(StatusFormat::Long) {
        return Err(CliError::fatal(
            "options '--long' and '-z' cannot be used together",
        ));
    }
    let deferred = !matches!(
        asked,
        Some(StatusFormat::Porcelain | StatusFormat::PorcelainV2)
    ) && !args.null;
    let configured = || repository.config().bool_or("status.short", false);
    let format = match asked {
        Some(format) => format,
        None if args.null => StatusFormat::Porcelain,
        None if configured()? => StatusFormat::Short,
        None => StatusFormat::Long,
    };
    Ok((format, deferred))
}

fn untracked(
    args: &Args,
    repository: &Repository,
    context: &mut Context,
) -> Result<Untracked, CliError> {
    let parse = |value: &[u8]| match value {
        b"no" => Some(Untracked::No),
        b"normal" => Some(Untracked::Normal),
        b"all" => Some(Untracked::All),
        _ => match pronto::config::value::parse_bool(Some(value.as_bstr())) {
            Some(true) => Some(Untracked::Normal),
            Some(false) => Some(Untracked::No),
            None => None,
        },
    };
    let wrong = |value: &[u8]| format!("Invalid untracked files mode '{}'", value.as_bstr());
    if let Some(value) = args.untracked_files.as_deref().map(OsStr::as_bytes) {
        return parse(value).ok_or_else(|| CliError::fatal(wrong(value)));
    }
    let Some(entry) = repository.config().entry_of("status.showUntrackedFiles") else {
        return Ok(Untracked::Normal);
    };
    // A key without a value is true.
    let Some(value) = entry.value else {
        return Ok(Untracked::Normal);
    };
    parse(value).ok_or_else(|| {
        context.report_error(&wrong(value));
        CliError::from(entry.bad_variable())
    })
}

fn ignore_submodules(args: &Args) -> Result<Option<IgnoreSubmodules>, CliError> {
    let Some(value) = args.ignore_submodules.as_deref().map(OsStr::as_bytes) else {
        return Ok(None);
    };
    match IgnoreSubmodules::parse(value) {
        Some(ignore) => Ok(Some(ignore)),
        None => {
            let value = value.as_bstr();
            Err(CliError::fatal(format!(
                "bad --ignore-submodules argument: {value}"
            )))
        }
    }
}

fn renames(args: &Args, repository: &Repository) -> Result<Option<Renames>, CliError> {
    let config = repository.config();
    let mut wanted = Some(false);
    for key in ["status.renames", "diff.renames"] {
        let Some(entry) = config.entry_of(key) else {
            continue;
        };
        let copies = |value: &BStr| value == "copies" || value == "copy";
        wanted = match entry.string() {
            Ok(value) if copies(value) => Some(true),
            _ => entry.bool()?.then_some(false),
        };
        break;
    }
    match args.renames {
        Some(true) => wanted = wanted.or(Some(false)),
        Some(false) => wanted = None,
        None => {}
    }
    let mut renames = Renames::default();
    if let Some(text) = &args.find_renames {
        wanted = wanted.or(Some(false));
        if !text.is_empty() {
            renames.minimum_score = score(text.as_bytes(), "this value of '--find-renames'")?;
        }
    }
    let limit = match config.entry_of("status.renameLimit") {
        Some(entry) => Some(entry),
        None => config.entry_of("diff.renameLimit"),
    };
    if let Some(entry) = limit {
        // A negative number selects Git's default.
        let limit = entry.i32()?;
        renames.limit = usize::try_from(limit).unwrap_or(renames.limit);
    }
    Ok(wanted.map(|copies| Renames { copies, ..renames }))
}

//! Code that `checkout` and `switch` share: resolving names, switching, and reports.

mod report;
mod upstream;

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use pronto::switch::{NewBranch, NewHead, Options, Outcome, Report, StartPoint, Tracking};
use pronto::{PartialFailure, Repository, Watch};

pub(crate) use crate::commands::shared::checkout_failures::print_failures;
use crate::commands::shared::checkout_failures::refusal_message;
use crate::{CliError, Context, ExitCode};

/// The exit code if an unborn branch could not be renamed.
const NOT_RENAMED: ExitCode = ExitCode::new(255);

/// Options of both commands.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct SwitchOptions {
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Show progress even if standard error is not a terminal
    #[arg(long)]
    pub(crate) progress: Option<bool>,
    /// Discard local changes, and files that are in the way
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Detach HEAD at the commit
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// Set the upstream of the new branch
    #[arg(short, long, value_name = "HOW", num_args = 0..=1, default_missing_value = "direct")]
    pub(crate) track: Option<String>,
    /// Create a branch without history
    #[arg(long, value_name = "NEW-BRANCH")]
    pub(crate) orphan: Option<std::ffi::OsString>,
    /// Overwrite ignored files (the default)
    #[arg(long)]
    pub(crate) overwrite_ignore: Option<bool>,
    /// Check out a branch even if another worktree has it
    #[arg(long)]
    pub(crate) ignore_other_worktrees: bool,
    /// Create a local branch for a remote branch of the same name (the default)
    #[arg(long)]
    pub(crate) guess: Option<bool>,
    /// Update submodules, too (handed to git)
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, default_missing_value = "yes")]
    pub(crate) recurse_submodules: Option<String>,
}

/// The running command, for behaviour in which `checkout` and `switch` differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// `checkout`.
    Checkout,
    /// `switch`.
    Switch,
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Which::Checkout => "checkout",
            Which::Switch => "switch",
        }
    }

    /// Returns the letter of the option that creates a branch (`-b` or `-c`).
    fn letter(self) -> char {
        match self {
            Which::Checkout => 'b',
            Which::Switch => 'c',
        }
    }
}

impl SwitchOptions {
    /// Hands unsupported calls to git before anything changes.
    pub(crate) fn check_supported(&self, repository: &Repository) -> Result<(), CliError> {
        check_submodules(repository, self.recurse_submodules.as_deref())?;
        if self.track.as_deref().is_some_and(|how| how != "direct") {
            return Err(CliError::unsupported("option '--track=inherit'"));
        }
        Ok(())
    }

    /// Returns whether a name may select a remote branch (`--guess`, `checkout.guess`).
    pub(crate) fn guesses(&self, repository: &Repository) -> Result<bool, CliError> {
        match self.guess {
            Some(guess) => Ok(guess),
            None => Ok(repository.config().bool_or("checkout.guess", true)?),
        }
    }
}

/// Hands calls that update submodules to git. `given` is the value of `--recurse-submodules`.
pub(crate) fn check_submodules(
    repository: &Repository,
    given: Option<&str>,
) -> Result<(), CliError> {
    let recurses = match given {
        Some("no" | "false" | "off" | "0") => false,
        Some(_) => true,
        None => repository.config().bool_or("submodule.recurse", false)?,
    };
    match recurses {
        true => Err(CliError::unsupported("option --recurse-submodules")),
        false => Ok(()),
    }
}

/// The branch to create, from the options.
#[derive(Debug, Default)]
pub(crate) struct BranchCreation {
    /// The branch of `-b` or `-c`.
    pub(crate) plain: Option<BString>,
    /// The branch of `-B` or `-C`, which is reset if it exists.
    pub(crate) force: Option<BString>,
    /// Whether the new branch gets a reflog (`-l`).
    pub(crate) log: bool,
    /// Whether the new branch gets no upstream (`--no-track`, unless `--track` follows).
    pub(crate) follows_nothing: bool,
}

/// Returns whether `--no-track` is the last option about the upstream.
pub(crate) fn follows_nothing(context: &Context) -> bool {
    // `--no-track` cancels `--track`, and also overrides the configuration.
    let mut options = context
        .arguments
        .iter()
        .take_while(|argument| *argument != "--");
    options.any(|argument| argument == "--no-track")
}

/// Converts the value of an option into a name.
pub(crate) fn text(value: Option<&std::ffi::OsString>) -> Option<BString> {
    value.map(|value| value.as_bytes().into())
}

/// The resolved arguments.
#[derive(Debug, Default)]
pub(crate) struct Meaning {
    /// The commit or tree that the arguments name.
    pub(crate) start: Option<StartPoint>,
    /// The name of the remote branch for which a local branch is created (`--guess`).
    pub(crate) guessed: Option<BString>,
    /// The number of arguments that the resolution has used.
    pub(crate) taken: usize,
}

/// The rules for resolving the first argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgumentRules {
    pub(crate) which: Which,
    /// Whether the argument must be a revision. Otherwise it may be a path.
    pub(crate) is_name: bool,
    /// Whether the argument may select a remote branch (`--guess`).
    pub(crate) may_guess: bool,
}

/// Resolves the first argument of `plain` as a commit, a branch or a tree.
pub(crate) fn understand(
    repository: &Repository,
    context: &mut Context,
    plain: &[std::ffi::OsString],
    rules: ArgumentRules,
) -> Result<Meaning, CliError> {
    let Some(first) = plain.first() else {
        return Ok(Meaning::default());
    };
    let spec = first.as_bytes().as_bstr();
    if let Some(start) = pronto::switch::start_at(repository, spec)? {
        context.report();
        return Ok(Meaning {
            start: Some(start),
            guessed: None,
            taken: 1,
        });
    }
    let has_wildcard = spec.find_byteset(b"*?[\\").is_some();
    let may_guess = rules.may_guess && plain.len() == 1 && (rules.is_name || !has_wildcard);
    if may_guess && let Some(meaning) = guess(repository, context, spec, rules)? {
        return Ok(meaning);
    }
    if rules.is_name {
        let spelled = if spec == "-" {
            b"@{-1}".as_bstr()
        } else {
            spec
        };
        return Err(CliError::fatal(format!("invalid reference: {spelled}")));
    }
    Ok(Meaning::default())
}

/// Resolves `spec` as a branch that exactly one remote has (`--guess`).
fn guess(
    repository: &Repository,
    context: &mut Context,
    spec: &BStr,
    rules: ArgumentRules,
) -> Result<Option<Meaning>, CliError> {
    let candidates = pronto::switch::remote_branches_named(repository, spec)?;
    let Some(chosen) = candidates.chosen else {
        if candidates.count < 2 {
            return Ok(None);
        }
        if advises(repository, "checkoutAmbiguousRemoteBranchName")? {
            context.hint(&format!(
                "If you meant to check out a remote tracking branch on, e.g. 'origin',\n\
                 you can do so by fully qualifying the name with the --track option:\n\
                 \n    git {} --track origin/<name>\n\n\
                 If you'd like to always have checkouts of an ambiguous <name> prefer\n\
                 one remote, e.g. the 'origin' remote, consider setting\n\
                 checkout.defaultRemote=origin in your config.",
                rules.which.name()
            ));
        }
        let count = candidates.count;
        let message = format!("'{spec}' matched multiple ({count}) remote tracking branches");
        return Err(CliError::fatal(message));
    };
    let here = repository
        .environment()
        .current_dir()
        .join(OsStr::from_bytes(spec));
    if !rules.is_name && here.symlink_metadata().is_ok() {
        return Err(CliError::fatal(format!(
            "'{spec}' could be both a local file and a tracking branch.\n\
             Please use -- (and optionally --no-guess) to disambiguate"
        )));
    }
    Ok(
        pronto::switch::start_at(repository, &chosen)?.map(|start| Meaning {
            start: Some(start),
            guessed: Some(spec.to_owned()),
            taken: 1,
        }),
    )
}

/// Returns whether the advice `advice.NAME` is enabled.
pub(crate) fn advises(repository: &Repository, name: &str) -> Result<bool, CliError> {
    let key = format!("advice.{}", name.to_ascii_lowercase());
    if repository.environment().boolean("GIT_ADVICE", true)? {
        return Ok(repository.config().bool_or(key, true)?);
    }
    Ok(false)
}

/// Returns the branch to create, after refusing options that exclude each other.
pub(crate) fn creation(
    common: &SwitchOptions,
    creation: &BranchCreation,
    guessed: Option<BString>,
    repository: &Repository,
    which: Which,
) -> Result<Option<NewBranch>, CliError> {
    let orphan = text(common.orphan.as_ref());
    let given = [&creation.plain, &creation.force, &orphan];
    if given.iter().filter(|name| name.is_some()).count() > 1 {
        let letter = which.letter();
        return Err(CliError::fatal(format!(
            "options '-{letter}', '-{}', and '--orphan' cannot be used together",
            letter.to_ascii_uppercase()
        )));
    }
    let force = creation.force.is_some();
    let is_orphan = orphan.is_some();
    let Some(name) = given.into_iter().flatten().next().cloned().or(guessed) else {
        return Ok(None);
    };
    if common.detach {
        return Err(CliError::fatal(
            "'--detach' cannot be used with '-b/-B/--orphan'",
        ));
    }
    if is_orphan && (common.track.is_some() || creation.follows_nothing) {
        return Err(CliError::fatal("'--orphan' cannot be used with '-t'"));
    }
    // The name of a branch may be `@`.
    let meant = repository.interpret_branch_name(&name)?;
    let name = meant.filter(|_| name != "@").unwrap_or(name);
    let mut options = NewBranch::default();
    options.name = name;
    options.force = force;
    options.orphan = is_orphan;
    options.log = creation.log;
    options.tracking = match &common.track {
        Some(_) => Tracking::Direct,
        None if creation.follows_nothing => Tracking::Never,
        None => Tracking::Configured,
    };
    Ok(Some(options))
}

/// Returns the branch name that `--track` implies: the part after the name of the remote.
pub(crate) fn name_after_remote(first: Option<&OsStr>, which: Which) -> Result<BString, CliError> {
    let Some(first) = first else {
        return Err(CliError::fatal("--track needs a branch name"));
    };
    let name = first.as_bytes();
    let name = name.strip_prefix(b"refs/").unwrap_or(name);
    let name = name.strip_prefix(b"remotes/").unwrap_or(name);
    match name.split_once_str("/") {
        Some((_, rest)) if !rest.is_empty() => Ok(rest.into()),
        _ => {
            let letter = which.letter();
            Err(CliError::fatal(format!(
                "missing branch name; try -{letter}"
            )))
        }
    }
}

/// Switches and reports the result. With `merges` (`--merge`), git stashes local changes that the
/// switch would overwrite, and applies the stash afterwards.
pub(crate) fn switch(
    repository: &Repository,
    context: &mut Context,
    common: &SwitchOptions,
    options: &Options,
    merges: bool,
) -> Result<ExitCode, CliError> {
    if options.create.is_some() && !options.empty {
        // The upstream of a new branch depends on the remotes. Git reads them before it moves `HEAD`.
        context.check_remotes(repository.config())?;
    }
    let progress = context.progress(common.progress, common.quiet);
    let outcome = pronto::switch::switch(
        repository,
        options,
        &Watch::from(&context.interrupt).with_progress(&*progress),
    );
    let outcome = match outcome {
        Err(failure) => return failed(repository, context, common, options, failure),
        Ok(outcome) => outcome,
    };
    context.report_conversions();
    match outcome {
        Outcome::Done(report) => report::print(repository, context, common, options, &report),
        Outcome::Refused(_) if merges => {
            Err(CliError::unsupported("merging local changes that overlap"))
        }
        Outcome::Refused(refusals) if options.discard => {
            if let Some(reason) = refusals.first() {
                context.report_error(&reason.to_string());
            }
            Ok(ExitCode::FATAL)
        }
        Outcome::Refused(refusals) => {
            let advice = advises(repository, "commitBeforeMerge")?;
            let message =
                refusal_message(&refusals, "checkout", advice.then_some("switch branches"));
            context.remark(message.strip_suffix('\n').unwrap_or(&message));
            context.remark("Aborting");
            Ok(ExitCode::FAILURE)
        }
        Outcome::Unmerged(paths) => {
            for path in &paths {
                writeln!(context.out, "{path}: needs merge")?;
            }
            context.report_error("you need to resolve your current index first");
            Ok(ExitCode::FAILURE)
        }
        other => Err(CliError::unknown_outcome(&other)),
    }
}

/// Reports the completed part of a failed switch, and returns the error.
fn failed(
    repository: &Repository,
    context: &mut Context,
    common: &SwitchOptions,
    options: &Options,
    failure: PartialFailure<Report>,
) -> Result<ExitCode, CliError> {
    let PartialFailure { error, report, .. } = failure;
    let Some(report) = report else {
        let is_hostile = error.kind() == pronto::ErrorKind::Hostile;
        let error = CliError::of(error);
        return Err(match is_hostile && !options.discard {
            true => error.with_code(ExitCode::FAILURE),
            false => error,
        });
    };
    context.report_conversions();
    if report.new_head != NewHead::NotRenamed {
        report::print_moved_files(repository, context, common, &report)?;
    }
    Err(match (error.kind(), &report.new_head) {
        (pronto::ErrorKind::Hook, NewHead::NotRenamed) => CliError::of(error),
        (_, NewHead::NotRenamed) => CliError::of(error).into_error().with_code(NOT_RENAMED),
        // The upstream of the new branch could not be configured.
        (pronto::ErrorKind::Config, _) => CliError::of(error).into_error(),
        _ => CliError::of(error),
    })
}

/// Formats `path` as Git prints it.
pub(crate) fn quoted(repository: &Repository, path: &BStr) -> Result<BString, CliError> {
    let all = repository.config().bool_or("core.quotepath", true)?;
    Ok(pronto::quote::c_quote(path, all))
}

//! `clone`: copy a repository into a new directory.

mod document;
mod options;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use pronto::clone::{self, CloneWarning, Outcome};
use pronto::path;
use pronto::{Environment, ErrorKind, Watch};

use crate::commands::shared::{bad_pack, submodules};
use crate::terminal::transferred::TransferCounter;
use crate::{CliError, Context, ExitCode};

/// Arguments of `clone`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The repository to clone: a URL or a path
    repository: Option<OsString>,
    /// The new directory
    directory: Option<OsString>,
    /// Surplus arguments
    #[arg(hide = true)]
    rest: Vec<OsString>,
    /// Be more verbose
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Show progress even if standard error is not a terminal
    #[arg(long)]
    progress: Option<bool>,
    /// Refuse a shallow source
    #[arg(long)]
    reject_shallow: Option<bool>,
    /// Check out only the files at the top
    #[arg(long)]
    sparse: bool,
    /// Do not check out files
    #[arg(long, short = 'n')]
    no_checkout: bool,
    /// Create a bare repository
    #[arg(long)]
    bare: bool,
    /// Copy all refs unchanged, and mirror them in later fetches
    #[arg(long)]
    mirror: bool,
    /// Link or copy the object files of a local repository
    #[arg(long, short)]
    local: Option<bool>,
    /// Copy object files of a local repository instead of linking them
    #[arg(long)]
    no_hardlinks: bool,
    /// Use the objects of a local repository without copying them
    #[arg(long, short)]
    shared: bool,
    /// Clone submodules, too
    #[arg(long, alias = "recursive", value_name = "PATHSPEC", num_args = 0..=1, default_missing_value = ".")]
    recurse_submodules: Vec<OsString>,
    /// Number of submodules to clone at once
    #[arg(long, short, value_name = "N")]
    jobs: Option<OsString>,
    /// The directory of templates for new repositories
    #[arg(long, value_name = "DIRECTORY")]
    template: Option<OsString>,
    /// A local repository whose objects may be used
    #[arg(long, value_name = "REPOSITORY")]
    reference: Vec<PathBuf>,
    /// Like --reference, but without an error if it is missing
    #[arg(long, value_name = "REPOSITORY")]
    reference_if_able: Vec<PathBuf>,
    /// The name of the remote
    #[arg(long, short, value_name = "NAME")]
    origin: Option<OsString>,
    /// Check out this branch instead of the remote's HEAD
    #[arg(long, short, value_name = "BRANCH")]
    branch: Option<OsString>,
    /// Fetch only this revision, and detach HEAD there
    #[arg(long, value_name = "REVISION")]
    revision: Option<OsString>,
    /// The program that serves on the remote side
    #[arg(long, short, value_name = "PATH")]
    upload_pack: Option<OsString>,
    /// Fetch only this many commits of each branch
    #[arg(long, value_name = "DEPTH")]
    depth: Option<String>,
    /// Fetch only commits newer than this
    #[arg(long, value_name = "TIME")]
    shallow_since: Option<String>,
    /// Exclude commits reachable from this ref
    #[arg(long, value_name = "REF")]
    shallow_exclude: Vec<OsString>,
    /// Fetch only one branch
    #[arg(long)]
    single_branch: Option<bool>,
    /// Fetch no tags
    #[arg(long)]
    no_tags: bool,
    /// Clone submodules with a depth of 1
    #[arg(long)]
    shallow_submodules: Option<bool>,
    /// Directory for the repository, separate from its worktree
    #[arg(long, value_name = "DIRECTORY")]
    separate_git_dir: Option<PathBuf>,
    /// The storage of refs: files or reftable
    #[arg(long, value_name = "FORMAT")]
    ref_format: Option<OsString>,
    /// A configuration variable for the new repository
    #[arg(long, short, value_name = "KEY=VALUE")]
    config: Vec<OsString>,
    /// A value for the hooks of the remote side
    #[arg(long, value_name = "VALUE")]
    server_option: Vec<OsString>,
    /// Omit these objects until they are needed
    #[arg(long, value_name = "FILTER")]
    filter: Option<OsString>,
    /// A bundle, or a list of bundles, to start from
    #[arg(long, value_name = "URI")]
    bundle_uri: Option<OsString>,
    /// Use only IPv4 addresses
    #[arg(long, short = '4', overrides_with = "ipv6")]
    ipv4: bool,
    /// Use only IPv6 addresses
    #[arg(long, short = '6', overrides_with = "ipv4")]
    ipv6: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if !args.rest.is_empty() {
        return Err(CliError::fatal("Too many arguments.").with_code(ExitCode::USAGE));
    }
    let Some(source) = &args.repository else {
        let message = "You must specify a repository to clone.";
        return Err(CliError::fatal(message).with_code(ExitCode::USAGE));
    };
    let environment = context.environment()?;
    if environment.get("GIT_WORK_TREE").is_some() {
        return Err(CliError::unsupported("'clone' with GIT_WORK_TREE set"));
    }
    check_settings(args, &environment, context)?;
    let options = options::options(args, context)?;
    let source = source.as_bytes();
    refuse_empty_names(args, &environment)?;
    if args.verbose > 0 && source.starts_with(b"git://") {
        return Err(CliError::unsupported("'clone --verbose' with a git:// URL"));
    }
    let directory = match &args.directory {
        Some(directory) => trimmed(directory),
        None => {
            let bare = args.bare || args.mirror;
            path::from_bytes(&match clone::is_bundle(source.into(), &environment) {
                true => clone::guess_directory_of_bundle(source.into(), bare)?,
                false => clone::guess_directory(source.into(), bare)?,
            })
        }
    };
    check_remotes(args, &directory, &environment, context)?;
    let counter = TransferCounter::new(context.progress(args.progress, args.quiet));
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt).with_shared_progress(counter.clone());
    let cloned = clone::clone(source.into(), &directory, &options, &environment, &watch);
    let received = counter.take();
    let mut outcome = cloned.map_err(|error| failure(error, context))?;
    outcome.repository = context.receive_notices(outcome.repository);
    context.trace_new_repository(outcome.repository.config());
    report(args, &outcome, context);
    if !args.json {
        return finish(args, &outcome, context);
    }
    let fields = document::fields(&outcome, received, context)?;
    let finished = finish(args, &outcome, context);
    context.print_document(fields)?;
    finished
}

/// Returns the error of a clone, after printing the messages that precede it in Git.
fn failure(error: pronto::Error, context: &mut Context) -> CliError {
    match error.kind() {
        ErrorKind::Bundle => {
            bad_pack::report_bundle(&error, context);
            CliError::fatal("remote transport reported error").caused_by(error.kind())
        }
        ErrorKind::Incomplete => {
            bad_pack::report_absent(&error, context);
            CliError::fatal(error.message()).caused_by(error.kind())
        }
        _ => bad_pack::refused(error, "fetch-pack: invalid index-pack output", context),
    }
}

/// Runs the hooks and clones the submodules, if the checkout succeeded. Returns the exit code.
fn finish(args: &Args, outcome: &Outcome, context: &mut Context) -> Result<ExitCode, CliError> {
    if outcome.checkout_failed {
        context.warn(
            "Clone succeeded, but checkout failed.\n\
             You can inspect what was checked out with 'git status'\n\
             and retry with 'git restore --source=HEAD :/'\n",
        );
        return Err(CliError::silent(ExitCode::FATAL));
    }
    let mut code = match outcome.run_hooks()? {
        Some(status) => ExitCode::new(u8::try_from(status).unwrap_or(1)),
        None => ExitCode::SUCCESS,
    };
    if !args.recurse_submodules.is_empty() && !args.no_checkout && outcome.has_submodules {
        code = update_submodules(args, outcome, context)?.unwrap_or(code);
    }
    Ok(code)
}

/// Refuses empty paths. An empty path does not name the current directory.
fn refuse_empty_names(args: &Args, environment: &Environment) -> Result<(), CliError> {
    let is_empty = |name: &Option<OsString>| name.as_ref().is_some_and(|name| name.is_empty());
    if is_empty(&args.repository) {
        // `.git` appended to an empty name gives the repository of the current directory.
        let message = match environment.working_dir().join(".git").exists() {
            true => "The empty string is not a valid path",
            false => "repository '' does not exist",
        };
        return Err(CliError::fatal(message));
    }
    if is_empty(&args.directory) {
        let source = args.repository.as_deref().unwrap_or_default();
        clone::check_source(source.as_bytes().into(), environment)?;
        let message = match args.bare || args.mirror {
            true => "The empty string is not a valid path",
            false => "could not create work tree dir '': No such file or directory",
        };
        return Err(CliError::fatal(message));
    }
    Ok(())
}

/// Checks the existing configuration and the settings of `--config` before the clone starts.
fn check_settings(
    args: &Args,
    environment: &Environment,
    context: &Context,
) -> Result<(), CliError> {
    let mut environment = environment.clone();
    for setting in &args.config {
        let (key, value) = match setting.as_bytes().split_once_str(b"=") {
            Some((key, value)) => (key, Some(OsStr::from_bytes(value))),
            None => (setting.as_bytes(), None),
        };
        // The clone itself refuses an invalid key.
        if let Ok(key) = pronto::config::canonical(key.as_bstr()) {
            if key.starts_with(b"extensions.") {
                return Err(CliError::unsupported("'clone -c' with an 'extensions' key"));
            }
            environment.add_config_parameter(&key.to_str_lossy(), value);
        }
    }
    let config = pronto::config::without_repository(&environment)?;
    context.check_config(&config, &environment)
}

/// Checks the settings of remotes, which Git reads after it has created the new repository.
fn check_remotes(
    args: &Args,
    directory: &Path,
    environment: &Environment,
    context: &mut Context,
) -> Result<(), CliError> {
    let config = pronto::config::without_repository(environment)?;
    let checked = context.check_remotes(&config);
    if checked.is_err() && !args.quiet {
        let what = match args.bare || args.mirror {
            true => "bare repository ",
            false => "",
        };
        context.remark(&format!("Cloning into {what}'{}'...", directory.display()));
    }
    checked
}

/// Returns the path without trailing slashes.
fn trimmed(directory: &OsStr) -> PathBuf {
    let mut bytes = directory.as_bytes();
    while let [rest @ .., b'/'] = bytes
        && !rest.is_empty()
    {
        bytes = rest;
    }
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn bytes(text: &OsString) -> Vec<u8> {
    text.clone().into_vec()
}

/// Refuses invalid combinations of options.
fn check(args: &Args) -> Result<(), CliError> {
    let together = |first: &str, second: &str| {
        let message = format!("options '{first}' and '{second}' cannot be used together");
        Err(CliError::fatal(message))
    };
    let is_bare = args.bare || args.mirror;
    if args.bundle_uri.is_some()
        && (args.depth.is_some()
            || args.shallow_since.is_some()
            || !args.shallow_exclude.is_empty())
    {
        let limits = "--depth/--shallow-since/--shallow-exclude";
        return together("--bundle-uri", limits);
    }
    if args.separate_git_dir.is_some() && is_bare {
        return together("--bare", "--separate-git-dir");
    }
    if args.revision.is_some() && args.branch.is_some() {
        return together("--revision", "--branch");
    }
    if args.revision.is_some() && args.mirror {
        return together("--revision", "--mirror");
    }
    if args.sparse && is_bare {
        let what = "'clone --sparse' without a worktree";
        return Err(CliError::unsupported(what));
    }
    Ok(())
}

fn report(args: &Args, outcome: &Outcome, context: &mut Context) {
    let is_last = |warning: &&CloneWarning| matches!(warning, CloneWarning::NotACommit { .. });
    for warning in outcome.warnings.iter().filter(|warning| !is_last(warning)) {
        context.warn(&warning.to_string());
    }
    context.report_warnings();
    if outcome.was_local && !args.quiet {
        context.remark("done.");
    }
    for missing in &outcome.missing_references {
        let shown = missing.display();
        context.remark(&format!(
            "info: Could not add alternate for '{shown}': reference repository '{shown}' is not a \
             local repository."
        ));
    }
    for warning in outcome.warnings.iter().filter(is_last) {
        context.warn(&warning.to_string());
    }
    report_checkout(outcome, context);
    let config = outcome.repository.config();
    let advise =
        context.wants_advice() && config.bool_or("advice.detachedhead", true).unwrap_or(true);
    if let Some(id) = outcome.detached.filter(|_| advise && !args.no_checkout) {
        context.remark(&format!(
            "Note: switching to '{id}'.\n\n\
             You are in 'detached HEAD' state. You can look around, make experimental\n\
             changes and commit them, and you can discard any commits you make in this\n\
             state without impacting any branches by switching back to a branch.\n\n\
             If you want to create a new branch to retain commits you create, you may\n\
             do so (now or later) by using -c with the switch command. Example:\n\n  \
             git switch -c <new-branch-name>\n\n\
             Or undo this operation with:\n\n  \
             git switch -\n\n\
             Turn off this advice by setting config variable advice.detachedHead to false\n"
        ));
    }
}

/// Prints the warnings and failures of the checkout.
fn report_checkout(outcome: &Outcome, context: &mut Context) {
    let done = &outcome.checkout;
    for warning in &done.warnings {
        match warning.is_error() {
            true => context.report_error(&warning.to_string()),
            false => context.warn(&warning.to_string()),
        }
    }
    for failure in &done.failed {
        context.report_error(&failure.error.to_string());
    }
    if !done.collided.is_empty() {
        context.warn(&collision_warning(&done.collided));
    }
    match &outcome.checkout_error {
        Some(error) if error.kind() != ErrorKind::Hostile => {
            context.remark(&format!("fatal: {error}"));
            return;
        }
        Some(error) => context.report_error(&error.to_string()),
        None => {}
    }
    if outcome.checkout_failed {
        context.remark("fatal: unable to checkout working tree");
    }
}

/// Returns the warning about paths that collide on a case-insensitive file system, so that the
/// worktree has only one of them.
fn collision_warning(paths: &[BString]) -> String {
    let mut text = String::from(
        "the following paths have collided (e.g. case-sensitive paths\n\
         on a case-insensitive filesystem) and only one from the same\n\
         colliding group is in the working tree:\n",
    );
    for path in paths {
        text.push_str(&format!("\n  '{path}'"));
    }
    text
}

/// Runs git to clone the submodules. Returns the exit code of git if it failed.
fn update_submodules(
    args: &Args,
    outcome: &Outcome,
    context: &Context,
) -> Result<Option<ExitCode>, CliError> {
    let top = outcome.repository.work_tree().unwrap_or(Path::new("."));
    let mut arguments: Vec<OsString> = vec!["--require-init".into()];
    let given = [
        ("--quiet", args.quiet),
        (
            "--progress",
            context.shows_progress(args.progress, args.quiet),
        ),
        ("--depth=1", args.shallow_submodules == Some(true)),
        ("--single-branch", args.single_branch == Some(true)),
    ];
    let given = given.iter().filter(|(_, given)| *given);
    arguments.extend(given.map(|(option, _)| (*option).into()));
    if let Some(jobs) = &args.jobs {
        arguments.extend(["--jobs".into(), jobs.into()]);
    }
    if let Some(format) = &args.ref_format {
        let mut option = OsString::from("--ref-format=");
        option.push(format);
        arguments.push(option);
    }
    let made = "the repository was cloned, but its submodules were not";
    submodules::update(top, &arguments, made, context)
}

//! `init`: create a repository.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};

use bstr::{BStr, ByteSlice};
use pronto::init::{Options, Outcome, TemplateSource, shared};
use pronto::repository::{RefStorage, hash_named};
use pronto::{Environment, Repository, path};
use pronto_hash::Kind;

use crate::{CliError, Context, ExitCode};

/// Arguments of `init`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
    /// Create a bare repository
    #[arg(long)]
    bare: bool,
    /// Copy the templates in this directory
    #[arg(long, value_name = "DIRECTORY")]
    template: Option<OsString>,
    /// Store the repository there, and a file that points to it in the worktree
    #[arg(long, value_name = "DIRECTORY")]
    separate_git_dir: Option<OsString>,
    /// The hash function: sha1 or sha256
    #[arg(long, value_name = "FORMAT")]
    object_format: Option<OsString>,
    /// The storage of refs: files or reftable
    #[arg(long, value_name = "FORMAT")]
    ref_format: Option<OsString>,
    /// The name of the first branch
    #[arg(long, short = 'b', value_name = "NAME")]
    initial_branch: Option<OsString>,
    /// Share the repository with a group or all users
    #[arg(long, num_args = 0..=1, default_missing_value = "group", value_name = "PERMISSIONS")]
    shared: Option<OsString>,
    /// The directory for the repository
    directory: Option<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let mut environment = context.environment()?;
    let config = pronto::config::without_repository(&environment)?;
    context.check_config(&config, &environment)?;
    let is_bare = args.bare || environment.is_treated_as_bare();
    if args.separate_git_dir.is_some() && is_bare {
        let message = "options '--separate-git-dir' and '--bare' cannot be used together";
        return Err(CliError::fatal(message));
    }
    if args
        .separate_git_dir
        .as_ref()
        .is_some_and(|path| path.is_empty())
    {
        let message = "The empty string is not a valid path";
        return Err(CliError::fatal(message));
    }
    let mut options = options(args, &environment)?;
    if let Some(directory) = &args.directory {
        enter(Path::new(directory), &mut environment)?;
    }
    options.object_hash = object_hash(args)?;
    options.ref_storage = ref_storage(args.ref_format.as_deref())?;
    let mut git_dir = choose_git_dir(args, is_bare, &environment)?;
    if options.separate_git_dir.is_some()
        && let Some(shared) = shared_git_dir(&git_dir, &environment)?
    {
        let top = shared
            .to_string_lossy()
            .ends_with("/.git")
            .then(|| shared.parent());
        environment.set_current_dir(top.flatten().unwrap_or(&shared).to_owned());
        git_dir = shared;
    }
    let is_bare = is_bare || looks_bare(&git_dir, &environment);
    if is_bare && args.separate_git_dir.is_some() {
        return Err(CliError::fatal(
            "--separate-git-dir incompatible with bare repository",
        ));
    }
    options.work_tree = work_tree(&git_dir, is_bare, &environment);
    if let Some(top) = options.work_tree.as_ref().filter(|top| !top.is_dir()) {
        let message = format!(
            "Cannot access work tree '{}': No such file or directory",
            top.display()
        );
        return Err(CliError::fatal(message));
    }
    check_existing(&git_dir, &environment, context)?;
    options.notices = context.notices().into();
    let outcome = Repository::init(&git_dir, &options, &environment).map_err(CliError::of)?;
    context.report_warnings();
    if outcome.existed
        && let Some(branch) = &args.initial_branch
    {
        let branch = branch.to_string_lossy();
        context.warn(&format!("re-init: ignored --initial-branch={branch}"));
    }
    if args.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(branch) = &outcome.unchosen_branch {
        let advice = branch_advice(branch.as_bstr());
        let config = outcome.repository.config();
        context.advise(config, "defaultBranchName", &advice);
    }
    print(&outcome, context)?;
    Ok(ExitCode::SUCCESS)
}

/// Checks the settings of an existing repository before anything changes.
fn check_existing(
    git_dir: &Path,
    environment: &Environment,
    context: &Context,
) -> Result<(), CliError> {
    match Repository::open(git_dir, environment) {
        Ok(found) => context.check_found(&found),
        Err(_) => {
            let config = pronto::config::without_repository(environment)?;
            context.repeat_warnings(&config, 1, false);
            Ok(())
        }
    }
}

/// Prints which repository was created or reinitialized.
fn print(outcome: &Outcome, context: &mut Context) -> Result<(), CliError> {
    let what = match (outcome.existed, outcome.is_shared) {
        (true, true) => "Reinitialized existing shared Git repository in ",
        (true, false) => "Reinitialized existing Git repository in ",
        (false, true) => "Initialized empty shared Git repository in ",
        (false, false) => "Initialized empty Git repository in ",
    };
    context.out.write_all(what.as_bytes())?;
    context
        .out
        .write_all(path::as_bytes(outcome.repository.git_dir()))?;
    context.out.write_all(b"/\n")?;
    Ok(())
}

fn object_hash(args: &Args) -> Result<Option<Kind>, CliError> {
    let Some(name) = &args.object_format else {
        return Ok(None);
    };
    match hash_named(name.as_encoded_bytes().as_bstr()) {
        Some(kind) => Ok(Some(kind)),
        None => {
            let name = name.to_string_lossy();
            Err(CliError::fatal(format!("unknown hash algorithm '{name}'")))
        }
    }
}

/// Returns the ref storage format of `--ref-format`.
pub(super) fn ref_storage(name: Option<&OsStr>) -> Result<Option<RefStorage>, CliError> {
    let Some(name) = name else {
        return Ok(None);
    };
    let name = name.as_encoded_bytes().as_bstr();
    match RefStorage::named(name) {
        Some(storage) => Ok(Some(storage)),
        None => Err(CliError::fatal(format!(
            "unknown ref storage format '{name}'"
        ))),
    }
}

fn options(args: &Args, environment: &Environment) -> Result<Options, CliError> {
    let sharing = match &args.shared {
        Some(text) => Some(shared::parse(
            Some(text.as_encoded_bytes().as_bstr()),
            "arg",
        )?),
        None => None,
    };
    let mut options = Options::default();
    options.work_tree = None;
    options.template = match &args.template {
        None => TemplateSource::Configured,
        Some(path) if path.is_empty() => TemplateSource::None,
        Some(path) => TemplateSource::Directory(environment.absolute(path)),
    };
    options.object_hash = None;
    options.ref_storage = None;
    options.initial_branch = args
        .initial_branch
        .as_ref()
        .map(|name| name.as_encoded_bytes().into());
    options.shared = sharing;
    options.separate_git_dir = args
        .separate_git_dir
        .as_ref()
        .map(|path| environment.absolute(path));
    Ok(options)
}

/// Creates `directory` if necessary, and makes paths relative to it from here on.
fn enter(directory: &Path, environment: &mut Environment) -> Result<(), CliError> {
    let full = environment.absolute(directory);
    let said = directory.display();
    if directory.as_os_str().is_empty() {
        // An empty path does not name the current directory.
        let message = "cannot mkdir : No such file or directory";
        return Err(CliError::fatal(message));
    }
    if !full.is_dir() {
        std::fs::create_dir_all(&full).map_err(|error| {
            let reason = match error.kind() {
                std::io::ErrorKind::NotADirectory => "File exists".to_owned(),
                _ => pronto_io::error::reason(&error),
            };
            CliError::fatal(format!("cannot mkdir {said}: {reason}"))
        })?;
    }
    let real = std::fs::canonicalize(&full)
        .map_err(|_| CliError::fatal(format!("cannot chdir to {said}")))?;
    environment.set_current_dir(real);
    Ok(())
}

fn choose_git_dir(args: &Args, bare: bool, environment: &Environment) -> Result<PathBuf, CliError> {
    let given = environment.path("GIT_DIR");
    if environment.get("GIT_WORK_TREE").is_some() && (given.is_none() || args.bare) {
        return Err(CliError::fatal(
            "GIT_WORK_TREE (or --work-tree=<directory>) not allowed without specifying GIT_DIR \
             (or --git-dir=<directory>)",
        ));
    }
    let here = environment.current_dir();
    Ok(match given {
        Some(_) if bare && args.directory.is_some() => here.to_owned(),
        Some(given) => given.to_owned(),
        None if bare => here.to_owned(),
        None => PathBuf::from(".git"),
    })
}

/// Returns the main repository if `git_dir` is a file of a linked worktree. That repository is the
/// one to move (`--separate-git-dir`).
fn shared_git_dir(git_dir: &Path, environment: &Environment) -> Result<Option<PathBuf>, CliError> {
    if !environment.absolute(git_dir).is_file() {
        return Ok(None);
    }
    let target =
        Repository::resolve_git_dir(path::as_bytes(&environment.absolute(git_dir)), environment)?;
    let Some(target) = target else {
        return Ok(None);
    };
    let found = Repository::open(&target, environment).map_err(CliError::of)?;
    let is_linked = found.common_dir() != found.git_dir();
    Ok(is_linked.then(|| found.common_dir().to_owned()))
}

/// Returns whether a repository at this path is bare by default.
fn looks_bare(git_dir: &Path, environment: &Environment) -> bool {
    git_dir == Path::new(".")
        || git_dir == environment.current_dir()
        || git_dir.file_name() != Some(OsStr::new(".git"))
}

fn work_tree(git_dir: &Path, is_bare: bool, environment: &Environment) -> Option<PathBuf> {
    if let Some(named) = environment.path("GIT_WORK_TREE") {
        return Some(environment.absolute(named));
    }
    if is_bare {
        return None;
    }
    let full = environment.absolute(git_dir);
    Some(
        full.parent()
            .unwrap_or(environment.current_dir())
            .to_owned(),
    )
}

/// Returns the advice for a user who did not choose the name of the first branch.
fn branch_advice(name: &BStr) -> String {
    format!(
        "Using '{name}' as the name for the initial branch. This default branch name\n\
         will change to \"main\" in Git 3.0. To configure the initial branch name\n\
         to use in all of your new repositories, which will suppress this warning,\n\
         call:\n\n\
         \tgit config --global init.defaultBranch <name>\n\n\
         Names commonly chosen instead of 'master' are 'main', 'trunk' and\n\
         'development'. The just-created branch can be renamed via this command:\n\n\
         \tgit branch -m <name>\n"
    )
}

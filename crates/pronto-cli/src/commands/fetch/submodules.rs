//! `fetch --recurse-submodules`: fetches in submodules after the fetch in the superproject.

mod children;

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};
use pronto::config::{Config, value};
use pronto::fetch::{Options, Outcome};
use pronto::remote::{AddressFamily, Remote};
use pronto::submodules::{FetchRecursion, FetchStep, FetchTask, Fetching};
use pronto::{ObjectId, Repository, Watch};

use super::Args;
use crate::{CliError, Context};
use children::FetchProcess;

/// The treatment of submodules by a fetch.
pub(super) struct SubmoduleTreatment {
    /// The recursion mode for all submodules, from the command line or `fetch.recurseSubmodules`.
    all: Option<FetchRecursion>,
    /// The recursion mode for submodules without a setting (`--recurse-submodules-default`).
    default: FetchRecursion,
    /// The number of submodules that are fetched in parallel (`--jobs`, `submodule.fetchJobs`).
    jobs: usize,
    /// The values of the refs of the superproject before the fetch.
    before: Vec<ObjectId>,
    /// The path of this repository below the top superproject, with a slash at the end
    /// (`--submodule-prefix`).
    prefix: OsString,
}

impl SubmoduleTreatment {
    /// Reads the arguments and settings. It must be called before refs change.
    ///
    /// # Errors
    /// Fails if an argument or setting is malformed, or if options exclude each other.
    pub(super) fn choose(args: &Args, repository: &Repository) -> Result<Self, CliError> {
        let config = repository.config();
        let has_modules = |top: &std::path::Path| top.join(".gitmodules").exists();
        if args.update_shallow && repository.work_tree().is_some_and(has_modules) {
            return Err(CliError::unsupported(
                "'fetch --update-shallow' in a repository with submodules",
            ));
        }
        let given = args.recurse_submodules.as_deref();
        let given =
            given.map(|text| FetchRecursion::parse("recurse-submodules", Some(text.into())));
        let given = given.transpose()?;
        if args.negotiate_only && given.is_some_and(|given| given != FetchRecursion::Off) {
            let message =
                "options '--negotiate-only' and '--recurse-submodules' cannot be used together";
            return Err(CliError::fatal(message));
        }
        let mut all = given.or(configured(config)?);
        if all.is_none() && (args.porcelain || args.json) {
            all = Some(FetchRecursion::Off);
        }
        let default = args.recurse_submodules_default.as_deref();
        let default = default
            .map(|text| FetchRecursion::parse("--recurse-submodules-default", Some(text.into())));
        let mut modules = SubmoduleTreatment {
            all,
            default: default.transpose()?.unwrap_or_default(),
            jobs: 1,
            before: Vec::new(),
            prefix: args.submodule_prefix.clone().unwrap_or_default(),
        };
        if modules.is_off() || repository.work_tree().is_none() {
            modules.all = Some(FetchRecursion::Off);
            return Ok(modules);
        }
        modules.jobs = jobs(args, config)?;
        repository.refs().for_each("refs/", |reference| {
            modules.before.push(reference.id);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(modules)
    }

    fn is_off(&self) -> bool {
        self.all == Some(FetchRecursion::Off)
    }

    /// Fetches in the submodules that are affected by `outcome`, the result of a fetch from
    /// `remote`. Returns whether a fetch failed.
    pub(super) fn fetch(
        &self,
        args: &Args,
        options: &Options,
        remote: &Remote,
        outcome: &Outcome,
        context: &mut Context,
    ) -> Result<bool, CliError> {
        if self.is_off() {
            return Ok(false);
        }
        let repository = context.repository()?;
        let after: Vec<ObjectId> = outcome
            .updates
            .iter()
            .filter(|update| update.old != update.new && !update.new.is_null())
            .map(|update| update.new)
            .collect();
        let fetching = Fetching {
            all: self.all,
            default: self.default,
            before: &self.before,
            after: &after,
        };
        let interrupt = context.interrupt.clone();
        let steps = fetching.steps(&repository, &Watch::from(&interrupt));
        let steps = steps.map_err(fatal)?;
        if steps.is_empty() {
            return Ok(false);
        }
        let words = words(self.all, args, options, remote, repository.config())?;
        let mut run = SubmoduleFetch {
            modules: self,
            repository: &repository,
            words,
            is_quiet: args.quiet,
            is_failed: false,
            failed: Vec::new(),
        };
        run.all(steps, context)?;
        if !run.failed.is_empty() {
            let mut text = BString::from("Errors during submodule fetch:\n");
            for name in &run.failed {
                text.push(b'\t');
                text.extend_from_slice(name);
                text.push(b'\n');
            }
            context.remark(text.to_string().trim_end());
        }
        Ok(run.is_failed)
    }
}

/// The fetches in submodules after one fetch in the superproject.
struct SubmoduleFetch<'a> {
    modules: &'a SubmoduleTreatment,
    repository: &'a Repository,
    /// The arguments that all child processes share.
    words: Vec<OsString>,
    is_quiet: bool,
    is_failed: bool,
    /// The names of the submodules whose fetch failed.
    failed: Vec<BString>,
}

impl SubmoduleFetch<'_> {
    fn all(&mut self, steps: Vec<FetchStep>, context: &mut Context) -> Result<(), CliError> {
        let (mut tasks, mut children) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                FetchStep::Collision(collision) => context.warn(&collision.to_string()),
                FetchStep::Inaccessible { path, by } => {
                    let mut child = FetchProcess::default();
                    let at = self.at(by)?;
                    self.is_failed |= by.is_none();
                    child.message = Some(format!("Could not access submodule '{path}'{at}"));
                    children.push(child);
                }
                FetchStep::Fetch(task) => {
                    let mut child = self.child(&task, &[], context)?;
                    if !self.is_quiet {
                        let (prefix, at) =
                            (self.modules.prefix.to_string_lossy(), self.at(task.by)?);
                        let path = &task.path;
                        child.message = Some(format!("Fetching submodule {prefix}{path}{at}"));
                    }
                    child.task = Some(tasks.len());
                    tasks.push(task);
                    children.push(child);
                }
            }
        }
        self.run(children, &tasks, context)?;
        // A commit that is not reachable from a ref of the submodule is fetched by its id.
        let mut again = Vec::new();
        for (number, task) in tasks.iter().enumerate() {
            let missing = task.missing(self.repository).map_err(fatal)?;
            if missing.is_empty() {
                continue;
            }
            let mut last = vec![task.remote(self.repository).map_err(fatal)?];
            last.extend(missing.iter().map(|id| BString::from(id.to_string())));
            let mut child = self.child(task, &last, context)?;
            child.task = Some(number);
            again.push(child);
        }
        self.run(again, &tasks, context)
    }

    /// Returns the end of a message about a submodule that only the commit `by` records.
    fn at(&self, by: Option<ObjectId>) -> Result<String, CliError> {
        Ok(match by {
            Some(by) => format!(" at commit {}", self.repository.abbreviate(&by)?),
            None => String::new(),
        })
    }

    /// Returns the process that fetches the submodule of `task`, with `last` as its last arguments.
    fn child(
        &self,
        task: &FetchTask,
        last: &[BString],
        context: &Context,
    ) -> Result<FetchProcess, CliError> {
        let mut prefix = OsString::from("--submodule-prefix=");
        prefix.push(&self.modules.prefix);
        prefix.push(OsStr::from_bytes(&task.path));
        prefix.push("/");
        let default = if task.is_forced { "yes" } else { "on-demand" };
        let mut command = children::command(&task.git_dir, context)?;
        if task.by.is_some() {
            // The worktree of the submodule may be missing.
            command.arg("--work-tree=.");
        }
        command
            .arg("fetch")
            .args(&self.words)
            .args(["--recurse-submodules-default", default])
            .arg(prefix)
            .args(last.iter().map(|word| OsStr::from_bytes(word)));
        Ok(FetchProcess {
            command: Some(command),
            ..FetchProcess::default()
        })
    }

    fn run(
        &mut self,
        children: Vec<FetchProcess>,
        tasks: &[FetchTask],
        context: &mut Context,
    ) -> Result<(), CliError> {
        for number in children::run(children, self.modules.jobs, context)? {
            self.is_failed = true;
            self.failed
                .extend(tasks.get(number).map(|task| task.name.clone()));
        }
        Ok(())
    }
}

/// Converts the error of a submodule that cannot be examined. The call is not handed to git,
/// because the superproject has been fetched.
fn fatal(error: pronto::Error) -> CliError {
    match error.kind() {
        pronto::ErrorKind::Unsupported => CliError::fatal(error.to_string()),
        _ => CliError::of(error),
    }
}

/// Returns the configured recursion mode for all submodules: the later of `submodule.recurse` and
/// `fetch.recurseSubmodules`.
fn configured(config: &Config) -> Result<Option<FetchRecursion>, CliError> {
    let mut found = None;
    for entry in config.iter() {
        match entry.key.as_bytes() {
            b"fetch.recursesubmodules" => {
                let key = entry.key.to_string();
                found = Some(FetchRecursion::parse(&key, entry.value)?);
            }
            b"submodule.recurse" => match value::parse_bool(entry.value) {
                Some(true) => found = Some(FetchRecursion::On),
                Some(false) => found = Some(FetchRecursion::Off),
                None => _ = config.bool("submodule.recurse")?,
            },
            _ => {}
        }
    }
    Ok(found)
}

/// Returns the number of submodules that are fetched in parallel.
fn jobs(args: &Args, config: &Config) -> Result<usize, CliError> {
    let given = args.jobs.as_ref().and_then(|text| text.parse::<i32>().ok());
    let mut jobs = given.filter(|jobs| *jobs >= 0);
    if jobs.is_none()
        && let Some(set) = config.i32("submodule.fetchjobs")?
    {
        if set < 0 {
            let message = "negative values not allowed for submodule.fetchJobs";
            return Err(CliError::fatal(message));
        }
        jobs = Some(set);
    }
    let jobs = match jobs {
        Some(jobs) => jobs,
        None => config.i32("fetch.parallel")?.unwrap_or(1),
    };
    Ok(match usize::try_from(jobs) {
        Ok(0) => std::thread::available_parallelism().map_or(1, usize::from),
        Ok(jobs) => jobs,
        Err(_) => 1,
    })
}

/// Returns the shared arguments of the fetches in submodules, in the order in which git passes
/// them.
fn words(
    all: Option<FetchRecursion>,
    args: &Args,
    options: &Options,
    remote: &Remote,
    config: &Config,
) -> Result<Vec<OsString>, CliError> {
    let decided = |given: Option<bool>, own: Option<bool>, key: &str| match given.or(own) {
        Some(decided) => Ok(decided),
        None => config.bool_or(key, false),
    };
    let prune = decided(args.prune, remote.prune, "fetch.prune")?;
    let prune_tags = decided(args.prune_tags, remote.prune_tags, "fetch.prunetags")?;
    let is_verbose = !args.quiet && args.verbose > 0;
    let given = [
        ("--dry-run", args.dry_run),
        ("--prune", prune),
        ("--no-prune", !prune),
        ("--prune-tags", prune_tags),
        ("--no-prune-tags", !prune_tags),
        ("--update-head-ok", args.update_head_ok),
        ("--force", args.force),
        ("--keep", args.keep),
        ("--recurse-submodules", all == Some(FetchRecursion::On)),
        (
            "--recurse-submodules=on-demand",
            all == Some(FetchRecursion::OnDemand),
        ),
        ("--tags", args.tags == Some(true)),
        ("--no-tags", args.tags == Some(false) || args.no_tags_short),
        ("-v", is_verbose && args.verbose > 1),
        ("-v", is_verbose),
        ("-q", args.quiet),
        ("--ipv4", options.settings.family == AddressFamily::V4),
        ("--ipv6", options.settings.family == AddressFamily::V6),
        ("--no-write-fetch-head", !options.write_fetch_head),
    ];
    let given = given.into_iter().filter(|(_, given)| *given);
    Ok(given.map(|(word, _)| word.into()).collect())
}

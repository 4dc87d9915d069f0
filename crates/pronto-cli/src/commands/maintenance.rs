//! `maintenance`: run or schedule the tasks that keep a repository fast.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bstr::ByteSlice;
use pronto::maintenance::{
    Frequency, MaintenanceList, MaintenanceTask, Occasion, Outcome, RunOptions, Scheduler,
    Schedules, Settings,
};
use pronto::{ErrorKind, Repository};

use crate::maintenance::{Background, BackgroundResult, Subprocesses, in_background};
use crate::{CliError, Context, ExitCode};

/// Arguments of `maintenance`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "TASKS: prefetch, loose-objects, incremental-repack, geometric-repack, gc, commit-graph, \
    pack-refs, reflog-expire, worktree-prune, rerere-gc.\n\nCONFIGURATION: `maintenance.*` and `gc.*` work as in git. \
    Commands that add objects start `run --auto` in the background if the repository needs it. A task that failed \
    or had no effect is not started again automatically until `gc.logExpiry` has passed; its errors are in `gc.log` \
    of the repository."
)]
pub(crate) struct Args {
    /// Run only tasks that the repository needs (run, is-needed)
    #[arg(long)]
    auto: bool,
    /// Continue in the background (run)
    #[arg(long)]
    detach: Option<bool>,
    /// Show no progress (run)
    #[arg(long)]
    quiet: Option<bool>,
    /// Run only tasks with this schedule: hourly, daily or weekly (run)
    #[arg(long, value_name = "FREQUENCY")]
    schedule: Option<OsString>,
    /// Run only this task (run, is-needed)
    #[arg(long, value_name = "TASK")]
    task: Vec<OsString>,
    /// The scheduler: auto, crontab, systemd-timer, launchctl or schtasks (start)
    #[arg(long, value_name = "SCHEDULER")]
    scheduler: Option<OsString>,
    /// The configuration file with the list of repositories (register, unregister)
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Do not fail if the repository is not registered (unregister)
    #[arg(short, long)]
    force: bool,
    /// `run`, `start`, `stop`, `register`, `unregister` or `is-needed`
    #[arg(value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// The permitted options of each subcommand, by name.
const OPTIONS: &[(&str, &[&str])] = &[
    ("run", &["auto", "detach", "quiet", "schedule", "task"]),
    ("start", &["scheduler"]),
    ("stop", &[]),
    ("register", &["config-file"]),
    ("unregister", &["config-file", "force"]),
    ("is-needed", &["auto", "task"]),
];

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let unsupported = || CliError::unsupported("this combination of arguments of 'maintenance'");
    let [command] = args.words.as_slice() else {
        return Err(unsupported());
    };
    let command = command.to_str().unwrap_or_default();
    // As in Git, the subcommand precedes its options.
    let is_first = context
        .arguments
        .first()
        .is_some_and(|first| first == command);
    let known = OPTIONS.iter().find(|(name, _)| *name == command);
    let Some((_, known)) = known.filter(|_| is_first) else {
        return Err(unsupported());
    };
    if !args.given().all(|given| known.contains(&given)) {
        return Err(unsupported());
    }
    match command {
        "run" => run_tasks(args, context),
        "is-needed" => is_needed(args, context),
        "start" => start(args, context),
        "stop" => {
            let repository = context.repository()?;
            let program = program()?;
            // A held lock has an exit code of its own.
            Ok(
                match schedule(
                    context,
                    pronto::maintenance::schedules(&repository, &program).stop(),
                )? {
                    true => ExitCode::SUCCESS,
                    false => ExitCode::new(255),
                },
            )
        }
        "register" => {
            let repository = context.repository()?;
            pronto::maintenance::register(&repository, &args.registration())?;
            Ok(ExitCode::SUCCESS)
        }
        _ => unregister(args, context),
    }
}

impl Args {
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("auto", self.auto),
            ("detach", self.detach.is_some()),
            ("quiet", self.quiet.is_some()),
            ("schedule", self.schedule.is_some()),
            ("task", !self.task.is_empty()),
            ("scheduler", self.scheduler.is_some()),
            ("config-file", self.config_file.is_some()),
            ("force", self.force),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(name, _)| name)
    }

    fn registration(&self) -> MaintenanceList {
        MaintenanceList {
            config_file: self.config_file.clone(),
        }
    }

    /// Returns the named tasks. git reports an invalid name.
    fn tasks(&self) -> Result<Vec<MaintenanceTask>, CliError> {
        let mut tasks: Vec<MaintenanceTask> = Vec::new();
        for name in &self.task {
            let task = MaintenanceTask::named(name.as_bytes().as_bstr());
            match task.filter(|task| !tasks.contains(task)) {
                Some(task) => tasks.push(task),
                None => return Err(CliError::unsupported("an unknown or repeated '--task'")),
            }
        }
        Ok(tasks)
    }
}

fn run_tasks(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let background = Background::of(context);
    let named = args.tasks()?;
    let schedule = match &args.schedule {
        Some(name) => Some(Frequency::named(name.as_bytes().as_bstr()).ok_or_else(|| {
            let name = name.to_string_lossy();
            CliError::fatal(format!("unrecognized --schedule argument '{name}'"))
        })?),
        None => None,
    };
    for (is_given, option) in [(args.auto, "--auto"), (!named.is_empty(), "--task=")] {
        if is_given && schedule.is_some() {
            let message = format!("options '{option}' and '--schedule=' cannot be used together");
            return Err(CliError::fatal(message));
        }
    }
    let repository = context.repository()?;
    let tasks = match named.is_empty() {
        true => pronto::maintenance::tasks(
            &repository,
            schedule.map_or(Occasion::Manual, Occasion::Scheduled),
        )
        .map_err(CliError::of)?,
        false => named,
    };
    let mut run = RunOptions::new(tasks, Settings::of(&repository).map_err(CliError::of)?);
    run.auto = args.auto;
    run.quiet = args
        .quiet
        .unwrap_or_else(|| !std::io::stderr().is_terminal());
    run.detach = background.is_none() && args.detach == Some(true);
    run.skips_foreground = background == Some(Background::Rest);
    run.is_automatic = background == Some(Background::Automatic);
    if run.is_automatic {
        return in_background(&repository, context, |context| {
            Ok(match maintain(&repository, &run, context)? {
                Outcome::Failed => BackgroundResult::Counts,
                Outcome::Busy(_) => BackgroundResult::Idle,
                _ => BackgroundResult::Passes,
            })
        });
    }
    Ok(match maintain(&repository, &run, context)? {
        Outcome::Failed => ExitCode::FAILURE,
        Outcome::Busy(target) => {
            if !run.auto && !run.quiet {
                let target = repository.display_path(&target);
                context.warn(&format!(
                    "lock file '{}' exists, skipping maintenance",
                    target.display()
                ));
            }
            ExitCode::SUCCESS
        }
        _ => ExitCode::SUCCESS,
    })
}

fn maintain(
    repository: &Repository,
    run: &RunOptions,
    context: &mut Context,
) -> Result<Outcome, CliError> {
    let mut rest: Vec<OsString> = ["maintenance", "run", "--no-detach"]
        .iter()
        .map(Into::into)
        .collect();
    rest.push(if run.quiet { "--quiet" } else { "--no-quiet" }.into());
    rest.extend(run.auto.then(|| "--auto".into()));
    let tasks = run.tasks.iter();
    rest.extend(tasks.map(|task| format!("--task={}", task.name()).into()));
    let mut runner = Subprocesses { context, rest };
    pronto::maintenance::maintain(repository, run, &mut runner).map_err(CliError::from)
}

fn is_needed(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let mut tasks = args.tasks()?;
    let repository = context.repository()?;
    let settings = Settings::of(&repository).map_err(CliError::of)?;
    if tasks.is_empty() {
        tasks = pronto::maintenance::tasks(&repository, Occasion::Manual)?;
    }
    let mut is_needed = !args.auto;
    for task in tasks {
        if !is_needed {
            is_needed = pronto::maintenance::is_needed(&repository, task, &settings)?;
        }
    }
    Ok(match is_needed {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn unregister(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    if !pronto::maintenance::unregister(&repository, &args.registration())? && !args.force {
        context.report();
        let place = pronto::maintenance::maintained_path(&repository)?;
        return Err(CliError::fatal(format!(
            "repository '{place}' is not registered"
        )));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the program that a scheduler starts.
fn program() -> Result<PathBuf, CliError> {
    crate::programs::own()
}

fn start(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let wanted = args
        .scheduler
        .as_ref()
        .map(|name| name.as_bytes().as_bstr());
    let wanted = match wanted.filter(|name| !name.eq_ignore_ascii_case(b"auto")) {
        // git reports an invalid name.
        Some(name) => Some(
            Scheduler::named(name)
                .ok_or_else(|| CliError::unsupported("this value of '--scheduler'"))?,
        ),
        None => None,
    };
    // Git accepts no negated options here.
    let is_plain = |word: &OsString| !word.as_bytes().starts_with(b"--no-");
    if !context.arguments.iter().all(is_plain) {
        return Err(CliError::unsupported(
            "this combination of arguments of 'maintenance'",
        ));
    }
    let repository = context.repository()?;
    let program = program()?;
    let schedules = pronto::maintenance::schedules(&repository, &program);
    let started = begin(&schedules, wanted);
    if !schedule(context, started)? {
        return Err(CliError::fatal("failed to set up maintenance schedule"));
    }
    pronto::maintenance::register(&repository, &MaintenanceList::default())?;
    Ok(ExitCode::SUCCESS)
}

fn begin(schedules: &Schedules<'_>, wanted: Option<Scheduler>) -> Result<(), pronto::Error> {
    let scheduler = wanted.map_or_else(|| schedules.choose(), Ok)?;
    schedules.start(scheduler)
}

/// Reports the error of a scheduler. Returns whether the scheduling succeeded.
fn schedule(context: &mut Context, done: Result<(), pronto::Error>) -> Result<bool, CliError> {
    context.report();
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Refused => {
            context.report_error(&error.to_string());
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

//! `fsmonitor--daemon`: the monitor that reports changes in the worktree to other commands.

use crate::{CliError, Context, ExitCode};
use pronto::Repository;
use std::ffi::OsString;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The usage of the command.
const USAGE: &str = "\
usage: git fsmonitor--daemon start [<options>]
   or: git fsmonitor--daemon run [<options>]
   or: git fsmonitor--daemon stop
   or: git fsmonitor--daemon status

    --[no-]detach         detach from console
    --[no-]ipc-threads <n>
                          use <n> ipc worker threads
    --[no-]start-timeout <n>
                          max seconds to wait for background daemon startup

";

/// The interval between checks whether the monitor accepts connections.
const PAUSE: Duration = Duration::from_millis(5);
const START_SECONDS: u64 = 60;
const STOP_SECONDS: u64 = 60;

/// Arguments of `fsmonitor--daemon`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "CONFIGURATION: `fsmonitor.source` selects the source of changes: `fanotify` watches whole \
    file systems and needs the capabilities CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH; `inotify` watches each directory, \
    and the system limits their number (fs.inotify.max_user_watches); `auto`, the default, uses fanotify if it is \
    permitted. A repository on a network file system is watched only if `fsmonitor.allowRemote` is true. Changes by \
    other machines are not noticed there, and the socket of the monitor is in the directory `fsmonitor.socketDir`, by \
    default the home directory."
)]
pub(crate) struct Args {
    /// Detach from the console
    #[arg(long)]
    detach: bool,
    /// Accepted for compatibility: each client has a thread
    #[arg(long, value_name = "N")]
    ipc_threads: Option<u32>,
    /// Seconds to wait for the start
    #[arg(long, value_name = "SECONDS")]
    start_timeout: Option<u64>,
    /// start, run, stop or status
    #[arg(value_name = "COMMAND")]
    command: Option<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let command = args.command.as_ref().and_then(|command| command.to_str());
    let Some(command @ ("start" | "run" | "stop" | "status")) = command else {
        crate::terminal::text::write_to_stderr(USAGE);
        return Err(CliError::silent(ExitCode::USAGE));
    };
    let repository = context.repository()?;
    if repository.require_work_tree().is_err() {
        return Err(CliError::fatal("this operation must be run in a work tree"));
    }
    match command {
        "start" => start(args, &repository),
        "run" => watch(args, &repository),
        "stop" => stop(&repository),
        _ => status(&repository, context),
    }
}

fn top(repository: &Repository) -> String {
    let top = repository.work_tree().unwrap_or(repository.git_dir());
    top.display().to_string()
}

fn refuse_second(repository: &Repository) -> Result<(), CliError> {
    if pronto::monitor::is_listening(repository) {
        let message = format!("fsmonitor--daemon is already running '{}'", top(repository));
        return Err(CliError::fatal(message));
    }
    Ok(())
}

fn start(args: &Args, repository: &Repository) -> Result<ExitCode, CliError> {
    refuse_second(repository)?;
    let program = crate::programs::own()?;
    let mut child = pronto_io::child::command(program)
        .args(["fsmonitor--daemon", "run", "--detach"])
        .current_dir(repository.require_work_tree()?)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let seconds = args.start_timeout.unwrap_or(START_SECONDS);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(seconds) {
        if pronto::monitor::is_listening(repository) {
            return Ok(ExitCode::SUCCESS);
        }
        if child.try_wait()?.is_some() {
            return Err(CliError::error("daemon failed to start"));
        }
        std::thread::sleep(PAUSE);
    }
    Err(CliError::error("daemon not online yet"))
}

fn watch(args: &Args, repository: &Repository) -> Result<ExitCode, CliError> {
    refuse_second(repository)?;
    if args.detach {
        // `setsid` fails in a process group leader, which then keeps its session.
        let _ = rustix::process::setsid();
    }
    pronto::monitor::run(repository)?;
    Ok(ExitCode::SUCCESS)
}

fn stop(repository: &Repository) -> Result<ExitCode, CliError> {
    pronto::monitor::stop(repository)?;
    let started = Instant::now();
    while pronto::monitor::is_listening(repository) {
        if started.elapsed() > Duration::from_secs(STOP_SECONDS) {
            let message = format!("daemon did not stop within {STOP_SECONDS} seconds");
            return Err(CliError::error(message));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(ExitCode::SUCCESS)
}

fn status(repository: &Repository, context: &mut Context) -> Result<ExitCode, CliError> {
    let is_monitored = pronto::monitor::is_listening(repository);
    let verb = if is_monitored { "is" } else { "is not" };
    writeln!(
        context.out,
        "fsmonitor-daemon {verb} watching '{}'",
        top(repository)
    )?;
    Ok(match is_monitored {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

//! Runs the processes that fetch in submodules, several in parallel.

use std::io::{self, PipeReader, Read, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use pronto::environment::variables_of_repository;

use crate::maintenance::own_program;
use crate::terminal::text::write_output_of_child;
use crate::{CliError, Context};

/// A process, and the message before its output.
#[derive(Debug, Default)]
pub(super) struct FetchProcess {
    /// The message before the output; `None` for quiet fetches.
    pub(super) message: Option<String>,
    /// The process; `None` if only the message is printed.
    pub(super) command: Option<Command>,
    /// The index of its task.
    pub(super) task: Option<usize>,
}

/// Returns a command that runs this program in the repository of a submodule at `git_dir`.
pub(super) fn command(git_dir: &Path, context: &Context) -> Result<Command, CliError> {
    let mut command = own_program(context)?;
    for variable in variables_of_repository() {
        command.env_remove(variable);
    }
    command
        .env("GIT_DIR", ".")
        .current_dir(git_dir)
        .stdin(Stdio::null());
    Ok(command)
}

/// Runs `children`, at most `jobs` in parallel. Their output goes to standard error in the order of
/// `children`: the output of a child whose predecessors still run is held in memory. Returns the
/// tasks whose processes failed.
pub(super) fn run(
    children: Vec<FetchProcess>,
    jobs: usize,
    context: &mut Context,
) -> Result<Vec<usize>, CliError> {
    context.out.flush()?;
    let mut failed = Vec::new();
    if jobs <= 1 || children.len() <= 1 {
        for child in children {
            if let Some(message) = &child.message {
                context.remark(message);
            }
            let Some(mut command) = child.command else {
                continue;
            };
            let stderr = io::stderr().as_fd().try_clone_to_owned()?;
            command.stdout(stderr);
            let traced = pronto_io::child::started_as("?", context.program(), &command);
            let mut process = command.spawn()?;
            let status = process.wait()?;
            traced.ended(process.id(), status);
            if context.interrupt.is_triggered() {
                return Err(pronto_io::interrupt::Interrupted.into());
            }
            if !status.success() {
                failed.extend(child.task);
            }
        }
        return Ok(failed);
    }
    let program = context.program();
    let (mut senders, mut turns) = (Vec::new(), Vec::new());
    for child in children {
        let (sender, turn) = channel();
        let FetchProcess {
            message,
            command,
            task,
        } = child;
        if let Some(command) = command {
            senders.push((command, sender));
        }
        turns.push((message, turn, task));
    }
    senders.reverse();
    let left = Mutex::new(senders);
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(turns.len()) {
            scope.spawn(|| {
                while let Some((command, sender)) = take(&left) {
                    // The receiver is gone only if printing failed.
                    let _ = sender.send(Event::Ended(observe(command, program, &sender)));
                }
            });
        }
        for (message, turn, task) in turns {
            if let Some(message) = &message {
                context.remark(message);
            }
            if !show(&turn)? {
                failed.extend(task);
            }
        }
        Ok(failed)
    })
}

/// An event of a child process.
enum Event {
    Printed(Vec<u8>),
    /// The process ended, with success or not.
    Ended(io::Result<bool>),
}

type QueuedCommand = (Command, Sender<Event>);

fn take(left: &Mutex<Vec<QueuedCommand>>) -> Option<QueuedCommand> {
    left.lock().ok()?.pop()
}

/// Runs `command`, and sends its output.
fn observe(mut command: Command, program: &str, sender: &Sender<Event>) -> io::Result<bool> {
    let (mut reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let traced = pronto_io::child::started_as("?", program, &command);
    let mut process = command.spawn()?;
    // The pipe ends when all its writers are closed, including those in this process.
    drop(command);
    send(&mut reader, sender)?;
    let status = process.wait()?;
    traced.ended(process.id(), status);
    Ok(status.success())
}

fn send(reader: &mut PipeReader, sender: &Sender<Event>) -> io::Result<()> {
    let mut buffer = vec![0; 4096];
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        // The receiver is gone only if printing failed.
        let _ = sender.send(Event::Printed(buffer[..count].to_vec()));
    }
}

/// Prints the output of a child process up to its end. Returns whether the process succeeded; a
/// child without a process counts as success.
fn show(turn: &Receiver<Event>) -> io::Result<bool> {
    for event in turn {
        match event {
            Event::Printed(text) => write_output_of_child(&text)?,
            Event::Ended(result) => return result,
        }
    }
    Ok(true)
}

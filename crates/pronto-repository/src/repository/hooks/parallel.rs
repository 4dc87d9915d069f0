//! Runs several hooks of one event in parallel (`hook.jobs`).

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};

use crate::{Error, ErrorKind, Result};

/// A hook that has ended.
#[derive(Debug)]
pub struct FinishedHook {
    /// The position among the programs.
    at: usize,
    /// The output of both streams.
    pub output: Vec<u8>,
    /// The exit status, or the reason why the program could not run.
    pub status: Result<ExitStatus>,
}

/// Runs `commands` with the same input, `jobs` at a time (`hook.jobs`), and passes each ended program to
/// `print`, which the calling thread calls. As in Git, the output of each program is kept together in memory: first
/// that of the first running program, then those of the others that have ended. Errors are part of the results.
pub fn run_parallel(
    commands: Vec<Command>,
    input: &[u8],
    jobs: usize,
    print: &mut dyn FnMut(FinishedHook),
) {
    let count = commands.len();
    let commands: Vec<_> = commands
        .into_iter()
        .map(|command| Mutex::new(Some(command)))
        .collect();
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(count) {
            let sender = sender.clone();
            let (commands, next) = (&commands, &next);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    let Some(command) = commands.get(at) else {
                        return;
                    };
                    let command = command.lock().map(|mut command| command.take());
                    let Ok(Some(command)) = command else { continue };
                    let (output, status) = capture(command, input);
                    // The receiver waits for all senders.
                    let _ = sender.send(FinishedHook { at, output, status });
                }
            });
        }
        drop(sender);
        in_order(&receiver, print);
    });
}

/// Passes programs to `print` in the order of their ends, but none before the first running
/// program.
fn in_order(receiver: &Receiver<FinishedHook>, print: &mut dyn FnMut(FinishedHook)) {
    let mut waiting = Vec::new();
    let (mut first, mut ended) = (0, BTreeSet::new());
    for finished in receiver {
        ended.insert(finished.at);
        let is_first = finished.at == first;
        match is_first {
            false => waiting.push(finished),
            true => {
                print(finished);
                waiting.drain(..).for_each(&mut *print);
                while ended.contains(&first) {
                    first += 1;
                }
            }
        }
    }
    waiting.drain(..).for_each(print);
}

/// Runs a program to its end. Returns its output and its status.
fn capture(mut command: Command, input: &[u8]) -> (Vec<u8>, Result<ExitStatus>) {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Hook, format!("cannot run {name}")).because(error)
    };
    command.stdin(match input.is_empty() {
        true => Stdio::null(),
        false => Stdio::piped(),
    });
    let mut output = Vec::new();
    let mut run = || -> std::io::Result<ExitStatus> {
        let (mut reader, writer) = std::io::pipe()?;
        let copy = writer.try_clone()?;
        command.stdout(writer).stderr(copy);
        let traced = pronto_io::child::started("hook", &command);
        let mut child = pronto_io::child::spawn(&mut command)?;
        // The command holds the other ends of the pipe.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let stdin = child.stdin.take();
        std::thread::scope(|scope| {
            if let Some(mut stdin) = stdin {
                // A program need not read its input.
                scope.spawn(move || _ = stdin.write_all(input));
            }
            reader.read_to_end(&mut output).map(drop)
        })?;
        let status = child.wait()?;
        traced.ended(child.id(), status);
        Ok(status)
    };
    let status = run().map_err(failed);
    (output, status)
}

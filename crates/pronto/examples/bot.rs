//! `bot URL DIR BRANCH FILE`: clones, adds a line to a file on a new branch, and pushes the branch.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program prints"
)]

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pronto::bstr::BStr;
use pronto::push::PushStatus;
use pronto::{Environment, ErrorKind, Meter, Progress, ProgressMessage, Repository, Result, Watch};
use pronto::{add, clone, commit, push_remote, switch};

#[path = "shared/hints.rs"]
mod hints;

use hints::{conclude, failure};

/// The meters of the running phases.
#[derive(Default)]
struct Phases(Mutex<Vec<Meter>>);

impl Progress for Phases {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        let meter = Meter::new(title, total);
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(meter.clone());
        meter
    }

    fn message(&self, message: ProgressMessage<'_>) {
        eprintln!("{}{message}", message.prefix());
    }
}

impl Phases {
    fn draw(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|meter| {
                let total = meter
                    .total()
                    .map(|total| format!("/{total}"))
                    .unwrap_or_default();
                let end = meter.is_finished();
                eprintln!(
                    "{}: {}{total}{}",
                    meter.title(),
                    meter.done(),
                    if end { ", done" } else { "" }
                );
                !end && !meter.is_abandoned()
            });
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, directory, branch, file] = arguments.as_slice() else {
        eprintln!("usage: bot URL DIR BRANCH FILE");
        return ExitCode::FAILURE;
    };
    let phases = Phases::default();
    let over = AtomicBool::new(false);
    // The library only counts; a second thread shows the counters now and then.
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(100));
                phases.draw();
            }
        });
        let watch = Watch::none().with_progress(&phases);
        let result = run(url, directory, branch, file, &watch);
        over.store(true, Ordering::Release);
        result
    });
    conclude(result)
}

fn run(url: &str, directory: &str, branch: &str, file: &str, watch: &Watch<'_>) -> Result<()> {
    let environment = Environment::from_process()?;
    let directory = environment.absolute(directory);

    let mut options = clone::Options::default();
    options.show_progress = true;
    let cloned = clone::clone(url.into(), &directory, &options, &environment, watch)?;
    for warning in &cloned.warnings {
        eprintln!("warning: {warning}");
    }
    let repository = cloned.into_result()?.repository;

    create_branch(&repository, branch, watch)?;
    append(&directory.join(file), "One more line from the bot.\n")
        .map_err(|error| failure(ErrorKind::Io, format!("cannot edit {file}: {error}")))?;

    // An absolute path, because this process runs elsewhere.
    let path = directory.join(file);
    let mut options = add::Options::default();
    options.pathspec =
        repository.literal_pathspec([BStr::new(path.as_os_str().as_encoded_bytes())])?;
    let staged = add::add(&repository, &options, watch)?.into_result()?;
    for event in &staged.events {
        eprintln!("note: {event:?}");
    }

    let mut options = commit::Options::default();
    options.message = format!("Add a line to {file}\n").into();
    let id = commit::commit(&repository, &options, watch)?.into_result()?;
    println!("committed {id}");
    push_branch(&repository, branch, watch)
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?
        .write_all(line.as_bytes())
}

fn create_branch(repository: &Repository, branch: &str, watch: &Watch<'_>) -> Result<()> {
    let mut new = switch::NewBranch::default();
    new.name = branch.into();
    let mut options = switch::Options::default();
    options.create = Some(new);
    let report = switch::switch(repository, &options, watch)?.into_result()?;
    eprintln!("now at {:?}", report.new_head);
    Ok(())
}

fn push_branch(repository: &Repository, branch: &str, watch: &Watch<'_>) -> Result<()> {
    let mut options = push_remote::Options::configured(repository.config())?;
    options.refspecs = vec![branch.into()];
    options.push.set_upstream = true;
    for pushed in push_remote::push_remote(repository, &options, watch)? {
        let url = pushed.url;
        for update in pushed.outcome.into_result()?.refs {
            if update.status != PushStatus::None {
                let (name, old, new) = (&update.name, update.old, update.new);
                println!("{url}: {name} {old}..{new} ({})", update.status);
            }
        }
        for upstream in &pushed.upstreams {
            eprintln!("{upstream}");
        }
    }
    Ok(())
}

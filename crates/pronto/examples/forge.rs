//! The operations of a forge: `forge REPO refs|tree REV|commit REV|upload-pack|receive-pack`. With `upload-pack` and
//! `receive-pack`, it is the other side of `git fetch` and `git push`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program prints"
)]

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use pronto::index::mode;
use pronto::receive_pack::{self, ReceiveStreams};
use pronto::refs::HeadValue;
use pronto::upload_pack::{self, UploadStreams};
use pronto::{Environment, ErrorKind, Notice, Notices, ObjectKind, Repository, Result, Watch};

#[path = "shared/hints.rs"]
mod hints;

use hints::{conclude, failure};

const USAGE: &str = "forge REPO refs|tree REV|commit REV|upload-pack|receive-pack";

/// Writes the notices of the library to the log of the server.
struct Log;

impl Notices for Log {
    fn notice(&self, notice: Notice) {
        eprintln!("forge: {notice}");
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    conclude(run(&arguments))
}

fn run(arguments: &[&str]) -> Result<()> {
    let environment = Environment::from_process()?;
    match arguments {
        [path, "refs"] => refs(&open(path, &environment)?),
        [path, "tree", revision] => tree(&open(path, &environment)?, revision),
        [path, "commit", revision] => show(&open(path, &environment)?, revision),
        [path, "upload-pack"] => send(path, &environment),
        [path, "receive-pack"] => receive(path, &environment),
        _ => Err(failure(ErrorKind::InvalidInput, USAGE)),
    }
}

/// Opens the repository at `path`. Parent directories are not searched.
fn open(path: &str, environment: &Environment) -> Result<Repository> {
    Ok(upload_pack::find(Path::new(path), environment)?.with_notices(Arc::new(Log)))
}

fn refs(repository: &Repository) -> Result<()> {
    match repository.head()? {
        HeadValue::Branch { name, id } => println!("{id} HEAD -> {name}"),
        HeadValue::Unborn { name } => println!("(unborn) HEAD -> {name}"),
        HeadValue::Detached { id } => println!("{id} HEAD"),
    }
    repository.refs().for_each("refs/", |reference| {
        // An annotated tag is shown with the commit that it names.
        match repository.peel_to(reference.id, ObjectKind::Commit)? {
            Some(commit) => println!("{commit} {}", reference.name),
            None => println!("(no commit: {}) {}", reference.id, reference.name),
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn tree(repository: &Repository, revision: &str) -> Result<()> {
    for entry in repository.tree(&repository.resolve_tree(revision)?)? {
        let kind = match entry.kind() {
            ObjectKind::Tree => "directory",
            ObjectKind::Commit => "submodule",
            _ if entry.mode & mode::TYPE == mode::SYMLINK & mode::TYPE => "link",
            _ if entry.mode == mode::EXECUTABLE => "program",
            _ => "file",
        };
        println!("{:06o} {} {kind:9} {}", entry.mode, entry.id, entry.name);
    }
    Ok(())
}

fn show(repository: &Repository, revision: &str) -> Result<()> {
    let commit = repository.commit(&repository.resolve_commit(revision)?)?;
    println!("commit {}", commit.id);
    if let Some(author) = &commit.author {
        println!("author {} <{}>", author.name, author.email);
    }
    println!("{}", commit.subject());
    Ok(())
}

/// Returns standard input and output as files, because `io::stdout()` buffers lines and its lock is not
/// `Send`.
fn connection() -> io::Result<(File, File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

fn streams() -> Result<(File, File)> {
    connection()
        .map_err(|error| failure(ErrorKind::Io, "cannot use stdin and stdout").because(error))
}

fn send(path: &str, environment: &Environment) -> Result<()> {
    let repository =
        upload_pack::find_to_send(Path::new(path), false, environment)?.with_notices(Arc::new(Log));
    let mut options = upload_pack::Options::default();
    options.version = upload_pack::requested_version(environment.bytes("GIT_PROTOCOL"));
    options.agent = "forge/0.1".into();
    let (mut input, mut output) = streams()?;
    let streams = UploadStreams {
        input: &mut input,
        output: &mut output,
    };
    upload_pack::answer(&repository, &options, streams, &Watch::none())?.into_result()
}

fn receive(path: &str, environment: &Environment) -> Result<()> {
    let repository = receive_pack::find(Path::new(path), environment)?.with_notices(Arc::new(Log));
    // `git` is run only to update the worktree of a repository that is not bare.
    let mut options = receive_pack::Options::new("git");
    options.version = upload_pack::requested_version(environment.bytes("GIT_PROTOCOL"));
    let (mut input, mut output) = streams()?;
    let streams = ReceiveStreams {
        input: &mut input,
        output: &mut output,
    };
    let outcome = receive_pack::serve(&repository, &options, streams, &Watch::none())?;
    if outcome.maintains {
        eprintln!("forge: {path} may need maintenance");
    }
    Ok(())
}

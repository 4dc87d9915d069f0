//! Runs gix as a client of a Git server. `../README.md` describes the operations.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use gix::remote::Direction;
use gix::remote::fetch::Shallow;

/// The exit code if gix lacks the operation.
const UNSUPPORTED: u8 = 9;

/// The release of gix in `Cargo.toml`.
const VERSION: &str = "0.90.0";

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["version"] => {
            println!("{}", VERSION);
            Ok(())
        }
        ["clone", url, directory] => clone(url, directory, Shallow::NoChange),
        ["shallow", url, directory] => {
            clone(url, directory, Shallow::DepthAtRemote(NonZeroU32::MIN))
        }
        ["deepen", directory, depth] => deepen(directory, depth),
        ["fetch", directory] => fetch(directory, Shallow::NoChange),
        _ => return ExitCode::from(UNSUPPORTED),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

/// Prints an error and its causes, as the program `gix` does.
fn report(error: &(dyn std::error::Error + 'static)) {
    eprintln!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprintln!("caused by: {error}");
        cause = error.source();
    }
}

fn clone(url: &str, directory: &str, shallow: Shallow) -> Result<(), Error> {
    let stop = AtomicBool::new(false);
    let (mut checkout, _) = gix::prepare_clone(url, Path::new(directory))?
        .with_shallow(shallow)
        .configure_remote(|remote| Ok(remote.with_fetch_tags(gix::remote::fetch::Tags::All)))
        .fetch_then_checkout(gix::progress::Discard, &stop)?;
    checkout.main_worktree(gix::progress::Discard, &stop)?;
    Ok(())
}

fn deepen(directory: &str, depth: &str) -> Result<(), Error> {
    let depth: NonZeroU32 = depth.parse()?;
    fetch(directory, Shallow::DepthAtRemote(depth))
}

fn fetch(directory: &str, shallow: Shallow) -> Result<(), Error> {
    let stop = AtomicBool::new(false);
    let repository = gix::open(directory)?;
    let remote = repository.find_remote("origin")?;
    remote
        .connect(Direction::Fetch)?
        .prepare_fetch(gix::progress::Discard, Default::default())?
        .with_shallow(shallow)
        .receive(gix::progress::Discard, &stop)?;
    Ok(())
}

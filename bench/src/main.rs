//! `cargo run --release -p bench -- --repository PATH`: named scenarios against every peer found
//! on the machine, in alternating runs, written as a table, JSON and plots.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

mod data;
mod facts;
mod measure;
mod peer;
mod place;
mod report;
mod sampler;
mod scenario;
mod syscalls;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

/// Measures pronto beside its peers.
#[derive(Parser, Debug)]
#[command(name = "bench")]
struct Arguments {
    /// Scenarios to run (all that fit when none is named); `list` prints them.
    scenarios: Vec<String>,
    /// Repository to measure on: a path, `linux` (made from Debian's linux-source packages), or
    /// `synthetic:COMMITS:FILES:SEED`.
    #[arg(long, default_value = "synthetic:200:2000:1")]
    repository: String,
    /// Directory for what is made on the way; should be on the file system to measure.
    #[arg(long, default_value = "bench/data")]
    data: PathBuf,
    /// Directory for results.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// Name of the result files; the repository's name when absent.
    #[arg(long)]
    name: Option<String>,
    /// Another git, by path; may be given more than once.
    #[arg(long)]
    git: Vec<PathBuf>,
    /// The `gix` to compare with; the one on PATH when absent.
    #[arg(long)]
    gix: Option<PathBuf>,
    /// The pronto to measure; the release build of this workspace when absent.
    #[arg(long)]
    pronto: Option<PathBuf>,
    /// Leave out peers whose name contains this; may be given more than once.
    #[arg(long)]
    without: Vec<String>,
    /// Counted runs of each.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds after which a run is given up.
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// Keep at least this many GiB of the file system free: what runs have made is deleted only
    /// then, and at the end of a scenario.
    #[arg(long, default_value_t = 20)]
    free: u64,
    /// Seconds between deleting and measuring what writes: ext4 does not hand out inodes freed
    /// within the last minute, and searches ever longer for others.
    #[arg(long, default_value_t = 65)]
    rest: u64,
    /// Let runs write to a file system on which every metadata call takes so many microseconds
    /// more, and count these calls.
    #[arg(long, value_name = "MICROSECONDS", value_parser = microseconds)]
    slow: Option<Duration>,
    /// Drop the page cache before each run (needs root).
    #[arg(long)]
    cold: bool,
    /// Count system calls by kind, too (one more run of each, under strace).
    #[arg(long)]
    syscalls: bool,
}

fn microseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_micros)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.scenarios.iter().any(|name| name == "list") {
        for scenario in scenario::ALL {
            println!("{:<16} {}", scenario.name, scenario.what);
        }
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    std::fs::create_dir_all(&arguments.data).map_err(|error| error.to_string())?;
    let data = arguments
        .data
        .canonicalize()
        .map_err(|error| error.to_string())?;
    let repository = data::prepare(&arguments.repository, &data)?;
    let peers = peer::find(arguments)?;
    let place = place::Place::new(&data, &repository, arguments)?;
    let name = arguments
        .name
        .clone()
        .unwrap_or_else(|| repository.name.clone());
    let facts = facts::collect(&data, &peers, &repository, arguments);
    let mut results = Vec::new();
    for scenario in scenario::ALL {
        if !arguments.scenarios.is_empty()
            && !arguments.scenarios.iter().any(|n| n == scenario.name)
        {
            continue;
        }
        eprintln!("{}: {}", scenario.name, scenario.what);
        results.extend(measure::scenario(scenario, &peers, &place, arguments)?);
        // A long series that is stopped keeps what it has.
        report::write(&arguments.results, &name, &facts, &results)?;
        report::plot(&arguments.results, &name, &results)?;
        place.clean()?;
    }
    print!("{}", report::table(&facts, &results));
    Ok(())
}

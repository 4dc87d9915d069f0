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
mod scenario;
mod series;
mod syscalls;
mod threshold;
mod volume;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

/// Measures pronto beside its peers.
#[derive(Parser, Clone, Debug)]
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
    /// Touch so many GiB of memory before each run of what writes: a virtual machine may have given
    /// free memory back to its host, and then waits for each page (measured: 10 microseconds each, four
    /// seconds for what a clone of linux writes).
    #[arg(long, default_value_t = 0, value_name = "GIB")]
    touch: usize,
    /// Let runs write to a file system on which every metadata call takes so many microseconds
    /// more, and count these calls.
    #[arg(long, value_name = "MICROSECONDS", value_parser = microseconds)]
    slow: Option<Duration>,
    /// Let runs write to a model of a disk with one arm, which moves from end to end in so many
    /// microseconds.
    #[arg(long, value_name = "MICROSECONDS", value_parser = microseconds)]
    seek: Option<Duration>,
    /// Let runs write to a file system made for the purpose, in memory or in an image below the
    /// data (needs root).
    #[arg(long)]
    place: Option<volume::Kind>,
    /// The size of that file system in GiB.
    #[arg(long, default_value_t = 12)]
    place_size: u64,
    /// Numbers of checkout workers to measure each git with; `default` sets none.
    #[arg(long, value_delimiter = ',', default_value = "1,2,8")]
    workers: Vec<String>,
    /// Keep the scenarios that the results have already, and measure the others.
    #[arg(long)]
    resume: bool,
    /// Measure all parts of report 000, one after another, each with results of its own, leaving
    /// out what is measured already; `list` prints the parts.
    #[arg(long)]
    report_000: bool,
    /// Of report 000 this part only; may be given more than once.
    #[arg(long)]
    part: Vec<String>,
    /// Repository to measure on where each call takes long.
    #[arg(long, default_value = "synthetic:200:2000:1")]
    far_repository: String,
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
        series::names().for_each(|name| println!("--part {name}"));
        return ExitCode::SUCCESS;
    }
    let parts = if arguments.report_000 {
        series::parts(&arguments)
    } else {
        vec![arguments]
    };
    let mut code = ExitCode::SUCCESS;
    for part in &parts {
        if let Err(message) = run(part) {
            let name = part.name.as_deref().unwrap_or_default();
            eprintln!("bench: {name}: {message}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let is_known = |name: &String| scenario::ALL.iter().any(|one| one.name == name);
    if let Some(name) = arguments.scenarios.iter().find(|name| !is_known(name)) {
        return Err(format!("there is no scenario '{name}': `list` prints them"));
    }
    std::fs::create_dir_all(&arguments.data).map_err(|error| error.to_string())?;
    let data = arguments
        .data
        .canonicalize()
        .map_err(|error| error.to_string())?;
    let repository = data::prepare(&arguments.repository, &data)?;
    let peers = peer::find(arguments)?;
    let name = arguments
        .name
        .clone()
        .unwrap_or_else(|| repository.name.clone());
    let mut results = match arguments.resume {
        true => report::read(&arguments.results, &name)?,
        false => Vec::new(),
    };
    let wanted = |scenario: &&scenario::Scenario| {
        let named = arguments.scenarios.iter().any(|n| n == scenario.name);
        let known = results.iter().any(|m| m.scenario == scenario.name);
        (named || arguments.scenarios.is_empty()) && !known
    };
    let wanted: Vec<_> = scenario::ALL.iter().filter(wanted).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let place = place::Place::new(&data, &repository, arguments)?;
    let facts = facts::collect(place.behind(), &peers, &repository, arguments);
    for scenario in wanted {
        eprintln!("{name}: {}: {}", scenario.name, scenario.what);
        results.extend(measure::scenario(scenario, &peers, &place, arguments)?);
        // A long series that is stopped keeps what it has.
        report::write(&arguments.results, &name, &facts, &results)?;
        report::plot(&arguments.results, &name, &results)?;
        place.clean()?;
    }
    print!("{}", report::table(&facts, &results));
    Ok(())
}

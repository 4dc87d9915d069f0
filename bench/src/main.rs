//! `cargo run --release -p bench -- --repository PATH`: runs named scenarios with pronto and every
//! other program found on the machine in turn, and writes the results as a table, JSON and plots.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

mod data;
mod measure;
mod peer;
mod place;
mod properties;
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

/// Measure pronto beside other programs.
#[derive(Parser, Clone, Debug)]
#[command(name = "bench")]
struct Args {
    /// Scenarios to run. Default: all that apply. `list` prints them.
    scenarios: Vec<String>,
    /// Repository to measure on: a path, `linux` (created from Debian's linux-source packages), or
    /// `synthetic:COMMITS:FILES:SEED`.
    #[arg(long, default_value = "synthetic:200:2000:1")]
    repository: String,
    /// Directory for working data. It should be on the file system to measure.
    #[arg(long, default_value = "bench/data")]
    data: PathBuf,
    /// Directory for results.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// Name of the result files. Default: the name of the repository.
    #[arg(long)]
    name: Option<String>,
    /// Path of another git. Can be repeated.
    #[arg(long)]
    git: Vec<PathBuf>,
    /// `gix` to compare with. Default: the one on PATH.
    #[arg(long)]
    gix: Option<PathBuf>,
    /// pronto to measure. Default: the release build of this workspace.
    #[arg(long)]
    pronto: Option<PathBuf>,
    /// Skip programs whose name contains this text. Can be repeated.
    #[arg(long)]
    without: Vec<String>,
    /// Number of counted runs.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds after which a run is aborted.
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// GiB of the file system to keep free. Files of earlier runs are deleted only if less is free,
    /// and at the end of a scenario.
    #[arg(long, default_value_t = 20)]
    free: u64,
    /// Seconds between deletions and a run that writes. ext4 does not reuse inodes freed within the
    /// last minute, and searches longer for others.
    #[arg(long, default_value_t = 65)]
    rest: u64,
    /// GiB of memory to touch before each run that writes. A virtual machine that has returned free
    /// memory to its host waits for each page.
    #[arg(long, default_value_t = 0, value_name = "GIB")]
    touch: usize,
    /// Let runs write to a file system that delays every metadata call by this many microseconds
    /// and counts the calls.
    #[arg(long, value_name = "MICROSECONDS", value_parser = microseconds)]
    slow: Option<Duration>,
    /// Let runs write to a model of a disk whose arm moves from end to end in this many
    /// microseconds.
    #[arg(long, value_name = "MICROSECONDS", value_parser = microseconds)]
    seek: Option<Duration>,
    /// Let runs write to a new file system, in memory or in an image below the data directory
    /// (needs root).
    #[arg(long)]
    place: Option<volume::Kind>,
    /// Size of that file system in GiB.
    #[arg(long, default_value_t = 12)]
    place_size: u64,
    /// Numbers of checkout workers to measure each git with. `default` sets none.
    #[arg(long, value_delimiter = ',', default_value = "1,2,8")]
    workers: Vec<String>,
    /// Keep scenarios that already have results, and measure the others.
    #[arg(long)]
    resume: bool,
    /// Measure all parts of report 000 that have no results yet, one after another. Each part has
    /// its own results. `list` prints the parts.
    #[arg(long)]
    report_000: bool,
    /// Measure only this part of report 000. Can be repeated.
    #[arg(long)]
    part: Vec<String>,
    /// Repository to measure on if calls are slow.
    #[arg(long, default_value = "synthetic:200:2000:1")]
    far_repository: String,
    /// Drop the page cache before each run (needs root).
    #[arg(long)]
    cold: bool,
    /// Also count system calls by kind, in one more run under strace.
    #[arg(long)]
    syscalls: bool,
}

fn microseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_micros)
}

fn main() -> ExitCode {
    let arguments = Args::parse();
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

fn run(arguments: &Args) -> Result<(), String> {
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
    let wanted = |scenario: &&scenario::BenchScenario| {
        let named = arguments.scenarios.iter().any(|n| n == scenario.name);
        let known = results.iter().any(|m| m.scenario == scenario.name);
        (named || arguments.scenarios.is_empty()) && !known
    };
    let wanted: Vec<_> = scenario::ALL.iter().filter(wanted).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let place = place::ScenarioPaths::new(&data, &repository, arguments)?;
    let properties = properties::collect(place.behind(), &peers, &repository, arguments);
    for scenario in wanted {
        eprintln!("{name}: {}: {}", scenario.name, scenario.what);
        results.extend(measure::scenario(scenario, &peers, &place, arguments)?);
        // An interrupted series keeps its finished results.
        report::write(&arguments.results, &name, &properties, &results)?;
        report::plot(&arguments.results, &name, &results)?;
        place.clean()?;
    }
    print!("{}", report::table(&properties, &results));
    Ok(())
}

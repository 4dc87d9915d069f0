//! `cargo run --release -p bench --bin netsync`: report 004's table. Nine workloads, five
//! operations, and for each the processor time, memory, and what is copied and allocated, of pronto
//! and of git side by side.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

mod link;
mod operation;
mod process;
mod relay;
mod table;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use bench::beside::{self, Peer};
use clap::Parser;

/// Measures what report 004 measured, of pronto and of git.
#[derive(Parser, Clone, Debug)]
#[command(name = "netsync")]
struct Arguments {
    /// Directory for what is made on the way; up to 4 GB.
    #[arg(long, default_value = "bench/data")]
    data: PathBuf,
    /// Directory for results.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// A repository with the history of monotone; generated files stand in for it when absent.
    #[arg(long, value_name = "REPOSITORY")]
    monotone: Option<PathBuf>,
    /// The pronto to measure; the release build of this workspace when absent.
    #[arg(long)]
    pronto: Option<PathBuf>,
    /// A git to compare with, by path; may be given more than once.
    #[arg(long, default_value = "git")]
    git: Vec<PathBuf>,
    /// Measure this workload only; may be given more than once.
    #[arg(long)]
    workload: Vec<String>,
    /// Runs of each, after the one in which copies are counted.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Instead of report 004's table: how many round trips a sync takes on a link that takes so many
    /// milliseconds there and back.
    #[arg(long, value_name = "MS")]
    link: Option<u64>,
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == relay::NAME) {
        return relay::run(words);
    }
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("netsync: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let data = arguments.data.join("netsync");
    std::fs::create_dir_all(&data).map_err(|error| error.to_string())?;
    let data = data.canonicalize().map_err(|error| error.to_string())?;
    let peers = beside::peers(arguments.pronto.as_deref(), &arguments.git)?;
    if let Some(milliseconds) = arguments.link {
        let round_trip = std::time::Duration::from_millis(milliseconds);
        return link::run(arguments, &data, &peers, round_trip);
    }
    let mut rows = Vec::new();
    for workload in workload::NAMES {
        let is_wanted = arguments.workload.iter().any(|name| name == workload);
        if !is_wanted && !arguments.workload.is_empty() {
            continue;
        }
        eprintln!("{workload}");
        let made = workload::make(workload, &data, arguments.monotone.as_deref())?;
        rows.extend(operation::all(&made, &peers, arguments.runs)?);
        made.remove()?;
        // A long series that is stopped keeps what it has.
        table::write(arguments, &data, &peers, &rows)?;
    }
    print!("{}", table::text(arguments, &data, &peers, &rows));
    Ok(())
}

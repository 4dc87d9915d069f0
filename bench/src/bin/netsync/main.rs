//! `cargo run --release -p bench --bin netsync`: writes the table of report 004. For nine workloads
//! and five operations, the table shows the processor time, memory, copied bytes and allocated
//! bytes of pronto and git.

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

use bench::beside::{self, MeasuredProgram};
use clap::Parser;

/// Measure the figures of report 004 for pronto and git.
#[derive(Parser, Clone, Debug)]
#[command(name = "netsync")]
struct Args {
    /// Directory for working data of up to 4 GB.
    #[arg(long, default_value = "bench/data")]
    data: PathBuf,
    /// Directory for results.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// Repository with the history of monotone. Generated files replace it by default.
    #[arg(long, value_name = "REPOSITORY")]
    monotone: Option<PathBuf>,
    /// pronto to measure. Default: the release build of this workspace.
    #[arg(long)]
    pronto: Option<PathBuf>,
    /// Path of a git to compare with. Can be repeated.
    #[arg(long, default_value = "git")]
    git: Vec<PathBuf>,
    /// Measure only this workload. Can be repeated.
    #[arg(long)]
    workload: Vec<String>,
    /// Number of runs, after the one that counts copies.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Instead of the table of report 004, measure the round trips of a sync on a link with this
    /// round-trip time in milliseconds.
    #[arg(long, value_name = "MS")]
    link: Option<u64>,
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == relay::NAME) {
        return relay::run(words);
    }
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("netsync: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Args) -> Result<(), String> {
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
        // An interrupted series keeps its finished results.
        table::write(arguments, &data, &peers, &rows)?;
    }
    print!("{}", table::text(arguments, &data, &peers, &rows));
    Ok(())
}

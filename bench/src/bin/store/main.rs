//! Measures `pronto serve --store`: calls, bytes and durations of requests with an object store of
//! high latency.

#![expect(clippy::print_stdout, reason = "a program that reports")]

mod bucket;
mod exchange;
mod growth;
mod latency;
mod model;
mod site;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Measures a server whose repositories are in an object store")]
struct Args {
    /// The program to measure
    #[arg(long, default_value = "target/release/pronto")]
    pronto: PathBuf,
    /// Milliseconds that are added to each call of the store
    #[arg(long, default_value_t = 50)]
    delay: u64,
    #[command(subcommand)]
    command: StoreBenchCommand,
}

#[derive(Subcommand)]
enum StoreBenchCommand {
    /// Clones, fetches and pushes at this delay
    Latency(latency::Options),
    /// Calls and bytes of a push and of a fetch, for ever larger repositories
    Growth(growth::Options),
    /// Clones in a second of many servers, from the measured costs of one
    Model(model::Options),
}

fn main() -> ExitCode {
    let arguments = Args::parse();
    let start = site::SiteOptions {
        pronto: arguments.pronto,
        delay: std::time::Duration::from_millis(arguments.delay),
    };
    let done = match arguments.command {
        StoreBenchCommand::Latency(options) => latency::run(&start, &options),
        StoreBenchCommand::Growth(options) => growth::run(&start, &options),
        StoreBenchCommand::Model(options) => model::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A failure cannot be reported any more.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Measures the load on a Git server: starts a server in a control group, replays requests of
//! clients, and writes the resources that the server used. `bench/serve/README.md` describes the
//! measurements.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

mod scenario;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Measures a Git server under load")]
struct ServeArguments {
    #[command(subcommand)]
    command: ServeCommand,
}

#[derive(Subcommand)]
enum ServeCommand {
    /// Start a server and measure it.
    #[command(args_override_self = true)]
    Measure(Box<Measure>),
    /// Print the results as tables.
    Table {
        /// The file of results.
        results: PathBuf,
    },
}

/// The server to measure, and the sizes of the load.
#[derive(clap::Args)]
struct Measure {
    /// The name of the server in the tables.
    #[arg(long)]
    name: String,
    /// The address of its repositories: http://127.0.0.1:PORT/PATH or git://127.0.0.1:PORT/PATH.
    #[arg(long)]
    url: String,
    /// User and password for pushes over HTTP, with a colon between them.
    #[arg(long)]
    login: Option<String>,
    /// The directory of templates of the repositories, in which the server does not write.
    #[arg(long)]
    templates: PathBuf,
    /// The file to which results are appended.
    #[arg(long)]
    results: PathBuf,
    /// Repetitions of each measurement of single requests.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Clones at once.
    #[arg(long, default_value_t = 64)]
    clones: u32,
    /// Idle connections.
    #[arg(long, default_value_t = 10_000)]
    idle: u32,
    /// Operations of the mixed load, and clients that share them.
    #[arg(long, default_value_t = 2000)]
    operations: u32,
    #[arg(long, default_value_t = 32)]
    clients: u32,
    /// The most branches that the pushes of the mixed load leave: further pushes delete the oldest one each.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    branches: usize,
    /// Scenarios to run; all if none is given.
    #[arg(long)]
    scenario: Vec<String>,
    /// The command of the server, which must stay in the foreground.
    #[arg(last = true, required = true)]
    server: Vec<String>,
}

fn main() -> ExitCode {
    let done = match ServeArguments::parse().command {
        ServeCommand::Measure(measure) => scenario::run(&measure),
        ServeCommand::Table { results } => table::print(&results),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

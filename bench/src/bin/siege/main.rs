//! Measures `pronto serve` under attack: the durations of honest clients' requests, with and
//! without hostile clients that hold connections. `bench/serve/README.md` describes the
//! measurement.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

mod attack;
mod honest;
mod site;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bench::load::Result;
use bench::load::counts::percentile;
use clap::Parser;

use attack::{Attack, KINDS};
use honest::RequestTimes;
use site::{SiegeServer, SiegeSite};

#[derive(Parser)]
#[command(about = "Measures honest clients of a server under attack")]
struct Args {
    /// The program `pronto`.
    #[arg(long)]
    pronto: PathBuf,
    /// Hostile connections of each kind.
    #[arg(long, default_value_t = 128)]
    connections: usize,
    /// Seconds of each phase: quiet, and under attack.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Honest clients, each with an address of its own.
    #[arg(long, default_value_t = 4)]
    clients: u8,
    /// Kinds of attacks to run; all if none is given.
    #[arg(long)]
    kind: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("siege: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Args) -> Result<()> {
    println!(
        "| attack | requests | P50 quiet | P50 attacked | P99 quiet | P99 attacked | ratio | failed | memory |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for kind in KINDS {
        let is_wanted =
            arguments.kind.is_empty() || arguments.kind.iter().any(|it| it == kind.name);
        if is_wanted {
            measure(arguments, kind)?;
        }
    }
    Ok(())
}

/// Measures one kind of attack on a new server, and prints a row of the table.
fn measure(arguments: &Args, kind: &'static attack::Kind) -> Result<()> {
    let site = Arc::new(SiegeSite::make(&arguments.pronto)?);
    let server = Arc::new(SiegeServer::start(&arguments.pronto, &site)?);
    let phase = Duration::from_secs(arguments.seconds);
    let ask = || honest::run(&site, &server, arguments.clients, phase);
    let quiet = ask();
    let attack = Attack::start(kind, &site, &server, arguments.connections);
    let attacked = ask();
    attack.stop();
    let failed = quiet.failed + attacked.failed;
    if let Some(error) = &attacked.error {
        eprintln!("{}: {error}", kind.name);
    }
    let at = |times: &RequestTimes, share| percentile(&times.all, share);
    let (before, during) = (at(&quiet, 0.99), at(&attacked, 0.99));
    println!(
        "| {} | {} | {:.1} ms | {:.1} ms | {before:.1} ms | {during:.1} ms | {:.1} | {failed} | {} MiB |",
        kind.name,
        attacked.all.len(),
        at(&quiet, 0.5),
        at(&attacked, 0.5),
        during / before.max(f64::MIN_POSITIVE),
        server.peak_mebibytes(),
    );
    Ok(())
}

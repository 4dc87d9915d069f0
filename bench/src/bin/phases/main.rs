//! `cargo run --release -p bench --bin phases -- WORKTREE`: writes the tables of report 001. The
//! tables show the duration of each phase of `status -s -uno`, and of status with untracked files,
//! in pronto and git as reported by `GIT_TRACE2_EVENT`: with a cold and a warm page cache, with and
//! without `core.preloadIndex`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

mod table;
mod trace;

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use bench::beside::{self, MeasuredProgram};
use clap::Parser;

use trace::Phases;

/// Measure the figures of report 001 for pronto and git.
#[derive(Parser, Clone, Debug)]
#[command(name = "phases")]
struct Args {
    /// Worktree to run status in.
    worktree: PathBuf,
    /// Name of the results.
    #[arg(long, default_value = "report-001")]
    name: String,
    /// Directory for results.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// pronto to measure. Default: the release build of this workspace.
    #[arg(long)]
    pronto: Option<PathBuf>,
    /// Path of a git to compare with. Can be repeated.
    #[arg(long, default_value = "git")]
    git: Vec<PathBuf>,
    /// Number of runs.
    #[arg(long, default_value_t = 7)]
    runs: usize,
}

/// A table of the report.
struct ReportTable {
    /// Its letter in the report.
    letter: &'static str,
    what: &'static str,
    is_cold: bool,
    arguments: &'static [&'static str],
}

const SETTINGS: [ReportTable; 6] = [
    ReportTable {
        letter: "A",
        what: "nothing cached, `core.preloadIndex=false`",
        is_cold: true,
        arguments: &["-c", "core.preloadIndex=false", "status", "-s", "-uno"],
    },
    ReportTable {
        letter: "B",
        what: "all cached, `core.preloadIndex=false`",
        is_cold: false,
        arguments: &["-c", "core.preloadIndex=false", "status", "-s", "-uno"],
    },
    ReportTable {
        letter: "C, E",
        what: "nothing cached, nothing configured",
        is_cold: true,
        arguments: &["status", "-s", "-uno"],
    },
    ReportTable {
        letter: "D, F",
        what: "all cached, nothing configured",
        is_cold: false,
        arguments: &["status", "-s", "-uno"],
    },
    ReportTable {
        letter: "beyond, cold",
        what: "untracked files, too; nothing cached",
        is_cold: true,
        arguments: &["status", "-s"],
    },
    ReportTable {
        letter: "beyond, hot",
        what: "untracked files, too; all cached",
        is_cold: false,
        arguments: &["status", "-s"],
    },
];

/// The figures of one program in one setting.
struct PhaseRow {
    peer: String,
    is_pronto: bool,
    runs: Vec<Phases>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("phases: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Args) -> Result<(), String> {
    let peers = beside::peers(arguments.pronto.as_deref(), &arguments.git)?;
    let mut tables = Vec::new();
    for setting in &SETTINGS {
        eprintln!("{}: {}", setting.letter, setting.what);
        let mut rows: Vec<PhaseRow> = (peers.iter())
            .map(|peer| PhaseRow {
                peer: peer.name.clone(),
                is_pronto: peer.is_pronto,
                runs: Vec::new(),
            })
            .collect();
        // The first round is a warm-up.
        for round in 0..=arguments.runs {
            for (peer, row) in peers.iter().zip(&mut rows) {
                let phases = measure(arguments, peer, setting)?;
                if round > 0 {
                    row.runs.push(phases);
                }
            }
        }
        tables.push((setting, rows));
    }
    let text = table::text(arguments, &peers, &tables);
    print!("{text}");
    table::write(arguments, &text, &tables)
}

fn measure(
    arguments: &Args,
    peer: &MeasuredProgram,
    setting: &ReportTable,
) -> Result<Phases, String> {
    let trace = std::env::temp_dir().join(format!("phases-{}.json", std::process::id()));
    let _ = std::fs::remove_file(&trace);
    if setting.is_cold {
        bench::machine::drop_caches()?;
    }
    let start = Instant::now();
    let status = Command::new(&peer.program)
        .args(setting.arguments)
        .current_dir(&arguments.worktree)
        .env("GIT_TRACE2_EVENT", &trace)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("PRONTO_NO_FALLBACK", "1")
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("{}: {error}", peer.program.display()))?;
    let total = start.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("{}: {status}", peer.name));
    }
    let text = std::fs::read_to_string(&trace).map_err(|error| error.to_string())?;
    let _ = std::fs::remove_file(&trace);
    trace::read(&text, total)
}

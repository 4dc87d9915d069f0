//! Measures commands as whole processes. Programs alternate, so that drift of the machine affects
//! all of them equally.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench::sampler::Sampler;
use wait4::Wait4;

use crate::Args;
use crate::peer::BenchPeer;
use crate::place::ScenarioPaths;
use crate::scenario::BenchScenario;
use crate::syscalls;

/// The cost of one run.
#[derive(Clone, Debug)]
pub(crate) struct RunCost {
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: u64,
    pub(crate) peak_anonymous_bytes: u64,
    /// The number of metadata calls of the slow file system, if it is used.
    pub(crate) metadata_calls: Option<u64>,
}

/// All runs of one program in one scenario.
pub(crate) struct MeasuredRuns {
    pub(crate) scenario: &'static str,
    pub(crate) what: &'static str,
    pub(crate) peer: String,
    pub(crate) is_pronto: bool,
    pub(crate) runs: Vec<RunCost>,
    /// The numbers of system calls by name, if they were counted.
    pub(crate) syscalls: Option<BTreeMap<String, u64>>,
    /// The reason for which runs are missing.
    pub(crate) failure: Option<String>,
}

impl MeasuredRuns {
    /// Minimum, median and maximum of one figure over at least one run.
    pub(crate) fn spread(&self, figure: impl Fn(&RunCost) -> f64) -> Option<(f64, f64, f64)> {
        let mut values: Vec<f64> = self.runs.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        let (first, last) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = (values[middle] + values[(values.len() - 1) / 2]) / 2.0;
        Some((*first, median, *last))
    }
}

/// The environment of a command.
pub(crate) struct CommandInput {
    /// The file for the standard input of the command.
    pub(crate) input: Option<PathBuf>,
}

/// Runs `scenario` with every program that supports it: one warm-up round, then the counted rounds.
/// A program that fails or exceeds the time limit is dropped.
pub(crate) fn scenario(
    scenario: &BenchScenario,
    peers: &[BenchPeer],
    place: &ScenarioPaths,
    arguments: &Args,
) -> Result<Vec<MeasuredRuns>, String> {
    let mut results: Vec<MeasuredRuns> = peers.iter().map(|peer| none(scenario, peer)).collect();
    for round in 0..=arguments.runs {
        for (peer, measured) in peers.iter().zip(&mut results) {
            if measured.failure.is_some() {
                continue;
            }
            let fresh = place.fresh()?;
            (scenario.prepare)(place, &fresh)?;
            let fits = scenario.checks_out || !peer.differs_in_workers;
            let command = (scenario.command)(peer, place, &fresh).filter(|_| fits);
            let Some(command) = command else {
                measured.failure = Some(String::new());
                continue;
            };
            if scenario.writes {
                place.rest();
            }
            if scenario.writes || arguments.cold {
                rustix::fs::sync();
            }
            if arguments.cold {
                bench::machine::drop_caches()?;
            }
            if scenario.writes {
                bench::machine::touch(arguments.touch);
            }
            let surroundings = CommandInput {
                input: (scenario.input)(place),
            };
            let limit = Duration::from_secs(arguments.limit);
            let before = place.metadata_calls();
            match time(command, scenario.repeat, &surroundings, limit) {
                Ok(mut run) if round > 0 => {
                    let calls = place.metadata_calls().zip(before);
                    run.metadata_calls = calls.map(|(after, before)| after - before);
                    measured.runs.push(run);
                }
                Ok(_) => {}
                Err(message) => measured.failure = Some(message),
            }
            if round == 0 && arguments.syscalls && measured.failure.is_none() {
                measured.syscalls = Some(counted(scenario, peer, place)?);
            }
        }
    }
    results.retain(|measured| measured.failure.as_ref().is_none_or(|why| !why.is_empty()));
    Ok(results)
}

fn none(scenario: &BenchScenario, peer: &BenchPeer) -> MeasuredRuns {
    MeasuredRuns {
        scenario: scenario.name,
        what: scenario.what,
        peer: peer.name.clone(),
        is_pronto: peer.is_pronto,
        runs: Vec::new(),
        syscalls: None,
        failure: None,
    }
}

fn counted(
    scenario: &BenchScenario,
    peer: &BenchPeer,
    place: &ScenarioPaths,
) -> Result<BTreeMap<String, u64>, String> {
    let fresh = place.fresh()?;
    (scenario.prepare)(place, &fresh)?;
    let surroundings = CommandInput {
        input: (scenario.input)(place),
    };
    match (scenario.command)(peer, place, &fresh) {
        Some(command) => syscalls::count(&command, &surroundings, &std::env::temp_dir()),
        None => Ok(BTreeMap::new()),
    }
}

/// Runs the command `repeat` times in sequence, and returns the figures of one run.
fn time(
    mut command: Command,
    repeat: u32,
    surroundings: &CommandInput,
    limit: Duration,
) -> Result<RunCost, String> {
    let mut cpu = Duration::ZERO;
    let (mut peak_bytes, mut peak_anonymous_bytes) = (0, 0);
    let mut wall = Duration::ZERO;
    for _ in 0..repeat {
        quiet(&mut command, surroundings)?;
        let start = Instant::now();
        let child = command
            .spawn()
            .map_err(|error| format!("cannot start {command:?}: {error}"))?;
        // Sampling would distort commands that take a millisecond.
        let sampler = (repeat == 1).then(|| Sampler::start(child.id()));
        let used = wait(child, limit)?;
        wall += start.elapsed();
        let sampled = sampler.map(Sampler::finish);
        if !used.status.success() {
            return Err(format!("failed with {}", used.status));
        }
        cpu += used.rusage.utime + used.rusage.stime;
        (peak_bytes, peak_anonymous_bytes) = match sampled {
            Some(sampled) => (sampled.resident, sampled.anonymous),
            None => (used.rusage.maxrss, 0),
        };
    }
    Ok(RunCost {
        wall_seconds: wall.as_secs_f64() / f64::from(repeat),
        cpu_seconds: cpu.as_secs_f64() / f64::from(repeat),
        peak_bytes,
        peak_anonymous_bytes,
        metadata_calls: None,
    })
}

/// Waits for the child and kills it after `limit`.
fn wait(child: Child, limit: Duration) -> Result<wait4::ResUse, String> {
    let process = child.id();
    let (done, end) = std::sync::mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        let late = end.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if let (true, Some(process)) = (late, rustix::process::Pid::from_raw(process as i32)) {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        }
        late
    });
    let used = child.wait4().map_err(|error| error.to_string());
    drop(done);
    if guard.join().unwrap_or(false) {
        return Err(format!("took more than {} s", limit.as_secs()));
    }
    used
}

/// Sets the same environment for all programs: no user configuration and no terminal.
pub(crate) fn quiet(command: &mut Command, surroundings: &CommandInput) -> Result<(), String> {
    let input = surroundings.input.as_deref().map(open).transpose()?;
    command
        .stdin(input.map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C")
        .env("PRONTO_NO_FALLBACK", "1");
    Ok(())
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| format!("cannot open '{}': {error}", path.display()))
}

//! Timing commands as whole processes, peers taking turns so that drift meets all alike.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use wait4::Wait4;

use crate::Arguments;
use crate::peer::Peer;
use crate::scenario::{Place, Scenario};

/// What one run cost.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: u64,
    pub(crate) peak_anonymous_bytes: u64,
}

/// All runs of one peer in one scenario.
pub(crate) struct Measured {
    pub(crate) scenario: &'static str,
    pub(crate) what: &'static str,
    pub(crate) peer: String,
    pub(crate) is_pronto: bool,
    pub(crate) runs: Vec<Run>,
    /// System calls by name, when they were counted.
    pub(crate) syscalls: Option<BTreeMap<String, u64>>,
}

impl Measured {
    /// Minimum, median and maximum of one figure.
    pub(crate) fn spread(&self, figure: impl Fn(&Run) -> f64) -> (f64, f64, f64) {
        let mut values: Vec<f64> = self.runs.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        (
            values[0],
            values[values.len() / 2],
            values[values.len() - 1],
        )
    }
}

/// Runs `scenario` with every peer that can do it: one uncounted round, then the counted ones.
pub(crate) fn scenario(
    scenario: &Scenario,
    peers: &[Peer],
    place: &Place,
    arguments: &Arguments,
) -> Result<Vec<Measured>, String> {
    let mut results = Vec::new();
    for round in 0..=arguments.runs {
        let mut slot = 0;
        for peer in peers {
            let Some(command) = (scenario.command)(peer, place) else {
                continue;
            };
            (scenario.prepare)(place)?;
            if arguments.cold {
                drop_caches()?;
            }
            let run = time(command, &peer.name)?;
            if round == 0 {
                results.push(Measured {
                    scenario: scenario.name,
                    what: scenario.what,
                    peer: peer.name.clone(),
                    is_pronto: peer.is_pronto,
                    runs: Vec::new(),
                    syscalls: syscalls(scenario, peer, place, arguments)?,
                });
            } else {
                results[slot].runs.push(run);
            }
            slot += 1;
        }
    }
    Ok(results)
}

fn time(mut command: Command, name: &str) -> Result<Run, String> {
    quiet(&mut command);
    let start = Instant::now();
    let child = command
        .spawn()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    let sampler = Sampler::start(child.id());
    let used = child.wait4().map_err(|error| error.to_string())?;
    let wall_seconds = start.elapsed().as_secs_f64();
    let peak_anonymous_bytes = sampler.finish();
    if !used.status.success() {
        return Err(format!("{name} failed with {}: {command:?}", used.status));
    }
    Ok(Run {
        wall_seconds,
        cpu_seconds: (used.rusage.utime + used.rusage.stime).as_secs_f64(),
        peak_bytes: used.rusage.maxrss,
        peak_anonymous_bytes,
    })
}

/// The same surroundings for everyone: nobody's own configuration, no terminal.
fn quiet(command: &mut Command) {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C");
}

/// Reads the anonymous memory of a process and its descendants a few hundred times a second.
struct Sampler {
    stop: std::sync::Arc<AtomicBool>,
    peak: std::sync::Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Sampler {
    fn start(process: u32) -> Self {
        let (stop, peak) = <(std::sync::Arc<AtomicBool>, std::sync::Arc<AtomicU64>)>::default();
        let (seen_stop, seen_peak) = (stop.clone(), peak.clone());
        let thread = std::thread::spawn(move || {
            while !seen_stop.load(Relaxed) {
                seen_peak.fetch_max(anonymous_bytes(process), Relaxed);
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        Sampler { stop, peak, thread }
    }

    fn finish(self) -> u64 {
        self.stop.store(true, Relaxed);
        let _ = self.thread.join();
        self.peak.load(Relaxed)
    }
}

/// The sum over the process and all that it started.
fn anonymous_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let below = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    kibibytes.unwrap_or(0) * 1024 + below.map(anonymous_bytes).sum::<u64>()
}

fn drop_caches() -> Result<(), String> {
    let _ = Command::new("sync").status();
    std::fs::write("/proc/sys/vm/drop_caches", "3")
        .map_err(|error| format!("cannot drop the page cache (needs root): {error}"))
}

/// One more run under `strace -c`, children included.
fn syscalls(
    scenario: &Scenario,
    peer: &Peer,
    place: &Place,
    arguments: &Arguments,
) -> Result<Option<BTreeMap<String, u64>>, String> {
    if !arguments.syscalls {
        return Ok(None);
    }
    let Some(inner) = (scenario.command)(peer, place) else {
        return Ok(None);
    };
    (scenario.prepare)(place)?;
    let log = std::env::temp_dir().join(format!("bench-strace-{}", std::process::id()));
    let mut outer = Command::new("strace");
    outer
        .args(["-f", "-c", "-o"])
        .arg(&log)
        .arg(inner.get_program())
        .args(inner.get_args());
    if let Some(directory) = inner.get_current_dir() {
        outer.current_dir(directory);
    }
    quiet(&mut outer);
    let status = outer
        .status()
        .map_err(|error| format!("cannot run strace: {error}"))?;
    let counts = parse_strace(&log);
    let _ = std::fs::remove_file(&log);
    if status.success() {
        Ok(Some(counts))
    } else {
        Err(format!("{} failed under strace", peer.name))
    }
}

/// Lines of `strace -c`: percent, seconds, microseconds per call, calls, errors (if any), name.
fn parse_strace(log: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(calls), Some(name)) = (words.get(3), words.last()) else {
            continue;
        };
        if let (Ok(calls), false) = (calls.parse(), *name == "total") {
            counts.insert((*name).to_owned(), calls);
        }
    }
    counts
}

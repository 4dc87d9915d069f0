//! Anonymous memory of a process and its descendants, sampled while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// Reads the anonymous memory of a process and its descendants a few hundred times a second.
pub(crate) struct Sampler {
    stop: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Sampler {
    pub(crate) fn start(process: u32) -> Self {
        let (stop, peak) = <(Arc<AtomicBool>, Arc<AtomicU64>)>::default();
        let (seen_stop, seen_peak) = (stop.clone(), peak.clone());
        let thread = std::thread::spawn(move || {
            while !seen_stop.load(Relaxed) {
                seen_peak.fetch_max(anonymous_bytes(process), Relaxed);
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        Sampler { stop, peak, thread }
    }

    /// The largest sum seen, in bytes.
    pub(crate) fn finish(self) -> u64 {
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

//! Memory of a process and its descendants, sampled while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// Reads the memory of a process and its descendants a few hundred times a second.
pub(crate) struct Sampler {
    stop: Arc<AtomicBool>,
    peak: Arc<Peak>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Peak {
    /// The largest resident set of any one process. (What `wait4` says is no less than what this
    /// program had when it forked.)
    resident: AtomicU64,
    anonymous: AtomicU64,
}

impl Sampler {
    pub(crate) fn start(process: u32) -> Self {
        let (stop, peak) = <(Arc<AtomicBool>, Arc<Peak>)>::default();
        let (seen_stop, seen_peak) = (stop.clone(), peak.clone());
        let thread = std::thread::spawn(move || {
            while !seen_stop.load(Relaxed) {
                let anonymous = look(process, &seen_peak.resident);
                seen_peak.anonymous.fetch_max(anonymous, Relaxed);
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        Sampler { stop, peak, thread }
    }

    /// The largest resident set of any one process, and the largest sum of anonymous memory, both
    /// in bytes.
    pub(crate) fn finish(self) -> (u64, u64) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.join();
        let load = |peak: &AtomicU64| peak.load(Relaxed);
        (load(&self.peak.resident), load(&self.peak.anonymous))
    }
}

/// The anonymous memory of the process and all that it started, in bytes.
fn look(process: u32, resident: &AtomicU64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
        kibibytes.unwrap_or(0) * 1024
    };
    resident.fetch_max(field("VmHWM:"), Relaxed);
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let below = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    field("RssAnon:") + below.map(|child| look(child, resident)).sum::<u64>()
}

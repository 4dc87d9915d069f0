//! Samples the memory of a process and its descendants while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that samples the memory of a process and its descendants a few hundred times a second.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    peak: Arc<Peak>,
    thread: JoinHandle<()>,
}

/// The largest samples, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampled {
    /// The largest address space of a process.
    pub size: u64,
    /// The largest resident set of a process. (The value of `wait4` is at least the resident set of
    /// this program at the fork.)
    pub resident: u64,
    /// The largest sum of anonymous memory over all processes.
    pub anonymous: u64,
}

#[derive(Debug, Default)]
struct Peak {
    size: AtomicU64,
    resident: AtomicU64,
    anonymous: AtomicU64,
}

impl Sampler {
    /// Starts sampling `process` and its descendants.
    pub fn start(process: u32) -> Self {
        Self::without(process, None)
    }

    /// Starts sampling `process` and its descendants, except for processes with the argument
    /// `left_out` and their descendants.
    pub fn without(process: u32, left_out: Option<&'static str>) -> Self {
        let (stop, peak) = <(Arc<AtomicBool>, Arc<Peak>)>::default();
        let (seen_stop, seen_peak) = (stop.clone(), peak.clone());
        let thread = std::thread::spawn(move || {
            while !seen_stop.load(Relaxed) {
                let anonymous = seen_peak.look(process, left_out);
                seen_peak.anonymous.fetch_max(anonymous, Relaxed);
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        Sampler { stop, peak, thread }
    }

    /// Stops sampling and returns the largest samples.
    pub fn finish(self) -> Sampled {
        self.stop.store(true, Relaxed);
        let _ = self.thread.join();
        let load = |peak: &AtomicU64| peak.load(Relaxed);
        Sampled {
            size: load(&self.peak.size),
            resident: load(&self.peak.resident),
            anonymous: load(&self.peak.anonymous),
        }
    }
}

impl Peak {
    /// Returns the anonymous memory of the process and its descendants in bytes.
    fn look(&self, process: u32, left_out: Option<&str>) -> u64 {
        let read = |name: &str| std::fs::read(format!("/proc/{process}/{name}"));
        if let Some(left_out) = left_out {
            let command = read("cmdline").unwrap_or_default();
            if command
                .split(|byte| *byte == 0)
                .any(|argument| argument == left_out.as_bytes())
            {
                return 0;
            }
        }
        let status = read("status").unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kibibytes =
                line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
            kibibytes.unwrap_or(0) * 1024
        };
        self.size.fetch_max(field("VmPeak:"), Relaxed);
        self.resident.fetch_max(field("VmHWM:"), Relaxed);
        let children = read(&format!("task/{process}/children")).unwrap_or_default();
        let children = String::from_utf8_lossy(&children);
        let below = children
            .split_whitespace()
            .filter_map(|child| child.parse().ok());
        field("RssAnon:") + below.map(|child| self.look(child, left_out)).sum::<u64>()
    }
}

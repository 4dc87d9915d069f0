//! A control group of Linux, which measures the resource usage of its processes, including those
//! that have ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Result;

/// The interval between two samples of memory.
const PAUSE: Duration = Duration::from_millis(5);

/// The number of the next group of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A control group, which is removed when the value is dropped.
#[derive(Clone)]
pub struct ControlGroup {
    processor: PathBuf,
    memory: PathBuf,
    is_unified: bool,
}

impl ControlGroup {
    /// Creates a group below the root, with version 1 or 2 of control groups. Needs root.
    ///
    /// # Errors
    /// Fails if the file system of control groups refuses.
    pub fn new() -> Result<Self> {
        let number = NEXT.fetch_add(1, Relaxed);
        let name = format!("pronto-bench-{}-{number}", std::process::id());
        let top = Path::new("/sys/fs/cgroup");
        let is_unified = top.join("cgroup.controllers").exists();
        let group = match is_unified {
            true => ControlGroup {
                processor: top.join(&name),
                memory: top.join(&name),
                is_unified,
            },
            false => ControlGroup {
                processor: top.join("cpuacct").join(&name),
                memory: top.join("memory").join(&name),
                is_unified,
            },
        };
        for path in group.paths() {
            let failed = |error| format!("cannot create '{}' (as root?): {error}", path.display());
            fs::create_dir(path).map_err(failed)?;
        }
        Ok(group)
    }

    fn paths(&self) -> Vec<&Path> {
        match self.is_unified {
            true => vec![&self.processor],
            false => vec![&self.processor, &self.memory],
        }
    }

    /// Returns the files to which a process writes its id to enter the group.
    pub fn doors(&self) -> Vec<PathBuf> {
        let paths = self.paths().into_iter();
        paths.map(|path| path.join("cgroup.procs")).collect()
    }

    /// Returns the processor time so far in seconds.
    pub fn seconds(&self) -> f64 {
        let text = |name| fs::read_to_string(self.processor.join(name)).unwrap_or_default();
        match self.is_unified {
            true => field(&text("cpu.stat"), "usage_usec ") / 1e6,
            false => text("cpuacct.usage").trim().parse().unwrap_or(0.0) / 1e9,
        }
    }

    /// Returns the current anonymous memory in bytes.
    pub fn anonymous(&self) -> f64 {
        let text = fs::read_to_string(self.memory.join("memory.stat")).unwrap_or_default();
        let name = if self.is_unified {
            "anon "
        } else {
            "total_rss "
        };
        field(&text, name)
    }

    /// Returns the ids of the processes in the group.
    pub fn processes(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.processor.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Removes the group. Its processes must have ended.
    pub fn remove(&self) {
        for path in self.paths() {
            // An empty group that cannot be removed costs nothing.
            let _ = fs::remove_dir(path);
        }
    }
}

/// Returns the number after `name` at the start of a line.
fn field(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|number| number.trim().parse().ok())
        .unwrap_or(0.0)
}

/// Samples the anonymous memory of a group.
pub struct GroupSampler {
    stop: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl GroupSampler {
    /// Starts a thread that samples the memory at regular intervals.
    #[must_use]
    pub fn start(group: &ControlGroup) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let peak = Arc::new(AtomicU64::new(0));
        let (group, ends, most) = (group.clone(), Arc::clone(&stop), Arc::clone(&peak));
        let thread = std::thread::spawn(move || {
            while !ends.load(Relaxed) {
                most.fetch_max(group.anonymous() as u64, Relaxed);
                std::thread::sleep(PAUSE);
            }
        });
        GroupSampler { stop, peak, thread }
    }

    /// Stops the thread, and returns the largest sample in bytes.
    pub fn finish(self) -> f64 {
        self.stop.store(true, Relaxed);
        // The thread does not panic.
        let _ = self.thread.join();
        self.peak.load(Relaxed) as f64
    }
}

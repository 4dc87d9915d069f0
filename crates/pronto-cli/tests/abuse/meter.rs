//! Measures the memory and the processor time that requests cost a server.

use std::path::PathBuf;
use std::time::Duration;

/// The unit of times in `/proc/PROCESS/stat`: the kernel reports hundredths of a second,
/// independent of its own clock.
const TICK_MILLISECONDS: u64 = 10;

/// The cost of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// The increase of the resident memory up to its peak.
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

/// Measures the costs of a process from one moment on.
pub(crate) struct Meter {
    folder: PathBuf,
    resident: u64,
    ticks: u64,
}

impl Meter {
    /// Starts a measurement: resets the peak memory of the process to its current memory.
    pub(crate) fn begin(process: u32) -> Self {
        let folder = PathBuf::from(format!("/proc/{process}"));
        // Resets the peak (`proc(5)`). If the kernel does not support that, the peak since the
        // start of the process is used.
        let _ = std::fs::write(folder.join("clear_refs"), "5");
        let mut meter = Meter {
            folder,
            resident: 0,
            ticks: 0,
        };
        meter.resident = meter.status("VmRSS:");
        meter.ticks = meter.ticks();
        meter
    }

    /// Returns the cost since the start of the measurement.
    pub(crate) fn cost(&self) -> Cost {
        let ticks = self.ticks().saturating_sub(self.ticks);
        Cost {
            bytes: self.status("VmHWM:").saturating_sub(self.resident),
            time: Duration::from_millis(ticks * TICK_MILLISECONDS),
        }
    }

    /// Returns a number of bytes from `/proc/PROCESS/status`.
    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(self.folder.join("status")).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.split_ascii_whitespace().nth(1));
        number.and_then(|text| text.parse().ok()).unwrap_or(0) << 10
    }

    /// Returns the user and system time of the process.
    fn ticks(&self) -> u64 {
        let line = std::fs::read_to_string(self.folder.join("stat")).unwrap_or_default();
        // The name of the program is in parentheses, and may contain spaces.
        let rest = line.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
        number(11).unwrap_or(0) + number(12).unwrap_or(0)
    }
}

//! Formats the amount and the rate of transferred data.

use std::fmt;
use std::time::{Duration, Instant};

/// The number of samples from which the rate is computed.
const SAMPLES: usize = 8;

/// The shortest interval between samples.
const SPACING: Duration = Duration::from_millis(500);

/// The amount and the rate, shown as `, 1.20 MiB | 2.30 MiB/s`, with ` | 340 files/s` for phases
/// that process files. The text is empty until bytes are counted.
#[derive(Debug)]
pub(super) struct Throughput {
    begun: Instant,
    samples: Vec<(Instant, [u64; 2])>,
    counts_files: bool,
    text: String,
}

impl Throughput {
    pub(super) fn new(now: Instant, counts_files: bool) -> Self {
        Throughput {
            begun: now,
            samples: Vec::new(),
            counts_files,
            text: String::new(),
        }
    }

    /// Records the numbers of bytes and of processed items. The last call (`last`) computes the
    /// rates of the whole phase.
    pub(super) fn record(&mut self, bytes: u64, done: u64, now: Instant, last: bool) {
        if bytes == 0 {
            return;
        }
        let (since, before) = if last {
            (self.begun, [0; 2])
        } else {
            let newest = self.samples.last().map_or(self.begun, |(at, _)| *at);
            if now.saturating_duration_since(newest) < SPACING {
                return;
            }
            let oldest = self
                .samples
                .first()
                .copied()
                .unwrap_or((self.begun, [0; 2]));
            if self.samples.len() == SAMPLES {
                self.samples.remove(0);
            }
            self.samples.push((now, [bytes, done]));
            oldest
        };
        let millis = now.saturating_duration_since(since).as_millis().max(1);
        let rate = |now: u64, before: u64| {
            let moved = u128::from(now.saturating_sub(before));
            u64::try_from(moved * 1000 / millis).unwrap_or(u64::MAX)
        };
        self.text = format!(", {} | {}/s", size(bytes), size(rate(bytes, before[0])));
        if self.counts_files {
            let files = rate(done, before[1]);
            self.text.push_str(&format!(" | {files} files/s"));
        }
    }
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Formats a number of bytes with two decimals, in the unit that Git chooses.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in UNITS {
        if bytes > 1 << shift {
            let hundredths = (u128::from(bytes) * 100 + (1 << (shift - 1))) >> shift;
            return format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100);
        }
    }
    if bytes == 1 {
        "1 byte".to_owned()
    } else {
        format!("{bytes} bytes")
    }
}

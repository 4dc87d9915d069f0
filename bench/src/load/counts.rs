//! Distributions of times.

use std::time::Duration;

/// Returns the percentile `share` of the times in milliseconds; 0 without times.
pub fn percentile(times: &[Duration], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    let at = (last as f64 * share).round() as usize;
    sorted.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// Returns the median; 0 without numbers.
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

//! Formats times as Git's traces do.

use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Returns the local time of day: `20:00:44.284626`.
pub(crate) fn local_time() -> String {
    Zoned::now().strftime("%H:%M:%S.%6f").to_string()
}

/// Returns the UTC time with separators: `2026-11-20T20:00:44.290635Z`.
pub(crate) fn utc_time() -> String {
    utc("%Y-%m-%dT%H:%M:%S.%6fZ")
}

/// Returns the UTC time without separators: `20261120T200044.290614Z`.
pub(crate) fn utc_compact() -> String {
    utc("%Y%m%dT%H%M%S.%6fZ")
}

fn utc(format: &str) -> String {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH);
    now.to_zoned(TimeZone::UTC).strftime(format).to_string()
}

/// Formats a duration in seconds with six decimals.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{}.{:06}", duration.as_secs(), duration.subsec_micros())
}

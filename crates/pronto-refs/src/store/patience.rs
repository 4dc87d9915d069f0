//! The timeouts of the locks of refs.

use std::time::Duration;

use pronto_config::Result;
use pronto_config::config::Config;

/// Returns the time to wait for the lock of one reference (`core.filesRefLockTimeout`). Git reads the setting when it takes
/// the first lock, so that a malformed value concerns only commands that change references.
///
/// # Errors
/// The value is no integer.
pub fn patience(config: &Config) -> Result<Duration> {
    timeout(config, "core.filesreflocktimeout", 100)
}

/// Returns a timeout in milliseconds; negative ones have no end.
///
/// # Errors
/// The value is no integer.
pub(super) fn timeout(config: &Config, key: &str, default: i32) -> Result<Duration> {
    let given = config.i32(key)?.unwrap_or(default);
    Ok(u64::try_from(given).map_or(Duration::MAX / 4, Duration::from_millis))
}

//! The timeouts of the locks of refs.

use std::time::Duration;

use pronto_config::Result;
use pronto_config::config::Config;

/// Returns the time to wait for the lock of one ref (`core.filesRefLockTimeout`). Git reads the
/// setting when Git takes the first lock, so that a malformed value affects only commands that
/// change refs.
///
/// # Errors
/// Fails with `ErrorKind::ConfigValue` if the value is not an integer.
pub fn patience(config: &Config) -> Result<Duration> {
    timeout(config, "core.filesreflocktimeout", 100)
}

/// Returns the timeout that `key` configures in milliseconds. A negative value stands for no limit.
///
/// # Errors
/// Fails with `ErrorKind::ConfigValue` if the value is not an integer.
pub(super) fn timeout(config: &Config, key: &str, default: i32) -> Result<Duration> {
    let given = config.i32(key)?.unwrap_or(default);
    Ok(u64::try_from(given).map_or(Duration::MAX / 4, Duration::from_millis))
}

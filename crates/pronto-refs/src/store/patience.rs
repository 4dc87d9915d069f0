//! The time to wait for the locks of references.

use std::time::Duration;

use pronto_config::config::Config;

/// Returns the time to wait for the lock of one reference.
pub fn patience(config: &Config) -> Duration {
    timeout(config, "core.filesreflocktimeout", 100)
}

/// A timeout in milliseconds; negative ones wait for as good as ever.
pub(super) fn timeout(config: &Config, key: &str, default: i64) -> Duration {
    let given = config.i64(key).ok().flatten().unwrap_or(default);
    u64::try_from(given).map_or(Duration::MAX / 4, Duration::from_millis)
}

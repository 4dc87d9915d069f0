//! The timeouts of the locks of refs.

use std::time::Duration;

use pronto_config::config::Config;

/// Returns the timeout of the lock of one ref (`core.filesRefLockTimeout`).
pub fn patience(config: &Config) -> Duration {
    timeout(config, "core.filesreflocktimeout", 100)
}

/// Reads a timeout in milliseconds from the configuration; a negative one means to wait without a
/// limit.
pub(super) fn timeout(config: &Config, key: &str, default: i64) -> Duration {
    let given = config.i64(key).ok().flatten().unwrap_or(default);
    u64::try_from(given).map_or(Duration::MAX / 4, Duration::from_millis)
}

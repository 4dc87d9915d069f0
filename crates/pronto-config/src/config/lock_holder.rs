//! The record of the process that holds a lock (`core.lockfilePid`).

use super::Config;
use crate::lock::Lock;

impl Config {
    /// Returns whether locks record the process id of their holder (`core.lockfilePid`). A
    /// malformed value has no effect.
    pub fn records_lock_holders(&self) -> bool {
        self.bool_or("core.lockfilepid", false).unwrap_or(false)
    }
}

impl Lock {
    /// Records this process as the holder of the lock, if `core.lockfilePid` is set in `config`
    /// ([`Config::records_lock_holders`]).
    #[must_use]
    pub fn recorded(mut self, config: &Config) -> Self {
        if config.records_lock_holders() {
            self.record_process();
        }
        self
    }
}

//! The settings of garbage collection.

use std::ffi::OsString;

use bstr::{BStr, BString, ByteSlice};

use crate::config::Config;
use crate::revision::{approximate_date, parse_expiry};
use crate::{Error, ErrorKind, Repository, Result};

/// The settings `gc.*`, with Git's defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Pack refs (`gc.packRefs`).
    pub pack_refs: bool,
    /// Expire reflog entries. False if both `gc.reflogExpire` and `gc.reflogExpireUnreachable` are
    /// `never`.
    pub expire_reflogs: bool,
    /// Store unreachable objects in a cruft pack (`gc.cruftPacks`).
    pub cruft_packs: bool,
    /// The size in bytes up to which cruft packs are combined; zero for no limit
    /// (`gc.maxCruftSize`).
    pub max_cruft_size: u64,
    /// The longest delta chain with `--aggressive` (`gc.aggressiveDepth`).
    pub aggressive_depth: i32,
    /// The size of the delta window with `--aggressive` (`gc.aggressiveWindow`).
    pub aggressive_window: i32,
    /// The number of loose objects above which automatic garbage collection runs; not positive for
    /// never (`gc.auto`).
    pub auto: i32,
    /// The number of packs above which automatic garbage collection runs (`gc.autoPackLimit`).
    pub auto_pack_limit: i32,
    /// Run automatic garbage collection in the background (`gc.autoDetach`).
    pub detach: bool,
    /// The time, in seconds since 1970, before which `gc.log` is expired (`gc.logExpiry`).
    pub log_expires_before: i64,
    /// The expiry time of unreachable objects, as text (`gc.pruneExpire`, `--prune`); `None` to
    /// keep them all where they are.
    pub prune_expire: Option<BString>,
    /// The path of a cruft pack for the deleted objects (`--expire-to`).
    pub expire_to: Option<OsString>,
    /// The expiry time of the administrative files of deleted worktrees (`gc.worktreePruneExpire`).
    pub worktree_prune_expire: BString,
    /// The size in bytes from which on packs are not repacked; zero for no limit
    /// (`gc.bigPackThreshold`).
    pub big_pack_threshold: u64,
    /// The object filter of the repack (`gc.repackFilter`).
    pub repack_filter: BString,
    /// The path of the pack that receives the filtered out objects (`gc.repackFilterTo`).
    pub repack_filter_to: BString,
}

impl Settings {
    /// Reads the settings of `repository`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a setting has an invalid value, or if an expiry
    /// time is malformed or not in the past.
    pub fn of(repository: &Repository) -> Result<Self> {
        let config = repository.config();
        let is_bare = repository.is_bare();
        let pack_refs = match config.raw("gc.packrefs").map(|value| value.as_bytes()) {
            Some(b"notbare") => !is_bare,
            _ => config.bool_or("gc.packrefs", true)?,
        };
        let keeps_all =
            is_never(config, "gc.reflogexpire")? && is_never(config, "gc.reflogexpireunreachable")?;
        let number = |key: &str, default| Ok::<_, Error>(config.i32(key)?.unwrap_or(default));
        let text = |key: &str| Ok::<_, Error>(config.string(key)?.unwrap_or_default().to_owned());
        Ok(Settings {
            pack_refs,
            expire_reflogs: !keeps_all,
            cruft_packs: config.bool_or("gc.cruftpacks", true)?,
            max_cruft_size: config.u64("gc.maxcruftsize")?.unwrap_or(0),
            aggressive_depth: number("gc.aggressivedepth", 50)?,
            aggressive_window: number("gc.aggressivewindow", 250)?,
            auto: number("gc.auto", 6700)?,
            auto_pack_limit: number("gc.autopacklimit", 50)?,
            detach: config.bool_or("gc.autodetach", true)?,
            log_expires_before: log_expiry(config)?,
            prune_expire: Some(age(config, "gc.pruneexpire", "2.weeks.ago")?),
            expire_to: None,
            worktree_prune_expire: age(config, "gc.worktreepruneexpire", "3.months.ago")?,
            big_pack_threshold: config.u64("gc.bigpackthreshold")?.unwrap_or(0),
            repack_filter: text("gc.repackfilter")?,
            repack_filter_to: text("gc.repackfilterto")?,
        })
    }
}

/// Parses an expiry time and returns it in seconds since 1970.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if `text` is not a date.
pub(super) fn moment(text: &BStr) -> Result<i64> {
    parse_expiry(text).ok_or_else(|| invalid(format!("failed to parse expiry value '{text}'")))
}

fn log_expiry(config: &Config) -> Result<i64> {
    let text = age(config, "gc.logexpiry", "1.day.ago")?;
    let message = || format!("failed to parse gc.logExpiry value {text}");
    parse_expiry(text.as_bstr()).ok_or_else(|| invalid(message()))
}

/// Reads a configured expiry time, which must be in the past.
fn age(config: &Config, key: &str, default: &str) -> Result<BString> {
    let Some(entry) = config.entry_of(key) else {
        return Ok(default.into());
    };
    let text = entry.string()?;
    let is_valid = || approximate_date(text) < approximate_date("now".into());
    if text != "now" && !is_valid() {
        let message = format!("Invalid {key}: '{text}'");
        return Err(entry.bad_variable().reported_after(message));
    }
    Ok(text.to_owned())
}

fn is_never(config: &Config, key: &str) -> Result<bool> {
    match config.raw(key) {
        Some(text) => {
            let message = || format!("failed to parse '{key}' value '{text}'");
            Ok(parse_expiry(text).ok_or_else(|| invalid(message()))? == 0)
        }
        None => Ok(false),
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::ConfigValue, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_moments() {
        assert_eq!(moment("now".into()).expect("known"), i64::MAX);
        assert_eq!(moment("never".into()).expect("known"), 0);
        assert!(moment("2.weeks.ago".into()).expect("known") > 0);
        assert!(moment("???".into()).is_err());
    }
}

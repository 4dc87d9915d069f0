//! The configuration of garbage collection.

use std::ffi::OsString;

use bstr::{BStr, BString, ByteSlice};

use crate::config::Config;
use crate::revision::{approximate_date, parse_expiry};
use crate::{Error, ErrorKind, Repository, Result};

/// The settings `gc.*`, with Git's defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Whether references are packed (`gc.packRefs`).
    pub pack_refs: bool,
    /// Whether entries of reflogs are removed: not if `gc.reflogExpire` and
    /// `gc.reflogExpireUnreachable` are both never.
    pub expire_reflogs: bool,
    /// Whether unreachable objects become a cruft pack (`gc.cruftPacks`).
    pub cruft_packs: bool,
    /// The size in bytes from which on cruft packs are not combined; zero for no limit
    /// (`gc.maxCruftSize`).
    pub max_cruft_size: u64,
    /// The longest chain of deltas that `--aggressive` makes (`gc.aggressiveDepth`).
    pub aggressive_depth: i32,
    /// With how many others `--aggressive` compares each object (`gc.aggressiveWindow`).
    pub aggressive_window: i32,
    /// From how many loose objects on automatic garbage collection runs; never if not positive
    /// (`gc.auto`).
    pub auto: i32,
    /// From how many packs on automatic garbage collection runs (`gc.autoPackLimit`).
    pub auto_pack_limit: i32,
    /// Whether automatic garbage collection is detached (`gc.autoDetach`).
    pub detach: bool,
    /// From when on a log of a failure counts no more, in seconds since 1970 (`gc.logExpiry`).
    pub log_expires_before: i64,
    /// From what age on unreachable objects are removed, as it is written (`gc.pruneExpire`); `None` for
    /// never, and for leaving them where they are.
    pub prune_expire: Option<BString>,
    /// The path of a cruft pack for removed objects (`--expire-to`).
    pub expire_to: Option<OsString>,
    /// The age from which the data of missing worktrees are removed (`gc.worktreePruneExpire`).
    pub worktree_prune_expire: BString,
    /// The size in bytes from which on packs are left as they are; zero for none
    /// (`gc.bigPackThreshold`).
    pub big_pack_threshold: u64,
    /// The filter of objects in packs (`gc.repackFilter`).
    pub repack_filter: BString,
    /// The path of a pack of filtered objects (`gc.repackFilterTo`).
    pub repack_filter_to: BString,
}

impl Settings {
    /// The settings of `repository`.
    ///
    /// # Errors
    /// A configured value is not of its type; [`ErrorKind::ConfigValue`] for a date that is not
    /// understood, or not in the past.
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

/// The moment that an age of expiry means, in seconds since 1970.
///
/// # Errors
/// [`ErrorKind::ConfigValue`] if it is not understood.
pub(super) fn moment(text: &BStr) -> Result<i64> {
    parse_expiry(text).ok_or_else(|| invalid(format!("failed to parse expiry value '{text}'")))
}

fn log_expiry(config: &Config) -> Result<i64> {
    let text = age(config, "gc.logexpiry", "1.day.ago")?;
    let message = || format!("failed to parse gc.logExpiry value {text}");
    parse_expiry(text.as_bstr()).ok_or_else(|| invalid(message()))
}

/// An age that is configured, which must lie in the past.
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

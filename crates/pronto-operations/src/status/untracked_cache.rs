//! Decides whether the untracked cache of the index may be used, and whether it is written.

use super::{Ignored, Options, Untracked};
use crate::ignores::ExcludeContents;
use crate::{Repository, Result, path};
use pronto_index::{ExcludeFile, IndexOutline, UntrackedCache};
use pronto_worktree::status::{DirectoryNews, Remembered, blob_id, renew};
use std::time::SystemTime;

/// The value of `core.untrackedCache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UntrackedCacheSetting {
    /// Use an existing cache (`keep`).
    Keep,
    /// Create a cache (`true`).
    Write,
    /// Remove the cache (`false`).
    Remove,
}

/// The change to make to the untracked cache in the index.
#[derive(Debug)]
pub(super) enum CacheUpdate<'a> {
    /// Keep the cache unchanged.
    Stay,
    /// The new cache is better, but not worth writing the index.
    Better(UntrackedCache<'a>),
    /// Write the new cache.
    Write(UntrackedCache<'a>),
    /// Remove the cache.
    Remove,
}

/// The untracked cache for one status.
pub(super) struct PreparedCache<'a> {
    setting: UntrackedCacheSetting,
    /// The cache in the form that the walk uses.
    pub(super) remembered: Option<Remembered<'a>>,
    /// Whether the index has a cache for another worktree path or system.
    pub(super) is_elsewhere: bool,
    /// Whether it differs from the cache in the index.
    is_new: bool,
}

fn setting(repository: &Repository) -> Result<UntrackedCacheSetting> {
    let config = repository.config();
    let many = config.bool_or("feature.manyFiles", false)?;
    let otherwise = if many {
        UntrackedCacheSetting::Write
    } else {
        UntrackedCacheSetting::Keep
    };
    let Some(entry) = config.entry_of("core.untrackedCache") else {
        return Ok(otherwise);
    };
    Ok(match entry.bool() {
        Ok(true) => UntrackedCacheSetting::Write,
        Ok(false) => UntrackedCacheSetting::Remove,
        Err(_) => otherwise,
    })
}

/// Returns the worktree path and system that a cache is valid for, in Git's format.
pub(super) fn ident(repository: &Repository) -> Result<Vec<u8>> {
    let top = repository.require_work_tree()?;
    let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
    let top = path::as_bytes(&top);
    let system = rustix::system::uname();
    let system = system.sysname().to_bytes();
    Ok([b"Location ", &**top, b", system ", system].concat())
}

/// Creates an empty cache for this worktree path and the configured mode of showing untracked
/// files.
pub(crate) fn new_untracked_cache(
    repository: &Repository,
    kind: pronto_hash::Kind,
) -> Result<UntrackedCache<'static>> {
    let ident = ident(repository)?;
    Ok(UntrackedCache::new(&ident, configured(repository), kind))
}

/// Returns the flags of a cache for the configured mode of showing untracked files
/// (`status.showUntrackedFiles`).
fn configured(repository: &Repository) -> u32 {
    match shows_all(repository) {
        true => UntrackedCache::ALL,
        false => UntrackedCache::NORMAL,
    }
}

/// Returns whether there may be an untracked cache: `core.untrackedCache` is not false.
pub(super) fn is_permitted(repository: &Repository) -> Result<bool> {
    let environment = repository.environment();
    Ok(setting(repository)? != UntrackedCacheSetting::Remove
        && !environment.boolean("GIT_DISABLE_UNTRACKED_CACHE", false)?)
}

fn shows_all(repository: &Repository) -> bool {
    let shown = repository.config().entry_of("status.showUntrackedFiles");
    let shown = shown.and_then(|entry| entry.string().ok());
    shown.is_some_and(|shown| *shown == *b"all")
}

/// Decides whether the cache of `index` may be used.
pub(super) fn prepare<'a>(
    repository: &Repository,
    index: &'a IndexOutline,
    options: &Options,
    excludes: &ExcludeContents,
) -> Result<PreparedCache<'a>> {
    let setting = setting(repository)?;
    let mut prepared = PreparedCache {
        setting,
        remembered: None,
        is_elsewhere: false,
        is_new: false,
    };
    let flags = configured(repository);
    let is_general = options.pathspec.is_empty() && options.ignored == Ignored::No;
    // A cache for `normal` mode helps to list all files, but a cache for `all` mode does not help
    // to list directories.
    let serves = match options.untracked {
        Untracked::No => false,
        Untracked::Normal => flags == UntrackedCache::NORMAL,
        Untracked::All => true,
    };
    if !is_general
        || !serves
        || !is_permitted(repository)?
        || (setting == UntrackedCacheSetting::Keep && !index.has_untracked_cache())
    {
        return Ok(prepared);
    }
    let ident = ident(repository)?;
    let kind = index.kind();
    let mut cache = index.untracked_cache();
    if (cache.as_ref()).is_some_and(|cache| !is_here(cache, &ident)) {
        prepared.is_elsewhere = setting == UntrackedCacheSetting::Keep;
        if prepared.is_elsewhere {
            return Ok(prepared);
        }
        cache = None;
    }
    let cache = cache.filter(|cache| cache.flags == flags);
    prepared.is_new = cache.is_none();
    let mut cache = cache.unwrap_or_else(|| UntrackedCache::new(&ident, flags, kind));
    prepared.is_new |= renew_excludes(&mut cache, excludes);
    let is_same = (flags == UntrackedCache::ALL) == (options.untracked == Untracked::All);
    let records = is_same && options.write_back;
    prepared.remembered = Some(Remembered::new(cache, records));
    Ok(prepared)
}

/// Returns whether `cache` is valid for the worktree path and system `ident`.
pub(super) fn is_here(cache: &UntrackedCache<'_>, ident: &[u8]) -> bool {
    cache.ident.split(|&byte| byte == 0).next() == Some(ident)
}

/// Records the content of `info/exclude` and `core.excludesFile`. Returns whether one of them has
/// changed, in which case the whole cache is invalidated.
pub(super) fn renew_excludes(cache: &mut UntrackedCache<'_>, excludes: &ExcludeContents) -> bool {
    let kind = cache.info_exclude.id.kind();
    let mut changed = false;
    for (known, now) in [
        (&mut cache.info_exclude, &excludes.info),
        (&mut cache.excludes_file, &excludes.file),
    ] {
        let id = match now {
            None => kind.null(),
            Some(file) if file.content.is_empty() => blob_id(kind, b"", b""),
            Some(file) => blob_id(kind, &file.content, b"\n"),
        };
        if known.id != id {
            changed = true;
            let stat = now.as_ref().map(|file| file.stat).unwrap_or_default();
            *known = ExcludeFile { stat, id };
        }
    }
    if changed && !cache.is_empty() {
        cache.invalidate_directory(0, true);
    }
    changed
}

/// Whether the index has a cache although the configuration forbids it.
pub(super) fn is_to_be_removed(repository: &Repository, index: &IndexOutline) -> Result<bool> {
    Ok(index.has_untracked_cache() && setting(repository)? == UntrackedCacheSetting::Remove)
}

impl<'a> PreparedCache<'a> {
    /// Returns the cache, if it may be used and is the one in the index.
    pub(super) fn unchanged(&self) -> Option<&UntrackedCache<'a>> {
        let remembered = self.remembered.as_ref().filter(|_| !self.is_new);
        remembered.map(|remembered| &remembered.cache)
    }

    /// Returns the change of the cache after a walk that found `news`.
    pub(super) fn fate(
        prepared: &PreparedCache<'a>,
        remembered: Option<Remembered<'a>>,
        index: &IndexOutline,
        news: Vec<DirectoryNews>,
        is_monitored: bool,
    ) -> CacheUpdate<'a> {
        let Some(remembered) = remembered.filter(|remembered| remembered.records) else {
            let remove =
                prepared.setting == UntrackedCacheSetting::Remove && index.has_untracked_cache();
            return if remove {
                CacheUpdate::Remove
            } else {
                CacheUpdate::Stay
            };
        };
        if news.is_empty() && !prepared.is_new {
            // The paths that the monitor reported are not recorded in the index yet.
            return match is_monitored {
                true => CacheUpdate::Better(remembered.cache),
                false => CacheUpdate::Stay,
            };
        }
        let renewed = renew(&remembered.cache, news);
        // Data of the same age as the index are verified again until the index is older.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let is_later = now.is_ok_and(|now| now.as_secs() as u32 > index.timestamp().seconds);
        let is_better = prepared.is_new || renewed != remembered.cache;
        match prepared.setting {
            UntrackedCacheSetting::Write if is_better || (is_later && !is_monitored) => {
                CacheUpdate::Write(renewed)
            }
            _ if is_better || is_later || is_monitored => CacheUpdate::Better(renewed),
            _ => CacheUpdate::Stay,
        }
    }
}

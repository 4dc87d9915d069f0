//! Writes refreshed data to the index, so that the next status is faster.

use super::monitor::MonitorAnswer;
use super::untracked_cache::CacheUpdate;
use crate::durability::Component;
use crate::{Repository, Result, index, shared, split_index};
use pronto_index::{CachedTree, EntryRef, Flags, Index, IndexEdit, Stat, mode, replace};
use std::time::{Duration, SystemTime};

/// A duration after which two writes of the index surely have different timestamps.
const SETTLED_FOR_SURE: Duration = Duration::from_secs(2);

/// The results of a status that the index does not contain yet.
pub(super) struct UnwrittenResults<'a> {
    /// The new stat data of files with unchanged content.
    pub(super) refreshed: &'a [(usize, Stat)],
    /// Whether every entry was examined.
    pub(super) is_complete: bool,
    /// The number of entries that are racy for Git, if every entry was examined.
    pub(super) racy_count: Option<usize>,
    /// More complete cached trees.
    pub(super) trees: Option<CachedTree>,
    /// The change of the untracked cache.
    pub(super) untracked: CacheUpdate<'a>,
    /// The monitor's data, and the entries that were examined and are unchanged.
    pub(super) monitor: Option<(&'a MonitorAnswer, &'a [u32])>,
}

/// Writes `index` with new data, if that speeds up the next status, no other process is writing the
/// index, and its file was not replaced.
pub(super) fn write_back(
    repository: &Repository,
    index: &Index,
    settle: Duration,
    news: UnwrittenResults<'_>,
) -> Result<()> {
    let waits = news.monitor.is_none_or(|(answer, _)| !answer.is_of_hook());
    if index.identity().is_none() || waits && !has_settled(index, settle) {
        return Ok(());
    }
    let time = index.timestamp();
    let racy = |entry: &EntryRef<'_>| {
        entry.mode & mode::TYPE != mode::GITLINK && entry.stat.is_racy_by_second(time)
    };
    // The paths that the monitor reported were examined, and the monitor guarantees the rest.
    let is_vouched = news.is_complete && news.monitor.is_some_and(|(answer, _)| answer.vouches());
    let has_racy = match news.racy_count {
        _ if is_vouched => false,
        Some(count) => count > 0,
        None => index.iter().any(|entry| racy(&entry)),
    };
    if has_racy && !news.is_complete {
        return Ok(());
    }
    let has_answer = news
        .monitor
        .is_some_and(|(answer, verified)| answer.is_worth_writing(verified));
    let keeps_untracked = matches!(news.untracked, CacheUpdate::Stay | CacheUpdate::Better(_));
    let is_as_it_was = news.refreshed.is_empty() && news.trees.is_none() && keeps_untracked;
    if is_as_it_was && !has_racy && !has_answer && !split_index::is_wrongly_split(repository, index)
    {
        let is_own = repository.index_path() == repository.git_dir().join("index");
        if is_own && has_settled(index, SETTLED_FOR_SURE) {
            index.keep_lengths();
        }
        return Ok(());
    }
    let mut edit = IndexEdit::new(index);
    for &(position, stat) in news.refreshed {
        let flags = index.entry(position).flags;
        edit.refresh(position, stat, flags.with(Flags::UP_TO_DATE));
    }
    if news.trees.is_some() {
        edit.set_cached_tree(news.trees);
    }
    match &news.untracked {
        CacheUpdate::Stay => {}
        CacheUpdate::Better(cache) | CacheUpdate::Write(cache) => {
            edit.set_untracked_cache(Some(cache))
        }
        CacheUpdate::Remove => edit.set_untracked_cache(None),
    }
    if let Some((answer, verified)) = news.monitor {
        let is_current = !matches!(news.untracked, CacheUpdate::Stay);
        answer.record(&mut edit, verified, is_current);
    }
    let writer = index::writer(repository)?;
    let Ok(bytes) = index::encode(repository, &writer, edit.content(), None) else {
        return Ok(());
    };
    // The index of a faster process is newer, and a full disk must not fail a status.
    let sync = repository.fsync()?.of(Component::Index);
    let path = repository.index_path();
    if matches!(replace(&path, &bytes, index, sync), Ok(true))
        && let Ok(sharing) = shared::configured(repository.config())
    {
        let _ = shared::adjust(sharing, &path);
    }
    Ok(())
}

/// Returns whether `index` has not been written for the time `settle`.
fn has_settled(index: &Index, settle: Duration) -> bool {
    let time = index.timestamp();
    let written = Duration::new(u64::from(time.seconds), time.nanoseconds);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // A time in the future is that of another clock.
    now.is_ok_and(|now| now.abs_diff(written) >= settle)
}

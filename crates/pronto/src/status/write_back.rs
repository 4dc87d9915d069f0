//! Writing the index after a look at the files, so that the next look is faster.

use crate::{Repository, Result};
use pronto_index::{Edit, EntryRef, Flags, Index, Lock, Stat, mode};

/// Writes `index` with the facts in `refreshed`, if that helps, nobody else is writing it, and it
/// is still the one that was read. `complete` says that every entry was looked at.
pub(super) fn write_back(
    repository: &Repository,
    index: &Index,
    refreshed: &[(usize, Stat)],
    complete: bool,
) -> Result<()> {
    if index.identity().is_none() || index.is_split() {
        return Ok(());
    }
    let time = index.timestamp();
    let racy = |entry: &EntryRef<'_>| {
        entry.mode & mode::TYPE != mode::GITLINK && entry.stat.is_racy_by_second(time)
    };
    let has_racy = index.iter().any(|entry| racy(&entry));
    if refreshed.is_empty() && !has_racy || has_racy && !complete {
        return Ok(());
    }
    let Ok(lock) = Lock::acquire(&repository.index_path()) else {
        return Ok(());
    };
    let mut edit = Edit::new(index);
    for &(position, stat) in refreshed {
        let flags = index.entry(position).flags;
        edit.refresh(position, stat, flags.with(Flags::UP_TO_DATE));
    }
    let Ok(bytes) = repository.index_writer()?.encode(&edit.content()) else {
        return Ok(());
    };
    // Someone who was faster knows better; a full disk is not the business of a status.
    let _ = lock.commit_if_unchanged(&bytes, index.identity());
    Ok(())
}

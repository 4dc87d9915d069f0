//! Adds, removes and changes the extensions of the index that are caches.

use std::time::{SystemTime, UNIX_EPOCH};

use bstr::BString;
use pronto_index::{Fsmonitor, Index, IndexEdit, UntrackedCache};

use super::Options;
use crate::status::new_untracked_cache;
use crate::{Repository, Result};

/// Adds and removes the caches according to `options`. Returns whether the index changes.
pub(super) fn change_caches(
    repository: &Repository,
    edit: &mut IndexEdit<'_>,
    index: &Index,
    options: &Options,
) -> Result<bool> {
    let mut changed = false;
    match options.untracked_cache {
        Some(true) => {
            let new = new_untracked_cache(repository, index.kind())?;
            let is_here =
                |known: &UntrackedCache<'_>| known.ident == new.ident && known.flags == new.flags;
            if !index.untracked_cache().as_ref().is_some_and(is_here) {
                edit.set_untracked_cache(Some(&new));
                changed = true;
            }
        }
        Some(false) => {
            edit.set_untracked_cache(None);
            changed |= index.has_untracked_cache();
        }
        None => {}
    }
    let decoded_fsmonitor = index.fsmonitor().ok().flatten();
    match options.fsmonitor {
        Some(true) if decoded_fsmonitor.is_none() => {
            edit.set_fsmonitor(Some(&empty_fsmonitor(edit.content().entries.len())));
            changed = true;
        }
        Some(false) => {
            edit.set_fsmonitor(None);
            changed |= decoded_fsmonitor.is_some();
        }
        _ => {}
    }
    Ok(changed)
}

/// Returns the `FSMN` extension before a monitor was queried: no entry has the fsmonitor-valid bit.
fn empty_fsmonitor(entries: usize) -> Fsmonitor {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let token = now.unwrap_or_default().as_nanos().to_string();
    Fsmonitor::new(token.into(), 0..entries as u32)
}

/// Sets or clears the fsmonitor-valid bit of entries. Does nothing if the index has no monitor's
/// data.
pub(super) fn vouch(edit: &mut IndexEdit<'_>, marks: &[(BString, bool)]) -> Result<()> {
    let decoded_fsmonitor = {
        let content = edit.content();
        let Some(decoded_fsmonitor) = content
            .decoded_fsmonitor()
            .map_err(crate::errors::from_index)?
        else {
            return Ok(());
        };
        let mut dirty = vec![false; content.entries.len()];
        decoded_fsmonitor
            .dirty
            .iter()
            .for_each(|at| dirty[at] = true);
        for (path, is_valid) in marks {
            let found = content
                .entries
                .binary_search_by(|entry| (entry.path, entry.stage()).cmp(&(path.as_ref(), 0)));
            if let Ok(at) = found {
                dirty[at] = !is_valid;
            }
        }
        let dirty = (0u32..).zip(dirty).filter(|(_, is_dirty)| *is_dirty);
        Fsmonitor::new(decoded_fsmonitor.token, dirty.map(|(at, _)| at))
    };
    edit.set_fsmonitor(Some(&decoded_fsmonitor));
    Ok(())
}

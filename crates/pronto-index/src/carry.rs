//! Carries the caches of an index over to a changed list of entries.

use crate::entry::EntryRef;
use crate::extension;
use crate::fsmonitor::Fsmonitor;
use crate::index::Index;
use crate::untracked::UntrackedCache;
use std::borrow::Cow;

/// Returns the encoded untracked cache of `base`, with the directories invalidated in which paths
/// were added or removed. Linear.
pub(crate) fn untracked<'a>(base: &'a Index, entries: &[EntryRef<'_>]) -> Option<Cow<'a, [u8]>> {
    let data = base.extension(extension::UNTRACKED)?;
    let mut changed = Vec::new();
    let (mut at, mut rest) = (0, entries.iter().peekable());
    while at < base.len() || rest.peek().is_some() {
        let old = (at < base.len()).then(|| base.path(at));
        let new = rest.peek().map(|entry| entry.path);
        let path = match (old, new) {
            (Some(old), Some(new)) if old != new => old.min(new),
            (Some(old), None) => old,
            (None, Some(new)) => new,
            (Some(path), _) => path,
            (None, None) => break,
        };
        if old != new {
            changed.push(path);
        }
        while at < base.len() && base.path(at) == path {
            at += 1;
        }
        while rest.next_if(|entry| entry.path == path).is_some() {}
    }
    if changed.is_empty() {
        return Some(Cow::Borrowed(data));
    }
    let mut cache = UntrackedCache::parse(data, base.kind())?;
    for path in changed {
        cache.invalidate(path);
    }
    let mut encoded = Vec::with_capacity(data.len());
    cache.encode(&mut encoded);
    Some(Cow::Owned(encoded))
}

/// Returns the encoded data of the file system monitor, with changed entries marked to be examined.
/// Linear.
pub(crate) fn fsmonitor<'a>(base: &'a Index, entries: &[EntryRef<'_>]) -> Option<Cow<'a, [u8]>> {
    let fsmonitor = base.fsmonitor().ok().flatten()?;
    let mut at = 0;
    let mut dirty_before = fsmonitor.dirty.iter().peekable();
    let mut dirty = Vec::new();
    for (position, entry) in (0u32..).zip(entries) {
        let key = entry.key();
        while at < base.len() && base.key(at) < key {
            at += 1;
        }
        while dirty_before.next_if(|&dirty| dirty < at).is_some() {}
        let is_same = at < base.len()
            && base.key(at) == key
            && base.entry(at) == *entry
            && dirty_before.peek() != Some(&at);
        if !is_same {
            dirty.push(position);
        }
    }
    let mut encoded = Vec::new();
    Fsmonitor::new(fsmonitor.token, dirty).encode(&mut encoded);
    Some(Cow::Owned(encoded))
}

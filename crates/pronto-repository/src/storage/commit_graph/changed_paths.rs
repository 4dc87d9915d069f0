//! Computes the Bloom filters of changed paths.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Mutex;

use pronto_hash::{ObjectId, oid};
use pronto_io::pool::{self, Workers};
use pronto_odb::Store;
use pronto_pack::commit_graph::bloom::{MAX_CHANGED_PATHS, Settings, filter_of};
use std::ops::ControlFlow;

use super::gather::Commits;
use super::levels::Resolved;
use super::{Source, Work};
use crate::links::{RawEntry, links_in, tree_entries};
use crate::objects::from_odb;
use crate::{Error, ErrorKind, Result};

/// Deeper trees are refused.
const DEEPEST: usize = 2048;

/// A filter for each of `commits`; an empty one where it was not to be made.
pub(super) fn compute(
    work: &Work<'_>,
    settings: &Settings,
    commits: &Commits,
    (resolved, generations): (&Resolved, bool),
) -> Result<Vec<Vec<u8>>> {
    let title = "Computing commit changed paths Bloom filters";
    let meter = work.progress.begin(title, Some(commits.len() as u64));
    let mut filters = vec![Vec::new(); commits.len()];
    let mut missing = Vec::new();
    let most = work.options.max_new_filters.unwrap_or(usize::MAX);
    for at in in_order(work, commits, (resolved, generations))? {
        match work.present_filter(&commits[at].id)? {
            Some(filter) => filters[at] = filter,
            None if missing.len() < most => missing.push(at),
            None => {}
        }
    }
    meter.add((commits.len() - missing.len()) as u64);
    let made = Mutex::new(Vec::with_capacity(missing.len()));
    let failed = Mutex::new(None);
    pool::run(
        Workers::Exactly(pool::cores().min(missing.len().div_ceil(16))),
        missing.len(),
        Vec::new,
        |own: &mut Vec<(usize, Vec<u8>)>, range| {
            for at in &missing[range] {
                match work
                    .check()
                    .and_then(|()| filter(work, settings, &commits[*at]))
                {
                    Ok(filter) => own.push((*at, filter)),
                    Err(error) => {
                        lock(&failed).get_or_insert(error);
                        return ControlFlow::Break(());
                    }
                }
                meter.add(1);
            }
            ControlFlow::Continue(())
        },
        |own| lock(&made).extend(own),
    );
    if let Some(error) = lock(&failed).take() {
        return Err(error);
    }
    for (at, filter) in std::mem::take(&mut *lock(&made)) {
        filters[at] = filter;
    }
    meter.finish();
    Ok(filters)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// In which order filters are made, which matters when not all are.
fn in_order(
    work: &Work<'_>,
    commits: &Commits,
    (resolved, generations): (&Resolved, bool),
) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..commits.len()).collect();
    if let Source::Packed | Source::Packs(_) = work.options.source {
        order.sort_by_key(|at| commits[*at].met);
        return Ok(order);
    }
    let mut keys = Vec::with_capacity(commits.len());
    for (commit, entry) in commits.iter().zip(&resolved.entries) {
        let generation = match generations {
            true => entry.generation,
            false => work.loaded_generation(commit)?,
        };
        keys.push((generation, entry.time));
    }
    order.sort_by_key(|at| keys[*at]);
    Ok(order)
}

fn filter(work: &Work<'_>, settings: &Settings, commit: &super::gather::Commit) -> Result<Vec<u8>> {
    let before = match commit.links.parents.first() {
        Some(parent) => Some(links_in(&work.store, parent, &mut Vec::new())?.tree),
        None => None,
    };
    let mut changed = Changed {
        store: &work.store,
        paths: HashSet::new(),
        path: Vec::new(),
    };
    if before.as_ref() != Some(&commit.links.tree) {
        changed.directory(before.as_deref(), Some(&commit.links.tree), 0)?;
    }
    let paths = changed.paths.iter().map(Vec::as_slice);
    Ok(filter_of(paths, settings))
}

/// Collects paths that differ between two trees, and the directories above them.
struct Changed<'a> {
    store: &'a Store,
    paths: HashSet<Vec<u8>>,
    path: Vec<u8>,
}

impl Changed<'_> {
    /// Whether anything below differs.
    fn directory(&mut self, old: Option<&oid>, new: Option<&oid>, depth: usize) -> Result<bool> {
        if depth > DEEPEST {
            return Err(Error::new(ErrorKind::Object, "tree is nested too deep"));
        }
        let (mut old_content, mut new_content) = (Vec::new(), Vec::new());
        self.read(old, &mut old_content)?;
        self.read(new, &mut new_content)?;
        let length = self.store.kind().len_in_bytes();
        let mut old = tree_entries(&old_content, length).peekable();
        let mut new = tree_entries(&new_content, length).peekable();
        let mut any = false;
        while self.paths.len() <= MAX_CHANGED_PATHS {
            let order = match (old.peek(), new.peek()) {
                (None, None) => break,
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
                (Some(one), Some(two)) => compare(one, two),
            };
            let before = if order.is_le() { old.next() } else { None };
            let after = if order.is_ge() { new.next() } else { None };
            any |= self.entry(before, after, depth)?;
        }
        Ok(any)
    }

    fn entry(
        &mut self,
        before: Option<RawEntry<'_>>,
        after: Option<RawEntry<'_>>,
        depth: usize,
    ) -> Result<bool> {
        let same = before.zip(after).is_some_and(|(before, after)| {
            before.id == after.id && canonical(before.mode) == canonical(after.mode)
        });
        let Some(either) = before.or(after).filter(|_| !same) else {
            return Ok(false);
        };
        let length = self.path.len();
        if length > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(either.name);
        let differs = if either.is_directory() {
            let id = |entry: Option<RawEntry<'_>>| {
                entry.and_then(|entry| ObjectId::try_from(entry.id).ok())
            };
            self.directory(id(before).as_deref(), id(after).as_deref(), depth + 1)?
        } else {
            true
        };
        if differs {
            self.paths.insert(self.path.clone());
        }
        self.path.truncate(length);
        Ok(differs)
    }

    fn read(&self, id: Option<&oid>, content: &mut Vec<u8>) -> Result<()> {
        let Some(id) = id else {
            return Ok(());
        };
        match self.store.find(id, content).map_err(from_odb)? {
            Some(gix_object::Kind::Tree) => Ok(()),
            _ => {
                let message = format!("unable to read tree ({id})");
                Err(Error::new(ErrorKind::Object, message))
            }
        }
    }
}

/// The order of trees, in which directories have a slash at their ends.
fn compare(one: &RawEntry<'_>, two: &RawEntry<'_>) -> Ordering {
    let slash = |entry: &RawEntry<'_>| entry.is_directory().then_some(&b'/');
    let (first, second) = (slash(one), slash(two));
    if one.name == two.name {
        return first.cmp(&second);
    }
    one.name
        .iter()
        .chain(first)
        .cmp(two.name.iter().chain(second))
}

/// What counts of a mode: the kind, and whether a file may be run.
fn canonical(mode: &[u8]) -> u32 {
    let digits = mode.iter().take(8);
    let mode = digits.fold(0, |mode, digit| mode << 3 | u32::from(digit & 7));
    match mode & 0o170_000 {
        0o100_000 => 0o100_000 | mode & 0o100,
        kind => kind,
    }
}

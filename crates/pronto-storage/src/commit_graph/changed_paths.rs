//! Computes the Bloom filters of changed paths.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Mutex;

use pronto_hash::{ObjectId, oid};
use pronto_io::pool::{self, Workers};
use pronto_object::{TreeEntries, TreeEntry};
use pronto_odb::Store;
use pronto_pack::commit_graph::bloom::{MAX_CHANGED_PATHS, Settings, filter_of};
use pronto_repository::links::links_in;
use pronto_repository::objects::from_odb;
use pronto_repository::{Error, ErrorKind, Result};
use std::ops::ControlFlow;

use super::gather::SortedCommits;
use super::levels::ResolvedCommits;
use super::{CommitSource, GraphWriter};

/// The largest depth of trees. Deeper trees are refused.
const DEEPEST: usize = 2048;

/// Computes a filter for each of `commits`. The filter is empty if the limit of new filters is
/// exceeded.
pub(super) fn compute(
    work: &GraphWriter<'_>,
    settings: &Settings,
    commits: &SortedCommits,
    resolved: &ResolvedCommits,
    generations: bool,
) -> Result<Vec<Vec<u8>>> {
    let title = "Computing commit changed paths Bloom filters";
    let meter = work
        .watch
        .progress()
        .begin(title, Some(commits.len() as u64));
    let mut filters = vec![Vec::new(); commits.len()];
    let mut missing = Vec::new();
    let most = work.options.max_new_filters.unwrap_or(usize::MAX);
    for at in in_order(work, commits, resolved, generations)? {
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
    let made = std::mem::take(&mut *lock(&made));
    record(&made, commits.len(), settings);
    for (at, filter) in made {
        filters[at] = filter;
    }
    meter.finish();
    Ok(filters)
}

/// Writes to the trace how many of `count` filters were computed.
fn record(made: &[(usize, Vec<u8>)], count: usize, settings: &Settings) {
    // Filters for too many paths or for no path are one byte long, and no others are.
    let with = |byte: u8| made.iter().filter(|(_, filter)| *filter == [byte]).count();
    pronto_io::data!("commit-graph", "filter-computed", made.len());
    pronto_io::data!("commit-graph", "filter-not-computed", count - made.len());
    pronto_io::data!("commit-graph", "filter-trunc-empty", with(0));
    pronto_io::data!("commit-graph", "filter-trunc-large", with(0xff));
    pronto_io::data!("commit-graph", "filter-upgraded", 0);
    let Settings {
        hash_count,
        bits_per_entry,
        ..
    } = settings;
    pronto_io::data_json!(
        "bloom",
        "settings",
        format_args!(
            "{{\"hash_version\":1,\"num_hashes\":{hash_count},\
             \"bits_per_entry\":{bits_per_entry},\"max_changed_paths\":{MAX_CHANGED_PATHS}}}"
        )
    );
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns the order in which filters are computed. The order matters if there is a limit.
fn in_order(
    work: &GraphWriter<'_>,
    commits: &SortedCommits,
    resolved: &ResolvedCommits,
    generations: bool,
) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..commits.len()).collect();
    if let CommitSource::Packed | CommitSource::Packs(_) = work.options.source {
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

fn filter(
    work: &GraphWriter<'_>,
    settings: &Settings,
    commit: &super::gather::GatheredCommit,
) -> Result<Vec<u8>> {
    let before = match commit.links.parents.first() {
        Some(parent) => Some(links_in(&work.store, parent, &mut Vec::new())?.tree),
        None => None,
    };
    let mut changed = ChangedPathCollector {
        store: &work.store,
        paths: HashSet::new(),
        path: Vec::new(),
        spare: Vec::new(),
    };
    if before.as_ref() != Some(&commit.links.tree) {
        changed.walk(before.as_deref(), Some(&commit.links.tree))?;
    }
    let paths = changed.paths.iter().map(Vec::as_slice);
    Ok(filter_of(paths, settings))
}

/// Collects paths that differ between two trees, and the directories above them.
struct ChangedPathCollector<'a> {
    store: &'a Store,
    paths: HashSet<Vec<u8>>,
    path: Vec<u8>,
    /// Reusable buffers for the content of trees.
    spare: Vec<Vec<u8>>,
}

/// A directory that is being compared. Levels are on an explicit stack, because nested trees could
/// overflow the stack of a thread.
struct TreePair {
    old: TreeContent,
    new: TreeContent,
    /// The length of the path of the parent directory.
    outer_len: usize,
    /// Whether any entry differs.
    differs: bool,
}

/// The content of a tree, and the position of the next entry.
struct TreeContent {
    content: Vec<u8>,
    at: usize,
}

/// The result of comparing the entries of one name.
enum NameComparison {
    Same,
    Different,
    /// Two trees of a directory that must be compared.
    Directory(Option<ObjectId>, Option<ObjectId>),
}

impl ChangedPathCollector<'_> {
    fn walk(&mut self, old: Option<&oid>, new: Option<&oid>) -> Result<()> {
        let length = self.store.kind().len_in_bytes();
        let mut levels = vec![self.level(old, new, 0)?];
        while let Some(level) = levels.last_mut() {
            let (old, new) = (level.old.peek(length), level.new.peek(length));
            let order = match (&old, &new) {
                _ if self.paths.len() > MAX_CHANGED_PATHS => None,
                (None, None) => None,
                (None, _) => Some(Ordering::Greater),
                (_, None) => Some(Ordering::Less),
                (Some(old), Some(new)) => Some(compare(old, new)),
            };
            let Some(order) = order else {
                self.leave(&mut levels);
                continue;
            };
            let old = old.filter(|_| order.is_le());
            let new = new.filter(|_| order.is_ge());
            let outer_len = self.path.len();
            let compared = self.entry(old, new);
            let taken = [old, new].map(|entry| entry.map_or(0, |entry| entry.size_bytes()));
            level.old.at += taken[0];
            level.new.at += taken[1];
            match compared {
                NameComparison::Same => {}
                NameComparison::Different => {
                    self.paths.insert(self.path.clone());
                    level.differs = true;
                }
                NameComparison::Directory(old, new) => {
                    if levels.len() > DEEPEST {
                        return Err(Error::new(ErrorKind::Object, "trees are nested too deeply"));
                    }
                    levels.push(self.level(old.as_deref(), new.as_deref(), outer_len)?);
                    continue;
                }
            }
            self.path.truncate(outer_len);
        }
        Ok(())
    }

    fn level(
        &mut self,
        old: Option<&oid>,
        new: Option<&oid>,
        outer_len: usize,
    ) -> Result<TreePair> {
        Ok(TreePair {
            old: self.entries(old)?,
            new: self.entries(new)?,
            outer_len,
            differs: false,
        })
    }

    fn entries(&mut self, tree: Option<&oid>) -> Result<TreeContent> {
        let mut content = self.spare.pop().unwrap_or_default();
        content.clear();
        self.read(tree, &mut content)?;
        Ok(TreeContent { content, at: 0 })
    }

    /// Ends the comparison of the innermost directory.
    fn leave(&mut self, levels: &mut Vec<TreePair>) {
        let Some(level) = levels.pop() else { return };
        if let Some(above) = levels.last_mut().filter(|_| level.differs) {
            self.paths.insert(self.path.clone());
            above.differs = true;
        }
        self.path.truncate(level.outer_len);
        self.spare.extend([level.old.content, level.new.content]);
    }

    /// Compares the entries of one name. Appends the name to the path if they differ.
    fn entry(&mut self, old: Option<TreeEntry<'_>>, new: Option<TreeEntry<'_>>) -> NameComparison {
        let same = old.zip(new).is_some_and(|(old, new)| {
            old.id == new.id && canonical(old.mode) == canonical(new.mode)
        });
        let Some(either) = old.or(new).filter(|_| !same) else {
            return NameComparison::Same;
        };
        if !self.path.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(either.name);
        if !either.is_directory() {
            return NameComparison::Different;
        }
        let id = |entry: Option<TreeEntry<'_>>| {
            entry.and_then(|entry| ObjectId::try_from(entry.id).ok())
        };
        NameComparison::Directory(id(old), id(new))
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

impl TreeContent {
    /// Returns the next entry.
    fn peek(&self, id_length: usize) -> Option<TreeEntry<'_>> {
        TreeEntries::new(&self.content[self.at..], id_length).next()
    }
}

/// Compares tree entries in the order of trees, in which names of directories end with a slash.
fn compare(one: &TreeEntry<'_>, two: &TreeEntry<'_>) -> Ordering {
    let slash = |entry: &TreeEntry<'_>| entry.is_directory().then_some(&b'/');
    let (first, second) = (slash(one), slash(two));
    if one.name == two.name {
        return first.cmp(&second);
    }
    one.name
        .iter()
        .chain(first)
        .cmp(two.name.iter().chain(second))
}

/// Returns the significant part of a mode: the type and the executable bit.
fn canonical(mode: &[u8]) -> u32 {
    let digits = mode.iter().take(8);
    let mode = digits.fold(0, |mode, digit| mode << 3 | u32::from(digit & 7));
    match mode & 0o170_000 {
        0o100_000 => 0o100_000 | mode & 0o100,
        kind => kind,
    }
}

//! Maps remote refs to local refs by refspecs.

use std::collections::{HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{IdCache, ObjectId};
use pronto_odb::Store;
use pronto_wire::advertisement::RemoteRef;

use super::{FetchFailure, FetchRun, FetchWarning, Outcome};
use crate::objects::from_odb;
use crate::refs::name::{self, Form};
use crate::remote::{Refspec, Tags, local_name};
use crate::{Error, ErrorKind, Result};

/// A ref of the remote that is fetched.
#[derive(Clone, Debug)]
pub(super) struct FetchedRef {
    /// The full name of the remote ref, or a requested object id.
    pub(super) name: BString,
    pub(super) id: ObjectId,
    pub(super) local: Option<LocalName>,
    pub(super) merge: FetchHeadKind,
    /// Whether the ref needs new shallow commits of the remote.
    pub(super) needs_cut: bool,
}

impl FetchedRef {
    /// Whether an object was requested by its id.
    pub(super) fn is_id(&self) -> bool {
        pronto_hash::parse_hex(&self.name).is_ok()
    }
}

/// The local ref to update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocalName {
    pub(super) name: BString,
    pub(super) force: bool,
    pub(super) old: Option<ObjectId>,
}

/// The kind of a line in `FETCH_HEAD`. The variants are in the order of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FetchHeadKind {
    Merge,
    NotForMerge,
    Ignore,
}

pub(super) struct Mapping {
    pub(super) entries: Vec<FetchedRef>,
    /// Whether tags that point to fetched objects are fetched, too.
    pub(super) follows_tags: bool,
}

impl Mapping {
    pub(super) fn make(work: &FetchRun<'_>, refs: &[RemoteRef], out: &mut Outcome) -> Result<Self> {
        let mut builder = RefMapBuilder {
            work,
            refs,
            entries: Vec::new(),
        };
        let (specs, mut follows_tags) = (&work.options.refspecs, false);
        let mut opportunistic = Vec::new();
        let negative: &[Refspec];
        if specs.is_empty() {
            negative = &work.remote.fetch;
            builder.configured(&mut follows_tags, out)?;
        } else {
            negative = specs;
            for spec in specs {
                builder.add(spec, false, out)?;
                follows_tags |= spec.destination.is_some();
            }
            for entry in &mut builder.entries {
                entry.merge = FetchHeadKind::Merge;
            }
            opportunistic = builder.opportunistic(out);
        }
        if work.tags == Tags::All {
            let spec = Refspec::parse("refs/tags/*:refs/tags/*".into())?;
            builder.add(&spec, false, out)?;
        } else if work.tags == Tags::Follow && follows_tags {
            let found = followed_tags(work, refs, &builder.entries, work.repository.objects()?)?;
            builder.entries.extend(found);
        }
        builder.entries.extend(opportunistic);
        let mut entries = builder.entries;
        entries.retain(|entry| {
            !negative
                .iter()
                .any(|spec| spec.excludes(entry.name.as_bstr()))
        });
        let mut entries = without_duplicates(entries, out)?;
        for local in entries.iter_mut().filter_map(|entry| entry.local.as_mut()) {
            local.old = work.ours.get(&local.name).copied();
        }
        Ok(Mapping {
            entries,
            follows_tags,
        })
    }

    /// Returns the width of the longest remote name that is likely to be reported.
    pub(super) fn name_width(&self, reports_unchanged: bool) -> usize {
        const LEAST: usize = 10;
        const COLUMNS: usize = 80;
        let mut width = LEAST;
        for entry in &self.entries {
            let Some(local) = &entry.local else {
                continue;
            };
            if entry.name == "HEAD" || (!reports_unchanged && local.old == Some(entry.id)) {
                continue;
            }
            let theirs = pretty(entry.name.as_bstr()).chars().count();
            let ours = pretty(local.name.as_bstr()).chars().count();
            if 21 + theirs + 4 + ours < COLUMNS {
                width = width.max(theirs);
            }
        }
        width
    }
}

/// Shortens a full ref name: `refs/heads/main` becomes `main`.
pub fn pretty(name: &BStr) -> &BStr {
    let short = [&b"refs/heads/"[..], b"refs/tags/", b"refs/remotes/"]
        .iter()
        .find_map(|prefix| name.strip_prefix(*prefix));
    short.map_or(name, |short| short.as_bstr())
}

struct RefMapBuilder<'a> {
    work: &'a FetchRun<'a>,
    refs: &'a [RemoteRef],
    entries: Vec<FetchedRef>,
}

impl RefMapBuilder<'_> {
    /// Adds the configured refspecs of the remote and of the current branch.
    fn configured(&mut self, follows_tags: &mut bool, out: &mut Outcome) -> Result<()> {
        let merges = configured_merges(self.work)?;
        let specs = &self.work.remote.fetch;
        if specs.is_empty() && merges.is_empty() {
            if self.work.options.prefetch {
                return Ok(());
            }
            let spec = Refspec::parse("HEAD".into())?;
            self.add(&spec, false, out)?;
            if let Some(entry) = self.entries.last_mut() {
                entry.merge = FetchHeadKind::Merge;
            }
            return Ok(());
        }
        for (at, spec) in specs.iter().enumerate() {
            self.add(spec, false, out)?;
            *follows_tags |= spec.destination.is_some();
            if at == 0
                && merges.is_empty()
                && !spec.is_pattern()
                && let Some(first) = self.entries.first_mut()
            {
                first.merge = FetchHeadKind::Merge;
            }
        }
        for wanted in merges {
            let matches =
                |found: &BString| name::candidates(wanted.as_bstr()).any(|name| name == *found);
            if let Some(entry) = self.entries.iter_mut().find(|entry| matches(&entry.name)) {
                entry.merge = FetchHeadKind::Merge;
                continue;
            }
            let spec = Refspec {
                source: wanted,
                destination: None,
                force: false,
                negative: false,
            };
            let before = self.entries.len();
            self.add(&spec, true, out)?;
            for entry in &mut self.entries[before..] {
                entry.merge = FetchHeadKind::Merge;
            }
        }
        Ok(())
    }

    /// Adds the refs that match `spec`.
    fn add(&mut self, spec: &Refspec, missing_ok: bool, out: &mut Outcome) -> Result<()> {
        if spec.negative {
            return Ok(());
        }
        let mut found = Vec::new();
        if spec.is_pattern() {
            for theirs in self.refs {
                if let (Some(id), Some(ours)) = (theirs.id, spec.expand(theirs.name.as_bstr()))
                    && !self.is_symbolic(ours.as_ref())
                {
                    found.push((theirs.name.clone(), id, ours));
                }
            }
        } else {
            let ours = spec
                .destination
                .as_ref()
                .map(|name| local_name(name.as_bstr()));
            let theirs = match spec.exact_id() {
                Some(id) => Some((spec.source.clone(), id)),
                None => self.find(spec.source.as_bstr()),
            };
            match theirs {
                Some((name, id)) => found.push((name, id, ours)),
                None if missing_ok => {}
                None => {
                    let source = match spec.source.is_empty() {
                        true => BStr::new("HEAD"),
                        false => spec.source.as_bstr(),
                    };
                    let message = format!("couldn't find remote ref {source}");
                    return Err(Error::new(ErrorKind::UnknownRevision, message));
                }
            }
        }
        for (name, id, ours) in found {
            let entry = FetchedRef {
                name,
                id,
                local: ours.map(|name| LocalName {
                    name,
                    force: spec.force,
                    old: None,
                }),
                merge: FetchHeadKind::NotForMerge,
                needs_cut: false,
            };
            match &entry.local {
                Some(local) if !is_storable(local.name.as_bstr()) => {
                    let name = local.name.clone();
                    out.errors.push(FetchFailure::UnstorableName(name));
                }
                _ => self.entries.push(entry),
            }
        }
        Ok(())
    }

    /// Whether the destination of a pattern is a local symref. Such a ref is skipped, because the
    /// update would change the target of the symref, which another remote ref may update, too.
    fn is_symbolic(&self, local: Option<&BString>) -> bool {
        local.is_some_and(|name| self.work.symbolic.contains(name))
    }

    fn find(&self, source: &BStr) -> Option<(BString, ObjectId)> {
        let source = if source.is_empty() {
            BStr::new("HEAD")
        } else {
            source
        };
        name::candidates(source).find_map(|name| {
            let mut refs = self.refs.iter();
            let found = refs.find(|found| found.name == name)?;
            Some((name, found.id?))
        })
    }

    /// Returns the opportunistic updates: refs that the command line names and that the
    /// configuration maps to remote-tracking refs.
    fn opportunistic(&self, out: &mut Outcome) -> Vec<FetchedRef> {
        let specs = match &self.work.options.refmap {
            Some(specs) => specs,
            None => &self.work.remote.fetch,
        };
        let mut found = Vec::new();
        for spec in specs.iter().filter(|spec| !spec.negative) {
            for entry in &self.entries {
                let ours = if spec.is_pattern() {
                    let ours = spec.expand(entry.name.as_bstr()).flatten();
                    ours.filter(|name| !self.is_symbolic(Some(name)))
                } else if name::candidates(spec.source.as_bstr()).any(|name| name == entry.name) {
                    spec.destination
                        .as_ref()
                        .map(|name| local_name(name.as_bstr()))
                } else {
                    None
                };
                let Some(name) = ours else {
                    continue;
                };
                if !is_storable(name.as_bstr()) {
                    out.errors.push(FetchFailure::UnstorableName(name));
                    continue;
                }
                found.push(FetchedRef {
                    name: entry.name.clone(),
                    id: entry.id,
                    local: Some(LocalName {
                        name,
                        force: spec.force,
                        old: None,
                    }),
                    merge: FetchHeadKind::Ignore,
                    needs_cut: false,
                });
            }
        }
        found
    }
}

fn is_storable(name: &BStr) -> bool {
    name.starts_with(b"refs/") && name::is_valid(name, Form::Full)
}

/// Returns the refs of the remote that the current branch merges (`branch.NAME.merge`).
pub(super) fn configured_merges(work: &FetchRun<'_>) -> Result<Vec<BString>> {
    let head = work.repository.refs().head()?;
    let Some(branch) = head.branch() else {
        return Ok(Vec::new());
    };
    let config = work.repository.config();
    let key = |what: &str| [b"branch.", branch.as_bytes(), b".", what.as_bytes()].concat();
    if config.string(key("remote"))? != Some(work.remote.name.as_bstr()) {
        return Ok(Vec::new());
    }
    Ok(config.strings(key("merge")).map(BStr::to_owned).collect())
}

/// Returns the missing tags of the remote that point to existing objects, or to objects that are
/// being fetched.
pub(super) fn followed_tags(
    work: &FetchRun<'_>,
    refs: &[RemoteRef],
    entries: &[FetchedRef],
    store: &Store,
) -> Result<Vec<FetchedRef>> {
    let fetched: HashSet<ObjectId> = entries.iter().map(|entry| entry.id).collect();
    let named: HashSet<&BString> = entries
        .iter()
        .filter_map(|entry| entry.local.as_ref().map(|local| &local.name))
        .collect();
    let mut found = Vec::new();
    let mut existing = IdCache::default();
    for theirs in refs {
        let is_new = theirs.name.starts_with(b"refs/tags/")
            && !work.ours.contains_key(&theirs.name)
            && !named.contains(&theirs.name);
        let Some(id) = theirs.id.filter(|_| is_new) else {
            continue;
        };
        let mut is_here = fetched.contains(&id);
        for id in [Some(id), theirs.peeled].into_iter().flatten() {
            let mut exists =
                || existing.get_or_insert_with(&id, || store.contains(&id).map_err(from_odb));
            is_here = is_here || fetched.contains(&id) || exists()?;
        }
        if is_here && is_storable(theirs.name.as_bstr()) {
            found.push(FetchedRef {
                name: theirs.name.clone(),
                id,
                local: Some(LocalName {
                    name: theirs.name.clone(),
                    force: false,
                    old: None,
                }),
                merge: FetchHeadKind::NotForMerge,
                needs_cut: false,
            });
        }
    }
    // Servers list refs by name, bundles in any order.
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Removes duplicate entries with the same local name. Fails if different remote refs have the same
/// local name.
fn without_duplicates(entries: Vec<FetchedRef>, out: &mut Outcome) -> Result<Vec<FetchedRef>> {
    let mut by_name: HashMap<BString, usize> = HashMap::new();
    let mut kept: Vec<FetchedRef> = Vec::with_capacity(entries.len());
    for entry in entries {
        let Some(local) = &entry.local else {
            kept.push(entry);
            continue;
        };
        match by_name.get(&local.name) {
            None => {
                by_name.insert(local.name.clone(), kept.len());
                kept.push(entry);
            }
            Some(&at) if kept[at].name == entry.name => {}
            Some(&at)
                if entry.merge != FetchHeadKind::Ignore
                    && kept[at].merge != FetchHeadKind::Ignore =>
            {
                let (first, second, ours) = (&kept[at].name, &entry.name, &local.name);
                let message = format!("Cannot fetch both {first} and {second} to {ours}");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            Some(&at) if kept[at].merge == FetchHeadKind::Ignore => {
                let (first, second, ours) = (&kept[at].name, &entry.name, &local.name);
                let message = format!("{ours} tracks both {first} and {second}");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            Some(&at) => {
                out.warnings.push(FetchWarning::UnusualSource {
                    local: local.name.clone(),
                    usual: entry.name.clone(),
                    fetched: kept[at].name.clone(),
                });
            }
        }
    }
    Ok(kept)
}

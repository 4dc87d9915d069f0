//! Selects the commits of a commit-graph file.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_object::CommitLinks;
use pronto_pack::commit_graph::GraphPosition;
use pronto_pack::idx::PackIndex;
use pronto_pack::pack::{PackOrder, PackPosition, PackReader};
use pronto_repository::links::links_in;
use pronto_repository::objects::from_odb;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Result};

use super::install::GraphChain;
use super::{CommitSource, GraphWriter, SplitStrategy};

/// A commit that is written.
pub(super) struct GatheredCommit {
    pub(super) id: ObjectId,
    pub(super) links: CommitLinks,
    /// The position at which the commit was found in packs; zero if it was found elsewhere.
    pub(super) met: u32,
    /// Whether the commit was requested by id.
    pub(super) is_tip: bool,
}

/// The commits, sorted by id and without duplicates.
pub(super) type SortedCommits = Vec<GatheredCommit>;

/// Collects the requested commits and their ancestors, without those in kept layers.
pub(super) fn gather(work: &GraphWriter<'_>, objects_dir: &Path) -> Result<SortedCommits> {
    let mut found = GatheredCommits {
        work,
        met: HashMap::new(),
        order: Vec::new(),
    };
    if let (true, Some(graph)) = (work.options.append, &work.graph) {
        let top = graph.ranges().last().unwrap_or_default();
        for position in top {
            let id = graph.id_at(GraphPosition(position)).map_err(from_pack)?;
            found.add(&id, 0);
        }
    }
    match &work.options.source {
        CommitSource::Packed => found.all_packs()?,
        CommitSource::Reachable => found.references()?,
        CommitSource::Packs(names) => found.packs(names, objects_dir)?,
        CommitSource::Commits(ids) => found.commits(ids)?,
    }
    found.close()
}

/// Adds the commits of layers that are replaced, if they still exist.
pub(super) fn take_over(
    work: &GraphWriter<'_>,
    chain: &GraphChain,
    commits: &mut SortedCommits,
) -> Result<()> {
    let Some(graph) = &work.graph else {
        return Ok(());
    };
    if chain.merged.is_empty() {
        return Ok(());
    }
    let meter = work.watch.progress().begin("Merging commit-graph", None);
    let mut buffer = Vec::new();
    for position in chain.merged.clone() {
        work.check()?;
        let id = graph.id_at(GraphPosition(position)).map_err(from_pack)?;
        let header = work.store.header(&id).map_err(from_odb)?;
        if header.is_some_and(|header| header.kind == ObjectKind::Commit) {
            let links = links_in(&work.store, &id, &mut buffer)?;
            commits.push(GatheredCommit {
                id,
                links,
                met: 0,
                is_tip: false,
            });
        }
        meter.add(1);
    }
    meter.finish();
    commits.sort_by_key(|commit| commit.id);
    commits.dedup_by_key(|commit| commit.id);
    Ok(())
}

struct GatheredCommits<'a> {
    work: &'a GraphWriter<'a>,
    /// The position at which each commit was found.
    met: HashMap<ObjectId, u32>,
    order: Vec<ObjectId>,
}

impl GatheredCommits<'_> {
    fn add(&mut self, id: &oid, met: u32) {
        // As in Git, the last position is kept.
        if self.met.insert(id.to_owned(), met).is_none() {
            self.order.push(id.to_owned());
        }
    }

    fn is_commit(&self, id: &oid) -> Result<bool> {
        let header = self.work.store.header(id).map_err(from_odb)?;
        Ok(header.is_some_and(|header| header.kind == ObjectKind::Commit))
    }

    fn all_packs(&mut self) -> Result<()> {
        let store = &self.work.store;
        let total = store.approximate_count().map_err(from_odb)?;
        let title = "Finding commits for commit graph among packed objects";
        let meter = self.work.watch.progress().begin(title, Some(total));
        let mut place = 0;
        let mut failed = None;
        let done = store.for_each_packed(|id, _| {
            meter.add(1);
            let result = self.work.check().and_then(|()| self.packed(id, &mut place));
            result.map_err(|error| {
                failed = Some(error);
                pronto_odb::Error::new(pronto_odb::ErrorKind::Interrupted, "aborted")
            })
        });
        match failed {
            Some(error) => return Err(error),
            None => done.map_err(from_odb)?,
        }
        meter.finish();
        Ok(())
    }

    fn packed(&mut self, id: &oid, place: &mut u32) -> Result<()> {
        if self.is_commit(id)? {
            self.add(id, *place);
            *place += 1;
        }
        Ok(())
    }

    fn packs(&mut self, names: &[bstr::BString], objects_dir: &Path) -> Result<()> {
        let title = "Finding commits for commit graph in packs";
        let meter = self.work.watch.progress().begin(title, None);
        let kind = self.work.repository.object_hash();
        let access = self.work.store.options().access;
        let mut place = 0;
        for name in names {
            let path = objects_dir
                .join("pack")
                .join(pronto_config::path::borrow(name));
            let fail = |message: &str| {
                let path = self.work.repository.display_path(&path);
                let message = format!("{message} {}", path.display());
                Error::new(ErrorKind::InvalidInput, message)
            };
            let pack = PackReader::open(path.with_extension("pack"), kind, access)
                .map_err(|_| fail("error adding pack"))?;
            let index = PackIndex::open(&path, kind, access)
                .map_err(|_| fail("error opening index for"))?;
            let order = PackOrder::new(&pack, &index).map_err(from_pack)?;
            for position in 0..order.len() {
                self.work.check()?;
                meter.add(1);
                if let Some((_, row)) = order.get(PackPosition(position)) {
                    let id = index.id_at(row).map_err(from_pack)?;
                    self.packed(&id, &mut place)?;
                }
            }
        }
        meter.finish();
        Ok(())
    }

    fn references(&mut self) -> Result<()> {
        let meter = self
            .work
            .watch
            .progress()
            .begin("Collecting referenced commits", None);
        let mut tips = Vec::new();
        self.work.repository.refs().for_each("refs/", |reference| {
            tips.push(reference.peeled.unwrap_or(reference.id));
            Ok(ControlFlow::Continue(()))
        })?;
        for tip in tips {
            let tip = self.work.repository.peel_tag(tip)?.unwrap_or(tip);
            if self.is_commit(&tip)? {
                self.add(&tip, 0);
            }
            meter.add(1);
        }
        meter.finish();
        Ok(())
    }

    fn commits(&mut self, ids: &[ObjectId]) -> Result<()> {
        let title = "Collecting commits from input";
        let meter = self.work.watch.progress().begin(title, None);
        for id in ids {
            let repository = self.work.repository;
            let target = repository.peel_tag(*id)?.unwrap_or(*id);
            let header = self.work.store.header(&target).map_err(from_odb)?;
            let Some(header) = header else {
                let message = format!("invalid object: {id}");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            };
            if header.kind == ObjectKind::Commit {
                self.add(&target, 0);
            }
            meter.add(1);
        }
        meter.finish();
        Ok(())
    }

    /// Returns whether `id`, and thus all its ancestors, is in a kept layer.
    fn stays(&self, id: &oid) -> Result<bool> {
        match (&self.work.graph, self.work.options.split) {
            (Some(graph), Some(SplitStrategy::Merge | SplitStrategy::NoMerge))
                if self.work.can_stay =>
            {
                Ok(graph.find(id).map_err(from_pack)?.is_some())
            }
            _ => Ok(false),
        }
    }

    fn close(mut self) -> Result<SortedCommits> {
        let title = "Expanding reachable commits in commit graph";
        let meter = self.work.watch.progress().begin(title, None);
        let (mut commits, mut buffer) = (SortedCommits::new(), Vec::new());
        let (mut at, tips) = (0, self.order.len());
        while let Some(id) = self.order.get(at).copied() {
            at += 1;
            self.work.check()?;
            if self.stays(&id)? {
                continue;
            }
            let links = links_in(&self.work.store, &id, &mut buffer);
            let links = links.map_err(|error| {
                let message = format!("unable to parse commit {id}");
                Error::new(ErrorKind::Object, message).because(error)
            })?;
            for parent in &links.parents {
                if !self.met.contains_key(parent) {
                    self.add(parent, 0);
                }
            }
            let met = self.met[&id];
            commits.push(GatheredCommit {
                id,
                links,
                met,
                is_tip: at <= tips,
            });
            meter.add(1);
        }
        meter.finish();
        commits.sort_by_key(|commit| commit.id);
        Ok(commits)
    }
}

//! Compares a commit-graph file with the commit objects.

use std::path::{Path, PathBuf};

use pronto_hash::ObjectId;
use pronto_io::progress::Meter;
use pronto_io::watch::Watch;
use pronto_object::CommitLinks;
use pronto_odb::Store;
use pronto_pack::commit_graph::{
    CommitGraph, GraphPosition, OpenedGraph, Options, chain_path, single_path,
};
use pronto_repository::Notice;
use pronto_repository::links::links_in;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Repository, Result};

use super::{GraphFault, changed_paths_to_read};
use crate::object_directory;

/// The result of verifying a commit-graph file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphCheck {
    /// The exit code of `git commit-graph verify`: bit 0 for any defect, bit 1 for a wrong checksum.
    pub code: u8,
}

const WRONG: u8 = 1;
const WRONG_CHECKSUM: u8 = 2;

/// Options for verifying a commit-graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyGraphOptions {
    /// The object directory, if not the repository's own: one of its alternates (`--object-dir`).
    pub object_dir: Option<PathBuf>,
    /// Verify only the topmost layer (`--shallow`).
    pub shallow: bool,
}

/// Compares the commit-graph of an object directory (by default the repository's own) with the
/// commits. Calls `report` with each fault. An object directory without a commit-graph has no
/// faults.
///
/// Costs reading every commit.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if `object_dir` is not an object directory of the repository,
/// or [`ErrorKind::Io`] if the file exists and cannot be opened.
pub fn verify(
    repository: &Repository,
    options: &VerifyGraphOptions,
    watch: &Watch<'_>,
    report: &mut dyn FnMut(GraphFault),
) -> Result<GraphCheck> {
    let (directory, _) = object_directory::find(repository, options.object_dir.as_ref())?;
    let single = single_path(&directory);
    let is_single = match std::fs::File::open(&single) {
        Ok(_) => true,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => {
            let shown = repository.display_path(&single);
            let reason = pronto_io::error::reason(&error);
            let message = format!(
                "Could not open commit-graph '{}': {reason}",
                shown.display()
            );
            return Err(Error::new(ErrorKind::Io, message));
        }
    };
    let opened = graph_of(repository, &directory)?;
    for remark in opened.remarks {
        repository.notify(Notice::CommitGraph(remark));
    }
    let chain_bytes = match is_single {
        true => 0,
        false => chain_bytes(repository, &directory)?,
    };
    let Some(graph) = opened.graph else {
        let code = if is_single || chain_bytes > 0 {
            WRONG
        } else {
            0
        };
        return Ok(GraphCheck { code });
    };
    let store = repository.objects()?.without_replacements();
    let mut code = 0;
    let layers = graph.ranges().len();
    let examined = if options.shallow { 1 } else { layers };
    let count = graph
        .ranges()
        .skip(layers - examined)
        .map(|range| range.len());
    let title = "Verifying commits in commit graph";
    let meter = watch
        .progress()
        .begin(title, Some(count.sum::<usize>() as u64));
    for layer in (0..layers).rev().take(examined) {
        let mut check = GraphVerifier {
            store: &store,
            graph: &graph,
            code: 0,
            report,
        };
        check.layer(layer, &meter, watch)?;
        code |= check.code;
    }
    meter.finish();
    if !opened.is_complete {
        repository.notify(Notice::IncompleteCommitGraph);
        code |= WRONG;
    }
    Ok(GraphCheck { code })
}

/// Returns the size of the file `commit-graph-chain`; zero if there is no such file.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if the file is too short for one layer.
fn chain_bytes(repository: &Repository, directory: &Path) -> Result<u64> {
    let path = chain_path(directory);
    let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    if (1..repository.object_hash().len_in_hex() as u64).contains(&size) {
        let shown = repository.display_path(&path);
        let message = format!(
            "could not open commit-graph chain '{}': Invalid argument",
            shown.display()
        );
        return Err(Error::new(ErrorKind::Object, message));
    }
    Ok(size)
}

fn graph_of(repository: &Repository, directory: &Path) -> Result<OpenedGraph> {
    let mut options = Options::default();
    options.kind = repository.object_hash();
    options.generation_version = repository.generation_version()?;
    options.changed_paths = changed_paths_to_read(repository)?;
    let store = repository.objects()?;
    let others = std::iter::once(store.path())
        .chain(store.alternates().iter().map(PathBuf::as_path))
        .filter(|other| *other != directory);
    let directories: Vec<&Path> = std::iter::once(directory).chain(others).collect();
    Ok(CommitGraph::open_in(&directories, &options))
}

/// The last commits of a layer with and without a generation number.
#[derive(Default)]
struct GenerationCheck {
    zero: Option<ObjectId>,
    other: Option<ObjectId>,
}

struct GraphVerifier<'a> {
    store: &'a Store,
    graph: &'a CommitGraph,
    code: u8,
    report: &'a mut dyn FnMut(GraphFault),
}

impl GraphVerifier<'_> {
    fn wrong(&mut self, fault: GraphFault) {
        self.code = WRONG;
        (self.report)(fault);
    }

    fn layer(&mut self, layer: usize, meter: &Meter, watch: &Watch<'_>) -> Result<()> {
        if !self.graph.checksum_holds(layer).map_err(from_pack)? {
            self.wrong(GraphFault::Checksum);
            self.code = WRONG_CHECKSUM;
        }
        let before = self.code;
        self.code = 0;
        let range = self.graph.ranges().nth(layer).unwrap_or_default();
        self.order(layer)?;
        for position in range.clone() {
            // As in Git, a parent position out of bounds ends the verification.
            self.commit(position)?;
        }
        if self.code != 0 {
            return Ok(());
        }
        self.code = before;
        let mut generations = GenerationCheck::default();
        for position in range {
            watch
                .interrupt()
                .check()
                .map_err(|reason| Error::new(ErrorKind::Interrupted, reason.to_string()))?;
            self.compare(position, &mut generations)?;
            meter.add(1);
        }
        if let (Some(zero), Some(other)) = (generations.zero, generations.other) {
            self.wrong(GraphFault::MixedGenerations { zero, other });
        }
        Ok(())
    }

    fn commit(
        &self,
        position: u32,
    ) -> Result<(
        ObjectId,
        pronto_pack::commit_graph::GraphCommit,
        Vec<GraphPosition>,
    )> {
        let mut parents = Vec::new();
        let position = GraphPosition(position);
        let commit = self.graph.commit_at(position, &mut parents);
        let id = self.graph.id_at(position).map_err(from_pack)?;
        Ok((id, commit.map_err(plain)?, parents))
    }

    fn order(&mut self, layer: usize) -> Result<()> {
        let graph = self.graph;
        let range = graph.ranges().nth(layer).unwrap_or_default();
        let mut previous: Option<ObjectId> = None;
        let mut byte = 0;
        let mut wrong = Vec::new();
        let mut fanout = |row: u32, end: usize, wrong: &mut Vec<GraphFault>| {
            while byte < end {
                let recorded = graph.fanout_value(layer, byte as u8);
                let actual = row;
                if recorded != actual {
                    wrong.push(GraphFault::Fanout {
                        byte,
                        recorded,
                        actual,
                    });
                }
                byte += 1;
            }
        };
        for position in range.clone() {
            let id = graph.id_at(GraphPosition(position)).map_err(from_pack)?;
            if let Some(before) = previous.filter(|previous| *previous >= id) {
                wrong.push(GraphFault::Order { before, after: id });
            }
            let first_byte = usize::from(id.as_bytes()[0]);
            fanout(position - range.start, first_byte, &mut wrong);
            previous = Some(id);
        }
        fanout(range.len() as u32, 256, &mut wrong);
        for fault in wrong {
            self.wrong(fault);
        }
        Ok(())
    }

    /// Compares one commit with its commit object.
    fn compare(&mut self, position: u32, generations: &mut GenerationCheck) -> Result<()> {
        let (id, commit, parents) = self.commit(position)?;
        let mut buffer = Vec::new();
        let Ok(links) = links_in(self.store, &id, &mut buffer) else {
            (self.report)(GraphFault::Unreadable(id));
            self.wrong(GraphFault::Unparsable(id));
            return Ok(());
        };
        if commit.tree != links.tree {
            self.wrong(GraphFault::Tree {
                commit: id,
                recorded: commit.tree,
                actual: links.tree,
            });
        }
        let greatest = self.parents(&id, &parents, &links)?;
        match commit.generation {
            0 => generations.zero = Some(id),
            _ => generations.other = Some(id),
        }
        if generations.zero.is_some() {
            return Ok(());
        }
        self.numbers(&id, &commit, greatest, &links);
        Ok(())
    }

    /// Compares the parents, and returns their largest generation number.
    fn parents(
        &mut self,
        id: &ObjectId,
        parents: &[GraphPosition],
        links: &CommitLinks,
    ) -> Result<u64> {
        let mut greatest = 0;
        let mut own = links.parents.iter();
        for parent in parents {
            let Some(expected) = own.next() else {
                self.wrong(GraphFault::TooManyParents(*id));
                return Ok(greatest);
            };
            let found = self.graph.id_at(*parent).map_err(from_pack)?;
            if found != *expected {
                self.wrong(GraphFault::Parent {
                    commit: *id,
                    recorded: found,
                    actual: *expected,
                });
            }
            let parent = self.graph.commit_alone_at(*parent);
            let parent = parent.map_err(plain)?;
            greatest = greatest.max(parent.generation);
        }
        if own.next().is_some() {
            self.wrong(GraphFault::TooFewParents(*id));
        }
        Ok(greatest)
    }

    fn numbers(
        &mut self,
        id: &ObjectId,
        commit: &pronto_pack::commit_graph::GraphCommit,
        mut greatest: u64,
        links: &CommitLinks,
    ) {
        let cap = u64::from(pronto_pack::commit_graph::write::MOST_LEVELS);
        if !self.graph.has_corrected_dates() && greatest == cap {
            greatest -= 1;
        }
        if commit.generation < greatest + 1 {
            self.wrong(GraphFault::Generation {
                commit: *id,
                recorded: commit.generation,
                least: greatest + 1,
            });
        }
        let time = u64::try_from(links.time).unwrap_or(0);
        if commit.time != time {
            self.wrong(GraphFault::Date {
                commit: *id,
                recorded: commit.time,
                actual: time,
            });
        }
    }
}

/// Removes the path and offset from an error, which Git does not print.
fn plain(error: pronto_pack::Error) -> Error {
    error.without_context(ErrorKind::Object)
}

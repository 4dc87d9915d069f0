//! Writing and verifying the commit-graph of a repository.

mod changed_paths;
mod fault;
mod gather;
mod install;
mod levels;
mod verify;

use std::path::PathBuf;

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_pack::commit_graph::{ChangedPaths, CommitGraph, bloom};
use pronto_repository::Notice;
use pronto_repository::history::from_graph;
use pronto_repository::support::{self, Operation};
use pronto_repository::{Error, ErrorKind, Repository, Result};

use crate::object_directory;
use install::Chain;

pub use fault::Fault;
pub use verify::{Verdict, verify};

/// The source of the commits of a graph. Their ancestors are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// All that are in packs.
    #[default]
    Packed,
    /// Those that references point to.
    Reachable,
    /// Those of these packs, named by their indexes (`pack-….idx`).
    Packs(Vec<BString>),
    /// These, or what tags of these names lead to.
    Commits(Vec<ObjectId>),
}

/// The way in which a file is added to a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// Layers that are small beside the new one become part of it.
    #[default]
    Merge,
    /// All layers stay as they are.
    NoMerge,
    /// The new one replaces all.
    Replace,
}

/// Options for writing a commit-graph. The defaults are those of Git.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The object directory to write to, if not the repository's own: one of its alternates.
    pub object_dir: Option<PathBuf>,
    /// Which commits.
    pub source: Source,
    /// Keep the commits that are in the graph now.
    pub append: bool,
    /// Write a layer of a chain, and not one file for all.
    pub split: Option<Split>,
    /// A layer is merged into the new one if it is at most this many times as large.
    pub size_multiple: u64,
    /// A layer is merged into the new one if the latter has more than this many commits; zero means
    /// no limit.
    pub max_commits: u64,
    /// Layers that are in use no more stay if they are younger than this (seconds since 1970).
    pub expire_before: Option<i64>,
    /// Whether to write filters of changed paths; without a word if there are any already.
    pub changed_paths: Option<bool>,
    /// The largest number of missing filters to compute.
    pub max_new_filters: Option<usize>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            object_dir: None,
            source: Source::Packed,
            append: false,
            split: None,
            size_multiple: 2,
            max_commits: 0,
            expire_before: None,
            changed_paths: None,
            max_new_filters: None,
        }
    }
}

/// The state that all phases of writing share.
struct Work<'a> {
    repository: &'a Repository,
    options: &'a WriteOptions,
    /// Receives the progress, and stops the operation.
    watch: &'a Watch<'a>,
    /// The objects, none of them replaced.
    store: Store,
    /// The graph there is now.
    graph: Option<CommitGraph>,
    /// Whether a layer can be put on top of that graph.
    can_stay: bool,
}

/// Writes the commit-graph.
///
/// Costs reading every commit once, and with filters every tree that changed.
///
/// # Errors
/// A commit cannot be read, a pack that was named is not there, the file cannot be written or
/// someone else is writing it.
pub fn write(repository: &Repository, options: &WriteOptions, watch: &Watch<'_>) -> Result<()> {
    support::require(Operation::WriteCommitGraph, repository)?;
    let (objects_dir, directory) = object_directory::find(repository, options.object_dir.as_ref())?;
    if !repository.config().bool_or("core.commitgraph", true)? {
        repository.notify(Notice::CommitGraphDisabled);
        return Ok(());
    }
    if !repository.has_plain_history()? {
        return Ok(());
    }
    if options.split.is_some() {
        // As in Git, it is there even if the file cannot be written.
        let _ = std::fs::create_dir_all(objects_dir.join("info/commit-graphs"));
    }
    let graph = repository.open_commit_graph(changed_paths_to_read(repository)?)?;
    let is_foreign = |graph: &CommitGraph| install::is_foreign_single(graph, directory);
    let work = Work {
        can_stay: !graph.as_ref().is_some_and(is_foreign),
        repository,
        options,
        watch,
        store: repository.objects()?.without_replacements(),
        graph,
    };
    let mut commits = gather::gather(&work, &objects_dir)?;
    if commits.is_empty() && options.split != Some(Split::Replace) {
        return Ok(());
    }
    let chain = Chain::plan(&work, directory, commits.len() as u64);
    gather::take_over(&work, &chain, &mut commits)?;
    let generations = match chain.keeps_generations {
        Some(kept) => kept,
        None => repository.generation_version()? == 2,
    };
    let entries = levels::resolve(&work, &chain, &commits)?;
    let filters = work.filters(&commits, &entries, generations)?;
    let contents = pronto_pack::commit_graph::write::Contents {
        kind: repository.object_hash(),
        commits: &entries.entries,
        parents: &entries.parents,
        generations,
        filters: filters
            .as_ref()
            .map(|(settings, filters)| (*settings, filters.as_slice())),
        bases: &chain.kept_ids,
    };
    install::install(&work, &objects_dir, &chain, &contents)
}

/// Which filters of changed paths count.
fn changed_paths_to_read(repository: &Repository) -> Result<ChangedPaths> {
    let read = repository
        .config()
        .bool_or("commitgraph.readchangedpaths", true)?;
    Ok(match read {
        true => ChangedPaths::Version(1),
        false => ChangedPaths::Ignore,
    })
}

type Filters = (bloom::Settings, Vec<Vec<u8>>);

impl Work<'_> {
    fn check(&self) -> Result<()> {
        let interrupted = |reason: pronto_io::interrupt::Interrupted| {
            Error::new(ErrorKind::Interrupted, reason.to_string())
        };
        self.watch.interrupt().check().map_err(interrupted)
    }

    /// Returns the filters of changed paths, if they are requested or there are some already.
    fn filters(
        &self,
        commits: &gather::Commits,
        resolved: &levels::Resolved,
        generations: bool,
    ) -> Result<Option<Filters>> {
        let present = self
            .graph
            .as_ref()
            .and_then(CommitGraph::top_bloom_settings);
        let settings = match (self.options.changed_paths, present) {
            (Some(false), _) | (None, None) => return Ok(None),
            (_, Some(settings)) => settings,
            (Some(true), None) => bloom::Settings::default(),
        };
        let filters = changed_paths::compute(self, &settings, commits, resolved, generations)?;
        Ok(Some((settings, filters)))
    }

    /// The generation that Git has for a commit when it does not compute any: that in the graph
    /// there is, if it looked there, else zero.
    fn loaded_generation(&self, commit: &gather::Commit) -> Result<u64> {
        let looks = match (&self.options.source, self.options.split) {
            (_, Some(_)) => true,
            (Source::Commits(_), None) => commit.is_tip,
            _ => false,
        };
        let Some(graph) = self.graph.as_ref().filter(|_| looks) else {
            return Ok(0);
        };
        match graph.find(&commit.id).map_err(from_graph)? {
            Some(position) => {
                let found = graph.commit_alone_at(position).map_err(from_graph)?;
                Ok(found.generation)
            }
            None => Ok(0),
        }
    }

    /// The filter of `id` in the graph there is.
    fn present_filter(&self, id: &ObjectId) -> Result<Option<Vec<u8>>> {
        let Some(graph) = &self.graph else {
            return Ok(None);
        };
        let Some(position) = graph.find(id).map_err(from_graph)? else {
            return Ok(None);
        };
        let mut filter = Vec::new();
        let found = graph.filter_at(position, &mut filter).map_err(from_graph)?;
        Ok((found.is_some() && !filter.is_empty()).then_some(filter))
    }
}

//! Writing and verifying the commit-graph file of a repository.

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
use pronto_repository::packs::from_pack;
use pronto_repository::support::{self, Operation};
use pronto_repository::{Error, ErrorKind, Repository, Result};

use crate::object_directory;
use install::GraphChain;

pub use fault::GraphFault;
pub use verify::{GraphCheck, VerifyGraphOptions, verify};

/// The commits that are written to a commit-graph file. Their ancestors are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CommitSource {
    /// All commits in packs (the default).
    #[default]
    Packed,
    /// The commits to which refs point (`--reachable`).
    Reachable,
    /// The commits of these packs, named by their indexes `pack-….idx` (`--stdin-packs`).
    Packs(Vec<BString>),
    /// These commits, or the commits to which tags peel (`--stdin-commits`).
    Commits(Vec<ObjectId>),
}

/// The treatment of existing layers when a layer is added to a commit-graph chain (`--split`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SplitStrategy {
    /// Small layers are merged into the new layer (`--split`).
    #[default]
    Merge,
    /// No layer is merged (`--split=no-merge`).
    NoMerge,
    /// The new layer replaces all layers (`--split=replace`).
    Replace,
}

/// Options for writing a commit-graph. The defaults are those of Git.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphWriteOptions {
    /// Write to this object directory, which must be the repository's own or an alternate
    /// (`--object-dir`).
    pub object_dir: Option<PathBuf>,
    /// The commits to write.
    pub source: CommitSource,
    /// Keep the commits of the existing commit-graph file (`--append`).
    pub append: bool,
    /// Write a layer of a chain instead of a single file (`--split`).
    pub split: Option<SplitStrategy>,
    /// Merge a layer into the new one if the new one has at least its size divided by this factor
    /// (`--size-multiple`).
    pub size_multiple: u64,
    /// Merge a layer into the new one if the new one has more than this number of commits
    /// (`--max-commits`). Zero disables the limit.
    pub max_commits: u64,
    /// Keep unused layers that were modified after this time, in seconds since 1970 (`--expire-time`).
    pub expire_before: Option<i64>,
    /// Write changed-path Bloom filters (`--changed-paths`). `None` writes them if the existing file
    /// has filters.
    pub changed_paths: Option<bool>,
    /// Compute at most this number of new filters (`--max-new-filters`).
    pub max_new_filters: Option<usize>,
}

impl Default for GraphWriteOptions {
    fn default() -> Self {
        GraphWriteOptions {
            object_dir: None,
            source: CommitSource::Packed,
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

/// The state that is shared by all phases of writing.
struct GraphWriter<'a> {
    repository: &'a Repository,
    options: &'a GraphWriteOptions,
    /// Receives progress and can interrupt the operation.
    watch: &'a Watch<'a>,
    /// The object store without replacements.
    store: Store,
    /// The existing commit-graph file.
    graph: Option<CommitGraph>,
    /// Whether a layer can be added on top of the existing file or chain.
    can_stay: bool,
}

/// Writes the commit-graph file. Does nothing if `core.commitGraph` is off, or if the history has
/// replacements, grafts or shallow commits.
///
/// Costs reading every commit once, and with filters every tree that changed.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if a commit cannot be read, [`ErrorKind::InvalidInput`] if a named
/// pack or commit does not exist, [`ErrorKind::Io`] if the file cannot be written, or
/// [`ErrorKind::Locked`] if another process writes it.
pub fn write(
    repository: &Repository,
    options: &GraphWriteOptions,
    watch: &Watch<'_>,
) -> Result<()> {
    support::require(repository, Operation::WriteCommitGraph)?;
    let (objects_dir, directory) = object_directory::find(repository, options.object_dir.as_ref())?;
    if !repository.config().bool_or("core.commitgraph", true)? {
        repository.notify(Notice::CommitGraphDisabled);
        return Ok(());
    }
    if !repository.has_plain_history()? {
        return Ok(());
    }
    if options.split.is_some() {
        // As in Git, the directory is created even if the file cannot be written.
        let _ = std::fs::create_dir_all(objects_dir.join("info/commit-graphs"));
    }
    let graph = repository.open_commit_graph(changed_paths_to_read(repository)?)?;
    let is_foreign = |graph: &CommitGraph| install::is_foreign_single(graph, directory);
    let work = GraphWriter {
        can_stay: !graph.as_ref().is_some_and(is_foreign),
        repository,
        options,
        watch,
        store: repository.objects()?.without_replacements(),
        graph,
    };
    let mut commits = gather::gather(&work, &objects_dir)?;
    if commits.is_empty() && options.split != Some(SplitStrategy::Replace) {
        return Ok(());
    }
    let chain = GraphChain::plan(&work, directory, commits.len() as u64);
    gather::take_over(&work, &chain, &mut commits)?;
    let generations = match chain.keeps_generations {
        Some(kept) => kept,
        None => repository.generation_version()? == 2,
    };
    let entries = levels::resolve(&work, &chain, &commits)?;
    let filters = work.filters(&commits, &entries, generations)?;
    let contents = pronto_pack::commit_graph::write::GraphContents {
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

/// Returns which changed-path filters are read (`commitGraph.readChangedPaths`).
fn changed_paths_to_read(repository: &Repository) -> Result<ChangedPaths> {
    let read = repository
        .config()
        .bool_or("commitgraph.readchangedpaths", true)?;
    Ok(match read {
        true => ChangedPaths::Version(1),
        false => ChangedPaths::Ignore,
    })
}

type BloomFilters = (bloom::Settings, Vec<Vec<u8>>);

impl GraphWriter<'_> {
    fn check(&self) -> Result<()> {
        let interrupted = |reason: pronto_io::interrupt::Interrupted| {
            Error::new(ErrorKind::Interrupted, reason.to_string())
        };
        self.watch.interrupt().check().map_err(interrupted)
    }

    /// Returns the changed-path filters, if they are requested or the existing file has filters.
    fn filters(
        &self,
        commits: &gather::SortedCommits,
        resolved: &levels::ResolvedCommits,
        generations: bool,
    ) -> Result<Option<BloomFilters>> {
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

    /// Returns the generation number that Git writes for a commit if it does not compute generation
    /// numbers: that of the existing file if Git reads the file for this commit, otherwise zero.
    fn loaded_generation(&self, commit: &gather::GatheredCommit) -> Result<u64> {
        let looks = match (&self.options.source, self.options.split) {
            (_, Some(_)) => true,
            (CommitSource::Commits(_), None) => commit.is_tip,
            _ => false,
        };
        let Some(graph) = self.graph.as_ref().filter(|_| looks) else {
            return Ok(0);
        };
        match graph.find(&commit.id).map_err(from_pack)? {
            Some(position) => {
                let found = graph.commit_alone_at(position).map_err(from_pack)?;
                Ok(found.generation)
            }
            None => Ok(0),
        }
    }

    /// Returns the filter of commit `id` in the existing file.
    fn present_filter(&self, id: &ObjectId) -> Result<Option<Vec<u8>>> {
        let Some(graph) = &self.graph else {
            return Ok(None);
        };
        let Some(position) = graph.find(id).map_err(from_pack)? else {
            return Ok(None);
        };
        let mut filter = Vec::new();
        let found = graph.filter_at(position, &mut filter).map_err(from_pack)?;
        Ok((found.is_some() && !filter.is_empty()).then_some(filter))
    }
}

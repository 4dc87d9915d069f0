//! Reads commit-graphs in place: the parents, trees and dates of commits without inflating them.
//! Format: `gitformat-commit-graph(5)`.
//!
//! A commit-graph is a single file or a chain of files (layers). Opening checks headers, tables of
//! contents and fan-outs. Nothing is copied or hashed, so the cost does not depend on the size.
//! Values in the tables are checked when they are used.

pub mod bloom;
mod chain;
mod layer;
mod remark;
pub mod write;

use std::path::Path;

use pronto_hash::{Kind, ObjectId, oid};
use pronto_io::view::{FileView, ViewAccess};

pub use crate::chunks::TableFault;
use crate::error::Error;
pub use chain::{chain_path, layer_path, single_path};
use layer::{CommitRow, GraphLayer, LAST_EDGE, MORE_PARENTS, NO_PARENT};
pub use remark::Remark;

/// The generation of a commit that is not in the commit-graph: greater than all others.
pub const GENERATION_INFINITY: u64 = i64::MAX as u64;

/// Options for opening a commit-graph. The defaults are those of Git.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The hash function of object ids.
    pub kind: Kind,
    /// The method to access files: mapping or reading.
    pub access: ViewAccess,
    /// The version of generation numbers that may be used (`commitGraph.generationVersion`).
    pub generation_version: u32,
    /// The versions of changed-path filters that may be used (`commitGraph.changedPathsVersion`).
    pub changed_paths: ChangedPaths,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kind: Kind::Sha1,
            access: ViewAccess::Auto,
            generation_version: 2,
            changed_paths: ChangedPaths::Any,
        }
    }
}

/// The versions of changed-path filters that may be used (`commitGraph.changedPathsVersion`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangedPaths {
    /// Use no filters (`0`).
    Ignore,
    /// Use filters of any version (`-1`).
    #[default]
    Any,
    /// Use only filters whose hash has this version (`1`, `2`).
    Version(u32),
}

/// The position of a commit in a commit-graph, counted from the lowest layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphPosition(pub u32);

/// The data of a commit in a commit-graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphCommit {
    /// The id of the tree of the commit.
    pub tree: ObjectId,
    /// The commit date in seconds since 1970, truncated to 34 bits.
    pub time: u64,
    /// The generation number, which is greater than those of all ancestors: the corrected commit
    /// date if all layers contain it, otherwise the topological [`level`](Self::level). Zero if the
    /// file was written by an old Git without generation numbers.
    pub generation: u64,
    /// The topological level: the length of the longest path to a root, counted in commits.
    pub level: u32,
}

/// An open commit-graph. `Send + Sync`; no method takes a lock if its files are mapped.
#[derive(Debug)]
pub struct CommitGraph {
    /// The layers, lowest first; never empty.
    layers: Vec<GraphLayer>,
}

/// The result of opening the commit-graph of a directory.
#[derive(Debug, Default)]
pub struct OpenedGraph {
    /// The commit-graph, consisting of the usable files.
    pub graph: Option<CommitGraph>,
    /// The problems of the files.
    pub remarks: Vec<Remark>,
    /// Whether all files of the chain are usable.
    pub is_complete: bool,
}

impl CommitGraph {
    /// Opens the commit-graph of the first of `directories` that has one. `directories` are the
    /// object directory and its alternates. Also returns remarks about invalid files. Missing files
    /// cause no remark.
    pub fn open(
        directories: &[impl AsRef<Path>],
        options: &Options,
    ) -> (Option<CommitGraph>, Vec<Remark>) {
        let mut remarks = Vec::new();
        let graph = chain::open(directories, options, &mut remarks);
        (graph, remarks)
    }

    /// Does the same as [`open`](Self::open) for the first directory only; the layers of a chain
    /// may also be in the other directories.
    pub fn open_in(directories: &[impl AsRef<Path>], options: &Options) -> OpenedGraph {
        let mut opened = OpenedGraph {
            is_complete: true,
            ..OpenedGraph::default()
        };
        let remarks = &mut opened.remarks;
        let Some(found) = chain::open_in(directories, 0, options, remarks) else {
            return opened;
        };
        (opened.graph, opened.is_complete) = found;
        opened
    }

    /// Opens a commit-graph with a single file, whose path is `path`. Returns remarks about the
    /// file, too.
    pub fn from_view(
        view: FileView,
        path: &Path,
        options: &Options,
    ) -> (Option<CommitGraph>, Vec<Remark>) {
        let mut remarks = Vec::new();
        let layer = GraphLayer::parse(view, path, options, &mut remarks);
        let graph = layer.map(|layer| CommitGraph {
            layers: vec![layer],
        });
        (graph, remarks)
    }

    /// Returns the number of commits.
    pub fn len(&self) -> u32 {
        self.top().below + self.top().len()
    }

    /// Returns whether the commit-graph has no commits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of files (layers).
    pub fn layer_count(&self) -> usize {
        self.layers.len()
    }

    /// Returns whether generation numbers are corrected commit dates instead of topological levels.
    pub fn has_corrected_dates(&self) -> bool {
        self.top().generations.is_some() && !self.top().levels_only
    }

    /// Returns whether the layer `layer`, counted from the lowest, contains corrected commit dates,
    /// even if other layers do not.
    ///
    /// # Panics
    /// Panics if the layer does not exist.
    pub fn layer_has_corrected_dates(&self, layer: usize) -> bool {
        self.layers[layer].generations.is_some()
    }

    /// Returns the corrected commit date of the commit at `position`, even if other layers do not
    /// contain such dates. Returns the commit date if the layer of the commit does not.
    ///
    /// # Errors
    /// Fails as [`commit_at`](Self::commit_at) does.
    pub fn corrected_date_at(&self, position: GraphPosition) -> Result<u64, Error> {
        let (layer, number) = self.locate(position)?;
        let offset = layer.generation_offset(number)?.unwrap_or(0);
        Ok(layer.row(number)?.time.saturating_add(offset))
    }

    /// Returns whether the commit-graph has generation numbers. Files of old versions of Git do
    /// not.
    pub fn has_generations(&self) -> bool {
        let first = self.layers.iter().find(|layer| layer.len() > 0);
        first.is_some_and(|layer| layer.row(0).is_ok_and(|row| row.level > 0))
    }

    /// Returns the position of `id`, if the commit is in the commit-graph.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if a file is not mapped and cannot be read.
    #[inline]
    pub fn find(&self, id: &oid) -> Result<Option<GraphPosition>, Error> {
        if id.kind() != self.top().kind() {
            return Ok(None);
        }
        for layer in self.layers.iter().rev() {
            if let Some(row) = layer.find(id)? {
                return Ok(Some(GraphPosition(layer.below + row)));
            }
        }
        Ok(None)
    }

    /// Returns the id of the commit at `position`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the position does not exist, and with `ErrorKind::Io` if
    /// a file cannot be read.
    pub fn id_at(&self, position: GraphPosition) -> Result<ObjectId, Error> {
        let (layer, row) = self.locate(position)?;
        layer.id_at(row)
    }

    /// Returns the commit at `position`, and replaces the content of `parents` with its parents in
    /// order.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the position does not exist or the stored data are out of
    /// bounds, and with `ErrorKind::Io` if a file cannot be read.
    pub fn commit_at(
        &self,
        position: GraphPosition,
        parents: &mut Vec<GraphPosition>,
    ) -> Result<GraphCommit, Error> {
        let (layer, number) = self.locate(position)?;
        let row = layer.row(number)?;
        parents.clear();
        read_parents(layer, &row, parents)?;
        Self::commit(layer, number, &row)
    }

    /// Does the same as [`commit_at`](Self::commit_at), without the parents.
    ///
    /// # Errors
    /// Fails as [`commit_at`](Self::commit_at) does.
    pub fn commit_alone_at(&self, position: GraphPosition) -> Result<GraphCommit, Error> {
        let (layer, number) = self.locate(position)?;
        Self::commit(layer, number, &layer.row(number)?)
    }

    fn commit(layer: &GraphLayer, number: u32, row: &CommitRow) -> Result<GraphCommit, Error> {
        let offset = match layer.levels_only {
            true => None,
            false => layer.generation_offset(number)?,
        };
        Ok(GraphCommit {
            tree: row.tree,
            time: row.time,
            generation: match offset {
                Some(offset) => row.time.saturating_add(offset),
                None => u64::from(row.level),
            },
            level: row.level,
        })
    }

    /// Returns the paths of the layers, lowest first.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.layers.iter().map(|layer| layer.path.as_path())
    }

    /// Returns the ids (checksums) of the layers, lowest first.
    pub fn layer_ids(&self) -> impl ExactSizeIterator<Item = ObjectId> {
        self.layers.iter().map(|layer| layer.id)
    }

    /// Returns the index of the object directory of each layer, lowest first.
    pub fn directories(&self) -> impl ExactSizeIterator<Item = usize> {
        self.layers.iter().map(|layer| layer.directory)
    }

    /// Returns the range of positions of each layer, lowest first.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = std::ops::Range<u32>> {
        let range = |layer: &GraphLayer| layer.below..layer.below + layer.len();
        self.layers.iter().map(range)
    }

    /// Returns whether the checksum of the layer `layer`, counted from the lowest, matches its
    /// content. Reads the whole file.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be read.
    ///
    /// # Panics
    /// Panics if the layer does not exist.
    pub fn checksum_holds(&self, layer: usize) -> Result<bool, Error> {
        self.layers[layer].checksum_holds()
    }

    /// Returns the number of commits of the layer `layer` whose id starts with `first_byte` or a
    /// smaller byte.
    ///
    /// # Panics
    /// Panics if the layer does not exist.
    pub fn fanout_value(&self, layer: usize, first_byte: u8) -> u32 {
        self.layers[layer].fanout_value(first_byte)
    }

    /// Returns the settings of the changed-path filters of the topmost layer, if it has any.
    pub fn top_bloom_settings(&self) -> Option<bloom::Settings> {
        self.top().bloom.as_ref().map(|bloom| bloom.settings)
    }

    /// Returns the settings of changed-path filters in this graph, if it has any.
    pub fn bloom_settings(&self) -> Option<bloom::Settings> {
        let mut layers = self.layers.iter().rev();
        layers.find_map(|layer| layer.bloom.as_ref().map(|bloom| bloom.settings))
    }

    /// Reads the changed-path filter of the commit at `position` into `out` and returns its
    /// settings; `None` if there is no filter. An empty filter means that the filter was not
    /// computed.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the position does not exist, and with `ErrorKind::Io` if
    /// a file cannot be read.
    pub fn filter_at(
        &self,
        position: GraphPosition,
        out: &mut Vec<u8>,
    ) -> Result<Option<bloom::Settings>, Error> {
        let (layer, row) = self.locate(position)?;
        let found = layer.filter(row, out)?;
        let settings = layer.bloom.as_ref().map(|bloom| bloom.settings);
        Ok(settings.filter(|_| found))
    }

    fn top(&self) -> &GraphLayer {
        &self.layers[self.layers.len() - 1]
    }

    #[inline]
    fn locate(&self, position: GraphPosition) -> Result<(&GraphLayer, u32), Error> {
        let mut layers = self.layers.iter().rev();
        let found = layers.find(|layer| position.0 >= layer.below);
        match found {
            Some(layer) if position.0 - layer.below < layer.len() => {
                Ok((layer, position.0 - layer.below))
            }
            _ => Err(self
                .top()
                .corrupt("invalid commit position. commit-graph is likely corrupt")),
        }
    }
}

/// Reads the parents in `row` of `layer`; all parents are in this layer or below.
fn read_parents(
    layer: &GraphLayer,
    row: &CommitRow,
    parents: &mut Vec<GraphPosition>,
) -> Result<(), Error> {
    let end = layer.below + layer.len();
    let mut push = |position: u32| {
        if position >= end {
            return Err(layer.corrupt(format!("invalid parent position {position}")));
        }
        parents.push(GraphPosition(position));
        Ok(())
    };
    if row.first_parent == NO_PARENT {
        return Ok(());
    }
    push(row.first_parent)?;
    if row.second_parent == NO_PARENT {
        return Ok(());
    }
    if row.second_parent & MORE_PARENTS == 0 {
        return push(row.second_parent);
    }
    let mut number = row.second_parent & !MORE_PARENTS;
    loop {
        let edge = layer.edge(number)?;
        push(edge & !LAST_EDGE)?;
        if edge & LAST_EDGE != 0 {
            return Ok(());
        }
        number += 1;
    }
}

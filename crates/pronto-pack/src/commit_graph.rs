//! Commit-graphs read in place: the links of history without inflating commits. Format:
//! `gitformat-commit-graph(5)`.
//!
//! A graph is one file, or a chain of files that build on one another. Opening checks headers,
//! tables of chunks and fan-outs. Nothing is copied or digested, so the cost does not depend on the
//! size. Values in the tables are checked when they are used.

pub mod bloom;
mod chain;
mod layer;
mod remark;
pub mod write;

use std::path::Path;

use pronto_hash::{Kind, ObjectId, oid};
use pronto_io::view::{Access, View};

pub use crate::chunks::TableFault;
use crate::error::Error;
pub use chain::{chain_path, layer_path, single_path};
use layer::{LAST_EDGE, Layer, MORE_PARENTS, NO_PARENT, Row};
pub use remark::Remark;

/// The generation of commits that are in no graph: above all others.
pub const GENERATION_INFINITY: u64 = i64::MAX as u64;

/// Options for opening a commit-graph. The defaults are those of Git.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The hash of the ids.
    pub kind: Kind,
    /// Whether files are mapped.
    pub access: Access,
    /// Which generation numbers may be used (`commitGraph.generationVersion`).
    pub generation_version: u32,
    /// Which filters of changed paths may be used (`commitGraph.changedPathsVersion`).
    pub changed_paths: ChangedPaths,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kind: Kind::Sha1,
            access: Access::Auto,
            generation_version: 2,
            changed_paths: ChangedPaths::Any,
        }
    }
}

/// Which filters of changed paths may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangedPaths {
    /// None.
    Ignore,
    /// Whichever there are.
    #[default]
    Any,
    /// Only those whose hash has this version.
    Version(u32),
}

/// The place of a commit in a graph, counted from the lowest layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u32);

/// The data of a commit in a commit-graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its tree.
    pub tree: ObjectId,
    /// When it was committed, in seconds since 1970: the lower 34 bits.
    pub time: u64,
    /// A number above those of all its ancestors: a date that clocks cannot spoil where all files
    /// have such, the [`level`](Self::level) elsewhere. Zero if the file was written by a Git that
    /// knew none.
    pub generation: u64,
    /// The length of the longest way to a root, counted in commits.
    pub level: u32,
}

/// An open commit-graph. `Send + Sync`; no method takes a lock while its files are mapped.
#[derive(Debug)]
pub struct CommitGraph {
    /// The lowest first; never empty.
    layers: Vec<Layer>,
}

/// The result of opening the graph of one directory.
#[derive(Debug, Default)]
pub struct Opened {
    /// The graph, as far as its files could be used.
    pub graph: Option<CommitGraph>,
    /// The problems of the files.
    pub remarks: Vec<Remark>,
    /// Whether all files of a chain could be used.
    pub is_complete: bool,
}

impl CommitGraph {
    /// Opens the graph of the first of `directories` (object directories: the main one, then its
    /// alternates) that has one. Also returns remarks about invalid files. Missing files cause no
    /// remark.
    pub fn open(
        directories: &[impl AsRef<Path>],
        options: &Options,
    ) -> (Option<CommitGraph>, Vec<Remark>) {
        let mut remarks = Vec::new();
        let graph = chain::open(directories, options, &mut remarks);
        (graph, remarks)
    }

    /// Like [`open`](Self::open), of the first directory alone; the layers of a chain may lie in the
    /// others.
    pub fn open_in(directories: &[impl AsRef<Path>], options: &Options) -> Opened {
        let mut opened = Opened {
            is_complete: true,
            ..Opened::default()
        };
        let remarks = &mut opened.remarks;
        let Some(found) = chain::open_in(directories, 0, options, remarks) else {
            return opened;
        };
        (opened.graph, opened.is_complete) = found;
        opened
    }

    /// Opens a graph of one file, which was found at `path`, and returns remarks about it.
    pub fn from_view(
        view: View,
        path: &Path,
        options: &Options,
    ) -> (Option<CommitGraph>, Vec<Remark>) {
        let mut remarks = Vec::new();
        let layer = Layer::parse(view, path, options, &mut remarks);
        let graph = layer.map(|layer| CommitGraph {
            layers: vec![layer],
        });
        (graph, remarks)
    }

    /// Returns the number of commits.
    pub fn len(&self) -> u32 {
        self.top().below + self.top().len()
    }

    /// Whether it has no commit.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of files.
    pub fn layer_count(&self) -> usize {
        self.layers.len()
    }

    /// Whether generations are dates, and not levels.
    pub fn has_corrected_dates(&self) -> bool {
        self.top().generations.is_some() && !self.top().levels_only
    }

    /// Whether the file `layer`, counted from the lowest, has dates for generations, even if
    /// others have none.
    ///
    /// # Panics
    /// When there is no such layer.
    pub fn layer_has_corrected_dates(&self, layer: usize) -> bool {
        self.layers[layer].generations.is_some()
    }

    /// The corrected commit date of the commit at `position`, even if other layers have none; its
    /// commit time if its own layer has none.
    ///
    /// # Errors
    /// As [`commit_at`](Self::commit_at).
    pub fn corrected_date_at(&self, position: Position) -> Result<u64, Error> {
        let (layer, number) = self.locate(position)?;
        let offset = layer.generation_offset(number)?.unwrap_or(0);
        Ok(layer.row(number)?.time.saturating_add(offset))
    }

    /// Whether generations may be relied upon: files of old versions of Git have none.
    pub fn has_generations(&self) -> bool {
        let first = self.layers.iter().find(|layer| layer.len() > 0);
        first.is_some_and(|layer| layer.row(0).is_ok_and(|row| row.level > 0))
    }

    /// The place of `id`, if it is in the graph.
    ///
    /// # Errors
    /// `Io` when a file is not mapped and cannot be read.
    #[inline]
    pub fn find(&self, id: &oid) -> Result<Option<Position>, Error> {
        if id.kind() != self.top().kind() {
            return Ok(None);
        }
        for layer in self.layers.iter().rev() {
            if let Some(row) = layer.find(id)? {
                return Ok(Some(Position(layer.below + row)));
            }
        }
        Ok(None)
    }

    /// The id at `position`.
    ///
    /// # Errors
    /// `Corrupt` when there is no such position, `Io` when a file cannot be read.
    pub fn id_at(&self, position: Position) -> Result<ObjectId, Error> {
        let (layer, row) = self.locate(position)?;
        layer.id_at(row)
    }

    /// The commit at `position`; its parents, in order, take the place of what is in `parents`.
    ///
    /// # Errors
    /// `Corrupt` when there is no such position or what stands there is out of bounds, `Io` when
    /// a file cannot be read.
    pub fn commit_at(
        &self,
        position: Position,
        parents: &mut Vec<Position>,
    ) -> Result<Commit, Error> {
        let (layer, number) = self.locate(position)?;
        let row = layer.row(number)?;
        parents.clear();
        read_parents(layer, &row, parents)?;
        Self::commit(layer, number, &row)
    }

    /// Like [`commit_at`](Self::commit_at), without its parents.
    ///
    /// # Errors
    /// As [`commit_at`](Self::commit_at).
    pub fn commit_alone_at(&self, position: Position) -> Result<Commit, Error> {
        let (layer, number) = self.locate(position)?;
        Self::commit(layer, number, &layer.row(number)?)
    }

    fn commit(layer: &Layer, number: u32, row: &Row) -> Result<Commit, Error> {
        let offset = match layer.levels_only {
            true => None,
            false => layer.generation_offset(number)?,
        };
        Ok(Commit {
            tree: row.tree,
            time: row.time,
            generation: match offset {
                Some(offset) => row.time.saturating_add(offset),
                None => u64::from(row.level),
            },
            level: row.level,
        })
    }

    /// Returns the paths of the files, the lowest first.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.layers.iter().map(|layer| layer.path.as_path())
    }

    /// The ids of the files, the lowest first: their checksums.
    pub fn layer_ids(&self) -> impl ExactSizeIterator<Item = ObjectId> {
        self.layers.iter().map(|layer| layer.id)
    }

    /// Which of the object directories each file was found in, the lowest first.
    pub fn directories(&self) -> impl ExactSizeIterator<Item = usize> {
        self.layers.iter().map(|layer| layer.directory)
    }

    /// The positions that each file has, the lowest first.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = std::ops::Range<u32>> {
        let range = |layer: &Layer| layer.below..layer.below + layer.len();
        self.layers.iter().map(range)
    }

    /// Whether the checksum of the file `layer`, counted from the lowest, is that of its content.
    /// Reads it whole.
    ///
    /// # Errors
    /// `Io` when it cannot be read.
    ///
    /// # Panics
    /// When there is no such layer.
    pub fn checksum_holds(&self, layer: usize) -> Result<bool, Error> {
        self.layers[layer].checksum_holds()
    }

    /// Returns the number of commits of the file `layer` whose id starts with `first_byte` or a
    /// smaller byte.
    ///
    /// # Panics
    /// When there is no such layer.
    pub fn fanout_value(&self, layer: usize, first_byte: u8) -> u32 {
        self.layers[layer].fanout_value(first_byte)
    }

    /// Returns the settings of the changed-path filters of the topmost file, if it has any.
    pub fn top_bloom_settings(&self) -> Option<bloom::Settings> {
        self.top().bloom.as_ref().map(|bloom| bloom.settings)
    }

    /// Returns the settings of changed-path filters in this graph, if it has any.
    pub fn bloom_settings(&self) -> Option<bloom::Settings> {
        let mut layers = self.layers.iter().rev();
        layers.find_map(|layer| layer.bloom.as_ref().map(|bloom| bloom.settings))
    }

    /// The filter of the paths that the commit at `position` changed, into `out`, and how it was
    /// made; `None` if there is no such filter. An empty filter is one that was not computed.
    ///
    /// # Errors
    /// `Corrupt` when there is no such position, `Io` when a file cannot be read.
    pub fn filter_at(
        &self,
        position: Position,
        out: &mut Vec<u8>,
    ) -> Result<Option<bloom::Settings>, Error> {
        let (layer, row) = self.locate(position)?;
        let found = layer.filter(row, out)?;
        let settings = layer.bloom.as_ref().map(|bloom| bloom.settings);
        Ok(settings.filter(|_| found))
    }

    fn top(&self) -> &Layer {
        &self.layers[self.layers.len() - 1]
    }

    #[inline]
    fn locate(&self, position: Position) -> Result<(&Layer, u32), Error> {
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

/// The parents in `row` of `layer`: all lie in it or below.
fn read_parents(layer: &Layer, row: &Row, parents: &mut Vec<Position>) -> Result<(), Error> {
    let end = layer.below + layer.len();
    let mut push = |position: u32| {
        if position >= end {
            return Err(layer.corrupt(format!("invalid parent position {position}")));
        }
        parents.push(Position(position));
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

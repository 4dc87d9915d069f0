//! The commit graph of a repository, read from the commit-graph file for the commits that it contains
//! and from commit objects otherwise.
//!
//! As in Git, the commit-graph file is ignored if grafts, replacements or a shallow boundary change the
//! parents of commits.

mod paint;
pub mod reachable;
pub mod reflog;
pub mod revision;
pub mod walk;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use pronto_hash::{ObjectId, oid};
use pronto_pack::commit_graph::{
    ChangedPaths, CommitGraph, GENERATION_INFINITY, GraphPosition, Options,
};

use crate::errors::from_pack;
use crate::objects::from_odb;
use crate::repository::Notice;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_object::CommitLinks;

pub use paint::{AheadBehind, Painting, Until, leads_beyond};

impl Repository {
    /// Returns the commit-graph file, if it exists and is usable. The file is opened once. Defects of
    /// the file are reported as notices.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a setting is not of its type, or if the object store
    /// cannot be opened.
    pub fn commit_graph(&self) -> Result<Option<&CommitGraph>> {
        if let Some(known) = self.commit_graph.get() {
            return Ok(known.as_deref());
        }
        let graph = match self.objects()?.has_replacements() {
            true => None,
            false => self.open_commit_graph(ChangedPaths::Ignore)?.map(Box::new),
        };
        Ok(self.commit_graph.get_or_init(|| graph).as_deref())
    }

    /// Opens the commit-graph file, even if objects are replaced. `changed_paths` selects whether its
    /// changed-path Bloom filters are read. Returns `None` if there is no such file, `core.commitGraph`
    /// is off, or the history has grafts or shallow commits. Malformed files are reported as notices.
    ///
    /// # Errors
    /// As for [`commit_graph`](Self::commit_graph).
    pub fn open_commit_graph(&self, changed_paths: ChangedPaths) -> Result<Option<CommitGraph>> {
        if !self.config().bool_or("core.commitgraph", true)? || !self.has_plain_history()? {
            return Ok(None);
        }
        let store = self.objects()?;
        let mut directories = vec![store.path()];
        directories.extend(store.alternates().iter().map(std::path::PathBuf::as_path));
        let mut options = Options::default();
        options.kind = self.object_hash();
        options.generation_version = self.generation_version()?;
        options.changed_paths = changed_paths;
        let (graph, remarks) = CommitGraph::open(&directories, &options);
        for remark in remarks {
            self.notify(Notice::CommitGraph(remark));
        }
        Ok(graph)
    }

    /// Returns `commitGraph.generationVersion`, by default 2.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not a number.
    pub fn generation_version(&self) -> Result<u32> {
        let version = self.config().i64("commitgraph.generationversion")?;
        Ok(version.map_or(2, |version| u32::try_from(version).unwrap_or(0)))
    }

    /// Returns whether all commits have the parents that their objects record: there are no grafts and
    /// no shallow commits.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if the list of shallow commits or of
    /// grafts cannot be read.
    pub fn has_plain_history(&self) -> Result<bool> {
        Ok(!self.is_shallow() && self.shallow_commits()?.is_empty() && self.grafts()?.is_empty())
    }
}

/// The number of a commit in [`Commits`].
pub type CommitNumber = u32;

/// The reference to a commit: a position in the commit-graph file, or an object id.
#[derive(Clone, Copy, Debug)]
enum ParentPosition {
    Id(ObjectId),
    Position(GraphPosition),
}

#[derive(Debug)]
struct HistoryNode {
    name: ParentPosition,
    parents: Range<u32>,
    generation: u64,
    time: i64,
}

/// The commits that were read so far, numbered in the order in which they were read. Each commit is
/// read once.
pub struct Commits<'a> {
    repository: &'a Repository,
    graph: Option<&'a CommitGraph>,
    /// The shallow boundary, if it differs from that of the repository.
    cut: Option<&'a BTreeSet<ObjectId>>,
    /// Whether a missing commit is treated as one without parents.
    lenient: bool,
    /// The trees of commits that are not in the graph, by number, if they are kept.
    trees: Option<HashMap<CommitNumber, ObjectId>>,
    nodes: Vec<HistoryNode>,
    links: Vec<ParentPosition>,
    by_id: HashMap<ObjectId, CommitNumber>,
    /// For each position in the commit-graph file, the number of the commit plus one; zero if it was
    /// not read.
    by_position: Vec<CommitNumber>,
    content: Vec<u8>,
    positions: Vec<GraphPosition>,
}

impl<'a> Commits<'a> {
    /// Creates an empty graph over `repository`, with a history that ends at the shallow commits `cut`.
    /// Missing commits are treated as commits without parents.
    ///
    /// # Errors
    /// As for [`Repository::commit_graph`].
    pub fn lenient(repository: &'a Repository, cut: &'a BTreeSet<ObjectId>) -> Result<Self> {
        let mut commits = Commits::new(repository)?;
        if !cut.is_empty() {
            (commits.graph, commits.by_position) = (None, Vec::new());
        }
        (commits.cut, commits.lenient) = (Some(cut), true);
        Ok(commits)
    }

    /// Treats missing commits as commits without parents from now on.
    pub fn pass_over_missing(&mut self) {
        self.lenient = true;
    }

    /// Creates an empty graph over `repository`.
    ///
    /// # Errors
    /// As for [`Repository::commit_graph`].
    pub fn new(repository: &'a Repository) -> Result<Self> {
        let graph = repository.commit_graph()?;
        Ok(Commits {
            repository,
            graph,
            cut: None,
            lenient: false,
            trees: None,
            nodes: Vec::new(),
            links: Vec::new(),
            by_id: HashMap::new(),
            by_position: vec![0; graph.map_or(0, |graph| graph.len() as usize)],
            content: Vec::new(),
            positions: Vec::new(),
        })
    }

    /// Keeps the trees of commits, for [`tree`](Self::tree).
    pub(crate) fn with_trees(mut self) -> Self {
        self.trees = Some(HashMap::new());
        self
    }

    /// Returns the id of the tree of commit `number`; `None` if the commit is missing or trees are not
    /// kept.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the commit-graph file is malformed, or [`ErrorKind::Io`].
    pub fn tree(&self, number: CommitNumber) -> Result<Option<ObjectId>> {
        match (self.nodes[number as usize].name, self.graph) {
            (ParentPosition::Position(position), Some(graph)) => {
                let commit = graph.commit_alone_at(position).map_err(from_pack)?;
                Ok(Some(commit.tree))
            }
            _ => Ok(self
                .trees
                .as_ref()
                .and_then(|trees| trees.get(&number).copied())),
        }
    }

    /// Returns the number of the commit `id`, and reads the commit if it is new.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if `id` does not exist or is not a commit, or
    /// [`ErrorKind::Io`].
    pub fn number(&mut self, id: &oid) -> Result<CommitNumber> {
        if let Some(graph) = self.graph
            && let Some(position) = graph.find(id).map_err(from_pack)?
        {
            return self.number_at(graph, position);
        }
        if let Some(number) = self.by_id.get(id) {
            return Ok(*number);
        }
        let links = self.read(id)?;
        let tree = links.as_ref().map(|links| links.tree);
        let (time, parents) = links.map_or((0, Vec::new()), |links| (links.time, links.parents));
        let node = HistoryNode {
            name: ParentPosition::Id(id.to_owned()),
            parents: self.link(parents.into_iter().map(ParentPosition::Id)),
            generation: GENERATION_INFINITY,
            time,
        };
        let number = self.push(node)?;
        self.by_id.insert(id.to_owned(), number);
        if let (Some(trees), Some(tree)) = (&mut self.trees, tree) {
            trees.insert(number, tree);
        }
        Ok(number)
    }

    fn read(&mut self, id: &oid) -> Result<Option<CommitLinks>> {
        let Some(cut) = self.cut else {
            let links = self.repository.commit_links(id, &mut self.content);
            return match links {
                Err(_) if self.lenient && !self.is_there(id)? => Ok(None),
                links => links.map(Some),
            };
        };
        if self.lenient && !self.is_there(id)? {
            return Ok(None);
        }
        let mut links = self.repository.uncut_links(id, &mut self.content)?;
        if cut.contains(id) {
            links.parents.clear();
        }
        Ok(Some(links))
    }

    fn is_there(&self, id: &oid) -> Result<bool> {
        let store = self.repository.objects()?;
        store.contains(id).map_err(from_odb)
    }

    fn number_at(&mut self, graph: &CommitGraph, position: GraphPosition) -> Result<CommitNumber> {
        let slot = position.0 as usize;
        match self.by_position.get(slot).copied() {
            Some(0) | None => {}
            Some(known) => return Ok(known - 1),
        }
        let mut positions = std::mem::take(&mut self.positions);
        let commit = graph.commit_at(position, &mut positions);
        let commit = commit.map_err(from_pack)?;
        let node = HistoryNode {
            name: ParentPosition::Position(position),
            parents: self.link(positions.iter().copied().map(ParentPosition::Position)),
            // The graph was written by a Git without generation numbers.
            generation: match commit.generation {
                0 => GENERATION_INFINITY,
                generation => generation,
            },
            time: i64::try_from(commit.time).unwrap_or(i64::MAX),
        };
        self.positions = positions;
        let number = self.push(node)?;
        self.by_position[slot] = number + 1;
        Ok(number)
    }

    fn link(&mut self, parents: impl Iterator<Item = ParentPosition>) -> Range<u32> {
        let start = self.links.len() as u32;
        self.links.extend(parents);
        start..self.links.len() as u32
    }

    fn push(&mut self, node: HistoryNode) -> Result<CommitNumber> {
        let number = u32::try_from(self.nodes.len()).ok();
        let number = number.filter(|_| self.links.len() < u32::MAX as usize);
        let number =
            number.ok_or_else(|| Error::new(ErrorKind::Object, "too many commits for one walk"))?;
        self.nodes.push(node);
        Ok(number)
    }

    /// Returns the number of parents of `number`.
    pub fn parent_count(&self, number: CommitNumber) -> u32 {
        self.nodes[number as usize].parents.len() as u32
    }

    /// Returns the number of the parent at position `which` of commit `number`, and reads the parent if
    /// it is new.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the parent is missing or malformed, or [`ErrorKind::Io`].
    pub fn parent(&mut self, number: CommitNumber, which: u32) -> Result<CommitNumber> {
        let at = self.nodes[number as usize].parents.start + which;
        match (self.links[at as usize], self.graph) {
            (ParentPosition::Position(position), Some(graph)) => self.number_at(graph, position),
            (ParentPosition::Id(id), _) => self.number(&id),
            (ParentPosition::Position(_), None) => unreachable!("positions come from the graph"),
        }
    }

    /// Returns the number of the parent at position `which` of commit `number`; `None` if the parent
    /// was not read yet.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the commit-graph file is malformed, or [`ErrorKind::Io`].
    pub fn known_parent(&self, number: CommitNumber, which: u32) -> Result<Option<CommitNumber>> {
        let at = self.nodes[number as usize].parents.start + which;
        let at_position = |position: GraphPosition| {
            let known = self.by_position.get(position.0 as usize).copied();
            known.unwrap_or(0).checked_sub(1)
        };
        match (self.links[at as usize], self.graph) {
            (ParentPosition::Position(position), _) => Ok(at_position(position)),
            (ParentPosition::Id(id), Some(graph)) => match graph.find(&id).map_err(from_pack)? {
                Some(position) => Ok(at_position(position)),
                None => Ok(self.by_id.get(&id).copied()),
            },
            (ParentPosition::Id(id), None) => Ok(self.by_id.get(&id).copied()),
        }
    }

    /// Returns the id of the parent at position `which` of commit `number`. The parent need not exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the commit-graph file is malformed, or [`ErrorKind::Io`].
    pub fn parent_id(&self, number: CommitNumber, which: u32) -> Result<ObjectId> {
        let at = self.nodes[number as usize].parents.start + which;
        self.id_of(self.links[at as usize])
    }

    /// Returns the object id of commit `number`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the commit-graph file is malformed, or [`ErrorKind::Io`].
    pub fn id(&self, number: CommitNumber) -> Result<ObjectId> {
        self.id_of(self.nodes[number as usize].name)
    }

    fn id_of(&self, link: ParentPosition) -> Result<ObjectId> {
        match (link, self.graph) {
            (ParentPosition::Position(position), Some(graph)) => {
                graph.id_at(position).map_err(from_pack)
            }
            (ParentPosition::Id(id), _) => Ok(id),
            (ParentPosition::Position(_), None) => unreachable!("positions come from the graph"),
        }
    }

    /// Returns the committer date of commit `number`, in seconds since 1970.
    pub fn time(&self, number: CommitNumber) -> i64 {
        self.nodes[number as usize].time
    }

    /// Returns the generation number of commit `number`, which is larger than those of all its
    /// ancestors.
    pub fn generation(&self, number: CommitNumber) -> u64 {
        self.nodes[number as usize].generation
    }
}

//! Looks up gitattributes of paths (`git check-attr`).

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{Index, mode};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_odb::Store;
use pronto_worktree::attributes::{
    AttributeStack, Attributes, AttributesByDirectory, Files, FromIndex, FromWorktree, Mentioned,
    Once, ReadAttributes,
};
use pronto_worktree::filter::ATTRIBUTES;

use crate::errors::from_worktree;
use crate::support::{self, Operation};
use crate::{ErrorKind, Repository, Result};
use pronto_repository::Notice;

pub use pronto_worktree::attributes::{AttributeState, Flaw};

/// The built-in attribute whose value is the mode of the path.
const OBJECT_MODE: &str = "builtin_objectmode";

/// The selected attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeSelection {
    /// The attributes with these names.
    Named(Vec<String>),
    /// All attributes that are specified for the path (`--all`).
    All,
}

/// Whether `name` can be the name of an attribute: letters, digits, `-`, `.` and `_`, not
/// beginning with `-`.
pub fn is_attribute_name(name: &[u8]) -> bool {
    let fits = |&byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    name.first().is_some_and(|first| *first != b'-') && name.iter().all(fits)
}

/// Looks up the attributes of one path after another. Lookups are cheapest if the paths of a
/// directory are consecutive.
pub struct AttributeCheck<'r> {
    repository: &'r Repository,
    files: Files,
    store: &'r Store,
    /// The `.gitattributes` files in the index.
    blobs: HashMap<BString, ObjectId>,
    place: AttributesSource,
    selection: AttributeSelection,
    mentioned: Option<Mentioned>,
    names: Vec<String>,
    stack: AttributeStack,
    index: Index,
    /// The flaws that were returned before, because a file may be read several times.
    known_flaws: HashSet<(BString, Flaw)>,
}

/// An attribute of a path, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The name of the attribute.
    pub name: &'a str,
    /// The state.
    pub state: AttributeState,
}

/// A line of an attributes file, or a whole file, that is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredLine {
    /// The attributes file.
    pub file: BString,
    /// The reason.
    pub flaw: Flaw,
}

/// The source of attributes files of directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttributesSource {
    Worktree,
    Index,
    /// No source, in a bare repository.
    None,
}

/// Returns the attributes for files that are about to be added: from the worktree, or from `index`
/// if the worktree lacks a `.gitattributes` file.
///
/// # Errors
/// Fails with [`ErrorKind::NoWorkTree`] if there is no worktree, and with [`ErrorKind::Io`] if an
/// attributes file cannot be read.
pub(crate) fn attributes_of_files(repository: &Repository, index: &Index) -> Result<Attributes> {
    attributes_selected(repository, index, &ATTRIBUTES)
}

/// Does the same as [`attributes_of_files`] for the attributes that the caller selects.
pub(crate) fn attributes_selected(
    repository: &Repository,
    index: &Index,
    names: &[&str],
) -> Result<Attributes> {
    let source = attributes_source(repository, index)?;
    let files = repository.attribute_files()?;
    Attributes::new(names, &files, Box::new(source)).map_err(from_worktree)
}

/// Does the same as [`attributes_of_files`] for many threads and for files that do not change: each
/// directory is read once.
pub(crate) fn attributes_of_still_files(
    repository: &Repository,
    index: &Index,
) -> Result<Attributes> {
    let source = Once::new(attributes_source(repository, index)?);
    let files = repository.attribute_files()?;
    Attributes::new(&ATTRIBUTES, &files, Box::new(source)).map_err(from_worktree)
}

fn attributes_source(
    repository: &Repository,
    index: &Index,
) -> Result<FromWorktree<FromIndex<Store>>> {
    let top = repository.require_work_tree()?;
    let top = Directory::open(top).context(ErrorKind::Io, "could not open directory", top)?;
    let in_index = FromIndex {
        blobs: FromIndex::<Store>::find_in_index(index.iter()),
        objects: repository.objects()?.clone(),
        worktree: None,
    };
    Ok(FromWorktree::new(top, in_index))
}

/// Sends a notice for each line and file that `attributes` ignored, sorted by file.
pub(crate) fn notify_of_flaws(repository: &Repository, attributes: &Attributes) {
    let mut flaws = attributes.take_flaws();
    flaws.sort_by(|(a, _), (b, _)| a.cmp(b));
    flaws.dedup();
    for (file, flaw) in flaws {
        repository.notify(Notice::AttributesFlaw { file, flaw });
    }
}

/// Prepares lookups of attributes. Attributes come from the worktree, and from the index for files
/// that the worktree lacks; with `cached` only from the index (`--cached`).
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a file cannot be read, and with other kinds if the index cannot
/// be read or a setting is malformed.
pub fn check(
    repository: &Repository,
    selection: AttributeSelection,
    cached: bool,
) -> Result<AttributeCheck<'_>> {
    support::require(repository, Operation::ReadAttributes)?;
    let place = match (cached, repository.work_tree()) {
        (true, _) => AttributesSource::Index,
        (false, Some(_)) => AttributesSource::Worktree,
        (false, None) => AttributesSource::None,
    };
    let index = repository.index()?;
    let store = repository.objects()?;
    let blobs = FromIndex::<Store>::find_in_index(index.iter());
    let files = repository.attribute_files()?;
    let source = source(repository, place, &blobs, store)?;
    let (names, mentioned) = match &selection {
        AttributeSelection::Named(names) => (names.clone(), None),
        AttributeSelection::All => {
            let mentioned = Mentioned::new(&files, &*source).map_err(from_worktree)?;
            (to_strings(&mentioned), Some(mentioned))
        }
    };
    let stack = stack(&names, &files, source)?;
    Ok(AttributeCheck {
        repository,
        files,
        store,
        blobs,
        place,
        selection,
        mentioned,
        names,
        stack,
        index,
        known_flaws: HashSet::new(),
    })
}

fn source(
    repository: &Repository,
    place: AttributesSource,
    blobs: &HashMap<BString, ObjectId>,
    store: &Store,
) -> Result<Box<dyn ReadAttributes>> {
    let in_index = || FromIndex {
        blobs: blobs.clone(),
        objects: store.clone(),
        worktree: None,
    };
    Ok(match (place, repository.work_tree()) {
        (AttributesSource::Index, _) => Box::new(in_index()),
        (AttributesSource::Worktree, Some(path)) => {
            let top = Directory::open(path).context(ErrorKind::Io, "cannot open", path)?;
            Box::new(FromWorktree::new(top, in_index()))
        }
        _ => Box::new(AttributesByDirectory::new()),
    })
}

fn stack(
    names: &[String],
    files: &Files,
    source: Box<dyn ReadAttributes>,
) -> Result<AttributeStack> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let attributes = Attributes::new(&names, files, source).map_err(from_worktree)?;
    Ok(attributes.stack())
}

fn to_strings(mentioned: &Mentioned) -> Vec<String> {
    let names = mentioned.names().iter();
    names.map(|name| name.to_str_lossy().into_owned()).collect()
}

impl AttributeCheck<'_> {
    /// Returns the attributes of `path`, which is relative to the top of the worktree and ends with
    /// a slash for a directory. If all attributes are selected, unspecified ones are left out.
    ///
    /// # Errors
    /// An attributes file cannot be read.
    pub fn states(&mut self, path: &BStr) -> Result<Vec<Attribute<'_>>> {
        if self.mentioned.is_some() {
            self.learn(path)?;
        }
        let states = self.stack.states(path).map_err(from_worktree)?.to_vec();
        let all = self.selection == AttributeSelection::All;
        let computed = |name: &str, state: AttributeState| match (&state, name) {
            (AttributeState::Unspecified, OBJECT_MODE) => self.object_mode(path),
            _ => Ok(state),
        };
        let names = self.names.iter().map(String::as_str);
        let mut shown = Vec::with_capacity(states.len());
        for (name, state) in names.zip(states) {
            let state = computed(name, state)?;
            if !all || state != AttributeState::Unspecified {
                shown.push(Attribute { name, state });
            }
        }
        Ok(shown)
    }

    /// Returns the lines of attributes files that were ignored since the last call, each once and with
    /// the name of its file.
    pub fn take_flaws(&mut self) -> Vec<IgnoredLine> {
        let mut flaws = self.stack.take_flaws();
        flaws.retain(|flaw| self.known_flaws.insert(flaw.clone()));
        let lines = flaws.into_iter();
        lines
            .map(|(file, flaw)| IgnoredLine { file, flaw })
            .collect()
    }

    /// Returns the mode that `path` has, or would get, in the index: the value of
    /// `builtin_objectmode`.
    fn object_mode(&self, path: &BStr) -> Result<AttributeState> {
        let path = path.strip_suffix(b"/").unwrap_or(path).as_bstr();
        let found = match (self.place, self.repository.work_tree()) {
            (AttributesSource::Index, _) => {
                let at = self.index.find(path, 0).ok();
                at.map(|at| self.index.entry(at).mode)
            }
            (AttributesSource::Worktree, Some(top)) => Some(self.mode_of_file(top, path)?),
            _ => None,
        };
        Ok(found.map_or(AttributeState::Unspecified, |mode| {
            AttributeState::Value(Arc::new(format!("{mode:06o}").into()))
        }))
    }

    fn mode_of_file(&self, top: &Path, path: &BStr) -> Result<u32> {
        let file = top.join(crate::path::borrow(path));
        let metadata = file.symlink_metadata().map_err(|error| {
            let message = format!("unable to stat '{path}'");
            crate::Error::new(ErrorKind::Io, message).because(pronto_io::error::OsReason(error))
        })?;
        Ok(if metadata.is_symlink() {
            mode::SYMLINK
        } else if metadata.is_dir() {
            let commit = self.repository.submodule_commit(path);
            commit.map_or(mode::TREE, |_| mode::GITLINK)
        } else if metadata.mode() & 0o100 != 0 {
            mode::EXECUTABLE
        } else {
            mode::FILE
        })
    }

    /// Adds the attributes that the `.gitattributes` files in the leading directories of `path`
    /// mention.
    fn learn(&mut self, path: &BStr) -> Result<()> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let directory = &path[..path.rfind_byte(b'/').unwrap_or(0)];
        let make = || source(self.repository, self.place, &self.blobs, self.store);
        let Some(mentioned) = &mut self.mentioned else {
            return Ok(());
        };
        if mentioned.knows(directory.as_bstr()) {
            return Ok(());
        }
        let before = mentioned.names().len();
        let entered = mentioned.enter(directory.as_bstr(), &*make()?);
        entered.map_err(from_worktree)?;
        if mentioned.names().len() > before {
            self.names = to_strings(mentioned);
            self.stack = stack(&self.names, &self.files, make()?)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for AttributeCheck<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttributeCheck").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_attributes() {
        for name in ["a", "A.b_c-1", "0", "."] {
            assert!(is_attribute_name(name.as_bytes()), "{name}");
        }
        for name in ["", "-a", "a b", "a@"] {
            assert!(!is_attribute_name(name.as_bytes()), "{name}");
        }
    }
}

//! The refs of a repository, stored as loose and packed refs or in reftables, and their reflogs.

mod host;
mod iterate;
mod log;
mod loose;
mod migrate;
mod pack;
mod packed;
mod packed_file;
mod patience;
mod state;
pub mod tables;
mod transaction;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, ObjectId};

use pronto_config::RepositoryLayout;
use pronto_config::config::Config;
use pronto_config::environment::Environment;
use pronto_config::format::RefStorage;
use pronto_config::{Error, ErrorKind, Result, path};
use pronto_io::short::Short as _;

pub use host::RefHost;
pub use iterate::{BrokenRef, IterationItem, ReferenceRef};
pub use log::clean_message;
pub use log::{LogLine, ReflogContent};
pub use migrate::{MigrateOptions, MigrateReport};
pub use pack::{PackRefsOptions, PackRefsReport};
pub use patience::patience;

use crate::{BadName, RefName, RefNameRef, name};
pub use transaction::{
    Edit, ExpectedValue, PreparedTransaction, Reason, RefChangeKind, RejectedEdit, Rename,
    Transaction,
};
pub use transaction::{bad_name, update_failed};

/// The maximum length of a chain of symbolic refs.
const MAX_SYMBOLIC_DEPTH: usize = 5;

/// The value of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefTarget {
    /// The id of the object to which the ref points.
    Object(ObjectId),
    /// The name of the ref to which the symref points.
    Symbolic(RefName),
}

impl RefTarget {
    /// Returns the object id, or `None` for a symref.
    pub fn object(&self) -> Option<ObjectId> {
        match self {
            RefTarget::Object(id) => Some(*id),
            RefTarget::Symbolic(_) => None,
        }
    }
}

/// A ref as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The full name of the ref.
    pub name: BString,
    /// The value of the ref.
    pub target: RefTarget,
    /// The peeled object of an annotated tag, if it is stored with the ref. `None` does not mean
    /// that the ref does not point to a tag.
    pub peeled: Option<ObjectId>,
}

/// The result of reading the loose file of a ref.
enum Loose {
    There(Reference),
    /// No loose file exists; the ref may be in `packed-refs`.
    MayBePacked,
    /// No loose file exists, and a ref of this name is never packed.
    Nowhere,
}

/// Returns the packed ref with the full name `name`.
fn find_in(packed: &packed::PackedRefs, name: &BStr) -> Result<Option<Reference>> {
    let found = packed.find(name).map(|found| Reference {
        name: name.to_owned(),
        target: RefTarget::Object(found.id),
        peeled: found.peeled,
    });
    packed.intact()?;
    Ok(found)
}

/// A ref after symrefs have been followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedRef {
    /// The name of the last ref in the chain of symrefs.
    pub name: BString,
    /// The object id of the last ref; `None` if that ref does not exist yet.
    pub id: Option<ObjectId>,
    /// Whether at least one symref was followed.
    pub is_symbolic: bool,
}

/// The state of `HEAD`: on a branch, on an unborn branch, or detached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadValue {
    /// `HEAD` is on a branch (or another ref) that exists.
    Branch {
        /// The full name of the branch.
        name: BString,
        /// The commit to which the branch points.
        id: ObjectId,
    },
    /// `HEAD` is on an unborn branch.
    Unborn {
        /// The full name of the unborn branch.
        name: BString,
    },
    /// `HEAD` is detached at a commit.
    Detached {
        /// The commit to which `HEAD` points.
        id: ObjectId,
    },
}

impl HeadValue {
    /// Returns the commit, or `None` on an unborn branch.
    pub fn id(&self) -> Option<ObjectId> {
        match self {
            HeadValue::Branch { id, .. } | HeadValue::Detached { id } => Some(*id),
            HeadValue::Unborn { .. } => None,
        }
    }

    /// Returns the full name of the branch, if `HEAD` is on one.
    pub fn name(&self) -> Option<&BStr> {
        match self {
            HeadValue::Branch { name, .. } | HeadValue::Unborn { name } => Some(name.as_bstr()),
            HeadValue::Detached { .. } => None,
        }
    }

    /// Returns the name of the branch without `refs/heads/`, if `HEAD` is on one below it.
    pub fn branch(&self) -> Option<&BStr> {
        self.name()?
            .strip_prefix(b"refs/heads/")
            .map(ByteSlice::as_bstr)
    }
}

/// The refs whose changes are recorded in reflogs (`core.logAllRefUpdates`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPolicy {
    /// Log only refs that have a reflog already (`false`).
    Existing,
    /// Also create reflogs for branches, remote-tracking branches, notes and `HEAD` (`true`).
    Ordinary,
    /// Also create reflogs for all other refs (`always`).
    Always,
}

/// The refs of a repository, as seen from one worktree. `Send + Sync`.
///
/// Only `packed-refs` is cached; the file is read again if it has changed.
#[derive(Debug)]
pub struct References {
    git_dir: PathBuf,
    common_dir: PathBuf,
    display_git_dir: PathBuf,
    display_common_dir: PathBuf,
    object_hash: Kind,
    namespace: BString,
    /// The policy for reflogs, or the error message if `core.logAllRefUpdates` is malformed. Only
    /// changes of refs use the policy.
    log_policy: std::result::Result<LogPolicy, String>,
    packed: Mutex<Option<Arc<packed::PackedRefs>>>,
    /// The stacks of reftables; `None` if refs are stored in files.
    tables: Option<tables::RefStacks>,
}

impl References {
    /// Returns the refs of the repository at `layout`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a setting has a malformed value, and with
    /// [`ErrorKind::InvalidInput`] if `GIT_NAMESPACE` is malformed.
    pub fn new(layout: &RepositoryLayout, config: &Config, env: &Environment) -> Result<Self> {
        let bare = layout.work_tree.is_none() && layout.format.bare != Some(false);
        let log_policy = match config.raw("core.logallrefupdates") {
            Some(value) if value.eq_ignore_ascii_case(b"always") => Ok(LogPolicy::Always),
            _ => match config.bool("core.logallrefupdates") {
                Ok(Some(true)) => Ok(LogPolicy::Ordinary),
                Ok(Some(false)) => Ok(LogPolicy::Existing),
                Ok(None) if bare => Ok(LogPolicy::Existing),
                Ok(None) => Ok(LogPolicy::Ordinary),
                Err(error) => Err(error.message().to_owned()),
            },
        };
        let tables = match layout.format.ref_storage {
            RefStorage::Reftable => Some(tables::RefStacks::new(layout, config, env)?),
            RefStorage::Files => None,
        };
        let place = layout.place();
        Ok(References {
            git_dir: layout.git_dir.clone(),
            common_dir: layout.common_dir.clone(),
            display_git_dir: place.display_git_dir,
            display_common_dir: place.display_common_dir,
            object_hash: layout.format.object_hash,
            namespace: expand_namespace(env.bytes("GIT_NAMESPACE").unwrap_or_default().as_bstr())?,
            log_policy,
            packed: Mutex::default(),
            tables,
        })
    }

    /// Returns the prefix of all ref names in the namespace of `GIT_NAMESPACE`: empty, or
    /// `refs/namespaces/…/`. Lookups do not add the prefix; only `serve` and the `HEAD` of a
    /// namespace do.
    pub fn namespace(&self) -> &BStr {
        self.namespace.as_bstr()
    }

    /// Returns the hash function of object ids.
    pub fn object_hash(&self) -> Kind {
        self.object_hash
    }

    /// Returns the policy for reflogs.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if `core.logAllRefUpdates` is malformed.
    pub fn log_policy(&self) -> Result<LogPolicy> {
        let policy = self.log_policy.as_ref();
        policy
            .copied()
            .map_err(|message| Error::new(ErrorKind::ConfigValue, message.as_str()))
    }

    /// Returns the directory that contains the file of ref `name`, and the path of the file below
    /// that directory.
    pub fn base_of<'a>(&self, name: RefNameRef<'a>) -> (PathBuf, &'a BStr) {
        let name = name.as_bstr();
        if let Some(rest) = name.strip_prefix(b"main-worktree/") {
            return (self.common_dir.clone(), rest.as_bstr());
        }
        if let Some(rest) = name.strip_prefix(b"worktrees/")
            && let Some(end) = rest.position_of(b'/')
        {
            let own = self
                .common_dir
                .join("worktrees")
                .join(path::borrow(&rest[..end]));
            return (own, rest[end + 1..].as_bstr());
        }
        if name::is_per_worktree(name) {
            (self.git_dir.clone(), name)
        } else {
            (self.common_dir.clone(), name)
        }
    }

    /// Returns the path of the loose file of ref `name`, whether it exists or not.
    pub fn file_of(&self, name: RefNameRef<'_>) -> PathBuf {
        let (base, rest) = self.base_of(name);
        base.join(path::borrow(rest))
    }

    /// Returns the ref with the full name `name`, as stored; a symref is not followed.
    ///
    /// Costs three system calls for a loose ref, one binary search for a packed one. With
    /// reftables, costs one `stat` and a search in some of the tables.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if the file of the ref cannot be read, or contains
    /// neither an object id nor the name of a ref.
    pub fn find(&self, name: impl AsRef<[u8]>) -> Result<Option<Reference>> {
        let name = name.as_ref().as_bstr();
        if let Some(tables) = &self.tables {
            return self.find_in_tables(tables, name);
        }
        match self.find_loose(name)? {
            Loose::There(found) => Ok(Some(found)),
            Loose::MayBePacked => self.find_packed(name),
            Loose::Nowhere => Ok(None),
        }
    }

    /// Returns whether `name` is a readable symref, even if its target is an invalid name.
    pub fn is_symbolic(&self, name: impl AsRef<[u8]>) -> bool {
        let name = name.as_ref().as_bstr();
        if self.tables.is_some() {
            let found = self.find(name).ok().flatten();
            return found.is_some_and(|found| found.target.object().is_none());
        }
        let Ok(safe) = RefNameRef::existing(name) else {
            return false;
        };
        let contents = loose::read(&self.file_of(safe), name, self.object_hash);
        matches!(contents, Ok(Some(loose::LooseRefContents::Symbolic(_))))
    }

    /// Returns the loose ref with the full name `name`, if it exists.
    fn find_loose(&self, name: &BStr) -> Result<Loose> {
        let Ok(readable) = RefNameRef::readable(name) else {
            return Ok(Loose::Nowhere);
        };
        let read = loose::read(&self.file_of(readable), name, self.object_hash);
        // A file of the repository that is not a ref is not reported as a broken ref.
        if read.is_err() && RefNameRef::existing(name).is_err() {
            return Ok(Loose::Nowhere);
        }
        if let Some(contents) = read? {
            let target = contents.target(name)?;
            return Ok(target.map_or(Loose::Nowhere, |target| {
                Loose::There(Reference {
                    name: name.to_owned(),
                    target,
                    peeled: None,
                })
            }));
        }
        // Only refs below `refs/` are packed, never `HEAD` or `MERGE_HEAD`.
        Ok(match name.starts_with(b"refs/") {
            true => Loose::MayBePacked,
            false => Loose::Nowhere,
        })
    }

    /// Returns the packed ref with the full name `name`.
    fn find_packed(&self, name: &BStr) -> Result<Option<Reference>> {
        match self.packed()? {
            Some(packed) => find_in(&packed, name),
            None => Ok(None),
        }
    }

    /// Follows symrefs from `name` to the ref that holds an object, or to a ref that does not exist
    /// yet. Returns `None` if `name` does not exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if a ref in the chain cannot be read or is malformed, or
    /// if the chain of symrefs is too long.
    pub fn resolve(&self, name: impl AsRef<[u8]>) -> Result<Option<ResolvedRef>> {
        let name = name.as_ref().as_bstr();
        match self.find(name)? {
            Some(found) => self.follow(found).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the result of [`resolve`](Self::resolve) for each of `names`. `packed-refs` is
    /// checked once, after all loose files, so that refs packed meanwhile are found. If the first
    /// result is sufficient (`is_first_enough`), `packed-refs` is checked name by name.
    pub fn resolve_each(
        &self,
        names: Vec<BString>,
        is_first_enough: bool,
    ) -> impl Iterator<Item = (BString, Result<Option<ResolvedRef>>)> {
        let loose: Vec<_> = match is_first_enough || self.tables.is_some() {
            true => Vec::new(),
            false => names
                .iter()
                .map(|name| self.find_loose(name.as_bstr()))
                .collect(),
        };
        let may_be_packed = |loose: &Result<Loose>| matches!(loose, Ok(Loose::MayBePacked));
        let packed = loose.iter().any(may_be_packed).then(|| self.packed());
        let mut loose = loose.into_iter();
        names.into_iter().map(move |name| {
            let found = match (loose.next(), &packed) {
                (None, _) => self.find(&name),
                (Some(Ok(Loose::MayBePacked)), Some(Ok(packed))) => match packed {
                    Some(packed) => find_in(packed, name.as_bstr()),
                    None => Ok(None),
                },
                // If `packed-refs` cannot be read, the error is reported for each name.
                (Some(Ok(Loose::MayBePacked)), _) => self.find_packed(name.as_bstr()),
                (Some(Ok(Loose::There(found))), _) => Ok(Some(found)),
                (Some(Ok(Loose::Nowhere)), _) => Ok(None),
                (Some(Err(error)), _) => Err(error),
            };
            let resolved = found.and_then(|found| found.map(|it| self.follow(it)).transpose());
            (name, resolved)
        })
    }

    /// Follows symrefs from `first` to the end of the chain.
    fn follow(&self, first: Reference) -> Result<ResolvedRef> {
        let (begin, mut current) = (first.name.clone(), first);
        for step in 0..=MAX_SYMBOLIC_DEPTH {
            let is_symbolic = step > 0;
            let next = match current.target {
                RefTarget::Object(id) => {
                    return Ok(ResolvedRef {
                        name: current.name,
                        id: Some(id),
                        is_symbolic,
                    });
                }
                RefTarget::Symbolic(next) => next,
            };
            if step == MAX_SYMBOLIC_DEPTH {
                break;
            }
            current = match self.find(&next)? {
                Some(found) => found,
                None => {
                    return Ok(ResolvedRef {
                        name: next.into_inner(),
                        id: None,
                        is_symbolic: true,
                    });
                }
            };
        }
        Err(broken(begin.as_bstr()))
    }

    /// Returns the object id to which `name` resolves, or `None`.
    ///
    /// # Errors
    /// Fails as [`resolve`](Self::resolve) does.
    pub fn id_of(&self, name: impl AsRef<[u8]>) -> Result<Option<ObjectId>> {
        Ok(self.resolve(name)?.and_then(|resolved| resolved.id))
    }

    /// Returns the state of `HEAD`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if `HEAD` cannot be read, is missing or is malformed.
    pub fn head(&self) -> Result<HeadValue> {
        match self.resolve("HEAD")? {
            Some(ResolvedRef {
                id: Some(id),
                is_symbolic: false,
                ..
            }) => Ok(HeadValue::Detached { id }),
            Some(ResolvedRef {
                id: Some(id), name, ..
            }) => Ok(HeadValue::Branch { name, id }),
            Some(ResolvedRef { id: None, name, .. }) => Ok(HeadValue::Unborn { name }),
            None => Err(Error::new(
                ErrorKind::Reference,
                "failed to resolve HEAD as a valid ref",
            )),
        }
    }

    /// Returns the current contents of `packed-refs`; `None` if the file does not exist.
    pub(crate) fn packed(&self) -> Result<Option<Arc<packed::PackedRefs>>> {
        let mut cached = self
            .packed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let file = self.common_dir.join("packed-refs");
        *cached = packed::refresh(cached.take(), &file, self.object_hash)?;
        Ok(cached.clone())
    }

    /// Returns whether `core.logAllRefUpdates` requires a reflog for `name` even if none exists.
    pub fn wants_log(&self, name: &BStr) -> bool {
        match self.log_policy {
            Ok(LogPolicy::Existing) | Err(_) => false,
            Ok(LogPolicy::Always) => true,
            Ok(LogPolicy::Ordinary) => {
                name == "HEAD"
                    || name.starts_with(b"refs/heads/")
                    || name.starts_with(b"refs/remotes/")
                    || name.starts_with(b"refs/notes/")
            }
        }
    }
}

fn broken(name: &BStr) -> Error {
    let message = format!("unable to resolve reference '{name}': reference broken");
    Error::new(ErrorKind::Reference, message)
}

fn expand_namespace(raw: &BStr) -> Result<BString> {
    let mut expanded = BString::default();
    for part in raw.split_at_each(b'/').filter(|part| !part.is_empty()) {
        expanded.extend_from_slice(b"refs/namespaces/");
        expanded.extend_from_slice(part);
        expanded.push(b'/');
    }
    if let Some(name) = expanded.strip_suffix(b"/")
        && !name::is_valid(name.as_bstr(), name::Form::Full)
    {
        let message = format!("bad git namespace path \"{raw}\"");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(expanded)
}

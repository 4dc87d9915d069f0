//! Refs of a repository, loose and packed or in reftables, and their reflogs.

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

use pronto_config::Layout;
use pronto_config::config::Config;
use pronto_config::environment::Environment;
use pronto_config::format::RefStorage;
use pronto_config::{Error, ErrorKind, Result, path};
use pronto_io::short::Short as _;

pub use host::Host;
pub use iterate::{Broken, Found, ReferenceRef};
pub use log::clean_message;
pub use log::{Log, LogLine};
pub use migrate::{MigrateOptions, MigrateReport};
pub use pack::{PackRefsOptions, PackRefsReport};
pub use patience::patience;

use crate::{BadName, RefName, RefNameRef, name};
pub use transaction::{Change, Edit, Expected, Prepared, Reason, Refusal, Rename, Transaction};
pub use transaction::{bad_name, update_failed};

/// The maximum length of a chain of symbolic refs.
const MAX_SYMBOLIC_DEPTH: usize = 5;

/// The value of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The id of an object.
    Object(ObjectId),
    /// The name of another ref.
    Symbolic(RefName),
}

impl Target {
    /// Returns the object, if it is one.
    pub fn object(&self) -> Option<ObjectId> {
        match self {
            Target::Object(id) => Some(*id),
            Target::Symbolic(_) => None,
        }
    }
}

/// A ref as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its full name.
    pub name: BString,
    /// Its value.
    pub target: Target,
    /// The peeled object of an annotated tag, if it is known without reading the tag. `None` says
    /// nothing.
    pub peeled: Option<ObjectId>,
}

/// The result of reading the loose file of a ref.
enum Loose {
    There(Reference),
    /// There is no loose file.
    MayBePacked,
    /// There is no loose file, and such names are never packed.
    Nowhere,
}

/// Returns the packed ref of this name.
fn find_in(packed: &packed::Packed, name: &BStr) -> Result<Option<Reference>> {
    let found = packed.find(name).map(|found| Reference {
        name: name.to_owned(),
        target: Target::Object(found.id),
        peeled: found.peeled,
    });
    packed.intact()?;
    Ok(found)
}

/// A ref, with symbolic refs followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The name of the last ref in the chain.
    pub name: BString,
    /// Its object; `None` if that ref does not exist yet.
    pub id: Option<ObjectId>,
    /// Whether at least one symbolic ref was followed.
    pub is_symbolic: bool,
}

/// The state of `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// On a branch (any ref) that has commits.
    Branch {
        /// The full name of the ref.
        name: BString,
        /// The commit it holds.
        id: ObjectId,
    },
    /// On a branch without a commit yet.
    Unborn {
        /// The full name of the future ref.
        name: BString,
    },
    /// Detached at a commit.
    Detached {
        /// The commit.
        id: ObjectId,
    },
}

impl Head {
    /// Returns the commit, if there is one.
    pub fn id(&self) -> Option<ObjectId> {
        match self {
            Head::Branch { id, .. } | Head::Detached { id } => Some(*id),
            Head::Unborn { .. } => None,
        }
    }

    /// Returns the full name of the branch, if `HEAD` is on one.
    pub fn name(&self) -> Option<&BStr> {
        match self {
            Head::Branch { name, .. } | Head::Unborn { name } => Some(name.as_bstr()),
            Head::Detached { .. } => None,
        }
    }

    /// Returns the name of the branch without `refs/heads/`, if `HEAD` is on one below it.
    pub fn branch(&self) -> Option<&BStr> {
        self.name()?
            .strip_prefix(b"refs/heads/")
            .map(ByteSlice::as_bstr)
    }
}

/// Which changes of refs are recorded in reflogs (`core.logAllRefUpdates`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPolicy {
    /// Only those of refs with a reflog.
    Existing,
    /// Branches, remote-tracking branches, notes and `HEAD`.
    Ordinary,
    /// Everything.
    Always,
}

/// The refs of a repository, as seen by one worktree. `Send + Sync`.
///
/// Only the packed refs are cached, and they are read again when their file has changed.
#[derive(Debug)]
pub struct References {
    git_dir: PathBuf,
    common_dir: PathBuf,
    spoken_git_dir: PathBuf,
    spoken_common_dir: PathBuf,
    object_hash: Kind,
    namespace: BString,
    /// The policy for reflogs, or why its setting is malformed. Only changes of refs need it.
    log_policy: std::result::Result<LogPolicy, String>,
    packed: Mutex<Option<Arc<packed::Packed>>>,
    /// The stacks of reftables; `None` if references are in files.
    tables: Option<tables::Tables>,
}

impl References {
    /// The references of the repository at `layout`.
    ///
    /// # Errors
    /// A configured value is not of its type, or `GIT_NAMESPACE` is not well formed.
    pub fn new(layout: &Layout, config: &Config, env: &Environment) -> Result<Self> {
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
            RefStorage::Reftable => Some(tables::Tables::new(layout, config, env)?),
            RefStorage::Files => None,
        };
        let place = layout.place();
        Ok(References {
            git_dir: layout.git_dir.clone(),
            common_dir: layout.common_dir.clone(),
            spoken_git_dir: place.spoken_git_dir,
            spoken_common_dir: place.spoken_common_dir,
            object_hash: layout.format.object_hash,
            namespace: expand_namespace(env.bytes("GIT_NAMESPACE").unwrap_or_default().as_bstr())?,
            log_policy,
            packed: Mutex::default(),
            tables,
        })
    }

    /// Returns the prefix of all names in the namespace of `GIT_NAMESPACE`: empty, or
    /// `refs/namespaces/…/`. Lookups do not add it; only serving and `HEAD` of a namespace do.
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
    /// `core.logAllRefUpdates` is malformed.
    pub fn log_policy(&self) -> Result<LogPolicy> {
        let policy = self.log_policy.as_ref();
        policy
            .copied()
            .map_err(|message| Error::new(ErrorKind::ConfigValue, message.as_str()))
    }

    /// Returns the directory of the file of ref `name`, and the name below it.
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

    /// Returns the ref with the full name `name`, as stored; a symbolic ref is not followed.
    ///
    /// Costs three system calls for a loose ref, one binary search for a packed one; with
    /// reftables one `stat` and a search in some of them.
    ///
    /// # Errors
    /// Its file cannot be read or contains neither an object id nor a name.
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

    /// Returns whether `name` is a symbolic ref, even if it leads to an impossible name. An
    /// unreadable ref is none.
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
        matches!(contents, Ok(Some(loose::Contents::Symbolic(_))))
    }

    /// Returns the loose ref of this name, if it exists.
    fn find_loose(&self, name: &BStr) -> Result<Loose> {
        let Ok(readable) = RefNameRef::readable(name) else {
            return Ok(Loose::Nowhere);
        };
        let read = loose::read(&self.file_of(readable), name, self.object_hash);
        // Other files of the repository are no broken refs.
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
        // Only refs below `refs/` are ever packed, not `HEAD` or `MERGE_HEAD`.
        Ok(match name.starts_with(b"refs/") {
            true => Loose::MayBePacked,
            false => Loose::Nowhere,
        })
    }

    /// Returns the packed ref of this name.
    fn find_packed(&self, name: &BStr) -> Result<Option<Reference>> {
        match self.packed()? {
            Some(packed) => find_in(&packed, name),
            None => Ok(None),
        }
    }

    /// Follows `name` to the ref that holds an object, or would hold it if it existed. `None` if
    /// `name` does not exist.
    ///
    /// # Errors
    /// A file on the way cannot be read or is malformed, or the chain is too long.
    pub fn resolve(&self, name: impl AsRef<[u8]>) -> Result<Option<Resolved>> {
        let name = name.as_ref().as_bstr();
        match self.find(name)? {
            Some(found) => self.follow(found).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the result of [`resolve`](Self::resolve) for each of `names`. The file of packed
    /// refs is checked once, after all others, so that refs packed meanwhile are found; if the
    /// first result is sufficient (`is_first_enough`), it is checked name by name.
    pub fn resolve_each(
        &self,
        names: Vec<BString>,
        is_first_enough: bool,
    ) -> impl Iterator<Item = (BString, Result<Option<Resolved>>)> {
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
                // The file cannot be read, which is reported for each name.
                (Some(Ok(Loose::MayBePacked)), _) => self.find_packed(name.as_bstr()),
                (Some(Ok(Loose::There(found))), _) => Ok(Some(found)),
                (Some(Ok(Loose::Nowhere)), _) => Ok(None),
                (Some(Err(error)), _) => Err(error),
            };
            let resolved = found.and_then(|found| found.map(|it| self.follow(it)).transpose());
            (name, resolved)
        })
    }

    /// Follows `first` to the end of the chain.
    fn follow(&self, first: Reference) -> Result<Resolved> {
        let (begin, mut current) = (first.name.clone(), first);
        for step in 0..=MAX_SYMBOLIC_DEPTH {
            let is_symbolic = step > 0;
            let next = match current.target {
                Target::Object(id) => {
                    return Ok(Resolved {
                        name: current.name,
                        id: Some(id),
                        is_symbolic,
                    });
                }
                Target::Symbolic(next) => next,
            };
            if step == MAX_SYMBOLIC_DEPTH {
                break;
            }
            current = match self.find(&next)? {
                Some(found) => found,
                None => {
                    return Ok(Resolved {
                        name: next.into_inner(),
                        id: None,
                        is_symbolic: true,
                    });
                }
            };
        }
        Err(broken(begin.as_bstr()))
    }

    /// Returns the object that `name` resolves to, if any.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve).
    pub fn id_of(&self, name: impl AsRef<[u8]>) -> Result<Option<ObjectId>> {
        Ok(self.resolve(name)?.and_then(|resolved| resolved.id))
    }

    /// Returns the state of `HEAD`.
    ///
    /// # Errors
    /// It cannot be read or is malformed.
    pub fn head(&self) -> Result<Head> {
        match self.resolve("HEAD")? {
            Some(Resolved {
                id: Some(id),
                is_symbolic: false,
                ..
            }) => Ok(Head::Detached { id }),
            Some(Resolved {
                id: Some(id), name, ..
            }) => Ok(Head::Branch { name, id }),
            Some(Resolved { id: None, name, .. }) => Ok(Head::Unborn { name }),
            None => Err(Error::new(
                ErrorKind::Reference,
                "failed to resolve HEAD as a valid ref",
            )),
        }
    }

    /// Returns the current packed refs; `None` if there are none.
    pub(crate) fn packed(&self) -> Result<Option<Arc<packed::Packed>>> {
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

//! The format of a repository: its version and its extensions, and the formats that this build
//! supports.

use std::path::PathBuf;

use bstr::{BStr, BString};
use pronto_hash::Kind;

use crate::config::{Config, ConfigEntry, ConfigKey, value};
use crate::{Error, ErrorKind, Result, path};

/// The newest supported version of the repository format.
const NEWEST_VERSION: i32 = 1;

/// The extensions that are valid only in repositories of version 1, in lower case and without
/// `extensions.` (`gitrepository-layout(5)`, `extensions.*` in `git-config(1)`).
pub const EXTENSIONS_OF_VERSION_ONE: [&str; 6] = [
    "compatobjectformat",
    "noop-v1",
    "objectformat",
    "refstorage",
    "relativeworktrees",
    "submodulepathconfig",
];

/// The extensions that are valid in repositories of any version, in the same form.
pub const EXTENSIONS_OF_ANY_VERSION: [&str; 4] =
    ["noop", "partialclone", "preciousobjects", "worktreeconfig"];

/// The format of a repository: `core.repositoryFormatVersion` and `extensions.*`.
#[derive(Clone, Debug)]
pub struct RepositoryFormat {
    /// The version of the format (`core.repositoryFormatVersion`).
    pub version: i32,
    /// The hash function of object ids (`extensions.objectFormat`).
    pub object_hash: Kind,
    /// The promisor remote, which has objects that are missing in this repository
    /// (`extensions.partialClone`).
    pub partial_clone: Option<BString>,
    /// Whether each worktree has its own configuration file (`extensions.worktreeConfig`).
    pub worktree_config: bool,
    /// Whether objects must never be deleted (`extensions.preciousObjects`).
    pub precious_objects: bool,
    /// Whether links between worktrees are relative paths (`extensions.relativeWorktrees`).
    pub relative_worktrees: bool,
    /// The value of `core.bare`, if it is set.
    pub bare: Option<bool>,
    /// The value of `core.worktree`, if it is set.
    pub work_tree: Option<PathBuf>,
    /// The storage format of refs (`extensions.refStorage`).
    pub ref_storage: RefStorage,
    unsupported: Option<String>,
    unknown: Vec<BString>,
    only_in_version_one: Vec<BString>,
}

/// The storage format of refs (`extensions.refStorage`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RefStorage {
    /// One file for each ref, and the file `packed-refs` (`files`).
    #[default]
    Files,
    /// Binary tables (`reftable`).
    Reftable,
}

impl RefStorage {
    /// Returns Git's name of the storage format.
    pub fn name(self) -> &'static str {
        match self {
            RefStorage::Files => "files",
            RefStorage::Reftable => "reftable",
        }
    }

    /// Returns the storage format called `name`.
    pub fn named(name: &BStr) -> Option<RefStorage> {
        let mut all = [RefStorage::Files, RefStorage::Reftable].into_iter();
        all.find(|storage| name == storage.name())
    }
}

impl RepositoryFormat {
    /// Reads the format from the configuration file of the repository.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] or [`ErrorKind::Config`] if a value has the wrong type
    /// or names an unknown format.
    pub fn read(config: &Config) -> Result<Self> {
        let mut format = RepositoryFormat {
            version: 0,
            object_hash: Kind::Sha1,
            partial_clone: None,
            worktree_config: false,
            precious_objects: false,
            relative_worktrees: false,
            bare: None,
            work_tree: None,
            ref_storage: RefStorage::Files,
            unsupported: None,
            unknown: Vec::new(),
            only_in_version_one: Vec::new(),
        };
        for entry in config.iter() {
            if entry.key == "core.repositoryformatversion" {
                format.version = entry.i32()?;
            } else if let Some(name) = entry.key.strip_prefix(b"extensions.") {
                format.read_extension(name.into(), &entry)?;
            } else {
                format.read_work_tree(&entry)?;
            }
        }
        Ok(format)
    }

    /// Sets the value of `core.bare` or `core.worktree` if `entry` is one of them.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value has the wrong type.
    pub fn read_work_tree(&mut self, entry: &ConfigEntry<'_>) -> Result<()> {
        if entry.key == "core.bare" {
            self.bare = Some(entry.bool()?);
        } else if entry.key == "core.worktree" {
            self.work_tree = Some(path::from_bytes(entry.string()?));
        }
        Ok(())
    }

    fn read_extension(&mut self, name: &BStr, entry: &ConfigEntry<'_>) -> Result<()> {
        if ConfigKey::split(entry.key).subsection.is_some() {
            self.unknown.push(name.to_owned());
            return Ok(());
        }
        if EXTENSIONS_OF_VERSION_ONE.iter().any(|known| name == known) {
            self.only_in_version_one.push(name.to_owned());
            return self.read_newer_extension(name, entry);
        }
        match name.as_ref() as &[u8] {
            b"noop" => return Ok(()),
            b"preciousobjects" => self.precious_objects = entry.bool()?,
            b"partialclone" => self.partial_clone = Some(entry.string()?.to_owned()),
            b"worktreeconfig" => self.worktree_config = entry.bool()?,
            _ => self.unknown.push(name.to_owned()),
        }
        Ok(())
    }

    fn read_newer_extension(&mut self, name: &BStr, entry: &ConfigEntry<'_>) -> Result<()> {
        let invalid = |value: &BStr| {
            let (line, file) = (entry.line, &entry.origin.name);
            let message = format!("bad config line {line} in file {file}");
            let invalid = format!("invalid value for 'extensions.{name}': '{value}'");
            Err(Error::new(ErrorKind::Config, message).reported_after(invalid))
        };
        match name.as_ref() as &[u8] {
            b"objectformat" => match hash_named(entry.string()?) {
                Some(kind) => self.object_hash = kind,
                None => return invalid(entry.string()?),
            },
            b"compatobjectformat" => {
                self.unsupported = Some("extensions.compatObjectFormat".into());
            }
            b"refstorage" => {
                let value = entry.string()?;
                match value.as_ref() as &[u8] {
                    b"files" => {}
                    b"reftable" => self.ref_storage = RefStorage::Reftable,
                    _ if value.starts_with(b"files:") || value.starts_with(b"reftable:") => {
                        self.unsupported = Some(format!("extensions.refStorage = {value}"));
                    }
                    _ => return invalid(value),
                }
            }
            b"relativeworktrees" => {
                self.relative_worktrees = value::parse_bool(entry.value).unwrap_or_default();
            }
            b"submodulepathconfig" => {
                self.unsupported = Some("extensions.submodulePathConfig".into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks whether a repository of this format may be opened.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::UnknownFormat`] if Git does not support the format, and with
    /// [`ErrorKind::Unsupported`] if only this build does not.
    pub fn verify(&self) -> Result<()> {
        let fail = |message| Err(Error::new(ErrorKind::UnknownFormat, message));
        if self.version > NEWEST_VERSION {
            let found = self.version;
            return fail(format!(
                "Expected git repo version <= {NEWEST_VERSION}, found {found}"
            ));
        }
        if self.version >= 1 && !self.unknown.is_empty() {
            let names = list(&self.unknown);
            let plural = if self.unknown.len() == 1 { "" } else { "s" };
            return fail(format!(
                "unknown repository extension{plural} found:{names}"
            ));
        }
        if self.version == 0 && !self.only_in_version_one.is_empty() {
            let names = list(&self.only_in_version_one);
            let plural = if self.only_in_version_one.len() == 1 {
                ""
            } else {
                "s"
            };
            return fail(format!(
                "repo version is 0, but v1-only extension{plural} found:{names}"
            ));
        }
        match &self.unsupported {
            Some(what) => Err(Error::new(
                ErrorKind::Unsupported,
                format!("repositories with {what} are not supported"),
            )),
            None => Ok(()),
        }
    }
}

fn list(names: &[BString]) -> String {
    names.iter().map(|name| format!("\n\t{name}")).collect()
}

/// Returns the hash function with the name `name` in `extensions.objectFormat` and
/// `--object-format`.
pub fn hash_named(name: &BStr) -> Option<Kind> {
    match name.as_ref() as &[u8] {
        b"sha1" => Some(Kind::Sha1),
        b"sha256" => Some(Kind::Sha256),
        _ => None,
    }
}

/// Returns the name of a hash function in configuration and protocols.
pub fn hash_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Sha256 => "sha256",
        _ => "sha1",
    }
}

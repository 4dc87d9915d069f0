//! Creates the directories, templates and configuration of the new repository.

use std::fs;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::Kind;
use pronto_io::error::IoContext;
use pronto_wire::client::FetchClient;

use super::heads::ClonedHeads;
use super::place::ClonePaths;
use super::{CloneRun, CloneWarning};
use crate::config::edit::Document;
use crate::init::{self, TemplateSource};
use crate::refs::tables;
use crate::repository::RefStorage;
use crate::{Error, ErrorKind, Repository, Result, config, repository};
use pronto_repository::shared::SharedPermissions;

/// Environment variables that would select another repository than the new one.
pub(super) const REPOSITORY_VARIABLES: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
];

impl CloneRun<'_> {
    /// Creates the directories, copies the templates and writes the configuration. Adds a warning
    /// if the template directory does not exist.
    pub(super) fn make_repository(
        &self,
        client: &FetchClient,
        heads: &ClonedHeads<'_>,
        place: &ClonePaths,
        warnings: &mut Vec<CloneWarning>,
    ) -> Result<()> {
        let git_dir = &place.partial;
        let template = match &self.options.template {
            None => TemplateSource::Configured,
            Some(path) if path.as_os_str().is_empty() => TemplateSource::None,
            Some(path) => TemplateSource::Directory(path.clone()),
        };
        fs::create_dir_all(git_dir).context(ErrorKind::Io, "cannot mkdir", git_dir)?;
        let sharing = SharedPermissions::Umask;
        init::copy_template(&template, git_dir, self.environment, sharing)?;
        if let Some(missing) = init::missing_template(&template, self.environment) {
            warnings.push(CloneWarning::MissingTemplates(missing));
        }
        match self.storage.storage {
            RefStorage::Reftable => tables::prepare(git_dir)?,
            _ => init::make_reference_directories(git_dir)?,
        }
        init::make_object_directories(&git_dir.join("objects"))?;
        self.write_config(&git_dir.join("config"), client, heads)?;
        let head = git_dir.join("HEAD");
        // The placeholder that Git uses; replaced when the branch of `HEAD` is known.
        fs::write(&head, "ref: refs/heads/.invalid\n").context(
            ErrorKind::Io,
            "could not write",
            &head,
        )
    }

    fn write_config(
        &self,
        file: &Path,
        client: &FetchClient,
        heads: &ClonedHeads<'_>,
    ) -> Result<()> {
        let options = self.options;
        let mut settings = Settings::read(file)?;
        let hash = client.object_format();
        // As in Git, the filter is recorded even if the server does not support filters.
        let filter = self.options.filter.as_ref();
        self.set_format(&mut settings, hash);
        let abilities = init::probe(file.parent().unwrap_or(file))?;
        let keeps_modes = if abilities.keeps_modes {
            "true"
        } else {
            "false"
        };
        settings.set("core.filemode", keeps_modes.into());
        let bare = if options.is_bare() { "true" } else { "false" };
        settings.set("core.bare", bare.into());
        if !options.is_bare() {
            settings.set("core.logallrefupdates", "true".into());
        }
        if !abilities.has_links {
            settings.set("core.symlinks", "false".into());
        }
        if abilities.ignores_case {
            settings.set("core.ignorecase", "true".into());
        }
        for setting in &options.config {
            let (key, value) = match setting.split_once_str("=") {
                Some((key, value)) => (key.as_bstr(), value.as_bstr()),
                None => (setting.as_bstr(), BStr::new("true")),
            };
            settings.0.add(config::canonical(key)?.as_bstr(), value);
        }
        let mut remote = |name: &str, value: &BStr| {
            let key = format!("remote.{}.{name}", self.origin);
            settings.0.add(key.as_str().into(), value);
        };
        remote("url", self.source.url.as_bstr());
        if !options.tags || options.mirror {
            remote("tagOpt", "--no-tags".into());
        }
        if let Some(refspec) = heads.refspec(self) {
            remote("fetch", refspec.as_bstr());
            if options.mirror {
                remote("mirror", "true".into());
            }
        }
        if let Some(filter) = filter {
            remote("promisor", "true".into());
            remote("partialclonefilter", filter.as_bstr());
        }
        if hash != Kind::Sha1 {
            settings.set(
                "extensions.objectformat",
                repository::hash_name(hash).into(),
            );
        }
        let text = settings.0.as_bytes();
        fs::write(file, text).context(ErrorKind::Io, "could not write", file)
    }

    /// Sets the repository format version, the object format and the ref storage format.
    fn set_format(&self, settings: &mut Settings, hash: Kind) {
        let has_tables = self.storage.storage == RefStorage::Reftable;
        let is_newer = hash != Kind::Sha1 || self.options.filter.is_some() || has_tables;
        let version = if is_newer { "1" } else { "0" };
        if has_tables {
            // This section is the first one, as in a file that Git writes.
            let name = self.storage.storage.name();
            settings.set("extensions.refstorage", name.into());
        }
        settings.set("core.repositoryformatversion", version.into());
    }

    /// Records the upstream of the first branch (`branch.NAME.remote`, `branch.NAME.merge`). As in
    /// Git, these settings are the last in the file.
    pub(super) fn follow(&self, repository: &Repository, heads: &ClonedHeads<'_>) -> Result<()> {
        let Some(branch) = heads.branch().filter(|_| !self.options.is_bare()) else {
            return Ok(());
        };
        let file = repository.git_dir().join("config");
        let mut settings = Settings::read(&file)?;
        let full = [b"refs/heads/", branch.as_bytes()].concat();
        let mut set = |name: &str, value: &BStr| {
            let key =
                BString::from([b"branch.", branch.as_bytes(), b".", name.as_bytes()].concat());
            settings.set_key(config::canonical(key.as_bstr())?.as_bstr(), value);
            Ok::<(), Error>(())
        };
        set("remote", self.origin.as_bstr())?;
        set("merge", full.as_bstr())?;
        let rebase = self.config.string("branch.autosetuprebase")?;
        if rebase.is_some_and(|wanted| matches!(wanted.as_bytes(), b"always" | b"remote")) {
            set("rebase", "true".into())?;
        }
        let text = settings.0.as_bytes();
        fs::write(&file, text).context(ErrorKind::Io, "could not write", &file)
    }
}

/// A configuration file that is being written.
struct Settings(Document);

impl Settings {
    /// Reads the configuration that a template put into `file`, if there is any.
    fn read(file: &Path) -> Result<Self> {
        let document = Document::parse(fs::read(file).unwrap_or_default());
        let document = document.map_err(|bad| {
            let message = format!("{bad} in file {}", file.display());
            Error::new(ErrorKind::Config, message)
        })?;
        Ok(Settings(document))
    }

    fn set(&mut self, key: &str, value: &BStr) {
        self.set_key(key.into(), value);
    }

    fn set_key(&mut self, key: &BStr, value: &BStr) {
        let set = self.0.set(key, value, true, |_| true);
        set.expect("it is refused only where some values are to stay");
    }
}

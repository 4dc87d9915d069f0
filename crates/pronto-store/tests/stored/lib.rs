//! Repositories of a store for tests that otherwise serve directories. A Git repository is
//! published to the store, and the state that a server has produced is exported, so that a version
//! of git without reftables can read it.

#![allow(
    dead_code,
    reason = "every suite that uses this module uses some of it"
)]

mod bare;
mod root;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use pronto::config::ConfigScope;
use pronto::{Environment, ObjectId, Repository, Watch};
use pronto_store::{
    BlockingStore, Configuration, EXPORT_OK, ErrorKind, ExpectedRefValue, FileKind, Generation,
    NewPack, PackPush, RefDecision, RefUpdate, Settings, StoreChange, StoredRefValue,
    StoredRepository, UploadFile, check_key,
};
use test_support::git::isolated;

#[allow(unused_imports, reason = "some suites have directories only")]
pub(crate) use bare::names_in;
use bare::{convert, git, repositories, values_of};
#[allow(unused_imports, reason = "every suite uses some of it")]
pub(crate) use root::{Root, leftovers_of_cache};

/// The kind of storage of the repositories that a test serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Directory,
    Store,
}

/// Defines two tests for each function that takes a [`Place`]: one with repositories in a
/// directory, and one with repositories in a store.
#[allow(unused_macros, reason = "some suites have other forms of tests")]
macro_rules! in_both_places {
    ($($name:ident),* $(,)?) => {
        mod in_a_directory {
            $(#[test]
            fn $name() {
                super::$name($crate::stored::Place::Directory);
            })*
        }

        mod in_a_store {
            $(#[test]
            fn $name() {
                super::$name($crate::stored::Place::Store);
            })*
        }
    };
}
#[allow(unused_imports, reason = "some suites have other forms of tests")]
pub(crate) use in_both_places;

/// Defines tests of functions that serve only directories. The documentation of each test gives the
/// reason for which it has no variant with a store.
#[allow(unused_macros, reason = "some suites have no such test")]
macro_rules! in_a_directory_only {
    ($(#[doc = $reason:literal] $name:ident),* $(,)?) => {
        mod in_a_directory_only {
            $(#[doc = $reason]
            #[test]
            fn $name() {
                super::$name();
            })*
        }
    };
}
#[allow(unused_imports, reason = "some suites have no such test")]
pub(crate) use in_a_directory_only;

/// A store in a directory.
pub(crate) struct Behind {
    folder: PathBuf,
    /// The home directory of the server.
    home: PathBuf,
    store: BlockingStore,
    environment: Environment,
    /// Set after the hooks were added to the configuration of the server's user.
    hooks_named: Once,
}

impl Behind {
    /// Uses a store in `folder/store`, and `folder` for temporary files.
    pub(crate) fn new(folder: &Path) -> Self {
        fs::create_dir_all(folder.join("store")).expect("a directory");
        let environment = Environment::empty(folder);
        let url = url_of(folder);
        Behind {
            store: BlockingStore::open(&url, &environment).expect("a store"),
            folder: folder.to_owned(),
            home: folder.to_owned(),
            environment,
            hooks_named: Once::new(),
        }
    }

    /// Sets the home directory of the server, which is the folder by default.
    pub(crate) fn with_home(mut self, home: &Path) -> Self {
        self.home = home.to_owned();
        self
    }

    /// Returns the section of a configuration of `serve` that names the store, and a cache.
    pub(crate) fn section(&self, cache: &str) -> String {
        let cache = self.folder.join(cache).display().to_string();
        format!(
            "[store]\nurl = \"{}\"\ncache = \"{cache}\"\n",
            url_of(&self.folder)
        )
    }

    /// Returns the names of the repositories.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.store.repositories().expect("a listing");
        self.store.existing(names).expect("a listing")
    }

    /// Publishes the bare repositories below `root` that the store lacks.
    pub(crate) fn publish_new(&self, root: &Path) {
        for (name, directory) in repositories(root) {
            if !self.has(&name) {
                self.import(&directory, &self.repository(&name));
            }
        }
    }

    /// Publishes a repository. The store gets the state of the directory: refs, missing objects,
    /// configuration and hooks.
    pub(crate) fn publish(&self, directory: &Path, name: &str) {
        let stored = self.repository(name);
        let Some(newest) = self.newest(name) else {
            return self.import(directory, &stored);
        };
        self.take_hooks(directory);
        let source = Repository::open(directory, &self.environment).expect("a repository");
        let (old, new) = (self.stored_values(name, &newest), values_of(&source));
        let mut push = PackPush::default();
        for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            if old.get(name) != new.get(name) {
                push.updates.push(RefUpdate {
                    name: name.as_str().into(),
                    old: ExpectedRefValue::Any,
                    new: new.get(name).cloned(),
                });
            }
        }
        let ids = |values: &BTreeMap<String, StoredRefValue>| {
            let ids = values.values().filter_map(|value| match value {
                StoredRefValue::Direct { id, .. } => Some(id.to_string()),
                StoredRefValue::Symbolic(_) => None,
            });
            ids.collect::<BTreeSet<_>>()
        };
        if let Some(pack) = self.pack(directory, &ids(&new), &ids(&old)) {
            push.packs
                .push(self.store.wait(stored.upload(&pack)).expect("an upload"));
        }
        if !push.updates.is_empty() {
            let outcome = self.store.wait(stored.commit(StoreChange::Push(push)));
            let verdicts = outcome.expect("a commit").verdicts;
            assert!(
                verdicts
                    .iter()
                    .all(|verdict| *verdict == RefDecision::Applied)
            );
        }
        self.configure(directory, &source, &stored);
    }

    /// Publishes a repository, and replaces the one with the same name.
    pub(crate) fn replace(&self, directory: &Path, name: &str) {
        let stored = self.repository(name);
        self.store.wait(stored.remove()).expect("it was published");
        self.import(directory, &stored);
    }

    /// Returns the refs of a generation.
    fn stored_values(
        &self,
        name: &str,
        generation: &Generation,
    ) -> BTreeMap<String, StoredRefValue> {
        let view = self.folder.join(format!("view-{}", test_name(name)));
        let (stored, watch) = (self.repository(name), Watch::none());
        let written = stored.write_view(generation, &view, None, &watch);
        self.store.wait(written).expect("a view");
        let repository = Repository::open(&view, &self.environment).expect("a view");
        let values = values_of(&repository);
        drop(repository);
        fs::remove_dir_all(&view).expect("it was made");
        values
    }

    /// Packs the objects that are reachable from `new` and not from `old`.
    fn pack(
        &self,
        directory: &Path,
        new: &BTreeSet<String>,
        old: &BTreeSet<String>,
    ) -> Option<NewPack> {
        let has = |id: &&String| {
            isolated(directory, &["cat-file", "-e", id], b"")
                .status
                .success()
        };
        let mut input: String = new.iter().map(|id| format!("{id}\n")).collect();
        input.extend(old.iter().filter(has).map(|id| format!("^{id}\n")));
        let base = self.folder.join("new");
        let base = base.to_str().expect("text");
        let output = isolated(
            directory,
            &["pack-objects", "--revs", "-q", base],
            input.as_bytes(),
        );
        assert!(output.status.success(), "{output:?}");
        let id = String::from_utf8(output.stdout).expect("text");
        let file = |extension: &str| PathBuf::from(format!("{base}-{}.{extension}", id.trim()));
        let header = fs::read(file("pack")).expect("a pack");
        let objects = u32::from_be_bytes(header[8..12].try_into().expect("four bytes"));
        let files = [(FileKind::Pack, "pack"), (FileKind::Index, "idx")];
        let files = files.map(|(kind, extension)| UploadFile::from_path(kind, &file(extension)));
        (objects > 0).then(|| NewPack {
            id: ObjectId::from_hex(id.trim().as_bytes()).expect("an id"),
            objects,
            is_promisor: false,
            files: files.map(|file| file.expect("a file")).to_vec(),
        })
    }

    fn configure(&self, directory: &Path, source: &Repository, stored: &StoredRepository) {
        let is_marked = directory.join("git-daemon-export-ok").exists();
        let edit = |settings: &mut Settings| {
            for (key, _) in settings.entries() {
                settings.unset(key.as_ref())?;
            }
            for entry in source.config().iter() {
                if entry.origin.scope == ConfigScope::Local && check_key(entry.key).is_ok() {
                    settings.add(entry.key, entry.value.unwrap_or("true".into()))?;
                }
            }
            match is_marked {
                true => settings.set(EXPORT_OK.into(), "true".into()),
                false => Ok(()),
            }
        };
        self.store.configure(stored, edit).expect("a configuration");
    }

    fn import(&self, directory: &Path, stored: &StoredRepository) {
        self.take_hooks(directory);
        let source = Repository::open(directory, &self.environment).expect("a repository");
        let imported = self
            .store
            .import(&source, stored, &self.folder, &Watch::none());
        imported.expect("it can be published");
    }

    /// Moves the hooks of a repository to a directory in the configuration of the server's user.
    fn take_hooks(&self, directory: &Path) {
        let hooks = self.folder.join("hooks");
        let found = fs::read_dir(directory.join("hooks")).into_iter().flatten();
        for entry in found.flatten() {
            let name = entry.file_name().into_string().expect("a name in ASCII");
            if name.ends_with(".sample") {
                continue;
            }
            fs::create_dir_all(&hooks).expect("a directory");
            fs::rename(entry.path(), hooks.join(name)).expect("a hook");
            // Repositories are published concurrently.
            self.hooks_named.call_once(|| {
                let file = self.home.join(".gitconfig");
                let file = file.to_str().expect("text");
                let hooks = hooks.to_str().expect("text");
                let arguments = ["config", "-f", file, "core.hooksPath", hooks];
                git(&self.folder, &arguments);
            });
        }
    }

    /// Returns the number of the newest generation of a repository, if the repository exists.
    pub(crate) fn generation(&self, name: &str) -> Option<u64> {
        self.newest(name).map(|newest| newest.number())
    }

    /// Returns the newest generation of a repository, or `None` if the store has no such
    /// repository.
    fn newest(&self, name: &str) -> Option<Arc<Generation>> {
        match self.store.wait(self.repository(name).latest()) {
            Ok(newest) => Some(newest),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("{name}: {error}"),
        }
    }

    /// Returns whether the store has a repository.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.newest(name).is_some()
    }

    /// Writes the newest generation of a repository as a bare repository that every version of git
    /// can read, and replaces the files at `target`.
    pub(crate) fn export(&self, name: &str, target: &Path) {
        let stored = Arc::new(self.repository(name));
        let newest = self
            .store
            .wait(stored.latest())
            .expect("it is in the store");
        let view = self.folder.join(format!("view-{}", test_name(name)));
        for old in [&view, target] {
            let _ = fs::remove_dir_all(old);
        }
        let watch = Watch::none();
        let written = stored.write_view(&newest, &view, None, &watch);
        self.store.wait(written).expect("a view");
        fs::create_dir_all(target.parent().expect("a parent")).expect("a directory");
        convert(&view, target, &newest, &self.environment);
        fs::remove_dir_all(&view).expect("it was made");
    }

    /// Returns the number of problems that the store detects in a repository.
    pub(crate) fn problems(&self, name: &str) -> Vec<String> {
        let stored = self.repository(name);
        let watch = Watch::none();
        let verified = self.store.wait(stored.verify(true, &watch));
        let problems = verified.expect("it can be read").problems;
        problems.iter().map(ToString::to_string).collect()
    }

    /// Writes a configuration into the manifest of a repository without a check, as a user with
    /// write access to the bucket can.
    pub(crate) fn force_config(&self, name: &str, text: &str) {
        let newest = self.newest(name).expect("it is in the store");
        let change = StoreChange::Configure(Configuration {
            old: newest.manifest.config.clone(),
            new: text.as_bytes().to_vec().into(),
        });
        let changed = self.store.wait(self.repository(name).commit(change));
        changed.expect("a commit");
    }

    /// Copies the objects of a repository to another name, as a user with write access to the
    /// bucket can.
    pub(crate) fn copy_objects(&self, from: &str, to: &str) {
        let place = |name: &str| self.folder.join(format!("store/{name}.git"));
        let mut waiting = vec![(place(from), place(to))];
        while let Some((from, to)) = waiting.pop() {
            fs::create_dir_all(&to).expect("a directory");
            for entry in fs::read_dir(&from).expect("a directory").flatten() {
                let target = to.join(entry.file_name());
                match entry.path().is_dir() {
                    true => waiting.push((entry.path(), target)),
                    false => _ = fs::copy(entry.path(), target).expect("a file"),
                }
            }
        }
    }

    /// Sets a ref of a repository to an object of the repository.
    pub(crate) fn set_ref(&self, name: &str, reference: &str, id: &str) {
        let mut push = PackPush::default();
        push.updates.push(RefUpdate {
            name: reference.into(),
            old: ExpectedRefValue::Any,
            new: Some(StoredRefValue::Direct {
                id: ObjectId::from_hex(id.as_bytes()).expect("an id"),
                peeled: None,
            }),
        });
        let changed = self
            .store
            .wait(self.repository(name).commit(StoreChange::Push(push)));
        changed.expect("a commit");
    }

    fn repository(&self, name: &str) -> StoredRepository {
        self.store.repository(name).expect("a name")
    }
}

fn url_of(folder: &Path) -> String {
    format!("file://{}", folder.join("store").display())
}

fn test_name(name: &str) -> String {
    name.replace('/', "-")
}

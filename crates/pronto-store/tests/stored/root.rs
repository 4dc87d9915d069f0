//! The repositories of a test, in a directory or in a store.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Behind, Place, url_of};

/// The repositories of a test, which are below `root` in a folder, or in a store there.
pub(crate) struct Root {
    folder: PathBuf,
    behind: Option<Behind>,
}

impl Root {
    /// Creates the directory `folder/root`, and a store if the test uses one.
    pub(crate) fn new(folder: &Path, place: Place) -> Self {
        fs::create_dir_all(folder.join("root")).expect("a directory");
        Root {
            folder: folder.to_owned(),
            behind: (place == Place::Store).then(|| Behind::new(folder)),
        }
    }

    pub(crate) fn is_store(&self) -> bool {
        self.behind.is_some()
    }

    /// Returns the directory of a repository, which tests may change and then publish.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        self.folder.join(format!("root/{name}.git"))
    }

    /// Returns lines to append to a configuration. Two concurrent servers must not have the same
    /// cache.
    pub(crate) fn section(&self, cache: &str) -> String {
        let section = self.behind.as_ref().map(|behind| behind.section(cache));
        section.unwrap_or_default()
    }

    /// Returns the arguments of `serve` for the repositories.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let text = |path: PathBuf| path.display().to_string();
        match &self.behind {
            None => vec![text(self.folder.join("root"))],
            Some(_) => {
                let (url, cache) = (url_of(&self.folder), text(self.folder.join("cache")));
                vec!["--store".to_owned(), url, "--cache".to_owned(), cache]
            }
        }
    }

    /// Publishes repositories that exist only in the directory to servers.
    pub(crate) fn publish_new(&self) {
        if let Some(behind) = &self.behind {
            behind.publish_new(&self.folder.join("root"));
        }
    }

    /// Publishes changes of the directory of a repository to servers.
    pub(crate) fn publish(&self, name: &str) {
        if let Some(behind) = &self.behind {
            behind.publish(&self.directory(name), name);
        }
    }

    /// Publishes the directory of a repository with newly created packs.
    pub(crate) fn replace(&self, name: &str) {
        if let Some(behind) = &self.behind {
            behind.replace(&self.directory(name), name);
        }
    }

    /// Returns a bare repository with the state that servers have produced.
    pub(crate) fn served(&self, name: &str) -> PathBuf {
        let Some(behind) = &self.behind else {
            return self.directory(name);
        };
        let exported = self.folder.join(format!("exported/{name}.git"));
        behind.export(name, &exported);
        let problems = behind.problems(name);
        assert!(problems.is_empty(), "{problems:?}");
        exported
    }

    /// Returns the temporary files that pushes to a repository have left: in its directory, or in the cache of the
    /// server that read the section with the name `cache`.
    pub(crate) fn leftovers(&self, name: &str, cache: &str) -> Vec<PathBuf> {
        if self.is_store() {
            let cache = self.folder.join(cache);
            let mut shelves = fs::read_dir(&cache).into_iter().flatten().flatten();
            assert!(
                shelves.any(|shelf| shelf.path().join("push").is_dir()),
                "no push was served from '{}'",
                cache.display()
            );
            return leftovers_of_cache(&cache);
        }
        let mut waiting = vec![self.directory(name)];
        let mut found = Vec::new();
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(&directory).expect("a directory").flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                let name = name.to_string_lossy();
                let is_temporary = ["tmp", "incoming"]
                    .iter()
                    .any(|start| name.starts_with(start))
                    || name.ends_with(".lock");
                if is_temporary {
                    found.push(path);
                } else if path.is_dir() {
                    waiting.push(path);
                }
            }
        }
        found
    }

    /// Returns whether servers have a repository.
    pub(crate) fn has(&self, name: &str) -> bool {
        match &self.behind {
            None => self.directory(name).exists(),
            Some(behind) => behind.has(name),
        }
    }
}

/// Returns the directories of pushes, and the temporary files, that remain in the cache of a
/// server.
pub(crate) fn leftovers_of_cache(cache: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for shelf in entries(cache) {
        let pushes = entries(&shelf.path().join("push"));
        found.extend(pushes.map(|entry| entry.path()));
        let files = entries(&shelf.path().join("file")).map(|entry| entry.path());
        let is_temporary = |path: &PathBuf| path.to_string_lossy().contains(".temp-");
        found.extend(files.filter(is_temporary));
    }
    found
}

//! The repositories below the served directory, and the resolution of their names.

mod creation;
mod resolved;
mod subdirectories;

use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::BString;
use pronto::{Environment, Repository, init, upload_pack};
use pronto_io::error::IoContext as _;
use pronto_io::interrupt::Interrupt;

use crate::config::{ServerConfig, StoreConfig};
use crate::names::RepositoryName;
use crate::open_repository::OpenRepository;
use crate::store::{AccessPurpose, StoredRepositories};
use crate::{Error, ErrorKind, Result};
use creation::TurnToCreate;
use resolved::NamedRepository;
use subdirectories::read_directory;

/// The largest depth below the root at which repositories are listed.
const DEEPEST: usize = 16;

/// The first branch of new repositories, if `init.defaultBranch` is not set.
const FIRST_BRANCH: &str = "main";

/// The largest number of repositories that are listed.
const MOST_LISTED: usize = 100_000;

/// The served repositories.
#[derive(Clone, Debug)]
pub struct Repositories {
    /// The path of the root without symbolic links.
    root: PathBuf,
    /// The name of the only repository, if the root is a repository.
    only: Option<RepositoryName>,
    environment: Environment,
    /// The object store of the repositories. With a store, there is no root.
    store: Option<Arc<StoredRepositories>>,
}

/// The names that a search has found.
struct RepositoryListing {
    names: Vec<String>,
    most: usize,
}

/// The client of a push.
#[derive(Clone, Copy, Debug)]
pub struct PushClient<'a> {
    /// The name of the user, if the client has authenticated.
    pub user: Option<&'a str>,
    /// The address of the client.
    pub address: std::net::IpAddr,
    /// The protocol: `http` or `ssh`.
    pub protocol: &'static str,
}

impl Repositories {
    /// Serves `root`: a repository, or a directory of repositories. Repositories are opened with
    /// `environment`.
    ///
    /// # Errors
    /// Fails if `root` cannot be listed, or is a repository that may not be opened or named in a URL.
    pub fn open(root: &Path, environment: &Environment) -> Result<Self> {
        let root = environment.absolute(root);
        let real = std::fs::canonicalize(&root).context(ErrorKind::Io, "cannot serve", &root)?;
        let mut repositories = Repositories {
            root: real,
            only: None,
            environment: environment.clone(),
            store: None,
        };
        match upload_pack::find(&repositories.root, environment) {
            Ok(_) => {
                let name = repositories.root.file_name().unwrap_or_default();
                let name = name.to_string_lossy();
                repositories.only = Some(RepositoryName::parse(&name)?);
            }
            Err(error) if error.kind() == pronto::ErrorKind::NotARepository => {
                std::fs::read_dir(&root).context(ErrorKind::Io, "cannot serve", &root)?;
            }
            Err(error) => return Err(error.map_kind(|_| ErrorKind::Io)),
        }
        Ok(repositories)
    }

    /// Prepares the repositories of a configuration for an administrative command: they can be created,
    /// listed and removed. The repositories of a store cannot be opened.
    ///
    /// # Errors
    /// Fails for the same reasons as [`open`](Self::open), and if the URL of the store is malformed.
    pub fn managed(config: &ServerConfig, environment: &Environment) -> Result<Self> {
        match &config.store {
            Some(store) => Self::of_store(store, environment),
            None => Self::open(&config.root, environment),
        }
    }

    /// Prepares the repositories of a store, without a call of the store. They cannot be opened.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Config`] if the URL or the credentials are malformed.
    pub(crate) fn of_store(config: &StoreConfig, environment: &Environment) -> Result<Self> {
        let store = StoredRepositories::open(config, environment)?;
        Ok(Self::of(store, environment))
    }

    /// Serves the repositories of a store, with a cache.
    ///
    /// # Errors
    /// As for [`of_store`](Self::of_store), and fails with [`ErrorKind::Io`] if the cache cannot be used.
    pub(crate) fn of_store_with_cache(
        config: &StoreConfig,
        environment: &Environment,
    ) -> Result<Self> {
        let store = StoredRepositories::open(config, environment)?.with_cache()?;
        Ok(Self::of(store, environment))
    }

    /// Serves the repositories of a store to one request, in a cache of its own. `interrupt` ends downloads.
    ///
    /// # Errors
    /// Fails for the same reasons as [`of_store_with_cache`](Self::of_store_with_cache), and with
    /// [`ErrorKind::Unavailable`] if all caches are in use.
    pub(crate) fn of_store_for_command(
        config: &StoreConfig,
        environment: &Environment,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let store = StoredRepositories::open(config, environment)?;
        let store = store.with_interrupt(interrupt).with_free_cache()?;
        Ok(Self::of(store, environment))
    }

    fn of(store: StoredRepositories, environment: &Environment) -> Self {
        Repositories {
            root: PathBuf::new(),
            only: None,
            environment: environment.clone(),
            store: Some(Arc::new(store)),
        }
    }

    /// Returns the store, if the repositories are in a store.
    pub(crate) fn store(&self) -> Option<&Arc<StoredRepositories>> {
        self.store.as_ref()
    }

    /// Opens a repository.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NotFound`] if no repository has this name, or the path is outside of the root.
    pub fn find(&self, name: &RepositoryName) -> Result<OpenRepository> {
        match &self.store {
            Some(store) => store.find(name, &self.environment, AccessPurpose::Fetch),
            None => self.find_in(name, &self.environment),
        }
    }

    /// Opens a repository for a push. Hooks get the client in the variables `REMOTE_USER` and `REMOTE_ADDR`.
    /// Reflogs name the client if the environment of the server sets no committer.
    ///
    /// # Errors
    /// Fails for the same reasons as [`find`](Self::find).
    pub fn find_for_push(
        &self,
        name: &RepositoryName,
        client: &PushClient<'_>,
    ) -> Result<OpenRepository> {
        let mut environment = self.environment.clone();
        let address = client.address.to_string();
        environment.set("REMOTE_ADDR", &address);
        if let Some(user) = client.user {
            environment.set("REMOTE_USER", user);
        }
        let user = client.user.unwrap_or("anonymous");
        let email = format!("{user}@{}.{address}", client.protocol);
        for (variable, value) in [
            ("GIT_COMMITTER_NAME", user),
            ("GIT_COMMITTER_EMAIL", email.as_str()),
        ] {
            if environment.get(variable).is_none() {
                environment.set(variable, value);
            }
        }
        match &self.store {
            Some(store) => store.find(name, &environment, AccessPurpose::Push),
            None => self.find_in(name, &environment),
        }
    }

    fn find_in(&self, name: &RepositoryName, environment: &Environment) -> Result<OpenRepository> {
        let resolved = self.resolve(name, environment)?;
        Ok(resolved.repository.into())
    }

    /// Resolves a name to its directory, `NAME` or else `NAME.git`, and opens the repository there. Every
    /// operation on a name starts here, so the repository that it changes is the one that it has checked.
    ///
    /// # Errors
    /// Fails for the same reasons as [`find`](Self::find).
    fn resolve(&self, name: &RepositoryName, environment: &Environment) -> Result<NamedRepository> {
        let resolved = match &self.only {
            Some(only) if only == name => NamedRepository {
                repository: upload_pack::find(&self.root, environment).map_err(failed)?,
                directory: self.root.clone(),
            },
            Some(_) => return Err(not_found(name)),
            None if self.leads_through_another(name) => return Err(not_found(name)),
            None => self.search(name, environment)?,
        };
        let is_inside = |directory: &Path| {
            let real = std::fs::canonicalize(directory);
            real.is_ok_and(|real| real.starts_with(&self.root))
        };
        let found = &resolved.repository;
        match is_inside(found.git_dir()) && is_inside(found.common_dir()) {
            true => Ok(resolved),
            false => Err(not_found(name)),
        }
    }

    /// Tries the paths at which a repository of this name can be, in Git's order.
    fn search(&self, name: &RepositoryName, environment: &Environment) -> Result<NamedRepository> {
        let plain = self.root.join(name.as_str());
        let suffixed = self.root.join(format!("{name}.git"));
        for directory in [plain, suffixed] {
            for place in [directory.join(".git"), directory.clone()] {
                match upload_pack::find_strict(&place, environment) {
                    Ok(repository) => {
                        return Ok(NamedRepository {
                            repository,
                            directory,
                        });
                    }
                    Err(error) if error.kind() == pronto::ErrorKind::NotARepository => {}
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        Err(not_found(name))
    }

    /// Returns whether an ancestor of the directory is a repository. In its worktree, a user with push access
    /// could create another repository, with hooks. Inside its Git directory, other names would refer to the
    /// same repository, and the rules for its name would not apply to them.
    fn leads_through_another(&self, name: &RepositoryName) -> bool {
        let components: Vec<&str> = name.as_str().split('/').collect();
        let above = components.len().saturating_sub(1);
        let mut path = self.root.clone();
        components.iter().take(above).any(|component| {
            path.push(component);
            ["HEAD", ".git"]
                .iter()
                .any(|file| std::fs::symlink_metadata(path.join(file)).is_ok())
        })
    }

    /// Creates a bare repository.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidName`] if the name is not allowed, or is inside another repository, with
    /// [`ErrorKind::Exists`] if it is in use, with [`ErrorKind::Unsupported`] if the root is a single
    /// repository, and with [`ErrorKind::Io`] if a directory cannot be created.
    pub fn create(&self, name: &RepositoryName) -> Result<()> {
        name.check_new()?;
        if let Some(store) = &self.store {
            return store.create(name, self.store_branch().as_ref());
        }
        if self.only.is_some() {
            let message = "this server serves a single repository: it cannot create another one";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let mut parent = self.root.clone();
        let components: Vec<&str> = name.as_str().split('/').collect();
        let (last, parents) = components.split_last().ok_or_else(|| not_found(name))?;
        for component in parents {
            parent.push(component);
            self.enter(&parent, name)?;
        }
        let git_dir = parent.join(format!("{last}.git"));
        let exists = |path: &Path| std::fs::symlink_metadata(path).is_ok();
        if exists(&git_dir) || exists(&parent.join(last)) {
            let message = format!("repository or directory '{name}' already exists");
            return Err(Error::new(ErrorKind::Exists, message));
        }
        // Creating the directory is atomic, so only one of two concurrent calls for the same name succeeds.
        std::fs::create_dir(&git_dir).map_err(|error| match error.kind() {
            Io::AlreadyExists => Error::new(ErrorKind::Exists, format!("'{name}' already exists")),
            _ => Error::new(ErrorKind::Io, format!("cannot create '{name}'")).because(error),
        })?;
        let mut options = init::Options::default();
        options.template = init::TemplateSource::None;
        options.initial_branch = self.first_branch();
        let made = Repository::init(&git_dir, &options, &self.environment);
        if let Err(error) = made {
            // The directory was new, so all its files are of this call.
            let _ = std::fs::remove_dir_all(&git_dir);
            return Err(error.map_kind(|_| ErrorKind::Io));
        }
        self.find(name).map(drop)
    }

    /// Waits until no other thread or process of this machine creates a repository with a quota.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the root cannot be opened.
    pub(crate) fn turn_to_create(&self) -> Result<TurnToCreate> {
        let root = self.store.is_none().then_some(self.root.as_path());
        TurnToCreate::take(root)
    }

    /// Returns the branch to which `HEAD` of a new repository in a store points.
    fn store_branch(&self) -> BString {
        let config = pronto::config::without_repository(&self.environment).ok();
        let configured = config.and_then(|config| {
            let name = config.string("init.defaultbranch").ok().flatten()?;
            Some(BString::from(name))
        });
        configured.unwrap_or_else(|| FIRST_BRANCH.into())
    }

    /// Returns the branch to which `HEAD` of new repositories points if `init.defaultBranch` is not set: the
    /// branch that most clients push first.
    fn first_branch(&self) -> Option<BString> {
        let config = pronto::config::without_repository(&self.environment).ok()?;
        let is_configured = config.contains("init.defaultbranch");
        (!is_configured).then(|| FIRST_BRANCH.into())
    }

    /// Creates a parent directory of a new repository, or checks the existing one.
    fn enter(&self, directory: &Path, name: &RepositoryName) -> Result<()> {
        let inside = || {
            let message =
                format!("cannot create '{name}': a part of its path is a repository or a file");
            Err(Error::new(ErrorKind::InvalidName, message))
        };
        // The suffix `.git` is tried, too, so that no name refers to a directory inside another repository.
        if upload_pack::find(directory, &self.environment).is_ok() {
            return inside();
        }
        match std::fs::create_dir(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == Io::AlreadyExists => {}
            Err(error) => {
                return Err(error).context(ErrorKind::Io, "cannot create", directory);
            }
        }
        match std::fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir()) {
            true => Ok(()),
            false => inside(),
        }
    }

    /// Removes a repository with all its files. A rename makes it disappear atomically.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NotFound`] if no repository has this name, with [`ErrorKind::Unsupported`] if
    /// this repository cannot be removed, and with [`ErrorKind::Io`] if a file cannot be removed.
    pub fn remove(&self, name: &RepositoryName) -> Result<()> {
        if let Some(store) = &self.store {
            return store.remove(name);
        }
        if self.only.is_some() {
            let message = "this server serves a single repository: it cannot remove it";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let resolved = self.resolve(name, &self.environment)?;
        if !resolved.is_whole() {
            let message = format!(
                "cannot remove '{name}': it is a symbolic link or a worktree of another repository"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let path = resolved.directory;
        let hidden = format!(".removed-{}", std::process::id());
        let hidden = path.with_file_name(format!(
            "{hidden}-{}",
            name.as_str().rsplit('/').next().unwrap_or_default()
        ));
        std::fs::rename(&path, &hidden).context(ErrorKind::Io, "cannot remove", &path)?;
        std::fs::remove_dir_all(&hidden).context(ErrorKind::Io, "cannot remove", &hidden)
    }

    /// Returns the names of the repositories that `wanted` accepts.
    ///
    /// # Errors
    /// Fails for the same reasons as [`list`](Self::list).
    pub(crate) fn names(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        match &self.store {
            Some(store) => store.list_some(wanted),
            None => Ok(self
                .list()?
                .into_iter()
                .filter(|name| wanted(name))
                .collect()),
        }
    }

    /// Returns the sorted names that the server shows when it starts. For a store, only the first names are
    /// checked, so some of the others may be names of removed repositories.
    ///
    /// # Errors
    /// Fails for the same reasons as [`list`](Self::list).
    pub(crate) fn list_at_start(&self) -> Result<Vec<String>> {
        match &self.store {
            Some(store) => store.list_at_start(),
            None => self.list(),
        }
    }

    /// Returns the sorted names of all repositories. Reads each directory that is not inside a repository.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the root cannot be read. Unreadable directories below it are skipped.
    pub fn list(&self) -> Result<Vec<String>> {
        if let Some(store) = &self.store {
            return store.list();
        }
        if let Some(only) = &self.only {
            return Ok(vec![only.as_str().to_owned()]);
        }
        let mut names = self.some(MOST_LISTED)?;
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the only repository, or `None` if there are more, or the repositories are in a store.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the root cannot be read.
    pub fn single(&self) -> Result<Option<RepositoryName>> {
        // A store is not searched, because each name costs calls of the store.
        if self.store.is_some() {
            return Ok(None);
        }
        if let Some(only) = &self.only {
            return Ok(Some(only.clone()));
        }
        match self.some(2)?.as_slice() {
            [name] => RepositoryName::parse(name).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the names of at most `most` repositories.
    fn some(&self, most: usize) -> Result<Vec<String>> {
        let mut listing = RepositoryListing {
            names: Vec::new(),
            most,
        };
        let entries = read_directory(&self.root);
        let entries = entries.context(ErrorKind::Io, "cannot read", &self.root)?;
        self.list_in(entries, "", 1, &mut listing);
        Ok(listing.names)
    }

    fn list_in(
        &self,
        entries: Vec<String>,
        above: &str,
        depth: usize,
        listing: &mut RepositoryListing,
    ) {
        for entry in entries {
            let Ok(name) = RepositoryName::parse(&format!("{above}{entry}")) else {
                continue;
            };
            if listing.names.len() >= listing.most {
                return;
            }
            let path = self.root.join(format!("{above}{entry}"));
            let resolved = self.resolve(&name, &self.environment);
            // `NAME.git` can exist beside a directory `NAME` that contains other repositories.
            if resolved.is_ok_and(|resolved| resolved.directory == path) {
                listing.names.push(name.as_str().to_owned());
            } else if depth < DEEPEST
                && let Ok(entries) = read_directory(&path)
            {
                self.list_in(entries, &format!("{above}{entry}/"), depth + 1, listing);
            }
        }
    }
}

fn failed(error: pronto::Error) -> Error {
    error.map_kind(|_| ErrorKind::Failed)
}

fn not_found(name: &RepositoryName) -> Error {
    let message = format!("there is no repository '{name}'");
    Error::new(ErrorKind::NotFound, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> RepositoryName {
        RepositoryName::parse(name).expect("allowed")
    }

    #[test]
    fn repositories_are_made_found_and_removed() {
        let folder = tempfile::tempdir().expect("a directory");
        let environment = Environment::empty(folder.path());
        let root = folder.path().join("root");
        std::fs::create_dir(&root).expect("a directory");
        let served = Repositories::open(&root, &environment).expect("it is there");
        served.create(&name("team/a")).expect("new");
        served.create(&name("b")).expect("new");
        let made = served.find(&name("b")).expect("there");
        let head = std::fs::read_to_string(made.git_dir().join("HEAD"));
        assert_eq!(head.expect("text"), "ref: refs/heads/main\n");
        let kind = |name: RepositoryName| match served.create(&name) {
            Ok(_) => panic!("{name} was created"),
            Err(error) => error.kind(),
        };
        assert_eq!(kind(name("b")), ErrorKind::Exists);
        assert_eq!(kind(name("team")), ErrorKind::Exists);
        assert_eq!(kind(name("b/c")), ErrorKind::InvalidName);
        assert_eq!(kind(name("x y")), ErrorKind::InvalidName);
        assert_eq!(served.list().expect("readable"), ["b", "team/a"]);
        served.find(&name("team/a.git")).expect("there");
        served.remove(&name("team/a")).expect("there");
        assert_eq!(
            served.find(&name("team/a")).expect_err("gone").kind(),
            ErrorKind::NotFound
        );
        let only = Repositories::open(&root.join("b.git"), &environment).expect("there");
        assert_eq!(only.single().expect("there"), Some(name("b")));
        assert_eq!(served.single().expect("readable"), Some(name("b")));
        served.create(&name("c")).expect("new");
        assert_eq!(served.single().expect("readable"), None);
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("written");
        let error = Repositories::open(&file, &environment).expect_err("no directory");
        assert!(error.to_string().contains("Not a directory"), "{error}");
        only.find(&name("b"))
            .expect("it has the name of its directory");
        assert!(only.find(&name("c")).is_err() && only.remove(&name("b")).is_err());
    }

    #[test]
    fn a_directory_beside_a_repository_of_its_name_is_another_place() {
        let folder = tempfile::tempdir().expect("a directory");
        let environment = Environment::empty(folder.path());
        let root = folder.path().join("root");
        std::fs::create_dir(&root).expect("a directory");
        let served = Repositories::open(&root, &environment).expect("it is there");
        served.create(&name("team/a")).expect("new");
        served.create(&name("x")).expect("new");
        std::fs::rename(root.join("x.git"), root.join("team.git")).expect("renamed");
        assert_eq!(served.list().expect("readable"), ["team", "team/a"]);
        let found = served.find(&name("team")).expect("there");
        assert!(found.git_dir().ends_with("team.git"));
        // Symbolic links give a repository a second name.
        for link in ["link.git", "other"] {
            std::os::unix::fs::symlink(root.join("team/a.git"), root.join(link)).expect("a link");
            let link = name(link);
            served.find(&link).expect("there");
            let error = served.remove(&link).expect_err("it is another name");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
        served.remove(&name("team")).expect("there");
        assert!(root.join("team/a.git").exists() && !root.join("team.git").exists());
        served.find(&name("team/a")).expect("there");
        let error = served.remove(&name("team")).expect_err("gone");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn links_out_of_the_root_lead_nowhere() {
        let folder = tempfile::tempdir().expect("a directory");
        let environment = Environment::empty(folder.path());
        let outside = folder.path().join("outside");
        let root = folder.path().join("root");
        std::fs::create_dir_all(&outside).expect("a directory");
        std::fs::create_dir_all(root.join("pointed")).expect("a directory");
        let elsewhere = Repositories::open(&outside, &environment).expect("there");
        elsewhere.create(&name("secret")).expect("new");
        let served = Repositories::open(&root, &environment).expect("there");
        served.create(&name("own")).expect("new");
        std::os::unix::fs::symlink(&outside, root.join("link")).expect("a link");
        std::os::unix::fs::symlink(root.join("own.git"), root.join("alias")).expect("a link");
        let pointer = format!("gitdir: {}\n", outside.join("secret.git").display());
        std::fs::write(root.join("pointed/.git"), pointer).expect("a file");
        for hidden in ["link/secret", "pointed"] {
            let error = served.find(&name(hidden)).expect_err(hidden);
            assert_eq!(error.kind(), ErrorKind::NotFound, "{hidden}");
        }
        served.find(&name("alias")).expect("it stays inside");
        assert!(served.create(&name("link/new")).is_err());
        assert_eq!(served.list().expect("readable"), ["own"]);
    }
}

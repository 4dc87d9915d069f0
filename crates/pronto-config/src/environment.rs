//! The environment variables that Git uses. The caller copies them once, so the library never reads
//! the environment of the process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use crate::{Error, ErrorKind, Result, value};

/// The variables that bind a process to one repository (`git rev-parse --local-env-vars`). A child
/// process for another repository must not inherit them.
pub const LOCAL_VARIABLES: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
];

/// Returns the variables of [`LOCAL_VARIABLES`] except those of the option `-c`, which also apply
/// to other repositories, such as submodules.
pub fn variables_of_repository() -> impl Iterator<Item = &'static str> {
    let settings = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"];
    let local = LOCAL_VARIABLES.iter().copied();
    local.filter(move |name| !settings.contains(name))
}

/// A session id that is created on first use and shared by clones.
type SessionId = Arc<LazyLock<String, Box<dyn FnOnce() -> String + Send>>>;

/// The environment variables and the current directory of a process, with the changes that global
/// options (`--git-dir`, `-c`, …) make to them.
///
/// Clones are cheap. Takes no lock and makes no system call after the copy.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The variables, shared by clones until one of them changes.
    variables: Arc<BTreeMap<OsString, OsString>>,
    changes: BTreeMap<OsString, Option<OsString>>,
    current_dir: PathBuf,
    original_dir: Option<PathBuf>,
    working_dir: Option<PathBuf>,
    server: Option<PathBuf>,
    session_id: Option<SessionId>,
    bare: bool,
}

impl Environment {
    /// Copies all environment variables of this process, and its current directory.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the current directory cannot be determined, for example
    /// because it was removed.
    pub fn from_process() -> Result<Self> {
        let current_dir = std::env::current_dir().map_err(|error| {
            Error::new(
                ErrorKind::Io,
                "Unable to read current working directory: No such file or directory",
            )
            .because(error)
        })?;
        #[expect(
            clippy::disallowed_methods,
            reason = "this is where the caller asks for the environment of the process"
        )]
        let variables = Arc::new(std::env::vars_os().collect());
        Ok(Environment {
            variables,
            current_dir,
            ..Self::default()
        })
    }

    /// Creates an environment without variables, in `current_dir`. For tests, and for servers that
    /// must not depend on the environment of their caller.
    pub fn empty(current_dir: impl Into<PathBuf>) -> Self {
        Environment {
            current_dir: current_dir.into(),
            ..Self::default()
        }
    }

    /// Returns the directory to which relative paths of the caller refer.
    pub fn current_dir(&self) -> &Path {
        &self.current_dir
    }

    /// Sets the current directory after the process has changed it (`-C`).
    pub fn set_current_dir(&mut self, path: impl Into<PathBuf>) {
        self.current_dir = path.into();
        self.working_dir = None;
    }

    /// Returns the directory in which Git runs once it has found the repository: the top of the
    /// worktree if the caller is inside of it, otherwise the current directory. Relative paths in
    /// settings, variables and URLs of remotes refer to this directory, and child processes start
    /// in it.
    pub fn working_dir(&self) -> &Path {
        self.working_dir.as_deref().unwrap_or(&self.current_dir)
    }

    /// Sets the directory in which Git runs. Called when a repository is opened.
    pub fn set_working_dir(&mut self, path: impl Into<PathBuf>) {
        self.working_dir = Some(path.into());
    }

    /// Returns the directory in which the process was started. It differs from the current
    /// directory after `-C`. Operations never remove this directory.
    pub fn original_dir(&self) -> &Path {
        self.original_dir.as_deref().unwrap_or(&self.current_dir)
    }

    /// Sets the directory in which the process was started, after it has changed its directory.
    pub fn set_original_dir(&mut self, path: impl Into<PathBuf>) {
        self.original_dir = Some(path.into());
    }

    /// Returns the program that serves local repositories with the argument `upload-pack`, if one
    /// was set.
    pub fn server(&self) -> Option<&Path> {
        self.server.as_deref()
    }

    /// Sets the program that serves local repositories with the arguments `upload-pack PATH`. Default:
    /// `git` in the search path (`PATH`).
    pub fn set_server(&mut self, program: impl Into<PathBuf>) {
        self.server = Some(program.into());
    }

    /// Returns the id of this session, which is sent to servers and clients
    /// (`transfer.advertiseSID`).
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref().map(|id| id.as_str())
    }

    /// Sets the function that creates the id of this session on first use.
    pub fn set_session_id(&mut self, make: impl FnOnce() -> String + Send + 'static) {
        self.session_id = Some(Arc::new(LazyLock::new(Box::new(make))));
    }

    /// Returns the value of a variable, which may be empty, or `None` if the variable is not set.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// Returns the value of a variable as bytes, or `None` if the variable is not set.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.get(name).map(OsStr::as_encoded_bytes)
    }

    /// Returns the value of a variable as a path, or `None` if the variable is not set.
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.get(name).map(Path::new)
    }

    /// Returns the path of the file that a variable names, or `None` if the variable is not set. An
    /// empty value names a file that never exists, as in Git.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        self.path(name)
            .map(|path| match path.as_os_str().is_empty() {
                true => PathBuf::new(),
                false => self.resolve(path),
            })
    }

    /// Returns the value of a variable as text, or `None` if the variable is not set or is not
    /// UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// Returns the value of a variable as a boolean by Git's rules, or `default` if the variable is
    /// not set.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not a boolean.
    pub fn boolean(&self, name: &str, default: bool) -> Result<bool> {
        let Some(text) = self.bytes(name) else {
            return Ok(default);
        };
        value::parse_bool(Some(text.into())).ok_or_else(|| {
            Error::new(
                ErrorKind::ConfigValue,
                format!(
                    "bad boolean environment value '{}' for '{name}'",
                    String::from_utf8_lossy(text)
                ),
            )
        })
    }

    /// Sets a variable in this environment and for child processes, like a global option.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        let (name, value) = (name.into(), value.into());
        Arc::make_mut(&mut self.variables).insert(name.clone(), value.clone());
        self.changes.insert(name, Some(value));
    }

    /// Removes a variable from this environment and for child processes.
    pub fn remove(&mut self, name: &str) {
        if self.variables.contains_key(OsStr::new(name)) {
            Arc::make_mut(&mut self.variables).remove(OsStr::new(name));
        }
        self.changes.insert(name.into(), None);
    }

    /// Returns the changes of [`set`](Self::set) and [`remove`](Self::remove), which must be
    /// applied to the inherited environment of child processes.
    pub fn changes(&self) -> impl Iterator<Item = (&OsStr, Option<&OsStr>)> {
        self.changes
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_deref()))
    }

    /// Returns all variables, sorted by name.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Returns the variables whose names begin with `prefix`, sorted by name.
    pub fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + 'a {
        let bounds = (Bound::Included(OsStr::new(prefix)), Bound::Unbounded);
        let from = self.variables.range::<OsStr, _>(bounds);
        from.map(|(name, value)| (name.as_encoded_bytes(), value.as_encoded_bytes()))
            .take_while(move |(name, _)| name.starts_with(prefix.as_bytes()))
    }

    /// Handles `--bare`: the current directory is the repository unless `GIT_DIR` names another,
    /// and it has no worktree.
    pub fn treat_as_bare(&mut self) {
        if self.get("GIT_DIR").is_none() {
            let here = self.current_dir.clone();
            self.set("GIT_DIR", here);
        }
        self.set("GIT_IMPLICIT_WORK_TREE", "0");
        self.bare = true;
    }

    /// Returns whether [`treat_as_bare`](Self::treat_as_bare) was called.
    pub fn is_treated_as_bare(&self) -> bool {
        self.bare
    }

    /// Handles `-c key=value`: adds to `GIT_CONFIG_PARAMETERS`, which child processes inherit.
    /// Without `value`, the key is set without a value, which means true.
    pub fn add_config_parameter(&mut self, key: &str, value: Option<&OsStr>) {
        let mut all = self
            .bytes("GIT_CONFIG_PARAMETERS")
            .map(<[u8]>::to_vec)
            .unwrap_or_default();
        if !all.is_empty() {
            all.push(b' ');
        }
        crate::quote::shell_quote_into(key.as_bytes(), &mut all);
        all.push(b'=');
        if let Some(value) = value {
            crate::quote::shell_quote_into(value.as_encoded_bytes(), &mut all);
        }
        self.set("GIT_CONFIG_PARAMETERS", crate::path::from_bytes(&all));
    }

    /// Returns the home directory (`HOME`), if it is set.
    pub fn home(&self) -> Option<&Path> {
        self.path("HOME")
    }

    /// Makes the path argument `path` absolute, relative to the current directory.
    pub fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        self.current_dir.join(path)
    }

    /// Returns `PWD`, which may contain symbolic links, if it names the same directory as
    /// `directory`. Otherwise returns `directory`.
    pub fn logical_dir<'a>(&'a self, directory: &'a Path) -> &'a Path {
        let identity = |path: &Path| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.dev(), found.ino()))
        };
        let named = self.path("PWD").filter(|named| {
            let found = identity(named);
            named.is_absolute() && found.is_some() && found == identity(directory)
        });
        named.unwrap_or(directory)
    }

    /// Makes the path argument `path` absolute as Git writes it into files and messages: relative
    /// to the current directory as [named in `PWD`](Self::logical_dir).
    pub fn absolute_by_name(&self, path: impl AsRef<Path>) -> PathBuf {
        self.logical_dir(&self.current_dir).join(path)
    }

    /// Makes a path from a setting, a variable or the URL of a remote absolute, relative to the
    /// [working directory](Self::working_dir).
    pub fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        self.working_dir().join(path)
    }
}

//! The environment variables that Git reads, copied once by the caller, so that the library never
//! reads the environment of the process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use crate::{Error, ErrorKind, Result, value};

/// The variables that tie a process to one repository: a child that works on another repository
/// must not see them.
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

/// Returns the variables of [`LOCAL_VARIABLES`] without those that pass on the settings of the command line, which hold
/// for other repositories, too.
pub fn variables_of_repository() -> impl Iterator<Item = &'static str> {
    let settings = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"];
    let local = LOCAL_VARIABLES.iter().copied();
    local.filter(move |name| !settings.contains(name))
}

/// An id that is made when it is asked for, and shared by clones.
type SessionId = Arc<LazyLock<String, Box<dyn FnOnce() -> String + Send>>>;

/// Environment variables and current directory of a process, with the changes that global options
/// (`--git-dir`, `-c`, …) make to them.
///
/// Cheap to clone next to anything that starts a process; no lock, no system call after capture.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Shared by clones until one of them changes it: every repository has a clone.
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
    /// Copies the environment of this process: all variables, and the current directory.
    ///
    /// # Errors
    /// The current directory cannot be determined (it was removed).
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

    /// Creates an environment without variables, in `current_dir`: for tests, and for servers that
    /// must not depend on the environment of their caller.
    pub fn empty(current_dir: impl Into<PathBuf>) -> Self {
        Environment {
            current_dir: current_dir.into(),
            ..Self::default()
        }
    }

    /// Returns the directory of relative paths.
    pub fn current_dir(&self) -> &Path {
        &self.current_dir
    }

    /// Records that the process changed its directory.
    pub fn set_current_dir(&mut self, path: impl Into<PathBuf>) {
        self.current_dir = path.into();
        self.working_dir = None;
    }

    /// Returns the directory in which Git runs once it has found the repository: the top of the worktree if
    /// the caller is inside, otherwise the current directory. Settings, variables and the addresses of
    /// remotes are relative to it, and programs are started there.
    pub fn working_dir(&self) -> &Path {
        self.working_dir.as_deref().unwrap_or(&self.current_dir)
    }

    /// Records the directory in which Git runs; a repository does this when it is opened.
    pub fn set_working_dir(&mut self, path: impl Into<PathBuf>) {
        self.working_dir = Some(path.into());
    }

    /// Returns the current directory of the caller, which operations never remove. It differs from
    /// the current one if an option changed it.
    pub fn original_dir(&self) -> &Path {
        self.original_dir.as_deref().unwrap_or(&self.current_dir)
    }

    /// Records that the process was started in `path` and then changed its directory.
    pub fn set_original_dir(&mut self, path: impl Into<PathBuf>) {
        self.original_dir = Some(path.into());
    }

    /// Returns the program that serves repositories on this machine when it is called with
    /// `upload-pack`, if one was chosen.
    pub fn server(&self) -> Option<&Path> {
        self.server.as_deref()
    }

    /// Chooses the program that serves repositories on this machine; git otherwise.
    pub fn set_server(&mut self, program: impl Into<PathBuf>) {
        self.server = Some(program.into());
    }

    /// Returns the id of this session for traces of other sides (`transfer.advertiseSID`), if there is one.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref().map(|id| id.as_str())
    }

    /// Gives this session an id, which `make` returns when it is asked for.
    pub fn set_session_id(&mut self, make: impl FnOnce() -> String + Send + 'static) {
        self.session_id = Some(Arc::new(LazyLock::new(Box::new(make))));
    }

    /// Returns the value of a variable, if it is set; it may be empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// Returns the value of a variable as bytes, if it is set.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.get(name).map(OsStr::as_encoded_bytes)
    }

    /// Returns the value of a variable as a path, if it is set.
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.get(name).map(Path::new)
    }

    /// Returns the path of the file that a variable names, if it is set. An empty value names a file
    /// that is never there, as in Git.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        self.path(name)
            .map(|path| match path.as_os_str().is_empty() {
                true => PathBuf::new(),
                false => self.resolve(path),
            })
    }

    /// Returns the value of a variable as text, if it is set and is UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// Returns a variable as a boolean by Git's rules, or `default` if it is not set.
    ///
    /// # Errors
    /// The value is not a boolean.
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

    /// Sets a variable here and for every child process, as a global option does.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        let (name, value) = (name.into(), value.into());
        Arc::make_mut(&mut self.variables).insert(name.clone(), value.clone());
        self.changes.insert(name, Some(value));
    }

    /// Removes a variable here and for every child process.
    pub fn remove(&mut self, name: &str) {
        if self.variables.contains_key(OsStr::new(name)) {
            Arc::make_mut(&mut self.variables).remove(OsStr::new(name));
        }
        self.changes.insert(name.into(), None);
    }

    /// Returns the changes by [`set`](Self::set) and [`remove`](Self::remove), which child
    /// processes must get in addition to the inherited environment.
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

    /// Handles `-c key=value`: adds to `GIT_CONFIG_PARAMETERS`, so that children get it, too.
    /// Without `value` the key is set without a value (true).
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

    /// Returns the home directory, if it is known.
    pub fn home(&self) -> Option<&Path> {
        self.path("HOME")
    }

    /// Makes `path`, an argument of the caller, absolute: from the current directory.
    pub fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        self.current_dir.join(path)
    }

    /// Returns the name by which the caller knows `directory`: that of `PWD`, which may lead through symbolic links, if it
    /// is the same directory.
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

    /// Makes `path`, an argument of the caller, absolute as Git writes it into files and messages: from the current
    /// directory by [its name in `PWD`](Self::logical_dir).
    pub fn absolute_by_name(&self, path: impl AsRef<Path>) -> PathBuf {
        self.logical_dir(&self.current_dir).join(path)
    }

    /// Makes `path` absolute that comes from a setting, from a variable or as the address of a remote: from
    /// the [working directory](Self::working_dir).
    pub fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        self.working_dir().join(path)
    }
}

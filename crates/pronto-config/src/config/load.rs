//! Loads the configuration from all sources, in Git's order, and follows includes.

use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_io::untrusted::{self, LARGEST_TEXT_BYTES, SymlinkPolicy};

use super::parse::{BadLine, ConfigParser, Event};
use super::place::RepositoryPaths;
use super::{Config, ConfigOrigin, ConfigScope, OriginKind, command, include, key};
use crate::environment::Environment;
use crate::{Error, ErrorKind, Result, path};

/// The maximum depth of nested includes.
const MAX_INCLUDE_DEPTH: u32 = 10;

#[derive(Clone, Debug)]
enum LoadStep {
    File {
        path: PathBuf,
        display_path: BString,
        scope: ConfigScope,
        lenient: bool,
    },
    Bytes {
        bytes: Vec<u8>,
        origin: ConfigOrigin,
    },
    Command,
}

/// Collects the sources of the configuration, and then reads them.
#[derive(Clone, Debug)]
pub struct Loader<'a> {
    environment: &'a Environment,
    place: Option<RepositoryPaths>,
    steps: Vec<LoadStep>,
    includes: bool,
}

impl<'a> Loader<'a> {
    /// Creates a loader without sources. `place` is the repository for conditional includes
    /// (`gitdir:`, `onbranch:`).
    pub fn new(environment: &'a Environment, place: Option<RepositoryPaths>) -> Self {
        Loader {
            environment,
            place,
            steps: Vec::new(),
            includes: true,
        }
    }

    /// Sets whether `include.path` and `includeIf.*.path` are followed (`--includes`). Default:
    /// true.
    pub fn follow_includes(&mut self, follow: bool) -> &mut Self {
        self.includes = follow;
        self
    }

    /// Adds the system configuration, unless `GIT_CONFIG_NOSYSTEM` is true.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if `GIT_CONFIG_NOSYSTEM` is not a boolean.
    pub fn system(&mut self) -> Result<&mut Self> {
        if !self.environment.boolean("GIT_CONFIG_NOSYSTEM", false)? {
            let path = system_path(self.environment);
            // An empty path names no file, as in Git.
            if !path.as_os_str().is_empty() {
                self.push_file(path, ConfigScope::System, false);
            }
        }
        Ok(self)
    }

    /// Adds both files of the user's configuration (`$XDG_CONFIG_HOME/git/config` and
    /// `~/.gitconfig`).
    pub fn global(&mut self) -> &mut Self {
        for path in global_paths(self.environment) {
            if !path.as_os_str().is_empty() {
                self.push_file(path, ConfigScope::Global, true);
            }
        }
        self
    }

    /// Adds the configuration of the repository.
    pub fn local(&mut self) -> &mut Self {
        if let Some(place) = &self.place {
            let step = LoadStep::File {
                path: place.common_dir.join("config"),
                display_path: display_path(&place.display_common_dir, "config"),
                scope: ConfigScope::Local,
                lenient: false,
            };
            self.steps.push(step);
        }
        self
    }

    /// Adds the configuration of the repository like [`local`](Self::local), from content that was
    /// already read.
    pub fn local_from(&mut self, bytes: Vec<u8>) -> &mut Self {
        if let Some(place) = &self.place {
            let origin = ConfigOrigin {
                scope: ConfigScope::Local,
                kind: OriginKind::File,
                name: display_path(&place.display_common_dir, "config"),
                path: Some(place.common_dir.join("config")),
            };
            self.steps.push(LoadStep::Bytes { bytes, origin });
        }
        self
    }

    /// Adds the configuration of the worktree (`config.worktree`).
    pub fn worktree(&mut self) -> &mut Self {
        if let Some(place) = &self.place {
            let step = LoadStep::File {
                path: place.git_dir.join("config.worktree"),
                display_path: display_path(&place.display_git_dir, "config.worktree"),
                scope: ConfigScope::Worktree,
                lenient: false,
            };
            self.steps.push(step);
        }
        self
    }

    /// Adds the configuration from the option `-c` and the environment.
    pub fn command(&mut self) -> &mut Self {
        self.steps.push(LoadStep::Command);
        self
    }

    /// Adds a file, which may be missing.
    pub fn file(&mut self, path: impl Into<PathBuf>, scope: ConfigScope) -> &mut Self {
        self.push_file(path.into(), scope, false);
        self
    }

    /// Adds a file like [`file`](Self::file), with its name in messages.
    pub fn file_displayed_as(
        &mut self,
        path: PathBuf,
        display_path: BString,
        scope: ConfigScope,
    ) -> &mut Self {
        self.steps.push(LoadStep::File {
            path,
            display_path,
            scope,
            lenient: false,
        });
        self
    }

    /// Returns the path of the system configuration file, which need not exist.
    pub fn system_file(environment: &Environment) -> PathBuf {
        system_path(environment)
    }

    /// Returns the path of the user's configuration file to write to: `~/.gitconfig`, unless only
    /// the other file exists. Returns `None` if there is no home directory.
    pub fn global_file(environment: &Environment) -> Option<PathBuf> {
        let mut paths = global_paths(environment);
        let user = paths.pop()?;
        if !user.exists()
            && let Some(other) = paths.pop()
            && other.exists()
        {
            return Some(other);
        }
        Some(user)
    }

    /// Adds content that the caller has read: a blob or standard input.
    pub fn bytes(&mut self, bytes: Vec<u8>, origin: ConfigOrigin) -> &mut Self {
        self.steps.push(LoadStep::Bytes { bytes, origin });
        self
    }

    fn push_file(&mut self, path: PathBuf, scope: ConfigScope, lenient: bool) {
        let display_path = path::as_bytes(&path).to_owned();
        self.steps.push(LoadStep::File {
            path: self.environment.resolve(path),
            display_path,
            scope,
            lenient,
        });
    }

    /// Reads all sources.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Config`] if a file cannot be read or is malformed, or if includes
    /// are nested too deeply.
    pub fn load(&self) -> Result<Config> {
        self.run(Mode::Everything)
    }

    fn run(&self, mode: Mode) -> Result<Config> {
        let mut reader = Reader {
            loader: self,
            mode,
            config: Config::default(),
            remote_urls: None,
            urls_forbidden: false,
            depth: 0,
        };
        for step in &self.steps {
            match step {
                LoadStep::File {
                    path,
                    display_path,
                    scope,
                    lenient,
                } => {
                    let bytes = match scope {
                        ConfigScope::Local | ConfigScope::Worktree => {
                            read_of_repository(path, display_path.as_bstr())
                        }
                        _ => read(path, display_path.as_bstr(), *lenient),
                    };
                    if let Some(bytes) = bytes? {
                        let origin = ConfigOrigin {
                            scope: *scope,
                            kind: OriginKind::File,
                            name: display_path.clone(),
                            path: Some(path.clone()),
                        };
                        reader.read_bytes(&bytes, origin)?;
                    }
                }
                LoadStep::Bytes { bytes, origin } => reader.read_bytes(bytes, origin.clone())?,
                LoadStep::Command => reader.read_command()?,
            }
        }
        Ok(reader.config)
    }
}

/// Returns the path of the system configuration file.
fn system_path(environment: &Environment) -> PathBuf {
    match environment.path("GIT_CONFIG_SYSTEM") {
        Some(path) => path.into(),
        None => "/etc/gitconfig".into(),
    }
}

/// Returns the paths of the user's configuration files, in reading order.
fn global_paths(environment: &Environment) -> Vec<PathBuf> {
    if let Some(path) = environment.path("GIT_CONFIG_GLOBAL") {
        return vec![path.into()];
    }
    let xdg = match environment.path("XDG_CONFIG_HOME") {
        Some(base) if !base.as_os_str().is_empty() => Some(base.join("git/config")),
        _ => environment
            .home()
            .map(|home| home.join(".config/git/config")),
    };
    let user = environment.home().map(|home| home.join(".gitconfig"));
    xdg.into_iter().chain(user).collect()
}

/// Returns `directory/name` as messages print it: without a leading `./`.
fn display_path(directory: &Path, name: &str) -> BString {
    let full = if directory == Path::new(".") {
        PathBuf::from(name)
    } else {
        directory.join(name)
    };
    path::as_bytes(&full).to_owned()
}

/// Reads a file of the repository, which another user may control.
fn read_of_repository(path: &Path, display_path: &BStr) -> Result<Option<Vec<u8>>> {
    let content = untrusted::read(path, SymlinkPolicy::Follow, LARGEST_TEXT_BYTES);
    existing(content, display_path, false)
}

/// Reads a file that the user named, which may be a FIFO or a device.
fn read(path: &Path, display_path: &BStr, lenient: bool) -> Result<Option<Vec<u8>>> {
    existing(std::fs::read(path), display_path, lenient)
}

fn existing(
    content: std::io::Result<Vec<u8>>,
    display_path: &BStr,
    lenient: bool,
) -> Result<Option<Vec<u8>>> {
    match content {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), Io::NotFound | Io::NotADirectory) => Ok(None),
        Err(error) if lenient && error.kind() == Io::PermissionDenied => Ok(None),
        Err(error) => {
            use pronto_io::error::IoContext;
            Err(error).context(
                ErrorKind::Config,
                "unable to access",
                path::borrow(display_path),
            )
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Everything,
    /// Collect only the URLs of all remotes. Every `hasconfig` condition counts as true.
    RemoteUrls,
}

struct Reader<'a> {
    loader: &'a Loader<'a>,
    mode: Mode,
    config: Config,
    remote_urls: Option<Vec<BString>>,
    urls_forbidden: bool,
    depth: u32,
}

impl Reader<'_> {
    fn read_bytes(&mut self, bytes: &[u8], origin: ConfigOrigin) -> Result<()> {
        let origin = self.config.push_origin(origin);
        let mut parser = ConfigParser::new(bytes);
        loop {
            match parser.next_event() {
                Ok(None) => return Ok(()),
                Ok(Some(Event::Entry)) => {
                    let key = [parser.section.as_slice(), parser.name.as_slice()];
                    let value = parser.value.as_deref();
                    self.add(&key, value, origin, parser.entry_line)?;
                }
                Ok(Some(_)) => {}
                Err(BadLine(line)) => {
                    let place = self.config.origins[origin as usize].location();
                    let message = format!("bad config line {line} {place}");
                    return Err(Error::new(ErrorKind::Config, message));
                }
            }
        }
    }

    fn add(&mut self, key: &[&[u8]], value: Option<&[u8]>, origin: u32, line: u32) -> Result<()> {
        let section = key[0];
        if self.urls_forbidden && section.starts_with(b"remote.") && key.concat().ends_with(b".url")
        {
            return Err(Error::new(
                ErrorKind::Config,
                "remote URLs cannot be configured in file directly or indirectly included by \
                 includeIf.hasconfig:remote.*.url",
            ));
        }
        self.config.push(key, value, origin, line);
        if !self.loader.includes || !section.starts_with(b"include") {
            return Ok(());
        }
        let key = key.concat();
        let parts = key::ConfigKey::split(key.as_bstr());
        if parts.variable != "path" {
            return Ok(());
        }
        match (parts.section.as_bytes(), parts.subsection) {
            (b"include", None) => self.include(value, origin, line),
            (b"includeif", Some(condition)) => {
                let asks_urls = condition.starts_with(include::HAS_CONFIG);
                if !self.holds(condition, origin)? {
                    return Ok(());
                }
                let before = self.urls_forbidden;
                self.urls_forbidden |= asks_urls;
                let result = self.include(value, origin, line);
                self.urls_forbidden = before;
                result
            }
            _ => Ok(()),
        }
    }

    fn holds(&mut self, condition: &BStr, origin: u32) -> Result<bool> {
        if let Some(pattern) = condition.strip_prefix(include::HAS_CONFIG) {
            if self.mode == Mode::RemoteUrls {
                return Ok(true);
            }
            if self.remote_urls.is_none() {
                let all = self.loader.run(Mode::RemoteUrls)?;
                let is_url = |key: &BStr| {
                    let parts = key::ConfigKey::split(key);
                    parts.section == "remote"
                        && parts.subsection.is_some()
                        && parts.variable == "url"
                };
                let urls = all.iter().filter(|entry| is_url(entry.key));
                let urls = urls.filter_map(|entry| entry.value.map(BStr::to_owned));
                self.remote_urls = Some(urls.collect());
            }
            let urls = self.remote_urls.as_deref().unwrap_or_default();
            return Ok(include::matches_any(pattern.as_bstr(), urls));
        }
        let loader = self.loader;
        let origin = &self.config.origins[origin as usize];
        include::holds(condition, origin, loader.place.as_ref(), loader.environment)
    }

    fn include(&mut self, value: Option<&[u8]>, origin: u32, line: u32) -> Result<()> {
        let from = self.config.origins[origin as usize].clone();
        let Some(value) = value else {
            let message = format!(
                "bad config variable 'include.path' in file '{}' at line {line}",
                from.name
            );
            return Err(Error::new(ErrorKind::ConfigValue, message));
        };
        let home = self.loader.environment.home();
        let Some(wanted) = path::expand_user(value, home) else {
            let message = format!("could not expand include path '{}'", value.as_bstr());
            return Err(Error::new(ErrorKind::Config, message));
        };
        let (file, display_path) = if wanted.is_absolute() {
            (wanted.clone(), wanted)
        } else {
            let (OriginKind::File, Some(base)) = (from.kind, &from.path) else {
                let message = "relative config includes must come from files";
                return Err(Error::new(ErrorKind::Config, message));
            };
            let sibling = |path: &Path| path.with_file_name("").join(&wanted);
            (sibling(base), sibling(path::borrow(&from.name)))
        };
        let display_path = path::as_bytes(&display_path);
        // The author of the including file, who is trusted, has chosen the included file.
        let bytes = match from.scope {
            ConfigScope::Local | ConfigScope::Worktree => read_of_repository(&file, display_path)?,
            _ => read(&file, display_path, false)?,
        };
        let Some(bytes) = bytes else {
            return Ok(());
        };
        self.depth += 1;
        if self.depth > MAX_INCLUDE_DEPTH {
            let message = format!(
                "exceeded maximum include depth ({MAX_INCLUDE_DEPTH}) while including\n\t{display_path}\n\
                 from\n\t{}\nThis might be due to circular includes.",
                from.name
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        let origin = ConfigOrigin {
            scope: from.scope,
            kind: OriginKind::File,
            name: display_path.to_owned(),
            path: Some(file),
        };
        let result = self.read_bytes(&bytes, origin);
        self.depth -= 1;
        result
    }

    fn read_command(&mut self) -> Result<()> {
        let origin = self.config.push_origin(ConfigOrigin {
            scope: ConfigScope::Command,
            kind: OriginKind::CommandLine,
            name: BString::default(),
            path: None,
        });
        let values =
            command::values(self.loader.environment).map_err(|error| unparsable(&error))?;
        for (key, value) in values {
            let key = key::canonical(key.as_bstr()).map_err(|error| unparsable(&error))?;
            let split = key.rfind_byte(b'.').map_or(0, |at| at + 1);
            let (section, name) = key.split_at(split);
            self.add(
                &[section, name],
                value.as_ref().map(|v| v.as_slice()),
                origin,
                0,
            )?;
        }
        Ok(())
    }
}

/// Returns the error for malformed options or environment variables, with the cause `error`.
fn unparsable(error: &Error) -> Error {
    let message = "unable to parse command-line config";
    Error::new(error.kind(), message).reported_after(error.message())
}

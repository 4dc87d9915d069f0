//! The files that `config` reads and writes.

use std::io::Read;
use std::path::{Path, PathBuf};

use bstr::BString;
use pronto::config::{Config, ConfigOrigin, ConfigScope, Loader, OriginKind};
use pronto::{Environment, Repository, path};

use super::arguments::{ConfigSelection, Request};
use crate::{CliError, Context};

/// The configuration files that a call uses.
pub(super) struct ConfigSource {
    pub(super) repository: Option<Repository>,
    pub(super) environment: Environment,
    place: ConfigLocation,
    includes: bool,
}

enum ConfigLocation {
    Everything,
    File {
        path: PathBuf,
        display_path: BString,
        scope: ConfigScope,
    },
    StandardInput,
    Blob(BString),
}

/// Returns `path` relative to `base`. An empty path names no file, and not the directory `base`.
fn full(path: &Path, base: &Path) -> PathBuf {
    match path.as_os_str().is_empty() {
        true => PathBuf::new(),
        false => base.join(path),
    }
}

impl ConfigSource {
    pub(super) fn find(request: &Request, context: &mut Context) -> Result<Self, CliError> {
        let environment = context.environment()?;
        let repository = context.discover_optional(&environment)?;
        let environment = match &repository {
            Some(repository) => repository.environment().clone(),
            None => environment,
        };
        let file = |path: PathBuf, scope| ConfigLocation::File {
            display_path: path::as_bytes(&path).to_owned(),
            path: full(&path, environment.working_dir()),
            scope,
        };
        let location = match (&request.location, environment.bytes("GIT_CONFIG")) {
            (ConfigSelection::Everything, Some(file)) => ConfigSelection::File(file.into()),
            (location, _) => location.clone(),
        };
        let place = match location {
            ConfigSelection::Everything => ConfigLocation::Everything,
            ConfigSelection::Blob(name) => {
                if repository.is_none() {
                    let message = "--blob can only be used inside a git repository";
                    return Err(CliError::fatal(message));
                }
                ConfigLocation::Blob(name)
            }
            ConfigSelection::File(name) if name == "-" => ConfigLocation::StandardInput,
            ConfigSelection::File(name) => {
                let prefix = repository.as_ref().map(Repository::prefix_or_empty);
                let path = path::borrow(&name);
                let display_path = match prefix {
                    Some(prefix) if !path.is_absolute() => [prefix, name.clone()].concat().into(),
                    _ => name.clone(),
                };
                ConfigLocation::File {
                    path: full(path, environment.current_dir()),
                    display_path,
                    scope: ConfigScope::Command,
                }
            }
            ConfigSelection::System => file(Loader::system_file(&environment), ConfigScope::System),
            ConfigSelection::Global => match Loader::global_file(&environment) {
                Some(path) => file(path, ConfigScope::Global),
                None => return Err(CliError::fatal("$HOME not set")),
            },
            ConfigSelection::Local | ConfigSelection::Worktree => {
                let Some(repository) = &repository else {
                    let option = match location {
                        ConfigSelection::Local => "--local",
                        _ => "--worktree",
                    };
                    let message = format!("{option} can only be used inside a git repository");
                    return Err(CliError::fatal(message));
                };
                if location == ConfigSelection::Worktree {
                    worktree_file(repository)?
                } else {
                    local_file(repository)
                }
            }
        };
        let is_everything = matches!(place, ConfigLocation::Everything | ConfigLocation::Blob(_));
        let includes = request.includes.unwrap_or(is_everything);
        Ok(ConfigSource {
            repository,
            environment,
            place,
            includes,
        })
    }

    /// Reads the selected configuration.
    pub(super) fn load(&self) -> Result<Config, CliError> {
        if let (ConfigLocation::Everything, true, Some(repository)) =
            (&self.place, self.includes, &self.repository)
        {
            return Ok(repository.config().clone());
        }
        let mut loader = match &self.repository {
            Some(repository) => repository.config_loader(),
            None => Loader::new(&self.environment, None),
        };
        loader.follow_includes(self.includes);
        match &self.place {
            ConfigLocation::Everything => {
                loader.system()?.global().local();
                if self
                    .repository
                    .as_ref()
                    .is_some_and(|found| found.format().worktree_config)
                {
                    loader.worktree();
                }
                loader.command();
            }
            ConfigLocation::File {
                path,
                display_path,
                scope,
            } => {
                loader.file_displayed_as(path.clone(), display_path.clone(), *scope);
            }
            ConfigLocation::StandardInput => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .lock()
                    .read_to_end(&mut bytes)
                    .map_err(|error| {
                        CliError::fatal(format!("cannot read standard input: {error}"))
                    })?;
                loader.bytes(bytes, origin(OriginKind::StandardInput, ""));
            }
            ConfigLocation::Blob(name) => {
                loader.bytes(self.blob(name)?, origin(OriginKind::Blob, name));
            }
        }
        Ok(loader.load()?)
    }

    fn blob(&self, name: &BString) -> Result<Vec<u8>, CliError> {
        let unresolved = || CliError::error(format!("unable to resolve config blob '{name}'"));
        let repository = self.repository.as_ref().ok_or_else(unresolved)?;
        let found = repository.try_resolve(name, pronto::revision::ExpectedType::Blob)?;
        let id = found.ok_or_else(unresolved)?;
        let mut content = Vec::new();
        match repository.objects()?.find(&id, &mut content)? {
            Some(gix_object::Kind::Blob) => Ok(content),
            Some(_) => Err(CliError::error(format!(
                "reference '{name}' does not point to a blob"
            ))),
            None => Err(CliError::error(format!(
                "unable to load config blob object '{name}'"
            ))),
        }
    }

    /// Returns the file of `--file` if the call reads it and it does not exist.
    pub(super) fn missing_file(&self) -> Option<&BString> {
        match &self.place {
            ConfigLocation::File {
                path, display_path, ..
            } if !path.exists() => Some(display_path),
            _ => None,
        }
    }

    /// Returns the file to write, as a path and as its name in messages.
    pub(super) fn target(&self) -> Result<(PathBuf, BString), CliError> {
        match &self.place {
            ConfigLocation::Everything => match &self.repository {
                Some(repository) => match local_file(repository) {
                    ConfigLocation::File {
                        path, display_path, ..
                    } => Ok((path, display_path)),
                    _ => Err(CliError::fatal("not in a git directory")),
                },
                None => Err(CliError::fatal("not in a git directory")),
            },
            ConfigLocation::File {
                path, display_path, ..
            } => Ok((path.clone(), display_path.clone())),
            ConfigLocation::StandardInput => {
                Err(CliError::fatal("writing to stdin is not supported"))
            }
            ConfigLocation::Blob(_) => {
                Err(CliError::fatal("writing config blobs is not supported"))
            }
        }
    }
}

fn origin(kind: OriginKind, name: impl AsRef<[u8]>) -> ConfigOrigin {
    ConfigOrigin {
        scope: ConfigScope::Command,
        kind,
        name: name.as_ref().into(),
        path: None,
    }
}

fn local_file(repository: &Repository) -> ConfigLocation {
    let path = repository.common_dir().join("config");
    let display_path = path::as_bytes(&repository.display_path(&path)).to_owned();
    ConfigLocation::File {
        path,
        display_path,
        scope: ConfigScope::Local,
    }
}

fn worktree_file(repository: &Repository) -> Result<ConfigLocation, CliError> {
    if repository.format().worktree_config {
        let path = repository.git_dir().join("config.worktree");
        let display_path = path::as_bytes(&repository.display_path(&path)).to_owned();
        return Ok(ConfigLocation::File {
            path,
            display_path,
            scope: ConfigScope::Worktree,
        });
    }
    let others = std::fs::read_dir(repository.common_dir().join("worktrees"));
    if others.is_ok_and(|mut others| others.next().is_some()) {
        return Err(CliError::fatal(
            "--worktree cannot be used with multiple working trees unless the config\n\
             extension worktreeConfig is enabled. Please read \"CONFIGURATION FILE\"\n\
             section in \"git help worktree\" for details",
        ));
    }
    Ok(local_file(repository))
}

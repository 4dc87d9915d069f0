//! Looks up the HTTP settings for one URL: `http.<url>.*`, and environment variables.

use std::path::PathBuf;

use bstr::ByteSlice;
use pronto_wire::url::Url;

use crate::Result;
use crate::config::{Config, ConfigEntry};
use crate::environment::Environment;

/// The lookup of settings for one URL.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a> {
    pub(super) config: &'a Config,
    pub(super) environment: &'a Environment,
    pub(super) url: &'a Url,
}

impl<'a> Lookup<'a> {
    pub(super) fn entry(&self, name: &str) -> Option<ConfigEntry<'a>> {
        self.config.for_url("http", name, self.url.normal())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>> {
        let value = self.entry(name).map(|entry| entry.string()).transpose()?;
        Ok(value.map(|value| value.to_string()))
    }

    /// Returns the value of an environment variable, or else of `http.<name>`. An empty value
    /// counts as unset.
    pub(super) fn either(&self, variable: &str, name: &str) -> Result<Option<String>> {
        let value = match self.environment.bytes(variable) {
            Some(value) if !variable.is_empty() => Some(value.as_bstr().to_string()),
            _ => self.text(name)?,
        };
        Ok(value.filter(|value| !value.is_empty()))
    }

    pub(super) fn boolean(&self, name: &str, default: bool) -> Result<bool> {
        let value = self.entry(name).map(|entry| entry.bool()).transpose()?;
        Ok(value.unwrap_or(default))
    }

    pub(super) fn file(&self, variable: &str, name: &str) -> Result<Option<PathBuf>> {
        if let Some(path) = self.environment.path(variable) {
            return Ok(Some(self.environment.resolve(path)));
        }
        let home = self.environment.home();
        let path = self
            .entry(name)
            .map(|entry| entry.path(home))
            .transpose()?
            .flatten();
        Ok(path.map(|path| self.environment.resolve(path)))
    }

    pub(super) fn is_set(&self, variable: &str) -> bool {
        self.environment.get(variable).is_some()
    }

    pub(super) fn first_of(&self, names: &[&str]) -> Option<String> {
        let value = |name: &&str| self.environment.text(name);
        names
            .iter()
            .find_map(|name| value(name).filter(|value| !value.is_empty()))
            .map(str::to_owned)
    }
}

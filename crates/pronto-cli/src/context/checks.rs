//! Checks of the settings that the running command reads.

use pronto::config::Config;
use pronto::{Environment, Repository};

use super::Context;
use crate::error::CliError;
use crate::settings;

impl Context {
    /// Checks the settings of a command that runs without a repository, or creates a repository:
    /// the command must support all settings and environment variables in effect, and the values
    /// that Git reads for this command must be well formed.
    ///
    /// # Errors
    /// Fails with [`Kind::Unsupported`](crate::error::Kind::Unsupported) if a setting is in effect
    /// that the command does not support; git runs the call. Fails with a fatal error if a value is
    /// malformed.
    pub(crate) fn check_config(
        &self,
        config: &Config,
        environment: &Environment,
    ) -> Result<(), CliError> {
        settings::check_support_without_repository(self.command, config, environment)?;
        self.check_settings(config, || false)
    }

    /// Performs the checks of [`check_config`](Self::check_config) for the repository `found`,
    /// which the command has opened itself.
    ///
    /// # Errors
    /// Fails with the errors of [`check_config`](Self::check_config).
    pub(crate) fn check_found(&self, found: &Repository) -> Result<(), CliError> {
        settings::check_support(self.command, found)?;
        self.check_settings(found.config(), || false)
    }

    /// Checks the settings of remotes and of branches that follow them, where Git reads them first.
    ///
    /// # Errors
    /// Fails with a fatal error if a value is malformed.
    pub(crate) fn check_remotes(&self, config: &Config) -> Result<(), CliError> {
        settings::check_values(settings::Readers::REMOTES, config, || false)
    }

    /// Checks the values that Git reads for `command`, when the running command does the work of
    /// `command`, for which Git starts another process.
    ///
    /// # Errors
    /// Fails with a fatal error if a value is malformed.
    pub(crate) fn check_values_of(&self, command: &str, config: &Config) -> Result<(), CliError> {
        settings::check_values(settings::readers_of(command, &[]), config, || false)
    }

    /// Checks the values that Git reads in a child process `command`, on which the running command
    /// depends. Prints the error of that process.
    ///
    /// # Errors
    /// Fails with Git's message about the child process if a value is malformed.
    pub(crate) fn check_child(&mut self, command: &str) -> Result<(), CliError> {
        // The opened repository lacks malformed settings that only the child process reads.
        let config = self.configuration()?;
        self.check_values_of(command, &config).map_err(|error| {
            self.remark(error.render().trim_end());
            CliError::error(format!("{command} died"))
        })
    }

    /// Prints the warnings about settings of `config` again, `times` times, because Git reads the
    /// configuration again: in child processes if `is_of_children` is true.
    pub(crate) fn repeat_warnings(&self, config: &Config, times: u8, is_of_children: bool) {
        let readers = settings::readers_of(self.command, &self.arguments);
        for _ in 0..times {
            settings::warn_again(readers, config, is_of_children);
        }
    }

    fn check_settings(
        &self,
        config: &Config,
        has_index: impl Fn() -> bool,
    ) -> Result<(), CliError> {
        settings::check_config(self.command, config)?;
        let readers = settings::readers_of(self.command, &self.arguments);
        settings::check_values(readers, config, has_index)
    }

    /// Checks that the command supports every setting and hook of the repository `found`. Malformed
    /// settings that Git does not read for the command have no effect.
    ///
    /// # Errors
    /// Fails with the errors of [`check_config`](Self::check_config).
    pub(super) fn check(&self, found: &mut Repository) -> Result<(), CliError> {
        settings::check_support(self.command, found)?;
        let has_index = || found.git_dir().join("index").exists();
        self.check_settings(found.config(), has_index)?;
        self.ignore_unread(found);
        Ok(())
    }

    /// Performs the checks of [`check`](Self::check) for the repository `found`, which the command
    /// has opened itself.
    ///
    /// # Errors
    /// Fails with the errors of [`check_config`](Self::check_config).
    pub(crate) fn check_opened(&self, found: &mut Repository) -> Result<(), CliError> {
        self.check_found(found)?;
        self.ignore_unread(found);
        Ok(())
    }

    fn ignore_unread(&self, found: &mut Repository) {
        let readers = settings::readers_of(self.command, &self.arguments);
        found.ignore_settings(&settings::unread(readers, found.config()));
    }
}

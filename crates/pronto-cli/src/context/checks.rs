//! Checks of the settings that the running command reads.

use pronto::Repository;
use pronto::config::Config;

use super::Context;
use crate::error::CliError;
use crate::settings;

impl Context {
    /// Checks that the command supports the whole configuration, and that the values which Git
    /// reads for this command are of their types.
    ///
    /// # Errors
    /// A setting is in effect that it does not support: the call goes to git. Or a value is
    /// malformed.
    pub(crate) fn check_config(&self, config: &Config) -> Result<(), CliError> {
        self.check_settings(config, || false)
    }

    /// Checks the settings of remotes and of branches that follow them, where Git reads them first.
    ///
    /// # Errors
    /// A value is malformed.
    pub(crate) fn check_remotes(&self, config: &Config) -> Result<(), CliError> {
        settings::check_values(settings::Readers::REMOTES, config, || false)
    }

    /// Checks the values that Git reads for `command`, which this one runs for another process.
    ///
    /// # Errors
    /// A value is malformed.
    pub(crate) fn check_values_of(&self, command: &str, config: &Config) -> Result<(), CliError> {
        settings::check_values(settings::readers_of(command, &[]), config, || false)
    }

    /// Prints the warnings about settings of `config` `times` more: Git reads the configuration again, in other processes if
    /// `is_of_children`.
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

    /// Checks that the command obeys every setting and hook of the repository `found`. Malformed settings that Git
    /// does not read for the command have no effect.
    ///
    /// # Errors
    /// As for [`check_config`](Self::check_config).
    pub(super) fn check(&self, found: &mut Repository) -> Result<(), CliError> {
        let has_index = || found.git_dir().join("index").exists();
        self.check_settings(found.config(), has_index)?;
        settings::check_hooks(self.command, found)?;
        self.ignore_unread(found);
        Ok(())
    }

    /// Does the same as [`check`](Self::check) for a repository that the command has opened itself, without its hooks.
    ///
    /// # Errors
    /// As for [`check_config`](Self::check_config).
    pub(crate) fn check_opened(&self, found: &mut Repository) -> Result<(), CliError> {
        self.check_config(found.config())?;
        self.ignore_unread(found);
        Ok(())
    }

    fn ignore_unread(&self, found: &mut Repository) {
        let readers = settings::readers_of(self.command, &self.arguments);
        found.ignore_settings(&settings::unread(readers, found.config()));
    }
}

//! The settings for signatures: `user.signingKey` and `gpg.*`.

use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use pronto_config::config::{Config, ConfigEntry};
use pronto_config::{Error, Result};

use crate::SignatureFormat;

/// The settings for signatures.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The signature format for signing (`gpg.format`).
    pub format: SignatureFormat,
    /// The signing key (`user.signingKey`).
    pub signing_key: Option<BString>,
    /// The command that prints the default key for [`SignatureFormat::Ssh`] (`gpg.ssh.defaultKeyCommand`).
    pub ssh_default_key_command: Option<BString>,
    /// The path of the file with the trusted keys for [`SignatureFormat::Ssh`]
    /// (`gpg.ssh.allowedSignersFile`).
    pub ssh_allowed_signers: Option<PathBuf>,
    /// The path of the file with the revoked keys for [`SignatureFormat::Ssh`] (`gpg.ssh.revocationFile`).
    pub ssh_revocation_file: Option<PathBuf>,
    programs: [Option<PathBuf>; 3],
}

impl Settings {
    /// Reads the settings from `config`. `home` is the home directory, for paths that start with
    /// `~`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::ConfigValue` if a value is missing or has the wrong type.
    pub fn of(config: &Config, home: Option<&Path>) -> Result<Self> {
        let mut settings = Settings::default();
        for entry in config.iter() {
            settings.take(&entry, home)?;
        }
        Ok(settings)
    }

    /// Returns the program for signatures of a format (`gpg.program`, `gpg.<format>.program`).
    pub fn program(&self, format: SignatureFormat) -> PathBuf {
        let set = self.programs.get(place(format)).cloned().flatten();
        set.unwrap_or_else(|| format.program().into())
    }

    fn take(&mut self, entry: &ConfigEntry<'_>, home: Option<&Path>) -> Result<()> {
        let program = match entry.key.as_bytes() {
            b"user.signingkey" => {
                self.signing_key = Some(entry.string()?.to_owned());
                return Ok(());
            }
            b"gpg.format" => {
                let name = entry.string()?;
                self.format = SignatureFormat::of_name(name).ok_or_else(|| invalid(entry))?;
                return Ok(());
            }
            b"gpg.ssh.defaultkeycommand" => {
                self.ssh_default_key_command = Some(entry.string()?.to_owned());
                return Ok(());
            }
            b"gpg.ssh.allowedsignersfile" => {
                self.ssh_allowed_signers = entry.path(home)?;
                return Ok(());
            }
            b"gpg.ssh.revocationfile" => {
                self.ssh_revocation_file = entry.path(home)?;
                return Ok(());
            }
            b"gpg.program" | b"gpg.openpgp.program" => SignatureFormat::OpenPgp,
            b"gpg.x509.program" => SignatureFormat::X509,
            b"gpg.ssh.program" => SignatureFormat::Ssh,
            _ => return Ok(()),
        };
        // A path with the prefix `:(optional)` that does not exist is ignored.
        if let Some(path) = entry.path(home)?
            && let Some(place) = self.programs.get_mut(place(program))
        {
            *place = Some(path);
        }
        Ok(())
    }
}

fn place(format: SignatureFormat) -> usize {
    format as usize
}

fn invalid(entry: &ConfigEntry<'_>) -> Error {
    let value = entry.value.unwrap_or_default();
    let message = format!("invalid value for '{}': '{value}'", entry.key);
    entry.bad_variable().reported_after(message)
}

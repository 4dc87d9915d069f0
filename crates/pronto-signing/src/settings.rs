//! The settings of signatures: `user.signingKey` and `gpg.*`.

use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use pronto_config::config::{Config, EntryRef};
use pronto_config::{Error, Result};

use crate::Format;

/// The settings of signatures.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The format in which texts are signed (`gpg.format`).
    pub format: Format,
    /// The key to sign with (`user.signingKey`).
    pub signing_key: Option<BString>,
    /// The command that prints the key, for [`Format::Ssh`] (`gpg.ssh.defaultKeyCommand`).
    pub ssh_default_key_command: Option<BString>,
    /// The file of the keys that are trusted, for [`Format::Ssh`] (`gpg.ssh.allowedSignersFile`).
    pub ssh_allowed_signers: Option<PathBuf>,
    /// The file of the keys that are revoked, for [`Format::Ssh`] (`gpg.ssh.revocationFile`).
    pub ssh_revocation_file: Option<PathBuf>,
    programs: [Option<PathBuf>; 3],
}

impl Settings {
    /// Reads the settings in `config`; `home` is the directory that `~` stands for.
    ///
    /// # Errors
    /// A value is missing, or not of its type.
    pub fn of(config: &Config, home: Option<&Path>) -> Result<Self> {
        let mut settings = Settings::default();
        for entry in config.iter() {
            settings.take(&entry, home)?;
        }
        Ok(settings)
    }

    /// Returns the program that signs and checks signatures of a format.
    pub fn program(&self, format: Format) -> PathBuf {
        let set = self.programs.get(place(format)).cloned().flatten();
        set.unwrap_or_else(|| format.program().into())
    }

    fn take(&mut self, entry: &EntryRef<'_>, home: Option<&Path>) -> Result<()> {
        let program = match entry.key.as_bytes() {
            b"user.signingkey" => {
                self.signing_key = Some(entry.string()?.to_owned());
                return Ok(());
            }
            b"gpg.format" => {
                let name = entry.string()?;
                self.format = Format::of_name(name).ok_or_else(|| invalid(entry))?;
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
            b"gpg.program" | b"gpg.openpgp.program" => Format::OpenPgp,
            b"gpg.x509.program" => Format::X509,
            b"gpg.ssh.program" => Format::Ssh,
            _ => return Ok(()),
        };
        // One that is optional and missing changes nothing.
        if let Some(path) = entry.path(home)?
            && let Some(place) = self.programs.get_mut(place(program))
        {
            *place = Some(path);
        }
        Ok(())
    }
}

fn place(format: Format) -> usize {
    format as usize
}

fn invalid(entry: &EntryRef<'_>) -> Error {
    let value = entry.value.unwrap_or_default();
    let message = format!("invalid value for '{}': '{value}'", entry.key);
    entry.bad_variable().reported_after(message)
}

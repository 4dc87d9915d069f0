//! Creates the certificate of a signed push.

use bstr::{BStr, BString};
use pronto_io::interrupt::Interrupt;
use pronto_signing::{Settings, Signer};
use pronto_wire::advertisement::ServerGreeting;
use pronto_wire::certificate::{CertificateDraft, CertifiedUpdate, check_nonce};
use pronto_wire::push::PushCommand;

use super::Options;
use crate::config::{Config, value};
use crate::remote::connection::{from_wire, shown};
use crate::{Error, ErrorKind, Repository, Result};
use pronto_repository::identity::{self, Care, IdentityRole};

/// The mode of signing a push (`--signed`, `push.gpgSign`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signed {
    /// Do not sign the push (`no`).
    #[default]
    Never,
    /// Sign the push if the remote supports signed pushes (`if-asked`).
    IfAsked,
    /// Sign the push, and fail if the remote does not support that (`yes`).
    Always,
}

impl Signed {
    /// Reads a value of `--signed` or `push.gpgSign`: a boolean or `if-asked`. `None` stands for a key
    /// without a value, which is true. Returns `None` for other texts.
    pub fn parse(text: Option<&BStr>) -> Option<Self> {
        match value::parse_bool(text) {
            Some(true) => Some(Signed::Always),
            Some(false) => Some(Signed::Never),
            None => text
                .filter(|text| text.eq_ignore_ascii_case(b"if-asked"))
                .map(|_| Signed::IfAsked),
        }
    }

    /// Reads `push.gpgSign`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a value is malformed.
    pub fn configured(config: &Config) -> Result<Self> {
        let mut signed = Signed::Never;
        for entry in config.entries("push.gpgsign") {
            signed = Signed::parse(entry.value).ok_or_else(|| {
                let message = format!("invalid value for '{}'", entry.key);
                entry.bad_variable().reported_after(message)
            })?;
        }
        Ok(signed)
    }
}

/// Returns the nonce of the other side if the push is to be signed; `None` if it is not.
///
/// # Errors
/// Fails with [`ErrorKind::Transport`] if a signature is required and the remote does not support
/// signed pushes, or its nonce is malformed.
pub(super) fn nonce(greeting: &ServerGreeting, signed: Signed) -> Result<Option<BString>> {
    if signed == Signed::Never {
        return Ok(None);
    }
    let there = &greeting.capabilities;
    if !there.has("push-cert") {
        return match signed {
            Signed::Always => Err(Error::new(
                ErrorKind::Transport,
                "the receiving end does not support --signed push",
            )),
            _ => Ok(None),
        };
    }
    let nonce = there.value("push-cert").unwrap_or_default().to_owned();
    check_nonce(&nonce).map_err(from_wire)?;
    Ok(Some(nonce))
}

/// The data of a push certificate before it is signed.
pub(super) struct Unsigned<'a> {
    pub(super) repository: &'a Repository,
    pub(super) options: &'a Options,
    pub(super) url: &'a BStr,
    pub(super) nonce: BString,
}

impl Unsigned<'_> {
    /// Creates the certificate for these commands, and signs it; `None` if there are no commands.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Signing`] if there is no key or the signing program fails, and with
    /// [`ErrorKind::Interrupted`] if the operation is interrupted.
    pub(super) fn sign(
        self,
        commands: &[PushCommand],
        interrupt: &Interrupt,
    ) -> Result<Option<BString>> {
        let (config, environment) = (self.repository.config(), self.repository.environment());
        let settings = Settings::of(config, environment.home())?;
        let directory = self.repository.working_dir();
        let signer = Signer::new(&settings, directory, environment, interrupt);
        let key = signer.key(|| {
            let found =
                identity::signature(IdentityRole::Committer, Care::Strict, config, environment)?;
            Ok(format!("{} <{}>", found.name, found.email).into())
        })?;
        let draft = CertificateDraft {
            key: signer.key_id(&key)?,
            time: identity::now().to_string(),
            pushee: shown(self.url),
            nonce: self.nonce,
            options: &self.options.push_options,
        };
        if commands.is_empty() {
            return Ok(None);
        }
        let changes = commands.iter().map(|command| CertifiedUpdate {
            old: command.old,
            new: command.new,
            name: command.name.as_ref(),
        });
        let mut text = draft.encode(changes);
        let signature = signer.sign(&text, &key).map_err(|error| {
            if error.kind() == ErrorKind::Interrupted {
                return error;
            }
            let message = "failed to sign the push certificate";
            Error::new(ErrorKind::Signing, message).reported_after(error.to_string())
        })?;
        text.extend_from_slice(&signature);
        Ok(Some(text.into()))
    }
}

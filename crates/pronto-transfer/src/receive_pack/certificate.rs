//! Checks the certificate of a signed push: its nonce and its signature, and sets the environment
//! variables of hooks.

use std::cell::OnceCell;
use std::time::{SystemTime, UNIX_EPOCH};

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_odb::Quarantine;
use pronto_signing::{Nonces, SignatureCheck, Signer};
use pronto_wire::certificate::Certificate;

use super::hook::Variable;
use super::settings::Settings;
use super::{Options, ReceivedPush};
use crate::objects::from_odb;
use crate::{ErrorKind, Repository, Result, hooks, path};

/// The nonce that the server advertises, if `receive.certNonceSeed` is set.
pub(super) struct OfferedNonce {
    nonces: Nonces,
    seconds: u64,
    nonce: String,
}

impl OfferedNonce {
    /// Creates the nonce of the current time, or of the advertisement that preceded on the same
    /// connection.
    pub(super) fn new(
        repository: &Repository,
        options: &Options,
        settings: &Settings,
    ) -> Option<Self> {
        let seed = settings.cert_nonce_seed.as_ref()?;
        let service = match &options.service {
            Some(service) => service.to_vec(),
            None => path::as_bytes(repository.git_dir()).to_vec(),
        };
        let nonces = Nonces::new(seed, service, repository.object_hash());
        let now = options.advertised.unwrap_or_else(SystemTime::now);
        let now = now.duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0, |now| now.as_secs());
        let nonce = nonces.at(seconds);
        Some(OfferedNonce {
            nonces,
            seconds,
            nonce,
        })
    }

    pub(super) fn nonce(&self) -> &str {
        &self.nonce
    }
}

/// A received push certificate.
pub(super) struct ReceivedCertificate {
    certificate: Certificate,
    issued: Option<OfferedNonce>,
    checked: OnceCell<Vec<Variable>>,
}

/// The status of the nonce of a certificate (`GIT_PUSH_CERT_NONCE_STATUS`).
#[derive(Debug, PartialEq, Eq)]
struct NonceVerdict {
    word: &'static str,
    /// The nonce for the hooks (`GIT_PUSH_CERT_NONCE`).
    nonce: BString,
    /// The age of the nonce in seconds, if it was not issued on this connection
    /// (`GIT_PUSH_CERT_NONCE_SLOP`).
    slop: Option<i128>,
}

impl ReceivedCertificate {
    pub(super) fn new(certificate: Certificate, issued: Option<OfferedNonce>) -> Self {
        ReceivedCertificate {
            certificate,
            issued,
            checked: OnceCell::new(),
        }
    }

    /// Returns whether the push options of the certificate are those of the push.
    pub(super) fn has_options(&self, options: &[BString]) -> bool {
        let options = options.iter().map(|option| option.as_bstr());
        self.certificate.push_options().eq(options)
    }
}

impl ReceivedPush<'_> {
    /// Creates a quarantine for the certificate of a push without objects, if there is a hook that
    /// receives the certificate.
    ///
    /// # Errors
    /// Fails if the directory cannot be created.
    pub(super) fn quarantine_certificate(&mut self) -> Result<()> {
        let is_wanted = ["pre-receive", "post-receive"]
            .iter()
            .any(|name| hooks::exists(self.repository, name));
        if self.certificate.is_none() || self.quarantine.is_some() || !is_wanted {
            return Ok(());
        }
        let quarantine = Quarantine::begin(self.repository.objects()?).map_err(from_odb)?;
        self.quarantine = Some(quarantine);
        Ok(())
    }

    /// Returns the environment variables with the certificate for the hook `name`; none if there is
    /// no such hook.
    ///
    /// # Errors
    /// The same as for [`certificate_variables`](Self::certificate_variables).
    pub(super) fn certificate_variables_for(&self, name: &str) -> Result<Vec<Variable>> {
        match hooks::exists(self.repository, name) {
            true => self.certificate_variables(),
            false => Ok(Vec::new()),
        }
    }

    /// Returns the environment variables with the certificate. The first call stores and checks the
    /// certificate. It is stored in the quarantine, so that a refused push leaves nothing behind.
    ///
    /// # Errors
    /// Fails if there is no signature, or with [`ErrorKind::Interrupted`] if the push is
    /// interrupted.
    fn certificate_variables(&self) -> Result<Vec<Variable>> {
        let Some(received) = &self.certificate else {
            return Ok(Vec::new());
        };
        if let Some(variables) = received.checked.get() {
            return Ok(variables.clone());
        }
        let made = self.check_certificate(received)?;
        Ok(received.checked.get_or_init(|| made).clone())
    }

    fn check_certificate(&self, received: &ReceivedCertificate) -> Result<Vec<Variable>> {
        let store = match &self.quarantine {
            Some(quarantine) => quarantine.store(),
            None => self.repository.objects()?,
        };
        let written = store.write(Kind::Blob, received.certificate.text());
        let id = match written {
            Ok(id) => id,
            Err(error) => {
                self.bands.error(&from_odb(error).to_string());
                return Ok(Vec::new());
            }
        };
        let check = match self.check_signature(&received.certificate) {
            Ok(check) => check,
            Err(error) => match error.kind() {
                ErrorKind::Interrupted | ErrorKind::UnknownSignature => return Err(error),
                // If the signature cannot be checked, the hooks decide.
                _ => {
                    self.bands.error(&error.to_string());
                    SignatureCheck::default()
                }
            },
        };
        if let Some(file) = &check.missing_revocation_file {
            let shown = file.display();
            let text = format!("ssh signing revocation file configured but not found: {shown}");
            self.bands.warning(&text);
        }
        let verdict = received.issued.as_ref().map(|issued| {
            let is_stateless = !self.options.advertises && self.options.advertised.is_none();
            let limit = self.settings.cert_nonce_slop;
            issued.judge(received.certificate.nonce(), is_stateless, limit)
        });
        Ok(variables(&id, &check, verdict.as_ref()))
    }

    fn check_signature(&self, certificate: &Certificate) -> Result<SignatureCheck> {
        let (config, environment) = (self.repository.config(), self.repository.environment());
        let settings = pronto_signing::Settings::of(config, environment.home())?;
        let directory = self.repository.git_dir();
        let mut signer = Signer::new(&settings, directory, environment, self.interrupt).detached();
        if let Some(limit) = self.options.signature_limit {
            signer = signer.within(limit);
        }
        signer.check(certificate.signed(), certificate.signature())
    }
}

impl OfferedNonce {
    /// Checks the nonce of a certificate. A stateless connection accepts nonces of earlier
    /// requests; nonces up to the age `limit` in seconds count as issued on this connection
    /// (`receive.certNonceSlop`).
    fn judge(&self, nonce: Option<&BStr>, is_stateless: bool, limit: u64) -> NonceVerdict {
        let verdict = |word| NonceVerdict {
            word,
            nonce: self.nonce.as_str().into(),
            slop: None,
        };
        let Some(nonce) = nonce else {
            return verdict("MISSING");
        };
        if nonce == self.nonce.as_str() {
            return verdict("OK");
        }
        let time = self.nonces.time_of(nonce).filter(|_| is_stateless);
        let Some(time) = time else {
            return verdict("BAD");
        };
        let slop = i128::from(self.seconds) - i128::from(time);
        if limit > 0 && slop.unsigned_abs() <= u128::from(limit) {
            return NonceVerdict {
                nonce: nonce.to_owned(),
                ..verdict("OK")
            };
        }
        NonceVerdict {
            slop: Some(slop),
            ..verdict("SLOP")
        }
    }
}

fn variables(id: &ObjectId, check: &SignatureCheck, nonce: Option<&NonceVerdict>) -> Vec<Variable> {
    let text = |text: &Option<BString>| text.clone().unwrap_or_default();
    let mut found: Vec<(&str, BString)> = vec![
        ("", id.to_string().into()),
        ("_SIGNER", text(&check.signer)),
        ("_KEY", text(&check.key)),
        ("_STATUS", check.status.letter().to_string().into()),
    ];
    if let Some(verdict) = nonce {
        found.push(("_NONCE", verdict.nonce.clone()));
        found.push(("_NONCE_STATUS", verdict.word.into()));
        if let Some(slop) = verdict.slop {
            found.push(("_NONCE_SLOP", slop.to_string().into()));
        }
    }
    let found = found.into_iter();
    found
        .map(|(name, value)| {
            let value = path::borrow(value.as_bstr()).to_owned();
            Variable::set(format!("GIT_PUSH_CERT{name}"), value)
        })
        .collect()
}

/// The error message for a push whose push options differ from those of the certificate.
pub(super) const OTHER_OPTIONS: &str = "inconsistent push options";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_judged() {
        let nonces = Nonces::new(b"seed", "service", pronto_hash::Kind::Sha1);
        let issued = OfferedNonce {
            nonce: nonces.at(1000),
            seconds: 1000,
            nonces: nonces.clone(),
        };
        let judge = |nonce: &str, is_stateless: bool, limit: u64| {
            issued.judge(Some(nonce.into()), is_stateless, limit)
        };
        assert_eq!(issued.judge(None, true, 9).word, "MISSING");
        assert_eq!(judge(&issued.nonce, false, 0).word, "OK");
        let older = nonces.at(990);
        assert_eq!(judge(&older, false, 100).word, "BAD");
        let verdict = judge(&older, true, 9);
        assert_eq!((verdict.word, verdict.slop), ("SLOP", Some(10)));
        assert_eq!(verdict.nonce, issued.nonce);
        let verdict = judge(&older, true, 10);
        assert_eq!((verdict.word, verdict.slop), ("OK", None));
        assert_eq!(verdict.nonce, older);
        assert_eq!(judge(&older, true, 0).word, "SLOP");
        assert_eq!(judge(&nonces.at(1005), true, 1).slop, Some(-5));
        assert_eq!(judge("990-0123", true, 100).word, "BAD");
        assert_eq!(judge("", true, 100).word, "BAD");
    }
}

//! Public keys of users for SSH and netsync, in the format of OpenSSH: `TYPE BASE64 COMMENT`.
//!
//! An Ed25519 key works for both protocols. The protocols sign different texts, so a signature for
//! one protocol is not valid for the other one.

use russh::keys::ssh_key::public::{Ed25519PublicKey, KeyData};
use russh::keys::{Algorithm, HashAlg, PublicKey};

use crate::{Error, ErrorKind, Result};

/// The largest length of a line in bytes.
const LONGEST_BYTES: usize = 16 * 1024;

/// The smallest and the largest size of RSA keys, in bits.
const SMALLEST_RSA: u32 = 2048;
const LARGEST_RSA: u32 = 8192;

/// The SHA-256 of a key, which identifies the key.
pub type KeyHash = [u8; 32];

/// A public key that can authenticate a user.
#[derive(Clone, Debug)]
pub struct UserKey {
    key: PublicKey,
    line: String,
}

impl UserKey {
    /// Parses a line, as in a file `id_ed25519.pub`: a key of type Ed25519, ECDSA, or RSA of at
    /// least 2048 bits. A netsync key, `ed25519:` with hexadecimal digits, is converted to such a
    /// line.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`] if the line is malformed, or the key is of another type,
    /// too small, a private key, or a certificate.
    pub fn parse(line: &str) -> Result<Self> {
        let malformed = |message: &str| Err(Error::new(ErrorKind::Malformed, message));
        let line = line.trim();
        if line.contains("PRIVATE KEY") {
            return malformed(
                "this is a private key; use the public key in the file with the suffix '.pub'",
            );
        }
        if line.len() > LONGEST_BYTES || line.contains(char::is_control) {
            return malformed("a public key must be one line: TYPE BASE64 COMMENT");
        }
        if let Some(key) = of_netsync(line) {
            return match key.to_openssh() {
                Ok(line) => Ok(UserKey { key, line }),
                Err(_) => malformed("this key cannot be converted to the OpenSSH format"),
            };
        }
        let Ok(key) = PublicKey::from_openssh(line) else {
            return malformed(
                "not a public key: use the OpenSSH form TYPE BASE64 COMMENT, or the netsync form \
                 ed25519:HEX",
            );
        };
        let is_good = match key.key_data() {
            KeyData::Ed25519(_) | KeyData::Ecdsa(_) => true,
            KeyData::Rsa(rsa) => (SMALLEST_RSA..=LARGEST_RSA).contains(&rsa.key_size()),
            _ => false,
        };
        if !is_good {
            return malformed(
                "unsupported key type: use ed25519, ecdsa, or rsa with 2048 to 8192 bits",
            );
        }
        let line = line.to_owned();
        Ok(UserKey { key, line })
    }

    /// Returns the line without surrounding spaces.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Returns the type, such as `ssh-ed25519`.
    pub fn kind(&self) -> String {
        self.key.algorithm().to_string()
    }

    /// Returns the comment.
    pub fn comment(&self) -> &str {
        self.key.comment().as_str_lossy()
    }

    /// Returns the fingerprint as OpenSSH shows it: `SHA256:...`.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.key)
    }

    /// Returns the key in the format of netsync, `ed25519:` with hexadecimal digits, or `None` for
    /// other types.
    pub fn netsync(&self) -> Option<String> {
        match self.key.key_data() {
            KeyData::Ed25519(key) => {
                let digits: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
                Some(format!("ed25519:{digits}"))
            }
            _ => None,
        }
    }

    /// Returns whether `text` is the fingerprint of the key, or the key in the format of netsync.
    pub fn is_called(&self, text: &str) -> bool {
        self.fingerprint() == text || self.netsync().as_deref() == Some(text)
    }

    /// Returns the hash that identifies the key in lookups.
    pub fn hash(&self) -> KeyHash {
        hash(&self.key)
    }
}

/// Returns the hash of the Ed25519 key with these bytes.
pub(crate) fn hash_of_ed25519(bytes: &[u8; 32]) -> KeyHash {
    hash(&PublicKey::from(KeyData::Ed25519(Ed25519PublicKey(*bytes))))
}

/// Parses `ed25519:` with 64 hexadecimal digits, the format of netsync for a key, and a comment.
fn of_netsync(line: &str) -> Option<PublicKey> {
    let (key, comment) = line.split_once(' ').unwrap_or((line, ""));
    let key = *pronto_peer::PublicKey::parse(key)?.as_bytes();
    Some(PublicKey::new(
        KeyData::Ed25519(Ed25519PublicKey(key)),
        comment.trim(),
    ))
}

/// Returns the fingerprint of a key.
pub(crate) fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

/// Returns the hash of a key.
pub(crate) fn hash(key: &PublicKey) -> KeyHash {
    let print = key.fingerprint(HashAlg::Sha256);
    // The fingerprint is always a SHA-256.
    print.sha256().unwrap_or_default()
}

/// Returns whether signatures of this algorithm are accepted, which excludes algorithms with SHA-1.
pub(crate) fn is_accepted(algorithm: &Algorithm) -> bool {
    match algorithm {
        Algorithm::Ed25519 | Algorithm::Ecdsa { .. } => true,
        Algorithm::Rsa { hash } => hash.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";

    #[test]
    fn lines_are_parsed_with_their_comment() {
        let key = UserKey::parse(&format!(" {ED25519} alice at work\n")).expect("a key");
        assert_eq!(key.kind(), "ssh-ed25519");
        assert_eq!(key.comment(), "alice at work");
        assert_eq!(key.line(), format!("{ED25519} alice at work"));
        assert!(key.fingerprint().starts_with("SHA256:"));
        let other = UserKey::parse(ED25519).expect("a key");
        assert_eq!(other.hash(), key.hash());
        assert_eq!(other.comment(), "");
    }

    #[test]
    fn a_key_of_netsync_is_a_key_of_ssh() {
        let key = UserKey::parse(ED25519).expect("a key");
        let shown = key.netsync().expect("it is of Ed25519");
        let same = UserKey::parse(&format!("{shown} my laptop\n")).expect("a key");
        assert_eq!(same.hash(), key.hash());
        assert_eq!(same.line(), format!("{ED25519} my laptop"));
        let bytes = *pronto_peer::PublicKey::parse(&shown)
            .expect("a key")
            .as_bytes();
        assert_eq!(hash_of_ed25519(&bytes), key.hash());
        assert!(key.is_called(&shown) && key.is_called(&key.fingerprint()));
        assert!(!key.is_called("ed25519:") && !key.is_called(""));
    }

    #[test]
    fn other_lines_are_refused() {
        for bad in [
            "",
            "x",
            "ssh-ed25519",
            "ssh-ed25519 AAAA",
            "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti",
            &format!("restrict {ED25519}"),
            &format!("{ED25519}\n{ED25519}"),
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            &"a".repeat(20_000),
            "ed25519:",
            "ed25519:00",
        ] {
            UserKey::parse(bad).expect_err(bad);
        }
    }
}

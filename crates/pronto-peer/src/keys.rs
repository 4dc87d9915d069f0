//! The key pair that identifies a user to peers: Ed25519, without certificates.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;

use pronto::config::Config;
use pronto::environment::Environment;
use pronto::{Error, ErrorKind, Result};

/// The bytes that precede the 32 bytes of a key in the X.509 format (RFC 8410).
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

const SCHEME: &str = "ed25519:";

/// The public key of a key pair, which identifies a peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Parses `ed25519:` followed by 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<PublicKey> {
        let hex = text.strip_prefix(SCHEME)?.as_bytes();
        let mut bytes = [0; 32];
        if hex.len() != 2 * bytes.len() {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Some(PublicKey(bytes))
    }

    /// Parses a `SubjectPublicKeyInfo`. Returns `None` for another type of key.
    pub fn from_spki(spki: &[u8]) -> Option<PublicKey> {
        let bytes = spki.strip_prefix(&SPKI_PREFIX)?;
        Some(PublicKey(bytes.try_into().ok()?))
    }

    /// Returns the key as a `SubjectPublicKeyInfo`.
    pub fn to_spki(self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0].concat()
    }

    /// Returns the 32 bytes of the key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns a fingerprint of 128 bits of SHA-256, which is short enough to be read aloud.
    pub fn fingerprint(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.0);
        let groups = digest.as_ref()[..16].chunks(2);
        let groups: Vec<String> = groups
            .map(|pair| format!("{:02x}{:02x}", pair[0], pair[1]))
            .collect();
        groups.join("-")
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A key pair. `Debug` does not show its private key.
pub struct KeyPair {
    pkcs8: Vec<u8>,
    public: PublicKey,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", self.public)
    }
}

impl KeyPair {
    /// Generates a key pair.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the system provides no random bytes.
    pub fn generate() -> Result<KeyPair> {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let failed = |_| Error::new(ErrorKind::Io, "cannot get random bytes from the system");
        KeyPair::of(made.map_err(failed)?.as_ref().to_vec())
    }

    fn of(pkcs8: Vec<u8>) -> Result<KeyPair> {
        let broken = |_| {
            Error::new(
                ErrorKind::InvalidInput,
                "not an Ed25519 key in PKCS#8 format",
            )
        };
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8).map_err(broken)?;
        let mut public = PublicKey([0; 32]);
        public.0.copy_from_slice(pair.public_key().as_ref());
        Ok(KeyPair { pkcs8, public })
    }

    /// Reads a key pair from a PEM file that only its owner can read.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read, and with
    /// [`ErrorKind::InvalidInput`] if it does not contain a key, or other users can read it.
    pub fn read(path: &Path) -> Result<KeyPair> {
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let message = "no netsync key";
                let hint = "create one with 'pronto netsync keygen'";
                let error = Error::new(ErrorKind::InvalidInput, message).at_path(path);
                return Err(error.with_hint(hint));
            }
            Err(error) => return Err(error).context(ErrorKind::Io, "cannot read", path),
        };
        if metadata.mode() & 0o077 != 0 {
            let message = "the secret key is readable by other users";
            let hint = format!("run: chmod 600 {}", path.display());
            let error = Error::new(ErrorKind::InvalidInput, message).at_path(path);
            return Err(error.with_hint(hint));
        }
        let text = std::fs::read(path).context(ErrorKind::Io, "cannot read", path)?;
        let broken =
            |_| Error::new(ErrorKind::InvalidInput, "no private key in PEM format").at_path(path);
        let pkcs8 = PrivatePkcs8KeyDer::from_pem_slice(&text).map_err(broken)?;
        KeyPair::of(pkcs8.secret_pkcs8_der().to_vec()).map_err(|error| error.at_path(path))
    }

    /// Writes the key pair to a new file that only its owner can read.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file exists, or cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).context(
                ErrorKind::Io,
                "cannot create",
                directory,
            )?;
        }
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        let text = self.to_pem();
        let mut file = options
            .open(path)
            .context(ErrorKind::Io, "cannot create", path)?;
        // A part of a key must not stay, because a later key would not replace it.
        let guard = Guard::new(path);
        let written = file.write_all(text.as_bytes());
        let written = written.and_then(|()| file.sync_all());
        written.context(ErrorKind::Io, "cannot write", path)?;
        guard.keep();
        Ok(())
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Returns the key pair in PEM, which contains the private key.
    pub fn to_pem(&self) -> String {
        pem(&self.pkcs8)
    }

    /// Returns the key pair in the format PKCS#8.
    pub(super) fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }
}

/// The files of a user's identity.
#[derive(Clone, Debug)]
pub struct KeyPaths {
    /// The file of the key pair (`netsync.keyFile`).
    pub key: PathBuf,
    /// The list of known peers (`netsync.peersFile`).
    pub peers: PathBuf,
}

impl KeyPaths {
    /// Returns the paths in `netsync.keyFile` and `netsync.peersFile`. By default, both files are
    /// in `pronto/netsync/` in the configuration directory.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if a value is not a path, or the home directory is
    /// unknown.
    pub fn configured(config: &Config, environment: &Environment) -> Result<KeyPaths> {
        let own = || -> Result<PathBuf> {
            let given = environment.path("XDG_CONFIG_HOME");
            let given = given.filter(|path| !path.as_os_str().is_empty());
            let home = || environment.home().map(|home| home.join(".config"));
            let directory = given.map(Path::to_owned).or_else(home).ok_or_else(|| {
                let message = "cannot find the netsync keys: HOME is not set";
                Error::new(ErrorKind::InvalidInput, message)
            })?;
            Ok(directory.join("pronto").join("netsync"))
        };
        let place = |key: &str, name: &str| -> Result<PathBuf> {
            match config.path(key, environment.home())? {
                Some(path) => Ok(path),
                None => own().map(|directory| directory.join(name)),
            }
        };
        Ok(KeyPaths {
            key: place("netsync.keyfile", "key")?,
            peers: place("netsync.peersfile", "known_peers")?,
        })
    }
}

/// Returns a private key as PEM (RFC 7468).
fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len().div_ceil(64))
        .map(|line| &text[64 * line..text.len().min(64 * line + 64)])
        .collect();
    let lines = lines.join("\n");
    format!("-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written() {
        let folder = std::env::temp_dir().join(format!("pronto-keys-{}", std::process::id()));
        let path = folder.join("deep/key");
        let pair = KeyPair::generate().expect("a key");
        pair.write(&path).expect("it is written");
        assert!(pair.write(&path).is_err(), "a key is never overwritten");
        assert_eq!(KeyPair::read(&path).expect("a key").public(), pair.public());
        let text = pair.public().to_string();
        assert_eq!(PublicKey::parse(&text), Some(pair.public()));
        assert_eq!(
            PublicKey::from_spki(&pair.public().to_spki()),
            Some(pair.public())
        );
        for broken in [
            &text[1..],
            &text[..text.len() - 1],
            "ed25519:",
            "rsa:00",
            "",
        ] {
            assert_eq!(PublicKey::parse(broken), None, "{broken}");
        }
        assert_eq!(PublicKey::from_spki(&[0; 44]), None);
        assert_eq!(pair.public().fingerprint().len(), 39);
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o640);
        std::fs::set_permissions(&path, permissions).expect("they are set");
        let error = KeyPair::read(&path).expect_err("others can read it");
        assert!(
            error.to_string().contains("readable by other users"),
            "{error}"
        );
        std::fs::remove_dir_all(&folder).expect("it goes");
    }
}

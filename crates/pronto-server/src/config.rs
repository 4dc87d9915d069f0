//! The configuration file, `pronto-server.toml`.

mod file;
mod problem;
mod quota;
mod store;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::access::{Access, Grant, Role};
use crate::certificate::CertificateNames;
use crate::quota::Quota;
use crate::{Error, ErrorKind, Result};

pub use store::{Secret, StoreConfig, StoreRole};

/// The configuration with all defaults and comments, as `--print-config` shows it.
pub const DEFAULT_TEXT: &str = include_str!("config/default.toml");

/// The largest configuration that is read.
const LARGEST_BYTES: u64 = 16 << 20;

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The directory of repositories, or a repository.
    pub root: PathBuf,
    /// The file of users.
    pub users: PathBuf,
    /// Whether a push creates repositories.
    pub create_on_push: bool,
    /// Whether repositories need the file [`EXPORT_OK_FILE`](pronto_store::EXPORT_OK_FILE) to be served to clients without a user.
    pub require_export_ok: bool,
    /// Addresses for HTTP or HTTPS.
    pub http: Vec<SocketAddr>,
    /// The address that clients use; empty for that of the socket.
    pub public_url: String,
    /// The names in `Host` that are served at addresses of this machine, beside its own and that of `public_url`.
    pub hosts: Vec<String>,
    /// Certificate and key for HTTPS.
    pub tls: Option<TlsFiles>,
    /// The clients that may read metrics.
    pub metrics: MetricsReaders,
    /// Addresses for `git://`.
    pub daemon: Vec<SocketAddr>,
    /// The repositories that take pushes over `git://`.
    pub daemon_push: DaemonPush,
    /// SSH.
    pub ssh: Ssh,
    /// Netsync.
    pub netsync: Netsync,
    /// Grants and rules.
    pub access: Access,
    /// Users of client certificates.
    pub certificates: Vec<CertificateUser>,
    /// Limits.
    pub limits: Limits,
    /// The packs that are kept.
    pub cache: Cache,
    /// The bundles from which clones start.
    pub clone: CloneConfig,
    /// Limits of the content of repositories, and of their number.
    pub quotas: Vec<Quota>,
    /// The object store of the repositories, in place of the root.
    pub store: Option<StoreConfig>,
}

/// The repositories that take pushes over `git://`, by users who are unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DaemonPush {
    /// None.
    #[default]
    Never,
    /// Those with `daemon.receivePack` in their configuration.
    Marked,
    /// All but those that forbid it in their configuration.
    Always,
}

/// SSH.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ssh {
    /// Addresses.
    pub listen: Vec<SocketAddr>,
    /// The file of the host key, which is made if there is none; `None` for a key that ends with the
    /// server.
    pub host_key: Option<PathBuf>,
}

/// Netsync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Netsync {
    /// Addresses.
    pub listen: Vec<SocketAddr>,
    /// The file of the private key, which is made if there is none; `None` for a key that ends with the
    /// server.
    pub key: Option<PathBuf>,
    /// The memory of all sessions.
    pub memory_bytes: u64,
}

impl Default for Netsync {
    fn default() -> Self {
        Netsync {
            listen: Vec::new(),
            key: None,
            memory_bytes: 1 << 30,
        }
    }
}

/// Files for TLS, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// Authorities for client certificates.
    pub client_ca: Option<PathBuf>,
}

/// The clients that may read metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricsReaders {
    /// Clients on this machine.
    #[default]
    Loopback,
    /// Users who manage the server.
    Admin,
    /// Everyone.
    Everyone,
}

/// The user of a client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateUser {
    /// The name of the user.
    pub user: String,
    /// The common name of the subject.
    pub subject: Option<String>,
    /// The SHA-256 of the certificate in lower case.
    pub fingerprint: Option<String>,
}

/// The packs that the server keeps for equal requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The directory for files without names.
    pub directory: PathBuf,
    /// The bytes of all packs; zero for no packs.
    pub bytes: u64,
    /// The bytes of all lists of refs, which are in memory.
    pub listing_bytes: usize,
}

impl Default for Cache {
    fn default() -> Self {
        Cache {
            directory: PathBuf::from("/var/tmp"),
            bytes: 1 << 30,
            listing_bytes: 64 << 20,
        }
    }
}

/// The bundles from which clones over HTTP start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneConfig {
    /// Whether they are offered.
    pub bundle_uri: bool,
    /// The size of the smallest pack that is offered.
    pub bundle_least_bytes: u64,
}

impl Default for CloneConfig {
    fn default() -> Self {
        CloneConfig {
            bundle_uri: true,
            bundle_least_bytes: 1 << 20,
        }
    }
}

/// Limits of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Connections from one address.
    pub connections_per_address: usize,
    /// Requests of Git served at once.
    pub requests: usize,
    /// Of these, those of one user.
    pub requests_per_user: usize,
    /// Requests that wait.
    pub queue: usize,
    /// Bytes of the requests under way that are held in memory.
    pub memory_bytes: u64,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// Bytes of the request of a fetch, inflated.
    pub fetch_bytes: u64,
    /// Bytes of the request of a push, inflated.
    pub push_bytes: u64,
    /// Bytes of the commands of a push, or of its certificate.
    pub command_bytes: u64,
    /// For the handshake, and for the head of a request.
    pub head: Duration,
    /// For a client of SSH to authenticate itself and to make its first request.
    pub login: Duration,
    /// For a connection without a request.
    pub idle: Duration,
    /// For a request that waits for its turn.
    pub wait: Duration,
    /// Without progress of a request.
    pub stall: Duration,
    /// For a request in all.
    pub request: Duration,
    /// For requests under way when the server ends.
    pub drain: Duration,
    /// Wrong tokens from one address in a minute.
    pub failures_per_minute: u32,
}

impl Default for Limits {
    fn default() -> Self {
        file::Limits::default().resolved()
    }
}

impl Config {
    /// Returns the name of the user that a client certificate is configured for: by its fingerprint, or else by the
    /// common name of its subject. The user need not exist.
    pub fn certificate_user(&self, certificate: &CertificateNames) -> Option<&str> {
        let CertificateNames {
            fingerprint,
            subject,
        } = certificate;
        let found = self.certificates.iter().find(|known| {
            let fits = |wanted: &Option<String>, found: Option<&str>| {
                wanted.as_deref().is_none_or(|wanted| Some(wanted) == found)
            };
            fits(&known.fingerprint, Some(fingerprint)) && fits(&known.subject, subject.as_deref())
        });
        found.map(|known| known.user.as_str())
    }

    /// The configuration without a file: `root`, read by everyone, over HTTP at a free port of this
    /// machine.
    pub fn without_file(root: PathBuf) -> Self {
        let users = root.join(file::USERS);
        Config {
            root,
            users,
            create_on_push: false,
            require_export_ok: false,
            http: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            public_url: String::new(),
            hosts: Vec::new(),
            tls: None,
            metrics: MetricsReaders::default(),
            daemon: Vec::new(),
            daemon_push: DaemonPush::default(),
            ssh: Ssh::default(),
            netsync: Netsync::default(),
            access: Access {
                grants: vec![everyone_reads()],
                rules: Vec::new(),
            },
            certificates: Vec::new(),
            quotas: Vec::new(),
            cache: Cache::default(),
            clone: CloneConfig::default(),
            store: None,
            limits: Limits::default(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed: the message names file and line.
    pub fn read(path: &Path) -> Result<Self> {
        let cannot = |error: std::io::Error| {
            let reason = pronto_io::error::reason(&error);
            let message = format!("cannot read '{}': {reason}", path.display());
            Error::new(ErrorKind::Config, message)
        };
        let links = pronto_io::untrusted::Links::Follow;
        let bytes = pronto_io::untrusted::read(path, links, LARGEST_BYTES).map_err(cannot)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let read = error.as_bytes().get(..error.utf8_error().valid_up_to());
            let line = 1 + read
                .unwrap_or_default()
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            let message = format!("{}:{line}: not UTF-8", path.display());
            Error::new(ErrorKind::Config, message)
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, path, directory)
    }

    /// Parses the text of a file at `path`; relative paths in it begin at `directory`.
    ///
    /// # Errors
    /// The text is malformed: the message names file and line.
    pub fn parse(text: &str, path: &Path, directory: &Path) -> Result<Self> {
        file::parse(text, directory).map_err(|problem| {
            let line = 1 + text
                .bytes()
                .take(problem.offset)
                .filter(|byte| *byte == b'\n')
                .count();
            let message = format!("{}:{line}: {}", path.display(), problem.message);
            Error::new(ErrorKind::Config, message)
        })
    }
}

/// The grant that counts if there are none.
fn everyone_reads() -> Grant {
    Grant {
        repository: crate::access::EVERY_REPOSITORY.to_owned(),
        users: vec![crate::access::ANONYMOUS.to_owned()],
        role: Role::Read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config> {
        Config::parse(text, Path::new("x.toml"), Path::new("/srv"))
    }

    #[test]
    fn the_printed_defaults_are_the_defaults() {
        let empty = parse("").expect("valid");
        assert_eq!(parse(DEFAULT_TEXT).expect("valid"), empty);
        let mut text = String::new();
        for line in DEFAULT_TEXT.lines() {
            // Settings begin right behind the mark, explanations after a space.
            let is_setting =
                line.starts_with('#') && line.contains(" = ") && !line.starts_with("# ");
            let is_optional = line.contains("= \"\"") || line.starts_with("#[[");
            if line.starts_with("#[[") {
                break;
            }
            text.push_str(if is_setting && !is_optional {
                &line[1..]
            } else {
                line
            });
            text.push('\n');
        }
        let limits = DEFAULT_TEXT.find("[limits]").expect("there");
        text.push_str(
            &DEFAULT_TEXT[limits..]
                .replace("\n#", "\n")
                .replace("\n ", "\n# "),
        );
        assert_eq!(parse(&text).expect("valid"), empty);
    }

    #[test]
    fn errors_name_file_and_line() {
        let message = |text| parse(text).expect_err(text).to_string();
        for (text, expected) in [
            ("root = 1", "x.toml:1: "),
            ("\nnonsense = 1", "x.toml:2: unknown field `nonsense`"),
            (
                "[http]\n\nlisten = [\"nowhere\"]",
                "x.toml:3: 'nowhere' is not an address",
            ),
            ("[limits]\nrequests = 0", "x.toml:2: must be at least 1"),
            (
                "[limits]\nuser_share = 101",
                "x.toml:2: is a percentage, from 1 to 100",
            ),
            (
                "[[grant]]\nrepository = \"**\"\nusers = [\"a b\"]\nrole = \"read\"",
                "x.toml:3: 'a b' cannot be the name of a user",
            ),
            (
                "[[grant]]\nrepository = \"[\"\nusers = [\"a\"]\nrole = \"read\"",
                "x.toml:2: ",
            ),
            ("[[certificate]]\nuser = \"a\"", "x.toml:2: "),
            ("[http]\ntls_key = \"k\"", "x.toml:2: "),
            (
                "[netsync]\nmemory_bytes = 1",
                "x.toml:2: must be at least 128 MiB",
            ),
            (
                "[netsync]\nlisten = [\"x\"]",
                "x.toml:2: 'x' is not an address",
            ),
        ] {
            let found = message(text);
            assert!(found.starts_with(expected), "{text}: {found}");
        }
    }

    #[test]
    fn everything_can_be_set() {
        let text = r#"
            root = "git"
            create_on_push = true
            require_export_ok = true
            [http]
            listen = ["0.0.0.0:443", "[::1]:80"]
            tls_certificate = "c"
            tls_key = "/k"
            [daemon]
            listen = ["127.0.0.1:9418"]
            push = "marked"
            [ssh]
            listen = ["[::]:22"]
            host_key = "/etc/key"
            [netsync]
            listen = ["[::]:9419"]
            key = "n"
            memory_bytes = 200_000_000
            [[grant]]
            repository = "team/**"
            users = ["alice", "*"]
            role = "write"
            [[rule]]
            repository = "**"
            refs = "refs/tags/**"
            force = false
            [limits]
            requests = 10
            user_share = 15
        "#;
        let config = parse(text).expect("valid");
        assert_eq!(config.root, Path::new("/srv/git"));
        assert!(config.require_export_ok && config.daemon_push == DaemonPush::Marked);
        assert_eq!(config.http.len(), 2);
        assert_eq!(config.tls.expect("set").certificate, Path::new("/srv/c"));
        assert_eq!(config.ssh.host_key.as_deref(), Some(Path::new("/etc/key")));
        assert_eq!(config.netsync.key.as_deref(), Some(Path::new("/srv/n")));
        assert_eq!(config.netsync.memory_bytes, 200_000_000);
        assert_eq!(config.access.grants.len(), 1);
        let rule = &config.access.rules[0];
        assert!(!rule.force && rule.delete && rule.create && rule.users.is_none());
        assert_eq!(config.limits.requests_per_user, 1);
    }
}

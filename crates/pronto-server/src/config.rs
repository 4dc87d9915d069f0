//! The configuration file, `pronto-server.toml`.

mod file;
pub(crate) mod known;
mod problem;
mod quota;
mod restart;
mod store;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::access::{AccessRole, AccessRules, Grant};
use crate::certificate::CertificateNames;
use crate::quota::Quota;
use crate::{Error, ErrorKind, Result};

pub(crate) use restart::waiting_for_restart;
pub use store::{SecretText, StoreConfig, StoreRole};

/// The text of a configuration file with all defaults and comments, as `--print-config` prints it.
pub const DEFAULT_TEXT: &str = include_str!("config/default.toml");

/// The largest size in bytes of a configuration file.
const LARGEST_BYTES: u64 = 16 << 20;

/// A function that reads the configuration of a running server again. The server calls it on a thread
/// that may block, one call at a time. After an error the server keeps its configuration.
pub type ReadConfig = dyn Fn() -> Result<ServerConfig> + Send + Sync;

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The directory of repositories, or a single repository (`root`).
    pub root: PathBuf,
    /// The file of users (`users`).
    pub users: PathBuf,
    /// Create a repository when a client pushes to one that does not exist (`create_on_push`).
    pub create_on_push: bool,
    /// Serve a repository to clients without a user only if it contains the file
    /// [`EXPORT_OK_FILE`](pronto_store::EXPORT_OK_FILE) (`require_export_ok`).
    pub require_export_ok: bool,
    /// The addresses for HTTP or HTTPS (`listen` of `[http]`).
    pub http: Vec<SocketAddr>,
    /// The URL of the server as clients use it (`public_url`). If empty, the address of the socket is used.
    pub public_url: String,
    /// The values of the header `Host` that the server accepts at loopback addresses (`hosts`), besides names
    /// of this machine and that of `public_url`.
    pub hosts: Vec<String>,
    /// The certificate and the key for HTTPS (`tls_certificate`, `tls_key`).
    pub tls: Option<TlsFiles>,
    /// The clients that may read metrics (`metrics`).
    pub metrics: MetricsReaders,
    /// The addresses that serve only metrics and health, to all clients, without TLS (`listen` of `[metrics]`).
    pub metrics_listen: Vec<SocketAddr>,
    /// The format of the log (`format` of `[log]`).
    pub log_format: LogFormatSetting,
    /// The addresses for `git://` (`listen` of `[daemon]`).
    pub daemon: Vec<SocketAddr>,
    /// The repositories that accept pushes over `git://` (`push` of `[daemon]`).
    pub daemon_push: DaemonPush,
    /// The settings of SSH (`[ssh]`).
    pub ssh: SshConfig,
    /// The settings of netsync (`[netsync]`).
    pub netsync: NetsyncConfig,
    /// The grants and rules (`[[grant]]`, `[[rule]]`).
    pub access: AccessRules,
    /// The users of client certificates (`[[certificate]]`).
    pub certificates: Vec<CertificateUser>,
    /// The limits (`[limits]`).
    pub limits: ServerLimits,
    /// The cache of packs and ref advertisements (`[cache]`).
    pub cache: CacheConfig,
    /// The bundles from which clones start (`[clone]`).
    pub clone: CloneConfig,
    /// The limits on the content and on the number of repositories (`[[quota]]`).
    pub quotas: Vec<Quota>,
    /// The object store of the repositories (`[store]`), which replaces [`root`](Self::root).
    pub store: Option<StoreConfig>,
}

/// The repositories that accept pushes over `git://`, whose clients have no user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DaemonPush {
    /// No repository.
    #[default]
    Never,
    /// The repositories that set `daemon.receivePack` in their configuration.
    Marked,
    /// All repositories except those that disable `daemon.receivePack` in their configuration.
    Always,
}

/// The settings of SSH (`[ssh]`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshConfig {
    /// The addresses of the sockets (`listen`).
    pub listen: Vec<SocketAddr>,
    /// The file of the private host key (`host_key`), which is created if it does not exist. With `None`, the
    /// server generates a temporary key.
    pub host_key: Option<PathBuf>,
}

/// The settings of netsync (`[netsync]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetsyncConfig {
    /// The addresses of the sockets (`listen`).
    pub listen: Vec<SocketAddr>,
    /// The file of the private key (`key`), which is created if it does not exist. With `None`, the server
    /// generates a temporary key.
    pub key: Option<PathBuf>,
    /// The memory limit in bytes of all sessions together (`memory_bytes`).
    pub memory_bytes: u64,
}

impl Default for NetsyncConfig {
    fn default() -> Self {
        NetsyncConfig {
            listen: Vec::new(),
            key: None,
            memory_bytes: 1 << 30,
        }
    }
}

/// The files for TLS, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The file of the certificate chain (`tls_certificate`).
    pub certificate: PathBuf,
    /// The file of the private key (`tls_key`).
    pub key: PathBuf,
    /// The file of the authorities that sign client certificates (`client_ca`).
    pub client_ca: Option<PathBuf>,
}

/// The clients that may read metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricsReaders {
    /// Clients on this machine, and users who manage the server. Behind a proxy on this machine, these are all
    /// clients.
    Loopback,
    /// Users who manage the server.
    #[default]
    Admin,
    /// All clients.
    Everyone,
}

/// The format of the log (`format` of `[log]`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormatSetting {
    /// Text for people if standard error is a terminal, and otherwise JSON.
    #[default]
    Auto,
    /// Text for people.
    Human,
    /// JSON.
    Json,
}

/// A user who authenticates with a client certificate (`[[certificate]]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateUser {
    /// The name of the user (`user`).
    pub user: String,
    /// The common name of the subject of the certificate (`subject`).
    pub subject: Option<String>,
    /// The SHA-256 of the certificate in lower-case hexadecimal digits (`fingerprint`).
    pub fingerprint: Option<String>,
}

/// The cache of packs and ref advertisements, which equal requests share (`[cache]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// The directory of the cached packs (`directory`), which are files without a name.
    pub directory: PathBuf,
    /// The limit in bytes of all cached packs (`bytes`). Zero disables the cache of packs.
    pub bytes: u64,
    /// The limit in bytes of all cached ref advertisements, which are in memory (`listing_bytes`).
    pub listing_bytes: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        CacheConfig {
            directory: PathBuf::from("/var/tmp"),
            bytes: 1 << 30,
            listing_bytes: 64 << 20,
        }
    }
}

/// The bundles from which clones over HTTP start (`[clone]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneConfig {
    /// Advertise bundles (`bundle_uri`).
    pub bundle_uri: bool,
    /// The size in bytes of the smallest pack that is advertised as a bundle (`bundle_least_bytes`).
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

/// The limits of the server (`[limits]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// The largest number of connections (`connections`).
    pub connections: usize,
    /// The largest number of connections from one address (`connections_per_address`).
    pub connections_per_address: usize,
    /// The largest number of Git requests that are served at the same time (`requests`).
    pub requests: usize,
    /// The largest number of these requests for one user, which follows from `user_share`.
    pub requests_per_user: usize,
    /// The largest number of waiting requests (`queue`).
    pub queue: usize,
    /// The memory in bytes that all requests in flight may use (`memory_bytes`).
    pub memory_bytes: u64,
    /// The largest size in bytes of the head of a request (`head_bytes`).
    pub head_bytes: usize,
    /// The largest size in bytes of a fetch request, inflated (`fetch_bytes`).
    pub fetch_bytes: u64,
    /// The largest size in bytes of a push request, inflated (`push_bytes`).
    pub push_bytes: u64,
    /// The largest size in bytes of the commands of a push, or of its certificate (`command_bytes`).
    pub command_bytes: u64,
    /// The timeout for the handshake, and for the head of a request (`head_seconds`).
    pub head: Duration,
    /// The timeout for an SSH client to authenticate and make its first request (`login_seconds`).
    pub login: Duration,
    /// The timeout of a connection without a request (`idle_seconds`).
    pub idle: Duration,
    /// The timeout of a request that waits for a slot (`wait_seconds`).
    pub wait: Duration,
    /// The timeout of a request whose client makes no progress (`stall_seconds`).
    pub stall: Duration,
    /// The timeout of a whole request (`request_seconds`).
    pub request: Duration,
    /// The time for requests in flight to finish when the server ends (`drain_seconds`).
    pub drain: Duration,
    /// The number of invalid tokens in a minute after which an address is refused (`failures_per_minute`).
    pub failures_per_minute: u32,
}

impl Default for ServerLimits {
    fn default() -> Self {
        file::LimitsSection::default().resolved()
    }
}

impl ServerConfig {
    /// Returns the name of the user that is configured for a client certificate. The fingerprint takes
    /// precedence over the common name of the subject. The user may not exist.
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

    /// Returns the configuration for a server without a file, which serves `root` to all clients, read-only,
    /// over HTTP at a free port of this machine.
    pub fn without_file(root: PathBuf) -> Self {
        let users = root.join(file::USERS);
        ServerConfig {
            root,
            users,
            create_on_push: false,
            require_export_ok: false,
            http: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            public_url: String::new(),
            hosts: Vec::new(),
            tls: None,
            metrics: MetricsReaders::Loopback,
            metrics_listen: Vec::new(),
            log_format: LogFormatSetting::default(),
            daemon: Vec::new(),
            daemon_push: DaemonPush::default(),
            ssh: SshConfig::default(),
            netsync: NetsyncConfig::default(),
            access: AccessRules {
                grants: vec![everyone_reads()],
                rules: Vec::new(),
            },
            certificates: Vec::new(),
            quotas: Vec::new(),
            cache: CacheConfig::default(),
            clone: CloneConfig::default(),
            store: None,
            limits: ServerLimits::default(),
        }
    }

    /// Reads a configuration file.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Config`] if the file cannot be read or is malformed. The message names file
    /// and line.
    pub fn read(path: &Path) -> Result<Self> {
        let cannot = |error: std::io::Error| {
            let reason = pronto_io::error::reason(&error);
            let message = format!("cannot read '{}': {reason}", path.display());
            Error::new(ErrorKind::Config, message)
        };
        let links = pronto_io::untrusted::SymlinkPolicy::Follow;
        let bytes = pronto_io::untrusted::read(path, links, LARGEST_BYTES).map_err(cannot)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let read = error.as_bytes().get(..error.utf8_error().valid_up_to());
            let line = 1 + read
                .unwrap_or_default()
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            let message = format!("{}:{line}: invalid UTF-8", path.display());
            Error::new(ErrorKind::Config, message)
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, path, directory)
    }

    /// Parses the text of a configuration file at `path`. Relative paths in the text are resolved against
    /// `directory`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Config`] if the text is malformed. The message names file and line.
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

/// Returns the grant that applies if the configuration has no grants.
fn everyone_reads() -> Grant {
    Grant {
        repository: crate::access::EVERY_REPOSITORY.to_owned(),
        users: vec![crate::access::ANONYMOUS.to_owned()],
        role: AccessRole::Read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ServerConfig> {
        ServerConfig::parse(text, Path::new("x.toml"), Path::new("/srv"))
    }

    #[test]
    fn the_printed_defaults_are_the_defaults() {
        let empty = parse("").expect("valid");
        assert_eq!(parse(DEFAULT_TEXT).expect("valid"), empty);
        let mut text = String::new();
        for line in DEFAULT_TEXT.lines() {
            // Settings start directly after the comment mark, explanations after a space.
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
            ("\nnonsense = 1", "x.toml:2: unknown setting 'nonsense'"),
            (
                "[http]\n\nlisten = [\"nowhere\"]",
                "x.toml:3: 'nowhere' is not an address",
            ),
            ("[limits]\nrequests = 0", "x.toml:2: must be at least 1"),
            (
                "[limits]\nuser_share = 101",
                "x.toml:2: must be a percentage from 1 to 100",
            ),
            (
                "[[grant]]\nrepository = \"**\"\nusers = [\"a b\"]\nrole = \"read\"",
                "x.toml:3: invalid user name 'a b'",
            ),
            (
                "[[grant]]\nrepository = \"[\"\nusers = [\"a\"]\nrole = \"read\"",
                "x.toml:2: ",
            ),
            ("[[certificate]]\nuser = \"a\"", "x.toml:2: "),
            ("[http]\ntls_key = \"k\"", "x.toml:2: "),
            (
                "[netsync]\nmemory_bytes = 1",
                "x.toml:2: must be at least 134217728 (128 MiB)",
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
            [metrics]
            listen = ["127.0.0.1:9100"]
            [log]
            format = "human"
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
        assert_eq!(config.metrics_listen, [([127, 0, 0, 1], 9100).into()]);
        assert_eq!(config.log_format, LogFormatSetting::Human);
        assert_eq!(config.access.grants.len(), 1);
        let rule = &config.access.rules[0];
        assert!(!rule.force && rule.delete && rule.create && rule.users.is_none());
        assert_eq!(config.limits.requests_per_user, 1);
    }
}

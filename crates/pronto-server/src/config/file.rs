//! The syntax of the configuration file, and its validation.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::problem::{ConfigProblem, glob, problem, within};
use super::{
    CertificateUser, DaemonPush, LogFormatSetting, MetricsReaders, ServerConfig, TlsFiles,
    everyone_reads,
};
use crate::access::{ANONYMOUS, AccessRole, AccessRules, EVERY_USER, Grant, RefRule};
use crate::names::is_user_name;

/// The default name of the file of users.
pub(super) const USERS: &str = "pronto-users.toml";

/// The default name of the file of the host key.
const HOST_KEY: &str = "pronto-ssh-host-key";

/// The default name of the file of the netsync key.
const NETSYNC_KEY: &str = "pronto-netsync-key";

/// The smallest memory limit for netsync sessions: two units of work, and as much for waiting
/// sessions.
const LEAST_MEMORY_BYTES: u64 = 128 << 20;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    root: Option<PathBuf>,
    users: Option<PathBuf>,
    create_on_push: bool,
    require_export_ok: bool,
    http: HttpConfigTable,
    daemon: DaemonTable,
    ssh: SshConfigTable,
    netsync: NetsyncTable,
    metrics: MetricsTable,
    log: LogTable,
    grant: Vec<GrantEntry>,
    rule: Vec<RuleEntry>,
    quota: Vec<super::quota::Entry>,
    certificate: Vec<CertificateEntry>,
    cache: CacheTable,
    clone: Clones,
    store: super::store::StoreSection,
    limits: LimitsSection,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HttpConfigTable {
    listen: Option<Vec<Spanned<String>>>,
    public_url: String,
    hosts: Vec<String>,
    tls_certificate: Option<Spanned<PathBuf>>,
    tls_key: Option<Spanned<PathBuf>>,
    client_ca: Option<Spanned<PathBuf>>,
    metrics: MetricsReaders,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DaemonTable {
    listen: Vec<Spanned<String>>,
    push: DaemonPush,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SshConfigTable {
    listen: Vec<Spanned<String>>,
    host_key: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NetsyncTable {
    listen: Vec<Spanned<String>>,
    key: Option<PathBuf>,
    memory_bytes: Option<Spanned<u64>>,
}

/// The table `[metrics]` as written in the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MetricsTable {
    listen: Vec<Spanned<String>>,
}

/// The table `[log]` as written in the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LogTable {
    format: LogFormatSetting,
}

impl NetsyncTable {
    fn resolved(self, directory: &Path) -> Result<super::NetsyncConfig, ConfigProblem> {
        let default = super::NetsyncConfig::default();
        if let Some(bytes) = &self.memory_bytes {
            let message = "must be at least 134217728 (128 MiB)";
            within(bytes, LEAST_MEMORY_BYTES, u64::MAX >> 1, message)?;
        }
        Ok(super::NetsyncConfig {
            listen: addresses(&self.listen)?,
            key: Some(directory.join(self.key.unwrap_or_else(|| NETSYNC_KEY.into()))),
            memory_bytes: self
                .memory_bytes
                .map_or(default.memory_bytes, Spanned::into_inner),
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantEntry {
    repository: Spanned<String>,
    users: Vec<Spanned<String>>,
    role: AccessRole,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    repository: Spanned<String>,
    refs: Spanned<String>,
    users: Option<Vec<Spanned<String>>>,
    #[serde(default = "yes")]
    create: bool,
    #[serde(default = "yes")]
    delete: bool,
    #[serde(default = "yes")]
    force: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificateEntry {
    user: Spanned<String>,
    subject: Option<String>,
    fingerprint: Option<Spanned<String>>,
}

fn yes() -> bool {
    true
}

/// The table `[cache]` as written in the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CacheTable {
    directory: Option<PathBuf>,
    bytes: Option<u64>,
    listing_bytes: Option<usize>,
}

impl CacheTable {
    fn resolved(self, directory: &Path) -> super::CacheConfig {
        let default = super::CacheConfig::default();
        let own = self.directory.map(|path| directory.join(path));
        super::CacheConfig {
            directory: own.unwrap_or(default.directory),
            bytes: self.bytes.unwrap_or(default.bytes),
            listing_bytes: self.listing_bytes.unwrap_or(default.listing_bytes),
        }
    }
}

/// The table `[clone]` as written in the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Clones {
    bundle_uri: Option<bool>,
    bundle_least_bytes: Option<u64>,
}

impl Clones {
    fn resolved(&self) -> super::CloneConfig {
        let default = super::CloneConfig::default();
        super::CloneConfig {
            bundle_uri: self.bundle_uri.unwrap_or(default.bundle_uri),
            bundle_least_bytes: self
                .bundle_least_bytes
                .unwrap_or(default.bundle_least_bytes),
        }
    }
}

/// The table `[limits]` as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsSection {
    connections: Spanned<usize>,
    connections_per_address: Spanned<usize>,
    requests: Spanned<usize>,
    user_share: Spanned<usize>,
    queue: Spanned<usize>,
    memory_bytes: Spanned<u64>,
    head_bytes: Spanned<usize>,
    fetch_bytes: u64,
    push_bytes: u64,
    command_bytes: u64,
    head_seconds: Spanned<u64>,
    login_seconds: Spanned<u64>,
    idle_seconds: Spanned<u64>,
    wait_seconds: u64,
    stall_seconds: Spanned<u64>,
    request_seconds: Spanned<u64>,
    drain_seconds: u64,
    failures_per_minute: Spanned<u32>,
}

/// Returns a default value, which has no position in the file.
fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

impl Default for LimitsSection {
    fn default() -> Self {
        LimitsSection {
            connections: unplaced(16_384),
            connections_per_address: unplaced(4096),
            requests: unplaced(128),
            user_share: unplaced(50),
            queue: unplaced(4096),
            memory_bytes: unplaced(1 << 30),
            head_bytes: unplaced(16_384),
            fetch_bytes: 64 << 20,
            push_bytes: 16 << 30,
            command_bytes: 256 << 20,
            head_seconds: unplaced(10),
            login_seconds: unplaced(60),
            idle_seconds: unplaced(75),
            wait_seconds: 30,
            stall_seconds: unplaced(60),
            request_seconds: unplaced(4 * 3600),
            drain_seconds: 30,
            failures_per_minute: unplaced(30),
        }
    }
}

impl LimitsSection {
    pub(super) fn resolved(&self) -> super::ServerLimits {
        let seconds = |value: &Spanned<u64>| Duration::from_secs(*value.get_ref());
        let requests = *self.requests.get_ref();
        let share = requests.saturating_mul(*self.user_share.get_ref()) / 100;
        super::ServerLimits {
            connections: *self.connections.get_ref(),
            connections_per_address: *self.connections_per_address.get_ref(),
            requests,
            requests_per_user: share.max(1),
            queue: *self.queue.get_ref(),
            memory_bytes: *self.memory_bytes.get_ref(),
            head_bytes: *self.head_bytes.get_ref(),
            fetch_bytes: self.fetch_bytes,
            push_bytes: self.push_bytes,
            command_bytes: self.command_bytes,
            head: seconds(&self.head_seconds),
            login: seconds(&self.login_seconds),
            idle: seconds(&self.idle_seconds),
            wait: Duration::from_secs(self.wait_seconds),
            stall: seconds(&self.stall_seconds),
            request: seconds(&self.request_seconds),
            drain: Duration::from_secs(self.drain_seconds),
            failures_per_minute: *self.failures_per_minute.get_ref(),
        }
    }

    fn check(&self) -> Result<(), ConfigProblem> {
        for count in [
            &self.connections,
            &self.connections_per_address,
            &self.requests,
        ] {
            within(count, 1, 1 << 20, "must be at least 1 and at most 1048576")?;
        }
        within(&self.queue, 0, 1 << 20, "must be at most 1048576")?;
        let message = "must be at least 16777216";
        within(&self.memory_bytes, 16 << 20, u64::MAX >> 1, message)?;
        within(
            &self.user_share,
            1,
            100,
            "must be a percentage from 1 to 100",
        )?;
        // The HTTP library needs a buffer of 8 KiB.
        let message = "must be at least 8192 and at most 1048576";
        within(&self.head_bytes, 8192, 1 << 20, message)?;
        for seconds in [
            &self.head_seconds,
            &self.login_seconds,
            &self.idle_seconds,
            &self.stall_seconds,
            &self.request_seconds,
        ] {
            within(seconds, 1, 1 << 31, "must be at least 1 second")?;
        }
        let message = "must be at least 1";
        within(&self.failures_per_minute, 1, u32::MAX, message)
    }
}

/// Parses and checks the text of a file. Relative paths are resolved against `directory`.
pub(super) fn parse(text: &str, directory: &Path) -> Result<ServerConfig, ConfigProblem> {
    super::known::check(text)?;
    let file: ConfigFile = toml::from_str(text).map_err(|error| ConfigProblem {
        offset: error.span().map_or(0, |span| span.start),
        message: error.message().replace('\n', " "),
    })?;
    file.limits.check()?;
    let root = directory.join(file.root.unwrap_or_else(|| ".".into()));
    let users = directory.join(file.users.unwrap_or_else(|| USERS.into()));
    let http = match &file.http.listen {
        Some(listen) => addresses(listen)?,
        None => vec![SocketAddr::from(([127, 0, 0, 1], 8418))],
    };
    let mut grants = Vec::new();
    for entry in &file.grant {
        grants.push(Grant {
            repository: glob(&entry.repository)?,
            users: users_in(&entry.users)?,
            role: entry.role,
        });
    }
    if grants.is_empty() {
        grants.push(everyone_reads());
    }
    let rules = file.rule.iter().map(rule).collect::<Result<_, _>>()?;
    let quotas = file.quota.iter().map(super::quota::Entry::resolved);
    let quotas = quotas.collect::<Result<_, _>>()?;
    let certificates = file.certificate.into_iter().map(certificate);
    Ok(ServerConfig {
        root,
        users,
        create_on_push: file.create_on_push,
        require_export_ok: file.require_export_ok,
        http,
        tls: file.http.tls(directory)?,
        public_url: file.http.public_url.trim_end_matches('/').to_owned(),
        hosts: file.http.hosts,
        metrics: file.http.metrics,
        metrics_listen: addresses(&file.metrics.listen)?,
        log_format: file.log.format,
        daemon: addresses(&file.daemon.listen)?,
        daemon_push: file.daemon.push,
        ssh: super::SshConfig {
            listen: addresses(&file.ssh.listen)?,
            host_key: Some(directory.join(file.ssh.host_key.unwrap_or_else(|| HOST_KEY.into()))),
        },
        netsync: file.netsync.resolved(directory)?,
        access: AccessRules { grants, rules },
        quotas,
        certificates: certificates.collect::<Result<_, _>>()?,
        cache: file.cache.resolved(directory),
        clone: file.clone.resolved(),
        store: file.store.resolved(directory)?,
        limits: file.limits.resolved(),
    })
}

impl HttpConfigTable {
    fn tls(&self, directory: &Path) -> Result<Option<TlsFiles>, ConfigProblem> {
        let alone = |path: &Spanned<PathBuf>| {
            let message = "tls_certificate and tls_key must be set together";
            Err(problem(path, message.to_owned()))
        };
        match (&self.tls_certificate, &self.tls_key, &self.client_ca) {
            (Some(certificate), Some(key), client_ca) => Ok(Some(TlsFiles {
                certificate: directory.join(certificate.get_ref()),
                key: directory.join(key.get_ref()),
                client_ca: client_ca
                    .as_ref()
                    .map(|path| directory.join(path.get_ref())),
            })),
            (Some(path), None, _) | (None, Some(path), _) | (None, None, Some(path)) => alone(path),
            (None, None, None) => Ok(None),
        }
    }
}

fn addresses(listen: &[Spanned<String>]) -> Result<Vec<SocketAddr>, ConfigProblem> {
    let parsed = listen.iter().map(|text| {
        text.get_ref().parse().map_err(|_| {
            let message = format!(
                "'{}' is not an address; use HOST:PORT, for example 127.0.0.1:8418 or [::]:8418",
                text.get_ref()
            );
            problem(text, message)
        })
    });
    parsed.collect()
}

fn rule(entry: &RuleEntry) -> Result<RefRule, ConfigProblem> {
    Ok(RefRule {
        repository: glob(&entry.repository)?,
        refs: glob(&entry.refs)?,
        users: entry.users.as_deref().map(users_in).transpose()?,
        create: entry.create,
        delete: entry.delete,
        force: entry.force,
    })
}

fn certificate(entry: CertificateEntry) -> Result<CertificateUser, ConfigProblem> {
    let user = user_in(&entry.user)?;
    let fingerprint = match entry.fingerprint {
        Some(text) => {
            let digits = text.get_ref().replace(':', "").to_ascii_lowercase();
            if crate::token::TokenHash::parse(&digits).is_none() {
                let message = "a fingerprint must be a SHA-256 digest of 64 hexadecimal digits";
                return Err(problem(&text, message.to_owned()));
            }
            Some(digits)
        }
        None => None,
    };
    if entry.subject.is_none() && fingerprint.is_none() {
        let message = "a certificate needs a subject or a fingerprint";
        return Err(problem(&entry.user, message.to_owned()));
    }
    Ok(CertificateUser {
        user,
        subject: entry.subject,
        fingerprint,
    })
}

fn users_in(users: &[Spanned<String>]) -> Result<Vec<String>, ConfigProblem> {
    let is_special = |name: &str| name == ANONYMOUS || name == EVERY_USER;
    let checked = users.iter().map(|name| match is_special(name.get_ref()) {
        true => Ok(name.get_ref().clone()),
        false => user_in(name),
    });
    checked.collect()
}

fn user_in(name: &Spanned<String>) -> Result<String, ConfigProblem> {
    match is_user_name(name.get_ref()) {
        true => Ok(name.get_ref().clone()),
        false => {
            let message = format!("invalid user name '{}'", name.get_ref());
            Err(problem(name, message))
        }
    }
}

//! The check of a configuration (`serve --check`): what would prevent the start of a server, and what is
//! probably a mistake.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use pronto::Environment;
use pronto_wire::tls::CertificateDetails;
use rustix::fs::{Access, access};

use crate::access::{ANONYMOUS, AccessRole, EVERY_USER};
use crate::config::{ServerConfig, StoreConfig, TlsFiles};
use crate::names::RepositoryName;
use crate::repositories::Repositories;
use crate::secret::MissingKey;
use crate::setup::check_netsync;
use crate::users::Users;
use crate::{Error, ErrorKind, Result, cache_directory, netsync, ssh, tls};

/// The seconds before the end of a certificate in which it is worth a warning.
const EXPIRES_SOON: i64 = 14 * 24 * 3600;

/// The findings of a check.
#[derive(Debug, Default)]
#[non_exhaustive]
#[must_use]
pub struct ConfigFindings {
    /// The problems, because of which the server does not start or clients cannot use it.
    pub problems: Vec<Error>,
    /// The warnings: possible mistakes.
    pub warnings: Vec<String>,
}

impl ConfigFindings {
    /// Adds the error of a result.
    fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.problems.push(error);
                None
            }
        }
    }

    fn problem(&mut self, message: String) {
        self.problems.push(Error::new(ErrorKind::Config, message));
    }

    fn warn(&mut self, message: String) {
        self.warnings.push(message);
    }
}

/// Checks the files, directories, certificates, users and addresses that a configuration names.
pub fn check(config: &ServerConfig, environment: &Environment) -> ConfigFindings {
    let mut found = ConfigFindings::default();
    check_users(config, &mut found);
    found.take(check_netsync(config));
    match &config.store {
        Some(store) => check_store(store, environment, &mut found),
        None => check_root(config, environment, &mut found),
    }
    found.take(cache_directory::check(&config.cache));
    if !config.ssh.listen.is_empty() {
        found.take(ssh::setup(&config.ssh, MissingKey::Allow));
        check_key_place("host key", config.ssh.host_key.as_deref(), &mut found);
    }
    if !config.netsync.listen.is_empty() {
        found.take(netsync::key(&config.netsync, MissingKey::Allow));
        check_key_place("netsync key", config.netsync.key.as_deref(), &mut found);
    }
    if let Some(files) = &config.tls {
        check_tls(files, &mut found);
    }
    check_addresses(config, &mut found);
    found
}

/// Checks that the users that grants, rules and certificates name exist.
fn check_users(config: &ServerConfig, found: &mut ConfigFindings) {
    if let Some(directory) = config.users.parent() {
        check_directory("directory of the users file", directory, found);
    }
    let Some(known) = found.take(Users::read(&config.users)) else {
        return;
    };
    let grants = config.access.grants.iter();
    let grants = grants.flat_map(|grant| grant.users.iter().map(|name| ("a grant", name)));
    let rules = config
        .access
        .rules
        .iter()
        .filter_map(|rule| rule.users.as_ref());
    let rules = rules.flatten().map(|name| ("a rule", name));
    let certificates = config.certificates.iter();
    let certificates = certificates.map(|entry| ("a [[certificate]]", &entry.user));
    let mut seen = BTreeSet::new();
    for (place, name) in grants.chain(rules).chain(certificates) {
        let is_known = known.users.iter().any(|user| user.name == *name);
        if !is_known && name != ANONYMOUS && name != EVERY_USER && seen.insert(name) {
            found.warn(format!(
                "{place} names the user '{name}', who does not exist; 'user add {name}' adds the user"
            ));
        }
    }
}

/// Checks the directory of repositories, and that the repositories that the configuration names exist.
fn check_root(config: &ServerConfig, environment: &Environment, found: &mut ConfigFindings) {
    let Some(repositories) = found.take(Repositories::open(&config.root, environment)) else {
        return;
    };
    let grants = config.access.grants.iter();
    let roles: BTreeSet<_> = grants.map(|grant| grant.role).collect();
    let changes = roles.iter().any(|role| *role >= AccessRole::Write);
    if changes && access(&config.root, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let root = config.root.display();
        let message = format!("directory of repositories '{root}' is not writable");
        match config.create_on_push {
            true => found.problem(message),
            // Each repository has its own directory, which may be writable.
            false => found.warn(message),
        }
    }
    check_repositories(config, &repositories, found);
}

/// Checks that the repositories that grants, rules and quotas name without a wildcard exist.
fn check_repositories(
    config: &ServerConfig,
    repositories: &Repositories,
    found: &mut ConfigFindings,
) {
    let grants = config.access.grants.iter();
    let grants = grants.map(|grant| ("a grant", &grant.repository));
    let rules = config.access.rules.iter();
    let rules = rules.map(|rule| ("a rule", &rule.repository));
    let quotas = config.quotas.iter();
    let quotas = quotas.map(|quota| ("a quota", &quota.repository));
    let mut seen = BTreeSet::new();
    for (place, name) in grants.chain(rules).chain(quotas) {
        if name.contains(['*', '?', '[', '\\']) || !seen.insert(name) {
            continue;
        }
        if let Some(bare) = name.strip_suffix(".git") {
            found.warn(format!(
                "{place} names the repository '{name}', but names end without '.git'; use '{bare}'"
            ));
            continue;
        }
        let exists = RepositoryName::parse(name).is_ok_and(|name| repositories.find(&name).is_ok());
        if !exists {
            found.warn(format!(
                "{place} names the repository '{name}', which does not exist"
            ));
        }
    }
}

/// Checks that a store responds, and the directory of its cache.
fn check_store(store: &StoreConfig, environment: &Environment, found: &mut ConfigFindings) {
    if let Some(repositories) = found.take(Repositories::of_store(store, environment))
        && let Some(store) = repositories.store()
    {
        found.take(store.check());
    }
    // A check without a configuration names no cache.
    if !store.cache.as_os_str().is_empty() {
        let directory = nearest(&store.cache);
        check_directory("directory of the store's cache", &directory, found);
    }
}

/// Returns the path, or the nearest directory above it that exists.
fn nearest(path: &Path) -> PathBuf {
    let mut above = path.ancestors();
    let exists = above.find(|path| path.symlink_metadata().is_ok());
    exists.unwrap_or(path).to_owned()
}

/// Checks that a key file that does not exist can be created.
fn check_key_place(name: &str, path: Option<&Path>, found: &mut ConfigFindings) {
    if let Some(path) = path.filter(|path| !path.exists())
        && let Some(directory) = path.parent()
    {
        check_directory(&format!("directory of the {name}"), directory, found);
    }
}

/// Checks that a directory exists, and that files can be created there.
fn check_directory(name: &str, directory: &Path, found: &mut ConfigFindings) {
    let shown = directory.display();
    match std::fs::metadata(directory) {
        Err(error) => {
            let reason = pronto_io::error::reason(&error);
            found.problem(format!("{name} '{shown}': {reason}"));
        }
        Ok(data) if !data.is_dir() => found.problem(format!("{name} '{shown}' is no directory")),
        Ok(_) => {
            if access(directory, Access::WRITE_OK | Access::EXEC_OK).is_err() {
                found.problem(format!("{name} '{shown}' is not writable"));
            }
        }
    }
}

/// Checks that the certificate and the key belong together, and the dates of all certificates.
fn check_tls(files: &TlsFiles, found: &mut ConfigFindings) {
    if found.take(tls::acceptor(files)).is_none() {
        return;
    }
    let now = Timestamp::now().as_second();
    for path in std::iter::once(&files.certificate).chain(&files.client_ca) {
        let Some(certificates) = found.take(tls::certificates(path)) else {
            continue;
        };
        for (number, certificate) in certificates.iter().enumerate() {
            let place = match number {
                0 => format!("certificate '{}'", path.display()),
                _ => format!("certificate {} in '{}'", number + 1, path.display()),
            };
            if let Some(details) = CertificateDetails::of(certificate) {
                check_dates(&place, &details, now, found);
            }
        }
    }
}

fn check_dates(place: &str, details: &CertificateDetails, now: i64, found: &mut ConfigFindings) {
    let shown = |seconds| {
        Timestamp::from_second(seconds)
            .map_or_else(|_| seconds.to_string(), |time| time.to_string())
    };
    if now < details.not_before {
        let time = shown(details.not_before);
        found.problem(format!("{place} is not valid before {time}"));
    } else if now > details.not_after {
        found.problem(format!("{place} expired at {}", shown(details.not_after)));
    } else if details.not_after - now < EXPIRES_SOON {
        found.warn(format!("{place} expires at {}", shown(details.not_after)));
    }
}

/// Checks that the addresses can be used. A server that runs with this configuration has them in use.
fn check_addresses(config: &ServerConfig, found: &mut ConfigFindings) {
    let sections = [
        ("http", &config.http),
        ("daemon", &config.daemon),
        ("ssh", &config.ssh.listen),
        ("netsync", &config.netsync.listen),
        ("metrics", &config.metrics_listen),
    ];
    let all = sections
        .into_iter()
        .flat_map(|(section, addresses)| addresses.iter().map(move |address| (section, *address)));
    let mut listening: Vec<(SocketAddr, TcpListener)> = Vec::new();
    for (section, address) in all {
        if address.port() != 0 && listening.iter().any(|(other, _)| *other == address) {
            found.problem(format!("'listen' of [{section}]: {address} is used twice"));
            continue;
        }
        match TcpListener::bind(address) {
            Ok(socket) => listening.push((address, socket)),
            Err(error) => {
                let reason = pronto_io::error::reason(&error);
                found.warn(format!(
                    "'listen' of [{section}]: cannot listen on {address}: {reason}"
                ));
            }
        }
    }
}

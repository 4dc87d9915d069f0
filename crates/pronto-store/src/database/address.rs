//! Addresses of databases.

use std::fmt;
use std::path::PathBuf;

use pronto::Environment;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::hosts::PORT;
use super::password::{self, DatabaseUser};
use crate::{Error, ErrorKind, Result};

/// The largest length of the name of a store in bytes.
const LONGEST_STORE: usize = 1000;

/// The address of a database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…`. `Debug` and
/// messages never show the password.
#[derive(Clone)]
pub struct DatabaseAddress {
    pub(super) config: Config,
    /// The file with the certificates of authorities, which replace those of the system.
    pub(super) authorities: Option<PathBuf>,
    /// The name of the store in the table, or `None` for the URL of the store.
    pub(super) store: Option<String>,
    /// The host, port and database, for messages.
    pub(super) name: String,
}

impl DatabaseAddress {
    /// Parses an address in the format of PostgreSQL's programs. In addition to their parameters,
    /// `pronto_store` names the store, and `sslrootcert` a file with the certificates of
    /// authorities. The user and the password may be in the variables `PGUSER` and `PGPASSWORD` of
    /// `environment`, and the password in the file that `PGPASSFILE` names, or `~/.pgpass`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Options`] if `url` is not a valid address. The message does not
    /// contain the address, which may contain a password.
    pub fn parse(url: &str, environment: &Environment) -> Result<Self> {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        if !matches!(scheme, Some("postgres" | "postgresql")) {
            return Err(wrong("it does not begin with postgres://"));
        }
        let mut own = LocalParameters::default();
        let rest = own.take_from(url)?;
        let mut config: Config = rest.parse().map_err(|error| {
            // The error names a parameter, and never its value.
            let error: tokio_postgres::Error = error;
            let reason = std::error::Error::source(&error);
            wrong(&reason.map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        if config.get_hosts().is_empty() {
            return Err(wrong("it has no host"));
        }
        if config.get_user().is_none_or(str::is_empty) {
            let user = environment.text("PGUSER");
            let user = user.ok_or_else(|| wrong("it has no user, and PGUSER is not set"))?;
            config.user(user);
        }
        if config.get_application_name().is_none() {
            config.application_name("pronto");
        }
        config.ssl_mode(match own.is_encrypted(&config) {
            true => SslMode::Require,
            false => SslMode::Disable,
        });
        // A standby lags behind, and accepts no commits.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        let has_at = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
        if config.get_hosts().iter().any(has_at) {
            return Err(wrong("write '@' in the password as %40"));
        }
        let target = target_of(&config);
        if config.get_password().is_none()
            && let Some(found) = password::find(&target, environment)?
        {
            config.password(found);
        }
        Ok(DatabaseAddress {
            authorities: own.authorities.map(|path| environment.absolute(path)),
            store: own.store,
            name: target.to_string(),
            config,
        })
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn target_of(config: &Config) -> DatabaseUser {
    let user = config.get_user().unwrap_or_default();
    DatabaseUser {
        host: config.get_hosts().first().map_or_else(String::new, host),
        port: config.get_ports().first().copied().unwrap_or(PORT),
        database: config.get_dbname().unwrap_or(user).to_owned(),
        user: user.to_owned(),
    }
}

fn host(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

/// The parameters that are not passed to the PostgreSQL library.
#[derive(Default)]
struct LocalParameters {
    encrypts: Option<bool>,
    authorities: Option<PathBuf>,
    store: Option<String>,
}

impl LocalParameters {
    /// Extracts these parameters, and returns the address without them.
    fn take_from(&mut self, url: &str) -> Result<String> {
        let Some((address, query)) = url.split_once('?') else {
            return Ok(url.to_owned());
        };
        let mut others = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "sslmode" => self.encrypts = Some(encrypts(value)?),
                "sslrootcert" => self.authorities = Some(decode(value)?.into()),
                "pronto_store" => {
                    let store = decode(value)?;
                    if store.is_empty() || store.len() > LONGEST_STORE {
                        return Err(wrong("pronto_store must have 1 to 1000 characters"));
                    }
                    self.store = Some(store);
                }
                _ => others.push(parameter),
            }
        }
        Ok(match others.is_empty() {
            true => address.to_owned(),
            false => format!("{address}?{}", others.join("&")),
        })
    }

    /// Returns whether connections are encrypted. By default, connections to another machine are.
    fn is_encrypted(&self, config: &Config) -> bool {
        let is_here = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => {
                let is_loopback = |address: std::net::IpAddr| address.is_loopback();
                name == "localhost" || name.parse().is_ok_and(is_loopback)
            }
        };
        // If `hostaddr` is given, connections are made to it, independent of `host`.
        let mut addresses = config.get_hostaddrs().iter();
        self.encrypts.unwrap_or_else(|| {
            !config.get_hosts().iter().all(is_here) || addresses.any(|it| !it.is_loopback())
        })
    }
}

fn encrypts(mode: &str) -> Result<bool> {
    match mode {
        "disable" => Ok(false),
        // The name in the certificate is always verified.
        "require" | "verify-full" => Ok(true),
        _ => Err(wrong(
            "sslmode must be 'disable', 'require' or 'verify-full'; the last two are equivalent",
        )),
    }
}

/// Decodes `%XX`.
fn decode(text: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.ok_or_else(|| wrong("'%' must be followed by two hexadecimal digits"))?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong("a parameter is not UTF-8"))
}

fn wrong(why: &str) -> Error {
    let message = format!("invalid database URL: {why}");
    let hint =
        "use postgres://USER@HOST:PORT/DATABASE, and keep the password in ~/.pgpass or PGPASSWORD";
    Error::new(ErrorKind::Options, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<DatabaseAddress> {
        DatabaseAddress::parse(url, &Environment::empty("/work"))
    }

    #[test]
    fn addresses_name_a_database_and_hide_the_password() {
        let url = "postgres://ann:se%20cret@db.example:6000/git?sslrootcert=ca.pem&pronto_store=one%2Ftwo&connect_timeout=3";
        let found = parse(url).expect("valid");
        assert_eq!(found.name, "database 'git' at 'db.example:6000'");
        assert!(!format!("{found:?}").contains("cret"), "{found:?}");
        assert_eq!(found.config.get_password(), Some(&b"se cret"[..]));
        assert_eq!(found.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(found.authorities, Some("/work/ca.pem".into()));
        assert_eq!(found.store.as_deref(), Some("one/two"));
        for (url, mode) in [
            ("postgres://ann@localhost/git", SslMode::Disable),
            ("postgres://ann@[::1]/git", SslMode::Disable),
            ("postgresql://ann@%2Frun%2Fpostgresql/git", SslMode::Disable),
            (
                "postgres://ann@localhost/git?sslmode=require",
                SslMode::Require,
            ),
            ("postgres://ann@localhost,db/git", SslMode::Require),
            ("postgres://ann@db/git?sslmode=disable", SslMode::Disable),
            (
                "postgres://ann@localhost/git?hostaddr=203.0.113.5",
                SslMode::Require,
            ),
            (
                "postgres://ann@localhost/git?hostaddr=127.0.0.1",
                SslMode::Disable,
            ),
        ] {
            let found = parse(url).expect(url);
            assert_eq!(found.config.get_ssl_mode(), mode, "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for bad in [
            "s3://secret/x",
            "postgres://ann:secret@/git",
            "postgres://:secret@db/git",
            "postgres://ann:secret@db:port/git",
            "postgres://ann:sec@secret@db/git",
            "postgres://ann:secret@db/git?sslmode=prefer",
            "postgres://ann:secret@db/git?sslmode=verify-ca",
            "postgres://ann:secret@db/git?sslrootcert=%2",
            "postgres://ann:secret@db/git?pronto_store=",
            "postgres://ann:secret@db/git?nonsense=secret",
        ] {
            let error = parse(bad).expect_err(bad);
            assert_eq!(error.kind(), ErrorKind::Options, "{bad}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}

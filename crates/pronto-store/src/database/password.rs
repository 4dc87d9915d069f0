//! Passwords from the variable `PGPASSWORD`, and from the password file of PostgreSQL's programs.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;

use pronto::Environment;
use pronto_io::untrusted::{self, SymlinkPolicy};

use crate::{Error, ErrorKind, Result};

/// The largest size in bytes of the password file.
const LARGEST_BYTES: u64 = 1 << 20;

/// A database and its user.
pub(super) struct DatabaseUser {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) database: String,
    pub(super) user: String,
}

impl fmt::Display for DatabaseUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (database, host, port) = (&self.database, &self.host, self.port);
        write!(f, "database '{database}' at '{host}:{port}'")
    }
}

/// Returns the password for `target`, or `None` if no password is given.
///
/// # Errors
/// Fails with [`ErrorKind::Options`] if the file cannot be read, or is readable by other users.
pub(super) fn find(target: &DatabaseUser, environment: &Environment) -> Result<Option<Vec<u8>>> {
    if let Some(password) = environment.bytes("PGPASSWORD") {
        return Ok(Some(password.to_vec()));
    }
    let own = || environment.home().map(|home| home.join(".pgpass"));
    let given = environment.path("PGPASSFILE");
    let given = given.map(|path| environment.absolute(path));
    let Some(path) = given.or_else(own) else {
        return Ok(None);
    };
    let wrong = |why: &str| {
        let message = format!("cannot use password file '{}': {why}", path.display());
        Error::new(ErrorKind::Options, message)
    };
    let file = match untrusted::open(&path, SymlinkPolicy::Follow) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(&pronto_io::error::reason(&error))),
    };
    let bytes = untrusted::read_open(&file, LARGEST_BYTES);
    let bytes = bytes.map_err(|error| wrong(&pronto_io::error::reason(&error)))?;
    let found = file.metadata();
    let found = found.map_err(|error| wrong(&pronto_io::error::reason(&error)))?;
    let mode = found.mode();
    if mode & 0o077 != 0 {
        let hint = format!("chmod 600 {}", path.display());
        return Err(wrong("the file is readable by other users").with_hint(hint));
    }
    Ok(bytes
        .split(|byte| *byte == b'\n')
        .find_map(|line| password(line, target)))
}

/// Returns the password of a line `HOST:PORT:DATABASE:USER:PASSWORD` if the line matches `target`.
/// A star matches any value, and a backslash escapes a colon or a backslash.
fn password(line: &[u8], target: &DatabaseUser) -> Option<Vec<u8>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.starts_with(b"#") {
        return None;
    }
    let host = match target.host.starts_with('/') {
        // The file uses this name for the default directory of sockets.
        true if target.host == "/var/run/postgresql" || target.host == "/tmp" => "localhost",
        _ => &target.host,
    };
    let port = target.port.to_string();
    let mut rest = line;
    for wanted in [host, &port, &target.database, &target.user] {
        let (found, after) = field(rest)?;
        if rest.get(..2) != Some(b"*:") && found != wanted.as_bytes() {
            return None;
        }
        rest = after;
    }
    Some(field(rest).map_or_else(|| unescape(rest), |(password, _)| password))
}

/// Returns the field before the next colon, and the rest of the line.
fn field(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut at = 0;
    loop {
        match line.get(at)? {
            b':' => return Some((unescape(&line[..at]), &line[at + 1..])),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => *bytes.next().unwrap_or(byte),
            _ => *byte,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn lines_are_for_a_host_a_database_and_a_user() {
        let target = DatabaseUser {
            host: "db".into(),
            port: 5432,
            database: "git".into(),
            user: "a:b".into(),
        };
        for (line, expected) in [
            (r"db:5432:git:a\:b:secret", Some("secret")),
            (r"*:*:*:*:se\:c\\ret", Some(r"se:c\ret")),
            ("*:*:*:*:secret\r", Some("secret")),
            (r"other:5432:git:a\:b:secret", None),
            (r"db:5433:git:a\:b:secret", None),
            ("db:5432:git", None),
            ("#*:*:*:*:secret", None),
            ("", None),
        ] {
            let found = password(line.as_bytes(), &target);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{line}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("pass");
        std::fs::write(&path, "*:*:*:*:secret\n").expect("writable");
        let mut environment = Environment::empty("/");
        environment.set("PGPASSFILE", &path);
        let target = DatabaseUser {
            host: "db".into(),
            port: 1,
            database: "x".into(),
            user: "y".into(),
        };
        let set_mode = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("its own");
        };
        set_mode(0o640);
        let error = find(&target, &environment).expect_err("too open");
        assert!(error.hint().is_some_and(|hint| hint.contains("chmod 600")));
        set_mode(0o600);
        let found = find(&target, &environment).expect("readable");
        assert_eq!(found.as_deref(), Some(&b"secret"[..]));
        environment.set("PGPASSWORD", "other");
        let found = find(&target, &environment).expect("readable");
        assert_eq!(found.as_deref(), Some(&b"other"[..]));
    }
}

//! Queries databases of the system with `getent`, a program of the C library.
//!
//! `/etc/nsswitch.conf` configures the sources of these databases (files, LDAP, SSSD, systemd,
//! DNS). The C library loads a library for each source. A static program cannot do that, because
//! these libraries must match the version of the C library.

use std::io;
use std::process::Stdio;

use crate::child;

/// Returns the output of `getent` for `key` in a database (`passwd`, `ahosts`). The output is empty
/// if there is no such entry. Returns `None` if the system has no `getent`, or if the key cannot be
/// the name of an entry.
///
/// Starts a process.
///
/// # Errors
/// Fails with the error of the system if the program cannot be started or its output cannot be
/// read.
pub fn lines(database: &str, key: &str) -> io::Result<Option<Vec<u8>>> {
    // An empty key would list all entries, and a key with a leading dash would be an option.
    if key.is_empty() || key.starts_with('-') || key.contains('\0') {
        return Ok(None);
    }
    let mut command = child::command("getent");
    let command = command.args([database, key]);
    let command = command.stdin(Stdio::null()).stderr(Stdio::null());
    match command.output() {
        Ok(output) => Ok(Some(output.stdout)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_no_names_are_not_asked_for() {
        for key in ["", "-h", "--help", "a\0b"] {
            assert_eq!(lines("passwd", key).expect("nothing starts"), None);
        }
    }
}

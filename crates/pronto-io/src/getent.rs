//! Asks `getent`, the program of the C library that looks names up in the databases of the system.
//!
//! `/etc/nsswitch.conf` says where these have their entries (files, LDAP, SSSD, systemd, DNS). The C library loads libraries
//! for that, which a static program cannot do, and which must have the version of the C library.

use std::io;
use std::process::Stdio;

use crate::child;

/// Returns what `getent` prints about `key` in a database (`passwd`, `ahosts`); nothing if there is no such entry. `None` if
/// there is no such program on this system, or the key could not be the name of an entry.
///
/// Starts a process.
///
/// # Errors
/// The program cannot be started or read.
pub fn lines(database: &str, key: &str) -> io::Result<Option<Vec<u8>>> {
    // A key that is empty asks for all entries, and one with a dash is an option.
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

//! User accounts of the system: those in `/etc/passwd`, and those from other sources (LDAP, SSSD,
//! systemd).
//!
//! The accounts of other sources are queried with `getent` ([`pronto_io::getent`]).

use bstr::{BString, ByteSlice};
use pronto_io::getent;

/// A user account of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemAccount {
    /// The login name.
    pub login: BString,
    /// The full name of the user (the GECOS field), which may be empty.
    pub full_name: BString,
    /// The home directory.
    pub home: BString,
}

const ACCOUNTS: &str = "/etc/passwd";

/// Returns the account with the login name `login`.
///
/// Reads `/etc/passwd`, and runs `getent` if the account is not in the file.
pub fn named(login: &[u8]) -> Option<SystemAccount> {
    let key = login.to_str().ok()?;
    find_account(key, |fields| fields[0] == login)
}

/// Returns the account of the real user id of this process. Costs the same as [`named`].
pub fn own() -> Option<SystemAccount> {
    let user = rustix::process::getuid().as_raw().to_string();
    find_account(&user, |fields| fields[2] == user.as_bytes())
}

fn find_account(key: &str, wanted: impl Fn(&[&[u8]]) -> bool) -> Option<SystemAccount> {
    let listed = std::fs::read(ACCOUNTS).ok();
    listed
        .and_then(|table| find_in(&table, &wanted))
        .or_else(|| find_in(&getent::lines("passwd", key).ok()??, &wanted))
}

fn find_in(table: &[u8], wanted: impl Fn(&[&[u8]]) -> bool) -> Option<SystemAccount> {
    table.lines().find_map(|line| {
        let fields: Vec<&[u8]> = line.split_str(":").collect();
        if fields.len() < 6 || !wanted(&fields) {
            return None;
        }
        let full_name = fields[4].split_str(",").next().unwrap_or_default();
        Some(SystemAccount {
            login: fields[0].into(),
            full_name: full_name.replace("&", fields[0]).into(),
            home: fields[5].into(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_account() {
        let table = b"broken\nann:x:7:7:Ann & Co,room 1:/home/ann:/bin/sh\n";
        let found = find_in(table, |fields| fields[2] == b"7").expect("an account");
        assert_eq!(found.login, "ann");
        assert_eq!(found.full_name, "Ann ann Co");
        assert_eq!(found.home, "/home/ann");
        assert_eq!(find_in(table, |fields| fields[0] == b"7"), None);
    }
}

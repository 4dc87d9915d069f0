//! Accounts of the system, as `/etc/passwd` lists them.

use bstr::{BString, ByteSlice};

/// An account of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name to log in with.
    pub login: BString,
    /// The name of the person, as far as the system knows it.
    pub full_name: BString,
    /// The home directory.
    pub home: BString,
}

const ACCOUNTS: &str = "/etc/passwd";

/// The account with this login name.
pub fn named(login: &[u8]) -> Option<Account> {
    find_account(|fields| fields[0] == login)
}

/// The account that this process runs under.
pub fn own() -> Option<Account> {
    let user = rustix::process::getuid().as_raw().to_string();
    find_account(|fields| fields[2] == user.as_bytes())
}

fn find_account(wanted: impl Fn(&[&[u8]]) -> bool) -> Option<Account> {
    let table = std::fs::read(ACCOUNTS).ok()?;
    table.lines().find_map(|line| {
        let fields: Vec<&[u8]> = line.split_str(":").collect();
        if fields.len() < 6 || !wanted(&fields) {
            return None;
        }
        let full_name = fields[4].split_str(",").next().unwrap_or_default();
        Some(Account {
            login: fields[0].into(),
            full_name: full_name.replace("&", fields[0]).into(),
            home: fields[5].into(),
        })
    })
}

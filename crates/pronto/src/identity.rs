//! Who someone is: accounts of the system, and the author and committer of what is recorded.

use std::path::PathBuf;

use bstr::{BString, ByteSlice};

/// An account of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// The name to log in with.
    pub(crate) login: BString,
    /// The name of the person, as far as the system knows it.
    pub(crate) full_name: BString,
    /// The home directory.
    pub(crate) home: BString,
}

const ACCOUNTS: &str = "/etc/passwd";

/// The account with this login name.
pub(crate) fn account_named(login: &[u8]) -> Option<Account> {
    find_account(|fields| fields[0] == login)
}

fn find_account(wanted: impl Fn(&[&[u8]]) -> bool) -> Option<Account> {
    let table = std::fs::read(PathBuf::from(ACCOUNTS)).ok()?;
    table.lines().find_map(|line| {
        let fields: Vec<&[u8]> = line.split_str(":").collect();
        if fields.len() < 6 || !wanted(&fields) {
            return None;
        }
        let full_name = fields[4].split_str(",").next().unwrap_or_default();
        let (login, home) = (fields[0].into(), fields[5].into());
        Some(Account {
            login,
            full_name: full_name.into(),
            home,
        })
    })
}

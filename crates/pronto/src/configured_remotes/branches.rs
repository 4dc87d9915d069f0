//! The settings of local branches that name remotes (`branch.NAME.*`).

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use crate::config::{Key, canonical, value};
use crate::{Repository, Result};
use pronto_repository::Notice;

/// The way in which a pull changes a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rebase {
    /// A pull merges.
    #[default]
    No,
    /// A pull rebases.
    Yes,
    /// A pull rebases, with an editor for the list of commits.
    Interactive,
    /// A pull rebases and keeps merges.
    Merges,
}

impl Rebase {
    fn parse(value: &BStr) -> Option<Self> {
        if let Some(decided) = value::parse_bool(Some(value)) {
            return Some(match decided {
                true => Rebase::Yes,
                false => Rebase::No,
            });
        }
        match value.as_bytes() {
            b"merges" | b"m" => Some(Rebase::Merges),
            b"interactive" | b"i" => Some(Rebase::Interactive),
            _ => None,
        }
    }
}

/// A local branch and what is configured for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Branch {
    /// Its short name.
    pub name: BString,
    /// The remote that it follows.
    pub remote: Option<BString>,
    /// The remote that it is pushed to.
    pub push_remote: Option<BString>,
    /// The branches of the remote that a pull takes, by their short names.
    pub merges: Vec<BString>,
    /// The way in which a pull changes it.
    pub rebase: Rebase,
}

/// All configured branches, sorted by name. Doubtful settings are reported.
///
/// # Errors
/// A setting lacks a value.
pub(super) fn read(repository: &Repository) -> Result<Vec<Branch>> {
    let mut branches: BTreeMap<BString, Branch> = BTreeMap::new();
    for entry in repository.config().iter() {
        let key = Key::split(entry.key);
        let Some(name) = key.subsection.filter(|_| key.section == "branch") else {
            continue;
        };
        let variable = key.variable.as_bytes();
        if !matches!(variable, b"remote" | b"merge" | b"rebase" | b"pushremote") {
            continue;
        }
        let text = match variable {
            b"rebase" => entry.value.unwrap_or(BStr::new("true")),
            _ => entry.string()?,
        };
        let branch = branches.entry(name.into()).or_default();
        branch.name = name.into();
        let once = |slot: &mut Option<BString>| {
            if slot.is_some() {
                let key = canonical(entry.key).unwrap_or_else(|_| entry.key.into());
                repository.notify(Notice::SetTwice(key));
            }
            *slot = Some(text.into());
        };
        match variable {
            b"remote" => once(&mut branch.remote),
            b"pushremote" => once(&mut branch.push_remote),
            b"merge" => {
                let names = text.split(|&byte| byte == b' ');
                branch.merges.extend(names.map(|name| short(name).into()));
            }
            _ => match Rebase::parse(text) {
                Some(rebase) => branch.rebase = rebase,
                None => {
                    repository.notify(Notice::UnknownRebase {
                        branch: name.into(),
                        value: text.into(),
                    });
                    branch.rebase = Rebase::No;
                }
            },
        }
    }
    Ok(branches.into_values().collect())
}

/// The name of a branch without `refs/heads/`.
pub(super) fn short(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"refs/heads/").unwrap_or(name)
}

//! The settings of local branches that name remotes (`branch.NAME.*`).

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use crate::config::{ConfigKey, canonical, value};
use crate::{Repository, Result};
use pronto_repository::Notice;

/// The mode in which `git pull` integrates into a branch (`branch.NAME.rebase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullRebase {
    /// A pull merges (`false`).
    #[default]
    No,
    /// A pull rebases (`true`).
    Yes,
    /// A pull rebases interactively (`interactive`).
    Interactive,
    /// A pull rebases and recreates merge commits (`merges`).
    Merges,
}

impl PullRebase {
    fn parse(value: &BStr) -> Option<Self> {
        if let Some(decided) = value::parse_bool(Some(value)) {
            return Some(match decided {
                true => PullRebase::Yes,
                false => PullRebase::No,
            });
        }
        match value.as_bytes() {
            b"merges" | b"m" => Some(PullRebase::Merges),
            b"interactive" | b"i" => Some(PullRebase::Interactive),
            _ => None,
        }
    }
}

/// A local branch with its settings (`branch.NAME.*`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfiguredBranch {
    /// The name of the branch, without `refs/heads/`.
    pub name: BString,
    /// The upstream remote (`branch.NAME.remote`).
    pub remote: Option<BString>,
    /// The remote for pushes (`branch.NAME.pushRemote`).
    pub push_remote: Option<BString>,
    /// The branches of the remote that a pull merges (`branch.NAME.merge`), without `refs/heads/`.
    pub merges: Vec<BString>,
    /// The mode in which a pull integrates into the branch (`branch.NAME.rebase`).
    pub rebase: PullRebase,
}

/// Reads all configured branches, sorted by name. Sends a notice for each unusual setting.
///
/// # Errors
/// Fails if a setting lacks a value.
pub(super) fn read(repository: &Repository) -> Result<Vec<ConfiguredBranch>> {
    let mut branches: BTreeMap<BString, ConfiguredBranch> = BTreeMap::new();
    for entry in repository.config().iter() {
        let key = ConfigKey::split(entry.key);
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
            _ => match PullRebase::parse(text) {
                Some(rebase) => branch.rebase = rebase,
                None => {
                    repository.notify(Notice::UnknownRebase {
                        branch: name.into(),
                        value: text.into(),
                    });
                    branch.rebase = PullRebase::No;
                }
            },
        }
    }
    Ok(branches.into_values().collect())
}

/// Returns the name of a branch without `refs/heads/`.
pub(super) fn short(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"refs/heads/").unwrap_or(name)
}

//! Lists the configured remotes of a repository, and changes their settings and refs
//! (`git remote`). The module [`remote`](crate::remote) connects to a remote and fetches from it.
//!
//! Changes of one remote are made in one edit of the configuration file of the repository, under
//! its lock file, so that other processes and threads see all of the changes or none. A
//! [`Repository`] that is open keeps the configuration from before the change. An edit costs
//! reading and writing that file; a change of remote-tracking refs costs an iteration over the refs
//! of the remote.

mod add;
mod branches;
mod file;
mod head;
mod prune;
mod pushes;
mod remove;
mod rename;
mod server;
mod state;
mod urls;

use bstr::{BStr, BString, ByteSlice};

use crate::config::{ConfigKey, ConfigScope};
use crate::push::PushRemote;
use crate::remote::Remote;
use crate::{Repository, Result};

pub use add::{AddRemoteOptions, Mirror, add, track_branches};
pub use branches::{ConfiguredBranch, PullRebase};
pub use head::{HeadChange, delete_head, heads, set_head};
pub use prune::{PrunedRefs, prune};
pub use pushes::{ConfiguredPush, PushState};
pub use remove::{RemovedRemote, remove};
pub use rename::{Renamed, rename};
pub use state::{BranchState, Counterpart, RemoteState, state};
pub use urls::{Kind, UrlChange, change_url};

/// A remote as `git remote -v` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteListing {
    /// The name of the remote.
    pub name: BString,
    /// The fetch URL (`remote.NAME.url`), if there is one.
    pub url: Option<BString>,
    /// The filter of a partial clone (`remote.NAME.partialCloneFilter`).
    pub filter: Option<BString>,
    /// The push URLs (`remote.NAME.pushUrl`, or else `remote.NAME.url`).
    pub push_urls: Vec<BString>,
}

/// A configured `remote.pushDefault` that names a removed or renamed remote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StaleDefault {
    /// The scope of the configuration file, such as `global`.
    pub scope: ConfigScope,
    /// The kind of source, as `git config --show-origin` names it.
    pub source: &'static str,
    /// The line number of the setting.
    pub line: u32,
    /// The name of the remote.
    pub name: BString,
}

/// Returns the configured remotes, sorted by name, like `git remote -v`.
///
/// # Errors
/// Fails with `ErrorKind::ConfigValue` if a setting of a remote is malformed.
pub fn list(repository: &Repository) -> Result<Vec<RemoteListing>> {
    let config = repository.config();
    let mut listings = Vec::new();
    for name in config.subsections("remote") {
        let remote = Remote::configured(config, name)?;
        let filter = remote.partial_clone_filter.clone();
        let url = remote.urls.first().cloned();
        let push_urls = PushRemote::of(repository, remote)?.urls;
        listings.push(RemoteListing {
            name: name.into(),
            url,
            filter,
            push_urls,
        });
    }
    listings.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listings)
}

/// Returns the remote called `name`, if the repository itself configures it: in its configuration
/// file, or in a file below `remotes/` or `branches/`.
///
/// # Errors
/// Fails if a setting of the remote is malformed, or if a file cannot be read.
pub fn find(repository: &Repository, name: &BStr) -> Result<Option<Remote>> {
    let remote = Remote::find(repository, name)?;
    let is_own = remote.file.is_some() || is_in_section(repository, name);
    Ok(is_own.then_some(remote))
}

/// Whether a section of the repository's own configuration file describes the remote.
fn is_in_section(repository: &Repository, name: &BStr) -> bool {
    repository.config().iter().any(|entry| {
        let key = ConfigKey::split(entry.key);
        key.section == "remote"
            && key.subsection == Some(name)
            && matches!(
                entry.origin.scope,
                ConfigScope::Local | ConfigScope::Worktree
            )
    })
}

/// The configuration key `remote.NAME.VARIABLE`.
fn key(name: &BStr, variable: &str) -> BString {
    [b"remote.", name.as_bytes(), b".", variable.as_bytes()]
        .concat()
        .into()
}

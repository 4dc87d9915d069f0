//! The configured remotes of a repository: lists them, and changes their settings and refs
//! (`git remote`). How one remote is reached and fetched from is in [`remote`](crate::remote).
//!
//! Changes of one remote are made in one edit of the configuration file of the repository, under its
//! lock, so that other processes and threads see all of them or none. The configuration that
//! [`Repository`] holds is the one from before. An edit costs reading and writing that file; changes of
//! tracking refs cost a pass over the refs of the remote.

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

use crate::config::{Key, Scope};
use crate::push::Destination;
use crate::remote::Remote;
use crate::{Repository, Result};

pub use add::{AddOptions, Mirror, add, track_branches};
pub use branches::{Branch, Rebase};
pub use head::{HeadChange, delete_head, heads, set_head};
pub use prune::{Pruned, prune};
pub use pushes::{PushState, Pushed};
pub use remove::{Removed, remove};
pub use rename::{Renamed, rename};
pub use state::{Counterpart, Standing, State, state};
pub use urls::{Kind, UrlChange, change_url};

/// A remote as `git remote -v` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// Its name.
    pub name: BString,
    /// The URL that is fetched from, if there is one.
    pub url: Option<BString>,
    /// The filter of a partial clone.
    pub filter: Option<BString>,
    /// The URLs that are pushed to.
    pub push_urls: Vec<BString>,
}

/// A configured `remote.pushDefault` that names a remote which is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StaleDefault {
    /// The scope of the configuration.
    pub scope: Scope,
    /// The kind of source, as `git config --show-origin` names it.
    pub source: &'static str,
    /// The line.
    pub line: u32,
    /// The name of the remote.
    pub name: BString,
}

/// The configured remotes, sorted by name.
///
/// # Errors
/// A value is malformed.
pub fn list(repository: &Repository) -> Result<Vec<Listing>> {
    let config = repository.config();
    let mut listings = Vec::new();
    for name in config.subsections("remote") {
        let remote = Remote::configured(config, name)?;
        let filter = remote.partial_clone_filter.clone();
        let url = remote.urls.first().cloned();
        let push_urls = Destination::of(repository, remote)?.urls;
        listings.push(Listing {
            name: name.into(),
            url,
            filter,
            push_urls,
        });
    }
    listings.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listings)
}

/// The remote called `name`, if the repository itself configures it: in its configuration file, or
/// in a file below `remotes/` or `branches/`.
///
/// # Errors
/// A value is malformed, or a file cannot be read.
pub fn find(repository: &Repository, name: &BStr) -> Result<Option<Remote>> {
    let remote = Remote::find(repository, name)?;
    let is_own = remote.file.is_some() || is_in_section(repository, name);
    Ok(is_own.then_some(remote))
}

/// Whether a section of the repository's configuration describes the remote.
fn is_in_section(repository: &Repository, name: &BStr) -> bool {
    repository.config().iter().any(|entry| {
        let key = Key::split(entry.key);
        key.section == "remote"
            && key.subsection == Some(name)
            && matches!(entry.origin.scope, Scope::Local | Scope::Worktree)
    })
}

/// The key of a setting of the remote `name`.
fn key(name: &BStr, variable: &str) -> BString {
    [b"remote.", name.as_bytes(), b".", variable.as_bytes()]
        .concat()
        .into()
}

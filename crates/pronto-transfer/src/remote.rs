//! Remotes: other repositories, with their URLs, refspecs and settings.

use bstr::{BStr, BString, ByteSlice};

use crate::config::Config;
use crate::{Error, ErrorKind, Repository, Result};

mod absent;
mod alternates;
mod bundle;
mod common;
pub mod connection;
mod connectivity;
mod credentials;
mod files;
mod foreign;
mod lazy;
mod lookup;
mod negotiate;
mod offer;
mod on_demand;
mod partial;
mod promised_links;
mod receive;
mod refspec;
mod settings;
mod stale;
mod web;

pub use absent::{Absent, FetchedTips, incomplete};
pub use alternates::alternate_tips;
pub use bundle::{FROM_BUNDLE, FailureLine, Fitness, failure_lines, require, unusable, verify};
pub use common::common_commits;
pub use connectivity::{Cuts, PackLinks, is_connected};
pub use lazy::{Exact, check_promisors};
pub use negotiate::NegotiationHistory;
pub(crate) use negotiate::negotiator;
pub use offer::{NegotiationTips, OfferOptions};
pub use on_demand::fetch_on_demand;
pub(crate) use partial::register as register_promisor;
pub use partial::{combined_filter, filter_spec, has_whole_history};
pub use promised_links::keep as keep_linked_objects;
pub use pronto_repository::shallow;
pub use pronto_wire::fetch::{Deepen, INFINITE_DEPTH};
pub use pronto_wire::netrc;
pub use pronto_wire::transport::AddressFamily;
pub use receive::{Both, Receive, Unpack, checks_objects, receive_pack, unpack_limit};
pub(crate) use receive::{ReceivedFile, fsck_levels, receive_stream};
pub use refspec::Refspec;
pub use refspec::local_name;
pub use stale::{Dangling, dangling_refs, stale_refs};

/// The tags that a fetch takes (`remote.NAME.tagOpt`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tags {
    /// Fetch tags that point to fetched objects.
    #[default]
    Follow,
    /// Fetch all tags (`--tags`).
    All,
    /// Fetch only tags that a refspec matches (`--no-tags`).
    None,
}

/// The mode of updating `refs/remotes/NAME/HEAD` (`remote.NAME.followRemoteHEAD`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FollowHead {
    /// Never update the ref (`never`), like Git up to version 2.47.
    Never,
    /// Create the ref if it is missing (`create`).
    #[default]
    Create,
    /// Always update the ref (`always`).
    Always,
}

/// Another repository, configured as `remote.NAME` or given by its URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// The name, or the URL if the remote has no name.
    pub name: BString,
    /// The URLs (`remote.NAME.url`), rewritten by `url.BASE.insteadOf`. Fetches use the first one.
    pub urls: Vec<BString>,
    /// The fetch refspecs (`remote.NAME.fetch`).
    pub fetch: Vec<Refspec>,
    /// The push refspecs from a file below `remotes/` or `branches/`.
    pub push: Vec<BString>,
    /// The tags to fetch (`remote.NAME.tagOpt`).
    pub tags: Option<Tags>,
    /// Delete stale remote-tracking refs in a fetch (`remote.NAME.prune`).
    pub prune: Option<bool>,
    /// Delete stale tags in a fetch (`remote.NAME.pruneTags`).
    pub prune_tags: Option<bool>,
    /// The program on the remote side (`remote.NAME.uploadpack`).
    pub upload_pack: Option<BString>,
    /// The HTTP proxy; empty for no proxy (`remote.NAME.proxy`).
    pub proxy: Option<BString>,
    /// Protocol-specific values for the server (`remote.NAME.serverOption`).
    pub server_options: Vec<BString>,
    /// The revisions, or ref patterns, whose history is sent as haves in a negotiation
    /// (`remote.NAME.negotiationRestrict`).
    pub negotiation_restrict: Vec<BString>,
    /// The commits, or ref patterns, that are always sent as haves in a negotiation
    /// (`remote.NAME.negotiationInclude`).
    pub negotiation_include: Vec<BString>,
    /// Whether the remote is a promisor, which has the missing objects of a partial clone
    /// (`remote.NAME.promisor`).
    pub promisor: bool,
    /// The filter of a partial clone (`remote.NAME.partialCloneFilter`).
    pub partial_clone_filter: Option<BString>,
    /// Skip the remote in `fetch --all` (`remote.NAME.skipFetchAll`).
    pub skip_fetch_all: bool,
    /// The mode of updating `refs/remotes/NAME/HEAD` (`remote.NAME.followRemoteHEAD`).
    pub follow_head: FollowHead,
    /// Whether the remote is a mirror (`remote.NAME.mirror`).
    pub is_mirror: bool,
    /// The directory, `remotes` or `branches`, with the file that describes the remote, if there is
    /// one.
    pub file: Option<&'static str>,
    /// Whether the remote is configured, and not given by its URL.
    pub is_configured: bool,
}

impl Remote {
    /// Returns the remote called `name`, or a remote with the URL `name` if there is none.
    ///
    /// # Errors
    /// Fails if a setting is malformed.
    pub fn find(repository: &Repository, name: &BStr) -> Result<Self> {
        let mut remote = Self::known(repository, name)?;
        if remote.urls.is_empty() {
            remote.urls = vec![rewritten(repository.config(), name)];
        }
        Ok(remote)
    }

    /// Does the same as [`find`](Self::find) without a repository.
    ///
    /// # Errors
    /// Fails if a setting is malformed.
    pub fn find_without_repository(config: &Config, name: &BStr) -> Result<Self> {
        let mut remote = Self::configured(config, name)?;
        if remote.urls.is_empty() {
            remote.urls = vec![rewritten(config, name)];
        }
        Ok(remote)
    }

    /// Returns the remote called `name`, as the configuration or a file below `remotes/` or
    /// `branches/` describes it. An unknown remote has no URL.
    ///
    /// # Errors
    /// Fails if a setting is malformed, or a file cannot be read.
    pub fn known(repository: &Repository, name: &BStr) -> Result<Self> {
        let mut remote = Self::configured(repository.config(), name)?;
        if remote.urls.is_empty() {
            files::read(repository, &mut remote)?;
        }
        Ok(remote)
    }

    /// Returns the default remote for fetches: `branch.NAME.remote` of the current branch, which
    /// may be a URL, or the only remote, or `origin`, which may have no URL.
    ///
    /// # Errors
    /// Fails if `HEAD` or a file cannot be read, or a setting is malformed.
    pub fn default_of(repository: &Repository) -> Result<Self> {
        match Self::name_of_branch(repository)? {
            Some(name) => Self::find(repository, name.as_bstr()),
            None => Self::known(repository, Self::default_name(repository)?.as_bstr()),
        }
    }

    fn name_of_branch(repository: &Repository) -> Result<Option<BString>> {
        let head = repository.refs().head()?;
        let Some(branch) = head.branch() else {
            return Ok(None);
        };
        let key = [b"branch.", branch.as_bytes(), b".remote"].concat();
        let name = repository.config().string(key)?;
        Ok(name.map(BStr::to_owned))
    }

    /// Returns the remote called `name` with its settings in `config`.
    ///
    /// # Errors
    /// Fails if a setting is malformed.
    pub fn configured(config: &Config, name: &BStr) -> Result<Self> {
        let key =
            |variable: &str| [b"remote.", name.as_bytes(), b".", variable.as_bytes()].concat();
        let mut remote = Remote {
            name: name.into(),
            ..Remote::default()
        };
        if name.is_empty() {
            return Ok(remote);
        }
        let urls = config.list(key("url"));
        remote.urls = urls.iter().map(|url| rewritten(config, url)).collect();
        for spec in config.strings(key("fetch")) {
            remote.fetch.push(Refspec::parse(spec)?);
        }
        remote.tags = match config.raw(key("tagopt")).map(|value| value.as_bytes()) {
            Some(b"--no-tags") => Some(Tags::None),
            Some(b"--tags") => Some(Tags::All),
            _ => None,
        };
        remote.prune = config.bool(key("prune"))?;
        remote.prune_tags = config.bool(key("prunetags"))?;
        remote.upload_pack = config.strings(key("uploadpack")).next().map(BStr::to_owned);
        remote.proxy = config.string(key("proxy"))?.map(BStr::to_owned);
        remote.server_options = owned(config.list(key("serveroption")));
        remote.negotiation_restrict = revisions(config, key("negotiationrestrict"))?;
        remote.negotiation_include = revisions(config, key("negotiationinclude"))?;
        remote.promisor = config.bool_or(key("promisor"), false)?;
        remote.partial_clone_filter = config
            .string(key("partialclonefilter"))?
            .map(BStr::to_owned);
        remote.promisor |= remote.partial_clone_filter.is_some();
        remote.skip_fetch_all = config
            .bool(key("skipfetchall"))?
            .or(config.bool(key("skipdefaultupdate"))?)
            .unwrap_or(false);
        remote.follow_head = match config
            .raw(key("followremotehead"))
            .map(|value| value.as_bytes())
        {
            Some(b"never") => FollowHead::Never,
            Some(b"always") => FollowHead::Always,
            _ => FollowHead::Create,
        };
        remote.is_mirror = config.bool_or(key("mirror"), false)?;
        remote.is_configured = !remote.urls.is_empty() || !remote.fetch.is_empty();
        if config.contains(key("vcs")) {
            let message = format!("remote '{name}' is of a foreign kind");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(remote)
    }

    /// Returns the name of the default remote for fetches: that of the current branch, or the only
    /// remote, or `origin`.
    ///
    /// # Errors
    /// Fails if `HEAD` cannot be read.
    pub fn default_name(repository: &Repository) -> Result<BString> {
        if let Some(name) = Self::name_of_branch(repository)? {
            return Ok(name);
        }
        let config = repository.config();
        let names: Vec<&BStr> = config
            .subsections("remote")
            .into_iter()
            .filter(|name| config.contains([b"remote.", name.as_bytes(), b".url"].concat()))
            .collect();
        match names[..] {
            [name] => Ok(name.into()),
            _ => Ok("origin".into()),
        }
    }

    /// Returns the URL to fetch from.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if there is no URL.
    pub fn url(&self) -> Result<&BStr> {
        self.urls.first().map(|url| url.as_bstr()).ok_or_else(|| {
            let message = format!("no URL is configured for remote '{}'", self.name);
            Error::new(ErrorKind::InvalidInput, message)
        })
    }
}

/// Returns the values of `key` after the last empty value.
///
/// # Errors
/// Fails if the last entry has no value.
fn revisions(config: &Config, key: Vec<u8>) -> Result<Vec<BString>> {
    config.string(&key)?;
    Ok(owned(config.list(key)))
}

fn owned(values: Vec<&BStr>) -> Vec<BString> {
    values.into_iter().map(BStr::to_owned).collect()
}

/// Returns `url` with the longest matching `url.BASE.insteadOf` prefix replaced by its base.
pub fn rewritten(config: &Config, url: &BStr) -> BString {
    let mut best: Option<(usize, &BStr)> = None;
    for base in config.subsections("url") {
        let key = [b"url.", base.as_bytes(), b".insteadof"].concat();
        for prefix in config.strings(key) {
            let longer = best.is_none_or(|(length, _)| prefix.len() > length);
            if url.starts_with(prefix) && longer {
                best = Some((prefix.len(), base));
            }
        }
    }
    match best {
        Some((length, base)) => [base.as_bytes(), &url[length..]].concat().into(),
        None => url.into(),
    }
}

/// Whether `name` is a valid name of a remote.
pub fn is_valid_name(name: &BStr) -> bool {
    let spec = [b"refs/remotes/", name.as_bytes(), b"/test"].concat();
    crate::refs::name::is_valid(spec.as_bstr(), crate::refs::name::Form::Full)
}

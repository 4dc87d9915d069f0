//! Remotes: other repositories, how to reach them, and what to fetch from them.

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
pub use bundle::{FROM_BUNDLE, Fitness, failure_lines, require, unusable, verify};
pub use common::common_commits;
pub use connectivity::{Cuts, Links, from_store, is_connected};
pub use lazy::{Exact, check_promisors};
pub use negotiate::History;
pub(crate) use negotiate::negotiator;
pub use offer::{Offer, OfferOptions};
pub use on_demand::fetch_on_demand;
pub(crate) use partial::register as register_promisor;
pub use partial::{combined_filter, filter_spec, has_whole_history};
pub use promised_links::keep as keep_linked_objects;
pub use pronto_repository::shallow;
pub use pronto_wire::fetch::{Deepen, INFINITE_DEPTH};
pub use pronto_wire::netrc;
pub use pronto_wire::transport::Family;
pub use receive::{Both, Receive, Unpack, checks_objects, receive_pack, unpack_limit};
pub(crate) use receive::{Stream, fsck_levels, receive_stream};
pub use refspec::Refspec;
pub use refspec::local_name;
pub use stale::{Dangling, dangling_refs, stale_refs};

/// Which tags a fetch takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tags {
    /// Those that point at what is fetched.
    #[default]
    Follow,
    /// All.
    All,
    /// Only those that a refspec names.
    None,
}

/// When `refs/remotes/NAME/HEAD` follows the `HEAD` of the other side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FollowHead {
    /// Never: as Git did up to version 2.47.
    Never,
    /// Create it if it is missing.
    #[default]
    Create,
    /// Keep it up to date.
    Always,
}

/// Another repository, as configured under `remote.NAME` or given by its address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// The name, or the address if it has none.
    pub name: BString,
    /// The URLs, rewritten by `url.BASE.insteadOf`; the first one is fetched from.
    pub urls: Vec<BString>,
    /// The refspecs to fetch.
    pub fetch: Vec<Refspec>,
    /// The refspecs to push, as a file of the repository says.
    pub push: Vec<BString>,
    /// Which tags to fetch.
    pub tags: Option<Tags>,
    /// Whether to remove refs that the remote no longer has.
    pub prune: Option<bool>,
    /// Whether that holds for tags too.
    pub prune_tags: Option<bool>,
    /// The program that serves on the other side.
    pub upload_pack: Option<BString>,
    /// The HTTP proxy; an empty one means none.
    pub proxy: Option<BString>,
    /// Values for the hooks of the other side.
    pub server_options: Vec<BString>,
    /// The revisions, or patterns of refs, whose history a negotiation offers.
    pub negotiation_restrict: Vec<BString>,
    /// The commits, or patterns of refs, that a negotiation always offers.
    pub negotiation_include: Vec<BString>,
    /// Whether it promises to have what is missing here.
    pub promisor: bool,
    /// The filter of a partial clone.
    pub partial_clone_filter: Option<BString>,
    /// Whether `fetch --all` leaves it out.
    pub skip_fetch_all: bool,
    /// The way in which its `HEAD` is followed.
    pub follow_head: FollowHead,
    /// Whether its references have the same names here.
    pub is_mirror: bool,
    /// The directory whose file describes it (`remotes` or `branches`), if one does.
    pub file: Option<&'static str>,
    /// Whether it is configured, rather than given by its address.
    pub is_configured: bool,
}

impl Remote {
    /// The remote called `name`, or the one at that address if none is called so.
    ///
    /// # Errors
    /// A configured value is malformed.
    pub fn find(repository: &Repository, name: &BStr) -> Result<Self> {
        let mut remote = Self::known(repository, name)?;
        if remote.urls.is_empty() {
            remote.urls = vec![rewritten(repository.config(), name)];
        }
        Ok(remote)
    }

    /// Does the same as [`find`](Self::find) where there is no repository.
    ///
    /// # Errors
    /// A configured value is malformed.
    pub fn find_without_repository(config: &Config, name: &BStr) -> Result<Self> {
        let mut remote = Self::configured(config, name)?;
        if remote.urls.is_empty() {
            remote.urls = vec![rewritten(config, name)];
        }
        Ok(remote)
    }

    /// The remote called `name`, as the configuration or a file of the repository describes it. One
    /// that nothing describes has no address.
    ///
    /// # Errors
    /// A value is not well formed, or a file cannot be read.
    pub fn known(repository: &Repository, name: &BStr) -> Result<Self> {
        let mut remote = Self::configured(repository.config(), name)?;
        if remote.urls.is_empty() {
            files::read(repository, &mut remote)?;
        }
        Ok(remote)
    }

    /// The remote that a fetch without arguments uses: that of the current branch, which may be an
    /// address, or the only one, or `origin`, which may have no address.
    ///
    /// # Errors
    /// `HEAD` or a file cannot be read, or a value is not well formed.
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

    /// The remote called `name` with all that is configured for it.
    ///
    /// # Errors
    /// A configured value is malformed.
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

    /// The name of the remote that a fetch without arguments uses: that of the current branch, or
    /// the only one, or `origin`.
    ///
    /// # Errors
    /// `HEAD` cannot be read.
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
    /// There is no address.
    pub fn url(&self) -> Result<&BStr> {
        self.urls.first().map(|url| url.as_bstr()).ok_or_else(|| {
            let message = format!("no URL is configured for remote '{}'", self.name);
            Error::new(ErrorKind::InvalidInput, message)
        })
    }
}

/// The values of `key`, after the last empty one.
///
/// # Errors
/// The last one has no value.
fn revisions(config: &Config, key: Vec<u8>) -> Result<Vec<BString>> {
    config.string(&key)?;
    Ok(owned(config.list(key)))
}

fn owned(values: Vec<&BStr>) -> Vec<BString> {
    values.into_iter().map(BStr::to_owned).collect()
}

/// `url` with the longest `url.BASE.insteadOf` that it starts with replaced by its base.
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

/// Whether `name` can be the name of a remote.
pub fn is_valid_name(name: &BStr) -> bool {
    let spec = [b"refs/remotes/", name.as_bytes(), b"/test"].concat();
    crate::refs::name::is_valid(spec.as_bstr(), crate::refs::name::Form::Full)
}

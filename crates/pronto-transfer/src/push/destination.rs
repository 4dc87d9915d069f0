//! The destination of a push: a remote with its settings for pushes.

use bstr::{BStr, BString, ByteSlice};

use super::PushSpec;
use crate::config::Config;
use crate::remote::{OfferOptions, Refspec, Remote, is_valid_name, rewritten};
use crate::{Repository, Result};

/// A remote repository to push to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushRemote {
    /// The name of the remote, or its URL if it has no name.
    pub name: BString,
    /// The push URLs. A push goes to each of them.
    pub urls: Vec<BString>,
    /// The configured push refspecs (`remote.<name>.push`).
    pub push: Vec<PushSpec>,
    /// The fetch refspecs, which define the remote-tracking refs (`remote.<name>.fetch`).
    pub fetch: Vec<Refspec>,
    /// Whether the remote is a push mirror of this repository (`remote.<name>.mirror`).
    pub is_mirror: bool,
    /// The program on the remote side (`remote.<name>.receivepack`).
    pub receive_pack: Option<BString>,
    /// The commits to send as haves in a negotiation (`remote.<name>.negotiationRestrict`,
    /// `remote.<name>.negotiationInclude`).
    pub offer: OfferOptions,
    /// The HTTP proxy (`remote.<name>.proxy`).
    pub proxy: Option<BString>,
    /// The authentication method of the proxy (`remote.<name>.proxyAuthMethod`).
    pub proxy_auth_method: Option<BString>,
}

impl PushRemote {
    /// Returns the destination called `name`, or the one at that URL.
    ///
    /// # Errors
    /// Fails if a setting is malformed.
    pub fn find(repository: &Repository, name: &BStr) -> Result<Self> {
        let remote = Remote::find(repository, name)?;
        Self::of(repository, remote)
    }

    /// Returns the default destination of a push: `branch.NAME.pushRemote` of the current branch,
    /// `remote.pushDefault`, or the default remote for fetches. The destination may have no URL.
    ///
    /// # Errors
    /// Fails if a setting is malformed, or `HEAD` cannot be read.
    pub fn default_of(repository: &Repository) -> Result<Self> {
        let config = repository.config();
        let head = repository.refs().head()?;
        let own = match head.branch() {
            Some(branch) => {
                let key = [b"branch.", branch.as_bytes(), b".pushremote"].concat();
                config.string(key)?
            }
            None => None,
        };
        let name = match own {
            Some(name) => Some(name),
            None => config.string("remote.pushdefault")?,
        };
        match name {
            Some(name) => Self::find(repository, name),
            None => Self::of(repository, Remote::default_of(repository)?),
        }
    }

    /// Returns `remote` with its settings for pushes.
    ///
    /// # Errors
    /// Fails if a setting is malformed.
    pub fn of(repository: &Repository, remote: Remote) -> Result<Self> {
        let config = repository.config();
        let name = remote.name.clone();
        let key =
            |variable: &str| [b"remote.", name.as_bytes(), b".", variable.as_bytes()].concat();
        let mut destination = PushRemote {
            urls: push_urls(config, name.as_bstr(), &remote.urls),
            fetch: remote.fetch,
            is_mirror: remote.is_mirror,
            proxy: remote.proxy,
            offer: OfferOptions {
                restrict: remote.negotiation_restrict,
                include: remote.negotiation_include,
            },
            name: name.clone(),
            ..PushRemote::default()
        };
        if name.is_empty() {
            return Ok(destination);
        }
        for spec in &remote.push {
            destination.push.push(PushSpec::parse(spec.as_bstr())?);
        }
        for spec in config.strings(key("push")) {
            destination.push.push(PushSpec::parse(spec)?);
        }
        let program = config.strings(key("receivepack")).next();
        destination.receive_pack = program.map(BStr::to_owned);
        let method = config.string(key("proxyauthmethod"))?;
        destination.proxy_auth_method = method.map(BStr::to_owned);
        Ok(destination)
    }

    /// Whether the name can be that of a configured remote, and not a URL.
    pub fn is_named(&self) -> bool {
        is_valid_name(self.name.as_bstr()) && self.urls.first() != Some(&self.name)
    }

    /// Returns the remote-tracking ref of the remote ref `name`.
    pub(super) fn tracking(&self, name: &BStr) -> Option<BString> {
        if self.fetch.iter().any(|spec| spec.excludes(name)) {
            return None;
        }
        self.fetch
            .iter()
            .filter(|spec| !spec.negative)
            .find_map(|spec| {
                let mapped = match spec.is_pattern() {
                    true => spec.expand(name).flatten(),
                    false if spec.source == name => spec.destination.clone(),
                    false => None,
                };
                mapped.filter(|mapped| !mapped.is_empty())
            })
    }
}

/// Returns the push URLs: the configured ones (`remote.<name>.pushUrl`), or the fetch URLs
/// rewritten by `url.BASE.pushInsteadOf`.
fn push_urls(config: &Config, name: &BStr, fetched: &[BString]) -> Vec<BString> {
    let key = |variable: &str| [b"remote.", name.as_bytes(), b".", variable.as_bytes()].concat();
    let own = config.list(key("pushurl"));
    if !own.is_empty() {
        return own.iter().map(|url| rewritten(config, url)).collect();
    }
    let mut raw = config.list(key("url"));
    if raw.is_empty() && fetched.len() == 1 {
        raw = vec![name];
    }
    let pushed: Vec<BString> = raw
        .iter()
        .filter_map(|url| rewritten_to_push(config, url))
        .collect();
    match pushed.is_empty() {
        true => fetched.to_vec(),
        false => pushed,
    }
}

/// Returns `url` with the longest matching `url.BASE.pushInsteadOf` prefix replaced by its base.
fn rewritten_to_push(config: &Config, url: &BStr) -> Option<BString> {
    let mut best: Option<(usize, &BStr)> = None;
    for base in config.subsections("url") {
        let key = [b"url.", base.as_bytes(), b".pushinsteadof"].concat();
        for prefix in config.strings(key) {
            let longer = best.is_none_or(|(length, _)| prefix.len() > length);
            if url.starts_with(prefix) && longer {
                best = Some((prefix.len(), base));
            }
        }
    }
    let (length, base) = best?;
    Some([base.as_bytes(), url.get(length..)?].concat().into())
}

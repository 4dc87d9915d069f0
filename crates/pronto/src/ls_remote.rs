//! Lists the refs of another repository: `git ls-remote`.
//!
//! Costs one connection, and memory for all listed refs. [`connection`] documents the timeouts.

mod order;
mod properties;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::{LsRefs, ProtocolVersion, RemoteRef};
use pronto_wire::client::FetchClient;

use crate::config::Config;
use crate::environment::Environment;
use crate::glob::{self, MatchOptions};
use crate::refs::RefName;
use crate::refs::name::{self, Form};
use crate::remote::Remote;
use crate::remote::connection::{self, Settings, from_wire};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Result};

pub use order::{Field, RefSortKey, sort};

/// Options of `git ls-remote`. The default is the command without options.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// List only branches (`--branches`). With `tags`, list branches and tags.
    pub branches: bool,
    /// List only tags (`--tags`). With `branches`, list branches and tags.
    pub tags: bool,
    /// Leave out `HEAD` and peeled tags, whose names end in `^{}` (`--refs`).
    pub refs_only: bool,
    /// Glob patterns for the last components of ref names. If empty, all refs are listed.
    pub patterns: Vec<BString>,
    /// The settings of the connection, such as `--upload-pack`.
    pub settings: Settings,
    /// Protocol-specific values for the server (`--server-option`), instead of the configured ones
    /// (`remote.NAME.serverOption`).
    pub server_options: Vec<BString>,
}

/// A ref of the remote, or the peeled object of an annotated tag.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdvertisedRef {
    /// The full name, which ends in `^{}` for a peeled tag.
    pub name: BString,
    /// The object id of the ref.
    pub id: ObjectId,
    /// The target of a symref, if the server advertises the target (`--symref`).
    pub symref_target: Option<RefName>,
}

/// Lists the refs of `remote`, in the order in which the server advertises them; [`sort`] sorts the
/// list. Needs no local repository.
///
/// # Errors
/// Fails with [`ErrorKind::ProtocolTooOld`] if there are server options and the server does not
/// speak protocol version 2, with [`ErrorKind::Transport`] if the remote cannot be reached or
/// refuses, and with other kinds if a setting is malformed.
pub fn ls_remote(
    remote: &Remote,
    options: &Options,
    config: &Config,
    environment: &Environment,
    watch: &Watch<'_>,
) -> Result<Vec<AdvertisedRef>> {
    support::require_settings(Operation::ListRemote, config, environment)?;
    let settings = options.settings.for_remote(remote, config)?;
    let mut client = connection::connect(remote.url()?, &settings, config, environment, watch)?;
    let server_options = match options.server_options.is_empty() {
        true => remote.server_options.clone(),
        false => options.server_options.clone(),
    };
    check_server_options(&client, options, &server_options)?;
    let mut request = LsRefs {
        prefixes: Vec::new(),
        server_options,
    };
    if options.tags {
        request.prefixes.push("refs/tags/".into());
    }
    if options.branches {
        request.prefixes.push("refs/heads/".into());
    }
    let refs = client.refs(&request).map_err(from_wire)?;
    let patterns: Vec<Vec<u8>> = (options.patterns.iter())
        .map(|pattern| [b"*/", pattern.as_bytes()].concat())
        .collect();
    let mut listed = Vec::new();
    for theirs in refs {
        add(theirs, options, &patterns, &mut listed);
    }
    client.close().map_err(from_wire)?;
    Ok(listed)
}

/// Checks that the server can receive `server_options`. Configured options are ignored with old
/// protocol versions.
fn check_server_options(
    client: &FetchClient,
    options: &Options,
    server_options: &[BString],
) -> Result<()> {
    // As in Git, server options do not apply to a bundle.
    if client.bundle().is_some() {
        return Ok(());
    }
    if client.version() != ProtocolVersion::V2 {
        if options.server_options.is_empty() {
            return Ok(());
        }
        let message = "server options require protocol version 2 or later";
        return Err(Error::new(ErrorKind::ProtocolTooOld, message));
    }
    match server_options.is_empty() || client.capabilities().has("server-option") {
        true => Ok(()),
        false => {
            let message = "server doesn't support 'server-option'";
            Err(Error::new(ErrorKind::Transport, message))
        }
    }
}

/// Adds `theirs`, and its peeled object, if they are selected.
fn add(
    theirs: RemoteRef,
    options: &Options,
    patterns: &[Vec<u8>],
    listed: &mut Vec<AdvertisedRef>,
) {
    // A `HEAD` whose branch has no commit yet is not listed.
    let Some(id) = theirs.id else {
        return;
    };
    let pointed = theirs.peeled.map(|id| AdvertisedRef {
        name: [&theirs.name[..], b"^{}"].concat().into(),
        id,
        symref_target: None,
    });
    let own = AdvertisedRef {
        name: theirs.name,
        id,
        symref_target: theirs.symref_target,
    };
    let is_wanted = |found: &AdvertisedRef| {
        let name = found.name.as_bstr();
        is_selected(name, options) && is_matched(name, patterns)
    };
    listed.extend([Some(own), pointed].into_iter().flatten().filter(is_wanted));
}

/// Whether `name` is of a selected kind.
fn is_selected(name: &BStr, options: &Options) -> bool {
    if !options.refs_only && !options.branches && !options.tags {
        return true;
    }
    let Some(below) = name.strip_prefix(b"refs/") else {
        return false;
    };
    if options.refs_only && !name::is_valid(name, Form::Full) {
        return false;
    }
    match (options.branches, options.tags) {
        (false, false) => true,
        (branches, tags) => {
            (branches && below.starts_with(b"heads/")) || (tags && below.starts_with(b"tags/"))
        }
    }
}

/// Whether the last components of `name` match one of `patterns`, each of which begins with `*/`.
fn is_matched(name: &BStr, patterns: &[Vec<u8>]) -> bool {
    let text = [b"/", name.as_bytes()].concat();
    patterns.is_empty()
        || patterns
            .iter()
            .any(|pattern| glob::matches(pattern, &text, MatchOptions::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_selected_by_kind_and_by_their_last_components() {
        let options = |branches, tags, refs_only| Options {
            branches,
            tags,
            refs_only,
            ..Options::default()
        };
        let is = |name: &str, options: &Options| is_selected(name.into(), options);
        assert!(is("HEAD", &options(false, false, false)));
        assert!(!is("HEAD", &options(false, false, true)));
        assert!(!is("refs/tags/v1^{}", &options(false, true, true)));
        assert!(is("refs/tags/v1^{}", &options(false, true, false)));
        assert!(!is("refs/notes/x", &options(true, true, false)));
        assert!(is("refs/heads/x", &options(true, true, false)));
        let matches = |name: &str, pattern: &str| {
            is_matched(name.into(), &[format!("*/{pattern}").into_bytes()])
        };
        assert!(matches("refs/heads/main", "main") && matches("refs/heads/main", "heads/m*"));
        assert!(!matches("refs/heads/main", "ain") && matches("HEAD", "HEAD"));
    }
}

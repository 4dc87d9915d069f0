//! Pushes to a remote as it is configured: `git push [REMOTE [REFSPEC...]]`.
//!
//! [`push`] pushes to one URL with given refspecs. [`push_remote`] finds the remote, the refspecs and
//! the URLs, pushes to each URL, and sets the upstreams.

use bstr::{BStr, BString, ByteSlice};
use pronto_io::watch::Watch;

use crate::config::Config;
use crate::push::{self, PushRemote, PushSpec, default_specs, expand_spec};
use crate::remote::connection;
use crate::switch::{UpstreamSetup, set_upstream};
use crate::{Error, ErrorKind, PartialFailure, Repository, Result};

/// Options of `git push`. [`Options::configured`] returns those of a call without arguments.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The remote, or the address of a repository. Default (`None`): `branch.<name>.pushRemote` of the
    /// current branch, `remote.pushDefault`, or the remote from which the branch is fetched.
    pub remote: Option<BString>,
    /// The refspecs, as on the command line: `main`, `main:other`, `+main`, `:other`. Default (none):
    /// `remote.<name>.push`, or those of `push.default`.
    pub refspecs: Vec<BString>,
    /// The other options. [`push::Options::specs`] is not used.
    pub push: push::Options,
}

impl Options {
    /// Returns the options of `git push` without arguments, as the configuration sets them.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a value is malformed.
    pub fn configured(config: &Config) -> Result<Self> {
        Ok(Options {
            push: push::Options::configured(config)?,
            ..Options::default()
        })
    }
}

/// The result of a push to one URL of the remote.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct PushedUrl {
    /// The URL, without a password.
    pub url: BString,
    /// The result. The push to this URL may have failed: see [`push::Outcome::into_result`].
    pub outcome: push::Outcome,
    /// The upstreams that were set ([`push::Options::set_upstream`], `push.autoSetupRemote`).
    pub upstreams: Vec<UpstreamSetup>,
}

/// Pushes to each URL of a remote, like `git push`, and sets the upstreams of the pushed branches.
///
/// Connects to each URL in turn, even after the push to another one failed. As for
/// [`push::push`], the path of a repository starts `git receive-pack` there, from the search path or
/// the program of [`push::Options::connection`].
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if no remote is configured, a refspec is malformed or
/// `mirror` has refspecs, with [`ErrorKind::ConfigValue`] if a setting is malformed, with the errors of
/// [`push::push`], and with [`ErrorKind::Config`] if an upstream cannot be written. The report has the
/// URLs before the failure.
pub fn push_remote(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Vec<PushedUrl>, PartialFailure<Vec<PushedUrl>>> {
    let destination = match &options.remote {
        Some(name) => PushRemote::find(repository, name.as_bstr())?,
        None => PushRemote::default_of(repository)?,
    };
    if destination.urls.is_empty() {
        let message = "no configured push destination";
        return Err(Error::new(ErrorKind::InvalidInput, message).into());
    }
    let chosen = choose(repository, &destination, options)?;
    for url in &destination.urls {
        let (config, environment) = (repository.config(), repository.environment());
        connection::check(url.as_bstr(), &chosen.connection, config, environment)?;
    }
    let mut report = Vec::new();
    for url in &destination.urls {
        let url = url.as_bstr();
        let outcome = match push::push(repository, &destination, url, &chosen, watch) {
            Ok(outcome) => outcome,
            Err(error) => return Err(PartialFailure::new(error, report)),
        };
        let mut pushed = PushedUrl {
            url: connection::shown(url),
            outcome,
            upstreams: Vec::new(),
        };
        let followed = match chosen.dry_run {
            true => Ok(()),
            false => follow(repository, destination.name.as_bstr(), &mut pushed),
        };
        report.push(pushed);
        if let Err(error) = followed {
            return Err(PartialFailure::new(error, report));
        }
    }
    Ok(report)
}

/// Returns the options of the push to each URL.
fn choose(
    repository: &Repository,
    destination: &PushRemote,
    options: &Options,
) -> Result<push::Options> {
    let mut chosen = options.push.clone();
    let given = options.refspecs.iter();
    chosen.specs = given
        .map(|spec| expand_spec(repository, destination, spec.as_bstr()))
        .collect::<Result<Vec<PushSpec>>>()?;
    chosen.mirror |= destination.is_mirror;
    chosen.force |= chosen.mirror;
    if chosen.mirror && !chosen.specs.is_empty() {
        let message = "--mirror can't be combined with refspecs";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let needs_defaults = !chosen.mirror || !destination.push.is_empty();
    if chosen.specs.is_empty() && !chosen.all && needs_defaults {
        let defaults = default_specs(repository, destination, chosen.set_upstream)?;
        chosen.specs = defaults.specs;
        chosen.set_upstream = defaults.set_upstream;
    }
    Ok(chosen)
}

/// Sets the upstreams of the pushed branches to those of `remote`.
fn follow(repository: &Repository, remote: &BStr, pushed: &mut PushedUrl) -> Result<()> {
    for upstream in &pushed.outcome.upstreams {
        let (branch, followed) = (upstream.branch.as_bstr(), upstream.followed.as_bstr());
        let set_up = set_upstream(repository, branch, remote, followed)?;
        pushed.upstreams.push(set_up);
    }
    Ok(())
}

//! Pushes refs, with the objects reachable from them, to another repository: `git push`.
//!
//! Costs one connection to the server, which advertises its refs; a pack of the missing objects,
//! which is sent while it is created; and one transaction for the remote-tracking refs.

mod certificate;
mod decide;
mod defaults;
mod destination;
mod lease;
mod matching;
mod pre_push;
mod preview;
mod refspec;
mod send;
mod status;
mod tracking;

use bstr::{BStr, BString};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::RemoteRef;
use pronto_wire::push::Pusher;

use crate::config::Config;
use crate::remote::connection::{self, Settings};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

pub use certificate::Signed;
pub use defaults::{DefaultRefspecs, default_specs, expand_spec};
pub use destination::PushRemote;
pub use lease::{Lease, Leases};
pub use matching::names_one_ref;
use pre_push::run_pre_push;
pub use preview::{Preview, preview};
pub use pronto_wire::push::RewrittenRef;
pub use refspec::PushSpec;
pub use status::PushStatus;

use matching::{Matching, Mode};

/// Options of `git push`. The default pushes the matching branches (`git push REMOTE :`): there are no
/// refspecs, each flag is off, and no setting of the configuration applies. [`Options::configured`] reads
/// the settings.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The refspecs. Default (empty): all branches that exist on both sides (`:`). [`default_specs`] has
    /// those of `git push` without refspecs.
    pub specs: Vec<PushSpec>,
    /// Push all branches (`--all`, `--branches`).
    pub all: bool,
    /// Push all refs, and delete remote refs that do not exist locally (`--mirror`).
    pub mirror: bool,
    /// Delete remote refs that match a refspec and do not exist locally (`--prune`).
    pub prune: bool,
    /// Push annotated tags that point into the pushed history, too (`--follow-tags`).
    pub follow_tags: bool,
    /// Allow updates that are not fast-forwards (`--force`).
    pub force: bool,
    /// Do everything except sending the updates (`--dry-run`).
    pub dry_run: bool,
    /// Update all refs or none (`--atomic`).
    pub atomic: bool,
    /// Do not send deltas against objects that the other side has (`--no-thin`).
    pub no_thin: bool,
    /// Skip the hook `pre-push` (`--no-verify`).
    pub no_verify: bool,
    /// Let the pushed branches follow the remote branches (`--set-upstream`). The upstreams are returned in
    /// [`Outcome::upstreams`], and the caller sets them.
    pub set_upstream: bool,
    /// Negotiate common commits before the pack is created (`push.negotiate`).
    pub negotiate: bool,
    /// Sign the push (`--signed`, `push.gpgSign`). Default: do not sign.
    pub signed: Signed,
    /// The strings for the hooks of the remote (`--push-option`).
    pub push_options: Vec<BString>,
    /// The expected values of remote refs (`--force-with-lease`, `--force-if-includes`).
    pub leases: Leases,
    /// Suppress progress from the remote side (`--quiet`).
    pub quiet: bool,
    /// The program on the remote side (`--receive-pack`). Default: `remote.<name>.receivepack`, or
    /// `git-receive-pack`.
    pub receive_pack: Option<BString>,
    /// The settings of the connection. Default: those of the configuration.
    pub connection: Settings,
}

impl Options {
    /// Returns the options of `git push` without arguments, as the configuration sets them:
    /// `push.followTags`, `push.gpgSign`, `push.negotiate`, `push.pushOption` and
    /// `push.useForceIfIncludes`. [`default_specs`] finds the refspecs.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a value is malformed.
    pub fn configured(config: &Config) -> Result<Self> {
        let push_options = config.list("push.pushoption");
        Ok(Options {
            negotiate: config.bool_or("push.negotiate", false)?,
            signed: Signed::configured(config)?,
            follow_tags: config.bool_or("push.followtags", false)?,
            push_options: push_options.iter().map(|it| (*it).to_owned()).collect(),
            leases: Leases {
                includes: config.bool_or("push.useforceifincludes", false)?,
                ..Leases::default()
            },
            ..Options::default()
        })
    }

    /// The refspecs, or the one that stands for none.
    fn specs(&self) -> Result<Vec<PushSpec>> {
        Ok(match self.specs.is_empty() {
            true => vec![PushSpec::parse(":".into())?],
            false => self.specs.clone(),
        })
    }

    fn mode(&self) -> Mode {
        Mode {
            all: self.all,
            mirror: self.mirror,
            prune: self.prune,
            follow_tags: self.follow_tags,
        }
    }
}

/// A local ref or object that is pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalRef {
    /// The name of the ref, or the given revision.
    pub name: BString,
    /// The object id; null for a deletion.
    pub id: ObjectId,
}

/// A ref of the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedRef {
    /// The full name of the remote ref.
    pub name: BString,
    /// The old value; null if the ref did not exist.
    pub old: ObjectId,
    /// The new value; null if the ref is deleted.
    pub new: ObjectId,
    /// The local ref or object that is pushed to the remote ref.
    pub peer: Option<LocalRef>,
    /// The result of the update.
    pub status: PushStatus,
    /// Whether the update is allowed only by `force`.
    pub forced_update: bool,
    /// Whether the ref is deleted.
    pub deletes: bool,
    /// The message of the remote about the update.
    pub remark: Option<String>,
    /// The changes that the remote made instead of the requested one (hook `proc-receive`).
    pub rewrites: Vec<RewrittenRef>,
    /// Whether the refspec or `force` allows updates that are not fast-forwards.
    force: bool,
    lease: Option<lease::RefLease>,
}

impl PushedRef {
    fn new(name: BString, old: ObjectId) -> Self {
        PushedRef {
            name,
            new: old.kind().null(),
            old,
            peer: None,
            status: PushStatus::None,
            forced_update: false,
            deletes: false,
            remark: None,
            rewrites: Vec::new(),
            force: false,
            lease: None,
        }
    }

    fn of(remote: &RemoteRef) -> Option<Self> {
        let id = remote.id?;
        Some(PushedRef::new(remote.name.clone(), id))
    }
}

/// An upstream to configure after a push (`--set-upstream`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamToSet {
    /// The name of the local branch, without `refs/heads/`.
    pub branch: BString,
    /// The full name of the remote branch.
    pub followed: BString,
}

/// The decision of the caller of [`push_after`] about the updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushStep {
    /// Send the updates.
    Send,
    /// Do not change the remote.
    Keep,
}

/// The result of a push to one URL.
#[derive(Debug, Default)]
#[must_use]
pub struct Outcome {
    /// The refs of the remote, including those that the push creates.
    pub refs: Vec<PushedRef>,
    /// Whether the push failed, apart from single refs.
    pub failed: bool,
    /// Whether refs were matched, so that their results can be shown.
    pub decided: bool,
    /// The upstreams to configure, if `set_upstream` was requested.
    pub upstreams: Vec<UpstreamToSet>,
    /// The error because of which common commits could not be negotiated ([`Options::negotiate`]).
    pub not_negotiated: Option<Error>,
    /// Whether the remote does not support the requested signature ([`Signed::IfAsked`]).
    pub unsigned: bool,
    /// The updates of remote-tracking refs, in order.
    pub tracked: Vec<TrackingUpdate>,
}

/// The update of a remote-tracking ref after a push.
#[derive(Debug)]
#[non_exhaustive]
pub struct TrackingUpdate {
    /// The full name of the remote-tracking ref.
    pub name: BString,
    /// The error because of which the ref could not be updated after a successful push.
    pub failure: Option<Error>,
}

impl Outcome {
    /// Whether the push or the update of a ref failed.
    pub fn has_errors(&self) -> bool {
        self.failed || self.refs.iter().any(|it| !it.status.is_fine())
    }

    /// Whether any ref was updated.
    pub fn has_changes(&self) -> bool {
        let is_change =
            |it: &PushedRef| !matches!(it.status, PushStatus::None | PushStatus::UpToDate);
        self.refs.iter().any(is_change)
    }
}

/// Pushes to the repository at `url`, which is one of the URLs of `destination`.
///
/// If `url` is a path, the push starts `git receive-pack` there, from the search path or the program of
/// [`Settings::server`]. `ssh` is started for URLs of SSH; this process connects to other URLs itself.
///
/// # Errors
/// Fails with `ErrorKind::Transport` if the remote cannot be reached or violates the protocol, with
/// `ErrorKind::Refused` if the remote does not support an option, with [`ErrorKind::Interrupted`]
/// if the operation is interrupted, and with other kinds if an object cannot be read. Failures of
/// single refs are part of the outcome.
pub fn push(
    repository: &Repository,
    destination: &PushRemote,
    url: &BStr,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Outcome> {
    let mut send = |_: &[ObjectId]| Ok(PushStep::Send);
    push_after(repository, destination, url, options, &mut send, watch)
}

/// Does the same as [`push`], and calls `prepare` before the updates are sent, with the new values
/// of all refs to update. The result of `prepare` decides whether the updates are sent. Costs as
/// much as [`push`] and the call.
///
/// # Errors
/// The same as for [`push`], and the errors of `prepare`.
pub fn push_after(
    repository: &Repository,
    destination: &PushRemote,
    url: &BStr,
    options: &Options,
    prepare: &mut dyn FnMut(&[ObjectId]) -> Result<PushStep>,
    watch: &Watch<'_>,
) -> Result<Outcome> {
    support::require(repository, Operation::Push)?;
    let mut outcome = Outcome::default();
    let (local, specs) = (matching::local_refs(repository)?, options.specs()?);
    let mut matching = Matching::new(repository, &local, Vec::new());
    if !matching.check_sources(&specs)? {
        outcome.failed = true;
        return Ok(outcome);
    }
    let mut pusher = connect(repository, destination, url, options, watch)?;
    let greeting = pusher.greeting();
    let remote = greeting.refs.iter().filter_map(PushedRef::of).collect();
    matching = Matching::new(repository, &local, remote);
    if !matching.run(&specs, options.mode())? {
        outcome.failed = true;
        close(pusher)?;
        return Ok(outcome);
    }
    outcome.refs = matching.remote;
    outcome.decided = true;
    lease::apply(repository, destination, &options.leases, &mut outcome.refs)?;
    decide::decide(repository, options, &mut outcome.refs)?;
    if !options.no_verify && !run_pre_push(repository, destination, url, &outcome.refs)? {
        outcome.failed = true;
        outcome.decided = false;
        close(pusher)?;
        return Ok(outcome);
    }
    let sending = send::PushInProgress {
        repository,
        destination,
        url,
        options,
        watch,
    };
    let news = outcome.refs.iter().map(|pushed| pushed.new);
    let news: Vec<ObjectId> = news.filter(|id| !id.is_null()).collect();
    let mut next = PushStep::Send;
    let sent = prepare(&news).and_then(|chosen| {
        next = chosen;
        match next {
            PushStep::Send => send_refs(sending, &mut pusher, &mut outcome),
            PushStep::Keep => Ok(true),
        }
    });
    match sent {
        Ok(is_fine) => outcome.failed |= !is_fine,
        Err(error) => {
            pusher.abandon();
            return Err(error);
        }
    }
    outcome.failed |= !close(pusher)?;
    if options.set_upstream {
        outcome.upstreams = tracking::upstreams(repository, &outcome.refs);
    }
    if !options.dry_run && next == PushStep::Send {
        outcome.tracked = tracking::update(repository, destination, &outcome.refs);
    }
    Ok(outcome)
}

/// Sends the updates of `outcome`, after a negotiation if the options request that. Returns false
/// if the push failed apart from single refs.
fn send_refs(
    sending: send::PushInProgress<'_>,
    pusher: &mut Pusher,
    outcome: &mut Outcome,
) -> Result<bool> {
    let options = sending.options;
    let has_certificates = pusher.greeting().capabilities.has("push-cert");
    outcome.unsigned =
        options.signed == Signed::IfAsked && !has_certificates && !outcome.refs.is_empty();
    let commons = match options.negotiate {
        true => sending.negotiate(&outcome.refs),
        false => Ok(Vec::new()),
    };
    let commons = match commons {
        Err(error) if error.kind() != ErrorKind::Interrupted => {
            // The negotiation would only have made the pack smaller.
            outcome.not_negotiated = Some(error);
            Vec::new()
        }
        commons => commons?,
    };
    sending.send(pusher, &mut outcome.refs, commons)
}

/// Closes the connection. Returns whether the program of the transport succeeded.
fn close(pusher: Pusher) -> Result<bool> {
    match pusher.close() {
        Ok(()) => Ok(true),
        Err(error) => match connection::from_wire(error) {
            error if error.kind() == ErrorKind::Interrupted => Err(error),
            _ => Ok(false),
        },
    }
}

fn connect(
    repository: &Repository,
    destination: &PushRemote,
    url: &BStr,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Pusher> {
    let mut settings = options.connection.clone();
    let program = options.receive_pack.as_ref();
    settings.upload_pack = program.or(destination.receive_pack.as_ref()).cloned();
    settings.proxy.clone_from(&destination.proxy);
    settings
        .proxy_auth_method
        .clone_from(&destination.proxy_auth_method);
    connection::connect_to_push(url, &settings, repository, watch)
}

//! Sends refs, with the objects they lead to, to another repository.
//!
//! Costs: one exchange with the other side, which lists its refs; a pack of what it lacks, made and
//! sent at once; and one transaction for the refs here that follow those there.

mod certificate;
mod decide;
mod defaults;
mod destination;
mod lease;
mod matching;
mod preview;
mod refspec;
mod send;
mod tracking;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::RemoteRef;
use pronto_wire::push::Pusher;

use crate::remote::connection::{self, Settings};
use crate::support::{self, Operation};
use crate::{ErrorKind, Repository, Result, hooks};

pub use certificate::Signed;
pub use defaults::{Defaults, default_specs, expand_spec};
pub use destination::Destination;
pub use lease::{Lease, Leases};
pub use matching::names_one_ref;
pub use preview::{Preview, preview};
pub use pronto_wire::push::Rewritten;
pub use refspec::PushSpec;

use matching::{Matching, Mode};

/// The refs to push, and the options of the push.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The refspecs; the branches that both sides have if there is none.
    pub specs: Vec<PushSpec>,
    /// Send all branches.
    pub all: bool,
    /// Send all refs, and delete those that do not exist here.
    pub mirror: bool,
    /// Delete the refs of the other side that match and do not exist here.
    pub prune: bool,
    /// Send annotated tags that lead into what is sent.
    pub follow_tags: bool,
    /// Move refs to anything.
    pub force: bool,
    /// Send nothing.
    pub dry_run: bool,
    /// All changes or none.
    pub atomic: bool,
    /// Send deltas against objects that the other side has.
    pub thin: bool,
    /// Run the hook `pre-push`.
    pub verify: bool,
    /// Let branches follow those they are sent to.
    pub set_upstream: bool,
    /// Whether the commits that both sides have are negotiated first (`push.negotiate`).
    pub negotiate: bool,
    /// Whether the push is signed.
    pub signed: Signed,
    /// Values for the hooks of the other side.
    pub push_options: Vec<BString>,
    /// Which values refs of the other side must have.
    pub leases: Leases,
    /// Whether there is no progress to be sent.
    pub quiet: bool,
    /// The program on the other side (`--receive-pack`).
    pub receive_pack: Option<BString>,
    /// The settings of the connection.
    pub connection: Settings,
}

impl Options {
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

/// A ref of this side that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name, or the expression that was given.
    pub name: BString,
    /// Its object; null to delete.
    pub id: ObjectId,
}

/// The fate of a ref of the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Nothing.
    #[default]
    None,
    /// The ref was changed.
    Ok,
    /// The change would lose commits.
    RejectNonFastForward,
    /// The ref is a tag, which does not move.
    RejectAlreadyExists,
    /// The other side does not delete refs.
    RejectNoDelete,
    /// Its object is not here.
    RejectFetchFirst,
    /// The ref is no commit, or would not be one.
    RejectNeedsForce,
    /// The ref has another value than expected.
    RejectStale,
    /// The ref has moved since its commits were integrated here.
    RejectRemoteUpdated,
    /// The ref has the value already.
    UpToDate,
    /// The other side refused.
    RemoteReject,
    /// The other side said nothing about it.
    ExpectingReport,
    /// The ref is not changed because another one cannot be.
    AtomicPushFailed,
}

impl Status {
    /// The number of the status in messages of Git.
    pub fn number(self) -> u8 {
        match self {
            Status::None => 0,
            Status::Ok => 1,
            Status::RejectNonFastForward => 2,
            Status::RejectAlreadyExists => 3,
            Status::RejectNoDelete => 4,
            Status::RejectFetchFirst => 5,
            Status::RejectNeedsForce => 6,
            Status::RejectStale => 7,
            Status::RejectRemoteUpdated => 9,
            Status::UpToDate => 10,
            Status::RemoteReject => 11,
            Status::ExpectingReport => 12,
            Status::AtomicPushFailed => 13,
        }
    }

    /// Whether this side does not even try.
    fn is_rejection(self) -> bool {
        matches!(
            self,
            Status::RejectNonFastForward
                | Status::RejectAlreadyExists
                | Status::RejectNoDelete
                | Status::RejectFetchFirst
                | Status::RejectNeedsForce
                | Status::RejectStale
                | Status::RejectRemoteUpdated
        )
    }

    /// Whether the ref is what it should be.
    fn is_fine(self) -> bool {
        matches!(self, Status::None | Status::Ok | Status::UpToDate)
    }
}

/// A ref of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedRef {
    /// Its full name.
    pub name: BString,
    /// Its value before; null if it did not exist.
    pub old: ObjectId,
    /// Its value afterwards; null if it is deleted.
    pub new: ObjectId,
    /// The ref or object that is sent to it.
    pub peer: Option<Peer>,
    /// Its fate.
    pub status: Status,
    /// Whether the change would be refused without force.
    pub forced_update: bool,
    /// Whether it is deleted.
    pub deletes: bool,
    /// The remark of the other side about it.
    pub remark: Option<String>,
    /// The changes that the other side made in place of the requested one.
    pub rewrites: Vec<Rewritten>,
    /// Whether its refspec forces the change.
    force: bool,
    lease: Option<lease::Held>,
}

impl PushedRef {
    fn new(name: BString, old: ObjectId) -> Self {
        PushedRef {
            name,
            new: old.kind().null(),
            old,
            peer: None,
            status: Status::None,
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

/// A branch that shall follow the one that it was sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its short name.
    pub branch: BString,
    /// The full name of the other one, on the other side.
    pub followed: BString,
}

/// The treatment of refs that are ready to be sent by [`push_after`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The refs are sent.
    Send,
    /// The other side is left as it is.
    Keep,
}

/// The result of a push to one address.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The refs of the other side, and those that were created there.
    pub refs: Vec<PushedRef>,
    /// Whether something failed, apart from refs.
    pub failed: bool,
    /// Whether refs were matched, so that there is something to show about them.
    pub decided: bool,
    /// The branches that shall follow those that they were sent to, if that was asked for.
    pub upstreams: Vec<Upstream>,
    /// Why the commits that both sides have could not be negotiated ([`Options::negotiate`]).
    pub not_negotiated: Option<crate::Error>,
    /// Whether the push is not signed because the other side takes no signed pushes
    /// ([`Signed::IfAsked`]).
    pub unsigned: bool,
    /// The updates of remote-tracking refs, in the order in which they were made.
    pub tracked: Vec<TrackingUpdate>,
}

/// The update of a remote-tracking ref after a push.
#[derive(Debug)]
#[non_exhaustive]
pub struct TrackingUpdate {
    /// The full name of the remote-tracking ref.
    pub name: BString,
    /// The reason why it could not be updated; `None` if it was. The push itself is done.
    pub failure: Option<crate::Error>,
}

impl Outcome {
    /// Whether all refs are what they should be.
    pub fn has_errors(&self) -> bool {
        self.failed || self.refs.iter().any(|it| !it.status.is_fine())
    }

    /// Whether any ref was changed.
    pub fn has_changes(&self) -> bool {
        let is_change = |it: &PushedRef| !matches!(it.status, Status::None | Status::UpToDate);
        self.refs.iter().any(is_change)
    }
}

/// Pushes to the repository at `url`, which is one of those of `destination`.
///
/// # Errors
/// The other side cannot be reached or does not speak the protocol, an option is not supported by
/// it, or an object cannot be read. What concerns single refs is no error but part of the outcome.
pub fn push(
    repository: &Repository,
    destination: &Destination,
    url: &BStr,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Outcome> {
    let mut send = |_: &[ObjectId]| Ok(Next::Send);
    push_after(repository, destination, url, options, &mut send, watch)
}

/// Does the same as [`push`], and calls `prepare` before anything is sent, with the new values of all refs that
/// something is to be sent to. It says whether they are sent. Costs as much as [`push`] and the call.
///
/// # Errors
/// As [`push`]; or `prepare` fails.
pub fn push_after(
    repository: &Repository,
    destination: &Destination,
    url: &BStr,
    options: &Options,
    prepare: &mut dyn FnMut(&[ObjectId]) -> Result<Next>,
    watch: &Watch<'_>,
) -> Result<Outcome> {
    support::require(Operation::Push, repository)?;
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
    if options.verify && !run_pre_push(repository, destination, url, &outcome.refs)? {
        outcome.failed = true;
        outcome.decided = false;
        close(pusher)?;
        return Ok(outcome);
    }
    let sending = send::Sending {
        repository,
        destination,
        url,
        options,
        watch,
    };
    let news = outcome.refs.iter().map(|pushed| pushed.new);
    let news: Vec<ObjectId> = news.filter(|id| !id.is_null()).collect();
    let mut next = Next::Send;
    let sent = prepare(&news).and_then(|chosen| {
        next = chosen;
        match next {
            Next::Send => send_refs(sending, &mut pusher, &mut outcome),
            Next::Keep => Ok(true),
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
    if !options.dry_run && next == Next::Send {
        outcome.tracked = tracking::update(repository, destination, &outcome.refs);
    }
    Ok(outcome)
}

/// Sends the refs of `outcome`, after a negotiation if there is to be one. Returns false if something failed
/// apart from single refs.
fn send_refs(
    sending: send::Sending<'_>,
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
        Err(error) if *error.kind() != ErrorKind::Interrupted => {
            // It would only have made the pack smaller.
            outcome.not_negotiated = Some(error);
            Vec::new()
        }
        commons => commons?,
    };
    sending.send(pusher, &mut outcome.refs, commons)
}

/// Ends the connection. Returns whether the program behind it ended well.
fn close(pusher: Pusher) -> Result<bool> {
    match pusher.close() {
        Ok(()) => Ok(true),
        Err(error) => match connection::from_wire(error) {
            error if *error.kind() == ErrorKind::Interrupted => Err(error),
            _ => Ok(false),
        },
    }
}

fn connect(
    repository: &Repository,
    destination: &Destination,
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

/// Runs the hook `pre-push`. Returns whether it accepted.
fn run_pre_push(
    repository: &Repository,
    destination: &Destination,
    url: &BStr,
    refs: &[PushedRef],
) -> Result<bool> {
    let mut input = Vec::new();
    for pushed in refs {
        let Some(peer) = &pushed.peer else { continue };
        let is_pointless = matches!(
            pushed.status,
            Status::RejectNonFastForward
                | Status::RejectStale
                | Status::RejectRemoteUpdated
                | Status::UpToDate
        );
        if is_pointless {
            continue;
        }
        input.extend_from_slice(&peer.name);
        input.extend_from_slice(format!(" {} ", pushed.new).as_bytes());
        input.extend_from_slice(&pushed.name);
        input.extend_from_slice(format!(" {}\n", pushed.old).as_bytes());
    }
    let name = crate::path::borrow(destination.name.as_bstr());
    let call = hooks::Call {
        arguments: vec![name.as_os_str(), crate::path::borrow(url).as_os_str()],
        input,
        // Git collects the output of each hook, also of the only one, if several may run at once, and prints it on
        // standard error.
        keeps_output: hooks::jobs(repository, "pre-push")? <= 1,
        needs_no_worktree: true,
        ..hooks::Call::default()
    };
    let code = hooks::run(repository, "pre-push", &call)?;
    Ok(code.is_none_or(|code| code == 0))
}

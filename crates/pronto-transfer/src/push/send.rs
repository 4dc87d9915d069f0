//! Sends the commands and the pack of a push, and reads the report.

use std::io::{self, Write};

use bstr::{BStr, BString};
use pronto_hash::ObjectId;
use pronto_io::progress::ProgressMessage;
use pronto_io::watch::Watch;
use pronto_storage::pack_objects::{self, MissingObjects, Select};
use pronto_wire::advertisement::ServerGreeting;
use pronto_wire::capabilities::AGENT;
use pronto_wire::push::{ProducePack, PushAnswer, PushCommand, Pusher, Report, Request};

use super::certificate::{self, Unsigned};
use super::{Options, PushRemote, PushStatus, PushedRef};
use crate::objects::from_odb;
use crate::remote::connection::{self, from_wire};
use crate::remote::{Exact, Remote, common_commits};
use crate::{Error, ErrorKind, Repository, Result};
use pronto_repository::{Notice, PushNotice};

/// The capabilities that this push uses.
struct PeerCapabilities {
    reports: bool,
    deletes: bool,
    atomic: bool,
    features: String,
}

/// A push, after its refs are matched.
#[derive(Clone, Copy)]
pub(super) struct PushInProgress<'a> {
    pub(super) repository: &'a Repository,
    pub(super) destination: &'a PushRemote,
    pub(super) url: &'a BStr,
    pub(super) options: &'a Options,
    pub(super) watch: &'a Watch<'a>,
}

impl PushInProgress<'_> {
    /// Sends the accepted updates, and records the report of the remote. Returns false if the push
    /// failed apart from single refs, which is reported. `commons` are commits that both sides
    /// have.
    pub(super) fn send(
        self,
        pusher: &mut Pusher,
        refs: &mut [PushedRef],
        commons: Vec<ObjectId>,
    ) -> Result<bool> {
        let (repository, options) = (self.repository, self.options);
        if refs.is_empty() {
            self.watch.progress().message(ProgressMessage::Step(
                "No refs in common and none specified; doing nothing.\n\
                 Perhaps you should specify a branch.",
            ));
            return Ok(true);
        }
        let greeting = pusher.greeting();
        let nonce = certificate::nonce(greeting, options.signed)?;
        let abilities = abilities(repository, greeting, options)?;
        if !abilities.deletes {
            for pushed in refs.iter_mut().filter(|pushed| pushed.deletes) {
                pushed.status = PushStatus::RejectNoDelete;
            }
        }
        if let Some(rejected) = choose(refs, options, &abilities) {
            let error = Error::new(ErrorKind::Refused, rejected);
            repository.notify(Notice::Failure(error));
            // The statuses of the refs show that they were not updated.
            return Ok(true);
        }
        let is_sent = |it: &&PushedRef| is_to_be_sent(it, options);
        let commands = refs.iter().filter(is_sent).map(|pushed| PushCommand {
            old: pushed.old,
            new: pushed.new,
            name: pushed.name.clone(),
        });
        let commands: Vec<PushCommand> = commands.collect();
        if options.dry_run {
            return Ok(true);
        }
        let certificate = match nonce {
            Some(nonce) => self.sign(nonce, &commands)?,
            None => None,
        };
        if commands.is_empty() {
            return Ok(true);
        }
        let request = Request {
            commands,
            features: abilities.features,
            shallow: repository.shallow_commits()?.to_vec(),
            options: (!options.push_options.is_empty()).then(|| options.push_options.clone()),
            certificate,
        };
        self.request(pusher, &request, commons, refs)
    }

    /// Negotiates common commits, over a connection like that of a fetch.
    pub(super) fn negotiate(self, refs: &[PushedRef]) -> Result<Vec<ObjectId>> {
        let new = refs.iter().map(|pushed| pushed.new);
        let tips: Vec<ObjectId> = new.filter(|id| !id.is_null()).collect();
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        let chosen = &self.destination.offer;
        let mut offer = chosen.choose(self.repository, &Remote::default())?;
        offer.tips.get_or_insert(tips);
        let (config, environment) = (self.repository.config(), self.repository.environment());
        let settings = &self.options.connection;
        let client = connection::connect(self.url, settings, config, environment, self.watch);
        let mut client = client?;
        let found = common_commits(self.repository, &mut client, &offer, &[]);
        // The response is complete.
        let _ = client.close();
        found
    }

    fn sign(self, nonce: BString, commands: &[PushCommand]) -> Result<Option<BString>> {
        let unsigned = Unsigned {
            repository: self.repository,
            options: self.options,
            url: self.url,
            nonce,
        };
        unsigned.sign(commands, self.watch.interrupt())
    }

    /// Sends the commands and the pack.
    fn request(
        self,
        pusher: &mut Pusher,
        request: &Request,
        commons: Vec<ObjectId>,
        refs: &mut [PushedRef],
    ) -> Result<bool> {
        let (repository, watch) = (self.repository, self.watch);
        let greeting = pusher.greeting();
        let mut haves = haves(repository, greeting)?;
        haves.extend(commons);
        let wants = request.commands.iter().map(|command| command.new);
        let wants: Vec<ObjectId> = wants.filter(|id| !id.is_null()).collect();
        let has_offsets = greeting.capabilities.has("ofs-delta");
        let thin = !self.options.no_thin && !greeting.capabilities.has("no-thin");
        let is_quiet = self.options.quiet;
        let needs_pack = !wants.is_empty();
        let produce = move |out: &mut dyn Write| -> io::Result<()> {
            let pack = PushedPack {
                wants,
                haves,
                thin,
                has_offsets,
                is_quiet,
            };
            write_pack(repository, &pack, out, watch).map_err(|error| as_io(&error))
        };
        let produce = needs_pack.then(|| Box::new(produce) as ProducePack<'_>);
        let pushed = pusher.push(request, produce, watch.progress());
        take_answer(repository, pushed.map_err(from_wire)?, refs)
    }
}

/// Chooses the capabilities of the push.
fn abilities(
    repository: &Repository,
    greeting: &ServerGreeting,
    options: &Options,
) -> Result<PeerCapabilities> {
    let there = &greeting.capabilities;
    let fail = |message: &str| Err(Error::new(ErrorKind::Transport, message));
    let hash = repository.object_hash();
    if greeting.object_format != hash {
        return fail("the receiving end does not support this repository's hash algorithm");
    }
    if options.atomic && !there.has("atomic") {
        return fail("the receiving end does not support --atomic push");
    }
    let has_options = !options.push_options.is_empty();
    if has_options && !there.has("push-options") {
        return fail("the receiving end does not support push options");
    }
    let mut features = String::new();
    let mut add = |word: &str| {
        features.push(' ');
        features.push_str(word);
    };
    let reports = match (there.has("report-status-v2"), there.has("report-status")) {
        (true, _) => Some("report-status-v2"),
        (_, true) => Some("report-status"),
        _ => None,
    };
    reports.into_iter().for_each(&mut add);
    if there.has("side-band-64k") {
        add("side-band-64k");
    }
    if options.quiet && there.has("quiet") {
        add("quiet");
    }
    if options.atomic {
        add("atomic");
    }
    if has_options {
        add("push-options");
    }
    if there.has("object-format") {
        add(&format!("object-format={hash}"));
    }
    if there.has("agent") {
        add(&format!("agent={AGENT}"));
    }
    if there.has("session-id")
        && let Some(id) = connection::session_id(repository.config(), repository.environment())?
    {
        add(&format!("session-id={id}"));
    }
    Ok(PeerCapabilities {
        reports: reports.is_some(),
        deletes: there.has("delete-refs"),
        atomic: options.atomic,
        features,
    })
}

fn has_change(pushed: &PushedRef, options: &Options) -> bool {
    pushed.peer.is_some() || options.mirror
}

fn is_to_be_sent(pushed: &PushedRef, options: &Options) -> bool {
    has_change(pushed, options)
        && !pushed.status.is_rejection()
        && pushed.status != PushStatus::UpToDate
}

/// Marks the refs to update. Returns the message to report if an atomic push cannot succeed.
fn choose(
    refs: &mut [PushedRef],
    options: &Options,
    abilities: &PeerCapabilities,
) -> Option<String> {
    let rejected = refs
        .iter()
        .find(|it| has_change(it, options) && it.status.is_rejection());
    if let Some(rejected) = rejected.filter(|_| abilities.atomic) {
        let number = rejected.status.number();
        let message = format!(
            "atomic push failed for ref {}. status: {number}",
            rejected.name
        );
        for pushed in refs.iter_mut().filter(|it| has_change(it, options)) {
            if matches!(
                pushed.status,
                PushStatus::None | PushStatus::Ok | PushStatus::ExpectingReport
            ) {
                pushed.status = PushStatus::AtomicPushFailed;
            }
        }
        return Some(message);
    }
    for pushed in refs.iter_mut().filter(|it| is_to_be_sent(it, options)) {
        pushed.status = match options.dry_run || !abilities.reports {
            true => PushStatus::Ok,
            false => PushStatus::ExpectingReport,
        };
    }
    None
}

/// Returns the local objects that the remote has, too.
fn haves(repository: &Repository, greeting: &ServerGreeting) -> Result<Vec<ObjectId>> {
    let shown = greeting.refs.iter().filter_map(|remote| remote.id);
    let mut ids: Vec<ObjectId> = shown.chain(greeting.haves.iter().copied()).collect();
    ids.sort_unstable();
    ids.dedup();
    let store = repository.objects()?;
    let present = store.contains_batch(&ids).map_err(from_odb)?;
    let both = ids.into_iter().zip(present);
    Ok(both.filter(|(_, here)| *here).map(|(id, _)| id).collect())
}

/// Converts an error while a pack is created into an I/O error. A broken pipe is preserved, because
/// the report of the remote explains it.
fn as_io(error: &Error) -> io::Error {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    let mut kind = io::ErrorKind::Other;
    while let Some(each) = cause {
        if let Some(io) = each.downcast_ref::<io::Error>() {
            kind = io.kind();
        }
        cause = each.source();
    }
    io::Error::new(kind, error.to_string())
}

/// The content of a pack.
struct PushedPack {
    wants: Vec<ObjectId>,
    haves: Vec<ObjectId>,
    thin: bool,
    has_offsets: bool,
    /// Whether no progress is shown.
    is_quiet: bool,
}

fn write_pack(
    repository: &Repository,
    pack: &PushedPack,
    out: &mut dyn Write,
    watch: &Watch<'_>,
) -> Result<()> {
    let original = repository.original()?;
    let repository: &Repository = &original;
    let config = repository.config();
    let is_partial = repository.has_promisor()?
        && !repository
            .environment()
            .boolean("GIT_NO_LAZY_FETCH", false)?;
    let select = Select {
        thin: pack.thin && !pack.haves.is_empty(),
        sparse: config.bool_or("pack.usesparse", true)?,
        bitmaps: config.bool_or("push.usebitmaps", true)?,
        missing: match is_partial {
            true => MissingObjects::LeaveOut,
            false => MissingObjects::Fail,
        },
        ..Select::default()
    };
    let exact = Exact { repository, watch };
    let selection = exact.select(repository.objects()?, |watch| {
        pack_objects::select(repository, &pack.wants, &pack.haves, &select, watch)
    })?;
    let mut options = pack_objects::packing_options(repository)?;
    options.offset_deltas = pack.has_offsets;
    let counts = pack_objects::send(repository, &selection, &options, out, watch)?.counts;
    pronto_io::data!("pack-objects", "write_pack_file/wrote", counts.objects);
    if !pack.is_quiet {
        pack_objects::report_totals(&counts, watch);
    }
    Ok(())
}

/// Records the report of the remote. Returns false if the push failed apart from single refs.
fn take_answer(
    repository: &Repository,
    answer: PushAnswer,
    refs: &mut [PushedRef],
) -> Result<bool> {
    let mut is_fine = true;
    if let Some(report) = answer.report {
        is_fine &= report.errors.is_empty();
        for error in &report.errors {
            let error = Error::new(ErrorKind::Refused, error.clone());
            repository.notify(Notice::Failure(error));
        }
        take_report(repository, report, refs);
    }
    if let Some(error) = answer.unsent
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let error = Error::new(ErrorKind::Io, error.to_string());
        repository.notify(Notice::Failure(error));
        is_fine = false;
    } else if let Some(error) = answer.unread {
        return match from_wire(error) {
            error if error.kind() == ErrorKind::Interrupted => Err(error),
            error => {
                repository.notify(Notice::Failure(error));
                Ok(false)
            }
        };
    }
    Ok(is_fine)
}

fn take_report(repository: &Repository, report: Report, refs: &mut [PushedRef]) {
    let names = refs.iter().enumerate();
    let by_name: std::collections::HashMap<_, _> =
        names.map(|(at, it)| (it.name.clone(), at)).collect();
    for reply in report.replies {
        let found = by_name.get(&reply.name).and_then(|at| refs.get_mut(*at));
        let Some(pushed) = found else {
            let notice = PushNotice::UnknownReport(reply.name);
            repository.notify(Notice::Push(notice));
            continue;
        };
        if pushed.status != PushStatus::ExpectingReport {
            let notice = PushNotice::UnexpectedReport(reply.name);
            repository.notify(Notice::Push(notice));
            continue;
        }
        match reply.failure {
            Some(reason) => {
                pushed.status = PushStatus::RemoteReject;
                pushed.remark = Some(reason);
            }
            None => {
                pushed.status = PushStatus::Ok;
                pushed.remark = reply.remark;
                pushed.rewrites = reply.rewrites;
            }
        }
    }
}

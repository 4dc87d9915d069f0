//! The Git services of crate `pronto`, with the program `git` for pushes to repositories with
//! unsupported settings.

use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bstr::BString;
use prometheus_client::registry::Registry;
use pronto::receive_pack::{Growth, PackLimit};
use pronto::upload_pack::{self, ConversationEnd, Options, Selections};
use pronto::{Repository, Watch, receive_pack, upload_archive};
use pronto_wire::receive::PushParts;

use super::process::{GitProgram, NonceFinder, NonceRule, ReceiveLimits};
use super::push::{AllowedPush, Judged, PushReceiver, judge_request};
use super::pushed::PushInput;
use super::{GitService, PushPolicy, Request, RequestStreams, broken};
use crate::bundles::{Bundles, OpenedBundle};
use crate::error::without_room;
use crate::listings::Listings;
use crate::packs::ServerPackCache;
use crate::{Error, ErrorKind, Result};

/// The largest size in bytes of a received commit, tree or tag, which is held in memory.
pub(crate) const MOST_OBJECT_BYTES: u64 = 32 << 20;

/// The timeout of the program that verifies the signature of a push certificate.
const SIGNATURE_LIMIT: Duration = Duration::from_secs(60);

/// The Git services of crate `pronto`. Pushes to repositories that [`receive_pack::can_serve`]
/// excludes use the program `git`.
pub struct Native {
    /// The program that updates worktrees after a push, with the command-line syntax of Git.
    pub program: PathBuf,
    /// The callback after a push that may require maintenance. It must not wait for the
    /// maintenance.
    pub maintain: Box<dyn Fn(&Repository) + Send + Sync>,
    /// The cache of packs for equal requests, if it is enabled.
    pub packs: Option<Arc<ServerPackCache>>,
    /// The selections of objects that concurrent equal requests share.
    pub selections: Arc<Selections>,
    /// The cache of ref advertisements for equal requests, if it is enabled.
    pub listings: Option<Arc<Listings>>,
    /// The bundles from which clones over HTTP start, if they are enabled.
    pub bundles: Option<Arc<Bundles>>,
    /// The program `git`, for pushes that crate `pronto` does not support.
    pub git: GitProgram,
}

impl GitService for Native {
    fn register(&self, registry: &mut Registry) {
        if let Some(packs) = &self.packs {
            packs.register(registry);
        }
    }

    fn advertise_fetch(
        &self,
        request: &Request<'_>,
        output: &mut (dyn Write + Send),
    ) -> Result<()> {
        let options = self.fetch_options(request, true);
        upload_pack::advertise(request.repository, &options, output).map_err(failed)
    }

    fn answer_fetch(&self, request: &Request<'_>, streams: RequestStreams<'_>) -> Result<()> {
        answer(request, &self.fetch_options(request, true), streams)
    }

    fn open_bundle(&self, request: &Request<'_>, name: &str) -> Result<Option<OpenedBundle>> {
        let Some(bundles) = self.bundles_of(request)? else {
            return Ok(None);
        };
        let repository = request.repository;
        let opened = bundles.open(repository, repository.identity(), name, request.interrupt);
        opened.map_err(failed)
    }

    fn serve_fetch(&self, request: &Request<'_>, streams: RequestStreams<'_>) -> Result<()> {
        answer(request, &self.fetch_options(request, false), streams)
    }

    fn advertise_push(&self, request: &Request<'_>, output: &mut (dyn Write + Send)) -> Result<()> {
        if !can_serve(request)? {
            return self.git.advertise(request, "receive-pack", output);
        }
        let options = self.push_options(request, PushRequestKind::Advertisement);
        let streams = RequestStreams {
            input: &mut io::empty(),
            output,
        };
        self.receive(request, &options, streams)
    }

    fn pushed(&self, repository: &Repository) {
        (self.maintain)(repository);
    }

    fn serve_archive(&self, request: &Request<'_>, streams: RequestStreams<'_>) -> Result<()> {
        let watch = Watch::none().with_interrupt(request.interrupt);
        let mut options = upload_archive::Options::default();
        options.hides_refs = true;
        let streams = upload_archive::ArchiveStreams {
            input: streams.input,
            output: streams.output,
        };
        let ended = upload_archive::serve(Ok(request.repository), &options, streams, &watch);
        match ended.map_err(failed)? {
            upload_archive::ArchiveRequestEnd::Served => Ok(()),
            // The error was reported to the client.
            upload_archive::ArchiveRequestEnd::Failed { reason, .. } => {
                Err(Error::new(ErrorKind::Malformed, reason.to_string()))
            }
            _ => Err(Error::new(ErrorKind::Failed, "the archive is incomplete")),
        }
    }

    fn answer_push(
        &self,
        request: &Request<'_>,
        judge: &dyn PushPolicy,
        streams: RequestStreams<'_>,
    ) -> Result<()> {
        self.take_push(request, judge, None, streams)
    }

    fn serve_push(
        &self,
        request: &Request<'_>,
        judge: &dyn PushPolicy,
        streams: RequestStreams<'_>,
    ) -> Result<()> {
        let RequestStreams { input, output } = streams;
        let time = SystemTime::now();
        let mut finder = NonceFinder::new(output);
        if can_serve(request)? {
            let mut options = self.push_options(request, PushRequestKind::Advertisement);
            options.advertised = Some(time);
            let streams = RequestStreams {
                input: &mut io::empty(),
                output: &mut finder,
            };
            self.receive(request, &options, streams)?;
        } else {
            self.git.advertise(request, "receive-pack", &mut finder)?;
        }
        let nonce = finder.nonce();
        output.flush().map_err(broken)?;
        let advertised = Advertised { time, nonce };
        self.take_push(
            request,
            judge,
            Some(advertised),
            RequestStreams { input, output },
        )
    }
}

/// An advertisement that was sent on the connection of the push itself.
struct Advertised {
    time: SystemTime,
    /// The nonce for push certificates.
    nonce: Option<BString>,
}

impl Advertised {
    /// Returns the rule for the nonce of a push certificate.
    fn rule(&self, nonce: &BString) -> NonceRule {
        match self.nonce.as_ref() == Some(nonce) {
            true => {
                let age = self.time.elapsed().unwrap_or_default();
                NonceRule::OfConnection {
                    age_seconds: age.as_secs() + 2,
                }
            }
            false => NonceRule::None,
        }
    }
}

/// A push that the program `git` performs.
struct ForGit<'a> {
    allowed: AllowedPush<'a>,
    advertised: Option<Advertised>,
}

/// Sends a report to the client.
fn send(report: &[u8], output: &mut (dyn Write + Send)) -> Result<()> {
    output.write_all(report).map_err(broken)?;
    output.flush().map_err(broken)
}

/// The step of a push that a request performs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PushRequestKind {
    Advertisement,
    Request,
}

impl Native {
    /// Checks and performs a push. `advertised` is the advertisement, if the push is on the same
    /// connection.
    fn take_push(
        &self,
        request: &Request<'_>,
        judge: &dyn PushPolicy,
        advertised: Option<Advertised>,
        streams: RequestStreams<'_>,
    ) -> Result<()> {
        let RequestStreams { input, output } = streams;
        let refs = request.repository.refs();
        let target_of = |name: &[u8]| match refs.resolve(name) {
            Ok(Some(found)) if found.is_symbolic => Some(found.name),
            _ => None,
        };
        let can_serve = can_serve(request)?;
        let config = request.repository.config();
        let receiver = PushReceiver {
            target_of: &target_of,
            budget: request.budget,
            most_bytes: judge.command_bytes(),
            takes_certificates: config.contains("receive.certnonceseed"),
            protects_all_refs: can_serve,
        };
        let pack_limit = judge.pack_limit(request.repository)?;
        let mut allowed = match judge_request(input, judge, &receiver)? {
            Judged::Refused(report) => return send(&report, output),
            Judged::Allowed(allowed) => allowed,
        };
        if !can_serve {
            let streams = RequestStreams { input, output };
            let push = ForGit {
                allowed,
                advertised,
            };
            return self.take_by_git(request, judge, push, streams);
        }
        let mut options = self.push_options(request, PushRequestKind::Request);
        options.fast_forward_only = std::mem::take(&mut allowed.fast_forward_only);
        options.pack_limit = pack_limit;
        options.bounds = judge.bounds();
        options.advertised = advertised.map(|it| it.time);
        let mut input = allowed.into_input().chain(input);
        let streams = RequestStreams {
            input: &mut input,
            output,
        };
        self.receive(request, &options, streams)
    }

    /// Performs a checked push with the program `git`. No other push with bounds changes the
    /// repository during this call.
    fn take_by_git(
        &self,
        request: &Request<'_>,
        judge: &dyn PushPolicy,
        push: ForGit<'_>,
        streams: RequestStreams<'_>,
    ) -> Result<()> {
        let RequestStreams { input, output } = streams;
        let ForGit {
            allowed,
            advertised,
        } = push;
        let (repository, bounds) = (request.repository, judge.bounds());
        let turn = (!bounds.is_empty()).then(|| bounds.turn(repository));
        let _turn = turn.transpose().map_err(failed)?;
        let mut growth = Growth::default();
        if bounds.refs.is_some() {
            for name in allowed.set_refs() {
                let found = repository.refs().find(name).map_err(failed)?;
                growth.refs += u64::from(found.is_none());
            }
        }
        if let Some(reason) = bounds.refusal(repository, growth).map_err(failed)? {
            return send(&allowed.refuse(&reason)?, output);
        }
        let rule = advertised.zip(allowed.nonce.as_ref());
        let rule = rule.map(|(advertised, nonce)| advertised.rule(nonce));
        let limit = bounds.bytes.map(|bound| -> Result<PackLimit> {
            let bytes = repository.object_bytes()?;
            let rest = bound.most.saturating_sub(bytes).max(1);
            Ok(PackLimit::new(rest, bound.origin))
        });
        let limits = ReceiveLimits {
            forbids_force: !allowed.fast_forward_only.is_empty(),
            pack_bytes: pack_limit_of_git(request, limit.transpose()?)?,
            nonce: rule.unwrap_or(NonceRule::OfRequests),
        };
        let parts = PushParts {
            options: allowed.has_feature("push-options"),
            pack: allowed.set_refs().next().is_some(),
            hash: repository.object_hash(),
        };
        let mut input = PushInput::new(allowed.into_input().chain(input), parts);
        let streams = RequestStreams {
            input: &mut input,
            output,
        };
        self.git.receive(request, limits, streams)
    }

    /// Returns the options of the conversation that `request` starts.
    fn fetch_options(&self, request: &Request<'_>, is_stateless: bool) -> Options {
        let mut options = Options::default();
        options.version = request.version();
        options.is_stateless = is_stateless;
        options.is_daemon = true;
        let (packs, listings) = (self.packs.clone(), self.listings.clone());
        options.packs = packs.map(|packs| packs as Arc<dyn upload_pack::PackCache>);
        options.selections = Some(Arc::clone(&self.selections));
        options.listings = listings.map(|listings| listings as Arc<dyn upload_pack::ListingCache>);
        options.budget = Some(Arc::clone(request.budget));
        let is_view = request.repository.is_view();
        options.view_of = is_view.then(|| request.repository.identity().to_owned());
        let bundles = self.bundles.as_ref().filter(|_| is_stateless);
        options.bundles =
            bundles.map(|bundles| bundles.of(request.repository.identity().to_owned()));
        options
    }

    /// Returns the bundles, unless the repository configures its own bundles.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Failed`] if a setting is not a boolean.
    fn bundles_of(&self, request: &Request<'_>) -> Result<Option<&Arc<Bundles>>> {
        let config = request.repository.config();
        let own = config.bool("uploadpack.advertisebundleuris");
        let own = own.map_err(|error| error.map_kind(|_| ErrorKind::Failed))?;
        Ok(self.bundles.as_ref().filter(|_| own.is_none()))
    }

    fn push_options(&self, request: &Request<'_>, step: PushRequestKind) -> receive_pack::Options {
        let mut options = receive_pack::Options::new(&self.program);
        options.version = request.version();
        options.advertises = step == PushRequestKind::Advertisement;
        options.receives = step == PushRequestKind::Request;
        options.most_object_bytes = Some(MOST_OBJECT_BYTES);
        options.landing = request.repository.landing().cloned();
        options.service = Some(service_of(request));
        options.budget = Some(Arc::clone(request.budget));
        options.signature_limit = Some(SIGNATURE_LIMIT);
        options
    }

    fn receive(
        &self,
        request: &Request<'_>,
        options: &receive_pack::Options,
        streams: RequestStreams<'_>,
    ) -> Result<()> {
        let RequestStreams { input, output } = streams;
        let streams = receive_pack::ReceiveStreams { input, output };
        let served = receive_pack::serve(
            request.repository,
            options,
            streams,
            &Watch::from(request.interrupt),
        );
        if served.map_err(failed)?.maintains {
            (self.maintain)(request.repository);
        }
        Ok(())
    }
}

/// Returns whether crate `pronto` supports pushes to the repository. Otherwise the program `git`
/// performs them.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if the repository is a view, because git would change only
/// the view.
fn can_serve(request: &Request<'_>) -> Result<bool> {
    let repository = request.repository;
    if repository.landing().is_none() {
        return receive_pack::can_serve(repository).map_err(failed);
    }
    if receive_pack::can_serve_view(repository).map_err(failed)? {
        return Ok(true);
    }
    let message = "the configuration of the repository has a setting that pronto does not \
                   implement for pushes to a store";
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// Returns the name of the repository in nonces, which is the same for all servers of a store.
fn service_of(request: &Request<'_>) -> BString {
    let identity = request.repository.identity();
    let name = match request.repository.is_view() {
        true => identity.file_name().unwrap_or_default(),
        false => identity.as_os_str(),
    };
    name.as_bytes().into()
}

/// Returns the size limit to pass to git for a push with this limit, or `None` if the limit of the
/// repository is smaller.
///
/// # Errors
/// Fails with [`ErrorKind::Failed`] if `receive.maxInputSize` is not a number.
fn pack_limit_of_git(request: &Request<'_>, limit: Option<PackLimit>) -> Result<Option<u64>> {
    let Some(limit) = limit else {
        return Ok(None);
    };
    let own = request.repository.config().u64("receive.maxinputsize");
    let own = own.map_err(|error| error.map_kind(|_| ErrorKind::Failed))?;
    // The value 0 means no limit.
    let is_smaller = own.is_some_and(|own| 0 < own && own < limit.bytes);
    Ok((!is_smaller).then_some(limit.bytes))
}

fn answer(request: &Request<'_>, options: &Options, streams: RequestStreams<'_>) -> Result<()> {
    let RequestStreams { input, output } = streams;
    let streams = upload_pack::UploadStreams { input, output };
    let watch = Watch::from(request.interrupt);
    let answered = upload_pack::answer(request.repository, options, streams, &watch);
    match answered.map_err(failed)? {
        ConversationEnd::Served => Ok(()),
        // The error was reported to the client.
        ConversationEnd::Refused(message) => {
            Err(Error::new(ErrorKind::Malformed, message.to_string()))
        }
        ConversationEnd::Aborted(message) => {
            Err(Error::new(ErrorKind::Malformed, message.to_string()))
        }
    }
}

fn failed(error: pronto::Error) -> Error {
    let kind = match error.kind() {
        pronto::ErrorKind::Exhausted => return without_room(error.message()),
        pronto::ErrorKind::Refused => ErrorKind::Malformed,
        _ => ErrorKind::Failed,
    };
    error.map_kind(|_| kind)
}

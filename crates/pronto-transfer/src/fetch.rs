//! Fetches new objects and refs from another repository: `git fetch`.
//!
//! Received objects are stored in a quarantine, and are published when they are complete and
//! connected. Refs then change in one transaction. A fetch without changes compares ids and reads
//! no object. See [`fetch`].

mod download;
mod follow_head;
mod head_file;
mod ignored;
mod keep;
mod map;
mod outcome;
mod own_tips;
mod pack;
mod prefetch;
mod prune;
mod update;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::{LsRefs, RemoteRef};
use pronto_wire::client::FetchClient;
use pronto_wire::fetch::Deepen;

use crate::config::Config;
use crate::refs::BrokenRef;
use crate::remote::connection::{self, Settings, from_wire};
use crate::remote::{
    INFINITE_DEPTH, NegotiationTips, OfferOptions, Refspec, Remote, Tags, register_promisor,
    shallow,
};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result, path};
pub use download::ReceivedPack;
pub use map::pretty;
use map::{FetchedRef, Mapping};
pub use outcome::{FetchFailure, FetchWarning, Flag, Outcome, Update, UpdateNote, UpdateSummary};
pub use pack::{FetchRules, FetchSelection, FetchedPack, Sought, Tip, fetch_pack};

/// Options of a fetch. The default is `git fetch` without options.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The refspecs of the command line, which replace the configured ones (`remote.NAME.fetch`).
    pub refspecs: Vec<Refspec>,
    /// The refspecs that map the refs in `refspecs` to remote-tracking refs, instead of the
    /// configured ones (`--refmap`).
    pub refmap: Option<Vec<Refspec>>,
    /// The tags to fetch (`--tags`, `--no-tags`). Unset, `remote.NAME.tagOpt` decides.
    pub tags: Option<Tags>,
    /// Delete stale remote-tracking refs (`--prune`). Unset, `remote.NAME.prune` or `fetch.prune`
    /// decides.
    pub prune: Option<bool>,
    /// Delete stale tags, too (`--prune-tags`). Unset, `remote.NAME.pruneTags` or `fetch.pruneTags`
    /// decides.
    pub prune_tags: Option<bool>,
    /// Allow updates that are not fast-forwards (`--force`).
    pub force: bool,
    /// Append to `FETCH_HEAD` instead of overwriting it (`--append`).
    pub append: bool,
    /// Do not change refs (`--dry-run`).
    pub dry_run: bool,
    /// Update all refs or none (`--atomic`).
    pub atomic: bool,
    /// Allow updates of branches that are checked out (`--update-head-ok`).
    pub update_head: bool,
    /// Write `FETCH_HEAD` (`--write-fetch-head`).
    pub write_fetch_head: bool,
    /// The limits of a shallow history (`--depth`, `--deepen`, `--shallow-since`,
    /// `--shallow-exclude`).
    pub deepen: Deepen,
    /// Convert a shallow repository to a complete one (`--unshallow`).
    pub unshallow: bool,
    /// Accept refs that need new shallow commits of the remote (`--update-shallow`).
    pub update_shallow: bool,
    /// The object filter of a partial clone, instead of the configured one (`--filter`).
    pub filter: Option<BString>,
    /// Ignore the configured filter (`--no-filter`).
    pub no_filter: bool,
    /// Fetch all objects again, without negotiation (`--refetch`).
    pub refetch: bool,
    /// The commits to send as haves in the negotiation (`--negotiation-restrict`,
    /// `--negotiation-include`). By default, the configured ones, or the history of all refs.
    pub offer: OfferOptions,
    /// Store refs below `refs/prefetch/`, and do not update branches and tags (`--prefetch`).
    pub prefetch: bool,
    /// The settings of the connection, such as `--upload-pack`.
    pub settings: Settings,
    /// Protocol-specific values for the server (`--server-option`).
    pub server_options: Vec<BString>,
    /// Show progress (`--progress`). If false, the server is asked not to send its own progress.
    pub show_progress: bool,
    /// Show progress while the objects of a small pack are unpacked. Git shows it only on a
    /// terminal, for all options.
    pub show_unpacking: bool,
    /// Keep the received pack, even if it is small (`--keep`).
    pub keep: bool,
    /// Create a `.keep` file for the pack, which the caller removes when refs point to the objects.
    pub lock_packs: bool,
    /// The rules of `git fetch-pack` for received packs, instead of those of `git fetch`.
    pub rules: Option<FetchRules>,
    /// Accept a thin pack, with deltas against local objects (`--thin`).
    pub thin_pack: bool,
    /// Report unchanged refs, too (`--verbose`).
    pub report_unchanged: bool,
    /// Check whether updates are fast-forwards (`--show-forced-updates`). Unset,
    /// `fetch.showForcedUpdates` decides.
    pub show_forced_updates: Option<bool>,
    /// The start of reflog messages: the command line.
    pub action: BString,
}

impl Options {
    /// Returns whether updates are checked for fast-forwards, from `show_forced_updates` or
    /// `fetch.showForcedUpdates`.
    ///
    /// # Errors
    /// Fails if the setting is not a boolean.
    pub fn shows_forced_updates(&self, config: &Config) -> Result<bool> {
        match self.show_forced_updates {
            Some(set) => Ok(set),
            None => config.bool_or("fetch.showforcedupdates", true),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            refspecs: Vec::new(),
            refmap: None,
            tags: None,
            prune: None,
            prune_tags: None,
            force: false,
            append: false,
            dry_run: false,
            atomic: false,
            update_head: false,
            write_fetch_head: true,
            deepen: Deepen::default(),
            unshallow: false,
            update_shallow: false,
            filter: None,
            no_filter: false,
            refetch: false,
            offer: OfferOptions::default(),
            prefetch: false,
            settings: Settings::default(),
            server_options: Vec::new(),
            show_progress: false,
            show_unpacking: false,
            keep: false,
            lock_packs: false,
            rules: None,
            thin_pack: true,
            report_unchanged: false,
            show_forced_updates: None,
            action: "fetch".into(),
        }
    }
}

/// State that the steps of a fetch share.
struct FetchRun<'a> {
    repository: &'a Repository,
    remote: &'a Remote,
    options: &'a Options,
    deepen: Deepen,
    tags: Tags,
    /// All local refs.
    ours: HashMap<BString, ObjectId>,
    /// The local refs that cannot be read.
    broken: Vec<BString>,
    /// The local refs that are symbolic.
    symbolic: HashSet<BString>,
    /// The branches that worktrees have checked out, with the paths of the worktrees.
    checked_out: Vec<(BString, PathBuf)>,
    /// The commits to send as haves in the negotiation.
    offer: NegotiationTips,
    /// The local shallow commits.
    cut: BTreeSet<ObjectId>,
    /// The source URL, without a password.
    source: BString,
    /// The source URL, as shown in `FETCH_HEAD` and in tables.
    url: BString,
    /// Receives the progress, and stops the operation.
    watch: &'a Watch<'a>,
}

/// Fetches from `remote`, like `git fetch`.
///
/// # Errors
/// - [`ErrorKind::Transport`] if the remote cannot be reached or breaks the connection.
/// - [`ErrorKind::Refused`] if the remote refuses.
/// - [`ErrorKind::InvalidInput`] if options contradict each other, and `ErrorKind::UnknownRevision`
///   if a requested ref is missing.
/// - [`ErrorKind::Unsupported`] if only git supports a setting of the connection.
/// - Other kinds if the pack is invalid or incomplete, or a file cannot be written.
///
/// No ref has changed after an error. A refused update is no error: see [`Outcome::failed`]. The
/// messages are Git's.
pub fn fetch(
    repository: &Repository,
    remote: &Remote,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Outcome> {
    support::require(repository, Operation::Fetch)?;
    check(repository, remote, options)?;
    let of_address = prune::tags_of_address(repository, remote, options)?;
    let options = of_address.as_ref().unwrap_or(options);
    let with_tags = prune::with_tags(repository, remote, options)?;
    let remote = with_tags.as_ref().unwrap_or(remote);
    let follows_head = options.refspecs.is_empty();
    let redirected = options
        .prefetch
        .then(|| prefetch::redirect(remote, options));
    let (remote, options) = match &redirected {
        Some(redirected) => (&redirected.remote, &redirected.options),
        None => (remote, options),
    };
    if let Some(filter) = &options.filter {
        register_promisor(repository, remote, filter.as_bstr())?;
    }
    let mut work = FetchRun::prepare(repository, remote, options, watch)?;
    if !options.append && options.write_fetch_head && !options.dry_run {
        truncate(repository)?;
    }
    let client = work.connect()?;
    work.ignore_options(&client)?;
    let mut client = Some(client);
    let refs = work.refs(&mut client)?;
    let mut outcome = Outcome {
        url: work.url.clone(),
        ..Outcome::default()
    };
    let mapping = Mapping::make(&work, &refs, &mut outcome)?;
    if !options.update_head {
        work.check_checked_out(&mapping.entries)?;
    }
    outcome.name_width = mapping.name_width(options.report_unchanged);
    let mut all = mapping.entries;
    let mut fetched = work.finish(&mut client, &refs, &mut all, &mut outcome)?;
    if work.tags == Tags::Follow && mapping.follows_tags {
        let found = map::followed_tags(&work, &refs, &all, fetched.store())?;
        if !found.is_empty() {
            fetched.take_more(&work, &mut client, &found)?;
            all.extend(found);
        }
    }
    fetched.publish(&work)?;
    if let Some(client) = client {
        // All objects are received; an error while closing the connection does not matter.
        let _ = client.close();
    }
    update::apply(&work, &all, &mut outcome)?;
    let unmapped = all.iter().filter(|entry| entry.local.is_none());
    outcome.unmapped = unmapped.map(|entry| entry.name.clone()).collect();
    if follows_head && !(options.atomic && outcome.failed) {
        // The requested work is done; Git ignores this failure, too.
        let _ = follow_head::follow(&work, &refs);
    }
    Ok(outcome)
}

/// Checks that pronto supports all settings for the connection to `remote`. Changes and sends
/// nothing.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if only git supports a setting. [`fetch()`] reports other
/// errors of the settings.
pub fn check(repository: &Repository, remote: &Remote, options: &Options) -> Result<()> {
    let config = repository.config();
    let Some(url) = remote.urls.first() else {
        return Ok(());
    };
    let settings = options.settings.for_remote(remote, config)?;
    match connection::check(url.as_bstr(), &settings, config, repository.environment()) {
        Err(error) if error.kind() == ErrorKind::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// Empties `FETCH_HEAD`, or creates it.
///
/// # Errors
/// Fails with `ErrorKind::Io` if the file cannot be written.
pub fn truncate(repository: &Repository) -> Result<()> {
    head_file::truncate(repository)
}

impl<'a> FetchRun<'a> {
    fn prepare(
        repository: &'a Repository,
        remote: &'a Remote,
        options: &'a Options,
        watch: &'a Watch<'a>,
    ) -> Result<Self> {
        let mut deepen = options.deepen.clone();
        if options.unshallow {
            if !repository.is_shallow() {
                let message = "--unshallow on a complete repository does not make sense";
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            deepen.depth = Some(INFINITE_DEPTH);
        }
        let mut ours = HashMap::new();
        let (mut symbolic, mut broken) = (HashSet::new(), Vec::new());
        repository.refs().for_each_or_broken("refs/", |found| {
            match found {
                Ok(found) => {
                    ours.insert(found.name.to_owned(), found.id);
                    if found.symbolic.is_some() {
                        symbolic.insert(found.name.to_owned());
                    }
                }
                Err(BrokenRef::Dangling(name)) => _ = symbolic.insert(name.to_owned()),
                Err(BrokenRef::Contents(name)) => broken.push(name.to_owned()),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(FetchRun {
            repository,
            remote,
            options,
            deepen,
            tags: options.tags.or(remote.tags).unwrap_or_default(),
            ours,
            broken,
            symbolic,
            checked_out: checked_out(repository)?,
            offer: options.offer.choose(repository, remote)?,
            cut: shallow::read(repository)?,
            source: connection::shown(remote.url()?),
            url: shown_url(remote)?,
            watch,
        })
    }

    fn connect(&self) -> Result<FetchClient> {
        let config = self.repository.config();
        let settings = self.options.settings.for_remote(self.remote, config)?;
        let client = connection::connect(
            self.remote.url()?,
            &settings,
            config,
            self.repository.environment(),
            self.watch,
        )?;
        let (ours, theirs) = (self.repository.object_hash(), client.object_format());
        if ours != theirs {
            let message = format!("mismatched algorithms: client {ours}; server {theirs}");
            return Err(Error::new(ErrorKind::Transport, message));
        }
        Ok(client)
    }

    fn server_options(&self) -> Vec<BString> {
        match self.options.server_options.is_empty() {
            true => self.remote.server_options.clone(),
            false => self.options.server_options.clone(),
        }
    }

    /// Returns the relevant refs of the remote.
    fn refs(&self, client: &mut Option<FetchClient>) -> Result<Vec<RemoteRef>> {
        let Some(client) = client else {
            return Ok(Vec::new());
        };
        let mut prefixes = Vec::new();
        if self.options.refspecs.is_empty() {
            for spec in &self.remote.fetch {
                spec.add_prefixes(&mut prefixes);
            }
            for name in map::configured_merges(self)? {
                prefixes.extend(crate::refs::name::candidates(name.as_bstr()));
            }
            if prefixes.is_empty() {
                prefixes.push("HEAD".into());
            }
        } else {
            for spec in &self.options.refspecs {
                spec.add_prefixes(&mut prefixes);
            }
        }
        if self.tags != Tags::None {
            prefixes.push("refs/tags/".into());
        }
        let specs = match self.options.refspecs.is_empty() {
            true => &self.remote.fetch,
            false => &self.options.refspecs,
        };
        if specs.iter().any(|spec| spec.destination.is_some()) {
            prefixes.push("HEAD".into());
        }
        prefixes.sort();
        prefixes.dedup();
        let request = LsRefs {
            prefixes,
            server_options: self.server_options(),
        };
        client.refs(&request).map_err(from_wire)
    }

    /// Removes stale refs, fetches new objects, and updates refs.
    fn finish(
        &self,
        client: &mut Option<FetchClient>,
        refs: &[RemoteRef],
        all: &mut [FetchedRef],
        outcome: &mut Outcome,
    ) -> Result<download::Fetched> {
        prune::prune(self, all, outcome)?;
        self.check_own_tips(all, outcome)?;
        let mut fetched = download::Fetched::begin(self)?;
        fetched.take(self, client, refs, all)?;
        fetched.check_cuts(self, all, outcome)?;
        Ok(fetched)
    }

    /// Rejects a fetch into a branch that a worktree has checked out.
    fn check_checked_out(&self, entries: &[FetchedRef]) -> Result<()> {
        let locals = entries.iter().filter_map(|entry| entry.local.as_ref());
        for local in locals {
            let mut places = self.checked_out.iter();
            if let Some((name, place)) = places.find(|(name, _)| *name == local.name) {
                let place = place.display();
                let message =
                    format!("refusing to fetch into branch '{name}' checked out at '{place}'");
                return Err(Error::new(ErrorKind::Refused, message));
            }
        }
        Ok(())
    }
}

/// Returns the branches that worktrees have checked out, rebase or bisect, with the paths of those
/// worktrees.
fn checked_out(repository: &Repository) -> Result<Vec<(BString, PathBuf)>> {
    let mut found = Vec::new();
    let mut look = |git_dir: &Path, work_tree: &Path| {
        if let Some(name) = repository.branch_of(git_dir) {
            found.push((name, work_tree.to_owned()));
        }
        let in_progress = crate::linked::branches_in_progress(git_dir).into_iter();
        found.extend(in_progress.map(|name| (name, work_tree.to_owned())));
    };
    let common = repository.common_dir();
    if repository.git_dir() == common {
        if let Some(work_tree) = repository.work_tree() {
            look(common, work_tree);
        }
    } else if let (Some(above), false) = (
        common.parent(),
        repository.config().bool_or("core.bare", false)?,
    ) {
        look(common, above);
    }
    for entry in std::fs::read_dir(common.join("worktrees"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let git_dir = entry.path();
        if let Ok(link) = pronto_io::untrusted::content(git_dir.join("gitdir")) {
            let link = path::normalize(&git_dir.join(path::borrow(link.trim_end())));
            look(&git_dir, link.parent().unwrap_or(&link));
        }
    }
    Ok(found)
}

/// Returns the URL without a trailing slash or `.git`.
fn shown_url(remote: &Remote) -> Result<BString> {
    let url = connection::shown(remote.url()?);
    let trimmed = url.trim_end_with(|c| c == '/');
    let short = match trimmed.strip_suffix(b".git") {
        Some(short) if trimmed.len() > 5 => short,
        _ => trimmed,
    };
    Ok(short.into())
}

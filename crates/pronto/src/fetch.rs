//! Taking what is new from another repository: `git fetch`.
//!
//! Objects arrive in a quarantine and are moved in once they are whole and everything they link to
//! is there; references then change in one transaction. A fetch that finds nothing new compares
//! ids and reads no object. See [`fetch`].

mod download;
mod head_file;
mod map;
mod prune;
mod update;

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;
use pronto_wire::advertisement::{LsRefs, RemoteRef};
use pronto_wire::client::Client;
use pronto_wire::fetch::Deepen;

use crate::remote::connection::{self, Settings, from_wire};
use crate::remote::{INFINITE_DEPTH, Refspec, Remote, Tags, register_promisor, shallow};
use crate::{Error, ErrorKind, Repository, Result, path};
pub use map::pretty;
use map::{Mapped, Mapping};

/// What to fetch and how. The default is what `git fetch` does without options.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What to fetch in place of what is configured.
    pub refspecs: Vec<Refspec>,
    /// How references that `refspecs` name are called here, in place of what is configured.
    pub refmap: Option<Vec<Refspec>>,
    /// Which tags to fetch, in place of what is configured.
    pub tags: Option<Tags>,
    /// Whether to remove what is gone on the other side, in place of what is configured.
    pub prune: Option<bool>,
    /// Whether that holds for tags too.
    pub prune_tags: Option<bool>,
    /// Whether references may move to anything.
    pub force: bool,
    /// Whether to keep what `FETCH_HEAD` holds.
    pub append: bool,
    /// Whether to change no reference.
    pub dry_run: bool,
    /// Whether to change all references or none.
    pub atomic: bool,
    /// Whether the branch that is checked out may be fetched into.
    pub update_head: bool,
    /// Whether to write `FETCH_HEAD`.
    pub write_fetch_head: bool,
    /// Where to cut the history off.
    pub deepen: Deepen,
    /// Whether to take the whole history.
    pub unshallow: bool,
    /// Whether the other side's cut of its history may become ours.
    pub update_shallow: bool,
    /// What to leave out, in place of what is configured.
    pub filter: Option<BString>,
    /// Whether to ask for everything as if nothing were here.
    pub refetch: bool,
    /// What is said about the connection.
    pub settings: Settings,
    /// Values for the hooks of the other side.
    pub server_options: Vec<BString>,
    /// Whether progress is shown; if not, the other side need not report its own.
    pub show_progress: bool,
    /// Whether progress is shown while few objects become loose ones: Git shows it on a terminal
    /// only, whatever it was told.
    pub show_unpacking: bool,
    /// Whether a pack stays a pack, however few objects it has.
    pub keep: bool,
    /// Whether references that do not change are told too.
    pub tell_unchanged: bool,
    /// What log entries begin with: the command as it was called.
    pub action: BString,
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
            refetch: false,
            settings: Settings::default(),
            server_options: Vec::new(),
            show_progress: false,
            show_unpacking: false,
            keep: false,
            tell_unchanged: false,
            action: "fetch".into(),
        }
    }
}

/// What became of one reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// What happened.
    pub flag: Flag,
    /// The same in a word: `[new branch]`, `1234567..89abcde`.
    pub summary: String,
    /// A remark: why it was refused, or that it was forced.
    pub note: Option<String>,
    /// The full name on the other side; empty for one that is removed here.
    pub remote: BString,
    /// The full name here, or `FETCH_HEAD`.
    pub local: BString,
    /// What it was; null if it is new.
    pub old: ObjectId,
    /// What it is now; null if it is removed.
    pub new: ObjectId,
}

/// What happened to a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// It moved forward.
    FastForward,
    /// It moved to something else.
    Forced,
    /// It is new.
    New,
    /// It is gone.
    Pruned,
    /// A tag moved.
    Tag,
    /// It could not be changed, or may not.
    Rejected,
    /// It stays as it is.
    UpToDate,
}

impl Flag {
    /// The sign that stands for it.
    pub fn sign(self) -> char {
        match self {
            Flag::FastForward => ' ',
            Flag::Forced => '+',
            Flag::New => '*',
            Flag::Pruned => '-',
            Flag::Tag => 't',
            Flag::Rejected => '!',
            Flag::UpToDate => '=',
        }
    }
}

/// What came of a fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Where it came from, as it is shown.
    pub url: BString,
    /// What became of the references, in the order in which Git tells it.
    pub updates: Vec<Update>,
    /// The widest name on the other side, as far as it matters for a table.
    pub name_width: usize,
    /// How wide the summaries of a table are.
    pub summary_width: usize,
    /// Lines that follow those of removed references.
    pub dangling: Vec<String>,
    /// What went wrong without ending it, as `error: …` lines without the prefix.
    pub errors: Vec<String>,
    /// What there is to say, as `warning: …` lines without the prefix.
    pub warnings: Vec<String>,
    /// Whether something was refused.
    pub failed: bool,
    /// Which branches are fetched to be merged: full names on the other side.
    pub for_merge: Vec<BString>,
}

/// All that the steps of a fetch share.
struct Work<'a> {
    repository: &'a Repository,
    remote: &'a Remote,
    options: &'a Options,
    deepen: Deepen,
    tags: Tags,
    /// All references here.
    ours: HashMap<BString, ObjectId>,
    /// The branches of work trees, and where those are.
    checked_out: Vec<(BString, PathBuf)>,
    /// The commits at which the history here is cut off.
    cut: BTreeSet<ObjectId>,
    /// Where it comes from, as `FETCH_HEAD` and tables show it.
    url: BString,
    progress: &'a dyn Progress,
    interrupt: &'a Interrupt,
}

/// Fetches from `remote`.
///
/// # Errors
/// The remote is not there or refuses, something that was asked for is not there, the pack is not
/// sound or not whole, or something cannot be written. No reference has changed then. A reference
/// that may not be changed is no error: see [`Outcome::failed`]. The messages are Git's.
pub fn fetch(
    repository: &Repository,
    remote: &Remote,
    options: &Options,
    (progress, interrupt): (&dyn Progress, &Interrupt),
) -> Result<Outcome> {
    check(repository, remote, options)?;
    if let Some(filter) = &options.filter {
        register_promisor(repository, remote, filter.as_bstr())?;
    }
    let work = Work::prepare(repository, remote, options, (progress, interrupt))?;
    if !options.append && options.write_fetch_head && !options.dry_run {
        truncate(repository)?;
    }
    let mut client = Some(work.connect()?);
    let refs = work.refs(&mut client)?;
    let mut outcome = Outcome {
        url: work.url.clone(),
        ..Outcome::default()
    };
    let mapping = Mapping::make(&work, &refs, &mut outcome)?;
    if !options.update_head {
        work.check_checked_out(&mapping.entries)?;
    }
    outcome.name_width = mapping.name_width(options.tell_unchanged);
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
        // All is here; how the other side ends is its own affair.
        let _ = client.close();
    }
    update::apply(&work, &all, &mut outcome)?;
    Ok(outcome)
}

/// Fails with [`ErrorKind::Unsupported`] if something is set for the connection to `remote` that
/// only git obeys. Changes and sends nothing.
///
/// # Errors
/// As said. What else is wrong with the settings is said by [`fetch()`].
pub fn check(repository: &Repository, remote: &Remote, options: &Options) -> Result<()> {
    let config = repository.config();
    let Some(url) = remote.urls.first() else {
        return Ok(());
    };
    let settings = options.settings.for_remote(remote, config)?;
    match connection::check(url.as_bstr(), &settings, config, repository.environment()) {
        Err(error) if *error.kind() == ErrorKind::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// Empties `FETCH_HEAD`, or makes it.
///
/// # Errors
/// It cannot be written.
pub fn truncate(repository: &Repository) -> Result<()> {
    head_file::truncate(repository)
}

impl<'a> Work<'a> {
    fn prepare(
        repository: &'a Repository,
        remote: &'a Remote,
        options: &'a Options,
        (progress, interrupt): (&'a dyn Progress, &'a Interrupt),
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
        repository.refs().for_each("refs/", |found| {
            ours.insert(found.name.to_owned(), found.id);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Work {
            repository,
            remote,
            options,
            deepen,
            tags: options.tags.or(remote.tags).unwrap_or_default(),
            ours,
            checked_out: checked_out(repository)?,
            cut: shallow::read(repository)?,
            url: shown_url(remote)?,
            progress,
            interrupt,
        })
    }

    fn connect(&self) -> Result<Client> {
        let config = self.repository.config();
        let settings = self.options.settings.for_remote(self.remote, config)?;
        let client = connection::connect(
            self.remote.url()?,
            &settings,
            config,
            self.repository.environment(),
            (self.progress, self.interrupt),
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

    /// The references of the other side that matter.
    fn refs(&self, client: &mut Option<Client>) -> Result<Vec<RemoteRef>> {
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
        prefixes.sort();
        prefixes.dedup();
        let request = LsRefs {
            prefixes,
            server_options: self.server_options(),
        };
        client.refs(&request).map_err(from_wire)
    }

    /// Removes what is gone there and brings what is new there.
    fn finish(
        &self,
        client: &mut Option<Client>,
        refs: &[RemoteRef],
        all: &mut [Mapped],
        outcome: &mut Outcome,
    ) -> Result<download::Fetched> {
        prune::prune(self, all, outcome)?;
        let mut fetched = download::Fetched::begin(self)?;
        fetched.take(self, client, refs, all)?;
        fetched.check_cuts(self, all, outcome)?;
        Ok(fetched)
    }

    /// Refuses to fetch into a branch that is checked out somewhere.
    fn check_checked_out(&self, entries: &[Mapped]) -> Result<()> {
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

/// The branches that worktrees have checked out, rebase or bisect, and where those worktrees are.
fn checked_out(repository: &Repository) -> Result<Vec<(BString, PathBuf)>> {
    let mut found = Vec::new();
    let mut look = |git_dir: &Path, work_tree: &Path| {
        let text = pronto_io::untrusted::content(git_dir.join("HEAD")).unwrap_or_default();
        if let Some(name) = text.trim_end().strip_prefix(b"ref: ") {
            found.push((name.into(), work_tree.to_owned()));
        }
        let in_progress = crate::worktrees::branches_in_progress(git_dir).into_iter();
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

/// The address without what it ends in out of habit.
fn shown_url(remote: &Remote) -> Result<BString> {
    let url = connection::shown(remote.url()?);
    let trimmed = url.trim_end_with(|c| c == '/');
    let short = match trimmed.strip_suffix(b".git") {
        Some(short) if trimmed.len() > 5 => short,
        _ => trimmed,
    };
    Ok(short.into())
}

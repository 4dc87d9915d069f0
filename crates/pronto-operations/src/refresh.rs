//! Refreshing the recorded stat data of files: `update-index --refresh`, `add --refresh`.

use bstr::{BStr, BString, ByteSlice};
use pronto_index::{Edit, EntryRef, Flags, Stat, mode};
use pronto_io::watch::Watch;
use pronto_worktree::ignore::Patterns;
use pronto_worktree::pathspec::Pathspec;
use pronto_worktree::status::{Change, Job, Untracked};

use crate::errors::from_index;
use crate::session::WorktreeSession;
use crate::status::{Converter, Heads, walk_options};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

/// The selection of files.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Which paths.
    pub pathspec: Pathspec,
    /// Leave submodules out.
    pub ignore_submodules: bool,
    /// Leave files out that are not there.
    pub ignore_missing: bool,
    /// Look at files that are assumed to be unchanged, too; those that differ are not assumed to
    /// be so any more.
    pub really: bool,
}

/// An entry whose file is not as it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outdated {
    /// Its path.
    pub path: BString,
    /// Git's letter: `M` modified, `D` deleted, `T` of another type, `A` announced only, `U` in
    /// conflict.
    pub letter: u8,
}

/// The result of a refresh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// The entries whose files are not as they say, in order.
    pub outdated: Vec<Outdated>,
    /// The first pathspec that no entry matches: then nothing was written.
    pub unmatched: Option<BString>,
}

/// Refreshes the recorded stat data of files whose content is unchanged.
///
/// # Errors
/// There is no worktree; the index is locked or cannot be read or written;
/// [`Interrupted`](ErrorKind::Interrupted); [`Unsupported`](ErrorKind::Unsupported) for
/// pathspecs in a sparse checkout.
pub fn refresh_index(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Refreshed> {
    support::require(Operation::WriteIndex, repository)?;
    let (prepared, lock) = WorktreeSession::as_it_lies(repository)?;
    let pathspec = &options.pathspec;
    let mut entries = prepared.index.iter();
    let is_sparse = !pathspec.is_empty()
        && (prepared.sparse.is_some()
            || entries.any(|entry| entry.flags.contains(Flags::SKIP_WORKTREE)));
    if is_sparse {
        let message = "pronto does not have add --refresh in a sparse checkout";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let mut seen = vec![false; pathspec.len()];
    for entry in prepared.index.iter() {
        pathspec.mark(entry.path, &mut seen);
    }
    let mut edit = Edit::new(&prepared.index);
    let outdated = refresh(repository, &prepared, &mut edit, options, watch)?;
    let unmatched = seen.iter().position(|seen| !seen);
    if unmatched.is_none() && !edit.is_empty() {
        let bytes = prepared.encode(edit.content(), watch)?;
        lock.commit(&bytes).map_err(from_index)?;
    }
    Ok(Refreshed {
        outdated,
        unmatched: unmatched.map(|at| pathspec.original(at).to_owned()),
    })
}

/// Records new stat data in `edit` for files with unchanged content, and returns the entries whose
/// files differ, in order.
///
/// # Errors
/// The worktree cannot be read, or the call is interrupted.
pub(crate) fn refresh(
    repository: &Repository,
    prepared: &WorktreeSession<'_>,
    edit: &mut Edit<'_>,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Vec<Outdated>> {
    let index = &prepared.index;
    let converter = Converter::new(repository, prepared.objects);
    let walk_options = walk_options_for(repository, options)?;
    let job = Job {
        work_tree: repository.require_work_tree()?,
        git_dir: repository.git_dir(),
        index,
        pathspec: &options.pathspec,
        patterns: &Patterns::default(),
        ignore_files: None,
        conversion: &converter,
        submodules: &Heads {
            repository,
            refuses_broken: false,
        },
        interrupt: watch.interrupt(),
        remembered: None,
        monitored: None,
        options: walk_options,
    };
    let outcome = converter.walk(&job, None)?;
    let is_settled = |edit: &Edit<'_>, entry: &EntryRef<'_>| {
        let now = edit.get(entry.path, entry.stage());
        now.is_none_or(|now| now.id != entry.id || now.stat != entry.stat)
    };
    let mut outdated = Vec::new();
    for changed in &outcome.changed {
        let entry = index.entry(changed.position);
        let is_link = entry.mode & mode::TYPE == mode::GITLINK;
        if (is_link && options.ignore_submodules) || is_settled(edit, &entry) {
            continue;
        }
        let is_announced = entry.flags.contains(Flags::INTENT_TO_ADD);
        let letter = match changed.change {
            None => b'U',
            Some(Change::Deleted) => match find(prepared, &entry) {
                Found::Nothing if options.ignore_missing => continue,
                found => found.letter(is_announced),
            },
            Some(_) if is_announced => b'A',
            Some(Change::TypeChanged) => b'T',
            Some(Change::Modified | Change::Added) => b'M',
        };
        if options.really
            && entry.flags.contains(Flags::ASSUME_VALID)
            && !matches!(letter, b'D' | b'U')
        {
            let flags = entry.flags.without(Flags::ASSUME_VALID);
            edit.refresh(changed.position, entry.stat, flags);
        }
        outdated.push(Outdated {
            path: entry.path.to_owned(),
            letter,
        });
    }
    for (position, stat) in outcome.refreshed {
        let entry = index.entry(position);
        if !is_mark(&stat, &entry.stat) && !is_settled(edit, &entry) {
            edit.refresh(position, stat, entry.flags.with(Flags::UP_TO_DATE));
        }
    }
    Ok(outdated)
}

/// Returns the options of the walk: files that are not tracked do not matter.
fn walk_options_for(
    repository: &Repository,
    options: &Options,
) -> Result<pronto_worktree::status::Options> {
    let mut walk_options = walk_options(repository)?;
    walk_options.untracked = Untracked::No;
    walk_options.looks_at_assumed = options.really;
    Ok(walk_options)
}

/// Returns whether a size of zero marks an entry that differs. The next writer of the index handles
/// it.
fn is_mark(now: &Stat, before: &Stat) -> bool {
    now.size_bytes == 0 && before.size_bytes != 0
}

/// The thing at the path of a missing file.
enum Found {
    Nothing,
    /// A file is where a directory above should be.
    BelowFile,
    /// A directory, or what the index has no mode for.
    Other,
}

impl Found {
    fn letter(self, is_announced: bool) -> u8 {
        match self {
            Found::Other => b'T',
            Found::BelowFile if is_announced => b'A',
            Found::BelowFile => b'M',
            Found::Nothing => b'D',
        }
    }
}

fn find(prepared: &WorktreeSession<'_>, entry: &EntryRef<'_>) -> Found {
    let (directory, name) = crate::path::split(entry.path);
    let opened = prepared.top.open_beneath(directory);
    match opened.and_then(|directory| directory.metadata(name)) {
        Ok(_) => Found::Other,
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            match is_below_link(prepared, directory.as_bstr()) {
                true => Found::Nothing,
                false => Found::BelowFile,
            }
        }
        Err(_) => Found::Nothing,
    }
}

/// Whether the first component of `directory` that is not a directory is a link. Nothing exists
/// below a link, wherever it points.
fn is_below_link(prepared: &WorktreeSession<'_>, directory: &BStr) -> bool {
    let slashes = directory.find_iter("/").chain([directory.len()]);
    let mut on_the_way = slashes.map(|end| crate::path::split(directory[..end].as_bstr()));
    on_the_way
        .find_map(|(above, name)| {
            let found = prepared.top.open_beneath(above).ok()?.metadata(name).ok()?;
            (!found.is_directory()).then(|| found.is_symlink())
        })
        .unwrap_or(false)
}

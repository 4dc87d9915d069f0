//! Garbage collection: its lock, its phases, and its way of repacking.

use std::ffi::OsString;
use std::io::ErrorKind as Io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bstr::{BString, ByteSlice};
use pronto_io::cleanup::Guard;
use rustix::process::Pid;

use super::conditions;
use super::conditions::failed;
use super::loose::has_many_loose_objects;
use super::packs::OwnPacks;
use super::repacking::{automatic_repacking, larger_than, largest, repack_all, words};
use super::runner::{Runner, Step};
use super::settings::moment;
use super::{Settings, Task};
use crate::config::Config;
use crate::lock::Lock;
use crate::{Error, ErrorKind, Repository, Result};

/// The age up to which a note of a running garbage collection is valid: 12 hours, as in Git.
const LONGEST: Duration = Duration::from_secs(12 * 60 * 60);

/// Options of garbage collection.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[non_exhaustive]
pub struct GcOptions {
    /// Whether all deltas are recomputed (`--aggressive`).
    pub aggressive: bool,
    /// Whether nothing is done unless there is much to do (`--auto`).
    pub auto: bool,
    /// Whether no progress is shown.
    pub quiet: bool,
    /// Whether the largest pack stays as it is; unset, `gc.bigPackThreshold` decides.
    pub keep_largest_pack: Option<bool>,
    /// Whether references and reflogs are left alone.
    pub skips_foreground: bool,
    /// Whether the hook `pre-auto-gc` has been asked already.
    pub is_permitted: bool,
}

/// The arguments of the `repack` of a garbage collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repacking(Vec<OsString>);

/// The process that collects garbage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The machine.
    pub host: BString,
    /// The process there.
    pub process: u64,
}

/// The note that this process collects garbage (`gc.pid`). It goes when this is dropped.
#[derive(Debug)]
pub struct GcLock(#[expect(dead_code, reason = "dropping it is what it is for")] Guard);

/// Returns the repacking for garbage collection with these options; `None` if `auto` finds too
/// little to do, or the hook `pre-auto-gc` refuses.
///
/// Costs a listing of the packs.
///
/// # Errors
/// The hook cannot be run; [`ErrorKind::Unsupported`] for an age of expiry that is not understood.
pub fn plan_gc(
    repository: &Repository,
    options: &GcOptions,
    settings: &Settings,
) -> Result<Option<Repacking>> {
    if let Some(age) = &settings.prune_expire {
        moment(age.as_bstr())?;
    }
    let mut arguments = words(&["repack", "-d", "-l"]);
    if options.aggressive {
        arguments.push("-f".into());
        let limits = [
            ("depth", settings.aggressive_depth),
            ("window", settings.aggressive_window),
        ];
        for (name, limit) in limits.into_iter().filter(|(_, limit)| *limit > 0) {
            arguments.push(format!("--{name}={limit}").into());
        }
    }
    if options.quiet {
        arguments.push("-q".into());
    }
    if options.auto {
        let Some(more) = automatic_repacking(repository, settings) else {
            return Ok(None);
        };
        if !options.is_permitted && !conditions::may_collect_garbage(repository)? {
            return Ok(None);
        }
        arguments.extend(more);
    } else {
        let packs = OwnPacks::of(repository);
        let kept = match options.keep_largest_pack {
            Some(true) => largest(&packs).into_iter().collect(),
            Some(false) => Vec::new(),
            None if settings.big_pack_threshold > 0 => {
                larger_than(&packs, settings.big_pack_threshold)
            }
            None => Vec::new(),
        };
        arguments.extend(repack_all(settings, &kept));
    }
    Ok(Some(Repacking(arguments)))
}

/// Notes that this process collects garbage, unless another one does, which is the inner error.
/// With `force` others do not matter.
///
/// # Errors
/// The note is being changed by another process, or cannot be written.
pub fn lock_gc(repository: &Repository, force: bool) -> Result<Result<GcLock, Busy>> {
    let path = repository.git_path("gc.pid");
    let mut lock = Lock::acquire(&path, Duration::ZERO)?.recorded(repository.config());
    let host = host();
    if !force && let Some(busy) = running(&path, &host) {
        return Ok(Err(busy));
    }
    let note = format!("{} {host}", std::process::id());
    lock.write_and_close(note.as_bytes())?;
    let guard = Guard::new(&path);
    lock.commit()?;
    Ok(Ok(GcLock(guard)))
}

/// Packs references and removes old entries of reflogs, as far as is configured: the phases of
/// garbage collection that a user waits for.
///
/// # Errors
/// [`ErrorKind::Refused`] if one fails, with what Git says of that.
pub fn gc_foreground(auto: bool, settings: &Settings, runner: &mut dyn Runner) -> Result<()> {
    if settings.pack_refs && !runner.run(&Step::pack_refs(auto))? {
        return Err(failed("failed to run pack-refs"));
    }
    if settings.expire_reflogs && !runner.run(&Step::of(&["reflog", "expire", "--all"]))? {
        return Err(failed("failed to run reflog"));
    }
    Ok(())
}

/// Collects garbage: repacks, deletes old unreachable objects, removes the data of missing
/// worktrees, old recorded resolutions, and indexes without packs. The caller holds [`GcLock`],
/// and writes the commit-graph afterwards if [`writes_graph_in_gc`]
/// returns true.
///
/// # Errors
/// [`ErrorKind::Hook`] never; any other kind if a phase cannot be started, and
/// [`ErrorKind::InvalidInput`] if one fails.
pub fn gc_background(
    repository: &Repository,
    options: &GcOptions,
    repacking: &Repacking,
    settings: &Settings,
    runner: &mut dyn Runner,
) -> Result<()> {
    let fatal = |what: &str| {
        let message = format!("failed to run {what}");
        Error::new(ErrorKind::InvalidInput, message)
    };
    if !repository
        .config()
        .bool_or("extensions.preciousobjects", false)?
    {
        if !runner.run(&Step::with(repacking.0.clone()))? {
            return Err(fatal("repack"));
        }
        if let Some(age) = &settings.prune_expire {
            let mut prune = Step::of(&["prune", "--expire"]);
            prune.push(OsString::from_vec(age.to_vec()));
            if options.quiet {
                prune.push("--no-progress");
            }
            if repository.has_promisor()? {
                prune.push("--exclude-promisor-objects");
            }
            if !runner.run(&prune)? {
                return Err(fatal("prune"));
            }
        }
    }
    if !runner.run(&Step::prune_work_trees(settings))? {
        return Err(fatal("worktree"));
    }
    if has_resolutions_to_collect(repository) && !runner.run(&Step::of(&["rerere", "gc"]))? {
        return Err(fatal("rerere"));
    }
    remove_lone_indexes(repository);
    Ok(())
}

/// Whether there is anything that `rerere gc` could remove.
pub(super) fn has_resolutions_to_collect(repository: &Repository) -> bool {
    let entries = std::fs::read_dir(repository.common_dir().join("rr-cache"));
    entries.is_ok_and(|mut entries| entries.next().is_some())
}

/// Whether garbage collection ends with writing the commit-graph (`gc.writeCommitGraph`).
///
/// # Errors
/// A configured value is not of its type.
pub fn writes_graph_in_gc(repository: &Repository) -> Result<bool> {
    repository.config().bool_or("gc.writecommitgraph", true)
}

/// Whether there are more loose objects left than automatic garbage collection starts at.
pub fn has_loose_objects_left(repository: &Repository, settings: &Settings) -> bool {
    has_many_loose_objects(repository, settings.auto.into())
}

/// Removes the index and other files of packs whose `.pack` file is missing.
fn remove_lone_indexes(repository: &Repository) {
    let directory = repository.objects_dir().join("pack");
    let entries = std::fs::read_dir(&directory).into_iter().flatten();
    for entry in entries.flatten() {
        let path = entry.path();
        let is_index = path.extension().is_some_and(|ending| ending == "idx");
        if !is_index || path.with_extension("pack").exists() {
            continue;
        }
        for ending in ["idx", "rev", "bitmap", "keep", "promisor", "mtimes"] {
            // One that is not there need not go.
            let _ = std::fs::remove_file(path.with_extension(ending));
        }
    }
}

/// The name of this machine.
fn host() -> BString {
    let name = rustix::system::uname();
    name.nodename().to_bytes().into()
}

/// The process that the note at `path` is of, if it may still run.
fn running(path: &Path, host: &BString) -> Option<Busy> {
    let modified = match std::fs::metadata(path) {
        Ok(file) => file.modified().ok()?,
        Err(error) if error.kind() == Io::NotFound => return None,
        Err(_) => return None,
    };
    let age = SystemTime::now()
        .duration_since(modified)
        .unwrap_or_default();
    if age > LONGEST {
        return None;
    }
    let note = pronto_io::untrusted::content(path).ok()?;
    let mut words = note.fields();
    let process: u64 = words.next()?.to_str().ok()?.parse().ok()?;
    let busy = Busy {
        host: words.next()?.into(),
        process,
    };
    let may_run = || {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        process.is_some_and(|process| {
            let asked = rustix::process::test_kill_process(process);
            matches!(asked, Ok(()) | Err(rustix::io::Errno::PERM))
        })
    };
    (busy.host != *host || may_run()).then_some(busy)
}

/// Whether a setting keeps the work of `task` from being of use.
pub(super) fn is_pointless(task: Task, config: &Config) -> Result<bool> {
    Ok(match task {
        Task::CommitGraph => !config.bool_or("core.commitgraph", true)?,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_dead_processes_and_nonsense_count_for_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("gc.pid");
        let here = host();
        let note = |text: &str| {
            std::fs::write(&path, text).expect("a file");
            running(&path, &here)
        };
        assert_eq!(running(&path, &here), None);
        for text in ["", "x", "12", "x y", "999999999999999999999999 a", "-1 a"] {
            assert_eq!(note(text), None, "{text:?}");
        }
        let own = std::process::id();
        assert!(note(&format!("{own} {here}")).is_some());
        // No process has so high a number.
        assert_eq!(note(&format!("2147483646 {here}")), None);
        let there = note("5 elsewhere").expect("nobody can tell");
        assert_eq!((there.process, there.host), (5, "elsewhere".into()));
    }
}

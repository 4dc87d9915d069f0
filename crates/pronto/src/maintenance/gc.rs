//! The phases of garbage collection (`git gc`), its lock, and the arguments of its repack.

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
use super::runner::{CommandCall, CommandRunner};
use super::settings::moment;
use super::{MaintenanceTask, Settings};
use crate::config::Config;
use crate::lock::Lock;
use crate::{Error, ErrorKind, Repository, Result};

/// The age in which a `gc.pid` file is valid: 12 hours, as in Git.
const LONGEST: Duration = Duration::from_secs(12 * 60 * 60);

/// Options of `git gc`.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[non_exhaustive]
pub struct GcOptions {
    /// Recompute all deltas (`--aggressive`).
    pub aggressive: bool,
    /// Collect garbage only if there are many loose objects or packs (`--auto`).
    pub auto: bool,
    /// Suppress progress (`--quiet`).
    pub quiet: bool,
    /// Keep the largest pack unchanged (`--keep-largest-pack`). Unset, `gc.bigPackThreshold`
    /// decides.
    pub keep_largest_pack: Option<bool>,
    /// Skip refs and reflogs, which the foreground phase has handled (`--skip-foreground-tasks`).
    pub skips_foreground: bool,
    /// Skip the hook `pre-auto-gc`, which the caller has run already.
    pub is_permitted: bool,
}

/// The arguments of the `git repack` that garbage collection runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repacking(Vec<OsString>);

/// Another process that collects garbage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The host name of its machine.
    pub host: BString,
    /// The process id on that machine.
    pub process: u64,
}

/// The `gc.pid` file, which marks that this process collects garbage. Dropping the value removes
/// the file.
#[derive(Debug)]
pub struct GcLock(#[expect(dead_code, reason = "dropping it is what it is for")] Guard);

/// Returns the arguments of `git repack` for garbage collection with `options`. Returns `None` if
/// `auto` is set and there is too little to do, or the hook `pre-auto-gc` refuses.
///
/// Costs a listing of the packs.
///
/// # Errors
/// Fails with `ErrorKind::Hook` if the hook cannot be run, and with `ErrorKind::ConfigValue` if the
/// expiry time `gc.pruneExpire` is malformed.
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

/// Creates the `gc.pid` file. If another process collects garbage, the inner result is an error
/// that names this process. `force` ignores other processes (`--force`).
///
/// # Errors
/// Fails with `ErrorKind::Locked` if another process is writing `gc.pid`, and with `ErrorKind::Io`
/// if the file cannot be written.
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

/// Packs refs and expires reflog entries, unless the configuration disables that: the phases of
/// garbage collection for which the user waits.
///
/// # Errors
/// Fails with [`ErrorKind::Refused`] and Git's message if a command fails.
pub fn gc_foreground(
    auto: bool,
    settings: &Settings,
    runner: &mut dyn CommandRunner,
) -> Result<()> {
    if settings.pack_refs && !runner.run(&CommandCall::pack_refs(auto))? {
        return Err(failed("failed to run pack-refs"));
    }
    if settings.expire_reflogs && !runner.run(&CommandCall::of(&["reflog", "expire", "--all"]))? {
        return Err(failed("failed to run reflog"));
    }
    Ok(())
}

/// Collects garbage: repacks, deletes expired unreachable objects, prunes the administrative files
/// of deleted worktrees and old conflict resolutions, and deletes pack indexes without packs. The
/// caller holds [`GcLock`], and writes the commit-graph afterwards if [`writes_graph_in_gc`]
/// returns true.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if a command fails, and with the error of `runner` if a
/// command cannot be started.
pub fn gc_background(
    repository: &Repository,
    options: &GcOptions,
    repacking: &Repacking,
    settings: &Settings,
    runner: &mut dyn CommandRunner,
) -> Result<()> {
    let fatal = |what: &str| {
        let message = format!("failed to run {what}");
        Error::new(ErrorKind::InvalidInput, message)
    };
    if !repository
        .config()
        .bool_or("extensions.preciousobjects", false)?
    {
        if !runner.run(&CommandCall::with(repacking.0.clone()))? {
            return Err(fatal("repack"));
        }
        if let Some(age) = &settings.prune_expire {
            let mut prune = CommandCall::of(&["prune", "--expire"]);
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
    if !runner.run(&CommandCall::prune_work_trees(settings))? {
        return Err(fatal("worktree"));
    }
    if has_resolutions_to_collect(repository) && !runner.run(&CommandCall::of(&["rerere", "gc"]))? {
        return Err(fatal("rerere"));
    }
    remove_lone_indexes(repository);
    Ok(())
}

/// Whether `git rerere gc` could find conflict resolutions to prune.
pub(super) fn has_resolutions_to_collect(repository: &Repository) -> bool {
    let entries = std::fs::read_dir(repository.common_dir().join("rr-cache"));
    entries.is_ok_and(|mut entries| entries.next().is_some())
}

/// Whether garbage collection ends with writing the commit-graph (`gc.writeCommitGraph`).
///
/// # Errors
/// Fails with `ErrorKind::ConfigValue` if a setting has an invalid value.
pub fn writes_graph_in_gc(repository: &Repository) -> Result<bool> {
    repository.config().bool_or("gc.writecommitgraph", true)
}

/// Whether the number of loose objects still exceeds `gc.auto` after garbage collection.
pub fn has_loose_objects_left(repository: &Repository, settings: &Settings) -> bool {
    has_many_loose_objects(repository, settings.auto.into())
}

/// Deletes the index and other files of packs whose `.pack` file is missing.
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
            // A missing file is no error.
            let _ = std::fs::remove_file(path.with_extension(ending));
        }
    }
}

/// The host name of this machine.
fn host() -> BString {
    let name = rustix::system::uname();
    name.nodename().to_bytes().into()
}

/// Returns the process that the `gc.pid` file at `path` names, if the process may still run.
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

/// Whether a setting makes `task` useless, for example a disabled `core.commitGraph`.
pub(super) fn is_pointless(task: MaintenanceTask, config: &Config) -> Result<bool> {
    Ok(match task {
        MaintenanceTask::CommitGraph => !config.bool_or("core.commitgraph", true)?,
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
        // No process has so high an id.
        assert_eq!(note(&format!("2147483646 {here}")), None);
        let there = note("5 elsewhere").expect("nobody can tell");
        assert_eq!((there.process, there.host), (5, "elsewhere".into()));
    }
}

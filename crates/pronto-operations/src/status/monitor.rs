//! Queries a file system monitor for changes: Git's daemon, pronto's, or a hook (`core.fsmonitor`).

use super::Options;
use crate::hooks::tie_to;
use crate::{Repository, Result, path};
use bstr::{BStr, BString, ByteSlice};
use pronto_index::{Fsmonitor, Index, IndexEdit, IndexOutline, UntrackedCache};
use pronto_monitor::{MonitorResponse, client};
use pronto_worktree::status::{Monitored, Remembered};
use std::process::Stdio;
use std::time::SystemTime;

/// The number of reported paths above which the index is written, so that the next response is
/// shorter.
const MANY_PATHS: usize = 100;
/// The number of verified files above which the index is written. Fewer files are examined again
/// each time.
const MANY_VERIFIED: usize = 10;

/// The token that Git records if the daemon did not respond.
pub(super) const NO_TOKEN: &str = "builtin:fake";

/// The monitor in use: `core.fsmonitor`.
enum MonitorSource {
    Daemon,
    Hook(BString),
}

fn source(repository: &Repository) -> Result<Option<MonitorSource>> {
    let config = repository.config();
    let Some(entry) = config.entry_of("core.fsmonitor") else {
        return Ok(None);
    };
    if let Ok(is_daemon) = entry.bool() {
        return Ok(is_daemon.then_some(MonitorSource::Daemon));
    }
    let hook = config.path("core.fsmonitor", repository.environment().home())?;
    let hook = hook.filter(|hook| !hook.as_os_str().is_empty());
    Ok(hook.map(|hook| MonitorSource::Hook(path::as_bytes(&hook).to_owned())))
}

/// The response of a monitor, before its paths are matched with entries.
pub(super) struct UnmatchedAnswer {
    answer: MonitorResponse,
    is_of_hook: bool,
    /// The monitor's data in the index (`FSMN` extension).
    before: Option<Fsmonitor>,
}

/// The response of a monitor, matched with entries.
pub(super) struct MonitorAnswer {
    /// The entries and directories that the walk need not examine.
    pub(super) monitored: Monitored,
    answer: MonitorResponse,
    is_of_hook: bool,
    /// Whether the index had no monitor's data yet.
    is_first: bool,
}

/// Queries the monitor, if one is configured, for changes since the index was written. Must be
/// called before any file is examined.
///
/// # Errors
/// Fails if a setting is malformed.
pub(super) fn ask(
    repository: &Repository,
    index: &IndexOutline,
    options: &Options,
) -> Result<Option<UnmatchedAnswer>> {
    let Some(source) = source(repository)? else {
        return Ok(None);
    };
    let before = index.fsmonitor().ok().flatten();
    let token = before.as_ref().map(|before| before.token.as_bstr());
    let is_of_hook = matches!(source, MonitorSource::Hook(_));
    let answer = query(repository, &source, token, options);
    Ok(Some(UnmatchedAnswer {
        answer,
        is_of_hook,
        before,
    }))
}

/// Queries the monitor for changes since `token`, unless `asked` is already a response for that
/// token.
///
/// # Errors
/// Fails if a setting is malformed.
pub(super) fn answer_since(
    repository: &Repository,
    asked: &UnmatchedAnswer,
    token: &BStr,
    options: &Options,
) -> Result<MonitorResponse> {
    let before = asked.before.as_ref();
    if before.is_some_and(|before| before.token == *token) {
        return Ok(asked.answer.clone());
    }
    Ok(match source(repository)? {
        Some(source) => query(repository, &source, Some(token), options),
        None => asked.answer.clone(),
    })
}

fn query(
    repository: &Repository,
    source: &MonitorSource,
    token: Option<&BStr>,
    options: &Options,
) -> MonitorResponse {
    let _region = pronto_io::region!("fsm_client", "query");
    match source {
        MonitorSource::Daemon => ask_daemon(repository, token, options),
        MonitorSource::Hook(hook) => ask_hook(repository, hook.as_bstr(), token),
    }
}

impl UnmatchedAnswer {
    /// Returns the response about changes since the index was written.
    pub(super) fn answer(&self) -> &MonitorResponse {
        &self.answer
    }

    /// Whether the monitor guarantees that no file and no directory has changed.
    pub(super) fn says_nothing_changed(&self) -> bool {
        let is_clean = |before: &Fsmonitor| before.dirty.is_empty();
        self.before.as_ref().is_some_and(is_clean)
            && matches!(&self.answer, MonitorResponse::Paths { paths, .. } if paths.is_empty())
    }

    /// Finds the entries of `index` that the response is about.
    pub(super) fn locate(self, index: &Index) -> MonitorAnswer {
        // The recorded positions are invalid after sparse directory entries were expanded.
        let before = self.before.filter(|_| !index.is_expanded());
        let dirty = match (&self.answer, &before) {
            (MonitorResponse::Paths { paths, .. }, Some(before)) => {
                let known = before.dirty.iter().map(|at| at as u32);
                Some(dirty(index, known.collect(), paths))
            }
            _ => None,
        };
        MonitorAnswer {
            monitored: Monitored { dirty },
            answer: self.answer,
            is_of_hook: self.is_of_hook,
            is_first: before.is_none(),
        }
    }
}

/// Returns the positions in `dirty` and the positions of entries at or below `paths`, sorted.
fn dirty(index: &Index, mut dirty: Vec<u32>, paths: &[BString]) -> Vec<u32> {
    for path in paths {
        let bare = path.strip_suffix(b"/").unwrap_or(path).as_bstr();
        // A directory may have replaced a file, and the reverse.
        for range in [index.stages(bare), index.below(bare)] {
            dirty.extend(range.map(|at| at as u32));
        }
    }
    dirty.sort_unstable();
    dirty.dedup();
    dirty
}

fn ask_daemon(repository: &Repository, token: Option<&BStr>, options: &Options) -> MonitorResponse {
    let token = token.unwrap_or(BStr::new(NO_TOKEN));
    let everything = || MonitorResponse::Everything {
        token: NO_TOKEN.into(),
    };
    let Ok(address) = crate::monitor::address(repository) else {
        return everything();
    };
    if let Ok(answer) = client::query(&address, token) {
        return answer;
    }
    let started = options.monitor_program.as_ref().is_some_and(|program| {
        let top = repository.work_tree().unwrap_or(repository.git_dir());
        let mut command = pronto_io::child::command(program);
        command
            .args(["fsmonitor--daemon", "start"])
            .current_dir(top)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        !client::is_listening(&address) && command.status().is_ok_and(|status| status.success())
    });
    let again = started
        .then(|| client::query(&address, token).ok())
        .flatten();
    again.unwrap_or_else(everything)
}

fn ask_hook(repository: &Repository, hook: &BStr, token: Option<&BStr>) -> MonitorResponse {
    // The time is taken before the query, so that no change is missed.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = BString::from(now.unwrap_or_default().as_nanos().to_string());
    let token = token.unwrap_or(now.as_bstr());
    let version = repository.config().i32("core.fsmonitorHookVersion");
    let version = version
        .ok()
        .flatten()
        .filter(|version| matches!(version, 1 | 2));
    if version != Some(1) {
        let hook_output = run_hook(repository, hook, "2", token);
        if let Some(answer) =
            hook_output.and_then(|hook_output| MonitorResponse::parse(&hook_output))
        {
            return answer;
        }
    }
    if version != Some(2)
        && let Some(hook_output) = run_hook(repository, hook, "1", token)
    {
        return MonitorResponse::new(now, &hook_output);
    }
    MonitorResponse::Everything { token: now }
}

fn run_hook(repository: &Repository, hook: &BStr, version: &str, token: &BStr) -> Option<Vec<u8>> {
    let script = [hook.as_bytes(), b" \"$@\""].concat();
    let script = path::from_bytes(&script);
    let mut command = pronto_io::child::shell(script, path::from_bytes(hook));
    command
        .arg(version)
        .arg(path::from_bytes(token))
        .current_dir(repository.work_tree()?)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    tie_to(repository, &mut command);
    command.env_remove("GIT_PREFIX");
    let output = command.output().ok()?;
    output.status.success().then_some(output.stdout)
}

impl MonitorAnswer {
    /// Invalidates the paths that the monitor reported in the untracked cache, and marks the rest
    /// as valid.
    pub(super) fn apply(&self, remembered: &mut Remembered<'_>) {
        if let (MonitorResponse::Paths { paths, .. }, false) = (&self.answer, self.is_first) {
            invalidate(&mut remembered.cache, paths);
            // A cache of all files may have been written by git: see `untracked_list`.
            if remembered.cache.flags == UntrackedCache::NORMAL {
                remembered.vouch();
            }
        }
    }

    /// Returns whether the monitor guarantees that entries are unchanged, so that racy timestamps
    /// do not matter.
    pub(super) fn vouches(&self) -> bool {
        self.monitored.dirty.is_some()
    }

    /// Returns whether the response is that of a hook. With a hook, Git writes all verified
    /// entries.
    pub(super) fn is_of_hook(&self) -> bool {
        self.is_of_hook
    }

    /// Returns whether the monitor's data are worth writing, if `verified` entries were examined.
    pub(super) fn is_worth_writing(&self, verified: &[u32]) -> bool {
        let many = match &self.answer {
            MonitorResponse::Paths { paths, .. } => paths.len() > MANY_PATHS,
            MonitorResponse::Everything { token } => *token != NO_TOKEN,
        };
        let enough = if self.is_of_hook { 0 } else { MANY_VERIFIED };
        self.is_first || many || verified.len() > enough
    }

    /// Records the monitor's data in `edit`. Entries that are neither guaranteed by the monitor nor
    /// `verified` must be examined next time. `is_cache_current` is true if the untracked cache in
    /// `edit` is up to date; otherwise it is updated here.
    pub(super) fn record(
        &self,
        edit: &mut IndexEdit<'_>,
        verified: &[u32],
        is_cache_current: bool,
    ) {
        let index = edit.base();
        let all = 0..index.len() as u32;
        let mut verified = verified.to_vec();
        verified.sort_unstable();
        let mut verified = verified.into_iter().peekable();
        let mut is_open = |at: &u32| {
            while verified.next_if(|known| known < at).is_some() {}
            verified.next_if(|known| known == at).is_none()
        };
        let dirty: Vec<u32> = match &self.monitored.dirty {
            None => all.filter(&mut is_open).collect(),
            Some(dirty) => dirty.iter().copied().filter(&mut is_open).collect(),
        };
        edit.set_fsmonitor(Some(&Fsmonitor::new(self.answer.token().into(), dirty)));
        if is_cache_current {
            return;
        }
        if let Some(mut cache) = index.untracked_cache().filter(|cache| !cache.is_empty()) {
            match &self.answer {
                MonitorResponse::Paths { paths, .. } if !self.is_first => {
                    invalidate(&mut cache, paths)
                }
                _ => cache.invalidate_directory(0, true),
            }
            edit.set_untracked_cache(Some(&cache));
        }
    }
}

/// Invalidates the cached directories that contain `paths`, and those at `paths`.
pub(super) fn invalidate(cache: &mut UntrackedCache<'_>, paths: &[BString]) {
    if cache.is_empty() {
        return;
    }
    for path in paths {
        let bare = path.strip_suffix(b"/").unwrap_or(path);
        let (directory, name) = match bare.rfind_byte(b'/') {
            Some(slash) => (&bare[..slash], &bare[slash + 1..]),
            None => (&b""[..], bare),
        };
        // For a directory that is not cached, the nearest cached parent is invalidated.
        let mut at = 0;
        for name in directory.split_str("/").filter(|name| !name.is_empty()) {
            match cache.child(at, name.as_bstr()) {
                Some(below) => at = below,
                None => break,
            }
        }
        cache.invalidate_directory(at, name == b".gitignore");
        if let Some(below) = cache.child(at, name.as_bstr()) {
            cache.invalidate_directory(below, true);
        }
    }
}

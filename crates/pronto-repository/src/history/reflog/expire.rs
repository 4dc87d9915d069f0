//! Decides which reflog entries are removed.

use pronto_io::watch::Watch;
use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};
use pronto_config::glob::{self, MatchOptions};
use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupted;

use super::outcome::{ExpiredLog, RewriteOptions};
use super::reach::{ReachableCommits, ReflogHistory};
use super::rewrite::{ExpiryRule, Rewriting};
use crate::config::ConfigEntry;
use crate::history::CommitNumber;
use crate::refs::{LogLine, name};
use pronto_object::date;

use crate::{Error, ErrorKind, Repository, Result, identity};

const DAY: i64 = 24 * 60 * 60;
const DEFAULT_DAYS: i64 = 90;
const DEFAULT_DAYS_UNREACHABLE: i64 = 30;

/// The reflogs that are expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogSelection {
    /// The reflogs of all refs of all worktrees (`--all`).
    All,
    /// The reflogs of all refs that are visible in this worktree (`--all --single-worktree`).
    OfWorkTree,
    /// The reflogs of the refs with these full names.
    Named(Vec<BString>),
}

/// Options for expiring reflogs (`git reflog expire`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExpireOptions {
    /// The reflogs.
    pub logs: LogSelection,
    /// Remove entries before this time, in seconds since 1970 (`--expire`). `None` uses
    /// `gc.reflogExpire`.
    pub expire: Option<i64>,
    /// Remove entries before this time that are unreachable from the ref (`--expire-unreachable`).
    /// `None` uses `gc.reflogExpireUnreachable`.
    pub expire_unreachable: Option<i64>,
    /// Options for rewriting each reflog.
    pub rewrite: RewriteOptions,
}

impl Default for ExpireOptions {
    /// Returns options for all reflogs, with the configured times.
    fn default() -> Self {
        ExpireOptions {
            logs: LogSelection::All,
            expire: None,
            expire_unreachable: None,
            rewrite: RewriteOptions::default(),
        }
    }
}

/// The two expiry times for one reflog.
#[derive(Clone, Copy, Debug, Default)]
struct ExpiryTimes {
    total: i64,
    unreachable: i64,
}

/// The configured expiry times.
#[derive(Debug)]
struct Configured {
    default: ExpiryTimes,
    /// The times of `gc.PATTERN.reflogExpire` and `gc.PATTERN.reflogExpireUnreachable`, in the order in
    /// which each pattern first occurs.
    patterns: Vec<(BString, ExpiryTimes)>,
}

impl Repository {
    /// Removes entries from reflogs like `git reflog expire`: entries that are too old, and old entries
    /// of unreachable commits. Each reflog is replaced as a whole, under the lock of its ref.
    ///
    /// Costs reading each reflog, and copying it if entries are removed. History is walked only for
    /// entries between the two times, and with a commit-graph file only down to the commits of such
    /// entries.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a configured time is invalid, or with
    /// [`ErrorKind::Interrupted`]. A reflog that cannot be locked or written is reported in its
    /// [`ExpiredLog`].
    pub fn expire_reflogs(
        &self,
        options: &ExpireOptions,
        watch: &Watch<'_>,
    ) -> Result<Vec<ExpiredLog>> {
        let configured = self.configured_expiry()?;
        let names = match &options.logs {
            LogSelection::All => self.logged_references_everywhere(false)?,
            LogSelection::OfWorkTree => self.logged_references(),
            LogSelection::Named(names) => names.clone(),
        };
        if !names.is_empty() {
            // Git reads the tips of the refs first.
            let store = self.objects()?;
            store.use_alternates();
            store.use_replacements();
        }
        let mut expiring = Expiring {
            repository: self,
            history: None,
            all: None,
        };
        let mut done = Vec::with_capacity(names.len());
        for name in names {
            watch.interrupt().check().map_err(stopped)?;
            let cut = configured.cut_for(name.as_bstr(), options);
            let mut policy = LogExpiry {
                expiring: &mut expiring,
                cut,
                is_head: is_head(name.as_bstr()),
                tip: None,
                reach: None,
            };
            let rewriting = Rewriting {
                repository: self,
                name: name.as_bstr(),
                how: options.rewrite,
            };
            done.push(rewriting.run(&mut policy));
        }
        Ok(done)
    }

    /// Removes the entry at `position` from the reflog of `name`, counted from the newest, which is 0
    /// (`git reflog delete NAME@{POSITION}`). Failures are reported in the [`ExpiredLog`].
    pub fn delete_log_line(&self, name: &BStr, position: usize, how: RewriteOptions) -> ExpiredLog {
        let mut policy = Nth::FromNewest(position);
        self.rewrite_log(name, how, &mut policy)
    }

    /// Removes the newest entry before `moment`, in seconds since 1970, from the reflog of `name`
    /// (`git reflog delete NAME@{TIME}`). Failures are reported in the [`ExpiredLog`].
    pub fn delete_log_line_before(
        &self,
        name: &BStr,
        moment: i64,
        how: RewriteOptions,
    ) -> ExpiredLog {
        let mut policy = Nth::Before(moment);
        self.rewrite_log(name, how, &mut policy)
    }

    fn rewrite_log(
        &self,
        name: &BStr,
        how: RewriteOptions,
        judge: &mut dyn ExpiryRule,
    ) -> ExpiredLog {
        let rewriting = Rewriting {
            repository: self,
            name,
            how,
        };
        rewriting.run(judge)
    }

    fn configured_expiry(&self) -> Result<Configured> {
        let now = identity::now().seconds;
        let mut configured = Configured {
            default: ExpiryTimes {
                total: now - DEFAULT_DAYS * DAY,
                unreachable: now - DEFAULT_DAYS_UNREACHABLE * DAY,
            },
            patterns: Vec::new(),
        };
        for entry in self.config().iter() {
            let key = entry.key.as_bytes();
            let Some(rest) = key.strip_prefix(b"gc.") else {
                continue;
            };
            let (pattern, variable) = match rest.rfind_byte(b'.') {
                Some(dot) => (Some(rest[..dot].as_bstr()), &rest[dot + 1..]),
                None => (None, rest),
            };
            let is_total = variable == b"reflogexpire";
            if !is_total && variable != b"reflogexpireunreachable" {
                continue;
            }
            let moment = configured_moment(&entry)?;
            let cut = configured.of(pattern);
            match is_total {
                true => cut.total = moment,
                false => cut.unreachable = moment,
            }
        }
        Ok(configured)
    }
}

fn stopped(reason: Interrupted) -> Error {
    Error::new(ErrorKind::Interrupted, reason.to_string())
}

fn configured_moment(entry: &ConfigEntry<'_>) -> Result<i64> {
    let value = entry.string()?;
    date::parse_expiry(value).ok_or_else(|| {
        let message = format!("'{value}' for '{}' is not a valid timestamp", entry.key);
        entry.bad_variable().reported_after(message)
    })
}

impl Configured {
    fn of(&mut self, pattern: Option<&BStr>) -> &mut ExpiryTimes {
        let Some(pattern) = pattern else {
            return &mut self.default;
        };
        let known = self.patterns.iter().position(|(known, _)| known == pattern);
        let at = known.unwrap_or_else(|| {
            // Entries never expire if the time is not set for the pattern.
            self.patterns
                .push((pattern.to_owned(), ExpiryTimes::default()));
            self.patterns.len() - 1
        });
        &mut self.patterns[at].1
    }

    fn cut_for(&self, name: &BStr, options: &ExpireOptions) -> ExpiryTimes {
        let mut patterns = self.patterns.iter();
        let matched =
            patterns.find(|(pattern, _)| glob::matches(pattern, name, MatchOptions::default()));
        let configured = match matched {
            Some((_, cut)) => *cut,
            None if name == "refs/stash" => ExpiryTimes::default(),
            None => self.default,
        };
        ExpiryTimes {
            total: options.expire.unwrap_or(configured.total),
            unreachable: options.expire_unreachable.unwrap_or(configured.unreachable),
        }
    }
}

/// Returns whether `name` is the `HEAD` of any worktree.
fn is_head(name: &BStr) -> bool {
    name == "HEAD"
        || (name::is_per_worktree(name) && name.ends_with(b"/HEAD") && {
            let mut parts = name.split_str("/");
            match parts.next() {
                Some(b"main-worktree") => parts.count() == 1,
                Some(b"worktrees") => parts.count() == 2,
                _ => false,
            }
        })
}

/// The state that is shared by all reflogs of one call.
struct Expiring<'r> {
    repository: &'r Repository,
    history: Option<ReflogHistory<'r>>,
    /// The commits reachable from all refs.
    all: Option<ReachableCommits>,
}

impl<'r> Expiring<'r> {
    fn history(&mut self) -> Result<&mut ReflogHistory<'r>> {
        let history = match self.history.take() {
            Some(history) => history,
            None => ReflogHistory::new(self.repository)?,
        };
        Ok(self.history.insert(history))
    }

    /// Returns the commits to which the refs point.
    fn tips(&mut self) -> Result<Vec<CommitNumber>> {
        let mut ids = Vec::new();
        self.repository.refs().for_each("refs/", |found| {
            if found.symbolic.is_none() {
                ids.push(found.id);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let history = self.history()?;
        Ok(ids
            .into_iter()
            .filter_map(|id| history.commit(id))
            .collect())
    }
}

/// The rules for the entries of one reflog.
struct LogExpiry<'e, 'r> {
    expiring: &'e mut Expiring<'r>,
    cut: ExpiryTimes,
    is_head: bool,
    /// The commit to which the ref points.
    tip: Option<ObjectId>,
    /// The commits reachable from the tip.
    reach: Option<ReachableCommits>,
}

impl LogExpiry<'_, '_> {
    fn is_unreachable(&mut self, id: ObjectId) -> Result<bool> {
        if id.is_null() {
            return Ok(false);
        }
        let Some(commit) = self.expiring.history()?.commit(id) else {
            return Ok(false);
        };
        let is_everything = self.is_head || self.cut.unreachable == 0;
        let slot = match is_everything {
            true => &mut self.expiring.all,
            false => &mut self.reach,
        };
        let mut reach = match slot.take() {
            Some(reach) => reach,
            None if is_everything => {
                let tips = self.expiring.tips()?;
                ReachableCommits::new(self.expiring.history()?, tips)
            }
            None => {
                let tip = self.tip;
                let history = self.expiring.history()?;
                let tip = tip.and_then(|tip| history.commit(tip));
                ReachableCommits::new(history, tip)
            }
        };
        let found = reach.contains(self.expiring.history()?, commit);
        match is_everything {
            true => self.expiring.all = Some(reach),
            false => self.reach = Some(reach),
        }
        found.map(|found| !found)
    }

    /// Returns whether all entries before the time for unreachable entries expire, without a test of
    /// reachability.
    fn takes_all(&mut self) -> Result<bool> {
        if self.cut.unreachable <= self.cut.total {
            return Ok(true);
        }
        if self.is_head || self.cut.unreachable == 0 {
            return Ok(false);
        }
        let Some(tip) = self.tip else {
            return Ok(true);
        };
        Ok(self.expiring.history()?.commit(tip).is_none())
    }
}

impl ExpiryRule for LogExpiry<'_, '_> {
    fn begin(&mut self, tip: Option<ObjectId>, _: &[u8]) {
        self.tip = tip;
    }

    fn expires(&mut self, line: &LogLine<'_>, old: ObjectId) -> Result<bool> {
        if line.seconds < self.cut.total {
            return Ok(true);
        }
        if line.seconds >= self.cut.unreachable {
            return Ok(false);
        }
        Ok(self.takes_all()? || self.is_unreachable(old)? || self.is_unreachable(line.new)?)
    }
}

/// The selection of one reflog entry.
enum Nth {
    /// The position from the newest entry, which is 0.
    FromNewest(usize),
    /// The newest entry before this time.
    Before(i64),
    /// The number of remaining entries up to the selected entry, including it; 0 if there is no such
    /// entry.
    Left(usize),
}

impl ExpiryRule for Nth {
    fn begin(&mut self, _: Option<ObjectId>, content: &[u8]) {
        let lines = super::whole_lines(content);
        let left = match *self {
            Nth::FromNewest(position) => lines.count().saturating_sub(position),
            Nth::Before(moment) => lines
                .filter(|line| moment == 0 || line.seconds < moment)
                .count(),
            Nth::Left(left) => left,
        };
        *self = Nth::Left(left);
    }

    fn expires(&mut self, _: &LogLine<'_>, _: ObjectId) -> Result<bool> {
        let Nth::Left(left) = self else {
            return Ok(false);
        };
        let is_it = *left == 1;
        *left = left.saturating_sub(1);
        Ok(is_it)
    }
}

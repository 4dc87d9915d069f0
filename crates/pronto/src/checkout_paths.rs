//! Puts single paths back as the index or a tree has them: `checkout -- <path>` and `restore`.

use std::collections::HashMap;

use bstr::{BString, ByteSlice};
use pronto_index::{Edit, Entry, EntryRef, Flags, Index, Lock, Stat, mode};
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;
use pronto_worktree::checkout::{Failure, Item, Plan, Removal};
use pronto_worktree::pathspec::{Directory, Pathspec};
use pronto_worktree::unpack::{self, Checker, Side};

use crate::switch::{Prepared, Start};
use crate::worktree::{from_index, from_worktree};
use crate::{Repository, Result};

/// A side of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The side that `HEAD` was at.
    Ours,
    /// The side that was to be merged.
    Theirs,
}

impl Stage {
    fn number(self) -> u8 {
        match self {
            Stage::Ours => 2,
            Stage::Theirs => 3,
        }
    }

    fn owner(self) -> &'static str {
        match self {
            Stage::Ours => "our",
            Stage::Theirs => "their",
        }
    }
}

/// Which paths, from where, to where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The tree they come from; `None`: the index.
    pub source: Option<Start>,
    /// Which paths.
    pub pathspec: Pathspec,
    /// Leave tracked paths that the tree does not have.
    pub overlay: bool,
    /// Of paths in conflict, take this side.
    pub stage: Option<Stage>,
    /// Leave paths in conflict alone, instead of refusing them.
    pub ignore_unmerged: bool,
    /// Change the index.
    pub index: bool,
    /// Change files.
    pub worktree: bool,
    /// Include paths that are not to be in the work tree.
    pub ignore_skip_worktree: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Why nothing was done, in Git's words.
    pub errors: Vec<String>,
    /// How many files were written.
    pub updated: usize,
    /// Files that could not be written.
    pub failed: Vec<Failure>,
    /// What else there is to say, as lines in Git's form (`warning: …`, `error: …`).
    pub warnings: Vec<String>,
    /// What the hook `post-checkout` said, if it ran.
    pub hook: Option<i32>,
}

impl Repository {
    /// Puts the paths back.
    ///
    /// # Errors
    /// Files of the repository cannot be read or written, or an object is missing. What Git
    /// refuses is in [`Report::errors`].
    pub fn checkout_paths(
        &self,
        options: &Options,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Report> {
        let (prepared, lock) = Prepared::new(self)?;
        let mut work = Work::new(options, &prepared.index);
        if let Some(source) = &options.source {
            work.read_tree(source, &prepared)?;
        }
        work.collect_index();
        work.report_unmatched();
        if !work.report.errors.is_empty() {
            return Ok(work.report);
        }
        if options.worktree {
            work.skip_unchanged(&prepared, interrupt)?;
        }
        let mut report = work.write((&prepared, lock), progress, interrupt)?;
        let head = self.head()?.id();
        report.hook = self.post_checkout_hook(head, head, false)?;
        Ok(report)
    }
}

/// A path to put back.
struct Target {
    path: BString,
    side: Side,
    /// Its entry in the index, if that stays.
    position: Option<usize>,
    /// Whether there was any entry of that path.
    tracked: bool,
    /// Whether the index gets a new entry.
    restage: bool,
}

struct Work<'a> {
    options: &'a Options,
    index: &'a Index,
    /// What the tree has of the paths.
    in_tree: HashMap<BString, Side>,
    seen: Vec<bool>,
    targets: Vec<Target>,
    remove: Vec<BString>,
    report: Report,
}

impl<'a> Work<'a> {
    fn new(options: &'a Options, index: &'a Index) -> Self {
        Work {
            options,
            index,
            in_tree: HashMap::new(),
            seen: vec![false; options.pathspec.len()],
            targets: Vec::new(),
            remove: Vec::new(),
            report: Report::default(),
        }
    }

    fn read_tree(&mut self, source: &Start, prepared: &Prepared<'_>) -> Result<()> {
        let protect = prepared.repository.protection()?;
        let pathspec = &self.options.pathspec;
        let mut enter = |path: &bstr::BStr| pathspec.directory(path) != Directory::Outside;
        let mut found = Vec::new();
        unpack::files(
            source.tree,
            (prepared.objects, protect),
            &mut enter,
            &mut |path, side| {
                if pathspec.matches(path, false) {
                    found.push((path.to_owned(), side));
                }
            },
        )
        .map_err(from_worktree)?;
        for (path, side) in found {
            let position = self.index.find(path.as_bstr(), 0).ok();
            let entry = position.map(|position| self.index.entry(position));
            let skipped = entry.is_some_and(|entry| entry.flags.contains(Flags::SKIP_WORKTREE));
            let same = entry.is_some_and(|entry| {
                *entry.id == *side.id
                    && entry.mode == side.mode
                    && !entry.flags.contains(Flags::INTENT_TO_ADD)
            });
            self.in_tree.insert(path.clone(), side);
            if skipped && !self.options.ignore_skip_worktree {
                continue;
            }
            pathspec.mark(path.as_bstr(), &mut self.seen);
            self.targets.push(Target {
                tracked: !self.index.stages(path.as_bstr()).is_empty(),
                path,
                side,
                position: position.filter(|_| same),
                restage: !same,
            });
        }
        Ok(())
    }

    /// What the index has of the paths, and the tree has not.
    fn collect_index(&mut self) {
        let (options, index) = (self.options, self.index);
        let mut at = 0;
        while at < index.len() {
            let entry = index.entry(at);
            let stages = at..at + index.stages(entry.path).len().max(1);
            at = stages.end;
            let skipped = entry.flags.contains(Flags::SKIP_WORKTREE);
            if (skipped && !options.ignore_skip_worktree)
                || self.in_tree.contains_key(entry.path)
                || (options.source.is_some() && options.overlay)
                || !options.pathspec.matches(entry.path, false)
            {
                continue;
            }
            options.pathspec.mark(entry.path, &mut self.seen);
            if options.source.is_some() {
                self.remove.push(entry.path.to_owned());
            } else if entry.stage() == 0 {
                self.targets.push(Target {
                    path: entry.path.to_owned(),
                    side: side_of(&entry),
                    position: Some(stages.start),
                    tracked: true,
                    restage: false,
                });
            } else {
                self.unmerged(stages);
            }
        }
        self.targets.sort_by(|one, two| one.path.cmp(&two.path));
    }

    fn unmerged(&mut self, stages: std::ops::Range<usize>) {
        let path = self.index.path(stages.start).to_owned();
        if self.options.ignore_unmerged {
            self.report
                .warnings
                .push(format!("warning: path '{path}' is unmerged"));
            return;
        }
        let Some(stage) = self.options.stage else {
            self.report
                .errors
                .push(format!("path '{path}' is unmerged"));
            return;
        };
        let mut entries = stages.map(|at| self.index.entry(at));
        match entries.find(|entry| entry.stage() == stage.number()) {
            Some(entry) => self.targets.push(Target {
                path,
                side: side_of(&entry),
                position: None,
                tracked: true,
                restage: false,
            }),
            None if self.options.overlay => {
                let message = format!("path '{path}' does not have {} version", stage.owner());
                self.report.errors.push(message);
            }
            None => self.remove.push(path),
        }
    }

    fn report_unmatched(&mut self) {
        let unmatched = self.seen.iter().enumerate().filter(|(_, seen)| !**seen);
        let unmatched: Vec<String> = unmatched
            .map(|(at, _)| {
                let spec = self.options.pathspec.original(at);
                format!("pathspec '{spec}' did not match any file(s) known to git")
            })
            .collect();
        if !unmatched.is_empty() {
            self.report.errors = unmatched;
        }
    }

    /// Files whose facts are those that the index has are left as they are.
    fn skip_unchanged(&mut self, prepared: &Prepared<'_>, interrupt: &Interrupt) -> Result<()> {
        let index = self.index;
        let unchanged: Vec<bool> = prepared.with_situation(interrupt, |situation| {
            let mut checker = Checker::new(situation);
            self.targets
                .iter()
                .map(|target| match target.position {
                    Some(position) => checker
                        .has_facts_of(&index.entry(position))
                        .map_err(from_worktree),
                    None => Ok(false),
                })
                .collect()
        })?;
        let mut unchanged = unchanged.into_iter();
        self.targets.retain(|_| !unchanged.next().unwrap_or(false));
        Ok(())
    }

    fn plan(&self) -> Plan {
        if !self.options.worktree {
            return Plan::default();
        }
        let removals = self.remove.iter().map(|path| {
            let position = self.index.stages(path.as_bstr()).start;
            Removal {
                path: path.clone(),
                gitlink: self.index.entry(position).mode == mode::GITLINK,
            }
        });
        let items = self.targets.iter().map(|target| Item {
            path: target.path.clone(),
            id: target.side.id,
            mode: target.side.mode,
            replaces: target.tracked,
        });
        Plan {
            remove: removals.collect(),
            write: items.collect(),
        }
    }

    fn write(
        self,
        (prepared, lock): (&Prepared<'_>, Lock),
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<Report> {
        let plan = self.plan();
        // Attributes are those of the index as it will be.
        let news = self.targets.iter().filter(|target| target.restage);
        let news: Vec<Entry> = news
            .map(|target| entry_of(target, Stat::default()))
            .collect();
        let outcome = {
            let before = self.index.iter().filter(|entry| entry.stage() == 0);
            let entries = before.chain(news.iter().map(Entry::as_ref));
            prepared.write_files(&plan, entries, progress, interrupt)?
        };
        let Work {
            options,
            targets,
            remove,
            mut report,
            ..
        } = self;
        report.updated = outcome
            .written
            .iter()
            .filter(|written| written.is_some())
            .count();
        report.failed = outcome.failed;
        report.warnings.extend(outcome.warnings);
        if !options.index && options.source.is_some() {
            return Ok(report);
        }
        let mut edit = Edit::new(&prepared.index);
        for (at, target) in targets.iter().enumerate() {
            let written = outcome.written.get(at).copied().flatten();
            match (target.restage, target.position, written) {
                (true, ..) if options.index => restage(&mut edit, target, written),
                (false, Some(position), Some(stat)) => {
                    let flags = prepared.index.entry(position).flags;
                    edit.refresh(position, stat, flags.with(Flags::UP_TO_DATE));
                }
                _ => {}
            }
        }
        if options.index {
            remove
                .iter()
                .for_each(|path| edit.remove_path(path.as_bstr()));
        }
        if edit.is_empty() {
            return Ok(report);
        }
        let bytes = prepared.encode(edit.content(), interrupt)?;
        drop(edit);
        lock.commit(&bytes).map_err(from_index)?;
        Ok(report)
    }
}

fn side_of(entry: &EntryRef<'_>) -> Side {
    Side {
        id: entry.id.to_owned(),
        mode: entry.mode,
    }
}

fn entry_of(target: &Target, stat: Stat) -> Entry {
    Entry {
        path: target.path.clone(),
        id: target.side.id,
        mode: target.side.mode,
        flags: Flags::default(),
        stat,
    }
}

/// A new entry, which takes the place of all that cannot be beside it.
fn restage(edit: &mut Edit<'_>, target: &Target, written: Option<Stat>) {
    let path = target.path.as_bstr();
    for position in edit.base().below(path) {
        edit.remove_path(edit.base().path(position));
    }
    for slash in path.find_iter("/") {
        edit.remove_path(path[..slash].as_bstr());
    }
    for stage in 1..4 {
        edit.remove(path, stage);
    }
    let mut entry = entry_of(target, written.unwrap_or_default());
    if written.is_some() {
        entry.flags = entry.flags.with(Flags::UP_TO_DATE);
    }
    edit.set(entry);
}

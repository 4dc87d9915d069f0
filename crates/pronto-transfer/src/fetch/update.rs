//! Updates refs to the fetched values, and reports the results.

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use super::map::{FetchHeadKind, FetchedRef, LocalName};
use super::{FetchFailure, FetchRun, Flag, Outcome, Update, UpdateNote, UpdateSummary, head_file};
use crate::objects::from_odb;
use crate::refs::ExpectedValue;
use crate::remote::NegotiationHistory;
use crate::{Error, ErrorKind, Result};

/// A planned change of a ref.
struct Planned {
    /// The position among the reported updates.
    reported: usize,
    local: BString,
    new: ObjectId,
    old: Option<ObjectId>,
    message: BString,
}

/// Updates the refs, writes `FETCH_HEAD`, and records the result for each ref.
///
/// If another process changes a ref in the meantime, the decision is repeated, because the ref may
/// already have the fetched value, or the update may no longer be a fast-forward.
pub(super) fn apply(work: &FetchRun<'_>, all: &[FetchedRef], outcome: &mut Outcome) -> Result<()> {
    let mut entries: Vec<FetchedRef> = all
        .iter()
        .filter(|entry| !entry.needs_cut)
        .cloned()
        .collect();
    let (reported, failed) = (outcome.updates.len(), outcome.failed);
    for attempt in 1.. {
        let updated = update(work, &entries, outcome, attempt < MOST_ATTEMPTS);
        let writes_list = work.options.write_fetch_head && !work.options.dry_run;
        let is_refused = (updated.as_ref()).is_err_and(|error| error.kind() == ErrorKind::Hook);
        if is_refused && writes_list && !work.options.atomic {
            // If a hook refuses the transaction, the fetch fails after `FETCH_HEAD` is written.
            entries.sort_by_key(|entry| entry.merge);
            let entries: Vec<&FetchedRef> = entries.iter().collect();
            head_file::write(work, &entries)?;
        }
        let ordered = updated?;
        let Some(ordered) = ordered else {
            outcome.updates.truncate(reported);
            outcome.failed = failed;
            for local in entries.iter_mut().filter_map(|entry| entry.local.as_mut()) {
                local.old = work.repository.refs().id_of(&local.name)?;
            }
            continue;
        };
        if !outcome.updates.is_empty() {
            outcome.summary_width = summary_width(work, all)?;
        }
        let is_undone = work.options.atomic && outcome.failed;
        if writes_list && !is_undone {
            let entries: Vec<&FetchedRef> = ordered.iter().collect();
            head_file::write(work, &entries)?;
        }
        break;
    }
    Ok(())
}

/// The limit for repeated decisions because other processes change the same refs.
const MOST_ATTEMPTS: u32 = 20;

/// Decides on the update of each ref, and applies the updates. Returns `None` if another process
/// has changed or locked one of the refs, and `may_repeat` allows another attempt; nothing has
/// changed then.
fn update(
    work: &FetchRun<'_>,
    entries: &[FetchedRef],
    outcome: &mut Outcome,
    may_repeat: bool,
) -> Result<Option<Vec<FetchedRef>>> {
    let mut planner = Planner {
        work,
        history: NegotiationHistory::new(work.repository.objects()?, &work.cut),
        planned: Vec::new(),
        outcome,
    };
    let mut ordered = entries.to_vec();
    for entry in &mut ordered {
        let commit = planner.history.peel(&entry.id).map_err(from_odb)?;
        if commit.is_none() && entry.merge == FetchHeadKind::Merge {
            entry.merge = FetchHeadKind::NotForMerge;
        }
    }
    ordered.sort_by_key(|entry| entry.merge);
    for entry in &ordered {
        planner.plan(entry)?;
    }
    let planned = std::mem::take(&mut planner.planned);
    let merges = ordered
        .iter()
        .filter(|entry| entry.merge == FetchHeadKind::Merge);
    outcome.for_merge = merges.map(|entry| entry.name.clone()).collect();
    let may_commit = !(work.options.atomic && outcome.failed);
    if !work.options.dry_run && may_commit && !commit(work, &planned, outcome, may_repeat)? {
        return Ok(None);
    }
    Ok(Some(ordered))
}

struct Planner<'a> {
    work: &'a FetchRun<'a>,
    history: NegotiationHistory<'a>,
    planned: Vec<Planned>,
    outcome: &'a mut Outcome,
}

impl Planner<'_> {
    fn plan(&mut self, entry: &FetchedRef) -> Result<()> {
        let Some(local) = &entry.local else {
            if self.work.options.write_fetch_head || self.work.options.dry_run {
                let (kind, _) = head_file::described(entry.name.as_bstr());
                let kind = if kind.is_empty() { "branch" } else { kind };
                let local = LocalName {
                    name: "FETCH_HEAD".into(),
                    force: false,
                    old: None,
                };
                self.report(entry, &local, Flag::New, UpdateSummary::Fetched(kind), None);
            }
            return Ok(());
        };
        if local.old == Some(entry.id) {
            if self.work.options.report_unchanged {
                self.report(entry, local, Flag::UpToDate, UpdateSummary::UpToDate, None);
            }
            return Ok(());
        }
        let forced = self.work.options.force || local.force;
        let Some(old) = local.old else {
            return self.plan_new(entry, local);
        };
        if self.is_checked_out(local)? {
            return self.reject(entry, local, UpdateNote::CheckedOut);
        }
        if local.name.starts_with(b"refs/tags/") {
            if !forced {
                return self.reject(entry, local, UpdateNote::ExistingTag);
            }
            self.report(entry, local, Flag::Tag, UpdateSummary::TagUpdate, None);
            return self.record(entry, local, "updating tag");
        }
        let current = self.history.peel(&old).map_err(from_odb)?;
        let updated = self.history.peel(&entry.id).map_err(from_odb)?;
        let (Some(current), Some(updated)) = (current, updated) else {
            return self.plan_new(entry, local);
        };
        let config = self.work.repository.config();
        let shows_forced = self.work.options.shows_forced_updates(config)?;
        let is_forward = !shows_forced
            || self
                .work
                .repository
                .is_ancestor(&current, &updated, &self.work.cut)?;
        let (from, to) = (self.short(&old)?, self.short(&entry.id)?);
        if is_forward {
            let summary = UpdateSummary::Forward(from, to);
            self.report(entry, local, Flag::FastForward, summary, None);
            self.record(entry, local, "fast-forward")
        } else if forced {
            let summary = UpdateSummary::Sideways(from, to);
            let note = Some(UpdateNote::Forced);
            self.report(entry, local, Flag::Forced, summary, note);
            self.record(entry, local, "forced-update")
        } else {
            self.reject(entry, local, UpdateNote::NotFastForward)
        }
    }

    fn plan_new(&mut self, entry: &FetchedRef, local: &LocalName) -> Result<()> {
        let (message, what) = if entry.name.starts_with(b"refs/tags/") {
            ("storing tag", UpdateSummary::NewTag)
        } else if entry.name.starts_with(b"refs/heads/") {
            ("storing head", UpdateSummary::NewBranch)
        } else {
            ("storing ref", UpdateSummary::NewRef)
        };
        self.report(entry, local, Flag::New, what, None);
        self.record(entry, local, message)
    }

    fn short(&self, id: &ObjectId) -> Result<String> {
        self.work.repository.abbreviate(id)
    }

    /// Whether a worktree has the branch checked out.
    fn is_checked_out(&self, local: &LocalName) -> Result<bool> {
        if self.work.options.update_head {
            return Ok(false);
        }
        let name = local.name.as_bstr();
        Ok(self.work.checked_out.iter().any(|(found, _)| found == name))
    }

    fn reject(&mut self, entry: &FetchedRef, local: &LocalName, note: UpdateNote) -> Result<()> {
        self.outcome.failed = true;
        self.report(
            entry,
            local,
            Flag::Rejected,
            UpdateSummary::Rejected,
            Some(note),
        );
        Ok(())
    }

    fn report(
        &mut self,
        entry: &FetchedRef,
        local: &LocalName,
        flag: Flag,
        summary: UpdateSummary,
        note: Option<UpdateNote>,
    ) {
        let null = ObjectId::null(entry.id.kind());
        self.outcome.updates.push(Update {
            flag,
            summary,
            note,
            remote: entry.name.clone(),
            local: local.name.clone(),
            old: local.old.unwrap_or(null),
            new: entry.id,
        });
    }

    /// Plans the change that was reported last.
    fn record(&mut self, entry: &FetchedRef, local: &LocalName, what: &str) -> Result<()> {
        let action = &self.work.options.action;
        self.planned.push(Planned {
            reported: self.outcome.updates.len() - 1,
            local: local.name.clone(),
            new: entry.id,
            old: local.old,
            message: format!("{action}: {what}").into(),
        });
        Ok(())
    }
}

/// Applies the changes in one transaction. If the transaction fails, the possible changes are
/// applied one by one, unless `--atomic` requires all or none. Returns `false` if another process
/// holds a lock or has changed a ref, and `may_repeat` is set.
fn commit(
    work: &FetchRun<'_>,
    planned: &[Planned],
    outcome: &mut Outcome,
    may_repeat: bool,
) -> Result<bool> {
    let _region = pronto_io::region!("fetch", "consume_refs");
    let all: Vec<&Planned> = planned.iter().collect();
    let error = match commit_some(work, &all) {
        Ok(()) => return Ok(true),
        Err(error) => error,
    };
    match error.kind() {
        kind if kind.ends_command() => return Err(error),
        ErrorKind::Moved | ErrorKind::Locked if may_repeat => return Ok(false),
        _ => {}
    }
    if work.options.atomic {
        outcome.failed = true;
        outcome.errors.push(FetchFailure::NotWritten(error));
        return Ok(true);
    }
    let mut has_conflict = false;
    for one in planned {
        // The failed transaction may have applied this change.
        if work.repository.refs().id_of(&one.local).ok().flatten() == Some(one.new) {
            continue;
        }
        if let Err(error) = commit_some(work, &[one]) {
            outcome.failed = true;
            let is_first = !has_conflict && error.kind() == ErrorKind::NameConflict;
            has_conflict |= is_first;
            outcome.errors.push(match is_first {
                true => FetchFailure::NameConflict {
                    remote: work.remote.name.clone(),
                },
                false => FetchFailure::NotWritten(error),
            });
            let reported = &mut outcome.updates[one.reported];
            reported.flag = Flag::Rejected;
            reported.note = Some(UpdateNote::NotWritten);
        }
    }
    Ok(true)
}

fn commit_some(work: &FetchRun<'_>, planned: &[&Planned]) -> Result<(), Error> {
    let mut transaction = work.repository.transaction();
    for change in planned {
        let expected = match change.old {
            Some(old) => ExpectedValue::Object(old),
            None => ExpectedValue::Missing,
        };
        let message: &BStr = change.message.as_bstr();
        transaction.update(&change.local, change.new, expected, message);
    }
    transaction.commit_always()
}

/// Returns the width of a summary with two abbreviated ids.
fn summary_width(work: &FetchRun<'_>, entries: &[FetchedRef]) -> Result<usize> {
    let length = work.repository.abbreviation_length()?;
    let mut widest = length;
    for entry in entries {
        let short = work.repository.abbreviate_to(&entry.id, length)?;
        widest = widest.max(short.len());
    }
    Ok(2 * widest + 3)
}

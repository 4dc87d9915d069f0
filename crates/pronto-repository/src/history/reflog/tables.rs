//! Changes of reflogs in the reftable format.

use bstr::BStr;
use pronto_hash::ObjectId;
use pronto_refs::reftable::{Additions, LogRecord, RefRecord, RefValue, StackTransaction};

use super::NewLine;
use super::outcome::ExpiredLog;
use super::rewrite::{ExpiryRule, Rewriting};
use crate::refs::tables::{LogChange, RefStacks, StoredEntry, entries_of, from_tables};
use crate::refs::{LogLine, RefNameRef};
use crate::{Repository, Result};

/// The records that a change of one reflog writes.
#[derive(Debug, Default)]
struct ReflogChanges {
    /// The update indexes of removed entries.
    gone: Vec<u64>,
    /// New entries, and entries that replace those with the same update index.
    written: Vec<StoredEntry>,
    /// The new value of the ref.
    tip: Option<ObjectId>,
}

impl ReflogChanges {
    fn commit(
        &self,
        repository: &Repository,
        name: &BStr,
        mut transaction: StackTransaction<'_>,
    ) -> Result<()> {
        let update_index = transaction.next_update_index();
        let mut additions = Additions::at(update_index);
        let target = match self.tip {
            Some(tip) => repository.peel_tag(tip)?,
            None => None,
        };
        if let Some(object) = &self.tip {
            let value = match &target {
                Some(target) => RefValue::Peeled { object, target },
                None => RefValue::Direct(object),
            };
            additions.refs.push(RefRecord {
                name,
                update_index,
                value,
            });
        }
        let gone = self.gone.iter().map(|update_index| LogRecord {
            name,
            update_index: *update_index,
            entry: None,
        });
        let written = self.written.iter().map(|entry| LogRecord {
            name,
            update_index: entry.update_index,
            entry: Some(entry.as_entry()),
        });
        additions.logs.extend(gone.chain(written));
        transaction.add(&mut additions).map_err(from_tables)?;
        transaction.commit().map_err(from_tables)
    }
}

impl Repository {
    /// Removes the reflog of `name`.
    pub(super) fn drop_log_in_tables(
        &self,
        tables: &RefStacks,
        name: RefNameRef<'_>,
    ) -> Result<()> {
        let (directory, rest) = self.refs().base_of(name);
        let stack = tables.stack(&directory)?;
        let transaction = stack.begin().map_err(from_tables)?;
        let entries = entries_of(transaction.snapshot(), rest)?;
        let changes = ReflogChanges {
            gone: entries.iter().map(|entry| entry.update_index).collect(),
            ..ReflogChanges::default()
        };
        changes.commit(self, rest, transaction)
    }

    /// Adds an entry to the reflog of `name`.
    pub(super) fn write_log_line_in_tables(
        &self,
        tables: &RefStacks,
        name: RefNameRef<'_>,
        line: &NewLine,
        who: &str,
    ) -> Result<()> {
        let (directory, rest) = self.refs().base_of(name);
        let stack = tables.stack(&directory)?;
        let transaction = stack.begin().map_err(from_tables)?;
        let update_index = transaction.next_update_index();
        let change = LogChange {
            old: line.old,
            new: line.new,
        };
        let entry = StoredEntry::new(update_index, &change, who, line.message.as_ref());
        let changes = ReflogChanges {
            written: vec![entry],
            ..ReflogChanges::default()
        };
        changes.commit(self, rest, transaction)
    }
}

impl Rewriting<'_> {
    /// Rewrites the reflog under the lock of the stack.
    pub(super) fn run_in_tables(
        &self,
        tables: &RefStacks,
        judge: &mut dyn ExpiryRule,
        log: &mut ExpiredLog,
    ) -> Result<()> {
        let refs = self.repository.refs();
        let name = RefNameRef::existing(self.name).map_err(crate::refs::bad_name)?;
        let (directory, rest) = refs.base_of(name);
        let stack = tables.stack(&directory)?;
        let transaction = stack.begin().map_err(from_tables)?;
        let mut entries = entries_of(transaction.snapshot(), rest)?;
        entries.retain(|entry| !entry.is_marker());
        let content: Vec<Vec<u8>> = entries.iter().map(StoredEntry::line).collect();
        judge.begin(refs.id_of(self.name).ok().flatten(), &content.concat());
        let changes = self.judge_entries(&entries, judge, log)?;
        if self.how.dry_run {
            return Ok(());
        }
        let mut changes = changes;
        if log.kept == 0 && !entries.is_empty() {
            // An entry that marks an existing, empty reflog.
            let hash = self.repository.object_hash();
            let update_index = transaction.next_update_index();
            changes
                .written
                .push(StoredEntry::marker(update_index, hash));
        }
        changes.tip = changes.tip.filter(|tip| !tip.is_null());
        if !self.how.update_ref || !self.is_direct()? {
            changes.tip = None;
        }
        changes.commit(self.repository, rest, transaction)
    }

    fn judge_entries(
        &self,
        entries: &[StoredEntry],
        judge: &mut dyn ExpiryRule,
        log: &mut ExpiredLog,
    ) -> Result<ReflogChanges> {
        let mut changes = ReflogChanges::default();
        let mut last = self.repository.object_hash().null();
        for entry in entries {
            let text = entry.line();
            let Some(line) = LogLine::parse(text.trim_ascii_end()) else {
                log.kept += 1;
                continue;
            };
            let old = match self.how.rewrite {
                true => last,
                false => entry.old,
            };
            if !self.keeps(&line, old, judge, log)? {
                changes.gone.push(entry.update_index);
                continue;
            }
            last = entry.new;
            if old != entry.old {
                let mut entry = entry.clone();
                entry.old = old;
                changes.written.push(entry);
            }
        }
        changes.tip = Some(last);
        Ok(changes)
    }
}

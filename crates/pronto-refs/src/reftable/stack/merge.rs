//! Iterates over several tables as one sequence of records.

use std::cmp::Ordering;

use crate::reftable::error::Result;
use crate::reftable::record::{LogRecord, RefRecord, set_log_key};
use crate::reftable::{LogCursor, RefCursor, RefTable};

/// A sorted sequence of records.
pub(super) trait RecordSource {
    fn advance(&mut self) -> Result<bool>;
    fn key(&self) -> &[u8];
    fn is_deletion(&self) -> bool;
}

impl RecordSource for RefCursor<'_> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        RefCursor::advance(self)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.record().name
    }

    #[inline]
    fn is_deletion(&self) -> bool {
        self.entry().value.is_deletion()
    }
}

impl RecordSource for LogCursor<'_> {
    fn advance(&mut self) -> Result<bool> {
        LogCursor::advance(self)
    }

    fn key(&self) -> &[u8] {
        LogCursor::key(self)
    }

    fn is_deletion(&self) -> bool {
        LogCursor::is_deletion(self)
    }
}

/// A merge of several sources. Later sources hide records with the same key of earlier ones.
#[derive(Debug)]
pub(super) struct RecordMerge<S> {
    sources: Vec<S>,
    /// The sources that have a record, ordered by key; of equal keys, the newest source is first.
    order: Vec<usize>,
    /// Whether the record of the first source was returned.
    is_used: bool,
}

impl<S: RecordSource> RecordMerge<S> {
    pub(super) fn new(mut sources: Vec<S>) -> Result<RecordMerge<S>> {
        let mut order = Vec::with_capacity(sources.len());
        for (at, source) in sources.iter_mut().enumerate() {
            if source.advance()? {
                order.push(at);
            }
        }
        let mut merge = RecordMerge {
            order: Vec::new(),
            sources,
            is_used: false,
        };
        order.sort_by(|a, b| merge.compare(*a, *b));
        merge.order = order;
        Ok(merge)
    }

    #[inline]
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let keys = self.sources[a].key().cmp(self.sources[b].key());
        keys.then(b.cmp(&a))
    }

    /// Advances the source at position `at` of the order, and restores the order.
    #[inline]
    fn step(&mut self, at: usize) -> Result<()> {
        let source = self.order[at];
        if !self.sources[source].advance()? {
            self.order.remove(at);
            return Ok(());
        }
        let mut at = at;
        while let Some(next) = self.order.get(at + 1) {
            if self.compare(source, *next).is_lt() {
                break;
            }
            self.order.swap(at, at + 1);
            at += 1;
        }
        Ok(())
    }

    /// Moves to the next visible record, which may be a deletion. Returns `false` at the end.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.is_used {
            self.step(0)?;
            self.is_used = false;
        }
        let Some(&first) = self.order.first() else {
            return Ok(false);
        };
        while let Some(&next) = self.order.get(1) {
            if self.sources[next].key() != self.sources[first].key() {
                break;
            }
            self.step(1)?;
        }
        self.is_used = true;
        Ok(true)
    }

    /// Does the same as [`advance`](Self::advance), and skips deletions.
    #[inline]
    fn advance_to_live(&mut self) -> Result<bool> {
        while self.advance()? {
            if self.current().is_some_and(|source| !source.is_deletion()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the source of the current record.
    pub(super) fn current(&self) -> Option<&S> {
        self.order.first().map(|first| &self.sources[*first])
    }
}

/// The refs of a snapshot in order of names, without deleted ones.
#[derive(Debug)]
pub struct SnapshotRefs<'s> {
    merge: RecordMerge<RefCursor<'s>>,
    prefix: Vec<u8>,
}

impl<'s> SnapshotRefs<'s> {
    pub(super) fn new(
        tables: impl ExactSizeIterator<Item = &'s RefTable>,
        start: &[u8],
        prefix: &[u8],
    ) -> Result<SnapshotRefs<'s>> {
        let mut sources = Vec::with_capacity(tables.len());
        for table in tables {
            let mut cursor = table.refs();
            if !start.is_empty() {
                cursor.seek(start)?;
            }
            sources.push(cursor);
        }
        Ok(SnapshotRefs {
            merge: RecordMerge::new(sources)?,
            prefix: prefix.to_owned(),
        })
    }

    /// Returns the next ref, or `None` at the end. Allocates only if a name exceeds the buffer.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed.
    // Not an `Iterator`, because the returned values borrow from this value.
    #[allow(
        clippy::should_implement_trait,
        reason = "a lending iterator has no other name"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<RefRecord<'_>>> {
        if !self.merge.advance_to_live()? {
            return Ok(None);
        }
        let record = self.merge.current().map(RefCursor::record);
        Ok(record.filter(|record| record.name.starts_with(&self.prefix)))
    }
}

/// The reflog entries of a snapshot, in order of names and newest first, without deleted ones.
#[derive(Debug)]
pub struct SnapshotLogs<'s> {
    merge: RecordMerge<LogCursor<'s>>,
    /// The prefix of the keys.
    prefix: Vec<u8>,
}

impl<'s> SnapshotLogs<'s> {
    pub(super) fn all(tables: impl Iterator<Item = &'s RefTable>) -> Result<SnapshotLogs<'s>> {
        let sources = tables.map(RefTable::logs).collect();
        Ok(SnapshotLogs {
            merge: RecordMerge::new(sources)?,
            prefix: Vec::new(),
        })
    }

    pub(super) fn of(
        tables: impl ExactSizeIterator<Item = &'s RefTable>,
        name: &[u8],
        newest: u64,
    ) -> Result<SnapshotLogs<'s>> {
        let mut key = Vec::new();
        set_log_key(&mut key, name, newest);
        let mut sources = Vec::with_capacity(tables.len());
        for table in tables {
            let mut cursor = table.logs();
            cursor.seek_key(&key)?;
            sources.push(cursor);
        }
        key.truncate(name.len() + 1);
        Ok(SnapshotLogs {
            merge: RecordMerge::new(sources)?,
            prefix: key,
        })
    }

    /// Returns the next entry, or `None` at the end. Allocates only if an inflated block is larger
    /// than all previous ones.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed.
    // Not an `Iterator`, because the returned values borrow from this value.
    #[allow(
        clippy::should_implement_trait,
        reason = "a lending iterator has no other name"
    )]
    pub fn next(&mut self) -> Result<Option<LogRecord<'_>>> {
        if !self.merge.advance_to_live()? {
            return Ok(None);
        }
        let current = self.merge.current();
        let current = current.filter(|cursor| cursor.key().starts_with(&self.prefix));
        Ok(current.map(LogCursor::record))
    }
}

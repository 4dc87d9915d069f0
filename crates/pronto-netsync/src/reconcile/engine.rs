//! The turns of a reconciliation: computes the answer to a message.

use std::ops::{Deref, Range};

use super::answer::ListAnswer;
use super::message::{CheckedEntries, RangeContent, Ranges, write_entry};
use super::set::shared_prefix;
use super::writer::Writer;
use super::{BUCKETS, Entry, Fingerprinter, LEAST_MESSAGE_BYTES, LIST_BELOW, SortedSet};
use crate::Error;
use crate::error::{exceeded, malformed};

/// The options and limits of one reconciliation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The largest length of a message in bytes, which is never less than [`LEAST_MESSAGE_BYTES`].
    pub message_bytes: usize,
    /// The number of entries below which the starting side lists its set instead of splitting it.
    pub list_below: usize,
    /// The largest number of received messages.
    pub turns: u32,
    /// The largest size in bytes of the entries that may be learned.
    pub learned_bytes: usize,
    /// Keep learned entries. A side that only needs the entries that the peer lacks does not need
    /// them. There is no limit on them in this case.
    pub keeps_learned: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            message_bytes: crate::frame::MAX_BODY_BYTES,
            list_below: 256,
            turns: 64,
            learned_bytes: 32 * 1024 * 1024,
            keeps_learned: true,
        }
    }
}

/// One side of a reconciliation. The set, borrowed or shared, does not change in the meantime.
#[derive(Debug)]
pub struct Reconciler<S> {
    set: S,
    key: Fingerprinter,
    options: Options,
    turns: u32,
    learned: Vec<Entry>,
    learned_bytes: usize,
    lacking: Vec<usize>,
    is_done: bool,
}

/// A range of keys, and the indexes of this side's entries in the range.
struct KeyRange<'a> {
    lower: &'a [u8],
    upper: Option<&'a [u8]>,
    entries: Range<usize>,
}

impl<S: Deref<Target = SortedSet> + Clone> Reconciler<S> {
    /// Prepares one side. Both sides need the same key.
    pub fn new(set: S, key: &Fingerprinter, options: Options) -> Self {
        Reconciler {
            set,
            key: key.clone(),
            options: Options {
                message_bytes: options.message_bytes.max(LEAST_MESSAGE_BYTES),
                ..options
            },
            turns: 0,
            learned: Vec::new(),
            learned_bytes: 0,
            lacking: Vec::new(),
            is_done: false,
        }
    }

    /// Returns the first message, which only one of the two sides sends.
    pub fn start(&mut self) -> Vec<u8> {
        let mut writer = Writer::new(self.options.message_bytes);
        let all = KeyRange {
            lower: &[],
            upper: None,
            entries: 0..self.set.len(),
        };
        self.ask(&mut writer, &all, self.options.list_below);
        writer.out
    }

    /// Processes a message and returns the answer, which may be empty. Returns `None` if no answer
    /// is due.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if the message is malformed, and with
    /// `ErrorKind::Exceeded` if a limit is exceeded.
    pub fn receive(&mut self, message: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if self.is_done {
            return Err(malformed("a message after the end of the reconciliation"));
        }
        self.turns += 1;
        if self.turns > self.options.turns {
            return Err(exceeded(format!(
                "the reconciliation takes more than {} messages",
                self.options.turns
            )));
        }
        let mut writer = Writer::new(self.options.message_bytes);
        let mut ranges = Ranges::new(message);
        let (mut lower, mut from, mut was_asked) = (Vec::new(), 0, false);
        while let Some(content) = ranges.next(&mut lower)? {
            let upper = (!ranges.unbounded).then_some(&ranges.bound[..]);
            let to = self.set.position(from..self.set.len(), upper);
            was_asked |= matches!(
                content,
                RangeContent::Fingerprint(_) | RangeContent::List(_)
            );
            let span = KeyRange {
                lower: &lower,
                upper,
                entries: from..to,
            };
            // Ranges after a truncation are part of the remaining range.
            if !writer.is_cut {
                self.take(&mut writer, &span, &content)?;
            }
            from = to;
        }
        self.is_done = !writer.has_asked;
        Ok(was_asked.then_some(writer.out))
    }

    /// Returns the size in bytes of the learned entries.
    pub fn learned_bytes(&self) -> usize {
        self.learned_bytes
    }

    /// Returns the set of this side.
    pub fn set(&self) -> &SortedSet {
        &self.set
    }

    /// Returns whether the exchange ends when the last returned message has been sent.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the sorted entries that the peer has and this side lacks. They include entries with
    /// different values on the two sides.
    pub fn learned(&mut self) -> &[Entry] {
        self.learned.sort_unstable();
        self.learned.dedup();
        &self.learned
    }

    /// Ends the exchange and returns the entries of [`learned`](Self::learned) without a copy.
    pub fn into_learned(mut self) -> Vec<Entry> {
        self.learned();
        self.learned
    }

    /// Returns the sorted indexes of this side's entries that the peer lacks.
    pub fn lacking(&mut self) -> &[usize] {
        self.lacking.sort_unstable();
        self.lacking.dedup();
        &self.lacking
    }

    fn take(
        &mut self,
        writer: &mut Writer,
        span: &KeyRange<'_>,
        content: &RangeContent<'_>,
    ) -> Result<(), Error> {
        match content {
            RangeContent::Skip => Ok(()),
            RangeContent::Fingerprint(theirs) => {
                if self.set.fingerprint(&self.key, span.entries.clone()) != *theirs {
                    self.ask(writer, span, LIST_BELOW);
                }
                Ok(())
            }
            RangeContent::List(entries) => self.answer(writer, span, entries),
            RangeContent::Answer {
                listed,
                lacking,
                entries,
            } => {
                if *listed != span.entries.len() {
                    return Err(malformed(format!(
                        "the response has {listed} entries, but the list had {}",
                        span.entries.len()
                    )));
                }
                let is_marked = |&at: &usize| {
                    let place = at - span.entries.start;
                    lacking[place / 8] >> (place % 8) & 1 != 0
                };
                self.lack(span.entries.clone().filter(is_marked));
                let mut result = Ok(());
                entries.for_each(|key, value| {
                    result = self.learn(key, value);
                    result.is_ok()
                })?;
                result
            }
        }
    }

    /// Records the entries that the peer lacks. At most two indexes for each entry are kept, in
    /// addition to the new ones, however often the peer repeats an entry.
    fn lack(&mut self, places: impl Iterator<Item = usize>) {
        self.lacking.extend(places);
        if self.lacking.len() > 2 * self.set.len() {
            self.lacking.sort_unstable();
            self.lacking.dedup();
        }
    }

    fn learn(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        if !self.options.keeps_learned {
            return Ok(());
        }
        self.learned_bytes += key.len() + value.len() + size_of::<Entry>();
        if self.learned_bytes > self.options.learned_bytes {
            return Err(exceeded(format!(
                "the differences take more than {} bytes",
                self.options.learned_bytes
            )));
        }
        self.learned.push(Entry {
            key: key.to_vec(),
            value: value.to_vec(),
        });
        Ok(())
    }

    /// Lists or splits the range.
    fn ask(&self, writer: &mut Writer, span: &KeyRange<'_>, list_below: usize) {
        let count = span.entries.len();
        if count < list_below.max(BUCKETS) {
            self.list(writer, span);
            return;
        }
        let mut lower = span.lower;
        for bucket in 0..BUCKETS {
            let place = |bucket| span.entries.start + count * bucket / BUCKETS;
            let entries = place(bucket)..place(bucket + 1);
            let upper = if bucket + 1 == BUCKETS {
                span.upper
            } else {
                Some(self.set.bound_before(entries.end))
            };
            let fingerprint = self.set.fingerprint(&self.key, entries.clone());
            if !writer.fingerprint(lower, upper, &fingerprint) {
                self.rest(writer, lower, entries.start);
                return;
            }
            lower = upper.unwrap_or_default();
        }
    }

    /// Lists this side's entries in the range, as far as they fit.
    fn list(&self, writer: &mut Writer, span: &KeyRange<'_>) {
        let Some(budget) = writer.budget() else {
            self.rest(writer, span.lower, span.entries.start);
            return;
        };
        let (mut entries, mut before) = (Vec::new(), &[][..]);
        let mut end = span.entries.start;
        while end < span.entries.end {
            let length = entries.len();
            write_entry(&mut entries, before, self.set.key(end), self.set.value(end));
            if entries.len() > budget {
                entries.truncate(length);
                break;
            }
            before = self.set.key(end);
            end += 1;
        }
        if end == span.entries.end {
            writer.list(span.lower, span.upper, end - span.entries.start, &entries);
            return;
        }
        let mut lower = span.lower;
        if end > span.entries.start {
            let upper = self.set.bound_before(end);
            writer.list(lower, Some(upper), end - span.entries.start, &entries);
            lower = upper;
        }
        self.rest(writer, lower, end);
    }

    /// Learns the entries of a list, and answers the list, as far as the answer fits.
    fn answer(
        &mut self,
        writer: &mut Writer,
        span: &KeyRange<'_>,
        entries: &CheckedEntries<'_>,
    ) -> Result<(), Error> {
        let Some(budget) = writer.budget() else {
            self.rest(writer, span.lower, span.entries.start);
            return Ok(());
        };
        let set = self.set.clone();
        let mut answer = ListAnswer::new(&set, span.entries.start, budget);
        let mut result = Ok(());
        entries.for_each(|key, value| {
            if !answer.own_before(key, span.entries.end) {
                return false;
            }
            if !answer.listed(key, value, span.entries.end) {
                return false;
            }
            if answer.is_last_new() {
                result = self.learn(key, value);
            }
            result.is_ok()
        })?;
        result?;
        if answer.cut_at.is_none() {
            answer.own_rest(span.entries.end);
        }
        self.lack(answer.own_places.iter().copied());
        let Some(cut_at) = &answer.cut_at else {
            writer.answer(span.lower, span.upper, &answer);
            return Ok(());
        };
        let mut lower = span.lower;
        // All keys below the entry that did not fit are settled.
        let shared = shared_prefix(&answer.last, cut_at);
        let upper = &cut_at[..(shared + 1).min(cut_at.len())];
        if !answer.last.is_empty() {
            writer.answer(lower, Some(upper), &answer);
            lower = upper;
        }
        self.rest(writer, lower, answer.next);
        Ok(())
    }

    /// Ends the message with all keys from `lower` as one range.
    fn rest(&self, writer: &mut Writer, lower: &[u8], from: usize) {
        let fingerprint = self.set.fingerprint(&self.key, from..self.set.len());
        writer.rest(lower, &fingerprint);
    }
}

//! Deflates entries in several threads, ahead of writing.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use pronto_io::pool::{self, Workers};
use pronto_pack::entry::EntryHeader;
use pronto_pack::writer::Encoder;

use super::plan::{EncodingChoice, PackPlan};

/// The number of content bytes that are deflated ahead of writing.
const MOST_BYTES: u64 = 8 << 20;
/// The number of content bytes below which no threads are started.
const LEAST_BYTES: u64 = 128 << 10;

/// The bytes of a pack entry, and its CRC-32.
pub(super) type Entry = (Vec<u8>, u32);

/// The entries that were deflated ahead of writing.
#[derive(Default)]
pub(super) struct DeflatedAhead {
    entries: HashMap<u32, Entry>,
    /// The row before which all rows have been processed.
    end: u32,
}

impl DeflatedAhead {
    /// Deflates the entries that are not stored as deltas, from row `number` on, unless they have
    /// been deflated already. Skips rows for which `is_written` returns `true`, and unreadable
    /// objects; writing reports their errors. The result does not depend on the number of threads.
    pub(super) fn prepare(
        &mut self,
        number: u32,
        plan: &PackPlan<'_>,
        is_written: impl Fn(u32) -> bool,
    ) {
        let threads = plan.options.search.threads;
        if number < self.end || threads < 2 {
            return;
        }
        let (mut numbers, mut bytes) = (Vec::new(), 0);
        self.end = number;
        for row in &plan.rows[number as usize..] {
            let number = self.end;
            self.end += 1;
            let is_small = row.size_bytes < plan.options.large_bytes.min(MOST_BYTES);
            if row.how == EncodingChoice::Fresh
                && !row.is_base_only
                && is_small
                && !is_written(number)
            {
                numbers.push(number);
                bytes += row.size_bytes;
            }
            if bytes >= MOST_BYTES {
                break;
            }
        }
        if bytes < LEAST_BYTES || numbers.len() < 2 {
            return;
        }
        let entries = Mutex::new(std::mem::take(&mut self.entries));
        pool::run(
            Workers::Exactly(threads.min(numbers.len())),
            numbers.len(),
            || (Encoder::new(plan.options.level), Vec::new()),
            |(encoder, content), items| {
                for number in &numbers[items] {
                    if plan.watch.interrupt().check().is_err() {
                        return ControlFlow::Break(());
                    }
                    let id = &plan.rows[*number as usize].id;
                    if let Ok(Some(kind)) = plan.store.find(id, content) {
                        let encoded = encoder.encode(EntryHeader::Object(kind), content);
                        let entry = (encoded.bytes().to_vec(), encoded.crc());
                        let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
                        entries.insert(*number, entry);
                    }
                }
                ControlFlow::Continue(())
            },
            drop,
        );
        self.entries = entries.into_inner().unwrap_or_else(PoisonError::into_inner);
    }

    /// Returns the entry of a row, if the entry was deflated ahead.
    pub(super) fn take(&mut self, number: u32) -> Option<Entry> {
        self.entries.remove(&number)
    }
}

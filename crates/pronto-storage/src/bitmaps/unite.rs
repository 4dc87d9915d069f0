//! Computes the reachable objects of commits from the objects that each commit introduces.

use pronto_pack::bitmap::Bits;
use pronto_pack::bitmap::write::CommitBitmap;
use pronto_repository::Result;

use super::brought::Brought;
use super::commits::{BitmapCommitNumber, Ordered};
use super::{BitmapContext, BitmapObjects};

/// Computes the bitmaps of the selected commits, in their order. The oldest is computed first. A walk
/// that reaches a commit with a bitmap adds the bitmap and does not continue there.
///
/// # Errors
/// Fails with `ErrorKind::Refused` if a commit is not in `objects`, or with `ErrorKind::Interrupted`.
pub(super) fn unite(
    work: &BitmapContext<'_>,
    objects: &BitmapObjects<'_>,
    history: &Ordered,
    brought: &Brought,
) -> Result<Vec<CommitBitmap>> {
    let total = history.selected.len() as u64;
    let meter = work.watch.progress().begin("Building bitmaps", Some(total));
    let mut done: Vec<Option<Vec<u8>>> = vec![None; history.commits.len()];
    let mut order = history.selected.clone();
    order.sort_unstable();
    let mut pending = PendingCommits::new(history.commits.len());
    for number in order.into_iter().rev() {
        work.check()?;
        let mut bits = Bits::new(objects.len());
        pending.insert(number);
        while let Some(number) = pending.take_first() {
            let row = history.commits[number as usize].row()?;
            let bit = objects.bit_at(row);
            if bits.contains(bit) {
                continue;
            }
            if let Some(known) = &done[number as usize] {
                bits.union_compressed(known);
                continue;
            }
            bits.insert(bit);
            for bit in brought.of(number) {
                bits.insert(*bit);
            }
            history
                .parents(number)
                .iter()
                .for_each(|parent| pending.insert(*parent));
        }
        let mut compressed = Vec::new();
        bits.compress(&mut compressed);
        done[number as usize] = Some(compressed);
        meter.add(1);
    }
    meter.finish();
    let mut reach = Vec::with_capacity(history.selected.len());
    for number in &history.selected {
        reach.push(CommitBitmap {
            position: history.commits[*number as usize].row()?,
            bitmap: done[*number as usize].take().unwrap_or_default(),
        });
    }
    Ok(reach)
}

/// The commits to visit, as a bit set from which the smallest number is taken first.
struct PendingCommits {
    words: Vec<u64>,
    count: usize,
    /// The index of the first word that may have a bit.
    first: usize,
}

impl PendingCommits {
    fn new(limit: usize) -> PendingCommits {
        PendingCommits {
            words: vec![0; limit.div_ceil(64)],
            count: 0,
            first: 0,
        }
    }

    fn insert(&mut self, number: BitmapCommitNumber) {
        let word = number as usize / 64;
        let bit = 1 << (number % 64);
        if self.words[word] & bit == 0 {
            self.words[word] |= bit;
            self.first = if self.count == 0 {
                word
            } else {
                self.first.min(word)
            };
            self.count += 1;
        }
    }

    fn take_first(&mut self) -> Option<BitmapCommitNumber> {
        self.count = self.count.checked_sub(1)?;
        while self.words[self.first] == 0 {
            self.first += 1;
        }
        let word = &mut self.words[self.first];
        let number = self.first as BitmapCommitNumber * 64 + word.trailing_zeros();
        *word &= *word - 1;
        Some(number)
    }
}

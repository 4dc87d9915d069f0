//! A message under construction. Ranges without content are skipped.

use super::answer::ListAnswer;
use super::message::write_head;
use super::{Fingerprint, MAX_KEY_BYTES};
use crate::varint;

/// The largest size in bytes of a skip to a bound, and of the head of a range.
const HEAD: usize = 1 + 2 + 2 + MAX_KEY_BYTES;

/// The number of bytes that are reserved for the end: a skip, and one fingerprint without a bound.
const REST: usize = HEAD + 1 + 16;

pub(super) struct Writer {
    pub(super) out: Vec<u8>,
    bound: Vec<u8>,
    limit: usize,
    /// Whether the message contains a range that the peer must answer.
    pub(super) has_asked: bool,
    /// Whether the message was truncated at its limit.
    pub(super) is_cut: bool,
}

impl Writer {
    pub(super) fn new(limit: usize) -> Self {
        Writer {
            out: Vec::new(),
            bound: Vec::new(),
            limit,
            has_asked: false,
            is_cut: false,
        }
    }

    /// Returns the number of bytes of entries and marks that always fit into one more range, or
    /// `None` if there is no room.
    pub(super) fn budget(&self) -> Option<usize> {
        // The preceding skip, the head of the range, and two counts.
        (self.limit - REST)
            .checked_sub(self.out.len() + 2 * HEAD + 20)
            .filter(|&budget| budget > 0)
    }

    /// Writes a range with a fingerprint. Returns `false` and writes nothing if the range does not
    /// fit.
    pub(super) fn fingerprint(
        &mut self,
        lower: &[u8],
        upper: Option<&[u8]>,
        fingerprint: &Fingerprint,
    ) -> bool {
        let skip = if self.bound == lower {
            0
        } else {
            lower.len() + 5
        };
        let bytes = skip + upper.map_or(0, <[u8]>::len) + 5 + 16;
        if self.out.len() + bytes > self.limit - REST {
            return false;
        }
        self.head(1, lower, upper);
        self.out.extend_from_slice(fingerprint);
        self.has_asked = true;
        true
    }

    pub(super) fn list(
        &mut self,
        lower: &[u8],
        upper: Option<&[u8]>,
        count: usize,
        entries: &[u8],
    ) {
        self.head(2, lower, upper);
        varint::write(&mut self.out, count as u64);
        self.out.extend_from_slice(entries);
        self.has_asked = true;
    }

    pub(super) fn answer(&mut self, lower: &[u8], upper: Option<&[u8]>, answer: &ListAnswer<'_>) {
        self.head(3, lower, upper);
        varint::write(&mut self.out, answer.listed_count as u64);
        self.out.extend_from_slice(&answer.lacking);
        varint::write(&mut self.out, answer.own_count() as u64);
        self.out.extend_from_slice(&answer.own);
    }

    pub(super) fn rest(&mut self, lower: &[u8], fingerprint: &Fingerprint) {
        self.head(1, lower, None);
        self.out.extend_from_slice(fingerprint);
        self.has_asked = true;
        self.is_cut = true;
    }

    fn head(&mut self, mode: u8, lower: &[u8], upper: Option<&[u8]>) {
        if self.bound != lower {
            write_head(&mut self.out, 0, &self.bound, Some(lower));
            self.bound.clear();
            self.bound.extend_from_slice(lower);
        }
        write_head(&mut self.out, mode, &self.bound, upper);
        if let Some(upper) = upper {
            self.bound.clear();
            self.bound.extend_from_slice(upper);
        }
    }
}

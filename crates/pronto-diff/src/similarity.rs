//! The similarity of two files: the number of bytes of one file that the other file also contains,
//! compared by lines, or by pieces of 64 bytes of longer lines.

use crate::MOST_SIMILAR;

/// The maximum length of a piece. Longer lines are split.
const LONGEST_CHUNK_BYTES: usize = 64;
/// The length of the start of a file in which a NUL byte means that the file is binary.
const BINARY_PROBE_BYTES: usize = 8000;

/// The content of a file as a multiset of lines: the total number of bytes for each distinct line.
#[derive(Clone, Debug)]
pub(crate) struct LineCounts {
    size: u64,
    /// The digest of each distinct line and the bytes of all its occurrences, sorted by digest.
    counts: Vec<(u64, u64)>,
}

impl LineCounts {
    /// Splits the content of a file. In text files, the carriage return of a CRLF is ignored.
    pub(crate) fn new(content: &[u8]) -> LineCounts {
        let probe = &content[..content.len().min(BINARY_PROBE_BYTES)];
        let is_text = !probe.contains(&0);
        let mut counts = Vec::new();
        let mut digest = LineDigest::default();
        for (at, &byte) in content.iter().enumerate() {
            if is_text && byte == b'\r' && content.get(at + 1) == Some(&b'\n') {
                continue;
            }
            digest.push(byte);
            if byte == b'\n' || digest.len == LONGEST_CHUNK_BYTES {
                counts.push(digest.take());
            }
        }
        if digest.len > 0 {
            counts.push(digest.take());
        }
        counts.sort_unstable();
        counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        LineCounts {
            size: content.len() as u64,
            counts,
        }
    }

    /// Returns the size of the file.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the similarity of two files, out of [`MOST_SIMILAR`].
    pub(crate) fn score(&self, other: &LineCounts) -> u32 {
        let larger = self.size.max(other.size);
        if larger == 0 || other.size == 0 {
            return 0;
        }
        let mut shared = 0;
        let mut others = other.counts.iter().peekable();
        for &(digest, bytes) in &self.counts {
            while others.next_if(|(other, _)| *other < digest).is_some() {}
            if let Some((_, other_bytes)) = others.next_if(|(other, _)| *other == digest) {
                shared += bytes.min(*other_bytes);
            }
        }
        (shared * u64::from(MOST_SIMILAR) / larger) as u32
    }

    /// Returns whether two files with these sizes must be less similar than `minimum`.
    pub(crate) fn sizes_differ_too_much(one: u64, two: u64, minimum: u32) -> bool {
        let (larger, difference) = (one.max(two), one.abs_diff(two));
        let most = u128::from(MOST_SIMILAR);
        u128::from(larger) * (most - u128::from(minimum)) < u128::from(difference) * most
    }
}

/// A digest of one line. Not cryptographic: a collision only changes the similarity.
#[derive(Default)]
struct LineDigest {
    state: u64,
    len: usize,
}

impl LineDigest {
    fn push(&mut self, byte: u8) {
        const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
        self.state = (self.state.rotate_left(5) ^ u64::from(byte)).wrapping_mul(PRIME);
        self.len += 1;
    }

    fn take(&mut self) -> (u64, u64) {
        let done = std::mem::take(self);
        (done.state ^ done.len as u64, done.len as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(one: &str, two: &str) -> u32 {
        LineCounts::new(one.as_bytes()).score(&LineCounts::new(two.as_bytes()))
    }

    #[test]
    fn shared_lines_count_by_their_bytes() {
        assert_eq!(score("a\nb\n", "a\nb\n"), MOST_SIMILAR);
        assert_eq!(score("b\na\n", "a\nb\n"), MOST_SIMILAR);
        assert_eq!(score("a\nb\nc\nd\n", "a\nb\n"), MOST_SIMILAR / 2);
        assert_eq!(score("a\na\n", "a\nx\n"), MOST_SIMILAR / 2);
        assert_eq!(score("", "a\n"), 0);
        assert_eq!(score("a\r\nb\r\n", "a\nb\n"), 4 * MOST_SIMILAR / 6);
        assert!(LineCounts::sizes_differ_too_much(100, 49, 30_000));
        assert!(!LineCounts::sizes_differ_too_much(100, 50, 30_000));
    }
}

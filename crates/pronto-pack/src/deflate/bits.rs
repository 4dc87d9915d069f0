//! An output of bits, the lowest first (RFC 1951, 3.1.1).

/// A position of the output. Output after it can be discarded by returning to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    at: usize,
    waiting: u64,
    count: u32,
}

impl Mark {
    /// Returns the number of bits between this mark and `later`.
    pub(super) fn bits_until(self, later: Mark) -> usize {
        (later.at - self.at) * 8 + later.count as usize - self.count as usize
    }
}

/// Writes bits to `out`, which has to have room for eight bytes more than are written.
///
/// # Panics
/// If it has not.
pub(super) struct Bits<'a> {
    out: &'a mut [u8],
    at: usize,
    waiting: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        Bits {
            out,
            at: 0,
            waiting: 0,
            count: 0,
        }
    }

    /// Adds the lowest `count` bits of `bits`, of which the others are zero. At most 56 may wait.
    #[inline(always)]
    pub(super) fn put(&mut self, bits: u32, count: u32) {
        self.waiting |= u64::from(bits) << self.count;
        self.count += count;
    }

    /// Writes whole bytes, so that fewer than eight bits wait.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        let bytes = self.waiting.to_le_bytes();
        self.out[self.at..self.at + bytes.len()].copy_from_slice(&bytes);
        let whole = self.count >> 3;
        self.at += whole as usize;
        self.waiting >>= whole * 8;
        self.count &= 7;
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            at: self.at,
            waiting: self.waiting,
            count: self.count,
        }
    }

    /// Gives up what was written since `mark`.
    pub(super) fn go_back(&mut self, mark: Mark) {
        (self.at, self.waiting, self.count) = (mark.at, mark.waiting, mark.count);
    }

    /// Continues at the next whole byte.
    pub(super) fn align(&mut self) {
        self.flush();
        if self.count > 0 {
            (self.at, self.waiting, self.count) = (self.at + 1, 0, 0);
        }
    }

    /// Adds whole bytes, where [`align`](Self::align) has been.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Returns the number of written bytes.
    pub(super) fn len(&self) -> usize {
        self.at
    }
}

//! Writes bits, lowest first (RFC 1951, 3.1.1).

/// A position in the output, to which the output can be truncated.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputMark {
    at: usize,
    waiting: u64,
    count: u32,
}

impl OutputMark {
    /// Returns the number of bits between this mark and `later`.
    pub(super) fn bits_until(self, later: OutputMark) -> usize {
        (later.at - self.at) * 8 + later.count as usize - self.count as usize
    }
}

/// Writes bits to `out`, which must have room for eight bytes more than are written.
///
/// # Panics
/// Panics if `out` is too small.
pub(super) struct BitWriter<'a> {
    out: &'a mut [u8],
    at: usize,
    waiting: u64,
    count: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        BitWriter {
            out,
            at: 0,
            waiting: 0,
            count: 0,
        }
    }

    /// Appends the lowest `count` bits of `bits`; all other bits must be zero. At most 56 bits may
    /// be pending.
    #[inline(always)]
    pub(super) fn put(&mut self, bits: u32, count: u32) {
        self.waiting |= u64::from(bits) << self.count;
        self.count += count;
    }

    /// Writes the complete pending bytes, so that fewer than eight bits are pending.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        let bytes = self.waiting.to_le_bytes();
        self.out[self.at..self.at + bytes.len()].copy_from_slice(&bytes);
        let whole = self.count >> 3;
        self.at += whole as usize;
        self.waiting >>= whole * 8;
        self.count &= 7;
    }

    pub(super) fn mark(&self) -> OutputMark {
        OutputMark {
            at: self.at,
            waiting: self.waiting,
            count: self.count,
        }
    }

    /// Truncates the output to `mark`.
    pub(super) fn go_back(&mut self, mark: OutputMark) {
        (self.at, self.waiting, self.count) = (mark.at, mark.waiting, mark.count);
    }

    /// Pads the output to the next byte boundary.
    pub(super) fn align(&mut self) {
        self.flush();
        if self.count > 0 {
            (self.at, self.waiting, self.count) = (self.at + 1, 0, 0);
        }
    }

    /// Appends whole bytes. Requires an [aligned](Self::align) output.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Returns the number of written bytes.
    pub(super) fn len(&self) -> usize {
        self.at
    }
}

//! Deflates whole contents, reusing tables and buffers.

mod bits;
mod codes;
mod fast;
mod huffman;
mod tables;
mod text;

use libdeflater::adler32;
use sirocco::Format;
use sirocco::deflate::{Encoder, Flush, Level, compress_bound};

use fast::Fast;

/// The level at which contents are deflated with the [fast](mod@fast) encoder.
const FAST: u8 = 1;
/// The header of a zlib stream with the fastest level and a window of 32 KiB (RFC 1950).
const ZLIB_HEADER: [u8; 2] = [0x78, 0x01];

/// Deflates one content after another. Each thread should create one deflater and reuse it.
#[derive(Default)]
pub struct Deflater {
    fast: Option<Fast>,
    encoder: Option<Encoder>,
    inflated: Vec<u8>,
    deflated: Vec<u8>,
}

impl Deflater {
    /// Returns the zlib stream of `header` followed by `content`, at `level` (0 to 9; greater
    /// values mean 9). Copies `content` only if `header` is not empty. The buffers stay as large as
    /// the largest content required.
    pub fn deflate(&mut self, level: u8, header: &[u8], content: &[u8]) -> &[u8] {
        let source = if header.is_empty() {
            content
        } else {
            self.inflated.clear();
            self.inflated.extend_from_slice(header);
            self.inflated.extend_from_slice(content);
            &self.inflated
        };
        if level == FAST && (fast::LEAST_BYTES..=fast::MOST_BYTES).contains(&source.len()) {
            let fast = self.fast.get_or_insert_with(Fast::new);
            return deflate_fast(fast, source, &mut self.deflated);
        }
        let level = Level::new(level.min(9));
        let is_other = |encoder: &Encoder| encoder.level() != level;
        if self.encoder.as_ref().is_none_or(is_other) {
            self.encoder = None;
        }
        let encoder = self
            .encoder
            .get_or_insert_with(|| Encoder::new(Format::Zlib, level));
        grow(
            &mut self.deflated,
            compress_bound(Format::Zlib, source.len()),
        );
        let progress = encoder.compress(source, &mut self.deflated, Flush::Finish);
        progress.output
    }
}

/// Returns the zlib stream of `source`.
fn deflate_fast<'a>(fast: &mut Fast, source: &[u8], deflated: &'a mut Vec<u8>) -> &'a [u8] {
    let (head, sum) = (ZLIB_HEADER.len(), size_of::<u32>());
    grow(deflated, head + Fast::room_for(source) + sum);
    deflated[..head].copy_from_slice(&ZLIB_HEADER);
    let end = head + fast.deflate(source, &mut deflated[head..]);
    deflated[end..end + sum].copy_from_slice(&adler32(source).to_be_bytes());
    &deflated[..end + sum]
}

fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deflater").finish_non_exhaustive()
    }
}

//! Deflating whole contents in one piece, keeping tables and buffers between them.

use sirocco::Format;
use sirocco::deflate::{Encoder, Flush, Level, compress_bound};

/// Deflates one content after another. Make one for each thread and keep it.
#[derive(Default)]
pub struct Deflater {
    encoder: Option<Encoder>,
    inflated: Vec<u8>,
    deflated: Vec<u8>,
}

impl Deflater {
    /// The zlib stream of `header` and `content` as one, at `level` (0 to 9; more counts as 9).
    /// Copies `content` only if there is a header. Holds as much memory as the largest content
    /// took so far.
    pub fn deflate(&mut self, level: u8, header: &[u8], content: &[u8]) -> &[u8] {
        let level = Level::new(level.min(9));
        let is_other = |encoder: &Encoder| encoder.level() != level;
        if self.encoder.as_ref().is_none_or(is_other) {
            self.encoder = None;
        }
        let encoder = self
            .encoder
            .get_or_insert_with(|| Encoder::new(Format::Zlib, level));
        let source = if header.is_empty() {
            content
        } else {
            self.inflated.clear();
            self.inflated.extend_from_slice(header);
            self.inflated.extend_from_slice(content);
            &self.inflated
        };
        let bound = compress_bound(Format::Zlib, source.len());
        if self.deflated.len() < bound {
            self.deflated.resize(bound, 0);
        }
        let progress = encoder.compress(source, &mut self.deflated, Flush::Finish);
        progress.output
    }
}

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deflater").finish_non_exhaustive()
    }
}

//! Plans the prefetching of blocks.

use std::ops::Range;

use super::REQUEST_BLOCKS;

/// The maximum number of sequential readers that are tracked.
const STREAMS: usize = 32;

/// The maximum number of blocks in one window. The mark is in the middle, so at least half of a
/// window is in flight.
const MOST_BLOCKS: u32 = 64;

/// The number of blocks that a reader may skip and still be sequential.
const GAP: u32 = 4;

/// A plan of blocks to request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BlockRequest {
    pub(super) range: Range<u32>,
    /// The block whose read triggers the next window.
    pub(super) mark: Option<u32>,
}

/// The sequential readers of a file.
#[derive(Debug, Default)]
pub(super) struct ForwardReaders {
    recent: Vec<ForwardReader>,
    time: u64,
}

#[derive(Debug)]
struct ForwardReader {
    /// The first block that was not requested.
    end: u32,
    window: u32,
    mark: Option<u32>,
    used: u64,
}

impl ForwardReaders {
    /// Plans the request of `block`, which is missing, and of the blocks up to `last`, which the
    /// same reader needs.
    pub(super) fn miss(&mut self, block: u32, last: u32, count: u32) -> BlockRequest {
        self.time += 1;
        let follows = |stream: &&mut ForwardReader| {
            (stream.end..stream.end.saturating_add(GAP)).contains(&block)
        };
        if let Some(stream) = self.recent.iter_mut().find(follows) {
            return stream.advance(block, last, count, self.time);
        }
        let end = last
            .saturating_add(1)
            .min(count)
            .min(block.saturating_add(REQUEST_BLOCKS));
        let stream = ForwardReader {
            end,
            window: 1,
            mark: None,
            used: self.time,
        };
        if self.recent.len() >= STREAMS
            && let Some(oldest) = (0..STREAMS).min_by_key(|&at| self.recent[at].used)
        {
            self.recent.swap_remove(oldest);
        }
        self.recent.push(stream);
        BlockRequest {
            range: block..end,
            mark: None,
        }
    }

    /// Plans the next window when the block `mark` is read. Returns `None` at the end of the file.
    pub(super) fn reached(&mut self, mark: u32, count: u32) -> Option<BlockRequest> {
        self.time += 1;
        let is_marked = |stream: &&mut ForwardReader| stream.mark == Some(mark);
        let stream = self.recent.iter_mut().find(is_marked)?;
        let begin = stream.end;
        (begin < count).then(|| stream.advance(begin, begin, count, self.time))
    }
}

impl ForwardReader {
    fn advance(&mut self, block: u32, last: u32, count: u32, time: u64) -> BlockRequest {
        self.window = match self.window {
            1 => REQUEST_BLOCKS,
            window => (window * 2).min(MOST_BLOCKS),
        };
        let least = last
            .saturating_add(1)
            .min(block.saturating_add(REQUEST_BLOCKS));
        self.end = least.max(block.saturating_add(self.window)).min(count);
        self.mark = Some(block + (self.end - block) / 2);
        self.used = time;
        BlockRequest {
            range: block..self.end,
            mark: self.mark,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_while_reads_are_sequential() {
        let mut streams = ForwardReaders::default();
        assert_eq!(streams.miss(10, 10, 1000).range, 10..11);
        let plan = streams.miss(11, 11, 1000);
        assert_eq!((plan.range, plan.mark), (11..19, Some(15)));
        let plan = streams.reached(15, 1000).expect("more");
        assert_eq!((plan.range, plan.mark), (19..35, Some(27)));
        assert_eq!(streams.reached(27, 1000).expect("more").range, 35..67);
        assert_eq!(streams.reached(51, 1000).expect("more").range, 67..131);
        assert_eq!(streams.reached(99, 1000).expect("more").range, 131..195);
        assert_eq!(streams.reached(163, 200).expect("more").range, 195..200);
        assert_eq!(streams.reached(197, 200), None);
    }

    #[test]
    fn reads_here_and_there_fetch_what_they_read() {
        let mut streams = ForwardReaders::default();
        for block in [500, 3, 700, 90, 300] {
            assert_eq!(streams.miss(block, block, 1000).range, block..block + 1);
        }
        assert_eq!(streams.miss(800, 802, 1000).range, 800..803);
        assert_eq!(streams.miss(999, 999, 1000).range, 999..1000);
        for block in 0..200 {
            streams.miss(block * 5, block * 5, 1000);
            assert!(streams.recent.len() <= STREAMS);
        }
    }
}

//! Keeps lanes supplied with messages of different lengths.
//!
//! A message goes through a lane in pieces of whole blocks that lie together in memory: the
//! header with the beginning of the body, copied into the lane's buffer; the middle of the body,
//! read in place; and the rest with the padding, copied again. Short messages are copied whole.
//! All lanes run until the first of them comes to the end of its piece.

use super::{Run, States};
use crate::many::Message;

/// The longest header that fits.
pub(crate) const HEADER_MAX: usize = 192;

/// Bytes in a buffer; what is shorter, with its padding, is copied whole.
const BUFFER: usize = 512;

/// The end-of-message byte and the length.
const PADDING: usize = 9;

/// Bytes in a block, of SHA-1 and SHA-256 alike.
const BLOCK: usize = 64;

/// Room for the pieces of a message that are not read in place. One is needed per lane.
#[derive(Clone)]
#[repr(align(64))]
pub(crate) struct Buffer([u8; BUFFER]);

impl Buffer {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Buffer([0; BUFFER])
    }
}

/// What follows the piece a lane is working on.
#[derive(Clone, Copy)]
enum Next {
    /// Whole blocks of the body, from this position.
    Middle(usize),
    /// The end of the body, from this position, and the padding.
    Tail(usize),
    /// Another message.
    Done,
}

/// Messages on their way through `N` lanes.
pub(super) struct Feed<'a, const N: usize> {
    messages: &'a [Message<'a>],
    waiting: std::slice::Iter<'a, u32>,
    /// One per lane; a pointer, so that filling one leaves pointers into the others alone.
    buffers: *mut Buffer,
    /// How many blocks all lanes have gone through.
    clock: usize,
    /// Where the piece of each lane begins, less `BLOCK * clock` at the time it was begun.
    bases: [*const u8; N],
    /// The clock at which the piece of each lane ends; never for idle lanes.
    ends: [usize; N],
    next: [Next; N],
    current: [u32; N],
    /// Lanes that have begun a message and not run since.
    fresh: u16,
    active: u16,
    buffers_borrow: std::marker::PhantomData<&'a mut [Buffer]>,
}

impl<'a, const N: usize> Feed<'a, N> {
    /// The messages named in `order`, whose headers are at most [`HEADER_MAX`] long, in that order.
    pub(super) fn new(
        messages: &'a [Message<'a>],
        order: &'a [u32],
        buffers: &'a mut [Buffer],
    ) -> Self {
        assert!(buffers.len() >= N, "each lane has a buffer");
        let mut feed = Feed {
            messages,
            waiting: order.iter(),
            buffers: buffers.as_mut_ptr(),
            clock: 0,
            bases: [std::ptr::null(); N],
            ends: [usize::MAX; N],
            next: [Next::Done; N],
            current: [0; N],
            fresh: 0,
            active: 0,
            buffers_borrow: std::marker::PhantomData,
        };
        for lane in 0..N {
            feed.begin_message(lane);
        }
        feed
    }

    /// Digests everything. `run` advances the states by blocks, all of which are readable; `done`
    /// takes a message and the words of its state at the end.
    pub(super) fn run(
        mut self,
        mut run: impl FnMut(&mut States<N>, &Run<'_, N>),
        mut done: impl FnMut(u32, [u32; 8]),
    ) {
        let mut states = [[0; N]; 8];
        while self.active != 0 {
            self.point_idle_lanes();
            let end = self.ends.iter().copied().fold(usize::MAX, usize::min);
            run(
                &mut states,
                &Run {
                    bases: &self.bases,
                    offset: self.clock.wrapping_mul(BLOCK),
                    blocks: end - self.clock,
                    fresh: self.fresh,
                    active: self.active,
                    messages: &self.current,
                },
            );
            self.clock = end;
            self.fresh = 0;
            for lane in 0..N {
                if self.ends[lane] == end {
                    self.advance(lane, &states, &mut done);
                }
            }
        }
    }

    /// Idle lanes read what an active one reads.
    fn point_idle_lanes(&mut self) {
        if self.active.count_ones() as usize == N {
            return;
        }
        let base = self.bases[self.active.trailing_zeros() as usize];
        for lane in 0..N {
            if self.active >> lane & 1 == 0 {
                self.bases[lane] = base;
            }
        }
    }

    /// Begins the next piece of a lane that has come to the end of one.
    fn advance(&mut self, lane: usize, states: &States<N>, done: &mut impl FnMut(u32, [u32; 8])) {
        match self.next[lane] {
            Next::Middle(from) => self.begin_middle(lane, from),
            Next::Tail(from) => self.begin_tail(lane, from),
            Next::Done => {
                done(
                    self.current[lane],
                    std::array::from_fn(|word| states[word][lane]),
                );
                self.begin_message(lane);
            }
        }
    }

    /// Gives the lane a message, or lets it idle if there are no more.
    fn begin_message(&mut self, lane: usize) {
        let Some(&index) = self.waiting.next() else {
            self.ends[lane] = usize::MAX;
            self.active &= !(1 << lane);
            return;
        };
        self.current[lane] = index;
        self.active |= 1 << lane;
        self.fresh |= 1 << lane;
        let Message { header, body } = self.messages[index as usize];
        assert!(
            header.len() <= HEADER_MAX,
            "longer headers are digested elsewhere"
        );
        if header.len() + body.len() <= BUFFER - PADDING {
            let buffer = self.buffer(lane);
            buffer[..header.len()].copy_from_slice(header);
            buffer[header.len()..][..body.len()].copy_from_slice(body);
            let blocks = pad(buffer, header.len() + body.len(), header.len() + body.len());
            self.begin_buffer(lane, blocks, Next::Done);
        } else if header.is_empty() {
            self.begin_middle(lane, 0);
        } else {
            let length = header.len().next_multiple_of(BLOCK);
            let from = length - header.len();
            let buffer = self.buffer(lane);
            buffer[..header.len()].copy_from_slice(header);
            buffer[header.len()..length].copy_from_slice(&body[..from]);
            self.begin_buffer(lane, length / BLOCK, Next::Middle(from));
        }
    }

    /// Begins the blocks of the body that are read in place.
    fn begin_middle(&mut self, lane: usize, from: usize) {
        let body = self.messages[self.current[lane] as usize].body;
        let blocks = (body.len() - from) / BLOCK;
        if blocks == 0 {
            self.begin_tail(lane, from);
        } else {
            self.begin_piece(
                lane,
                &body[from..],
                blocks,
                Next::Tail(from + blocks * BLOCK),
            );
        }
    }

    /// Begins what is left of the body, with the padding.
    fn begin_tail(&mut self, lane: usize, from: usize) {
        let Message { header, body } = self.messages[self.current[lane] as usize];
        let rest = &body[from..];
        let buffer = self.buffer(lane);
        buffer[..rest.len()].copy_from_slice(rest);
        let blocks = pad(buffer, rest.len(), header.len() + body.len());
        self.begin_buffer(lane, blocks, Next::Done);
    }

    /// The buffer of a lane that does not read from it now.
    fn buffer(&mut self, lane: usize) -> &mut [u8; BUFFER] {
        assert!(lane < N, "there are N buffers");
        // SAFETY: the pointer comes from an exclusive borrow of at least `N` buffers, and no
        // reference to this one is held.
        unsafe { &mut (*self.buffers.add(lane)).0 }
    }

    /// Sets the lane to the beginning of its buffer.
    fn begin_buffer(&mut self, lane: usize, blocks: usize, next: Next) {
        let buffer = std::ptr::from_ref(self.buffer(lane));
        // SAFETY: as for `buffer`; it is read only until the lane comes to the end of the piece.
        self.begin_piece(lane, unsafe { &*buffer }, blocks, next);
    }

    /// Sets the lane to the beginning of `bytes`.
    fn begin_piece(&mut self, lane: usize, bytes: &[u8], blocks: usize, next: Next) {
        assert!(
            blocks > 0 && blocks <= bytes.len() / BLOCK,
            "a piece has all its blocks"
        );
        self.bases[lane] = bytes.as_ptr().wrapping_sub(self.clock.wrapping_mul(BLOCK));
        self.ends[lane] = self.clock + blocks;
        self.next[lane] = next;
    }
}

/// Ends a message of `length` bytes, of which the buffer holds the last `used`. Returns the blocks
/// there are in the buffer with the padding.
fn pad(buffer: &mut [u8; BUFFER], used: usize, length: usize) -> usize {
    let end = (used + PADDING).next_multiple_of(BLOCK);
    buffer[used] = 0x80;
    buffer[used + 1..end - 8].fill(0);
    buffer[end - 8..end].copy_from_slice(&(length as u64).wrapping_mul(8).to_be_bytes());
    end / BLOCK
}

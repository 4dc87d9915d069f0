//! Supplies the lanes with messages of different lengths.
//!
//! A lane processes a message in pieces of whole blocks that are contiguous in memory: the header
//! and the start of the body, copied into the lane's buffer; the middle of the body, read in place;
//! and the rest with the padding, copied again. Short messages are copied completely. All lanes run
//! until the first lane reaches the end of its piece.

use super::suspects::{SuspectBatch, Suspects};
use super::{LaneRun, LaneStates};
use crate::{Collision, Kind, ObjectId, digest};

/// The maximum length of a header.
pub(crate) const HEADER_MAX: usize = 64;

/// The maximum size in bytes, without padding, of a message that is copied completely.
const SHORT: usize = 500;

/// The size of a buffer in bytes, which is sufficient for any header and any padding.
const BUFFER: usize = 640;

/// The minimum length of the padding: the end-of-message byte and the length.
const PADDING: usize = 9;

/// The size of a block in bytes, for SHA-1 and SHA-256.
const BLOCK: usize = 64;

/// A buffer for the pieces of a message that are not read in place.
#[repr(align(64))]
struct LaneBuffer([u8; BUFFER]);

/// The functions for one hash function, with the instructions for `N` lanes.
pub(super) struct Kernel<const N: usize> {
    pub(super) kind: Kind,
    /// The time for one block in every lane, in quarters of the time for one block of a single
    /// message.
    pub(super) step_cost: usize,
    /// Processes some blocks in all lanes. The blocks must be readable.
    pub(super) run: unsafe fn(&mut LaneStates<N>, &LaneRun<'_, N>, &mut Suspects<N>),
    /// Rechecks a batch of suspects.
    pub(super) recheck: unsafe fn(&SuspectBatch<N>) -> u16,
}

/// The id of a message, or the error for a collision attack.
pub(crate) type Outcome = Result<ObjectId, Collision>;

/// The message in a lane.
struct LaneMessage<T> {
    token: T,
    header_length: usize,
    body: *const [u8],
}

/// A message that has ended, but has a suspect that was not rechecked.
struct SuspectMessage<T> {
    message: LaneMessage<T>,
    header: [u8; HEADER_MAX],
    number: u32,
    words: [u32; 8],
}

/// The piece after the current piece of a lane.
#[derive(Clone, Copy)]
enum NextPiece {
    /// Whole blocks of the body, from this position.
    Middle(usize),
    /// The rest of the body, from this position, and the padding.
    Tail(usize),
    /// No piece: the message ends.
    End,
}

/// The messages in `N` lanes.
pub(super) struct Feed<T, const N: usize> {
    kernel: Kernel<N>,
    states: LaneStates<N>,
    suspects: Suspects<N>,
    /// The buffer of each lane.
    buffers: Box<[LaneBuffer; N]>,
    /// The number of blocks that each lane has processed.
    clock: usize,
    /// The start of each lane's piece, minus `BLOCK * clock` at the start of the piece.
    bases: [*const u8; N],
    /// The clock at the end of each lane's piece; the maximum for idle lanes.
    ends: [usize; N],
    next: [NextPiece; N],
    messages: [Option<LaneMessage<T>>; N],
    /// The headers of messages that are not short. They are saved before the end of the body
    /// overwrites them in the buffers.
    headers: [[u8; HEADER_MAX]; N],
    /// The number of the message in each lane, and the number of the next message.
    numbers: [u32; N],
    number: u32,
    /// The clock at the start of each lane's message.
    begun: [usize; N],
    /// The bit set of the lanes that have started a message and not run since.
    fresh: u16,
    active: u16,
    waiting: Vec<SuspectMessage<T>>,
}

// SAFETY: the pointers are to bodies that the caller keeps readable wherever this is moved, and
// into the buffers, which belong to it.
unsafe impl<T: Send, const N: usize> Send for Feed<T, N> {}

impl<T, const N: usize> Feed<T, N> {
    /// The bit set of all lanes.
    const FULL: u16 = u16::MAX >> (16 - N);

    /// Creates a feed in which all lanes are idle.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of the kernel.
    pub(super) unsafe fn new(kernel: Kernel<N>) -> Self {
        Feed {
            states: [[0; N]; 8],
            suspects: vouched!(Suspects::new(kernel.recheck)),
            kernel,
            buffers: Box::new([const { LaneBuffer([0; BUFFER]) }; N]),
            clock: 0,
            bases: [std::ptr::null(); N],
            ends: [usize::MAX; N],
            next: [NextPiece::End; N],
            messages: [const { None }; N],
            headers: [[0; HEADER_MAX]; N],
            begun: [0; N],
            numbers: [0; N],
            number: 0,
            fresh: 0,
            active: 0,
            waiting: Vec::new(),
        }
    }

    /// Drops all messages.
    pub(super) fn clear(&mut self) {
        self.messages = [const { None }; N];
        self.ends = [usize::MAX; N];
        (self.active, self.fresh) = (0, 0);
        self.suspects.clear();
        self.waiting.clear();
    }

    /// Adds a message, and processes all messages until a lane is free.
    ///
    /// # Safety
    ///
    /// The body must stay readable and unchanged until the message has ended or [`Feed::clear`] is
    /// called.
    pub(super) unsafe fn push(
        &mut self,
        header: &[u8],
        body: *const [u8],
        token: T,
        ended: &mut impl FnMut(T, Outcome),
    ) {
        // SAFETY: the caller vouches for the body.
        unsafe { self.begin_message(header, body, token) };
        while self.active == Self::FULL {
            self.step(ended);
        }
    }

    /// Processes all messages to their end.
    pub(super) fn finish(&mut self, ended: &mut impl FnMut(T, Outcome)) {
        while self.active != 0 {
            if let Some(lane) = self.straggler() {
                let header = *self.header(lane);
                let message = self.leave(lane);
                let outcome = message.digest_alone(self.kernel.kind, &header);
                ended(message.token, outcome);
            } else {
                self.step(ended);
            }
        }
        self.suspects.flush();
        self.end_waiting(ended);
        self.suspects.clear();
    }

    /// Runs all lanes to the end of the shortest piece.
    fn step(&mut self, ended: &mut impl FnMut(T, Outcome)) {
        self.point_idle_lanes();
        let end = self.next_end();
        let run = LaneRun {
            bases: &self.bases,
            offset: self.clock.wrapping_mul(BLOCK),
            blocks: end - self.clock,
            fresh: self.fresh,
            active: self.active,
            numbers: &self.numbers,
        };
        // SAFETY: `new` was promised the instructions; `begin_message` and `begin_piece` see to it
        // that the blocks up to the least of `ends` are readable in all active lanes, and idle
        // ones read the same as one of those.
        unsafe { (self.kernel.run)(&mut self.states, &run, &mut self.suspects) };
        self.clock = end;
        self.fresh = 0;
        if self.suspects.was_flushed() {
            self.end_waiting(ended);
        }
        let mut ending = 0;
        for lane in 0..N {
            ending |= u32::from(self.ends[lane] == end) << lane;
        }
        while ending != 0 {
            let lane = ending.trailing_zeros() as usize;
            ending &= ending - 1;
            match self.next[lane] {
                NextPiece::Middle(from) => self.begin_middle(lane, from),
                NextPiece::Tail(from) => self.begin_tail(lane, from),
                NextPiece::End => self.end_message(lane, ended),
            }
        }
    }

    /// Returns the smallest of the ends. Uses four strands, because each comparison depends on the
    /// previous one.
    fn next_end(&self) -> usize {
        let mut least = [usize::MAX; 4];
        for ends in self.ends.chunks_exact(4) {
            for (least, end) in least.iter_mut().zip(ends) {
                *least = (*least).min(*end);
            }
        }
        least[0].min(least[1]).min(least[2].min(least[3]))
    }

    /// Makes idle lanes read the same bytes as an active lane.
    fn point_idle_lanes(&mut self) {
        if self.active == Self::FULL {
            return;
        }
        let base = self.bases[self.active.trailing_zeros() as usize];
        for lane in 0..N {
            if self.active >> lane & 1 == 0 {
                self.bases[lane] = base;
            }
        }
    }

    /// Puts a message into an idle lane.
    ///
    /// # Safety
    ///
    /// Has the requirements of [`Feed::push`].
    unsafe fn begin_message(&mut self, header: &[u8], body: *const [u8], token: T) {
        let lane = self.active.trailing_ones() as usize;
        assert!(lane < N, "a lane is idle after each push");
        self.active |= 1 << lane;
        self.fresh |= 1 << lane;
        self.begun[lane] = self.clock;
        self.numbers[lane] = self.number;
        self.number = self.number.wrapping_add(1);
        self.messages[lane] = Some(LaneMessage {
            token,
            header_length: header.len(),
            body,
        });
        // SAFETY: the caller vouches for the body.
        let body = unsafe { &*body };
        let length = header.len() + body.len();
        let buffer = &mut self.buffers[lane].0;
        buffer[..header.len()].copy_from_slice(header);
        if length <= SHORT {
            buffer[header.len()..length].copy_from_slice(body);
            let blocks = pad(buffer, length, length);
            self.begin_buffer(lane, blocks, NextPiece::End);
        } else if header.is_empty() {
            self.begin_middle(lane, 0);
        } else {
            let end = header.len().next_multiple_of(BLOCK);
            let from = end - header.len();
            buffer[header.len()..end].copy_from_slice(&body[..from]);
            self.begin_buffer(lane, end / BLOCK, NextPiece::Middle(from));
        }
    }

    /// Starts the piece of the body that is read in place.
    fn begin_middle(&mut self, lane: usize, from: usize) {
        let rest = &self.message(lane).body()[from..];
        let blocks = rest.len() / BLOCK;
        if blocks == 0 {
            self.begin_tail(lane, from);
        } else {
            self.begin_piece(
                lane,
                rest.as_ptr(),
                blocks,
                NextPiece::Tail(from + blocks * BLOCK),
            );
        }
    }

    /// Starts the piece with the rest of the body and the padding.
    fn begin_tail(&mut self, lane: usize, from: usize) {
        let message = self.messages[lane]
            .as_ref()
            .expect("an active lane has a message");
        let rest = &message.body()[from..];
        let buffer = &mut self.buffers[lane].0;
        self.headers[lane].copy_from_slice(&buffer[..HEADER_MAX]);
        buffer[..rest.len()].copy_from_slice(rest);
        let blocks = pad(buffer, rest.len(), message.len());
        self.begin_buffer(lane, blocks, NextPiece::End);
    }

    /// Sets the lane to the start of its buffer.
    fn begin_buffer(&mut self, lane: usize, blocks: usize, next: NextPiece) {
        assert!(blocks <= BUFFER / BLOCK, "the piece is in the buffer");
        let buffer = self.buffers[lane].0.as_ptr();
        self.begin_piece(lane, buffer, blocks, next);
    }

    /// Sets the lane to `blocks` blocks from `bytes`, which must be readable.
    fn begin_piece(&mut self, lane: usize, bytes: *const u8, blocks: usize, next: NextPiece) {
        self.bases[lane] = bytes.wrapping_sub(self.clock.wrapping_mul(BLOCK));
        self.ends[lane] = self.clock + blocks;
        self.next[lane] = next;
    }

    /// Returns the message of an active lane.
    fn message(&self, lane: usize) -> &LaneMessage<T> {
        self.messages[lane]
            .as_ref()
            .expect("an active lane has a message")
    }

    /// Returns the header of the message of an active lane.
    fn header(&self, lane: usize) -> &[u8; HEADER_MAX] {
        let is_short = self.message(lane).len() <= SHORT;
        match self.next[lane] {
            NextPiece::End if !is_short => &self.headers[lane],
            _ => self.buffers[lane]
                .0
                .first_chunk()
                .expect("a buffer is longer than a header"),
        }
    }

    /// Makes a lane idle.
    fn leave(&mut self, lane: usize) -> LaneMessage<T> {
        self.active &= !(1 << lane);
        self.fresh &= !(1 << lane);
        self.ends[lane] = usize::MAX;
        self.messages[lane]
            .take()
            .expect("an active lane has a message")
    }

    /// Ends the message of a lane, at once or after its suspects are rechecked.
    fn end_message(&mut self, lane: usize, ended: &mut impl FnMut(T, Outcome)) {
        let number = self.numbers[lane];
        let words = std::array::from_fn(|word| self.states[word][lane]);
        if self.suspects.is_pending(number) || self.suspects.is_attacked(number) {
            let header = *self.header(lane);
            let message = self.leave(lane);
            self.waiting.push(SuspectMessage {
                message,
                header,
                number,
                words,
            });
        } else {
            let message = self.leave(lane);
            ended(message.token, Ok(id(self.kernel.kind, &words)));
        }
    }

    /// Ends the waiting messages whose suspects have been rechecked.
    fn end_waiting(&mut self, ended: &mut impl FnMut(T, Outcome)) {
        while let Some(waiting) = self.waiting.pop() {
            let SuspectMessage {
                message,
                header,
                number,
                words,
            } = waiting;
            let kind = self.kernel.kind;
            if self.suspects.is_attacked(number) {
                // The result is that of a separate digest of the whole message.
                let outcome = message.digest_alone(kind, &header);
                ended(message.token, outcome);
            } else {
                ended(message.token, Ok(id(kind, &words)));
            }
        }
    }

    /// Returns the lane with the longest remaining message, if digesting that message again from
    /// its start without lanes is faster than continuing with mostly idle lanes.
    fn straggler(&self) -> Option<usize> {
        if self.active == Self::FULL {
            return None;
        }
        let mut longest = self.active.trailing_zeros() as usize;
        let (mut rest, mut rest_of_others) = (0, 0);
        for lane in (0..N).filter(|lane| self.active >> lane & 1 == 1) {
            let blocks = self.message(lane).blocks() - (self.clock - self.begun[lane]);
            if blocks > rest {
                (longest, rest, rest_of_others) = (lane, blocks, rest);
            } else {
                rest_of_others = rest_of_others.max(blocks);
            }
        }
        let alone = 4 * self.message(longest).blocks();
        let saved = self.kernel.step_cost * (rest - rest_of_others);
        (alone < saved).then_some(longest)
    }
}

impl<T> LaneMessage<T> {
    fn body(&self) -> &[u8] {
        // SAFETY: the caller that pushed the message promised this.
        unsafe { &*self.body }
    }

    fn len(&self) -> usize {
        self.header_length + self.body.len()
    }

    /// Returns the number of blocks, padding included.
    fn blocks(&self) -> usize {
        (self.len() + PADDING).div_ceil(BLOCK)
    }

    /// Returns the id, computed without the lanes.
    fn digest_alone(&self, kind: Kind, header: &[u8; HEADER_MAX]) -> Outcome {
        digest(kind, &[&header[..self.header_length], self.body()])
    }
}

/// Writes the padding of a message of `length` bytes, of which the buffer contains the last `used`.
/// Returns the number of blocks in the buffer, with the padding.
fn pad(buffer: &mut [u8; BUFFER], used: usize, length: usize) -> usize {
    let end = (used + PADDING).next_multiple_of(BLOCK);
    // A fixed length, which is at most one block too much.
    buffer[used..used + BLOCK + PADDING].fill(0);
    buffer[used] = 0x80;
    buffer[end - 8..end].copy_from_slice(&(length as u64).wrapping_mul(8).to_be_bytes());
    end / BLOCK
}

/// Returns the id that consists of the first words.
#[inline(always)]
fn id(kind: Kind, words: &[u32; 8]) -> ObjectId {
    match kind {
        Kind::Sha256 => ObjectId::Sha256(bytes(words)),
        _ => ObjectId::Sha1(bytes(words)),
    }
}

/// Returns the first words as bytes.
#[inline(always)]
fn bytes<const BYTES: usize>(words: &[u32; 8]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

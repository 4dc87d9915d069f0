//! Tests the order, the limits and the linear cost of queues. Costs are counted, never timed.

use std::io;
use std::sync::Arc;

use super::*;

const SMALL_FRAME: usize = 40;
const READ: usize = 256 * 1024;

#[test]
fn bytes_come_out_in_the_order_they_went_in() {
    let data: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
    let mut source = &data[..];
    let mut queue = ReceiveQueue::new(70_000);
    let mut out = Vec::new();
    let mut step = 1;
    loop {
        if queue.len() < 65_000 && queue.read_from(&mut source).expect("a slice reads") == 0 {
            break;
        }
        let take = step.min(queue.len());
        out.extend_from_slice(&queue.bytes()[..take]);
        queue.consume(take);
        step = step * 7 % 9_973;
    }
    out.extend_from_slice(queue.bytes());
    assert_eq!(out, data);
    assert!(queue.moved_bytes() <= data.len() as u64);
}

#[test]
fn single_byte_steps_stay_linear() {
    let mut queue = ReceiveQueue::new(1000);
    queue.extend_from_slice(&[7; 1000]).expect("room");
    for _ in 0..100_000 {
        queue.consume(1);
        queue.extend_from_slice(&[7]).expect("room");
    }
    assert!(queue.moved_bytes() <= 101_000, "{}", queue.moved_bytes());
    assert!(queue.held_bytes() <= 2000);
}

#[test]
fn the_limit_holds() {
    let mut queue = ReceiveQueue::new(10);
    assert_eq!(queue.extend_from_slice(&[0; 11]), Err(QueueFull));
    queue.extend_from_slice(&[0; 10]).expect("room");
    let error = queue.read_from(&mut &b"x"[..]).expect_err("full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    let mut queue = SendQueue::new(10);
    assert_eq!(queue.push(vec![0; 11]), Err(QueueFull));
    queue.push(vec![0; 6]).expect("room");
    assert_eq!(queue.extend_from_slice(&[0; 5]), Err(QueueFull));
    queue.extend_from_slice(&[0; 4]).expect("room");
    assert_eq!(queue.free_bytes(), 0);
}

/// A receive buffer whose cost is measured.
trait TestBuffer {
    /// Reads at most `step` bytes of `source`, and at most `READ`. Returns `false` if the limit is
    /// reached.
    fn fill(&mut self, source: &mut &[u8], step: usize) -> bool;
    fn waiting(&self) -> usize;
    fn pop(&mut self, count: usize);
    fn copied(&self) -> u64;
}

impl TestBuffer for ReceiveQueue {
    fn fill(&mut self, source: &mut &[u8], step: usize) -> bool {
        let (mut piece, _) = source.split_at(step.min(source.len()));
        match self.read_from(&mut piece) {
            Ok(count) => {
                *source = &source[count..];
                count > 0
            }
            Err(_) => false,
        }
    }
    fn waiting(&self) -> usize {
        self.len()
    }
    fn pop(&mut self, count: usize) {
        self.consume(count);
    }
    fn copied(&self) -> u64 {
        self.counters().copied_bytes
    }
}

/// The negative control: a buffer that erases consumed bytes at its front.
#[derive(Default)]
struct ErasesFromFront {
    bytes: Vec<u8>,
    copied: u64,
}

impl TestBuffer for ErasesFromFront {
    fn fill(&mut self, source: &mut &[u8], step: usize) -> bool {
        let (piece, rest) = source.split_at(step.min(source.len()));
        self.bytes.extend_from_slice(piece);
        *source = rest;
        !piece.is_empty()
    }
    fn waiting(&self) -> usize {
        self.bytes.len()
    }
    fn pop(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.copied += self.bytes.len() as u64;
    }
    fn copied(&self) -> u64 {
        self.copied
    }
}

/// Returns the number of copies for each byte if an unthrottled sender sends `small` small frames
/// and one large frame, and the consumer takes one frame after each read.
fn copies_per_byte(buffer: &mut dyn TestBuffer, small: usize, large: usize, read: usize) -> f64 {
    let stream = vec![0u8; small * SMALL_FRAME + large];
    let mut source = &stream[..];
    let mut frames = std::iter::repeat_n(SMALL_FRAME, small).chain(std::iter::once(large));
    let mut next = frames.next();
    while let Some(length) = next {
        let came = buffer.fill(&mut source, read);
        if buffer.waiting() >= length {
            buffer.pop(length);
            next = frames.next();
        } else {
            assert!(came, "a frame that never ends");
        }
    }
    buffer.copied() as f64 / stream.len() as f64
}

#[test]
fn small_frames_before_a_large_one_cost_the_same_per_byte() {
    let large = 64 * 1024 * 1024;
    let costs: Vec<f64> = (8..=14)
        .map(|power| {
            let mut queue = ReceiveQueue::new(large + 16 * 1024 * 1024);
            copies_per_byte(&mut queue, 1 << power, large, READ)
        })
        .collect();
    // Doubling copies each byte about once. A move never copies more bytes than were consumed.
    assert!(costs.iter().all(|&cost| cost <= 2.0), "{costs:?}");
    let spread = costs.iter().fold(0.0f64, |most, &cost| most.max(cost))
        - costs.iter().fold(f64::MAX, |least, &cost| least.min(cost));
    assert!(spread <= 0.5, "{costs:?}");
}

#[test]
fn the_buffer_that_erases_from_the_front_fails_that_bound() {
    let large = 1024 * 1024;
    let cost = |small| copies_per_byte(&mut ErasesFromFront::default(), small, large, 64 * 1024);
    let (few, many) = (cost(1 << 7), cost(1 << 9));
    assert!(few > 2.0 && many > 3.5 * few, "{few} {many}");
}

#[test]
fn doubling_the_bytes_doubles_the_copies() {
    let copied = |frames: usize| {
        let mut queue = ReceiveQueue::new(1024 * 1024);
        let stream = vec![0u8; frames * 100_003];
        let mut source = &stream[..];
        for _ in 0..frames {
            while queue.len() < 100_003 {
                assert!(queue.fill(&mut source, READ));
            }
            queue.consume(100_003);
        }
        queue.counters().copied_bytes as f64
    };
    let ratio = copied(1280) / copied(640);
    assert!((1.9..=2.1).contains(&ratio), "{ratio}");
    assert!(copied(640) <= 640.0 * 100_003.0);
}

#[test]
fn one_byte_reads_change_nothing() {
    let mut queue = ReceiveQueue::new(1024 * 1024);
    let cost = copies_per_byte(&mut queue, 1 << 8, 200_000, 1);
    assert!(cost <= 2.0, "{cost}");
    assert!(queue.counters().allocated_bytes <= 4 * 200_000);
}

#[test]
fn memory_is_given_back() {
    let mut queue = ReceiveQueue::new(8 * 1024 * 1024);
    queue
        .extend_from_slice(&vec![1; 4 * 1024 * 1024])
        .expect("room");
    queue.consume(4 * 1024 * 1024);
    assert!(queue.held_bytes() >= 4 * 1024 * 1024);
    let allocated = queue.counters().allocated_bytes;
    let mut passed = 0u64;
    while queue.held_bytes() > 64 * 1024 {
        queue.extend_from_slice(&[1; 10_000]).expect("room");
        queue.consume(10_000);
        passed += 10_000;
        assert!(passed < 100 * 1024 * 1024, "never shrinks");
    }
    assert!(queue.counters().allocated_bytes - allocated <= passed);
    queue.release_when_empty();
    assert_eq!(queue.held_bytes(), 0);
}

#[test]
fn back_pressure_in_bytes_holds_and_in_frames_does_not() {
    // A consumer that takes no bytes: the number of bytes that a sender can queue before the limit.
    let large = vec![0u8; READ];
    let window = 4 * 1024 * 1024;
    let mut queue = SendQueue::new(window);
    while queue.push(large.clone()).is_ok() {}
    assert!(queue.len() <= window);
    // The negative control: a queue that compares the number of frames with a limit in bytes. Only
    // the sum is computed, without allocating the bytes.
    let (mut frames, mut queued) = (0usize, 0u64);
    while frames < window && queued <= 64 * window as u64 {
        frames += 1;
        queued += large.len() as u64;
    }
    assert!(queued > window as u64, "the control should have failed");
}

struct OneByte(Vec<u8>);

impl io::Write for OneByte {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(&bytes[..1]);
        Ok(1)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn slices_are_sent_in_order_without_being_copied() {
    let mut queue = SendQueue::new(1024 * 1024);
    let digits = b"0123456789".repeat(10_000);
    let shared: SharedBytes = Arc::new(digits.clone());
    queue.extend_from_slice(b"head ").expect("room");
    queue.extend_from_slice(b"er ").expect("room");
    let part = 2..40_002;
    queue.push_shared(Arc::clone(&shared), part).expect("room");
    queue.push(b" tail".repeat(10_000)).expect("room");
    queue.push(Vec::new()).expect("room");
    queue.push_shared(shared, 9..10).expect("room");
    assert_eq!(queue.front(), b"head er ");
    assert_eq!(queue.counters().copied_bytes, 9);
    let mut sink = OneByte(Vec::new());
    while queue.write_to(&mut sink).expect("a vector takes") > 0 {}
    let tail = b" tail".repeat(10_000);
    let expected = [&b"head er "[..], &digits[2..40_002], &tail, b"9"].concat();
    assert!(sink.0 == expected);
    assert!(queue.is_empty() && queue.front().is_empty());
}

#[test]
fn small_pieces_take_no_more_memory_than_the_limit_says() {
    let limit = 256 * 1024;
    let mut queue = SendQueue::new(limit);
    let shared: SharedBytes = Arc::new(vec![1; 1]);
    while queue.extend_from_slice(&[0; 6]).is_ok()
        && queue.push_shared(Arc::clone(&shared), 0..1).is_ok()
    {}
    assert!(queue.counters().allocated_bytes <= 2 * limit as u64);
}

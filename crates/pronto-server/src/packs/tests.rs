//! Tests of concurrent requests, and of budgets.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use pronto::ErrorKind;
use pronto::upload_pack::PackCache as _;

use super::*;

fn key(number: u8) -> SentPackKey {
    SentPackKey::of(&[number])
}

fn counts(objects: u32) -> PackCounts {
    PackCounts {
        objects,
        ..PackCounts::default()
    }
}

/// Bytes that differ from offset to offset.
fn pack(len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| ((at * 31) >> 3) as u8).collect()
}

fn write_in_pieces(out: &mut dyn Write, pack: &[u8]) -> pronto::Result<PackCounts> {
    for piece in pack.chunks(100_000) {
        let written = out.write_all(piece);
        written
            .map_err(|error| pronto::Error::new(ErrorKind::Io, "cannot write").because(error))?;
    }
    Ok(counts(7))
}

fn cache(most_bytes: u64) -> (tempfile::TempDir, ServerPackCache) {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = ServerPackCache::new(directory.path(), most_bytes);
    (directory, cache)
}

/// Calls `send`, and fails the test if the pack is generated.
fn kept(cache: &ServerPackCache, number: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let mut make = |_: &mut dyn Write| panic!("it is made again");
    let sent = cache.send(&key(number), &mut out, &mut make, &Interrupt::new());
    assert_eq!(sent.expect("it is kept"), counts(7));
    out
}

fn made(cache: &ServerPackCache, number: u8, pack: &[u8]) -> bool {
    let (mut out, mut is_made) = (Vec::new(), false);
    let mut make = |out: &mut dyn Write| {
        is_made = true;
        write_in_pieces(out, pack)
    };
    let sent = cache.send(&key(number), &mut out, &mut make, &Interrupt::new());
    assert_eq!(sent.expect("it can be made"), counts(7));
    assert!(out == pack);
    is_made
}

#[test]
fn equal_requests_share_a_pack() {
    for len in [0, 1000, 3_000_000] {
        let (_directory, cache) = cache(100 << 20);
        let pack = pack(len);
        assert!(made(&cache, 1, &pack));
        assert!(!made(&cache, 1, &pack));
        assert!(kept(&cache, 1) == pack);
        assert!(made(&cache, 2, &pack));
        assert_eq!((cache.made.get(), cache.shared.get()), (2, 2));
    }
}

/// A client that reads nothing until it is allowed to.
struct BlockedClient<'a> {
    barrier: &'a Barrier,
    is_free: bool,
    taken: Vec<u8>,
}

impl Write for BlockedClient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_free {
            self.barrier.wait();
            self.is_free = true;
        }
        self.taken.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_client_holds_up_nobody() {
    let (_directory, cache) = cache(100 << 20);
    let (pack, barrier, interrupt) = (pack(20_000_000), Barrier::new(2), Interrupt::new());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let mut out = BlockedClient {
                barrier: &barrier,
                is_free: false,
                taken: Vec::new(),
            };
            let mut make = |out: &mut dyn Write| write_in_pieces(out, &pack);
            let sent = cache.send(&key(1), &mut out, &mut make, &interrupt);
            sent.map(|_| out.taken)
        });
        while cache.made.get() == 0 {
            std::thread::yield_now();
        }
        // The first request still waits for its client.
        assert!(kept(&cache, 1) == pack);
        barrier.wait();
        let taken = first.join().expect("it ends").expect("it is sent");
        assert!(taken == pack);
    });
}

/// A client that disconnects.
struct VanishingClient {
    after: usize,
}

impl Write for VanishingClient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.after.checked_sub(bytes.len()) {
            Some(rest) => {
                self.after = rest;
                Ok(bytes.len())
            }
            None => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_pack_that_nobody_waits_for_ends() {
    let (_directory, cache) = cache(100 << 20);
    let pieces = AtomicUsize::new(0);
    let mut make = |out: &mut dyn Write| {
        for _ in 0..1_000_000 {
            let piece = pack(100_000);
            let written = out.write_all(&piece);
            written.map_err(|error| pronto::Error::new(ErrorKind::Io, "x").because(error))?;
            pieces.fetch_add(1, SeqCst);
        }
        Ok(counts(7))
    };
    let mut out = VanishingClient { after: 500_000 };
    let sent = cache.send(&key(1), &mut out, &mut make, &Interrupt::new());
    let error = sent.expect_err("the client has disconnected");
    assert_eq!(error.message(), "unable to write pack");
    assert!(pieces.load(SeqCst) < 1_000_000);
    assert!(made(&cache, 1, &pack(1000)));
}

/// A pack that exceeds the budget is sent to all waiting clients, and is not cached.
#[test]
fn a_pack_beyond_the_budget_is_sent_and_not_kept() {
    for (budget, len) in [(4 << 20, 30_000_000), (0, 30_000_000)] {
        let (_directory, cache) = cache(budget);
        let (pack, barrier, interrupt) = (pack(len), Barrier::new(2), Interrupt::new());
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut out = Vec::new();
                        let mut make = |out: &mut dyn Write| {
                            // The other request has joined by then, or generates a separate pack.
                            write_in_pieces(out, &pack)
                        };
                        barrier.wait();
                        let sent = cache.send(&key(1), &mut out, &mut make, &interrupt);
                        sent.map(|_| out)
                    })
                })
                .collect();
            for client in clients {
                assert!(client.join().expect("it ends").expect("it is sent") == pack);
            }
        });
        assert!(made(&cache, 1, &pack), "it is not kept");
        assert_eq!(cache.budget.bytes.get(), 0);
    }
}

#[test]
fn what_was_not_used_makes_room() {
    let (_directory, cache) = cache(8 << 20);
    let pack = pack(1_900_000);
    for number in 1..=4 {
        assert!(made(&cache, number, &pack));
    }
    assert!(!made(&cache, 1, &pack));
    assert!(made(&cache, 5, &pack));
    assert!(!made(&cache, 1, &pack));
    assert!(made(&cache, 2, &pack), "it was used least recently");
    assert!(cache.budget.bytes.get() <= 8 << 20);
}

#[test]
fn many_small_packs_take_little_memory() {
    let (_directory, cache) = cache(1 << 30);
    let pack = pack(200_000);
    let count = u8::try_from(MOST_MEMORY_BYTES / 200_000 + 20).expect("few packs");
    for number in 1..=count {
        assert!(made(&cache, number, &pack));
        assert!(cache.budget.memory.get().unsigned_abs() <= MOST_MEMORY_BYTES);
    }
    assert!(!made(&cache, count, &pack), "the last ones are kept");
    assert!(made(&cache, 1, &pack), "it was used least recently");
}

#[test]
fn a_large_pack_is_not_in_memory() {
    let (_directory, cache) = cache(100 << 20);
    let pack = pack(300_000);
    assert!(made(&cache, 1, &pack));
    assert_eq!(cache.budget.memory.get(), 0);
    assert_eq!(kept(&cache, 1), pack);
}

#[test]
fn without_a_directory_packs_are_sent() {
    let cache = ServerPackCache::new(Path::new("/nonexistent"), 100 << 20);
    let (small, large) = (pack(1000), pack(3_000_000));
    assert!(made(&cache, 1, &small));
    assert!(!made(&cache, 1, &small));
    assert!(made(&cache, 2, &large));
    assert!(made(&cache, 2, &large));
}

#[test]
fn a_pack_that_cannot_be_made_is_an_error_for_all() {
    let (_directory, cache) = cache(100 << 20);
    let mut make =
        |_: &mut dyn Write| Err(pronto::Error::new(ErrorKind::Object, "unable to read x"));
    let mut out = Vec::new();
    let sent = cache.send(&key(1), &mut out, &mut make, &Interrupt::new());
    assert_eq!(sent.expect_err("it fails").message(), "unable to read x");
    assert!(made(&cache, 1, &pack(10)));
}

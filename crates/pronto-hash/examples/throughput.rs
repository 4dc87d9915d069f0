//! Prints the number of bytes that each backend digests in a second on one core, by the length of
//! the messages.
//!
//! `cargo run --release -p pronto-hash --example throughput [sha1|sha256]`

#![expect(clippy::print_stdout, reason = "printing is what this is for")]

use std::time::{Duration, Instant};

use pronto_hash::{
    DigestBackend, DigestMessage, DigestStream, Kind, ManyDigester, TrailerDigester,
};

/// The size of the bodies in a batch, which fit into the second-level cache.
const BATCH_BYTES: usize = 1 << 20;

/// The number of batches in a stream.
const STREAMED: usize = 4;

/// The duration of each measurement.
const TIME: Duration = Duration::from_millis(150);

/// Pseudo-random numbers for contents and lengths.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Returns lengths whose sum is about the size of a batch. Mixed lengths are distributed as in
/// repositories.
fn lengths(length: Option<usize>, numbers: &mut Numbers) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut total = 0;
    while total < BATCH_BYTES {
        let next = length.unwrap_or_else(|| {
            let scale = 6 + numbers.next() % 10;
            (1 << scale) + (numbers.next() % (1 << scale)) as usize
        });
        total += next;
        lengths.push(next);
    }
    lengths
}

/// Returns the throughput of `digest`, which digests `bytes`. The best of many runs is used,
/// because other processes may be using the machine.
fn rate(bytes: usize, mut digest: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while begin.elapsed() < TIME {
        let before = Instant::now();
        digest();
        best = best.min(before.elapsed());
    }
    bytes as f64 / best.as_secs_f64()
}

fn main() {
    let kind = match std::env::args().nth(1).as_deref() {
        Some("sha256") => Kind::Sha256,
        _ => Kind::Sha1,
    };
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let data: Vec<u8> = (0..2 * BATCH_BYTES).map(|_| numbers.next() as u8).collect();
    let backends = DigestBackend::available();

    print!("{kind}, GB/s      ");
    for backend in &backends {
        print!("{:>5} lanes", backend.lanes());
    }
    println!("     stream    trailer");
    let sizes = [20, 200, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20].map(Some);
    for size in sizes.into_iter().chain([None]) {
        let lengths = lengths(size, &mut numbers);
        let bytes: usize = lengths.iter().sum();
        let mut at = 0;
        let messages: Vec<_> = lengths
            .iter()
            .map(|length| {
                let body = &data[at % BATCH_BYTES..][..*length];
                // Bodies at such a distance would map to the same sets of the cache.
                at += length + 328;
                DigestMessage {
                    header: b"blob 123456\0",
                    body,
                }
            })
            .collect();
        let label = size.map_or("mixed".to_owned(), |size| format!("{size} bytes"));
        print!("{label:>16}");
        for backend in &backends {
            let mut digester = ManyDigester::with_backend(kind, *backend);
            let mut ids = Vec::new();
            let rate = rate(bytes, || {
                ids.clear();
                digester.digest(&messages, &mut ids);
            });
            print!("{:>11.2}", rate / 1e9);
        }
        let mut stream = DigestStream::new(kind);
        let streamed = rate(STREAMED * bytes, || {
            let mut ended = |_: &[u8], (), id| {
                let _ = std::hint::black_box(id);
            };
            for message in messages.iter().cycle().take(STREAMED * messages.len()) {
                stream.push(message.header, message.body, (), &mut ended);
            }
            stream.finish(&mut ended);
        });
        print!("{:>11.2}", streamed / 1e9);
        let trailer = rate(bytes, || {
            let mut digester = TrailerDigester::new(kind);
            messages
                .iter()
                .for_each(|message| digester.update(message.body));
            std::hint::black_box(digester.finish());
        });
        println!("{:>11.2}", trailer / 1e9);
    }
}

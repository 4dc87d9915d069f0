//! Tests messages that are hashed as a stream.

use std::sync::Arc;

use pronto_hash::{DigestBackend, DigestBody, DigestStream, Kind, digest};

use crate::many::Numbers;

/// Pushes messages of the given lengths. Each must be returned once with its id.
fn check<B>(
    kind: Kind,
    backend: DigestBackend,
    lengths: &[usize],
    data: &[u8],
    body: impl Fn(usize) -> B,
) where
    B: DigestBody + PartialEq + std::fmt::Debug,
{
    let mut stream = DigestStream::with_backend(kind, backend);
    // Twice, because a stream can be reused.
    for _ in 0..2 {
        let mut ids = vec![None; lengths.len()];
        let mut ended = |bytes: B, token: usize, id| {
            assert_eq!(bytes, body(lengths[token]), "the body comes back");
            assert_eq!(ids[token].replace(id), None, "it comes back once");
        };
        for (token, length) in lengths.iter().enumerate() {
            let header = format!("blob {length}\0");
            stream.push(header.as_bytes(), body(*length), token, &mut ended);
        }
        stream.finish(&mut ended);
        for (length, id) in lengths.iter().zip(ids) {
            let header = format!("blob {length}\0");
            let expected = digest(kind, &[header.as_bytes(), &data[..*length]]);
            assert_eq!(id, Some(expected), "{backend:?}, {length} bytes");
        }
    }
}

#[test]
fn bodies_of_all_kinds() {
    let mut numbers = Numbers(77);
    let data = numbers.bytes(1 << 17);
    for backend in DigestBackend::available() {
        for kind in [Kind::Sha1, Kind::Sha256] {
            for count in [0, 1, 2, 15, 16, 17, 200] {
                let lengths: Vec<_> = (0..count)
                    .map(|_| {
                        let longest = 1 << (3 + numbers.below(13));
                        numbers.below(longest)
                    })
                    .collect();
                check(kind, backend, &lengths, &data, |length| &data[..length]);
                check(kind, backend, &lengths, &data, |length| {
                    data[..length].to_vec()
                });
                check(kind, backend, &lengths, &data, |length| {
                    Arc::<[u8]>::from(&data[..length])
                });
                check(kind, backend, &lengths, &data, |length| {
                    Arc::new(data[..length].to_vec())
                });
            }
        }
    }
}

#[test]
fn one_long_message_among_short_ones() {
    let data = Numbers(78).bytes(1 << 20);
    for backend in DigestBackend::available() {
        for place in [0, 7, 100, 199] {
            let mut lengths = vec![500; 200];
            lengths[place] = 1 << 20;
            check(Kind::Sha1, backend, &lengths, &data, |length| {
                &data[..length]
            });
        }
    }
}

#[test]
fn long_headers() {
    let data = Numbers(79).bytes(1000);
    for backend in DigestBackend::available() {
        let mut stream = DigestStream::with_backend(Kind::Sha1, backend);
        let mut count = 0;
        let mut ended = |body: &[u8], header: usize, id| {
            assert_eq!(id, digest(Kind::Sha1, &[&data[..header], body]));
            count += 1;
        };
        for header in 0..150 {
            stream.push(&data[..header], &data[header..], header, &mut ended);
        }
        stream.finish(&mut ended);
        assert_eq!(count, 150);
    }
}

#[test]
fn a_stream_that_is_dropped_drops_the_bodies() {
    let body = Arc::new(vec![1_u8; 5000]);
    for backend in DigestBackend::available() {
        let mut stream = DigestStream::with_backend(Kind::Sha1, backend);
        for _ in 0..5 {
            stream.push(b"", body.clone(), (), &mut |_, (), _| {});
        }
        std::thread::scope(|scope| {
            // A stream can be moved to another thread.
            scope.spawn(move || drop(stream));
        });
        assert_eq!(Arc::strong_count(&body), 1);
    }
}

#[test]
fn a_panic_leaves_the_stream_usable() {
    let data = Numbers(80).bytes(100);
    for backend in DigestBackend::available() {
        let mut stream = DigestStream::with_backend(Kind::Sha1, backend);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for length in 0..40 {
                stream.push(b"", &data[..length], length, &mut |_, length, _| {
                    assert!(length != 20, "this panic is a part of the test");
                });
            }
        }));
        assert!(panicked.is_err());
        let mut lengths = Vec::new();
        let mut ended = |body: &[u8], length: usize, id| {
            assert_eq!(id, digest(Kind::Sha1, &[&data[..length]]));
            assert_eq!(body.len(), length);
            lengths.push(length);
        };
        stream.push(b"", &data[..77], 77, &mut ended);
        stream.finish(&mut ended);
        assert!(lengths.contains(&77) && !lengths.contains(&20));
    }
}

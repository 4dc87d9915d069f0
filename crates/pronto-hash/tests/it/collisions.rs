//! Tests that exactly the published SHA-1 collisions are detected, at any position in a batch.

use pronto_hash::{
    DigestBackend, DigestMessage, DigestStream, Digester, Kind, ManyDigester, ObjectId, digest,
};

/// The first 320 bytes of the two files of <https://shattered.io> (Stevens, Bursztein, Karpman,
/// Albertini and Markov, 2017): an identical prefix and two colliding blocks.
const SHATTERED: [&[u8]; 2] = [
    include_bytes!("../data/shattered-1-prefix.bin"),
    include_bytes!("../data/shattered-2-prefix.bin"),
];

/// The chosen-prefix collision of <https://sha-mbles.github.io> (Leurent and Peyrin, 2020).
const SHAMBLES: [&[u8]; 2] = [
    include_bytes!("../data/sha-mbles-1.bin"),
    include_bytes!("../data/sha-mbles-2.bin"),
];

fn published() -> impl Iterator<Item = &'static [u8]> {
    SHATTERED.into_iter().chain(SHAMBLES)
}

/// Returns the body of another message.
fn innocent(index: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 31 + index * 17 + at * at / 7) as u8)
        .collect()
}

/// Hashes with all backends. Exactly the messages at `places` must be reported as collisions.
fn expect_collisions(messages: &[DigestMessage<'_>], places: &[usize]) {
    for backend in DigestBackend::available() {
        let mut ids = Vec::new();
        ManyDigester::with_backend(Kind::Sha1, backend).digest(messages, &mut ids);
        let mut streamed = ids.clone();
        streamed.rotate_left(messages.len() / 2);
        let mut ended = |_: &[u8], index: usize, id| streamed[index] = id;
        let mut stream = DigestStream::with_backend(Kind::Sha1, backend);
        for (index, message) in messages.iter().enumerate() {
            stream.push(message.header, message.body, index, &mut ended);
        }
        stream.finish(&mut ended);
        assert_eq!(streamed, ids, "{backend:?}");
        for (index, (id, message)) in ids.iter().zip(messages).enumerate() {
            let plain = sha1_without_detection(message);
            match id {
                Ok(id) => {
                    assert_eq!(*id, plain, "{backend:?}, message {index}");
                    assert!(
                        !places.contains(&index),
                        "{backend:?} misses message {index}"
                    );
                }
                Err(collision) => {
                    assert_eq!(collision.id(), plain, "{backend:?}, message {index}");
                    assert!(
                        places.contains(&index),
                        "{backend:?} accuses message {index}"
                    );
                }
            }
        }
    }
}

fn sha1_without_detection(message: &DigestMessage<'_>) -> ObjectId {
    let mut trailer = pronto_hash::TrailerDigester::new(Kind::Sha1);
    trailer.update(message.header);
    trailer.update(message.body);
    trailer.finish()
}

#[test]
fn they_are_collisions() {
    for [one, other] in [SHATTERED, SHAMBLES] {
        let [one, other] = [one, other].map(|body| DigestMessage { header: b"", body });
        assert_ne!(one, other);
        assert_eq!(sha1_without_detection(&one), sha1_without_detection(&other));
    }
}

#[test]
fn one_stream() {
    for body in published() {
        let collision = digest(Kind::Sha1, &[body]).expect_err("a published collision");
        let plain = sha1_without_detection(&DigestMessage { header: b"", body });
        assert_eq!(collision.id(), plain);
        assert_eq!(
            collision.to_string(),
            format!("content of '{plain}' is part of a SHA-1 collision attack")
        );
        let mut digester = Digester::new(Kind::Sha1);
        body.chunks(13).for_each(|piece| digester.update(piece));
        assert_eq!(digester.finish(), Err(collision));
        assert!(digest(Kind::Sha256, &[body]).is_ok());
    }
}

#[test]
fn every_lane() {
    for attack in published() {
        let others: Vec<_> = (0..33).map(|index| innocent(index, attack.len())).collect();
        for place in 0..33 {
            let mut messages: Vec<_> = others
                .iter()
                .map(|body| DigestMessage { header: b"", body })
                .collect();
            messages[place].body = attack;
            expect_collisions(&messages, &[place]);
        }
        let all = [DigestMessage {
            header: b"",
            body: attack,
        }; 33];
        expect_collisions(&all, &(0..33).collect::<Vec<_>>());
    }
}

#[test]
fn among_messages_of_all_lengths() {
    for (seed, attack) in published().enumerate() {
        let others: Vec<_> = (0..100)
            .map(|index| innocent(index, (index * 7919 + seed * 104_729) % 6000))
            .collect();
        for place in [0, 1, 15, 16, 17, 50, 98, 99] {
            let mut messages: Vec<_> = others
                .iter()
                .map(|body| DigestMessage {
                    header: b"tree 7\0",
                    body,
                })
                .collect();
            messages[place] = DigestMessage {
                header: b"",
                body: attack,
            };
            expect_collisions(&messages, &[place]);
        }
    }
}

#[test]
fn with_a_header_and_a_long_rest() {
    for attack in published() {
        for rest in [0, 1, 55, 56, 64, 200, 1000, 20_000] {
            let whole = [attack, &innocent(rest, rest)].concat();
            let other = innocent(3, whole.len());
            for header in [0, 1, 63, 64, 65, 150, 192, 250] {
                let place = (header + rest) % 17;
                let mut messages = [DigestMessage {
                    header: b"blob",
                    body: &other,
                }; 17];
                let (header, body) = whole.split_at(header);
                messages[place] = DigestMessage { header, body };
                expect_collisions(&messages, &[place]);
            }
        }
    }
}

#[test]
fn attacks_on_other_messages_do_not_count() {
    // The colliding blocks are harmless after another prefix.
    for attack in published() {
        let shifted = [&[0; 64], attack].concat();
        expect_collisions(
            &[DigestMessage {
                header: b"",
                body: &shifted,
            }; 20],
            &[],
        );
        expect_collisions(
            &[DigestMessage {
                header: b"blob 320\0",
                body: attack,
            }; 20],
            &[],
        );
    }
}

//! Tests that all backends agree with two other implementations.

use pronto_hash::{DigestBackend, DigestMessage, Kind, ManyDigester, ObjectId, TrailerDigester};

/// Pseudo-random numbers.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.next() >> 24) as u8).collect()
    }
}

/// Returns the digest as computed by crates that share no code with the lanes.
fn expected(kind: Kind, message: &DigestMessage<'_>) -> ObjectId {
    let whole = [message.header, message.body].concat();
    let mut trailer = TrailerDigester::new(kind);
    trailer.update(&whole);
    let trailer = trailer.finish();
    let other = match kind {
        Kind::Sha256 => ring::digest::digest(&ring::digest::SHA256, &whole),
        _ => ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &whole),
    };
    assert_eq!(trailer.as_bytes(), other.as_ref());
    trailer
}

fn check(messages: &[DigestMessage<'_>]) {
    for kind in [Kind::Sha1, Kind::Sha256] {
        let expected: Vec<_> = messages
            .iter()
            .map(|message| Ok(expected(kind, message)))
            .collect();
        for backend in DigestBackend::available() {
            let mut digester = ManyDigester::with_backend(kind, backend);
            let mut ids = Vec::new();
            digester.digest(messages, &mut ids);
            assert!(ids == expected, "{digester:?}");
            digester.digest(messages, &mut ids);
            assert!(ids[expected.len()..] == expected, "{digester:?} again");
        }
    }
}

#[test]
fn all_short_lengths() {
    let data = Numbers(1).bytes(700);
    for header in [0, 1, 7, 12, 63, 64, 65, 128, 192, 193, 300] {
        let messages: Vec<_> = (0..700 - header)
            .map(|length| DigestMessage {
                header: &data[..header],
                body: &data[header..][..length],
            })
            .collect();
        check(&messages);
    }
}

#[test]
fn block_boundaries_of_longer_ones() {
    let data = Numbers(2).bytes(5000);
    let messages: Vec<_> = [8, 9, 16, 64, 77]
        .iter()
        .flat_map(|blocks| blocks * 64 - 20..blocks * 64 + 3)
        .map(|length| DigestMessage {
            header: &data[..11],
            body: &data[11..][..length],
        })
        .collect();
    check(&messages);
}

#[test]
fn few_messages() {
    let data = Numbers(3).bytes(200_000);
    for count in 0..40 {
        let messages: Vec<_> = (0..count)
            .map(|index| DigestMessage {
                header: b"blob 4000\0",
                body: &data[index * 37..][..4000],
            })
            .collect();
        check(&messages);
    }
    // One message is much longer than the others, at each position.
    for place in 0..20 {
        let messages: Vec<_> = (0..20)
            .map(|index| if index == place { 150_000 } else { 100 + index })
            .map(|length| DigestMessage {
                header: b"blob\0",
                body: &data[..length],
            })
            .collect();
        check(&messages);
    }
}

#[test]
fn mixed_lengths() {
    let mut numbers = Numbers(4);
    let data = numbers.bytes(1 << 17);
    for _ in 0..40 {
        let count = numbers.below(300);
        let longest = 1 << numbers.below(14);
        let messages: Vec<_> = (0..count)
            .map(|_| {
                let (start, header) = (numbers.below(1 << 16), numbers.below(40));
                let length = numbers.below(longest);
                DigestMessage {
                    header: &data[start..][..header],
                    body: &data[start..][..length],
                }
            })
            .collect();
        check(&messages);
    }
}

#[test]
fn more_messages_than_are_planned_together() {
    let data = Numbers(5).bytes(300);
    let messages: Vec<_> = (0..70_000)
        .map(|index| DigestMessage {
            header: b"",
            body: &data[index % 251..][..index % 47],
        })
        .collect();
    check(&messages);
}

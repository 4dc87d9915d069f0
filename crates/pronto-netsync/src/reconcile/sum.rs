//! Fingerprints: sums of keyed digests of entries, so that the sum of a range is the difference of
//! two sums.

use crate::varint;

/// The fingerprint of a range on the wire.
pub type Fingerprint = [u8; 16];

/// A function for digests under a key that both peers share and that authors of content do not
/// know, so that no author can prepare entries whose sums collide.
#[derive(Clone)]
pub struct Fingerprinter {
    key: [u8; 32],
}

/// A number of 256 bits that wraps around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum([u64; 4]);

impl Sum {
    pub(super) fn plus(self, other: Sum) -> Sum {
        let mut out = [0; 4];
        let mut carry = false;
        for (at, slot) in out.iter_mut().enumerate() {
            let (partial, first) = self.0[at].overflowing_add(other.0[at]);
            let (whole, second) = partial.overflowing_add(u64::from(carry));
            *slot = whole;
            carry = first | second;
        }
        Sum(out)
    }

    pub(super) fn minus(self, other: Sum) -> Sum {
        let mut out = [0; 4];
        let mut borrow = false;
        for (at, slot) in out.iter_mut().enumerate() {
            let (partial, first) = self.0[at].overflowing_sub(other.0[at]);
            let (whole, second) = partial.overflowing_sub(u64::from(borrow));
            *slot = whole;
            borrow = first | second;
        }
        Sum(out)
    }
}

impl Fingerprinter {
    /// Creates a function for digests under `key`, which is from the TLS exporter, or derived from
    /// the nonces of both sides.
    pub fn new(key: [u8; 32]) -> Self {
        Fingerprinter { key }
    }

    /// Returns the digest of one entry. The input starts with the length of the key, so that no two
    /// entries have the same input.
    pub(super) fn entry(&self, key: &[u8], value: &[u8]) -> Sum {
        let mut head = Vec::with_capacity(11);
        head.push(0);
        varint::write(&mut head, key.len() as u64);
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&head).update(key).update(value);
        let digest = hasher.finalize();
        let mut sum = [0; 4];
        for (slot, bytes) in sum.iter_mut().zip(digest.as_bytes().as_chunks::<8>().0) {
            *slot = u64::from_le_bytes(*bytes);
        }
        Sum(sum)
    }

    /// Returns the fingerprint of `count` entries whose digests add up to `sum`.
    pub(super) fn range(&self, sum: Sum, count: usize) -> Fingerprint {
        let mut bytes = [0; 41];
        bytes[0] = 1;
        for (slot, word) in bytes[1..33].chunks_exact_mut(8).zip(sum.0) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes[33..].copy_from_slice(&(count as u64).to_le_bytes());
        let digest = blake3::keyed_hash(&self.key, &bytes);
        let mut out = Fingerprint::default();
        out.copy_from_slice(&digest.as_bytes()[..16]);
        out
    }
}

impl std::fmt::Debug for Fingerprinter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fingerprinter(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_wrap_and_come_back() {
        let most = Sum([u64::MAX; 4]);
        let one = Sum([1, 0, 0, 0]);
        assert_eq!(most.plus(one), Sum::default());
        assert_eq!(Sum::default().minus(one), most);
        let key = Fingerprinter::new([1; 32]);
        let (a, b) = (key.entry(b"a", b"bc"), key.entry(b"ab", b"c"));
        assert_ne!(a, b);
        assert_eq!(a.plus(b).minus(a), b);
        assert_ne!(key.range(a, 1), key.range(a, 2));
        assert_ne!(a, Fingerprinter::new([2; 32]).entry(b"a", b"bc"));
    }
}

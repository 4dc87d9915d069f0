//! Changed-path filters: Bloom filters of the paths that a commit may have changed relative to its
//! first parent. Format: `gitformat-commit-graph(5)`; the hash is MurmurHash3 (32 bits).

/// The settings of changed-path filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The version of the hash, 1 or 2. The versions differ for paths with bytes above 127, which
    /// version 1 sign-extends.
    pub hash_version: u32,
    /// The number of bits that each path sets.
    pub hash_count: u32,
    /// The number of bits of the filter for each path.
    pub bits_per_entry: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            hash_version: 1,
            hash_count: 7,
            bits_per_entry: 10,
        }
    }
}

/// The largest number of changed paths for which a filter is computed. The filter of a commit that
/// changes more paths matches every path.
pub const MAX_CHANGED_PATHS: usize = 512;

/// The largest accepted number of hashes. Filters use far fewer; a larger number would slow down
/// the reader.
const MOST_HASHES: u32 = 1 << 10;

const SEEDS: [u32; 2] = [0x293a_e76f, 0x7e64_6e2c];

/// The hashes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloomKey {
    hashes: [u32; 2],
    count: u32,
}

impl BloomKey {
    /// Returns the key of `path`, which has no trailing slash.
    pub fn new(path: &[u8], settings: &Settings) -> BloomKey {
        let hash = |seed| match settings.hash_version {
            2 => murmur3::<false>(seed, path),
            _ => murmur3::<true>(seed, path),
        };
        BloomKey {
            hashes: SEEDS.map(hash),
            count: settings.hash_count.min(MOST_HASHES),
        }
    }

    fn bits(self, len_bytes: usize) -> impl Iterator<Item = (usize, u8)> {
        let bits = len_bytes as u64 * 8;
        (0..self.count).map(move |number| {
            let hash = self.hashes[0].wrapping_add(number.wrapping_mul(self.hashes[1]));
            let bit = u64::from(hash) % bits;
            ((bit / 8) as usize, 1 << (bit % 8))
        })
    }

    /// Returns whether `filter` may contain the path. An empty filter was not computed and may
    /// contain every path.
    pub fn may_be_in(self, filter: &[u8]) -> bool {
        filter.is_empty()
            || self
                .bits(filter.len())
                .all(|(at, bit)| filter[at] & bit != 0)
    }

    /// Adds the path to `filter`, unless the filter is empty.
    pub fn add_to(self, filter: &mut [u8]) {
        if !filter.is_empty() {
            self.bits(filter.len())
                .for_each(|(at, bit)| filter[at] |= bit);
        }
    }
}

/// Returns the filter of a commit that changes `paths`: the paths of files and of all their parent
/// directories, each once.
pub fn filter_of<'a>(
    paths: impl ExactSizeIterator<Item = &'a [u8]>,
    settings: &Settings,
) -> Vec<u8> {
    if paths.len() > MAX_CHANGED_PATHS {
        return vec![0xff];
    }
    let bits = paths.len() * settings.bits_per_entry as usize;
    let mut filter = vec![0; bits.div_ceil(8).max(1)];
    for path in paths {
        BloomKey::new(path, settings).add_to(&mut filter);
    }
    filter
}

/// Returns the MurmurHash3 of `data`; each byte is interpreted as signed if `SIGNED`.
fn murmur3<const SIGNED: bool>(seed: u32, data: &[u8]) -> u32 {
    let byte = |byte: u8| match SIGNED {
        true => byte as i8 as i32 as u32,
        false => u32::from(byte),
    };
    let scramble = |word: u32| {
        word.wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593)
    };
    let mut hash = seed;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let word = byte(word[0]) | byte(word[1]) << 8 | byte(word[2]) << 16 | byte(word[3]) << 24;
        hash = (hash ^ scramble(word))
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    let mut rest = 0;
    for (place, tail) in words.remainder().iter().enumerate() {
        rest ^= byte(*tail) << (8 * place);
    }
    if !words.remainder().is_empty() {
        hash ^= scramble(rest);
    }
    hash ^= data.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_murmur3() {
        // The expected values were published with the algorithm.
        assert_eq!(murmur3::<false>(0, b""), 0);
        assert_eq!(murmur3::<false>(1, b""), 0x514e_28b7);
        assert_eq!(murmur3::<false>(0, b"Hello world!"), 0x627b_0c2c);
        let quick = b"The quick brown fox jumps over the lazy dog";
        assert_eq!(murmur3::<true>(0, quick), 0x2e4f_f723);
        assert_ne!(
            murmur3::<true>(0, b"\xff\xfe"),
            murmur3::<false>(0, b"\xff\xfe")
        );
    }

    #[test]
    fn filters_know_their_paths() {
        let settings = Settings::default();
        let paths: [&[u8]; 3] = [b"a", b"a/b", b"c"];
        let filter = filter_of(paths.into_iter(), &settings);
        assert_eq!(filter.len(), 4);
        for path in paths {
            assert!(BloomKey::new(path, &settings).may_be_in(&filter));
        }
        assert!(!BloomKey::new(b"something else", &settings).may_be_in(&filter));
        assert_eq!(filter_of(std::iter::empty(), &settings), [0]);
        let many: Vec<Vec<u8>> = (0..513).map(|n| n.to_string().into_bytes()).collect();
        assert_eq!(filter_of(many.iter().map(Vec::as_slice), &settings), [0xff]);
    }
}

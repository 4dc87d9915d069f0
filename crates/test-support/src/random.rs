//! Pseudo-random numbers from a seed.

use std::time::{SystemTime, UNIX_EPOCH};

/// The environment variable with the seed for tests that use another seed in each run.
const VARIABLE: &str = "PRONTO_TEST_SEED";

/// The seed of a test. The seed is printed if the test fails, so that its choices can be repeated.
pub struct Seed {
    test: &'static str,
    number: u64,
}

impl Seed {
    /// Returns the seed in `PRONTO_TEST_SEED`, or a seed from the clock.
    ///
    /// # Panics
    /// Panics if the variable is not a number.
    #[must_use]
    pub fn new(test: &'static str) -> Self {
        let number = match std::env::var(VARIABLE) {
            Ok(text) => text
                .parse()
                .unwrap_or_else(|_| panic!("{VARIABLE}={text} is no number")),
            Err(_) => {
                let time = SystemTime::now().duration_since(UNIX_EPOCH);
                // The nanoseconds differ between processes that start at the same time.
                time.map_or(0, |time| u64::from(time.subsec_nanos()))
            }
        };
        Seed { test, number }
    }

    /// Returns the seed as a number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Seed {
    #[allow(clippy::print_stderr, reason = "the output of a failed test is shown")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Seed { test, number } = self;
            eprintln!(
                "the test '{test}' failed with the seed {number}; repeat it with {VARIABLE}={number}"
            );
        }
    }
}

/// A pseudo-random number generator: SplitMix64 by Steele and Lea.
pub struct Random(u64);

impl Random {
    /// Creates a generator with the seed `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit.max(1)
    }

    /// Returns an index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns a random element of `all`.
    ///
    /// # Panics
    /// Panics if `all` is empty.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.index(all.len())]
    }

    /// Returns `len` random bytes, which do not compress.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}

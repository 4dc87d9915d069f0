//! Pseudo-random numbers that a seed decides.

use std::time::{SystemTime, UNIX_EPOCH};

/// The variable with the seed of tests that have another one in each run.
const VARIABLE: &str = "PRONTO_TEST_SEED";

/// The seed of a test. It is printed if the test fails, so that its choices can be repeated.
pub struct Seed {
    test: &'static str,
    number: u64,
}

impl Seed {
    /// Takes the seed from `PRONTO_TEST_SEED`, or else from the clock.
    ///
    /// # Panics
    /// If the variable is no number.
    #[must_use]
    pub fn new(test: &'static str) -> Self {
        let number = match std::env::var(VARIABLE) {
            Ok(text) => text
                .parse()
                .unwrap_or_else(|_| panic!("{VARIABLE}={text} is no number")),
            Err(_) => {
                let time = SystemTime::now().duration_since(UNIX_EPOCH);
                // Nanoseconds differ between processes that start at the same time.
                time.map_or(0, |time| u64::from(time.subsec_nanos()))
            }
        };
        Seed { test, number }
    }

    /// Returns the number.
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

/// A pseudo-random sequence from a seed: Steele and Lea's SplitMix64.
pub struct Random(u64);

impl Random {
    /// Starts the sequence of `seed`.
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

    /// Returns one of `all`.
    ///
    /// # Panics
    /// If `all` is empty.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.index(all.len())]
    }

    /// Returns bytes that do not compress.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}

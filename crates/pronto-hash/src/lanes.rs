//! Digests as many messages at once as a vector register has lanes.
//!
//! The layers, from the top: [`feed`] keeps the lanes supplied with messages of different lengths
//! and writes the padding; [`sha1`] and [`sha256`] advance all lanes by some blocks;
//! [`disturbance`] and [`suspects`] are the collision detection of SHA-1; [`vector`] is their
//! interface to the processor, which [`avx2`] and [`avx512`] implement.

#![expect(unsafe_code, reason = "vector instructions, chosen at run time")]

/// Evaluates an expression of vector instructions in an unsafe function or a method of an unsafe
/// trait, whose caller has made sure that the processor has the instructions.
macro_rules! vouched {
    ($instructions:expr) => {
        // SAFETY: the caller vouches for the instructions.
        unsafe { $instructions }
    };
}

mod avx2;
mod avx512;
mod disturbance;
mod feed;
mod sha1;
mod sha256;
mod suspects;
#[cfg(test)]
mod tests;
mod vector;

use crate::Kind;
use feed::{Feed, Kernel};
use suspects::{Batch, Suspects};

pub(crate) use feed::{HEADER_MAX, Outcome};

/// The words of the state of all lanes: the first word of each, the second of each, and so on.
/// SHA-1 uses five of the eight.
type States<const N: usize> = [[u32; N]; 8];

/// A number of blocks that all lanes go through together.
struct Run<'a, const N: usize> {
    /// The address of the bytes of each lane, before the offset is added.
    bases: &'a [*const u8; N],
    /// The distance in bytes from the bases to the first block of the run.
    offset: usize,
    /// The number of consecutive blocks.
    blocks: usize,
    /// The lanes that begin a message with this run, as bits.
    fresh: u16,
    /// The lanes whose blocks mean something, as bits.
    active: u16,
    /// The number of the message each lane is working on.
    numbers: &'a [u32; N],
}

/// A width of vectors that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// Eight lanes, AVX2.
    Eight,
    /// Sixteen lanes, AVX-512.
    Sixteen,
}

impl Width {
    /// All that the processor has, the widest first.
    pub(crate) fn available() -> impl Iterator<Item = Width> {
        let sixteen = avx512::is_available().then_some(Width::Sixteen);
        let eight = avx2::is_available().then_some(Width::Eight);
        sixteen.into_iter().chain(eight)
    }

    /// The number of lanes.
    pub(crate) fn lanes(self) -> usize {
        match self {
            Width::Eight => 8,
            Width::Sixteen => 16,
        }
    }

    /// The time that all lanes together take for a block each, relative to one message alone, in
    /// quarters. Measured with SHA instructions for the single message.
    pub(crate) fn step_cost(self, kind: Kind) -> usize {
        match (self, kind) {
            (Width::Eight, Kind::Sha256) => 32,
            (Width::Sixteen, Kind::Sha256) => 28,
            (Width::Eight, _) => 21,
            (Width::Sixteen, _) => 17,
        }
    }
}

/// Lanes of some width with the messages in them, each known to the caller by a `T`.
pub(crate) struct Lanes<T>(Feeds<T>);

enum Feeds<T> {
    Eight(Box<Feed<T, 8>>),
    Sixteen(Box<Feed<T, 16>>),
}

impl<T> Lanes<T> {
    /// All idle.
    pub(crate) fn new(kind: Kind, width: Width) -> Self {
        let step_cost = width.step_cost(kind);
        match width {
            Width::Eight => {
                assert!(avx2::is_available(), "a width comes from what is available");
                let run = match kind {
                    Kind::Sha256 => run_sha256_eight,
                    _ => run_sha1_eight,
                };
                let kernel = Kernel {
                    kind,
                    step_cost,
                    run,
                    recheck: recheck_eight,
                };
                // SAFETY: the processor was just asked.
                Lanes(Feeds::Eight(Box::new(unsafe { Feed::new(kernel) })))
            }
            Width::Sixteen => {
                assert!(
                    avx512::is_available(),
                    "a width comes from what is available"
                );
                let run = match kind {
                    Kind::Sha256 => run_sha256_sixteen,
                    _ => run_sha1_sixteen,
                };
                let kernel = Kernel {
                    kind,
                    step_cost,
                    run,
                    recheck: recheck_sixteen,
                };
                // SAFETY: the processor was just asked.
                Lanes(Feeds::Sixteen(Box::new(unsafe { Feed::new(kernel) })))
            }
        }
    }

    /// Returns the width of the lanes.
    pub(crate) fn width(&self) -> Width {
        match self.0 {
            Feeds::Eight(_) => Width::Eight,
            Feeds::Sixteen(_) => Width::Sixteen,
        }
    }

    /// Adds a message, whose header is at most [`HEADER_MAX`] long, and digests until there is
    /// room for another one; `ended` is given those that end meanwhile.
    ///
    /// # Safety
    ///
    /// The body must stay readable and unchanged until the message has ended or [`Lanes::clear`]
    /// was called.
    pub(crate) unsafe fn push(
        &mut self,
        header: &[u8],
        body: *const [u8],
        token: T,
        ended: &mut impl FnMut(T, Outcome),
    ) {
        // SAFETY: the caller vouches for the body.
        unsafe {
            match &mut self.0 {
                Feeds::Eight(feed) => feed.push(header, body, token, ended),
                Feeds::Sixteen(feed) => feed.push(header, body, token, ended),
            }
        }
    }

    /// Digests everything to its end.
    pub(crate) fn finish(&mut self, ended: &mut impl FnMut(T, Outcome)) {
        match &mut self.0 {
            Feeds::Eight(feed) => feed.finish(ended),
            Feeds::Sixteen(feed) => feed.finish(ended),
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        match &mut self.0 {
            Feeds::Eight(feed) => feed.clear(),
            Feeds::Sixteen(feed) => feed.clear(),
        }
    }
}

/// # Safety
///
/// Needs the instructions named, and the blocks must be readable.
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn run_sha1_eight(states: &mut States<8>, run: &Run<'_, 8>, suspects: &mut Suspects<8>) {
    // SAFETY: the caller vouches for it.
    unsafe { sha1::run::<avx2::Eight, 8>(states, run, suspects) }
}

/// # Safety
///
/// Needs the instructions named, and the blocks must be readable.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,bmi1,popcnt")]
unsafe fn run_sha1_sixteen(
    states: &mut States<16>,
    run: &Run<'_, 16>,
    suspects: &mut Suspects<16>,
) {
    // SAFETY: the caller vouches for it.
    unsafe { sha1::run::<avx512::Sixteen, 16>(states, run, suspects) }
}

/// # Safety
///
/// Needs the instructions named.
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn recheck_eight(batch: &Batch<8>) -> u16 {
    // SAFETY: the caller vouches for it.
    unsafe { suspects::recheck::<avx2::Eight, 8>(batch) }
}

/// # Safety
///
/// Needs the instructions named.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,bmi1,popcnt")]
unsafe fn recheck_sixteen(batch: &Batch<16>) -> u16 {
    // SAFETY: the caller vouches for it.
    unsafe { suspects::recheck::<avx512::Sixteen, 16>(batch) }
}

/// # Safety
///
/// Needs the instructions named, and the blocks must be readable.
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn run_sha256_eight(states: &mut States<8>, run: &Run<'_, 8>, suspects: &mut Suspects<8>) {
    // SAFETY: the caller vouches for it.
    unsafe { sha256::run::<avx2::Eight, 8>(states, run, suspects) }
}

/// # Safety
///
/// Needs the instructions named, and the blocks must be readable.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,bmi1,popcnt")]
unsafe fn run_sha256_sixteen(
    states: &mut States<16>,
    run: &Run<'_, 16>,
    suspects: &mut Suspects<16>,
) {
    // SAFETY: the caller vouches for it.
    unsafe { sha256::run::<avx512::Sixteen, 16>(states, run, suspects) }
}

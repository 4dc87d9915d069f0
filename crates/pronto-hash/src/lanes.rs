//! Digesting as many messages at once as a vector register has lanes.
//!
//! The layers, from the top: [`feed`] keeps the lanes supplied with messages of different lengths
//! and writes the padding; [`sha1`] and [`sha256`] advance all lanes by some blocks;
//! [`disturbance`] and [`suspects`] are the collision detection of SHA-1; [`vector`] is what they
//! ask of the processor, and [`avx2`] and [`avx512`] give it.

#![expect(unsafe_code, reason = "vector instructions, chosen at run time")]

mod avx2;
mod avx512;
mod disturbance;
mod feed;
mod sha1;
mod suspects;
#[cfg(test)]
mod tests;
mod vector;

use crate::many::Message;
use feed::Feed;
use suspects::{Batch, Suspects};

pub(crate) use feed::{Buffer, HEADER_MAX};

/// The words of the state of all lanes: the first word of each, the second of each, and so on.
/// SHA-1 uses five of the eight.
type States<const N: usize> = [[u32; N]; 8];

/// A number of blocks that all lanes go through together.
struct Run<'a, const N: usize> {
    /// Where the bytes of each lane are, after adding the offset.
    bases: &'a [*const u8; N],
    /// The distance in bytes from the bases to the first block of the run.
    offset: usize,
    /// How many blocks follow each other.
    blocks: usize,
    /// The lanes that begin a message with this run, as bits.
    fresh: u16,
    /// The lanes whose blocks mean something, as bits.
    active: u16,
    /// Which message each lane is working on.
    messages: &'a [u32; N],
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

    /// How much longer all lanes together take for a block each than one message does alone.
    pub(crate) fn step_cost(self) -> usize {
        5
    }
}

/// Digests with SHA-1 the messages that `order` names and gives the words of the digest of each to
/// `done`. Returns the messages in which an attack may be, perhaps repeatedly.
pub(crate) fn sha1(
    width: Width,
    messages: &[Message<'_>],
    order: &[u32],
    buffers: &mut [Buffer],
    done: impl FnMut(u32, [u32; 5]),
) -> Vec<u32> {
    match width {
        Width::Eight => {
            assert!(avx2::is_available(), "a width comes from what is available");
            // SAFETY: the processor was just asked.
            let suspects = unsafe { Suspects::new(recheck_eight) };
            sha1_with(suspects, run_sha1_eight, messages, order, buffers, done)
        }
        Width::Sixteen => {
            assert!(
                avx512::is_available(),
                "a width comes from what is available"
            );
            // SAFETY: the processor was just asked.
            let suspects = unsafe { Suspects::new(recheck_sixteen) };
            sha1_with(suspects, run_sha1_sixteen, messages, order, buffers, done)
        }
    }
}

/// What [`sha1`] does once the width is known; `run` is safe to call on this processor.
fn sha1_with<const N: usize>(
    mut suspects: Suspects<N>,
    run: unsafe fn(&mut States<N>, &Run<'_, N>, &mut Suspects<N>),
    messages: &[Message<'_>],
    order: &[u32],
    buffers: &mut [Buffer],
    mut done: impl FnMut(u32, [u32; 5]),
) -> Vec<u32> {
    let feed = Feed::<N>::new(messages, order, buffers);
    feed.run(
        // SAFETY: the feed gives readable blocks, and `sha1` asked for the instructions.
        |states, blocks| unsafe { run(states, blocks, &mut suspects) },
        |message, words| done(message, [words[0], words[1], words[2], words[3], words[4]]),
    );
    suspects.finish()
}

/// # Safety
///
/// Needs the instructions named, and the blocks must be readable.
#[target_feature(enable = "avx2")]
unsafe fn run_sha1_eight(states: &mut States<8>, run: &Run<'_, 8>, suspects: &mut Suspects<8>) {
    // SAFETY: the caller vouches for it.
    unsafe { sha1::run::<avx2::Eight, 8>(states, run, suspects) }
}

/// # Safety
///
/// Needs the instructions named, and the blocks must be readable.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")]
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
#[target_feature(enable = "avx2")]
unsafe fn recheck_eight(batch: &Batch<8>) -> u16 {
    // SAFETY: the caller vouches for it.
    unsafe { suspects::recheck::<avx2::Eight, 8>(batch) }
}

/// # Safety
///
/// Needs the instructions named.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")]
unsafe fn recheck_sixteen(batch: &Batch<16>) -> u16 {
    // SAFETY: the caller vouches for it.
    unsafe { suspects::recheck::<avx512::Sixteen, 16>(batch) }
}

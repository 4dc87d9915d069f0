//! Digests several messages at once, one in each lane of a vector register.
//!
//! The layers, from the top: [`feed`] supplies the lanes with messages of different lengths and
//! writes the padding; [`sha1`] and [`sha256`] process blocks in all lanes; [`disturbance`] and
//! [`suspects`] are the collision detection of SHA-1; [`vector`] is the interface to the vector
//! instructions, with the implementations [`avx2`] and [`avx512`].

#![expect(unsafe_code, reason = "vector instructions, chosen at run time")]

/// Evaluates an expression with vector instructions in an unsafe function, or a method of an unsafe
/// trait, whose caller guarantees that the processor has the instructions.
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
mod sha1_step;
mod sha256;
mod suspects;
#[cfg(test)]
mod tests;
mod vector;

use crate::Kind;
use feed::{Feed, Kernel};
use suspects::{SuspectBatch, Suspects};

pub(crate) use feed::{HEADER_MAX, Outcome};

/// The hash states of all lanes: the first words of all lanes, then the second words, and so on.
/// SHA-1 uses five of the eight words.
type LaneStates<const N: usize> = [[u32; N]; 8];

/// A number of blocks that all lanes process together.
struct LaneRun<'a, const N: usize> {
    /// The base address of each lane, to which the offset is added.
    bases: &'a [*const u8; N],
    /// The distance in bytes from the base addresses to the first block of the run.
    offset: usize,
    /// The number of consecutive blocks.
    blocks: usize,
    /// The bit set of the lanes whose message begins with this run.
    fresh: u16,
    /// The bit set of the lanes that have a message.
    active: u16,
    /// The number of the message in each lane.
    numbers: &'a [u32; N],
}

/// A vector width that this processor supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// Eight lanes, with AVX2.
    Eight,
    /// Sixteen lanes, with AVX-512.
    Sixteen,
}

impl Width {
    /// Returns the widths that the processor supports, the widest first.
    pub(crate) fn available() -> impl Iterator<Item = Width> {
        let sixteen = avx512::is_available().then_some(Width::Sixteen);
        let eight = avx2::is_available().then_some(Width::Eight);
        sixteen.into_iter().chain(eight)
    }

    /// Returns the number of lanes.
    pub(crate) fn lanes(self) -> usize {
        match self {
            Width::Eight => 8,
            Width::Sixteen => 16,
        }
    }

    /// Returns the time for one block in every lane, in quarters of the time for one block of a
    /// single message (with SHA instructions).
    pub(crate) fn step_cost(self, kind: Kind) -> usize {
        match (self, kind) {
            (Width::Eight, Kind::Sha256) => 32,
            (Width::Sixteen, Kind::Sha256) => 28,
            (Width::Eight, _) => 21,
            (Width::Sixteen, _) => 17,
        }
    }
}

/// Lanes of one width with their messages. Each message has a token `T` for the caller.
pub(crate) struct Lanes<T>(Feeds<T>);

enum Feeds<T> {
    Eight(Box<Feed<T, 8>>),
    Sixteen(Box<Feed<T, 16>>),
}

impl<T> Lanes<T> {
    /// Creates lanes without messages.
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

    /// Adds a message, whose header is at most [`HEADER_MAX`] bytes long, and digests until a lane
    /// is free. `ended` is called for each message that ends meanwhile.
    ///
    /// # Safety
    ///
    /// The body must stay readable and unchanged until the message has ended or [`Lanes::clear`] is
    /// called.
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

    /// Digests all messages to their end.
    pub(crate) fn finish(&mut self, ended: &mut impl FnMut(T, Outcome)) {
        match &mut self.0 {
            Feeds::Eight(feed) => feed.finish(ended),
            Feeds::Sixteen(feed) => feed.finish(ended),
        }
    }

    /// Drops all messages.
    pub(crate) fn clear(&mut self) {
        match &mut self.0 {
            Feeds::Eight(feed) => feed.clear(),
            Feeds::Sixteen(feed) => feed.clear(),
        }
    }
}

/// # Safety
///
/// Requires the enabled instructions. The blocks must be readable.
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn run_sha1_eight(
    states: &mut LaneStates<8>,
    run: &LaneRun<'_, 8>,
    suspects: &mut Suspects<8>,
) {
    // SAFETY: the caller vouches for it.
    unsafe { sha1::run::<avx2::Eight, 8>(states, run, suspects) }
}

/// # Safety
///
/// Requires the enabled instructions. The blocks must be readable.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,bmi1,popcnt")]
unsafe fn run_sha1_sixteen(
    states: &mut LaneStates<16>,
    run: &LaneRun<'_, 16>,
    suspects: &mut Suspects<16>,
) {
    // SAFETY: the caller vouches for it.
    unsafe { sha1::run::<avx512::Sixteen, 16>(states, run, suspects) }
}

/// # Safety
///
/// Requires the enabled instructions.
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn recheck_eight(batch: &SuspectBatch<8>) -> u16 {
    // SAFETY: the caller vouches for it.
    unsafe { suspects::recheck::<avx2::Eight, 8>(batch) }
}

/// # Safety
///
/// Requires the enabled instructions.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,bmi1,popcnt")]
unsafe fn recheck_sixteen(batch: &SuspectBatch<16>) -> u16 {
    // SAFETY: the caller vouches for it.
    unsafe { suspects::recheck::<avx512::Sixteen, 16>(batch) }
}

/// # Safety
///
/// Requires the enabled instructions. The blocks must be readable.
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn run_sha256_eight(
    states: &mut LaneStates<8>,
    run: &LaneRun<'_, 8>,
    suspects: &mut Suspects<8>,
) {
    // SAFETY: the caller vouches for it.
    unsafe { sha256::run::<avx2::Eight, 8>(states, run, suspects) }
}

/// # Safety
///
/// Requires the enabled instructions. The blocks must be readable.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,bmi1,popcnt")]
unsafe fn run_sha256_sixteen(
    states: &mut LaneStates<16>,
    run: &LaneRun<'_, 16>,
    suspects: &mut Suspects<16>,
) {
    // SAFETY: the caller vouches for it.
    unsafe { sha256::run::<avx512::Sixteen, 16>(states, run, suspects) }
}

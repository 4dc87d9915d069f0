//! Decides the order in which a batch is digested, and which messages use lanes.

use super::Message;
use crate::Kind;
use crate::lanes::{HEADER_MAX, Width};

/// Memory for dividing a batch.
#[derive(Default)]
pub(super) struct Plan {
    order: Vec<u32>,
    classes: Vec<u16>,
}

/// Lengths in blocks that differ by less than an eighth are one class, so that sorting takes two
/// passes over the batch.
const CLASSES: usize = 512;

/// The class of messages that cannot go through a lane.
const UNFIT: usize = CLASSES - 1;

impl Plan {
    /// Divides a batch of at most 2^32 messages into those to be digested alone and those to be
    /// digested in lanes, in that order.
    ///
    /// The longest come first, so that the lanes end at about the same time. Those so long that
    /// the other lanes would have nothing to do for most of their time are digested alone; in a
    /// batch smaller than the lanes that may be all of them.
    pub(super) fn divide(
        &mut self,
        messages: &[Message<'_>],
        kind: Kind,
        width: Width,
    ) -> (&[u32], &[u32]) {
        let unfit = self.sort(messages);
        let alone = unfit
            + count_alone(
                messages,
                &self.order[unfit..],
                width.lanes(),
                width.step_cost(kind),
            );
        self.order.split_at(alone)
    }

    /// Sorts the messages by class, the longest first, and returns how many cannot go through a
    /// lane; those are the first.
    fn sort(&mut self, messages: &[Message<'_>]) -> usize {
        let mut starts = [0_u32; CLASSES];
        self.classes.clear();
        self.classes.extend(messages.iter().map(|message| {
            let class = class(message);
            starts[class] += 1;
            class as u16
        }));
        let unfit = starts[UNFIT] as usize;
        let mut start = 0;
        for count in starts.iter_mut().rev() {
            start += std::mem::replace(count, start);
        }
        self.order.clear();
        self.order.resize(messages.len(), 0);
        for (index, class) in self.classes.iter().enumerate() {
            let place = &mut starts[usize::from(*class)];
            self.order[*place as usize] = index as u32;
            *place += 1;
        }
        unfit
    }
}

/// Returns the number of blocks of a message, padding included.
fn blocks(message: &Message<'_>) -> usize {
    (message.header.len() + message.body.len() + 9).div_ceil(64)
}

/// A number that grows with the length, by one for each eighth.
fn class(message: &Message<'_>) -> usize {
    if message.header.len() > HEADER_MAX {
        return UNFIT;
    }
    let blocks = blocks(message);
    let shift = blocks.ilog2().saturating_sub(3) as usize;
    8 * shift + (blocks >> shift)
}

/// Returns the number of messages, from the longest, to digest alone for the least total time.
fn count_alone(messages: &[Message<'_>], order: &[u32], lanes: usize, step: usize) -> usize {
    let length = |index: usize| {
        order
            .get(index)
            .map_or(0, |at| blocks(&messages[*at as usize]))
    };
    let mut rest: usize = order.iter().map(|at| blocks(&messages[*at as usize])).sum();
    // Times are in quarters of what a block takes alone.
    let mut time_alone = 0;
    let (mut best, mut best_time) = (0, usize::MAX);
    // Beyond that many there is always enough to do in the other lanes.
    for count in 0..=order.len().min(2 * lanes) {
        let time = time_alone + step * length(count).max(rest.div_ceil(lanes));
        if time < best_time {
            (best, best_time) = (count, time);
        }
        time_alone += 4 * length(count);
        rest -= length(count);
    }
    best
}

//! Plans the order in which a batch is digested, and which of its messages use lanes.

use super::DigestMessage;
use crate::Kind;
use crate::lanes::{HEADER_MAX, Width};

/// The reusable memory for the plan of a batch.
#[derive(Default)]
pub(super) struct BatchOrder {
    order: Vec<u32>,
    classes: Vec<u16>,
}

/// The number of length classes. The lengths in a class differ by less than an eighth, so that
/// sorting needs only two passes over the batch.
const CLASSES: usize = 512;

/// The class of messages whose header is too long for a lane.
const UNFIT: usize = CLASSES - 1;

impl BatchOrder {
    /// Divides a batch of at most 2^32 messages into those to be digested alone and those to be
    /// digested in lanes, in that order.
    ///
    /// The longest messages are first, so that the lanes end at about the same time. A message is
    /// digested alone if it is so long that the other lanes would be idle for most of its time. In
    /// a batch smaller than the number of lanes this may apply to all messages.
    pub(super) fn divide(
        &mut self,
        messages: &[DigestMessage<'_>],
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

    /// Sorts the messages by class, the longest first. Returns the number of messages that cannot
    /// use a lane, which are the first.
    fn sort(&mut self, messages: &[DigestMessage<'_>]) -> usize {
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
fn blocks(message: &DigestMessage<'_>) -> usize {
    (message.header.len() + message.body.len() + 9).div_ceil(64)
}

/// Returns the length class: a number that increases by one for each eighth of the length.
fn class(message: &DigestMessage<'_>) -> usize {
    if message.header.len() > HEADER_MAX {
        return UNFIT;
    }
    let blocks = blocks(message);
    let shift = blocks.ilog2().saturating_sub(3) as usize;
    8 * shift + (blocks >> shift)
}

/// Returns the number of messages, from the longest, to digest alone for the least total time.
fn count_alone(messages: &[DigestMessage<'_>], order: &[u32], lanes: usize, step: usize) -> usize {
    let length = |index: usize| {
        order
            .get(index)
            .map_or(0, |at| blocks(&messages[*at as usize]))
    };
    let mut rest: usize = order.iter().map(|at| blocks(&messages[*at as usize])).sum();
    // Times are in quarters of the time for a block alone.
    let mut time_alone = 0;
    let (mut best, mut best_time) = (0, usize::MAX);
    // With more messages alone, the other lanes always have enough work.
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

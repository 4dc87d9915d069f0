//! The best common ancestors of two commits.

use std::collections::{BinaryHeap, HashMap};

use pronto_hash::ObjectId;

use crate::{Repository, Result};

const FROM_LEFT: u8 = 1;
const FROM_RIGHT: u8 = 2;
const STALE: u8 = 4;
const RESULT: u8 = 8;

impl Repository {
    /// The best common ancestors of `left` and `right`: those that are not ancestors of another
    /// one. Newest first.
    ///
    /// Costs reading the history back to them.
    ///
    /// # Errors
    /// A commit is missing or malformed.
    pub fn merge_bases(&self, left: ObjectId, right: ObjectId) -> Result<Vec<ObjectId>> {
        if left == right {
            return Ok(vec![left]);
        }
        let candidates = self.paint_down(left, &[right])?;
        if candidates.len() < 2 {
            return Ok(candidates);
        }
        let mut best = Vec::new();
        for (at, candidate) in candidates.iter().enumerate() {
            let mut others = candidates.clone();
            others.remove(at);
            let is_ancestor = self.paint_down(*candidate, &others)?.contains(candidate);
            if !is_ancestor {
                best.push(*candidate);
            }
        }
        Ok(best)
    }

    /// Common ancestors of `left` and any of `rights`, newest first, those left out that were
    /// found to be ancestors of others on the way.
    fn paint_down(&self, left: ObjectId, rights: &[ObjectId]) -> Result<Vec<ObjectId>> {
        let mut paint = Paint::default();
        let mut buffer = Vec::new();
        let mut add = |paint: &mut Paint, id: ObjectId, flags: u8| -> Result<()> {
            let time = match paint.times.get(&id) {
                Some(time) => *time,
                None => self.commit_links(&id, &mut buffer)?.time,
            };
            paint.times.insert(id, time);
            *paint.flags.entry(id).or_default() |= flags;
            paint.queue.push((time, id));
            Ok(())
        };
        add(&mut paint, left, FROM_LEFT)?;
        for right in rights {
            add(&mut paint, *right, FROM_RIGHT)?;
        }
        let mut results = Vec::new();
        let mut parents_buffer = Vec::new();
        while paint.has_fresh() {
            let Some((_, id)) = paint.queue.pop() else {
                break;
            };
            let mut flags = paint.flags[&id] & (FROM_LEFT | FROM_RIGHT | STALE);
            if flags == FROM_LEFT | FROM_RIGHT {
                if paint.flags[&id] & RESULT == 0 {
                    paint.flags.entry(id).and_modify(|flags| *flags |= RESULT);
                    results.push(id);
                }
                flags |= STALE;
            }
            for parent in self.commit_links(&id, &mut parents_buffer)?.parents {
                let known = paint.flags.get(&parent).copied().unwrap_or_default();
                if known & flags != flags {
                    add(&mut paint, parent, flags)?;
                }
            }
        }
        results.retain(|id| paint.flags[id] & STALE == 0);
        results.sort_by_key(|id| std::cmp::Reverse(paint.times[id]));
        Ok(results)
    }
}

#[derive(Default)]
struct Paint {
    flags: HashMap<ObjectId, u8>,
    times: HashMap<ObjectId, i64>,
    queue: BinaryHeap<(i64, ObjectId)>,
}

impl Paint {
    /// Whether a commit waits that could still change the result.
    fn has_fresh(&self) -> bool {
        self.queue.iter().any(|(_, id)| self.flags[id] & STALE == 0)
    }
}

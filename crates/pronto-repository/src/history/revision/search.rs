//! Finds commits by their messages: `:/text`, `^{/text}`.

use std::collections::{BinaryHeap, HashSet};
use std::ops::ControlFlow;

use bstr::{BStr, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_object::CommitRef;
use regex::bytes::Regex;

use crate::{Repository, Result};

impl Repository {
    /// Returns the newest commit whose message matches `pattern`, among the ancestors of `start`, or of
    /// all refs. A pattern that starts with `!-` selects messages that do not match.
    pub(super) fn newest_matching(
        &self,
        pattern: &BStr,
        start: Option<ObjectId>,
    ) -> Result<Option<ObjectId>> {
        let (pattern, negative) = match pattern.as_bytes() {
            [b'!', b'-', rest @ ..] => (rest.as_bstr(), true),
            [b'!', b'!', ..] => (pattern[1..].as_bstr(), false),
            [b'!', ..] => return Ok(None),
            _ => (pattern, false),
        };
        let Some(wanted) = compile(pattern) else {
            return Ok(None);
        };
        let mut queue = CommitQueue::default();
        match start {
            Some(start) => self.enqueue(&mut queue, start)?,
            None => self.enqueue_references(&mut queue)?,
        }
        while let Some(next) = queue.heap.pop() {
            let mut content = Vec::new();
            let links = self.commit_links(&next.id, &mut content)?;
            if wanted.is_match(CommitRef::new(&content).message()) != negative {
                return Ok(Some(next.id));
            }
            for parent in links.parents {
                self.enqueue(&mut queue, parent)?;
            }
        }
        Ok(None)
    }

    fn enqueue_references(&self, queue: &mut CommitQueue) -> Result<()> {
        if let Some(head) = self.head()?.id() {
            self.enqueue(queue, head)?;
        }
        let mut ids = Vec::new();
        self.refs().for_each("refs/", |reference| {
            ids.push(reference.peeled.unwrap_or(reference.id));
            Ok(ControlFlow::Continue(()))
        })?;
        for id in ids {
            if let Ok(Some(commit)) = self.peel_to(id, ObjectKind::Commit) {
                self.enqueue(queue, commit)?;
            }
        }
        Ok(())
    }

    fn enqueue(&self, queue: &mut CommitQueue, id: ObjectId) -> Result<()> {
        if queue.seen.insert(id) {
            let time = self.commit_links(&id, &mut Vec::new())?.time;
            let order = u64::MAX - queue.seen.len() as u64;
            queue.heap.push(QueuedCommit { time, order, id });
        }
        Ok(())
    }
}

/// The commits that are not searched yet, newest first.
#[derive(Default)]
struct CommitQueue {
    heap: BinaryHeap<QueuedCommit>,
    seen: HashSet<ObjectId>,
}

/// A queue entry, ordered by date. Among equal dates, the one that was added first comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct QueuedCommit {
    time: i64,
    order: u64,
    id: ObjectId,
}

/// Compiles an extended regular expression over bytes. `.` matches line ends, and `^` and `$` match at
/// each line.
fn compile(pattern: &BStr) -> Option<Regex> {
    pronto_config::pattern::compile(pattern, false).ok()
}

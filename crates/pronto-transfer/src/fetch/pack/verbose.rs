//! Reports the decisions of a fetch in Git's words, for `git fetch-pack -v`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::ops::ControlFlow;

use bstr::ByteSlice;
use pronto_hash::ObjectId;
use pronto_io::progress::{Progress, ProgressMessage};
use pronto_wire::advertisement::RemoteRef;
use pronto_wire::capabilities::Capabilities;
use pronto_wire::negotiate::CommitSupplier;

use super::super::FetchRun;
use super::super::map::FetchedRef;
use crate::Result;
use crate::objects::from_odb;
use crate::remote::connection::from_wire;
use crate::remote::{NegotiationHistory, alternate_tips};
use pronto_object::TagRef;

/// Reports the capabilities of a server of version 0 or 1.
pub(super) fn report_capabilities(capabilities: &Capabilities, progress: &dyn Progress) {
    let has = |name: &str| capabilities.has(name);
    if let Some(agent) = capabilities.value("agent") {
        let line = format!("Server version is {}", agent.as_bstr());
        progress.message(ProgressMessage::Step(&line));
    }
    let supported = [
        ("shallow", true),
        ("multi_ack_detailed", true),
        ("no-done", has("multi_ack_detailed")),
        ("multi_ack", !has("multi_ack_detailed")),
        ("side-band-64k", true),
        ("side-band", !has("side-band-64k")),
        ("allow-tip-sha1-in-want", true),
        ("allow-reachable-sha1-in-want", true),
        ("thin-pack", true),
        ("no-progress", true),
        ("include-tag", true),
        ("ofs-delta", true),
        ("filter", true),
        ("deepen-since", true),
        ("deepen-not", true),
        ("deepen-relative", true),
    ];
    for (name, is_reported) in supported {
        if is_reported && has(name) {
            progress.message(ProgressMessage::Step(&format!("Server supports {name}")));
        }
    }
}

/// Reports which recent commits are complete, and which of `entries` are wanted.
pub(super) fn report_refs(
    work: &FetchRun<'_>,
    refs: &[RemoteRef],
    entries: &[FetchedRef],
) -> Result<()> {
    let progress = work.watch.progress();
    let mut complete = HashSet::new();
    if !work.options.refetch {
        let mut marker = CompletenessMarker {
            history: NegotiationHistory::new(work.repository.objects()?, &work.cut),
            work,
            complete,
            count: 0,
        };
        let cutoff = marker.newest(refs)?;
        if work.deepen.is_none() {
            marker.mark(cutoff)?;
        }
        complete = marker.complete;
        for entry in entries {
            let (id, name) = (entry.id, &entry.name);
            let line = match complete.contains(&id) {
                true => format!("already have {id} ({name})"),
                false => format!("want {id} ({name})"),
            };
            progress.message(ProgressMessage::Step(&line));
        }
    }
    Ok(())
}

/// Finds the objects that are complete because they are reachable from local refs.
struct CompletenessMarker<'a> {
    history: NegotiationHistory<'a>,
    work: &'a FetchRun<'a>,
    complete: HashSet<ObjectId>,
    /// The number of commits that were queued.
    count: usize,
}

/// A queued commit. The newest commit is first; commits of the same time are in insertion order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct VerboseEntry {
    time: i64,
    order: Reverse<usize>,
    id: ObjectId,
    parents: Vec<ObjectId>,
}

impl CompletenessMarker<'_> {
    /// Returns the time of the newest existing commit that a ref of the remote points to.
    fn newest(&mut self, refs: &[RemoteRef]) -> Result<Option<i64>> {
        let mut newest = None;
        for id in refs
            .iter()
            .flat_map(|theirs| [theirs.id, theirs.peeled])
            .flatten()
        {
            if let Some(commit) = self.history.commit(&id).map_err(from_wire)? {
                newest = newest.max(Some(commit.time));
            }
        }
        Ok(newest)
    }

    /// Marks the objects of local refs, and their ancestors that are not older than `cutoff`.
    fn mark(&mut self, cutoff: Option<i64>) -> Result<()> {
        let mut tips = Vec::new();
        let refs = self.work.repository.refs();
        refs.for_each_or_broken("refs/", |found| {
            tips.extend(found.ok().map(|found| found.id));
            Ok(ControlFlow::Continue(()))
        })?;
        tips.extend(alternate_tips(self.work.repository)?);
        let mut queue = BinaryHeap::new();
        for id in tips {
            self.mark_tags(id)?;
            if let Some(id) = self.history.peel(&id).map_err(from_odb)? {
                self.enqueue(id, &mut queue)?;
            }
        }
        let Some(cutoff) = cutoff else {
            return Ok(());
        };
        while let Some(next) = queue.pop().filter(|next| cutoff <= next.time) {
            let line = format!("Marking {} as complete", next.id);
            self.work
                .watch
                .progress()
                .message(ProgressMessage::Step(&line));
            for parent in next.parents {
                self.enqueue(parent, &mut queue)?;
            }
        }
        Ok(())
    }

    /// Marks the tags between a ref and its peeled object.
    fn mark_tags(&mut self, mut id: ObjectId) -> Result<()> {
        let store = self.work.repository.objects()?;
        let mut buffer = Vec::new();
        while store.find(&id, &mut buffer).map_err(from_odb)? == Some(gix_object::Kind::Tag) {
            if !self.complete.insert(id) {
                break;
            }
            match TagRef::new(&buffer).target() {
                Some(target) => id = target,
                None => break,
            }
        }
        Ok(())
    }

    /// Marks a commit and adds it to the queue.
    fn enqueue(&mut self, id: ObjectId, queue: &mut BinaryHeap<VerboseEntry>) -> Result<()> {
        if !self.complete.insert(id) {
            return Ok(());
        }
        if let Some(commit) = self.history.commit(&id).map_err(from_wire)? {
            self.count += 1;
            queue.push(VerboseEntry {
                time: commit.time,
                order: Reverse(self.count),
                id,
                parents: commit.parents,
            });
        }
        Ok(())
    }
}

//! Commits that nothing leads to any more once `HEAD` leaves them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::ControlFlow;

use bstr::{BString, ByteSlice};
use gix_object::{CommitRef, Kind};
use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;

use crate::objects::from_odb;
use crate::{Error, ErrorKind, Repository, Result};

/// What became of the commit that `HEAD` alone was at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftBehind {
    /// A reference leads to it: its short id and title.
    Connected(BString, BString),
    /// Nothing leads to it and to these, the newest first: how many there are, the first few and
    /// the last with short id and title, and the short id of the newest.
    Lost {
        /// How many.
        count: usize,
        /// At most five, the last of which is the oldest if there are exactly five.
        shown: Vec<(BString, BString)>,
        /// The short id of the newest.
        newest: BString,
    },
}

/// So many are named.
const NAMED: usize = 4;

impl Repository {
    /// What leaving `old` for `new` leaves behind.
    pub(super) fn left_behind(
        &self,
        old: ObjectId,
        new: Option<ObjectId>,
        interrupt: &Interrupt,
    ) -> Result<LeftBehind> {
        let mut tips: Vec<ObjectId> = new.into_iter().collect();
        self.refs().for_each("refs/", |reference| {
            tips.push(reference.id);
            Ok(ControlFlow::Continue(()))
        })?;
        let lost = if tips.contains(&old) {
            Vec::new()
        } else {
            self.only_from(old, &tips, interrupt)?
        };
        if lost.is_empty() {
            return Ok(LeftBehind::Connected(self.short_id(old)?, self.title(old)?));
        }
        let mut shown = Vec::new();
        for id in lost.iter().take(NAMED) {
            shown.push((self.short_id(*id)?, self.title(*id)?));
        }
        if let (true, Some(last)) = (lost.len() == NAMED + 1, lost.last()) {
            shown.push((self.short_id(*last)?, self.title(*last)?));
        }
        Ok(LeftBehind::Lost {
            count: lost.len(),
            shown,
            newest: self.short_id(old)?,
        })
    }

    /// The commits that are reachable from `start` and from none of `tips`, the newest first.
    fn only_from(
        &self,
        start: ObjectId,
        tips: &[ObjectId],
        interrupt: &Interrupt,
    ) -> Result<Vec<ObjectId>> {
        let mut walk = Walk {
            repository: self,
            seen: HashMap::new(),
            queue: BinaryHeap::new(),
            wanted: 0,
        };
        walk.push(start, false)?;
        for tip in tips {
            if let Some(commit) = self.peel_to(*tip, Kind::Commit).ok().flatten() {
                walk.push(commit, true)?;
            }
        }
        let mut found = Vec::new();
        while walk.wanted > 0 {
            if interrupt.is_triggered() {
                return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
            }
            let Some((_, _, id)) = walk.queue.pop() else {
                break;
            };
            let (reachable, parents) = walk.leave(id);
            if !reachable {
                found.push(id);
            }
            for parent in parents {
                walk.push(parent, reachable)?;
            }
        }
        // Clocks may be wrong: what was found first may have turned out to be reachable later.
        found.retain(|id| walk.seen.get(id).is_some_and(|seen| !seen.reachable));
        Ok(found)
    }

    /// The id as short as Git prints it.
    pub(crate) fn short_id(&self, id: ObjectId) -> Result<BString> {
        Ok(self.abbreviate(&id)?.into())
    }

    /// The first line of a commit's message.
    pub(crate) fn title(&self, id: ObjectId) -> Result<BString> {
        let mut content = Vec::new();
        self.objects()?.find(&id, &mut content).map_err(from_odb)?;
        let title = CommitRef::from_bytes(&content, id.kind())
            .ok()
            .map(|commit| commit.message().title.trim().to_owned());
        // A title may go on over several lines; Git joins them.
        let lines = title.unwrap_or_default();
        let joined: Vec<&[u8]> = lines.lines().map(|line| line.trim()).collect();
        Ok(joined.join(&b' ').into())
    }
}

struct Seen {
    reachable: bool,
    queued: bool,
    date: i64,
    parents: Vec<ObjectId>,
}

/// A walk by date, the newest first, that paints what is reachable from elsewhere.
struct Walk<'a> {
    repository: &'a Repository,
    seen: HashMap<ObjectId, Seen>,
    /// By date, then in the order of arrival.
    queue: BinaryHeap<(i64, Reverse<usize>, ObjectId)>,
    /// Commits in the queue that are not painted.
    wanted: usize,
}

impl Walk<'_> {
    fn push(&mut self, id: ObjectId, reachable: bool) -> Result<()> {
        let arrival = Reverse(self.seen.len());
        if let Some(seen) = self.seen.get_mut(&id) {
            if !reachable || seen.reachable {
                return Ok(());
            }
            seen.reachable = true;
            if seen.queued {
                self.wanted -= 1;
            } else {
                // Its parents must be painted too.
                seen.queued = true;
                self.queue.push((seen.date, arrival, id));
            }
            return Ok(());
        }
        let mut content = Vec::new();
        let found = self
            .repository
            .objects()?
            .find(&id, &mut content)
            .map_err(from_odb)?;
        if found != Some(Kind::Commit) {
            let message = format!("could not read commit {id}");
            return Err(Error::new(ErrorKind::Object, message));
        }
        let (date, parents) = dates_and_parents(&content, id)?;
        self.queue.push((date, arrival, id));
        self.wanted += usize::from(!reachable);
        let seen = Seen {
            reachable,
            queued: true,
            date,
            parents,
        };
        self.seen.insert(id, seen);
        Ok(())
    }

    fn leave(&mut self, id: ObjectId) -> (bool, Vec<ObjectId>) {
        let Some(seen) = self.seen.get_mut(&id) else {
            return (true, Vec::new());
        };
        seen.queued = false;
        self.wanted -= usize::from(!seen.reachable);
        (seen.reachable, seen.parents.clone())
    }
}

fn dates_and_parents(content: &[u8], id: ObjectId) -> Result<(i64, Vec<ObjectId>)> {
    let broken = || Error::new(ErrorKind::Object, format!("bad commit {id}"));
    let commit = CommitRef::from_bytes(content, id.kind()).map_err(|_| broken())?;
    let date = commit.committer().ok().and_then(|who| who.time().ok());
    let parents = commit.parents().collect();
    Ok((date.map_or(0, |time| time.seconds), parents))
}

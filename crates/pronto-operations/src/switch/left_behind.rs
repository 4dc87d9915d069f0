//! Commits that become unreachable when `HEAD` leaves them.

use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};
use gix_object::{CommitRef, Kind};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_worktree::filter::reencode;

use crate::history::{Painting, Until};
use crate::objects::from_odb;
use crate::{Repository, Result};

/// The reachability of the old commit after a detached `HEAD` has moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftBehind {
    /// A reference leads to this commit.
    Connected(Oneline),
    /// This commit, and perhaps ancestors of it, became unreachable.
    Lost {
        /// The number of commits that became unreachable.
        count: usize,
        /// The newest commits, the newest first: all if there are at most five, else four.
        shown: Vec<Oneline>,
        /// The abbreviated id of the newest commit.
        newest: BString,
    },
}

/// A commit as `log --oneline` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oneline {
    /// The abbreviated id (`core.abbrev`).
    pub id: BString,
    /// The title of the message, in the encoding of output (`i18n.logOutputEncoding`).
    pub title: BString,
}

impl Oneline {
    /// Reads the commit `id`.
    pub(crate) fn read(repository: &Repository, id: ObjectId) -> Result<Self> {
        Ok(Oneline {
            id: repository.abbreviate(&id)?.into(),
            title: title(repository, id)?,
        })
    }
}

/// So many are named.
const NAMED: usize = 4;

/// Returns the commits that become unreachable by switching from `old` to `new`.
pub(super) fn left_behind(
    repository: &Repository,
    old: ObjectId,
    new: Option<ObjectId>,
    watch: &Watch<'_>,
) -> Result<LeftBehind> {
    let mut tips: Vec<ObjectId> = new.into_iter().collect();
    repository.refs().for_each("refs/", |reference| {
        tips.push(reference.id);
        Ok(ControlFlow::Continue(()))
    })?;
    let lost = if tips.contains(&old) {
        Vec::new()
    } else {
        only_from(repository, old, &tips, watch)?
    };
    if lost.is_empty() {
        return Ok(LeftBehind::Connected(Oneline::read(repository, old)?));
    }
    let mut shown = Vec::new();
    for id in lost.iter().take(NAMED) {
        shown.push(Oneline::read(repository, *id)?);
    }
    if let (true, Some(last)) = (lost.len() == NAMED + 1, lost.last()) {
        shown.push(Oneline::read(repository, *last)?);
    }
    Ok(LeftBehind::Lost {
        count: lost.len(),
        shown,
        newest: repository.abbreviate(&old)?.into(),
    })
}

/// Returns the commits that are reachable from `start` and from none of `tips`, the newest first.
fn only_from(
    repository: &Repository,
    start: ObjectId,
    tips: &[ObjectId],
    watch: &Watch<'_>,
) -> Result<Vec<ObjectId>> {
    let mut painting = Painting::new(repository, Until::LeftKnown)?;
    painting.left(&start)?;
    for tip in tips {
        if let Some(commit) = repository.peel_to(*tip, Kind::Commit).ok().flatten() {
            painting.right(&commit)?;
        }
    }
    painting.run(watch)?;
    painting.only_left(&start)
}

/// The first line of a commit's message, in the encoding of output
/// (`i18n.logOutputEncoding`).
fn title(repository: &Repository, id: ObjectId) -> Result<BString> {
    let mut content = Vec::new();
    repository
        .objects()?
        .find(&id, &mut content)
        .map_err(from_odb)?;
    let Ok(commit) = CommitRef::from_bytes(&content, id.kind()) else {
        return Ok(BString::default());
    };
    // A subject may span several lines; Git joins them.
    let title = commit.message().title.trim();
    let joined: Vec<&[u8]> = title.lines().map(|line| line.trim()).collect();
    let joined = joined.join(&b' ');
    let usual = BStr::new("UTF-8");
    let from = commit.encoding.unwrap_or(usual);
    let config = repository.config();
    let to = match config.string("i18n.logoutputencoding")? {
        Some(to) => to,
        None => config.string("i18n.commitencoding")?.unwrap_or(usual),
    };
    let shown = match from.eq_ignore_ascii_case(to) {
        true => None,
        false => reencode(&joined, from, to),
    };
    Ok(shown.unwrap_or(joined).into())
}

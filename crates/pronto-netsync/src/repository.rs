//! The interface of a session to its repository.
//!
//! The session decides about the order of calls, and the repository does the work in the thread
//! that drives the session. Each call is limited to the refs and objects that the peer may see.

use std::io::Read;

use pronto_hash::ObjectId;
use pronto_io::queue::SharedBytes;

use crate::Error;
use crate::message::{Globs, PublishedRef, Resume, SegmentKind, TransferPlan};

/// A ref as a peer offers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedRef {
    /// The full name of the ref at the offering side.
    pub name: Vec<u8>,
    /// The object to which the ref points.
    pub id: ObjectId,
    /// The commit to which the tag peels, if the object is a tag.
    pub peeled: Option<ObjectId>,
}

impl OfferedRef {
    /// Returns the commit to which the ref peels.
    pub fn commit(&self) -> ObjectId {
        self.peeled.unwrap_or(self.id)
    }
}

/// A request for objects.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The commits and tags that the peer wants.
    pub tips: Vec<ObjectId>,
    /// The commits whose history both sides have completely.
    pub common: Vec<ObjectId>,
    /// The sorted ids of all commits that the peer lacks and that are not reachable from common
    /// commits, if commits were reconciled. With `None`, the peer has no commits except the common
    /// ones.
    pub lacking: Option<Vec<ObjectId>>,
    /// Other commits that the peer has completely. Commits that do not exist here are ignored.
    pub held: Vec<ObjectId>,
    /// The position from which to resume, if the sequence of the sender begins with the same
    /// objects.
    pub resume: Option<Resume>,
    /// Send nothing, and count as much as possible in [`TransferPlan`] (`--dry-run`).
    pub is_dry_run: bool,
}

/// The wanted refs, and the state of an earlier interrupted session.
#[derive(Clone, Debug, Default)]
pub struct TransferProgress {
    /// A mark for each offer, set if its history is wanted.
    pub wanted: Vec<bool>,
    /// The complete commits, in the quarantine or in the history that the peer sent before, at most
    /// [`MAX_HELD`](crate::message::MAX_HELD) of them.
    pub held: Vec<ObjectId>,
    /// The position at which the earlier session ended.
    pub resume: Option<Resume>,
    /// The number of bytes of segments that are accepted.
    pub budget_bytes: u64,
}

/// A segment to send.
pub struct OutgoingSegment {
    /// The kind of the segment.
    pub kind: SegmentKind,
    /// The number of objects.
    pub objects: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The checksum at the end of the pack.
    pub checksum: ObjectId,
    /// The position of the transfer after the segment.
    pub resume: Resume,
    /// The bytes of the segment.
    pub content: SegmentContent,
}

/// The bytes of a segment.
pub enum SegmentContent {
    /// All bytes, which are not copied.
    Memory(SharedBytes),
    /// A reader that is read piece by piece.
    Stream(Box<dyn Read + Send>),
}

/// A repository in a session, restricted to the refs and objects that the peer may see.
///
/// An error of any call ends the session. Data that was received before stays in the quarantine.
pub trait SyncRepository {
    /// Returns the permanent identity of this repository, of at most 64 bytes, independent of the
    /// path by which it is accessed. The identity may be empty.
    ///
    /// # Errors
    /// Fails if the stored identity cannot be read.
    fn identity(&mut self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }

    /// Receives the identity of the peer's repository, before any other call.
    ///
    /// # Errors
    /// Fails if the peer had another identity before.
    fn meet(&mut self, identity: &[u8]) -> Result<(), Error> {
        let _ = identity;
        Ok(())
    }

    /// Reserves memory for the session: the total number of bytes for refs and compared sets. This
    /// call precedes their growth.
    ///
    /// # Errors
    /// Fails if there is not enough memory, with [`Busy`](crate::ErrorKind::Busy) if memory may be
    /// available later.
    fn hold(&mut self, bytes: u64) -> Result<(), Error> {
        let _ = bytes;
        Ok(())
    }

    /// Calls `each` for every ref that the peer may see and that `matches` accepts.
    ///
    /// # Errors
    /// Fails if the refs cannot be read.
    fn refs(
        &mut self,
        matches: &dyn Fn(&[u8]) -> bool,
        each: &mut dyn FnMut(&OfferedRef),
    ) -> Result<(), Error>;

    /// Returns which of the offers are complete here and visible to the peer, because they are
    /// reachable from refs that the peer may see or sent before. If the check is not possible, an
    /// offer is not complete.
    ///
    /// # Errors
    /// Fails if an existing object cannot be read.
    fn complete(&mut self, offers: &[OfferedRef]) -> Result<Vec<bool>, Error>;

    /// Calls `each` with the committer date (in seconds; dates before 1970 are 0) and the id of
    /// every commit that is reachable from `tips` and not from `common`.
    ///
    /// # Errors
    /// Fails if a commit cannot be read.
    fn commits(
        &mut self,
        tips: &[ObjectId],
        common: &[ObjectId],
        each: &mut dyn FnMut(u64, &ObjectId),
    ) -> Result<(), Error>;

    /// Starts to receive. Returns the wanted offers, and the data that an earlier session received.
    /// `eligible` has a mark for each offer; other offers must not be wanted. Complete offers and
    /// those that the user excluded are not eligible.
    ///
    /// # Errors
    /// Fails with [`Busy`](crate::ErrorKind::Busy) while another session receives from the same
    /// peer, and if the quarantine cannot be opened.
    fn prepare(
        &mut self,
        offers: &[OfferedRef],
        eligible: &[bool],
    ) -> Result<TransferProgress, Error>;

    /// Starts a segment of the peer.
    ///
    /// # Errors
    /// Fails if the segment cannot be stored.
    fn begin_segment(&mut self, kind: SegmentKind, objects: u64, bytes: u64) -> Result<(), Error>;

    /// Receives bytes of the segment, in order. They are copied or used before the call returns.
    ///
    /// # Errors
    /// Fails if the bytes are invalid, or cannot be stored.
    fn segment_data(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Ends the segment. When the call returns, the segment is verified and durable in the
    /// quarantine, and `resume` is stored for the next session if this one is interrupted.
    ///
    /// # Errors
    /// Fails if the segment is invalid, or cannot be stored. In this case the segment is discarded.
    fn end_segment(&mut self, checksum: &ObjectId, resume: Resume) -> Result<(), Error>;

    /// Checks the connectivity of the received history, moves it from the quarantine into the
    /// repository, and updates the refs of the peer. `offers` are all refs of the peer that match,
    /// sorted by name. `arrived` marks the offers that are complete here or were wanted. Returns
    /// the result of each changed ref, sorted by name.
    ///
    /// # Errors
    /// Fails if an object is missing or cannot be moved. In this case no ref has changed.
    fn publish(
        &mut self,
        offers: &[OfferedRef],
        arrived: &[bool],
    ) -> Result<Vec<PublishedRef>, Error>;

    /// Starts to send. Returns the plan of the objects to send.
    ///
    /// # Errors
    /// Fails if an object cannot be read.
    fn plan(&mut self, request: Request) -> Result<TransferPlan, Error>;

    /// Creates the next segment of the plan. Its objects reference only objects in the same
    /// segment, in earlier segments, or in the repository of the peer.
    ///
    /// # Errors
    /// Fails if an object cannot be read.
    fn next_segment(&mut self) -> Result<Option<OutgoingSegment>, Error>;
}

/// A matcher for the refs to synchronise, compiled from globs: names that an including glob
/// matches, and no excluding glob.
#[derive(Clone, Debug, Default)]
pub struct RefMatcher {
    globs: Globs,
}

impl RefMatcher {
    /// Compiles the globs of a peer or a user. Without including globs, all names are included.
    pub fn new(globs: Globs) -> Self {
        RefMatcher { globs }
    }

    /// Returns whether the ref with this name matches. The cost of each glob is O(length of name
    /// times length of glob).
    pub fn matches(&self, name: &[u8]) -> bool {
        let any = |globs: &[Vec<u8>]| globs.iter().any(|glob| matches_glob(glob, name));
        (self.globs.include.is_empty() || any(&self.globs.include)) && !any(&self.globs.exclude)
    }
}

/// Matches a glob in which `*` matches any bytes, including slashes, and `?` matches one byte. The
/// function backtracks only to the last `*`, so the cost is at most the product of the lengths.
fn matches_glob(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((glob_at, name_at)) = star else {
                    return false;
                };
                star = Some((glob_at, name_at + 1));
                (at, read) = (glob_at + 1, name_at + 1);
            }
        }
    }
    glob[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_without_going_back_far() {
        for (glob, name, expected) in [
            ("refs/heads/*", "refs/heads/a/b", true),
            ("refs/heads/*", "refs/tags/a", false),
            ("*x", "refs/heads/xx", true),
            ("r*s/?eads/*", "refs/heads/", true),
            ("refs/heads", "refs/heads/x", false),
            ("refs/heads/x?", "refs/heads/x", false),
            ("*", "", true),
        ] {
            assert_eq!(
                matches_glob(glob.as_bytes(), name.as_bytes()),
                expected,
                "{glob}"
            );
        }
        let glob = b"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b".to_vec();
        assert!(!matches_glob(&glob, &[b'a'; 1024]));
        let matcher = RefMatcher::new(Globs {
            include: vec![b"refs/*".to_vec()],
            exclude: vec![b"refs/heads/secret*".to_vec()],
        });
        assert!(matcher.matches(b"refs/heads/main") && !matcher.matches(b"refs/heads/secret/1"));
        assert!(RefMatcher::default().matches(b"anything"));
    }
}

//! The interface of a session to its repository.
//!
//! The session decides when, and the repository does the work in the thread that drives the
//! session. Every call is limited to what the peer may see.

use std::io::Read;

use pronto_hash::ObjectId;
use pronto_io::queue::SharedBytes;

use crate::Error;
use crate::message::{Globs, Plan, PublishedRef, Resume, SegmentKind};

/// A ref as a peer offers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its full name at the side that offers it.
    pub name: Vec<u8>,
    /// The object it holds.
    pub id: ObjectId,
    /// The commit that its tag leads to, if it holds a tag.
    pub peeled: Option<ObjectId>,
}

impl Offer {
    /// The commit it leads to.
    pub fn commit(&self) -> ObjectId {
        self.peeled.unwrap_or(self.id)
    }
}

/// A request for objects.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Commits and tags that the peer wants.
    pub tips: Vec<ObjectId>,
    /// Commits that both sides hold completely.
    pub common: Vec<ObjectId>,
    /// All commits above the common ones that the peer lacks, sorted by id, if commits were
    /// reconciled. Without it, the peer has nothing above them.
    pub lacking: Option<Vec<ObjectId>>,
    /// Commits that the peer holds besides. Ones that are not here say nothing.
    pub held: Vec<ObjectId>,
    /// The position at which to resume, if the sender's order begins with the same objects.
    pub resume: Option<Resume>,
    /// Whether nothing will be sent, so that [`Plan`] should say all that can be known.
    pub is_dry_run: bool,
}

/// The wanted refs, and what an earlier session received.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// For each offer whether its history is wanted.
    pub wanted: Vec<bool>,
    /// Commits that are complete, in quarantine or as what the peer gave before:
    /// [`MAX_HELD`](crate::message::MAX_HELD) at most.
    pub held: Vec<ObjectId>,
    /// The position at which the earlier session ended.
    pub resume: Option<Resume>,
    /// The number of bytes of segments that are accepted.
    pub budget_bytes: u64,
}

/// A segment to be sent.
pub struct OutgoingSegment {
    /// The kind.
    pub kind: SegmentKind,
    /// The number of objects.
    pub objects: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The checksum at its end.
    pub checksum: ObjectId,
    /// The position of the transfer after it.
    pub resume: Resume,
    /// Its bytes.
    pub content: Content,
}

/// The bytes of a segment.
pub enum Content {
    /// All of them. They are not copied.
    Memory(SharedBytes),
    /// A source that is read piece by piece.
    Stream(Box<dyn Read + Send>),
}

/// A repository that takes part in a session, as one peer may see it.
///
/// An error of any call ends the session; what was received before stays in quarantine.
pub trait Repository {
    /// Returns the identity of this repository, wherever it is accessed: at most 64 bytes, always
    /// the same. Empty if it has none.
    ///
    /// # Errors
    /// The stored identity cannot be read.
    fn identity(&mut self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }

    /// Receives the identity of the peer's repository, before anything else is done.
    ///
    /// # Errors
    /// The peer had another identity before.
    fn meet(&mut self, identity: &[u8]) -> Result<(), Error> {
        let _ = identity;
        Ok(())
    }

    /// Reserves memory for the peer: the total bytes that the session holds in refs and compared
    /// sets. Called before it grows.
    ///
    /// # Errors
    /// There is not enough memory; [`Busy`](crate::ErrorKind::Busy) if there may be later.
    fn hold(&mut self, bytes: u64) -> Result<(), Error> {
        let _ = bytes;
        Ok(())
    }

    /// Calls `each` for every ref that the peer may see and that `matches` lets take part.
    ///
    /// # Errors
    /// The refs cannot be read.
    fn refs(
        &mut self,
        matches: &dyn Fn(&[u8]) -> bool,
        each: &mut dyn FnMut(&Offer),
    ) -> Result<(), Error>;

    /// Returns which of the offers are complete here and visible to the peer: reachable from refs
    /// that it may see or that it sent before. If that cannot be determined, an offer is not
    /// complete.
    ///
    /// # Errors
    /// An existing object cannot be read.
    fn complete(&mut self, offers: &[Offer]) -> Result<Vec<bool>, Error>;

    /// Calls `each` with the committer's date (seconds; before 1970 counts as 0) and the id of
    /// every commit that `tips` lead to and `common` do not.
    ///
    /// # Errors
    /// One of them cannot be read.
    fn commits(
        &mut self,
        tips: &[ObjectId],
        common: &[ObjectId],
        each: &mut dyn FnMut(u64, &ObjectId),
    ) -> Result<(), Error>;

    /// Begins to receive: returns which of the offers are wanted, and what has been received of
    /// them already. `eligible` has a mark for each offer: no other may be wanted or mentioned.
    /// Complete offers and those that the user excluded are not eligible.
    ///
    /// # Errors
    /// [`Busy`](crate::ErrorKind::Busy) while another session receives from the same peer; or the
    /// quarantine cannot be opened.
    fn prepare(&mut self, offers: &[Offer], eligible: &[bool]) -> Result<Progress, Error>;

    /// A segment of the peer begins.
    ///
    /// # Errors
    /// It cannot be stored.
    fn begin_segment(&mut self, kind: SegmentKind, objects: u64, bytes: u64) -> Result<(), Error>;

    /// Bytes of the segment, in order. They are copied or used before it returns.
    ///
    /// # Errors
    /// They are invalid, or cannot be stored.
    fn segment_data(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Ends the segment. When this returns, the segment is verified and durable in quarantine, and
    /// `resume` is stored for the next session if this one is interrupted.
    ///
    /// # Errors
    /// It is invalid, or cannot be stored. Nothing of it stays.
    fn end_segment(&mut self, checksum: &ObjectId, resume: Resume) -> Result<(), Error>;

    /// Lands the received history: checks that all of it is connected, publishes it, and updates
    /// the refs of the peer. `offers` are all refs of the peer that take part, sorted by name;
    /// `arrived` marks those that are complete here or were wanted. Returns the fate of each
    /// changed ref, sorted by name.
    ///
    /// # Errors
    /// Something is missing or cannot be moved; then no ref has changed.
    fn land(&mut self, offers: &[Offer], arrived: &[bool]) -> Result<Vec<PublishedRef>, Error>;

    /// Begins to send: what will be sent.
    ///
    /// # Errors
    /// An object cannot be read.
    fn plan(&mut self, request: Request) -> Result<Plan, Error>;

    /// Makes the next segment of the plan. Each object links only to what is in its own segment,
    /// in an earlier one, or at the peer's already.
    ///
    /// # Errors
    /// An object cannot be read.
    fn next_segment(&mut self) -> Result<Option<OutgoingSegment>, Error>;
}

/// Which refs take part, compiled from globs: all that one includes and none excludes.
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    globs: Globs,
}

impl Matcher {
    /// Compiles globs of a peer or a user. Without globs that include, everything is included.
    pub fn new(globs: Globs) -> Self {
        Matcher { globs }
    }

    /// Whether the ref of this name takes part. O(length of name times length of glob) for each.
    pub fn matches(&self, name: &[u8]) -> bool {
        let any = |globs: &[Vec<u8>]| globs.iter().any(|glob| matches_glob(glob, name));
        (self.globs.include.is_empty() || any(&self.globs.include)) && !any(&self.globs.exclude)
    }
}

/// Matches a glob in which `*` stands for any bytes, including slashes, and `?` for one. Backtracks
/// only to the last `*`, so the cost is at most the product of the lengths.
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
        let matcher = Matcher::new(Globs {
            include: vec![b"refs/*".to_vec()],
            exclude: vec![b"refs/heads/secret*".to_vec()],
        });
        assert!(matcher.matches(b"refs/heads/main") && !matcher.matches(b"refs/heads/secret/1"));
        assert!(Matcher::default().matches(b"anything"));
    }
}

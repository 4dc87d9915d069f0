//! The upstream of a branch, and how far both have gone from each other.

use crate::{Repository, Result};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// The branch that another one follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its full name here.
    pub name: BString,
    /// The shortest name that means it.
    pub short_name: BString,
    /// How both differ; `None` if the upstream is gone.
    pub divergence: Option<Divergence>,
}

/// How two branches differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divergence {
    /// They are at the same commit.
    Same,
    /// They are not; nobody asked how far.
    Different,
    /// Commits that only one of them has.
    Counted {
        /// Only the branch has these.
        ahead: usize,
        /// Only the upstream has these.
        behind: usize,
    },
}

impl Repository {
    /// The upstream of the branch `branch` (a full name) that is at `tip`, if it has one. With
    /// `count` the history of both is walked as far as they differ.
    ///
    /// # Errors
    /// A reference or an object cannot be read.
    pub fn upstream(
        &self,
        branch: &BStr,
        tip: Option<ObjectId>,
        count: bool,
        interrupt: &Interrupt,
    ) -> Result<Option<Upstream>> {
        let Some(name) = self.upstream_name(branch) else {
            return Ok(None);
        };
        let short_name = self.shorten_reference(name.as_bstr(), false)?;
        let theirs = self.refs().id_of(&name)?;
        let divergence = match (tip, theirs) {
            (Some(ours), Some(theirs)) if ours == theirs => Some(Divergence::Same),
            (Some(ours), Some(theirs)) if count => {
                let (ahead, behind) = self.ahead_behind(ours, theirs, interrupt)?;
                Some(Divergence::Counted { ahead, behind })
            }
            (Some(_), Some(_)) => Some(Divergence::Different),
            _ => None,
        };
        Ok(Some(Upstream {
            name,
            short_name,
            divergence,
        }))
    }

    /// The reference here that stands for what `branch.<name>.merge` of `branch.<name>.remote` is.
    fn upstream_name(&self, branch: &BStr) -> Option<BString> {
        let short = branch.strip_prefix(b"refs/heads/")?;
        let config = self.config();
        let key = |variable: &str| [b"branch.", short, b".", variable.as_bytes()].concat();
        let remote = config.raw(key("remote"))?;
        let merge = config.raw(key("merge"))?;
        if remote == "." {
            return Some(merge.to_owned());
        }
        let fetch = [b"remote.", remote.as_bytes(), b".fetch"].concat();
        let specs = config.list(&fetch);
        let negative = |spec: &&&BStr| {
            spec.strip_prefix(b"^")
                .is_some_and(|pattern| expand(pattern, None, merge).is_some())
        };
        if specs.iter().any(|spec| negative(&spec)) {
            return None;
        }
        specs.iter().find_map(|spec| {
            let spec = spec.strip_prefix(b"+").unwrap_or(spec);
            let (from, to) = spec.split_once_str(":")?;
            expand(from, Some(to), merge).filter(|to| !to.is_empty())
        })
    }

    /// How many commits only `ours` has, and how many only `theirs`. Walks both as far as they
    /// differ.
    ///
    /// # Errors
    /// A commit cannot be read.
    pub fn ahead_behind(
        &self,
        ours: ObjectId,
        theirs: ObjectId,
        interrupt: &Interrupt,
    ) -> Result<(usize, usize)> {
        let store = self.objects()?;
        let shallow = std::fs::read(self.shallow_path()).unwrap_or_default();
        let shallow: HashSet<ObjectId> = shallow
            .lines()
            .filter_map(|line| ObjectId::from_hex(line).ok())
            .collect();
        let mut walk = Walk {
            read: |id: ObjectId, content: &mut Vec<u8>| {
                let found = store.find(&id, content).map_err(super::collect::objects)?;
                if found == Some(gix_object::Kind::Commit) {
                    return Ok(());
                }
                let message = format!("could not read commit {id}");
                Err(crate::Error::new(crate::ErrorKind::Object, message))
            },
            shallow,
            seen: HashMap::new(),
            queue: BinaryHeap::new(),
            undecided: 0,
            content: Vec::new(),
        };
        walk.push(ours, OURS)?;
        walk.push(theirs, THEIRS)?;
        walk.run(interrupt)
    }
}

/// What `name` becomes by a refspec from `from` to `to`.
fn expand(from: &[u8], to: Option<&[u8]>, name: &BStr) -> Option<BString> {
    let star = |pattern: &[u8]| pattern.find_byte(b'*');
    let Some(at) = star(from) else {
        return (from == name.as_bytes()).then(|| to.unwrap_or_default().into());
    };
    let middle = name
        .strip_prefix(&from[..at])?
        .strip_suffix(&from[at + 1..])?;
    let to = to.unwrap_or_default();
    let Some(at) = star(to) else {
        return Some(to.into());
    };
    Some([&to[..at], middle, &to[at + 1..]].concat().into())
}

const OURS: u8 = 1;
const THEIRS: u8 = 2;
const BOTH: u8 = 3;

/// A walk from two commits, the newest first, until everything left is reachable from both.
struct Walk<R> {
    read: R,
    shallow: HashSet<ObjectId>,
    /// From which side each commit is reachable, and its parents.
    seen: HashMap<ObjectId, Seen>,
    queue: BinaryHeap<(i64, ObjectId)>,
    /// Commits in the queue that still change a count: not known to be reachable from both, or
    /// known too late, after their parents were told otherwise.
    undecided: usize,
    content: Vec<u8>,
}

struct Seen {
    sides: u8,
    queued: bool,
    /// Whether the parents were told once already.
    expanded: bool,
    date: i64,
    parents: Vec<ObjectId>,
}

impl Seen {
    fn is_undecided(&self) -> bool {
        self.queued && (self.sides != BOTH || self.expanded)
    }
}

impl<R: FnMut(ObjectId, &mut Vec<u8>) -> Result<()>> Walk<R> {
    /// The commit is reachable from these sides too.
    fn push(&mut self, id: ObjectId, sides: u8) -> Result<()> {
        if !self.seen.contains_key(&id) {
            (self.read)(id, &mut self.content)?;
            let (mut parents, date) = parse_commit(&self.content);
            if self.shallow.contains(&id) {
                parents.clear();
            }
            self.seen.insert(
                id,
                Seen {
                    sides: 0,
                    queued: false,
                    expanded: false,
                    date,
                    parents,
                },
            );
        }
        let Some(seen) = self.seen.get_mut(&id) else {
            return Ok(());
        };
        let (before, after) = (seen.sides, seen.sides | sides);
        if before == after {
            return Ok(());
        }
        let was_undecided = seen.is_undecided();
        seen.sides = after;
        if !seen.queued {
            seen.queued = true;
            self.queue.push((seen.date, id));
        }
        self.undecided += usize::from(seen.is_undecided());
        self.undecided -= usize::from(was_undecided);
        Ok(())
    }

    fn run(&mut self, interrupt: &Interrupt) -> Result<(usize, usize)> {
        while self.undecided > 0 {
            let Some((_, id)) = self.queue.pop() else {
                break;
            };
            interrupt.check().map_err(|reason| {
                crate::Error::new(crate::ErrorKind::Interrupted, reason.to_string())
            })?;
            let Some(seen) = self.seen.get_mut(&id) else {
                continue;
            };
            self.undecided -= usize::from(seen.is_undecided());
            (seen.queued, seen.expanded) = (false, true);
            let sides = seen.sides;
            for parent in seen.parents.clone() {
                self.push(parent, sides)?;
            }
        }
        let count = |sides| {
            self.seen
                .values()
                .filter(|seen| seen.sides == sides)
                .count()
        };
        Ok((count(OURS), count(THEIRS)))
    }
}

/// The parents of a commit and when it was committed.
fn parse_commit(content: &[u8]) -> (Vec<ObjectId>, i64) {
    let (mut parents, mut date) = (Vec::new(), 0);
    for line in content.lines() {
        if let Some(hex) = line.strip_prefix(b"parent ") {
            parents.extend(ObjectId::from_hex(hex));
        } else if let Some(committer) = line.strip_prefix(b"committer ") {
            let time = committer.rsplit(|&byte| byte == b' ').nth(1);
            let time = time.and_then(|time| time.to_str().ok()?.parse().ok());
            date = time.unwrap_or(0);
            break;
        } else if line.is_empty() {
            break;
        }
    }
    (parents, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> ObjectId {
        ObjectId::from_hex(format!("{number:040x}").as_bytes()).expect("forty digits")
    }

    /// Commits as number, date and parents.
    fn count(commits: &[(u8, i64, &[u8])], ours: u8, theirs: u8) -> (usize, usize) {
        let text = |number: ObjectId, out: &mut Vec<u8>| {
            let commit = commits
                .iter()
                .find(|commit| id(commit.0) == number)
                .expect("known");
            *out = b"tree x\n".to_vec();
            for parent in commit.2 {
                out.extend_from_slice(format!("parent {}\n", id(*parent)).as_bytes());
            }
            out.extend_from_slice(format!("committer A <a> {} +0000\n", commit.1).as_bytes());
            Ok(())
        };
        let mut walk = Walk {
            read: text,
            shallow: HashSet::new(),
            seen: HashMap::new(),
            queue: BinaryHeap::new(),
            undecided: 0,
            content: Vec::new(),
        };
        walk.push(id(ours), OURS).expect("read");
        walk.push(id(theirs), THEIRS).expect("read");
        walk.run(&Interrupt::new()).expect("walked")
    }

    #[test]
    fn sides_are_counted_whatever_the_dates() {
        let straight: &[(u8, i64, &[u8])] = &[
            (1, 10, &[]),
            (2, 20, &[1]),
            (3, 30, &[2]),
            (4, 25, &[2]),
            (5, 40, &[3, 4]),
        ];
        assert_eq!(count(straight, 3, 4), (1, 1));
        assert_eq!(count(straight, 5, 2), (3, 0));
        assert_eq!(count(straight, 1, 5), (0, 4));
        let skewed: &[(u8, i64, &[u8])] =
            &[(1, 99, &[]), (2, 5, &[1]), (3, 50, &[2]), (4, 1, &[2])];
        assert_eq!(count(skewed, 3, 4), (1, 1));
    }

    #[test]
    fn refspecs_are_followed() {
        let name = BStr::new("refs/heads/a/b");
        assert_eq!(
            expand(b"refs/heads/*", Some(b"refs/remotes/o/*"), name),
            Some("refs/remotes/o/a/b".into())
        );
        assert_eq!(expand(b"refs/heads/x", Some(b"y"), name), None);
        assert_eq!(
            expand(b"refs/heads/a/b", Some(b"y"), name),
            Some("y".into())
        );
    }
}

//! Leases: the expected values of remote refs (`--force-with-lease`).

use std::collections::BTreeSet;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use super::matching::may_mean;
use super::{PushRemote, PushedRef};
use crate::{Error, ErrorKind, Repository, Result};

/// The expected value of one remote ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The name of the ref, which may be abbreviated.
    pub name: BString,
    /// The expected value; null if the ref must not exist. `None` for the value of the
    /// remote-tracking ref.
    pub expected: Option<ObjectId>,
}

/// The expected values of remote refs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leases {
    /// The expected values of single refs (`--force-with-lease=NAME:EXPECTED`).
    pub single: Vec<Lease>,
    /// Require that all other refs have the values of their remote-tracking refs
    /// (`--force-with-lease`).
    pub others: bool,
    /// Also require that the value of the remote-tracking ref was integrated locally
    /// (`--force-if-includes`).
    pub includes: bool,
}

/// The lease of one remote ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RefLease {
    pub(super) expected: ObjectId,
    /// Whether the value of the remote-tracking ref was never integrated locally.
    pub(super) is_unseen: bool,
}

impl Leases {
    /// Whether there are no leases.
    pub fn is_empty(&self) -> bool {
        self.single.is_empty() && !self.others
    }

    /// Parses and adds `NAME` or `NAME:EXPECTED`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::UnknownRevision`] if `EXPECTED` cannot be resolved.
    pub fn add(&mut self, repository: &Repository, text: &BStr) -> Result<()> {
        let (name, expected) = match text.split_once_str(":") {
            None => (text.as_bytes(), None),
            Some((name, b"")) => (name, Some(repository.object_hash().null())),
            Some((name, expected)) => {
                let found = repository.try_resolve(expected, Default::default());
                let found = found.ok().flatten().ok_or_else(|| {
                    let expected = expected.as_bstr();
                    let message = format!("cannot parse expected object name '{expected}'");
                    Error::new(ErrorKind::UnknownRevision, message)
                })?;
                (name, Some(found))
            }
        };
        self.single.push(Lease {
            name: name.into(),
            expected,
        });
        Ok(())
    }
}

/// Assigns the leases to the refs.
pub(super) fn apply(
    repository: &Repository,
    destination: &PushRemote,
    leases: &Leases,
    refs: &mut [PushedRef],
) -> Result<()> {
    if leases.is_empty() {
        return Ok(());
    }
    for pushed in refs {
        let name = pushed.name.as_bstr();
        let mut single = leases.single.iter();
        let single = single.find(|lease| may_mean(lease.name.as_bstr(), name));
        let expected = match single {
            Some(lease) => lease.expected,
            None if leases.others => None,
            None => continue,
        };
        pushed.lease = Some(match expected {
            Some(expected) => RefLease {
                expected,
                is_unseen: false,
            },
            None => tracked(repository, destination, leases.includes, pushed)?,
        });
    }
    Ok(())
}

/// Returns the lease with the value of the remote-tracking ref.
fn tracked(
    repository: &Repository,
    destination: &PushRemote,
    includes: bool,
    pushed: &PushedRef,
) -> Result<RefLease> {
    let tracking = destination.tracking(pushed.name.as_bstr());
    let found = match &tracking {
        Some(tracking) => repository.refs().id_of(tracking)?,
        None => None,
    };
    let (Some(expected), Some(tracking)) = (found, tracking) else {
        return Ok(RefLease {
            expected: repository.object_hash().null(),
            is_unseen: false,
        });
    };
    Ok(RefLease {
        expected,
        is_unseen: includes && !is_included(repository, pushed, tracking.as_bstr())?,
    })
}

/// Whether the reflog of the local branch shows that the branch once contained the value of the
/// remote ref.
fn is_included(repository: &Repository, pushed: &PushedRef, tracking: &BStr) -> Result<bool> {
    let refs = repository.refs();
    if refs.find(&pushed.name)?.is_none() {
        return Ok(true);
    }
    let followed = refs.log(tracking)?;
    let last = followed.as_ref().and_then(|log| log.newest_first().next());
    let last = last.map(|line| line.seconds);
    let mut commits = Vec::new();
    let log = refs.log(&pushed.name)?;
    let lines = log.iter().flat_map(|log| log.newest_first());
    for line in lines {
        if line.old == pushed.old || line.new == pushed.old {
            return Ok(true);
        }
        if last.is_some_and(|last| line.seconds < last) {
            break;
        }
        commits.push(line.new);
    }
    let cuts: BTreeSet<ObjectId> = repository.shallow_commits()?.iter().copied().collect();
    for commit in commits {
        if !commit.is_null() && repository.is_ancestor(&pushed.old, &commit, &cuts)? {
            return Ok(true);
        }
    }
    Ok(false)
}

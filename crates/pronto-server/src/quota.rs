//! Quotas: limits on the bytes and refs of repositories, and on the number of repositories.
//!
//! A push must satisfy each quota that matches its repository. The usage of the repository is
//! measured before the objects of the push are read, so that a push that cannot fit is refused
//! early. The quotas are checked again after the objects are received, while no other push can
//! change the repository ([`PushBounds`]).

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use pronto::receive_pack::{Bound, PackLimit, PushBounds};

use crate::access::{RequestedRefChange, fits};
use crate::open_repository::OpenRepository;
use crate::{ErrorKind, Result};

/// The limits of the repositories that a glob matches (`[[quota]]`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The glob of repository names (`repository`).
    pub repository: String,
    /// The largest size in bytes of the objects of each repository (`bytes`).
    pub bytes: Option<u64>,
    /// The largest number of refs of each repository (`refs`).
    pub refs: Option<u64>,
    /// The largest number of repositories (`repositories`).
    pub repositories: Option<u64>,
    /// Count the repositories separately for each first component of their names (`per_namespace`).
    pub per_namespace: bool,
}

impl Quota {
    /// Returns whether the quota applies to the repository `name`.
    pub fn matches(&self, name: &str) -> bool {
        fits(&self.repository, name.as_bytes())
    }

    /// Returns whether the quota counts the repository `other` when `name` is created.
    pub fn counts(&self, name: &str, other: &str) -> bool {
        let namespace = |name: &str| name.split('/').next().map(str::to_owned);
        self.matches(other) && (!self.per_namespace || namespace(name) == namespace(other))
    }

    /// Returns a reason that names the quota.
    pub(crate) fn reason(&self, what: &str) -> String {
        let reason = format!("{what}: quota for '{}'", self.repository);
        // The reason becomes a line of the protocol, so it must not contain control characters.
        reason.replace(char::is_control, "?")
    }
}

/// The size of the content of a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The size in bytes of the objects and their indexes.
    pub bytes: u64,
    /// The number of refs.
    pub refs: u64,
}

/// The remaining part of the quotas of a repository, for one push.
#[derive(Debug)]
pub(crate) struct Allowance {
    quotas: Vec<Quota>,
    usage: Usage,
    /// The names of the refs that the push was allowed to create. A session of netsync checks each
    /// ref twice.
    created: Mutex<BTreeSet<Vec<u8>>>,
}

impl Allowance {
    /// Measures `repository`, whose name is `name`. Returns `None` if no quota matches the name.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Failed`] if the repository cannot be read.
    pub(crate) fn of(
        quotas: &[Quota],
        name: &str,
        repository: &OpenRepository,
    ) -> Result<Option<Self>> {
        let has_limit = |quota: &&Quota| quota.bytes.is_some() || quota.refs.is_some();
        let quotas: Vec<Quota> = quotas
            .iter()
            .filter(|quota| quota.matches(name))
            .filter(has_limit)
            .cloned()
            .collect();
        if quotas.is_empty() {
            return Ok(None);
        }
        let mut usage = Usage::default();
        if quotas.iter().any(|quota| quota.bytes.is_some()) {
            usage.bytes = repository.object_bytes()?;
        }
        if quotas.iter().any(|quota| quota.refs.is_some()) {
            let refs = repository.refs().all("refs/");
            let refs = refs.map_err(|error| error.map_kind(|_| ErrorKind::Failed))?;
            usage.refs = refs.len() as u64;
        }
        Ok(Some(Allowance {
            quotas,
            usage,
            created: Mutex::default(),
        }))
    }

    /// Returns the reason for which a ref update is refused, or `None` if the update is allowed.
    /// Deletions are always allowed.
    pub(crate) fn refusal(&self, change: &RequestedRefChange<'_>) -> Option<String> {
        if change.deletes {
            return None;
        }
        let Usage { bytes, refs } = self.usage;
        let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        let creates = change.creates && !created.contains(change.name);
        let refs = refs + created.len() as u64;
        for quota in &self.quotas {
            if let Some(most) = quota.bytes.filter(|most| bytes >= *most) {
                let what = format!("the repository is full: it has {bytes} of {most} bytes");
                return Some(quota.reason(&what));
            }
            if let Some(most) = quota.refs.filter(|most| creates && refs >= *most) {
                let what = format!("the repository has {refs} of {most} refs");
                return Some(quota.reason(&what));
            }
        }
        if creates {
            created.insert(change.name.to_owned());
        }
        None
    }

    /// Returns the bounds that the repository must satisfy after the push.
    pub(crate) fn bounds(&self) -> PushBounds {
        let smallest = |limit: fn(&Quota) -> Option<u64>| {
            let limits = self.quotas.iter().filter_map(|quota| {
                let origin = quota.reason("");
                let origin = origin.trim_start_matches(": ");
                limit(quota).map(|most| Bound::new(most, origin))
            });
            limits.min_by_key(|bound| bound.most)
        };
        let mut bounds = PushBounds::default();
        bounds.bytes = smallest(|quota| quota.bytes);
        bounds.refs = smallest(|quota| quota.refs);
        bounds
    }

    /// Returns the limit on the size of the pack of the push.
    pub(crate) fn pack_limit(&self) -> Option<PackLimit> {
        let bytes = self.usage.bytes;
        let limits = self.quotas.iter().filter_map(|quota| {
            let most = quota.bytes?;
            let what = format!("the push is too large: the repository has {bytes} of {most} bytes");
            // The smallest pack contains no objects, and is refused for another reason.
            let rest = most.saturating_sub(bytes).max(1);
            Some(PackLimit::new(rest, quota.reason(&what)))
        });
        limits.min_by_key(|limit| limit.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(bytes: Option<u64>, refs: Option<u64>) -> Quota {
        Quota {
            repository: "team/**".to_owned(),
            bytes,
            refs,
            ..Quota::default()
        }
    }

    fn allowance(quotas: Vec<Quota>, bytes: u64, refs: u64) -> Allowance {
        Allowance {
            quotas,
            usage: Usage { bytes, refs },
            created: Mutex::default(),
        }
    }

    fn change(name: &[u8], creates: bool, deletes: bool) -> RequestedRefChange<'_> {
        RequestedRefChange {
            name,
            creates,
            deletes,
        }
    }

    #[test]
    fn a_full_repository_takes_deletions_only() {
        let full = allowance(vec![quota(None, None), quota(Some(100), None)], 100, 0);
        let refused = full
            .refusal(&change(b"x", false, false))
            .expect("it is full");
        assert_eq!(
            refused,
            "the repository is full: it has 100 of 100 bytes: quota for 'team/**'"
        );
        assert_eq!(full.refusal(&change(b"x", false, true)), None);
    }

    #[test]
    fn the_refs_of_a_push_count() {
        let allowed = allowance(vec![quota(None, Some(3))], 0, 1);
        for name in [&b"a"[..], b"b", b"a"] {
            assert_eq!(allowed.refusal(&change(name, true, false)), None);
        }
        let refused = allowed
            .refusal(&change(b"c", true, false))
            .expect("a fourth one");
        assert!(refused.contains("3 of 3 refs"), "{refused}");
        assert_eq!(allowed.refusal(&change(b"x", false, false)), None);
        assert_eq!(allowed.pack_limit(), None);
    }

    #[test]
    fn the_smallest_remainder_bounds_the_pack() {
        let quotas = vec![quota(Some(1000), None), quota(Some(150), None)];
        let limit = allowance(quotas, 100, 0).pack_limit().expect("a limit");
        assert_eq!(limit.bytes, 50);
        assert!(
            limit.reason.contains("100 of 150 bytes"),
            "{}",
            limit.reason
        );
    }

    #[test]
    fn the_smallest_quotas_bound_the_repository() {
        let quotas = vec![quota(Some(7), None), quota(Some(5), Some(9))];
        let bounds = allowance(quotas, 0, 0).bounds();
        let expected = |most| Some(Bound::new(most, "quota for 'team/**'"));
        assert_eq!((bounds.bytes, bounds.refs), (expected(5), expected(9)));
        assert!(allowance(Vec::new(), 0, 0).bounds().is_empty());
    }

    #[test]
    fn namespaces_are_counted_apart() {
        let mut quota = Quota {
            repository: "*/**".to_owned(),
            ..Quota::default()
        };
        assert!(quota.counts("a/x", "b/y") && !quota.counts("a/x", "z"));
        quota.per_namespace = true;
        assert!(quota.counts("a/x", "a/y/z") && !quota.counts("a/x", "b/y"));
    }
}

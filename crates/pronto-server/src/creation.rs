//! Creates repositories for clients, within the quotas on their number.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::names::RepositoryName;
use crate::quota::Quota;
use crate::state::Setup;
use crate::{Error, ErrorKind, Result};

/// The interval at which a server checks the other servers that created a repository at the same
/// moment. The server whose name sorts first waits for the others to withdraw.
const PAUSE: Duration = Duration::from_millis(200);

/// The number of checks after which a server stops waiting for other servers, which may have been
/// killed.
const LOOKS: u32 = 25;

impl Setup {
    /// Creates a repository for an authorized client, if the quotas allow one more.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Denied`] if a quota is reached, and for the reasons of
    /// [`Repositories::create`](crate::repositories::Repositories::create).
    pub(crate) fn create(&self, name: &RepositoryName) -> Result<()> {
        let text = name.as_str();
        let quotas = self.config.quotas.iter();
        let quotas = quotas.filter(|quota| quota.matches(text) && quota.repositories.is_some());
        let quotas: Vec<&Quota> = quotas.collect();
        if quotas.is_empty() {
            return self.repositories.create(name);
        }
        let _turn = self.repositories.turn_to_create()?;
        let before = self.counted(&quotas, text)?;
        if let Some(full) = full(&quotas, text, &before, 1) {
            return Err(full.refusal());
        }
        self.repositories.create(name)?;
        // Servers that share a store have no common lock.
        if self.repositories.store().is_some()
            && let Err(error) = self.keep(&quotas, text, &before)
        {
            self.repositories.remove(name)?;
            return Err(error);
        }
        Ok(())
    }

    /// Decides whether a newly created repository stays. Each server lists the names before and
    /// after the creation, so that at least one of two servers that create at the same moment sees
    /// the other name. If the quota is exceeded, a server withdraws if a new name sorts before its
    /// own name. The server with the first name waits for the others, so that exactly one server
    /// succeeds. The quota holds in the end, because a server responds only after it has seen that
    /// the quota is not exceeded.
    ///
    /// # Errors
    /// Fails for the same reasons as [`create`](Self::create).
    fn keep(&self, quotas: &[&Quota], name: &str, before: &BTreeSet<String>) -> Result<()> {
        for look in 1.. {
            let now = self.counted(quotas, name)?;
            let Some(full) = full(quotas, name, &now, 0) else {
                break;
            };
            let is_last = look == LOOKS;
            if is_last || full.is_another_first(name, &now, before) {
                return Err(full.refusal());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Returns the names of the repositories that a quota counts.
    fn counted(&self, quotas: &[&Quota], name: &str) -> Result<BTreeSet<String>> {
        let is_counted = |other: &str| quotas.iter().any(|quota| quota.counts(name, other));
        let names = self.repositories.names(is_counted)?;
        Ok(names.into_iter().collect())
    }
}

/// A quota that is exceeded.
struct QuotaExceeded<'a> {
    quota: &'a Quota,
    found: u64,
    most: u64,
}

impl QuotaExceeded<'_> {
    fn refusal(&self) -> Error {
        let QuotaExceeded { quota, found, most } = self;
        let what = format!("too many repositories: {found} of {most} exist");
        Error::new(ErrorKind::Denied, quota.reason(&what))
    }

    /// Returns whether another name that was created since `before` sorts before `name`.
    fn is_another_first(
        &self,
        name: &str,
        now: &BTreeSet<String>,
        before: &BTreeSet<String>,
    ) -> bool {
        let mut new = now.difference(before);
        let first = new.find(|other| self.quota.counts(name, other));
        first.is_some_and(|first| first != name)
    }
}

/// Returns the quota, if any, that does not allow so many repositories in addition to `names`.
fn full<'a>(
    quotas: &[&'a Quota],
    name: &str,
    names: &BTreeSet<String>,
    more: u64,
) -> Option<QuotaExceeded<'a>> {
    quotas.iter().find_map(|quota| {
        let found = names.iter().filter(|other| quota.counts(name, other));
        let found = found.count() as u64;
        let most = quota.repositories?;
        (found + more > most).then_some(QuotaExceeded { quota, found, most })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated server that creates a repository: its name, the names that it saw before, and
    /// whether its repository still exists.
    struct Server {
        name: String,
        before: BTreeSet<String>,
        stays: Option<bool>,
    }

    /// Simulates servers that list, create and list again, in the given order of their steps.
    fn outcome(most: u64, servers: usize, order: &[usize]) -> usize {
        let quota = Quota {
            repository: "a/**".to_owned(),
            repositories: Some(most),
            ..Quota::default()
        };
        let quotas = [&quota];
        let mut there: BTreeSet<String> = BTreeSet::from(["a/old".to_owned()]);
        let mut all: Vec<Option<Server>> = (0..servers).map(|_| None).collect();
        let mut created = vec![false; servers];
        for at in order {
            let name = format!("a/{at}");
            match &all[*at] {
                None => {
                    let room = full(&quotas, &name, &there, 1).is_none();
                    all[*at] = Some(Server {
                        name,
                        before: there.clone(),
                        stays: (!room).then_some(false),
                    });
                }
                Some(server) if server.stays.is_none() && !created[*at] => {
                    there.insert(server.name.clone());
                    created[*at] = true;
                }
                Some(_) => {}
            }
        }
        // The servers check in turn until each has a result.
        for _ in 0..servers + 1 {
            for server in all.iter_mut().flatten().filter(|it| it.stays.is_none()) {
                match full(&quotas, &server.name, &there, 0) {
                    None => server.stays = Some(true),
                    Some(full) => {
                        if full.is_another_first(&server.name, &there, &server.before) {
                            there.remove(&server.name);
                            server.stays = Some(false);
                        }
                    }
                }
            }
        }
        assert!(all.iter().flatten().all(|server| server.stays.is_some()));
        let kept = all.iter().flatten().filter(|it| it.stays == Some(true));
        let kept = kept.count();
        assert!(there.len() as u64 <= most && there.len() == kept + 1);
        kept
    }

    #[test]
    fn one_of_those_who_create_together_wins() {
        let mut orders = vec![Vec::new()];
        for _ in 0..6 {
            orders = orders
                .iter()
                .flat_map(|order: &Vec<usize>| {
                    (0..3).map(|next| [order.as_slice(), &[next]].concat())
                })
                .collect();
        }
        let is_whole =
            |order: &Vec<usize>| (0..3).all(|at| order.iter().filter(|it| **it == at).count() == 2);
        orders.retain(is_whole);
        assert_eq!(orders.len(), 90);
        for order in orders {
            for most in 2..4 {
                assert!(outcome(most, 3, &order) >= 1, "{most}: {order:?}");
            }
        }
    }
}

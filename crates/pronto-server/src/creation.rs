//! Creating repositories for clients, where quotas limit their number.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::names::RepositoryName;
use crate::quota::Quota;
use crate::state::Setup;
use crate::{Error, ErrorKind, Result};

/// The pauses between looks at what other servers do that have created a repository at the same moment. The one whose
/// name comes first waits for the others to withdraw.
const PAUSE: Duration = Duration::from_millis(200);

/// The number of looks after which a server stops waiting for others, which may have been killed.
const LOOKS: u32 = 25;

impl Setup {
    /// Creates a repository for a client who may do that, if the quotas allow one more.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`]: there are as many as a quota allows. As for
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

    /// Decides whether a repository that was just created stays. Each server looks before and after it creates one, so
    /// that of two who create at the same moment one sees the other. If there are too many, those withdraw that see a new
    /// name before their own, and the first one waits for them: one of them wins, and the quota holds in the end,
    /// because a server answers only when it has seen that there are not too many.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
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

/// A quota that has no room.
struct Full<'a> {
    quota: &'a Quota,
    found: u64,
    most: u64,
}

impl Full<'_> {
    fn refusal(&self) -> Error {
        let Full { quota, found, most } = self;
        let what = format!("there are {found} of {most} repositories");
        Error::new(ErrorKind::Denied, quota.reason(&what))
    }

    /// Returns whether another one of those that were created since `before` comes before `name`.
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

/// Returns a quota that has no room for so many repositories more than `names`.
fn full<'a>(
    quotas: &[&'a Quota],
    name: &str,
    names: &BTreeSet<String>,
    more: u64,
) -> Option<Full<'a>> {
    quotas.iter().find_map(|quota| {
        let found = names.iter().filter(|other| quota.counts(name, other));
        let found = found.count() as u64;
        let most = quota.repositories?;
        (found + more > most).then_some(Full { quota, found, most })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that creates a repository: its name, what it saw before, and whether it still has it.
    struct Server {
        name: String,
        before: BTreeSet<String>,
        stays: Option<bool>,
    }

    /// Plays servers that look, create and look again in every order of two steps each.
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
        // Each looks in turn, until all have an answer.
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

//! The memory that requests may hold: charged before it is held, and given back when the request ends.
//!
//! A [`Budget`] belongs to one request. It draws on accounts that it shares with others: that of its user or
//! address, and that of the whole server. A charge succeeds if every account has room.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The memory that several requests may hold together. `Send + Sync`.
#[derive(Debug)]
pub struct Account {
    /// The owner, for messages.
    owner: &'static str,
    most: u64,
    held: AtomicU64,
}

impl Account {
    /// Returns an account that may hold `most` bytes. `owner` completes the sentence "the requests of … hold".
    pub fn new(owner: &'static str, most: u64) -> Self {
        Account {
            owner,
            most,
            held: AtomicU64::new(0),
        }
    }

    /// Returns the bytes that are held.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        let taken = self.held.fetch_update(Relaxed, Relaxed, |held| {
            held.checked_add(bytes).filter(|sum| *sum <= self.most)
        });
        taken.is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Relaxed);
    }
}

/// The memory of one request. What it was charged is given back when it is dropped. `Send + Sync`.
#[derive(Debug, Default)]
pub struct Budget {
    accounts: Vec<Arc<Account>>,
    held: AtomicU64,
}

/// An account has no room for a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    owner: &'static str,
    most: u64,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exhausted { owner, most } = self;
        write!(
            f,
            "the requests of {owner} hold too much memory, of at most {most} bytes; try again later"
        )
    }
}

impl std::error::Error for Exhausted {}

impl Budget {
    /// Returns a budget that draws on `accounts`; without any it has no limit.
    pub fn new(accounts: Vec<Arc<Account>>) -> Self {
        Budget {
            accounts,
            held: AtomicU64::new(0),
        }
    }

    /// Charges `bytes` that are about to be held. Costs one atomic change for each account.
    ///
    /// # Errors
    /// An account has no room. Nothing is charged then.
    pub fn charge(&self, bytes: u64) -> Result<(), Exhausted> {
        for (at, account) in self.accounts.iter().enumerate() {
            if !account.take(bytes) {
                for before in self.accounts.iter().take(at) {
                    before.give_back(bytes);
                }
                return Err(Exhausted {
                    owner: account.owner,
                    most: account.most,
                });
            }
        }
        self.held.fetch_add(bytes, Relaxed);
        Ok(())
    }

    /// Returns the bytes that were charged.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// Gives back `bytes` that were charged, because they are not held any more.
    pub fn give_back(&self, bytes: u64) {
        let taken = self
            .held
            .fetch_update(Relaxed, Relaxed, |held| Some(held.saturating_sub(bytes)));
        // No more is given back than was charged.
        let bytes = bytes.min(taken.unwrap_or(0));
        for account in &self.accounts {
            account.give_back(bytes);
        }
    }

    /// Gives back all that was charged, because it is not held any more.
    pub fn release(&self) {
        let held = self.held.swap(0, Relaxed);
        for account in &self.accounts {
            account.give_back(held);
        }
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_needs_room_in_every_account() {
        let server = Arc::new(Account::new("all clients", 100));
        let user = Arc::new(Account::new("this user", 60));
        let of_user = || Budget::new(vec![Arc::clone(&server), Arc::clone(&user)]);
        let (one, other) = (of_user(), of_user());
        one.charge(40).expect("room");
        let error = other.charge(30).expect_err("the user has no room");
        assert!(error.to_string().contains("this user"), "{error}");
        assert_eq!((server.held(), user.held(), other.held()), (40, 40, 0));
        other.charge(20).expect("room");
        let stranger = Budget::new(vec![Arc::clone(&server)]);
        let error = stranger.charge(41).expect_err("the server has no room");
        assert!(error.to_string().contains("all clients"), "{error}");
        drop(one);
        stranger.charge(41).expect("room again");
        other.release();
        assert_eq!((server.held(), user.held()), (41, 0));
    }

    #[test]
    fn sums_do_not_overflow() {
        let account = Arc::new(Account::new("all clients", u64::MAX));
        let budget = Budget::new(vec![Arc::clone(&account)]);
        budget.charge(u64::MAX).expect("room");
        budget.charge(1).expect_err("no room");
        drop(budget);
        assert_eq!(account.held(), 0);
        Budget::default().charge(u64::MAX).expect("no limit");
    }
}

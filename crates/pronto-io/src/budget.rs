//! Memory budgets of requests. A request charges memory before it allocates the memory, and returns
//! the charge at its end.
//!
//! A [`RequestBudget`] belongs to one request. The budget draws on accounts that several requests share:
//! the account of the user or address, and the account of the whole server. A charge succeeds if
//! every account has room.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A memory limit that several requests share. `Send + Sync`.
#[derive(Debug)]
pub struct MemoryAccount {
    /// The owner of the account, for messages.
    owner: &'static str,
    most: u64,
    held: AtomicU64,
}

impl MemoryAccount {
    /// Returns an account with a limit of `most` bytes. `owner` completes the sentence "the
    /// requests of … hold".
    pub fn new(owner: &'static str, most: u64) -> Self {
        MemoryAccount {
            owner,
            most,
            held: AtomicU64::new(0),
        }
    }

    /// Returns the number of bytes that are charged to the account.
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

/// The memory budget of one request. Dropping the budget returns its charges to the accounts. `Send
/// + Sync`.
#[derive(Debug, Default)]
pub struct RequestBudget {
    accounts: Vec<Arc<MemoryAccount>>,
    held: AtomicU64,
}

/// The error of a charge for which an account has no room.
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
            "the requests of {owner} hold too much memory (limit: {most} bytes); try again later"
        )
    }
}

impl std::error::Error for Exhausted {}

impl RequestBudget {
    /// Returns a budget that draws on `accounts`. A budget without accounts has no limit.
    pub fn new(accounts: Vec<Arc<MemoryAccount>>) -> Self {
        RequestBudget {
            accounts,
            held: AtomicU64::new(0),
        }
    }

    /// Charges `bytes` before the caller allocates them. Costs one atomic operation for each
    /// account.
    ///
    /// # Errors
    /// Fails with [`Exhausted`] if an account has no room. No account is charged then.
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

    /// Returns the number of bytes that are charged to this budget.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// Returns `bytes` of the charge after the caller has freed the memory.
    pub fn give_back(&self, bytes: u64) {
        let taken = self
            .held
            .fetch_update(Relaxed, Relaxed, |held| Some(held.saturating_sub(bytes)));
        // Limits the returned bytes to the charge of this budget.
        let bytes = bytes.min(taken.unwrap_or(0));
        for account in &self.accounts {
            account.give_back(bytes);
        }
    }

    /// Returns the whole charge after the caller has freed the memory.
    pub fn release(&self) {
        let held = self.held.swap(0, Relaxed);
        for account in &self.accounts {
            account.give_back(held);
        }
    }
}

impl Drop for RequestBudget {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_needs_room_in_every_account() {
        let server = Arc::new(MemoryAccount::new("all clients", 100));
        let user = Arc::new(MemoryAccount::new("this user", 60));
        let of_user = || RequestBudget::new(vec![Arc::clone(&server), Arc::clone(&user)]);
        let (one, other) = (of_user(), of_user());
        one.charge(40).expect("room");
        let error = other.charge(30).expect_err("the user has no room");
        assert!(error.to_string().contains("this user"), "{error}");
        assert_eq!((server.held(), user.held(), other.held()), (40, 40, 0));
        other.charge(20).expect("room");
        let stranger = RequestBudget::new(vec![Arc::clone(&server)]);
        let error = stranger.charge(41).expect_err("the server has no room");
        assert!(error.to_string().contains("all clients"), "{error}");
        drop(one);
        stranger.charge(41).expect("room again");
        other.release();
        assert_eq!((server.held(), user.held()), (41, 0));
    }

    #[test]
    fn sums_do_not_overflow() {
        let account = Arc::new(MemoryAccount::new("all clients", u64::MAX));
        let budget = RequestBudget::new(vec![Arc::clone(&account)]);
        budget.charge(u64::MAX).expect("room");
        budget.charge(1).expect_err("no room");
        drop(budget);
        assert_eq!(account.held(), 0);
        RequestBudget::default().charge(u64::MAX).expect("no limit");
    }
}

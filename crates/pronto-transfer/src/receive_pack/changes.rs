//! Updates the refs of a push in transactions.
//!
//! A transaction needs memory and a lock file for each ref until its end, and a push may update a
//! million refs. A push that is not atomic is therefore split into several transactions, unless a
//! hook `reference-transaction` expects all refs at once. The memory is charged to the budget of
//! the client.

use std::ops::Range;

use pronto_repository::hooks;

use super::ReceivedPush;
use crate::refs::Edit;
use crate::{ErrorKind, Result};

/// The largest number of refs in a transaction, if the push may be split.
const MOST_REFS: usize = 32_768;

/// The memory of a transaction for each ref.
const REF_BYTES: u64 = 1_600;

const NO_MEMORY: &str = "the push updates too many refs at a time";

impl ReceivedPush<'_> {
    /// Applies all changes in one transaction, which fails as a whole (`--atomic`).
    pub(super) fn change_together(&mut self) -> Result<()> {
        let count = self.commands.len();
        if !self.charge_changes(count) {
            self.fail_all(NO_MEMORY);
            return Ok(());
        }
        let made = self.change_all();
        self.give_back_changes(count);
        made
    }

    fn change_all(&mut self) -> Result<()> {
        let mut edits = Vec::new();
        for at in 0..self.commands.len() {
            if !self.is_for_transaction(at) {
                continue;
            }
            edits.extend(self.edit(at)?);
            if self.commands.get(at).is_some_and(|it| it.error.is_some()) {
                self.fail_all("atomic push failure");
                return Ok(());
            }
        }
        if let Some(landing) = &self.options.landing {
            return self.land(&**landing, edits, true);
        }
        let mut transaction = self.repository.transaction();
        for edit in edits {
            transaction.push(edit);
        }
        match transaction.commit() {
            Ok(()) => Ok(()),
            Err(error) => self.fail_transaction(error, "atomic transaction failed"),
        }
    }

    /// Applies each possible change: first deletions, then the others.
    pub(super) fn change_each(&mut self) -> Result<()> {
        if let Some(landing) = &self.options.landing {
            let count = self.commands.len();
            if !self.charge_changes(count) {
                self.fail_all(NO_MEMORY);
                return Ok(());
            }
            let mut edits = self.edits(true, &mut 0, usize::MAX)?;
            edits.extend(self.edits(false, &mut 0, usize::MAX)?);
            let landed = self.land(&**landing, edits, false);
            self.give_back_changes(count);
            return landed;
        }
        let most = match hooks::exists(self.repository, "reference-transaction") {
            true => usize::MAX,
            false => MOST_REFS,
        };
        for deletes in [true, false] {
            let mut next = 0;
            while next < self.commands.len() {
                let first = next;
                let edits = self.edits(deletes, &mut next, most)?;
                self.change(edits, deletes, first..next)?;
            }
        }
        Ok(())
    }

    /// Applies the possible changes of `edits` in one transaction. They belong to the `commands`
    /// that delete refs, or to the others.
    fn change(&mut self, edits: Vec<Edit>, deletes: bool, commands: Range<usize>) -> Result<()> {
        let count = edits.len();
        if !self.charge_changes(count) {
            self.fail_open(deletes, commands, NO_MEMORY);
            return Ok(());
        }
        let mut transaction = self.repository.transaction();
        for edit in edits {
            transaction.push(edit);
        }
        let made = transaction.commit_each();
        self.give_back_changes(count);
        match made {
            Ok(refusals) => self.note_refusals(&refusals),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                self.bands.error(&error.to_string());
                self.fail_open(deletes, commands, "failed to update refs");
            }
        }
        Ok(())
    }

    /// Fails the `commands` that were part of the failed transaction, and not those that other
    /// transactions applied.
    fn fail_open(&mut self, deletes: bool, commands: Range<usize>, reason: &str) {
        for at in commands {
            if self.is_for_transaction(at)
                && let Some(command) = self.commands.get_mut(at)
                && command.deletes() == deletes
            {
                command.fail(reason);
            }
        }
    }

    /// Checks the commands that delete refs, or the others, from the position `next` on. Returns at
    /// most `most` accepted changes, and sets `next` to the position after the last checked
    /// command.
    fn edits(&mut self, deletes: bool, next: &mut usize, most: usize) -> Result<Vec<Edit>> {
        let mut edits = Vec::new();
        while *next < self.commands.len() && edits.len() < most {
            let command = self.commands.get(*next);
            let is_due = command.is_some_and(|it| it.deletes() == deletes);
            if is_due && self.is_for_transaction(*next) {
                edits.extend(self.edit(*next)?);
            }
            *next += 1;
        }
        Ok(edits)
    }

    /// Charges the memory for a transaction of `count` refs. Returns whether the budget suffices.
    fn charge_changes(&self, count: usize) -> bool {
        let budget = self.options.budget.as_ref();
        budget.is_none_or(|budget| budget.charge(count as u64 * REF_BYTES).is_ok())
    }

    fn give_back_changes(&self, count: usize) {
        if let Some(budget) = &self.options.budget {
            budget.give_back(count as u64 * REF_BYTES);
        }
    }
}

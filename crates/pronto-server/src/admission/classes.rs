//! The classes of owners, and the number of slots and queue entries that each class may have.

use super::{FOR_ADMINISTRATORS, FOR_USERS, SlotOwner};

/// The number of classes of owners.
pub(super) const CLASSES: usize = 3;

/// The classes in ascending order: clients without a user, users, and users who manage the server.
pub(super) const STRANGERS: usize = 0;
pub(super) const USERS: usize = 1;
pub(super) const ADMINISTRATORS: usize = 2;

/// Returns the class of an owner.
pub(super) fn class_of(owner: &SlotOwner) -> usize {
    match owner {
        SlotOwner::Network(_) => STRANGERS,
        SlotOwner::User(_) => USERS,
        SlotOwner::Administrator(_) => ADMINISTRATORS,
    }
}

/// A count for each class of owners, with the bounds. A class may also use the part of each lower
/// class.
#[derive(Debug)]
pub(super) struct Classes {
    most: [usize; CLASSES],
    used: [usize; CLASSES],
}

impl Classes {
    pub(super) fn new(count: usize) -> Self {
        let without = |part: usize| count - count / part;
        Classes {
            most: [without(FOR_USERS), without(FOR_ADMINISTRATORS), count],
            used: [0; CLASSES],
        }
    }

    /// Returns the total count of the class and of all lower classes.
    pub(super) fn up_to(&self, class: usize) -> usize {
        self.used.iter().take(class + 1).sum()
    }

    /// Returns whether the total count of the class and all lower classes has reached the bound of
    /// the class.
    pub(super) fn is_full(&self, class: usize) -> bool {
        let most = self.most.get(class);
        most.is_none_or(|most| self.up_to(class) >= *most)
    }

    /// Returns the first bound that leaves no room for an owner of the class.
    pub(super) fn bound(&self, class: usize) -> Option<usize> {
        (class..CLASSES).find(|class| self.is_full(*class))
    }

    pub(super) fn add(&mut self, class: usize) {
        if let Some(used) = self.used.get_mut(class) {
            *used += 1;
        }
    }

    pub(super) fn remove(&mut self, class: usize) {
        if let Some(used) = self.used.get_mut(class) {
            *used = used.saturating_sub(1);
        }
    }
}

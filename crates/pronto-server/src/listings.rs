//! A cache of ref advertisements, for equal requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pronto::ObjectId;
use pronto::upload_pack::{ListingCache, ListingKey};

/// A cache of ref advertisements in memory, with a limited total size. Each subject has one entry,
/// for its last state. `Send + Sync`: a lock is held for a lookup, and for a pass over the subjects
/// when entries are evicted.
#[derive(Debug)]
pub struct Listings {
    most_bytes: usize,
    entries: Mutex<CachedListings>,
}

#[derive(Debug, Default)]
struct CachedListings {
    by_subject: HashMap<ObjectId, Entry>,
    bytes: usize,
    /// The counter of uses, which orders entries by their last use.
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    state: ObjectId,
    listing: Arc<[u8]>,
    used: u64,
}

impl Listings {
    /// Returns an empty cache for advertisements of at most `most_bytes` in total.
    pub fn new(most_bytes: usize) -> Self {
        Listings {
            most_bytes,
            entries: Mutex::default(),
        }
    }
}

impl ListingCache for Listings {
    fn get(&self, key: &ListingKey) -> Option<Arc<[u8]>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let now = entries.clock;
        let entry = entries.by_subject.get_mut(&key.subject)?;
        if entry.state != key.state {
            return None;
        }
        entry.used = now;
        Some(Arc::clone(&entry.listing))
    }

    fn put(&self, key: ListingKey, listing: Arc<[u8]>) {
        if listing.len() > self.most_bytes {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        entries.bytes += listing.len();
        let entry = Entry {
            state: key.state,
            listing,
            used: entries.clock,
        };
        if let Some(before) = entries.by_subject.insert(key.subject, entry) {
            entries.bytes -= before.listing.len();
        }
        while entries.bytes > self.most_bytes {
            let oldest = entries
                .by_subject
                .iter()
                .min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(subject, _)| *subject) else {
                return;
            };
            if let Some(entry) = entries.by_subject.remove(&oldest) {
                entries.bytes -= entry.listing.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_were_not_used_make_room() {
        let listings = Listings::new(100);
        let key = |number: u8| ListingKey::of(&[number], b"");
        let list = |len: usize| -> Arc<[u8]> { vec![b'x'; len].into() };
        listings.put(key(1), list(40));
        listings.put(key(2), list(40));
        listings.put(key(2), list(50));
        assert!(listings.get(&key(1)).is_some());
        listings.put(key(3), list(20));
        assert!(listings.get(&key(2)).is_none());
        assert_eq!(listings.get(&key(1)).map(|list| list.len()), Some(40));
        assert!(listings.get(&key(3)).is_some());
        listings.put(key(4), list(101));
        assert!(listings.get(&key(4)).is_none());
        assert!(listings.get(&key(3)).is_some());
    }

    #[test]
    fn a_later_state_takes_the_place_of_earlier_ones() {
        let listings = Listings::new(100);
        let key = |state: &[u8]| ListingKey::of(b"refs", state);
        for state in [b"one".as_slice(), b"two", b"three"] {
            listings.put(key(state), vec![b'x'; 90].into());
        }
        assert!(listings.get(&key(b"two")).is_none());
        assert!(listings.get(&key(b"three")).is_some());
        let entries = listings.entries.lock().expect("no panic");
        assert_eq!((entries.by_subject.len(), entries.bytes), (1, 90));
    }
}

//! A small cache with object ids as keys.

use crate::{ObjectId, oid};

/// The number of slots: one for each value of the last byte of an id.
const SLOTS: usize = 256;

/// Caches one value for each last byte of an id. For loops over many ids of which some repeat, such
/// as the targets of all refs, in which the lookup of an object costs system calls. The 256 slots
/// are allocated with the first value. A lookup needs no search.
#[derive(Clone, Debug)]
pub struct IdCache<T> {
    slots: Vec<Option<(ObjectId, T)>>,
}

impl<T> Default for IdCache<T> {
    fn default() -> Self {
        IdCache { slots: Vec::new() }
    }
}

impl<T: Clone> IdCache<T> {
    /// Returns the cached value for `id`, or calls `ask` and caches its result.
    ///
    /// # Errors
    /// Fails with the errors of `ask`, which are not cached.
    pub fn get_or_insert_with<E>(
        &mut self,
        id: &oid,
        ask: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let slot = usize::from(id.as_bytes().last().copied().unwrap_or(0));
        if let Some(Some((known, answer))) = self.slots.get(slot)
            && **known == *id
        {
            return Ok(answer.clone());
        }
        let answer = ask()?;
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, None);
        }
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = Some((id.to_owned(), answer.clone()));
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(first: u8, last: u8) -> ObjectId {
        let mut bytes = [first; 20];
        bytes[19] = last;
        ObjectId::try_from(&bytes[..]).expect("it has the length of an id")
    }

    #[test]
    fn an_id_that_returns_is_not_asked_for_again() {
        let mut cache = IdCache::default();
        let mut asked = Vec::new();
        // The second and the third id share a slot.
        let ids = [id(1, 1), id(1, 2), id(2, 2), id(2, 2), id(1, 1), id(1, 2)];
        for id in ids {
            let answer = cache.get_or_insert_with(&id, || {
                asked.push(id);
                Ok::<_, ()>(id.to_string())
            });
            assert_eq!(answer, Ok(id.to_string()));
        }
        assert_eq!(asked, [ids[0], ids[1], ids[2], ids[5]]);
    }

    #[test]
    fn errors_are_asked_for_again() {
        let mut cache = IdCache::default();
        assert_eq!(
            cache.get_or_insert_with(&id(1, 1), || Err::<u8, _>("no")),
            Err("no")
        );
        assert_eq!(
            cache.get_or_insert_with(&id(1, 1), || Ok::<_, &str>(1)),
            Ok(1)
        );
    }
}

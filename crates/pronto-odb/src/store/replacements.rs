//! Replaces objects when they are read (`refs/replace/`).

use std::collections::HashMap;
use std::sync::{Arc, Once};

use pronto_hash::{ObjectId, oid};

use super::{FirstUse, Store};
use crate::error::{Error, ErrorKind};

/// The longest chain of replacements (`refs/replace/`) that is followed.
const MAX_REPLACE_DEPTH: usize = 5;

/// The replacements of a store.
#[derive(Debug)]
pub(super) struct Replacements {
    objects: HashMap<ObjectId, ObjectId>,
    receiver: Option<Box<dyn FirstUse>>,
    used: Once,
}

impl Store {
    /// Returns a clone that replaces objects (`refs/replace/`): reading a key of `replacements`
    /// returns the object of its value.
    #[must_use]
    pub fn with_replacements(&self, replacements: HashMap<ObjectId, ObjectId>) -> Store {
        self.replacing(replacements, None)
    }

    /// Does the same as [`with_replacements`](Self::with_replacements), and calls `receiver` before
    /// the first read of an object that may be replaced.
    #[must_use]
    pub fn with_reported_replacements(
        &self,
        replacements: HashMap<ObjectId, ObjectId>,
        receiver: Box<dyn FirstUse>,
    ) -> Store {
        self.replacing(replacements, Some(receiver))
    }

    fn replacing(
        &self,
        objects: HashMap<ObjectId, ObjectId>,
        receiver: Option<Box<dyn FirstUse>>,
    ) -> Store {
        let is_needed = !objects.is_empty() || receiver.is_some();
        let replacements = Replacements {
            objects,
            receiver,
            used: Once::new(),
        };
        Store {
            inner: self.inner.clone(),
            replacements: is_needed.then(|| Arc::new(replacements)),
        }
    }

    /// Returns a clone without replacements.
    #[must_use]
    pub fn without_replacements(&self) -> Store {
        Store {
            inner: self.inner.clone(),
            replacements: None,
        }
    }

    /// Returns whether the store has replacements.
    pub fn has_replacements(&self) -> bool {
        let replacements = self.replacements.as_ref();
        replacements.is_some_and(|replacements| !replacements.objects.is_empty())
    }

    /// Calls the receiver of [`with_reported_replacements`](Self::with_reported_replacements), if no
    /// object was read yet: for a caller that learns of an object without reading it.
    pub fn use_replacements(&self) {
        let Some(replacements) = &self.replacements else {
            return;
        };
        if let Some(receiver) = &replacements.receiver {
            replacements.used.call_once(|| receiver.first_used());
        }
    }

    /// Returns the id of the object that replaces `id`, or `id` itself.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Limit` if the chain of replacements is too long.
    pub fn replaced(&self, id: &oid) -> Result<ObjectId, Error> {
        let mut id = id.to_owned();
        let Some(replacements) = &self.replacements else {
            return Ok(id);
        };
        self.use_replacements();
        for _ in 0..MAX_REPLACE_DEPTH {
            match replacements.objects.get(&id) {
                Some(replacement) => id = *replacement,
                None => return Ok(id),
            }
        }
        Err(Error::new(ErrorKind::Limit, "replace depth too high").on_object(id))
    }
}

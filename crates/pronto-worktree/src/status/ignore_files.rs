//! Ignore files that threads share. Each is read once.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use bstr::{BStr, BString, ByteSlice};

use crate::ignore::Reader;

/// The ignore files that were read, by directory. Any thread may use the value.
pub(super) struct IgnoreFiles<'a> {
    read: &'a Reader<'a>,
    known: RwLock<HashMap<BString, Option<Vec<u8>>>>,
}

impl<'a> IgnoreFiles<'a> {
    pub(super) fn new(read: &'a Reader<'a>) -> IgnoreFiles<'a> {
        IgnoreFiles {
            read,
            known: RwLock::default(),
        }
    }

    /// Returns the ignore file of `directory`. Two threads that request it at the same time both read
    /// it.
    pub(super) fn get(&self, directory: &BStr) -> Option<Vec<u8>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(content) = known.get(directory.as_bytes().as_bstr()) {
            return content.clone();
        }
        drop(known);
        let content = (self.read)(directory);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(directory.to_owned(), content.clone());
        content
    }
}

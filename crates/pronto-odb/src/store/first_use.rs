//! Tells a receiver that a part of the store is used for the first time.

use std::fmt;

use super::Store;

/// Learns that the alternates or the replacements of a store are used for the first time, which is
/// when Git reads them and reports what is wrong with them.
pub trait FirstUse: fmt::Debug + Send + Sync {
    /// Called on the thread of the first use. Several threads may call it at once.
    fn first_used(&self);
}

impl Store {
    /// Registers `receiver`, which is called before the first lookup of an object in this store or in
    /// a clone of it. Only the first registration has an effect.
    pub fn on_first_lookup(&self, receiver: Box<dyn FirstUse>) {
        // Another caller may have registered a receiver first.
        let _ = self.inner.first_lookup.set(receiver);
    }

    /// Calls the receiver of [`on_first_lookup`](Self::on_first_lookup): for a caller that uses the
    /// alternates without looking for an object.
    pub fn use_alternates(&self) {
        if let Some(receiver) = self.inner.first_lookup.get() {
            receiver.first_used();
        }
    }
}

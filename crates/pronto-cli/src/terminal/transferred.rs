//! Counts the objects and bytes that an operation transfers, for JSON documents.

use std::sync::{Arc, Mutex, PoisonError};

use pronto_io::progress::{Meter, Progress, ProgressMessage};

use crate::json::Json;

/// The phases that transfer objects.
const TITLES: &[&str] = &["Receiving objects", "Unpacking objects", "Writing objects"];

/// A [`Progress`] that passes everything on, and keeps the meters of phases that transfer objects.
pub(crate) struct TransferCounter {
    inner: Arc<dyn Progress>,
    meters: Mutex<Vec<Meter>>,
}

impl TransferCounter {
    /// Creates a counter that passes progress on to `inner`.
    pub(crate) fn new(inner: Arc<dyn Progress>) -> Arc<Self> {
        Arc::new(TransferCounter {
            inner,
            meters: Mutex::default(),
        })
    }

    /// Returns the numbers of transferred objects and bytes, and drops the meters, so that `inner`
    /// notices abandoned phases. Must be called when the operation has ended.
    pub(crate) fn take(&self) -> Json {
        let meters = self.meters.lock();
        let meters = std::mem::take(&mut *meters.unwrap_or_else(PoisonError::into_inner));
        let sum = |count: fn(&Meter) -> u64| meters.iter().map(count).sum::<u64>();
        Json::Object(vec![
            ("objects", sum(Meter::done).into()),
            ("bytes", sum(Meter::bytes).into()),
        ])
    }
}

impl Progress for TransferCounter {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        let meter = self.inner.begin(title, total);
        if TITLES.contains(&title) {
            let meters = self.meters.lock();
            let mut meters = meters.unwrap_or_else(PoisonError::into_inner);
            meters.push(meter.clone());
        }
        meter
    }

    fn message(&self, message: ProgressMessage<'_>) {
        self.inner.message(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_counted_and_other_phases_are_not() {
        let counter = TransferCounter::new(Arc::new(()));
        for (title, steps) in [("Receiving objects", 3), ("Resolving deltas", 5)] {
            let meter = counter.begin(title, None);
            meter.add(steps);
            meter.add_bytes(steps * 10);
        }
        let expected = |objects: u64, bytes: u64| {
            Json::Object(vec![("objects", objects.into()), ("bytes", bytes.into())])
        };
        assert_eq!(counter.take(), expected(3, 30));
        assert_eq!(counter.take(), expected(0, 0));
    }
}

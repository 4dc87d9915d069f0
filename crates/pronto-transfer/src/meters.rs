//! Formats the progress of a server as text for the client.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pronto_io::progress::Meter;

/// The meters of one operation.
#[derive(Debug, Default)]
pub(crate) struct OperationMeters(Mutex<Vec<ShownMeter>>);

#[derive(Debug)]
struct ShownMeter {
    meter: Meter,
    is_reported: bool,
}

impl OperationMeters {
    /// Adds `meter` to the shown meters.
    pub(crate) fn add(&self, meter: &Meter) {
        self.locked().push(ShownMeter {
            meter: meter.clone(),
            is_reported: false,
        });
    }

    /// Returns the progress since the last call; `is_end` ends all meters.
    pub(crate) fn news(&self, is_end: bool) -> String {
        let mut text = String::new();
        let mut meters = self.locked();
        let count = meters.len();
        for (number, shown) in meters.iter_mut().enumerate() {
            let meter = &shown.meter;
            let is_over = meter.is_finished() || is_end;
            if shown.is_reported || !is_over && number + 1 < count {
                continue;
            }
            let done = meter.done();
            let (title, end) = (meter.title(), if is_over { ", done.\n" } else { "\r" });
            match meter.total() {
                Some(total) => {
                    let done = if is_over { total } else { done };
                    let percent = (done * 100).checked_div(total).unwrap_or(100);
                    text.push_str(&format!("{title}: {percent:3}% ({done}/{total}){end}"));
                }
                None => text.push_str(&format!("{title}: {done}{end}")),
            }
            shown.is_reported = is_over;
        }
        text
    }

    fn locked(&self) -> MutexGuard<'_, Vec<ShownMeter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The open regions of each thread.

use std::cell::RefCell;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::record::{Event, Region, ThreadPosition};
use crate::traces::Traces;

/// The maximum length of a thread name. Longer names are truncated, as in Git.
const NAME_LENGTH_LIMIT: usize = 24;

thread_local! {
    static THREAD: RefCell<Option<Thread>> = const { RefCell::new(None) };
}

/// The state of one thread.
#[derive(Debug)]
pub(crate) struct Thread {
    name: String,
    begun: Instant,
    open: Vec<(u64, Region, Instant)>,
    is_main: bool,
    traces: Weak<Traces>,
}

impl Thread {
    /// Returns the state of the thread for a record.
    pub(crate) fn position(&self) -> ThreadPosition<'_> {
        ThreadPosition {
            name: &self.name,
            nesting: self.open.len() + 1,
        }
    }

    /// Returns the time since the start of the innermost open region.
    pub(crate) fn within(&self) -> Duration {
        self.open
            .last()
            .map_or(self.begun, |(_, _, begun)| *begun)
            .elapsed()
    }

    pub(crate) fn enter(&mut self, id: u64, region: Region) {
        self.open.push((id, region, Instant::now()));
    }

    /// Closes the region `id`, and the regions inside of it that are still open.
    pub(crate) fn leave(&mut self, id: u64) -> Option<(Region, Duration)> {
        let at = self.open.iter().rposition(|(open, _, _)| *open == id)?;
        self.open.truncate(at + 1);
        let (_, region, begun) = self.open.pop()?;
        Some((region, begun.elapsed()))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let (false, Some(traces)) = (self.is_main, self.traces.upgrade()) {
            let event = Event::ThreadExit {
                lasted: self.begun.elapsed(),
            };
            traces.emit_as(event, file!(), line!(), self.position());
        }
    }
}

/// Registers the calling thread as the main thread.
pub(crate) fn set_main(traces: Weak<Traces>, begun: Instant) {
    THREAD.with_borrow_mut(|thread| {
        let name = "main".to_owned();
        *thread = Some(Thread {
            name,
            begun,
            open: Vec::new(),
            is_main: true,
            traces,
        });
    });
}

/// Calls `act` with the state of this thread. Records the start of a new thread first.
pub(crate) fn with<R>(traces: &Arc<Traces>, act: impl FnOnce(&mut Thread) -> R) -> R {
    THREAD.with_borrow_mut(|slot| {
        let known = slot
            .as_ref()
            .is_some_and(|thread| thread.traces.as_ptr() == Arc::as_ptr(traces));
        if !known {
            let number = traces.next_thread();
            let mut name = format!("th{number:02}:");
            name.push_str(std::thread::current().name().unwrap_or_default());
            while name.len() > NAME_LENGTH_LIMIT {
                name.pop();
            }
            let thread = Thread {
                name,
                begun: Instant::now(),
                open: Vec::new(),
                is_main: false,
                traces: Arc::downgrade(traces),
            };
            traces.emit_as(Event::ThreadStart, file!(), line!(), thread.position());
            *slot = Some(thread);
        }
        match slot {
            Some(thread) => act(thread),
            None => unreachable!("the state was just put there"),
        }
    })
}

/// Records `event` for the calling thread.
pub(crate) fn emit(traces: &Arc<Traces>, event: Event<'_>, file: &str, line: u32) {
    with(traces, |thread| {
        traces.emit_as(event, file, line, thread.position());
    });
}

//! Work of a server for its store: upkeep, on a thread of its own, and reports of faults.

use std::sync::Arc;
use std::thread::JoinHandle;

use pronto_io::interrupt::Interrupt;
use pronto_store::Pass;

use crate::log::Event;
use crate::state::State;
use crate::{Error, ErrorKind, Result};

/// Upkeep that runs.
pub(crate) struct Keeping {
    interrupt: Interrupt,
    thread: JoinHandle<()>,
}

/// Tells the log of faults of the store, and of the disk of its cache.
pub(crate) fn report_faults(state: &Arc<State>) {
    if let Some(store) = state.setup().repositories.store() {
        let state = Arc::downgrade(state);
        store.report_to(Box::new(move |fault| {
            if let Some(state) = state.upgrade() {
                let message = fault.to_owned();
                state.tell(&Event::Fault { message });
            }
        }));
    }
}

impl Keeping {
    /// Starts upkeep if it is the role of this server.
    ///
    /// # Errors
    /// The directory of temporary files cannot be made, or there is no thread.
    pub(crate) fn start(state: &Arc<State>) -> Result<Option<Self>> {
        let setup = state.setup();
        let Some(repositories) = setup.repositories.store() else {
            return Ok(None);
        };
        let Some(role) = repositories.begin_upkeep()? else {
            return Ok(None);
        };
        let interrupt = Interrupt::new();
        let (stop, state) = (interrupt.clone(), Arc::clone(state));
        let run = move || {
            role.run(&stop, &|pass: &Pass<'_>| {
                let done = pass.result.as_ref();
                state.tell(&Event::Upkeep {
                    repository: pass.repository.to_owned(),
                    result: done.map(ToString::to_string).map_err(ToString::to_string),
                    duration: pass.took,
                });
            });
        };
        let thread = std::thread::Builder::new().name("upkeep".into()).spawn(run);
        let thread = thread.map_err(|error| {
            Error::new(ErrorKind::Io, "cannot start the thread for upkeep").because(error)
        })?;
        Ok(Some(Keeping { interrupt, thread }))
    }

    /// Interrupts upkeep. A step that is not committed is lost, and done again by another process.
    pub(crate) fn interrupt(&self) {
        self.interrupt.trigger();
    }

    /// Waits for the end of upkeep.
    pub(crate) fn join(self) {
        // It has crashed, which was printed.
        let _ = self.thread.join();
    }
}

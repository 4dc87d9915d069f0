//! Background work of a server for its store: upkeep on a separate thread, and reports of faults.

use std::sync::Arc;
use std::thread::JoinHandle;

use pronto_io::interrupt::Interrupt;
use pronto_store::Pass;

use crate::log::Event;
use crate::state::ServerState;
use crate::{Error, ErrorKind, Result};

/// The upkeep thread.
pub(crate) struct Keeping {
    interrupt: Interrupt,
    thread: JoinHandle<()>,
}

/// Reports faults of the store, and of the disk of its cache, in the log.
pub(crate) fn report_faults(state: &Arc<ServerState>) {
    if let Some(store) = state.setup().repositories.store() {
        let state = Arc::downgrade(state);
        store.report_to(Box::new(move |fault| {
            if let Some(state) = state.upgrade() {
                let message = fault.to_owned();
                state.on_event(&Event::Fault { message });
            }
        }));
    }
}

impl Keeping {
    /// Starts upkeep if it is a role of this server.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the directory of temporary files cannot be created, or the
    /// system cannot create a thread.
    pub(crate) fn start(state: &Arc<ServerState>) -> Result<Option<Self>> {
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
                state.on_event(&Event::Upkeep {
                    repository: pass.repository.to_owned(),
                    result: done.map(ToString::to_string).map_err(ToString::to_string),
                    duration: pass.took,
                });
            });
        };
        let thread = std::thread::Builder::new().name("upkeep".into()).spawn(run);
        let thread = thread.map_err(|error| {
            Error::new(ErrorKind::Io, "cannot start the upkeep thread").because(error)
        })?;
        Ok(Some(Keeping { interrupt, thread }))
    }

    /// Interrupts upkeep. A step that is not committed is lost, and another process repeats it.
    pub(crate) fn interrupt(&self) {
        self.interrupt.trigger();
    }

    /// Waits for the end of upkeep.
    pub(crate) fn join(self) {
        // If the thread has panicked, the message was printed.
        let _ = self.thread.join();
    }
}

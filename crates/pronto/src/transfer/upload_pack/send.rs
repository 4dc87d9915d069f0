//! Makes the pack, and sends it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;
use pronto_odb::packing::Counts;

use super::bands::{Band, Bands, Data};
use super::hook::{self, Hook};
use super::wish::Wish;
use super::{Ended, Session, unwritable, uris};
use crate::pack_objects::{Missing, Select, Tips, select_filtered};
use crate::{ErrorKind, Repository, Result};

/// The interval of progress messages to the client.
const TICK: Duration = Duration::from_secs(1);

impl Session<'_> {
    /// Sends a pack of what is wanted, of the history in `view`, and ends the side band.
    pub(super) fn send(&mut self, view: &Repository, wish: &Wish) -> Result<Ended> {
        let bands = Bands::new(
            &mut *self.out,
            wish.band,
            wish.no_progress,
            self.settings.keep_alive,
        );
        let (stop, stopped) = channel::<()>();
        let tick = self
            .settings
            .keep_alive
            .map_or(TICK, |alive| alive.min(TICK));
        let (hook, interrupt) = (self.settings.hook.as_ref(), self.interrupt);
        let sent = std::thread::scope(|scope| {
            let bands = &bands;
            let ticker = move || {
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(tick) {
                    // A broken connection is detected when data are sent.
                    let _ = bands.tick();
                }
            };
            // Without it there is only less to see.
            let ticking = match wish.band {
                Band::None => None,
                _ => std::thread::Builder::new().spawn_scoped(scope, ticker).ok(),
            };
            let sent = match hook {
                Some(hook) => hook::run(&Hook { hook, view, wish }, bands),
                None => pack(view, wish, bands, interrupt),
            };
            drop(stop);
            drop(ticking);
            sent
        });
        let error = match sent {
            Ok(counts) => {
                bands.end(counts.as_ref()).map_err(unwritable)?;
                return Ok(Ended::Served);
            }
            Err(error) => error,
        };
        let is_ours = *error.kind() != ErrorKind::Interrupted && !bands.is_broken();
        match is_ours {
            true => bands.abort(&error).map(Ended::Aborted).map_err(unwritable),
            false => Err(error),
        }
    }
}

fn pack(
    view: &Repository,
    wish: &Wish,
    bands: &Bands<'_>,
    interrupt: &Interrupt,
) -> Result<Option<Counts>> {
    uris::check(view)?;
    let select = Select {
        thin: wish.thin && !wish.haves.is_empty(),
        sparse: view.config().bool_or("pack.usesparse", true)?,
        all_edges: wish.thin && wish.is_cut,
        missing: missing(view, wish)?,
        ..Select::default()
    };
    let (wants, haves) = (&wish.wants[..], &wish.haves[..]);
    let watch: (&dyn Progress, &Interrupt) = (bands, interrupt);
    let mut selection = match &wish.filter {
        Some(filter) => select_filtered(view, Tips { wants, haves }, filter, &select, watch)?,
        None => view.select_objects(wants, haves, &select, watch)?,
    };
    if wish.include_tags {
        view.include_tags(&mut selection)?;
    }
    if !wish.uri_protocols.is_empty() {
        let uris = uris::leave_out(view, &wish.uri_protocols, &mut selection)?;
        bands.uris(&uris).map_err(unwritable)?;
    }
    let count = (selection.members.len() + selection.bases.len()) as u64;
    let meter = bands.begin("Counting objects", Some(count));
    meter.add(count);
    meter.finish();
    let mut options = view.packing_options()?;
    options.offset_deltas = wish.offset_deltas;
    let mut data = Data(bands);
    let sent = view.send_pack(&selection, &options, &mut data, watch);
    sent.map(|(_, counts)| Some(counts))
}

/// What happens to objects that a promisor remote has and this repository does not. By default the
/// server does not fetch for its clients.
fn missing(view: &Repository, wish: &Wish) -> Result<Missing> {
    if !view.has_promisor()? {
        return Ok(Missing::Fail);
    }
    if !wish.promisors.is_empty() {
        return Ok(Missing::LeaveOut);
    }
    match view.environment().boolean("GIT_NO_LAZY_FETCH", true)? {
        true => Ok(Missing::Fail),
        false => Ok(Missing::Fetch),
    }
}

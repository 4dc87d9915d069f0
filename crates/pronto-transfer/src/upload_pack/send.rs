//! Creates the pack, and sends it.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_io::watch::Watch;
use pronto_odb::packing::PackCounts;
use pronto_storage::pack_objects::{
    self, MissingObjects, ReceiverTips, Select, SelectedObjects, select_filtered,
};

use super::bands::{Band, DataBand, UploadBands};
use super::cache::{self, PackCache};
use super::cut::Deepening;
use super::hook::{self, PackObjectsHook};
use super::selections::{SelectionHandle, Selections};
use super::wish::Wish;
use super::{ConversationEnd, UploadSession, unwritable, uris};
use crate::remote::Exact;
use crate::{Error, ErrorKind, Repository, Result};

/// The interval of progress messages to the client.
const TICK: Duration = Duration::from_secs(1);

/// Records a request in the trace (`fetch-info`).
pub(super) fn record(wish: &Wish, want_refs: usize, deepening: &Deepening) {
    let filter = match &wish.filter {
        Some(filter) => format!("\"{}\"", filter.config_name()),
        None => "null".to_owned(),
    };
    let json = format!(
        "{{\"haves\":{},\"wants\":{},\"want-refs\":{want_refs},{},\"filter\":{filter}}}",
        wish.haves.len(),
        wish.wants.len(),
        deepening.traced()
    );
    pronto_io::data_json!("upload-pack", "fetch-info", json);
}

impl UploadSession<'_> {
    /// Sends a pack with the wanted objects, of the history in `view`, and ends the sideband.
    pub(super) fn send(&mut self, view: &Repository, wish: &Wish) -> Result<ConversationEnd> {
        let bands = UploadBands::new(
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
        let hook = self.settings.hook.as_ref();
        let means = Means {
            cache: self.options.packs.as_deref(),
            selections: self.options.selections.as_deref(),
            interrupt: self.interrupt,
        };
        let sent = std::thread::scope(|scope| {
            let bands = &bands;
            let ticker = move || {
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(tick) {
                    // A broken connection is detected when data are sent.
                    let _ = bands.tick();
                }
            };
            // Without the thread, only progress is missing.
            let ticking = match wish.band {
                Band::None => None,
                _ => std::thread::Builder::new().spawn_scoped(scope, ticker).ok(),
            };
            let sent = match hook {
                Some(hook) => hook::run(&PackObjectsHook { hook, view, wish }, bands),
                None => pack(view, wish, bands, means),
            };
            drop(stop);
            drop(ticking);
            sent
        });
        let error = match sent {
            Ok(counts) => {
                bands.end(counts.as_ref()).map_err(unwritable)?;
                return Ok(ConversationEnd::Served);
            }
            Err(error) => error,
        };
        let is_ours = error.kind() != ErrorKind::Interrupted && !bands.is_broken();
        match is_ours {
            true => bands
                .abort(&error)
                .map(ConversationEnd::Aborted)
                .map_err(unwritable),
            false => Err(error),
        }
    }
}

/// The shared caches, and the interrupt, for creating a pack.
#[derive(Clone, Copy)]
struct Means<'a> {
    cache: Option<&'a dyn PackCache>,
    selections: Option<&'a Selections>,
    interrupt: &'a Interrupt,
}

fn pack(
    view: &Repository,
    wish: &Wish,
    bands: &UploadBands<'_>,
    means: Means<'_>,
) -> Result<Option<PackCounts>> {
    uris::check(view)?;
    let mut options = pack_objects::packing_options(view)?;
    options.offset_deltas = wish.offset_deltas;
    let key = match (means.cache, means.selections) {
        (None, None) => None,
        _ => cache::key(view, wish, &options)?,
    };
    let is_copied = key.is_some() && cache::is_copied(view, wish)?;
    let mut make = |out: &mut dyn Write| {
        let select = || select(view, wish, bands, means.interrupt);
        // A shared pack is created only once anyway.
        let held = match (means.selections, &key) {
            (Some(selections), Some(key)) if is_copied => {
                selections.get(key, select, means.interrupt)?
            }
            _ => SelectionHandle::alone(select()?),
        };
        let selection = &*held.selection;
        let watch = Watch::from(means.interrupt).with_progress(bands);
        match pack_objects::send(view, selection, &options, out, &watch) {
            Ok(sent) => Ok(sent.counts),
            Err(error) => Err(unreadable(view, selection, error)),
        }
    };
    let mut data = DataBand(bands);
    let counts = match (means.cache, &key) {
        (Some(cache), Some(key)) if !is_copied => {
            cache.send(key, &mut data, &mut make, means.interrupt)
        }
        _ => make(&mut data),
    };
    counts.map(Some)
}

/// Selects the objects of the pack, and sends the URIs of packs that the client downloads itself.
fn select(
    view: &Repository,
    wish: &Wish,
    bands: &UploadBands<'_>,
    interrupt: &Interrupt,
) -> Result<SelectedObjects> {
    let select = Select {
        thin: wish.thin && !wish.haves.is_empty(),
        sparse: view.config().bool_or("pack.usesparse", true)?,
        all_edges: wish.thin && wish.is_cut,
        blocks: wish.uri_protocols.is_empty(),
        ..Select::default()
    };
    let mut selection = selected(view, wish, select, bands, interrupt)?;
    if wish.include_tags {
        pack_objects::include_tags(view, &mut selection)?;
    }
    if !wish.uri_protocols.is_empty() {
        let uris = uris::leave_out(view, &wish.uri_protocols, &mut selection)?;
        bands.uris(&uris).map_err(unwritable)?;
    }
    Ok(selection)
}

/// Converts `error` into Git's message for a missing object, if a missing object is the reason.
fn unreadable(view: &Repository, selection: &SelectedObjects, error: Error) -> Error {
    let ids = selection.members.iter().map(|member| member.id);
    let ids: Vec<ObjectId> = ids.collect();
    let Some(Ok(found)) = view.objects().ok().map(|store| store.contains_batch(&ids)) else {
        return error;
    };
    match ids.iter().zip(found).find(|(_, is_here)| !is_here) {
        Some(_) if view.has_promisor().is_ok_and(|is_partial| is_partial) => Error::new(
            ErrorKind::MissingObject,
            "lazy fetching disabled; some objects may not be available",
        ),
        Some((id, _)) => Error::new(ErrorKind::MissingObject, format!("unable to read {id}")),
        None => error,
    }
}

/// Selects the objects of the pack. Missing objects of a promisor remote are left out if the client
/// can use that remote. By default the server does not fetch objects for its clients.
fn selected(
    view: &Repository,
    wish: &Wish,
    mut select: Select,
    bands: &UploadBands<'_>,
    interrupt: &Interrupt,
) -> Result<SelectedObjects> {
    let is_partial = view.has_promisor()?;
    let leaves_out = is_partial && !wish.promisors.is_empty();
    let fetches = is_partial && !view.environment().boolean("GIT_NO_LAZY_FETCH", true)?;
    if leaves_out || fetches {
        select.missing = MissingObjects::LeaveOut;
    }
    let (wants, haves) = (&wish.wants[..], &wish.haves[..]);
    let once = |watch: &Watch<'_>| match &wish.filter {
        Some(filter) => {
            select_filtered(view, ReceiverTips { wants, haves }, filter, &select, watch)
        }
        None => pack_objects::select(view, wants, haves, &select, watch),
    };
    let watch = Watch::from(interrupt).with_progress(bands);
    if !fetches || leaves_out {
        return once(&watch);
    }
    let exact = Exact {
        repository: view,
        watch: &watch,
    };
    exact.select(view.objects()?, once)
}

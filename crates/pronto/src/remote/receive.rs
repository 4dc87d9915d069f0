//! Taking in the pack that the other side sends, while it arrives.

use std::path::Path;

use pronto_hash::Kind;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;
use pronto_odb::Store;
use pronto_pack::indexer::{Context, Existing, Inspect, Options, Outcome, index_stream};
use pronto_wire::client::Pack;

use super::connection::from_wire;
use crate::Result;
use crate::config::Config;
use crate::packs::{self, from_pack};

/// Where a pack goes and what is to be looked at on the way.
pub(crate) struct Receive<'a> {
    /// The directory for the pack and its indexes.
    pub(crate) directory: &'a Path,
    pub(crate) hash: Kind,
    pub(crate) config: &'a Config,
    /// What is here already: bases of thin packs, and objects that must not change.
    pub(crate) existing: Option<&'a Store>,
    pub(crate) inspect: Option<&'a dyn Inspect>,
    /// What the file says that marks the pack as one whose links may be missing.
    pub(crate) promisor: Option<Vec<u8>>,
    /// Whether the files must be on the disk before they get their names.
    pub(crate) sync: bool,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) interrupt: &'a Interrupt,
}

/// Reads `pack` to its end and indexes it as it arrives.
///
/// # Errors
/// The connection breaks, the pack is not sound, or the files cannot be written. Nothing stays.
pub(crate) fn receive_pack(pack: &mut Pack<'_>, receive: &Receive<'_>) -> Result<Outcome> {
    let options = options(receive)?;
    let context = Context {
        existing: receive.existing.map(|store| store as &dyn Existing),
        inspect: receive.inspect,
        progress: receive.progress,
        interrupt: Some(receive.interrupt),
        ..Context::default()
    };
    let indexed = index_stream(pack, receive.directory, &options, &context);
    // Why the connection broke says more than that the pack ended too early.
    if indexed.is_err()
        && let Some(error) = pack.take_failure()
    {
        return Err(from_wire(error));
    }
    let outcome = indexed.map_err(from_pack)?;
    pack.finish().map_err(from_wire)?;
    Ok(outcome)
}

fn options(receive: &Receive<'_>) -> Result<Options> {
    let mut options = packs::indexer_options(receive.config, receive.hash)?;
    options.fix_thin = receive.existing.is_some();
    options.sync = receive.sync;
    options.promisor.clone_from(&receive.promisor);
    options.reverse_index = receive.config.bool_or("pack.writereverseindex", true)?;
    Ok(options)
}

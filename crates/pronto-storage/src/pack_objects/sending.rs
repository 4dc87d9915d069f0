//! Writes a selection as a pack, and reports the phases around that.

use std::io::Write;

use pronto_io::progress::ProgressMessage;
use pronto_io::watch::Watch;
use pronto_odb::packing::{Options, PackContents, PackCounts};
use pronto_pack::writer::sink::Streamed;
use pronto_repository::objects::from_odb;
use pronto_repository::{Repository, Result};

use super::SelectedObjects;

/// Writes a pack of `selection` to `out`: see [`pack_to`](pronto_odb::Store::pack_to).
///
/// # Errors
/// - Fails with [`Object`](pronto_repository::ErrorKind::Object) if an object is missing or malformed.
/// - Fails with [`Io`](pronto_repository::ErrorKind::Io) if writing fails.
/// - Fails with [`Interrupted`](pronto_repository::ErrorKind::Interrupted).
pub fn send(
    repository: &Repository,
    selection: &SelectedObjects,
    options: &Options,
    out: &mut dyn Write,
    watch: &Watch<'_>,
) -> Result<SentPack> {
    selection.report_count(watch);
    let contents = PackContents {
        members: &selection.members,
        bases: &selection.bases,
        receiver_has: None,
        whole: Some(&selection.whole),
        bitmapped: selection.bitmapped.as_deref(),
        block: selection.block.as_ref(),
        known: selection.known.as_ref(),
    };
    let sent = repository
        .objects()?
        .pack_to(&contents, options, out, watch);
    let (streamed, counts) = sent.map_err(from_odb)?;
    Ok(SentPack { streamed, counts })
}

/// A pack that was written to a stream.
#[derive(Debug)]
pub struct SentPack {
    /// The checksum and the size of the pack.
    pub streamed: Streamed,
    /// The numbers of objects and deltas in the pack.
    pub counts: PackCounts,
}

impl SelectedObjects {
    /// Reports the number of objects as the phase "Counting objects", which Git has between the
    /// selection and the pack.
    pub fn report_count(&self, watch: &Watch<'_>) {
        let count = (self.len() + self.bases.len()) as u64;
        let meter = watch.progress().begin("Counting objects", Some(count));
        meter.add(count);
        meter.finish();
    }
}

/// Reports the numbers of a finished pack: see [`totals`].
pub fn report_totals(counts: &PackCounts, watch: &Watch<'_>) {
    let line = totals(counts);
    watch.progress().message(ProgressMessage::Step(&line));
}

/// Returns the last line of the progress of `git pack-objects`, which has the numbers of a finished pack.
pub fn totals(counts: &PackCounts) -> String {
    let PackCounts {
        objects,
        deltas,
        reused,
        reused_deltas,
        whole_pack,
        ..
    } = counts;
    let packs = u32::from(*whole_pack > 0);
    format!(
        "Total {objects} (delta {deltas}), reused {reused} (delta {reused_deltas}), pack-reused \
         {whole_pack} (from {packs})"
    )
}

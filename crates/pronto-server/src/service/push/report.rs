//! The report on a push that is refused as a whole.

use pronto_io::budget::RequestBudget;
use pronto_wire::pktline;

use super::{Judgment, has_feature, malformed_packet};
use crate::Result;
use crate::error::without_room;

/// The largest payload in bytes of a packet on a sideband.
const BAND_BYTES: usize = 65_515;

/// Returns the report on a push that is refused as a whole.
///
/// # Errors
/// Fails if the budget has no room, or a ref name is too long for a packet.
pub(super) fn report(
    changes: &[Judgment],
    features: &[u8],
    budget: &RequestBudget,
) -> Result<Vec<u8>> {
    let has = |word: &str| has_feature(features, word);
    let mut lines = Vec::new();
    if !has("report-status") && !has("report-status-v2") {
        return Ok(lines);
    }
    // The budget covers the lines, and their copy on the sideband.
    let sizes = changes
        .iter()
        .map(|change| 16 + change.name.len() + change.reason().len());
    let size: usize = sizes.sum();
    budget.charge(2 * size as u64).map_err(without_room)?;
    lines.reserve(size);
    pktline::write(&mut lines, b"unpack ok\n").map_err(malformed_packet)?;
    for change in changes {
        let (name, reason) = (&change.name, change.reason());
        let parts: [&[u8]; 5] = [b"ng ", name, b" ", reason.as_bytes(), b"\n"];
        pktline::write_parts(&mut lines, &parts).map_err(malformed_packet)?;
    }
    pktline::write_flush(&mut lines);
    if !has("side-band-64k") {
        return Ok(lines);
    }
    let mut banded = Vec::new();
    for piece in lines.chunks(BAND_BYTES) {
        pktline::write_parts(&mut banded, &[&[1], piece]).map_err(malformed_packet)?;
    }
    pktline::write_flush(&mut banded);
    Ok(banded)
}

//! The decision which packs of a generation are to be packed again, from the manifest alone.

use crate::manifest::{FileKind, Manifest, Pack};

/// The number of packs that may be there, however small they are.
const PACKS: usize = 10;

/// The number of times that a pack must be larger than all smaller ones together.
pub(super) const FACTOR: u32 = 2;

/// The fewest objects for which bitmaps pay.
const FEWEST_WITH_BITMAP: u64 = 1000;

/// The number of tips of refs, the youngest, that have a bitmap in any case. A walk from a tip without one reads
/// objects one after the other, each in a round trip if its block is not there yet.
pub(crate) const BITMAPPED_TIPS: usize = 4096;

/// The packs that are to be packed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Small ones become one.
    Small,
    /// All reachable objects become one pack with a bitmap.
    All,
}

/// Returns what is due for the packs of `manifest`.
///
/// Each step of a geometric sequence is at least [`FACTOR`] times as large as those before together, so that an
/// object is packed again a logarithmic number of times.
pub(super) fn due(manifest: &Manifest) -> Option<Due> {
    let has = |pack: &Pack, kind| pack.files.iter().any(|file| file.kind == kind);
    let plain = manifest
        .packs
        .iter()
        .filter(|pack| !has(pack, FileKind::Times));
    let mut objects: Vec<u64> = plain.clone().map(|pack| u64::from(pack.objects)).collect();
    objects.sort_unstable();
    let has_bitmap = plain.clone().any(|pack| has(pack, FileKind::Bitmap));
    let all: u64 = objects.iter().sum();
    if !has_bitmap && all >= FEWEST_WITH_BITMAP && !manifest.tables.is_empty() {
        return Some(Due::All);
    }
    if objects.len() <= PACKS {
        return None;
    }
    let rolled_up = rolled_up(&objects);
    match rolled_up {
        0 => None,
        _ if rolled_up == objects.len() => Some(Due::All),
        _ => Some(Due::Small),
    }
}

/// Returns how many of the smallest packs `repack --geometric` merges. `objects` rise.
fn rolled_up(objects: &[u64]) -> usize {
    let is_too_near = |at: &usize| objects[*at] < objects[*at - 1].saturating_mul(FACTOR.into());
    let Some(last) = (1..objects.len()).rev().find(is_too_near) else {
        return 0;
    };
    let (mut merged, mut total) = (last + 1, objects[..=last].iter().sum::<u64>());
    while let Some(next) = objects.get(merged)
        && *next < total.saturating_mul(FACTOR.into())
    {
        merged += 1;
        total += next;
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packs_out_of_proportion_are_merged() {
        assert_eq!(rolled_up(&[]), 0);
        assert_eq!(rolled_up(&[7]), 0);
        assert_eq!(rolled_up(&[1, 2, 4, 8]), 0);
        assert_eq!(rolled_up(&[1, 1, 6, 18]), 2);
        assert_eq!(rolled_up(&[1, 1, 3, 1000]), 3);
        assert_eq!(rolled_up(&[1, 1, 4, 1000]), 2);
        assert_eq!(rolled_up(&[500, 1000]), 0);
        assert_eq!(rolled_up(&[501, 1000]), 2);
    }
}

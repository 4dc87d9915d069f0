//! Decides, from the manifest alone, which packs of a generation need a repack.

use crate::manifest::{FileKind, Manifest, StoredPack};

/// The number of packs that need no repack, however small they are.
const PACKS: usize = 10;

/// The factor by which a pack must be larger than all smaller ones together.
pub(super) const FACTOR: u32 = 2;

/// The smallest number of objects for which bitmaps are useful.
const FEWEST_WITH_BITMAP: u64 = 1000;

/// The number of ref tips, the youngest ones, that always get a bitmap. A walk from a tip without a
/// bitmap reads objects sequentially, with a round trip for each object whose block is not cached.
pub(crate) const BITMAPPED_TIPS: usize = 4096;

/// The packs to repack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Merge the small packs into one pack.
    Small,
    /// Repack all reachable objects into one pack with a bitmap.
    All,
}

/// Returns the repack that the packs of `manifest` need.
///
/// Each step of a geometric sequence is at least [`FACTOR`] times as large as those before together, so that an
/// object is packed again a logarithmic number of times.
pub(super) fn due(manifest: &Manifest) -> Option<Due> {
    let has = |pack: &StoredPack, kind| pack.files.iter().any(|file| file.kind == kind);
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

/// Returns the number of the smallest packs that `repack --geometric` merges. `objects` is in
/// ascending order.
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

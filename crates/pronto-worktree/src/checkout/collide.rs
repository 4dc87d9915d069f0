//! Paths that the file system treats as equal. With parallel workers it is arbitrary which of them is
//! written first, so the collision is resolved afterwards: the last path in index order is kept, as if
//! Git had written the files one after another, and all colliding paths are reported.

use std::collections::{BTreeSet, HashMap};

use bstr::{BStr, BString, ByteSlice};
use pronto_index::Stat;
use pronto_io::dir::{Directory, Metadata};
use pronto_io::progress::Meter;

use super::directories::SharedDirectories;
use super::order::OrderedItem;
use super::results::WorkerResults;
use super::write::Writer;
use super::{CheckoutContext, CheckoutPlan, Obstructions, Options, Outcome, split};
use crate::recorded::recorded;

/// The device and inode of a file.
type FileIdentity = (u32, u32);

fn identity(stat: &Stat) -> FileIdentity {
    (stat.device, stat.inode)
}

/// Resolves the collisions in `found.collided`, which is in index order.
pub(super) fn settle(
    plan: &CheckoutPlan,
    context: &CheckoutContext<'_>,
    options: &Options,
    found: &mut WorkerResults,
    meter: &Meter,
    outcome: &mut Outcome,
) {
    let replacing = Options {
        obstructions: Obstructions::Replace,
        ..options.clone()
    };
    let directories = SharedDirectories::new(context.top, false, None);
    let mut writer = Writer::new(context, &replacing, &directories, meter);
    let mut owners: HashMap<FileIdentity, u32> = (0..)
        .zip(&outcome.written)
        .filter_map(|(at, stat)| stat.as_ref().map(|stat| (identity(stat), at)))
        .collect();
    let mut involved: BTreeSet<u32> = BTreeSet::new();
    for at in &found.collided {
        let item = &plan.write[*at as usize];
        let in_the_way = obstacle(context.top, item.path.as_bstr());
        let holder = match &in_the_way {
            Some((_, there)) if there.is_directory() => last_below(plan, item.path.as_bstr()),
            Some((_, there)) => owners.get(&identity(&recorded(there))).copied(),
            None => None,
        };
        match in_the_way {
            Some((ObstructedPart::Leading, _)) => {
                pronto_io::data!("pcheckout", "collision/dirname", &item.path);
            }
            _ => pronto_io::data!("pcheckout", "collision/basename", &item.path),
        }
        involved.insert(*at);
        involved.extend(holder);
        if holder.is_some_and(|holder| holder > *at) {
            // The entry is in the index anyway, with stat data that match no file.
            outcome.written[*at as usize] = Some(Stat::default());
            continue;
        }
        let next = OrderedItem {
            at: *at,
            position: None,
        };
        writer.write_at_once(next, item);
        if let Some((_, stat)) = writer.done.last().filter(|(done, _)| done == at) {
            outcome.written[*at as usize] = Some(*stat);
            owners.insert(identity(stat), *at);
        }
    }
    for (_, warning) in writer.warnings {
        outcome.warnings.push(warning);
    }
    found.failed.append(&mut writer.failed);
    let mut collided: Vec<BString> = involved
        .into_iter()
        .map(|at| plan.write[at as usize].path.clone())
        .collect();
    collided.sort();
    collided.dedup();
    outcome.collided = collided;
}

/// The part of a path that is obstructed.
enum ObstructedPart {
    /// A leading directory.
    Leading,
    /// The last component.
    Last,
}

/// Returns the obstruction of `path`: the first component that is not a directory, or an existing file
/// at `path`.
fn obstacle(top: &Directory, path: &BStr) -> Option<(ObstructedPart, Metadata)> {
    let mut directory = None;
    for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        let above = directory.as_ref().unwrap_or(top);
        let name = split(path[..at].as_bstr()).1;
        let metadata = above.metadata(name).ok()?;
        if !metadata.is_directory() {
            return Some((ObstructedPart::Leading, metadata));
        }
        directory = Some(above.open_beneath(name).ok()?);
    }
    directory
        .as_ref()
        .unwrap_or(top)
        .metadata(split(path).1)
        .ok()
        .map(|metadata| (ObstructedPart::Last, metadata))
}

/// Returns the last item below `path`, ignoring case.
fn last_below(plan: &CheckoutPlan, path: &BStr) -> Option<u32> {
    let below = |other: &BStr| {
        other.len() > path.len()
            && other[path.len()] == b'/'
            && other[..path.len()].eq_ignore_ascii_case(path)
    };
    let at = plan
        .write
        .iter()
        .rposition(|item| below(item.path.as_bstr()))?;
    u32::try_from(at).ok()
}

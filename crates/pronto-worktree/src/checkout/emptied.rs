//! Removes directories that become empty. The worker that completes the last removal in a directory
//! removes the directory, and then possibly its parents.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bstr::{BStr, BString, ByteSlice};
use pronto_io::dir::Directory;

use super::{PathRemoval, split};

/// The directories with removals, and their parents. Any thread may use the value.
pub(super) struct Emptied<'a> {
    top: &'a Directory,
    /// The directory that is kept, with its parents.
    keep: Option<&'a BString>,
    places: Vec<EmptiedDirectory<'a>>,
    /// The end of each group of removals in one directory.
    ends: &'a [usize],
    of_group: Vec<Option<u32>>,
}

/// A directory with removals. The top has none.
struct EmptiedDirectory<'a> {
    path: &'a BStr,
    above: Option<u32>,
    /// The number of removals and subdirectories that are not completed yet.
    left: AtomicUsize,
    /// Whether any entry of the directory was removed.
    is_lighter: AtomicBool,
}

impl<'a> Emptied<'a> {
    /// Collects the directories of `removals`, in which the group of each directory ends at one of
    /// `ends`. Makes one pass and a lookup for each directory, and accesses no file.
    pub(super) fn new(
        removals: &'a [PathRemoval],
        ends: &'a [usize],
        top: &'a Directory,
        keep: Option<&'a BString>,
    ) -> Self {
        let (mut places, mut known) = (Vec::new(), HashMap::new());
        let mut begin = 0;
        let of_group = ends.iter().map(|end| {
            let group = &removals[std::mem::replace(&mut begin, *end)..*end];
            let (path, _) = split(group[0].path.as_bstr());
            let place = place_of(path, &mut places, &mut known)?;
            *places[place as usize].left.get_mut() += group.len();
            Some(place)
        });
        Emptied {
            top,
            keep,
            of_group: of_group.collect(),
            ends,
            places,
        }
    }

    /// Records that the removal at `at` was attempted, and whether the path `is_gone`. Must be called
    /// once for each removal.
    pub(super) fn finish(&self, at: usize, mut is_gone: bool) {
        let group = self.ends.partition_point(|end| *end <= at);
        let mut next = self.of_group[group];
        while let Some(place) = next {
            let place = &self.places[place as usize];
            if is_gone {
                place.is_lighter.store(true, Ordering::Relaxed);
            }
            // The last worker sees the results of the other workers.
            if place.left.fetch_sub(1, Ordering::AcqRel) > 1 {
                return;
            }
            is_gone = place.is_lighter.load(Ordering::Relaxed) && self.remove(place.path);
            next = place.above;
        }
    }

    /// Removes the directory if it is empty. Returns whether it was removed.
    fn remove(&self, path: &BStr) -> bool {
        let is_kept = |keep: &BString| is_at_or_below(keep.as_bstr(), path);
        if self.keep.is_some_and(is_kept) {
            return false;
        }
        let (parent, name) = split(path);
        let parent = self.top.open_beneath(parent);
        parent
            .and_then(|parent| parent.remove_directory(name))
            .is_ok()
    }
}

/// Returns the position of the directory `path`, and adds it with its parents if it is new.
fn place_of<'a>(
    path: &'a BStr,
    places: &mut Vec<EmptiedDirectory<'a>>,
    known: &mut HashMap<&'a BStr, u32>,
) -> Option<u32> {
    let mut path = path;
    let (mut wanted, mut below) = (None, None);
    while !path.is_empty() {
        let found = known.get(path).copied();
        let place = found.unwrap_or(places.len() as u32);
        if found.is_none() {
            known.insert(path, place);
            places.push(EmptiedDirectory {
                path,
                above: None,
                left: AtomicUsize::new(0),
                is_lighter: AtomicBool::new(false),
            });
        }
        wanted = wanted.or(Some(place));
        if let Some(below) = below {
            let below: &mut EmptiedDirectory<'_> = &mut places[below as usize];
            below.above = Some(place);
            *places[place as usize].left.get_mut() += 1;
        }
        if found.is_some() {
            break;
        }
        below = Some(place);
        path = split(path).0;
    }
    wanted
}

fn is_at_or_below(path: &BStr, directory: &BStr) -> bool {
    path.strip_prefix(directory.as_bytes())
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

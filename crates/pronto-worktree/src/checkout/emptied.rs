//! Removes directories that become empty. The worker that completes the last removal in a directory
//! removes it, and then perhaps the one above.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bstr::{BStr, BString, ByteSlice};
use pronto_io::dir::Directory;

use super::{Removal, split};

/// The directories out of which something goes, and those above them. Any thread may use it.
pub(super) struct Emptied<'a> {
    top: &'a Directory,
    /// This one stays, and so do those above it.
    keep: Option<&'a BString>,
    places: Vec<Place<'a>>,
    /// The end of each group of removals.
    ends: &'a [usize],
    of_group: Vec<Option<u32>>,
}

/// One of them; the top is none.
struct Place<'a> {
    path: &'a BStr,
    above: Option<u32>,
    /// The number of removals and directories in it that are not done yet.
    left: AtomicUsize,
    /// Whether any of them went.
    is_lighter: AtomicBool,
}

impl<'a> Emptied<'a> {
    /// Of `removals`, those of each directory ending at one of `ends`. One pass, and a look-up for each
    /// directory; touches no file.
    pub(super) fn new(
        removals: &'a [Removal],
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

    /// The removal at `at` has been tried, which is to be said once; whether it `is_gone`.
    pub(super) fn finish(&self, at: usize, mut is_gone: bool) {
        let group = self.ends.partition_point(|end| *end <= at);
        let mut next = self.of_group[group];
        while let Some(place) = next {
            let place = &self.places[place as usize];
            if is_gone {
                place.is_lighter.store(true, Ordering::Relaxed);
            }
            // The last worker sees the results of the others.
            if place.left.fetch_sub(1, Ordering::AcqRel) > 1 {
                return;
            }
            is_gone = place.is_lighter.load(Ordering::Relaxed) && self.remove(place.path);
            next = place.above;
        }
    }

    /// Whether the directory was empty, and has gone.
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

/// The place of the directory `path`, made with those above it if it is new.
fn place_of<'a>(
    path: &'a BStr,
    places: &mut Vec<Place<'a>>,
    known: &mut HashMap<&'a BStr, u32>,
) -> Option<u32> {
    let mut path = path;
    let (mut wanted, mut below) = (None, None);
    while !path.is_empty() {
        let found = known.get(path).copied();
        let place = found.unwrap_or(places.len() as u32);
        if found.is_none() {
            known.insert(path, place);
            places.push(Place {
                path,
                above: None,
                left: AtomicUsize::new(0),
                is_lighter: AtomicBool::new(false),
            });
        }
        wanted = wanted.or(Some(place));
        if let Some(below) = below {
            let below: &mut Place<'_> = &mut places[below as usize];
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

//! Counts the maps of this process. The system limits their number.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of maps of files that could also be read by position: half of the default
/// limit of Linux (`vm.max_map_count`, 65,530). Allocations and threads need maps, too, and a
/// process that gets none aborts.
pub(super) const MOST: usize = 32_765;

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Counts a map until the value is dropped.
#[derive(Debug)]
pub(super) struct CountedMap(());

impl CountedMap {
    pub(super) fn new() -> Self {
        COUNT.fetch_add(1, Ordering::Relaxed);
        CountedMap(())
    }
}

impl Drop for CountedMap {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns whether another map is permitted.
pub(super) fn has_room() -> bool {
    COUNT.load(Ordering::Relaxed) < MOST
}

#[cfg(test)]
mod tests {
    use test_support::Scratch;

    use super::super::{FileView, ViewAccess};
    use super::*;

    #[test]
    fn more_files_than_maps() {
        let scratch = Scratch::new();
        let path = scratch.join("file");
        std::fs::write(&path, b"content").expect("a file");
        let open = || FileView::open(&path, ViewAccess::Auto).expect("the file is there");
        let views: Vec<FileView> = (0..MOST).map(|_| open()).collect();
        let is_mapped = |view: &FileView| view.bytes().is_some();
        let last = open();
        assert!(views.iter().any(is_mapped) && !is_mapped(&last));
        let mut buffer = Vec::new();
        assert_eq!(last.read(3, 4, &mut buffer).expect("inside"), b"tent");
        drop(views);
        assert!(is_mapped(&open()));
    }
}

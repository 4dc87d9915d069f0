//! The number of maps of this process, of which the system allows only so many.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The most maps of files that may be read in another way: half of what Linux allows a process by default
/// (`vm.max_map_count`, 65,530). Memory and threads need maps, too, and a process without them is aborted.
pub(super) const MOST: usize = 32_765;

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A map that is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Counted(());

impl Counted {
    pub(super) fn new() -> Self {
        COUNT.fetch_add(1, Ordering::Relaxed);
        Counted(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether another map fits.
pub(super) fn has_room() -> bool {
    COUNT.load(Ordering::Relaxed) < MOST
}

#[cfg(test)]
mod tests {
    use test_support::Scratch;

    use super::super::{Access, View};
    use super::*;

    #[test]
    fn more_files_than_maps() {
        let scratch = Scratch::new();
        let path = scratch.join("file");
        std::fs::write(&path, b"content").expect("a file");
        let open = || View::open(&path, Access::Auto).expect("the file is there");
        let views: Vec<View> = (0..MOST).map(|_| open()).collect();
        let is_mapped = |view: &View| view.bytes().is_some();
        let last = open();
        assert!(views.iter().any(is_mapped) && !is_mapped(&last));
        let mut buffer = Vec::new();
        assert_eq!(last.read(3, 4, &mut buffer).expect("inside"), b"tent");
        drop(views);
        assert!(is_mapped(&open()));
    }
}

//! Removes temporary files and directories. A guard removes its path when the guard is dropped. If
//! a signal ends the process, [`remove_all`] removes the paths of all live guards, the latest
//! first.
//!
//! The paths of guards are in a list that only grows. The list is read without a lock, so a signal
//! handler can traverse it at any moment.

use std::ffi::{CStr, CString, OsString, c_char};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

#[cfg(unix)]
mod in_handler;

#[cfg(unix)]
pub(crate) use in_handler::remove_all_in_handler;

/// The path of a guard, from [`CString::into_raw`], or null. Only the guard frees the path. A
/// thread that ends the process takes paths out and does not free them, because a guard may be
/// reading its own path at that moment.
type PathSlot = AtomicPtr<c_char>;

/// The slots of one allocation. A block is never freed, so the signal handler can always read it.
struct SlotBlock {
    slots: [PathSlot; Self::SLOTS],
    older: Option<&'static SlotBlock>,
}

impl SlotBlock {
    const SLOTS: usize = 32;
}

/// The newest block. Each block points to the next older one.
static NEWEST: AtomicPtr<SlotBlock> = AtomicPtr::new(ptr::null_mut());

/// Slots without a guard. The last element is used next.
static FREE: Mutex<Vec<&'static PathSlot>> = Mutex::new(Vec::new());

/// Removes a file, or a directory with its contents, unless [`keep`](Guard::keep) is called.
#[derive(Debug)]
pub struct Guard {
    slot: &'static PathSlot,
}

impl Guard {
    /// Creates a guard for `path`, which need not exist yet. Takes one short global lock,
    /// independent of the number of guards; dropping the guard does the same.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = into_c_string(path.into());
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = free.pop().unwrap_or_else(|| grow(&mut free));
        drop(free);
        // A path with a zero byte names no file.
        slot.store(path.map_or(ptr::null_mut(), CString::into_raw), SeqCst);
        Guard { slot }
    }

    /// Keeps the path: its content is complete.
    pub fn keep(self) {
        // Drop finds an empty slot.
        take(self.slot);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The path stays in the slot until its removal is complete: if a signal ends the process
        // meanwhile, the handler removes the rest.
        // SAFETY: only this guard frees the content of its slot.
        if let Some(path) = unsafe { self.slot.load(SeqCst).as_ref() } {
            // SAFETY: a C string that came from `into_raw`.
            remove(&to_path(unsafe { CStr::from_ptr(path) }));
        }
        take(self.slot);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(self.slot);
    }
}

/// Removes the paths of all live guards, the latest first, before the process ends. May be called
/// from any thread, but not from signal handlers, because the function allocates.
pub fn remove_all() {
    for slot in slots() {
        let path = slot.swap(ptr::null_mut(), SeqCst);
        if !path.is_null() {
            // SAFETY: a C string that came from `into_raw`, and that is never freed from now on.
            remove(&to_path(unsafe { CStr::from_ptr(path) }));
        }
    }
}

/// Adds a block, returns its first slot and adds the other slots to `free`.
fn grow(free: &mut Vec<&'static PathSlot>) -> &'static PathSlot {
    let block: &'static SlotBlock = Box::leak(Box::new(SlotBlock {
        slots: [const { AtomicPtr::new(ptr::null_mut()) }; SlotBlock::SLOTS],
        older: newest(),
    }));
    NEWEST.store(ptr::from_ref(block).cast_mut(), SeqCst);
    free.extend(block.slots[1..].iter().rev());
    &block.slots[0]
}

fn newest() -> Option<&'static SlotBlock> {
    // SAFETY: null, or a block that was leaked and is only shared since.
    unsafe { NEWEST.load(SeqCst).as_ref() }
}

/// Returns all slots: the newest block first, and the last slot of each block first.
fn slots() -> impl Iterator<Item = &'static PathSlot> {
    std::iter::successors(newest(), |block| block.older).flat_map(|block| block.slots.iter().rev())
}

/// Empties the slot of a guard that is dropped or kept.
fn take(slot: &PathSlot) {
    let path = slot.swap(ptr::null_mut(), SeqCst);
    if !path.is_null() {
        // SAFETY: it came from `into_raw`, and only its guard, which calls this once, frees it.
        drop(unsafe { CString::from_raw(path) });
    }
}

fn into_c_string(path: PathBuf) -> Option<CString> {
    CString::new(path.into_os_string().into_encoded_bytes()).ok()
}

fn to_path(path: &CStr) -> PathBuf {
    // SAFETY: the bytes are those that `into_encoded_bytes` gave.
    unsafe { OsString::from_encoded_bytes_unchecked(path.to_bytes().to_vec()) }.into()
}

/// Removes `path`. Retries, because other threads may still be creating files inside of a
/// directory.
fn remove(path: &Path) {
    for _ in 0..8 {
        let removed = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
            Ok(_) => std::fs::remove_file(path),
            Err(_) => return,
        };
        if removed.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_guard_removes_and_a_kept_one_does_not() {
        let base = std::env::temp_dir().join(format!("pronto-cleanup-{}", std::process::id()));
        std::fs::create_dir_all(base.join("a/b")).expect("a directory");
        std::fs::write(base.join("kept"), b"x").expect("a file");
        let (tree, kept) = (Guard::new(base.join("a")), Guard::new(base.join("kept")));
        drop(tree);
        kept.keep();
        assert!(!base.join("a").exists());
        assert!(base.join("kept").exists());
        drop(Guard::new(&base));
        assert!(!base.exists());
    }

    #[test]
    fn slots_are_used_again() {
        let guards: Vec<_> = (0..1000)
            .map(|at| Guard::new(format!("/nonexistent/pronto/{at}")))
            .collect();
        drop(guards);
        let before = slots().count();
        for at in 0..1000 {
            Guard::new(format!("/nonexistent/pronto/{at}")).keep();
        }
        assert_eq!(slots().count(), before);
    }
}

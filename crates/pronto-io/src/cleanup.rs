//! Files and directories that exist only during an operation. A guard removes its path when it is
//! dropped, and [`remove_all`] removes those of every live guard, the latest first, when the
//! process ends early by a signal.
//!
//! The paths of guards are in a list that only grows and is read without a lock, so that a signal
//! handler can traverse it whatever it has interrupted.

use std::ffi::{CStr, CString, OsString, c_char};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

#[cfg(unix)]
mod in_handler;

#[cfg(unix)]
pub(crate) use in_handler::remove_all_in_handler;

/// The path a guard watches over, as it came from [`CString::into_raw`], or null. Only the guard frees
/// it: who ends the process takes paths out and leaves them where they are, so that a guard can
/// read its own meanwhile.
type Slot = AtomicPtr<c_char>;

/// Slots of one allocation, which is never freed, so the handler can always read them.
struct Block {
    slots: [Slot; Self::SLOTS],
    older: Option<&'static Block>,
}

impl Block {
    const SLOTS: usize = 32;
}

/// The newest block, from which the others are reached.
static NEWEST: AtomicPtr<Block> = AtomicPtr::new(ptr::null_mut());

/// Slots that no guard has. The next one to give out stands last.
static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

/// Removes a file, or a directory and all that is in it, unless [kept](Guard::keep).
#[derive(Debug)]
pub struct Guard {
    slot: &'static Slot,
}

impl Guard {
    /// Watches over `path`, which need not exist yet. Takes one short global lock, whatever the number
    /// of guards; so does giving the guard up.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = into_c_string(path.into());
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = free.pop().unwrap_or_else(|| grow(&mut free));
        drop(free);
        // A path with a zero byte names nothing.
        slot.store(path.map_or(ptr::null_mut(), CString::into_raw), SeqCst);
        Guard { slot }
    }

    /// The path is complete: it stays.
    pub fn keep(self) {
        // What is dropped next holds no path.
        take(self.slot);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The path stays in the slot until removal is complete: a signal that arrives meanwhile
        // ends the process, and removes the rest first.
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

/// Removes what every live guard watches over, the latest first, for a process that is about to end.
/// Any thread may call it; not for signal handlers, since it allocates.
pub fn remove_all() {
    for slot in slots() {
        let path = slot.swap(ptr::null_mut(), SeqCst);
        if !path.is_null() {
            // SAFETY: a C string that came from `into_raw`, and that is never freed from now on.
            remove(&to_path(unsafe { CStr::from_ptr(path) }));
        }
    }
}

/// Adds a block, of which the first slot is given out and the others are free.
fn grow(free: &mut Vec<&'static Slot>) -> &'static Slot {
    let block: &'static Block = Box::leak(Box::new(Block {
        slots: [const { AtomicPtr::new(ptr::null_mut()) }; Block::SLOTS],
        older: newest(),
    }));
    NEWEST.store(ptr::from_ref(block).cast_mut(), SeqCst);
    free.extend(block.slots[1..].iter().rev());
    &block.slots[0]
}

fn newest() -> Option<&'static Block> {
    // SAFETY: null, or a block that was leaked and is only shared since.
    unsafe { NEWEST.load(SeqCst).as_ref() }
}

/// All slots, those of the newest block and the last within a block first.
fn slots() -> impl Iterator<Item = &'static Slot> {
    std::iter::successors(newest(), |block| block.older).flat_map(|block| block.slots.iter().rev())
}

/// Empties the slot of a guard that is given up.
fn take(slot: &Slot) {
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

/// Other threads may still be making files inside a directory, so try more than once.
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

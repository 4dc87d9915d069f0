//! Handles maps whose file is truncated.
//!
//! An access to a page of a map beyond the end of its file raises SIGBUS, which ends the process.
//! So every map is in a registry, and the first map installs a signal handler. On a fault inside of
//! a map the handler marks the map, replaces the missing pages by zeros, and returns. Users of the
//! map check the mark afterwards. Faults outside of maps are forwarded to the previous handler.
//!
//! The handler takes no lock and allocates nothing: it reads the registry and calls `mmap`.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

/// The number of slots in the first block of the registry. Each further block has twice as many as
/// the one before.
const FIRST_BLOCK_LEN: usize = 64;
const MAX_BLOCKS: usize = 26;

/// The registry. Blocks are allocated on demand and never freed, so that the handler can read them
/// at any moment.
static BLOCKS: [AtomicPtr<MapSlot>; MAX_BLOCKS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_BLOCKS];

/// Slots that are free for new maps.
static FREE: Mutex<FreeSlots> = Mutex::new(FreeSlots {
    slots: Vec::new(),
    blocks: 0,
});

/// The number of marked maps. While it is zero, no map has to be checked.
static MARKED: AtomicUsize = AtomicUsize::new(0);

static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
static PAGE_LEN: AtomicUsize = AtomicUsize::new(4096);

struct FreeSlots {
    slots: Vec<&'static MapSlot>,
    blocks: usize,
}

/// The range of one map. A slot is free if `start` is zero.
#[derive(Debug, Default)]
struct MapSlot {
    start: AtomicUsize,
    len: AtomicUsize,
    marked: AtomicBool,
}

/// The registration of a map, which must be dropped before the map.
#[derive(Debug)]
pub(super) struct MapRegistration(Option<&'static MapSlot>);

impl MapRegistration {
    /// Registers the map at `bytes`, which must not be empty. The first call costs two system
    /// calls.
    pub(super) fn new(bytes: &[u8]) -> MapRegistration {
        install();
        let slot = lock().take();
        if let Some(slot) = slot {
            slot.marked.store(false, Ordering::Relaxed);
            slot.len.store(bytes.len(), Ordering::Relaxed);
            slot.start.store(bytes.as_ptr() as usize, Ordering::Release);
        }
        MapRegistration(slot)
    }

    /// Whether bytes that were read from the map before this call may differ from those of the
    /// file.
    #[inline]
    pub(super) fn is_marked(&self) -> bool {
        // The reads of the map must happen before the read of the mark.
        fence(Ordering::Acquire);
        MARKED.load(Ordering::Relaxed) != 0 && self.has_mark()
    }

    #[cold]
    fn has_mark(&self) -> bool {
        self.0
            .is_some_and(|slot| slot.marked.load(Ordering::Acquire))
    }

    /// Marks the map, as a fault in it does.
    pub(super) fn mark(&self) {
        if let Some(slot) = self.0 {
            slot.mark();
        }
    }
}

impl Drop for MapRegistration {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.start.store(0, Ordering::Release);
            lock().slots.push(slot);
        }
    }
}

impl MapSlot {
    fn mark(&self) {
        self.marked.store(true, Ordering::SeqCst);
        MARKED.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the end of the map if `address` is inside of it.
    fn end_if_has(&self, address: usize) -> Option<usize> {
        let start = self.start.load(Ordering::Acquire);
        let end = start.saturating_add(self.len.load(Ordering::Relaxed));
        // The slot may have been reused for another map between the two loads.
        fence(Ordering::Acquire);
        let same = self.start.load(Ordering::Relaxed) == start;
        (start != 0 && same && (start..end).contains(&address)).then_some(end)
    }
}

impl FreeSlots {
    /// Returns a free slot, or `None` if there are more maps than an address space can hold.
    fn take(&mut self) -> Option<&'static MapSlot> {
        if let Some(slot) = self.slots.pop() {
            return Some(slot);
        }
        let place = BLOCKS.get(self.blocks)?;
        let block: &'static mut [MapSlot] = Vec::leak(
            std::iter::repeat_with(MapSlot::default)
                .take(FIRST_BLOCK_LEN << self.blocks)
                .collect(),
        );
        let block: &'static [MapSlot] = block;
        place.store(block.as_ptr().cast_mut(), Ordering::Release);
        self.blocks += 1;
        self.slots.extend(block.iter().rev());
        self.slots.pop()
    }
}

fn lock() -> std::sync::MutexGuard<'static, FreeSlots> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the slot and the end of the map that contains `address`.
fn slot_of(address: usize) -> Option<(&'static MapSlot, usize)> {
    for (number, block) in BLOCKS.iter().enumerate() {
        let block = block.load(Ordering::Acquire);
        if block.is_null() {
            return None;
        }
        // SAFETY: a block that is not null has this many slots and is never freed or moved; slots
        // are made of atomics.
        let slots = unsafe { std::slice::from_raw_parts(block, FIRST_BLOCK_LEN << number) };
        for slot in slots {
            if let Some(end) = slot.end_if_has(address) {
                return Some((slot, end));
            }
        }
    }
    None
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: queries a number.
        let page_len = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        if let Ok(page_len @ 1..) = usize::try_from(page_len) {
            PAGE_LEN.store(page_len, Ordering::Relaxed);
        }
        // SAFETY: all zeros is a value of this structure of the C library.
        let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
        ours.sa_sigaction = handler as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        let mut previous = ours;
        // SAFETY: both structures outlive the call; the handler does only what a handler may.
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, &raw mut previous) } == 0 {
            let _ = PREVIOUS.set(previous);
        }
    });
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the system hands over a valid structure; SIGBUS has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Codes that are not positive are those of signals sent by processes.
    let is_fault = code > 0;
    if !(is_fault && replace(address)) {
        forward(is_fault, signal, info, context);
    }
}

/// Marks the map that contains `address` and replaces it by zeros from the page of `address` to the
/// end. The whole rest is replaced at once, because everything after a missing page is missing,
/// too, and single pages could exceed the limit of maps.
fn replace(address: usize) -> bool {
    let Some((slot, end)) = slot_of(address) else {
        return false;
    };
    // Mark the map before any thread can read the zeros.
    slot.mark();
    let page = address & !(PAGE_LEN.load(Ordering::Relaxed) - 1);
    // SAFETY: the address lies in a registered map. Maps leave the registry before they are
    // unmapped, and the thread that was interrupted is reading this one, so it is there. It is
    // read-only and stays so: nobody's memory but that of the map is touched.
    let zeros = unsafe {
        libc::mmap(
            page as *mut libc::c_void,
            end - page,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    zeros != libc::MAP_FAILED
}

/// Calls the previous handler, or restores the default action of the signal.
fn forward(is_fault: bool, signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let (handler, flags) = PREVIOUS.get().map_or((libc::SIG_DFL, 0), |previous| {
        (previous.sa_sigaction, previous.sa_flags)
    });
    match handler {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: gives the signal its default back; it ends the process when this handler
            // returns: by the same fault again, or by being sent again.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if !is_fault {
                    libc::raise(signal);
                }
            }
        }
        handler if flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: a handler registered with this flag takes these arguments.
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: a handler registered without the flag takes this argument.
            let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

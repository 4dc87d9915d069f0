//! A library for `LD_PRELOAD` that counts the bytes a program copies with `memcpy`, `mempcpy` and
//! `memmove`, and the bytes it allocates with `malloc` and related functions. `COUNTER_DIRECTORY`
//! must be set (`LD_PRELOAD=libcounter.so`).
//!
//! Each program writes a file `PROCESS.NUMBER` in that directory and shares it with the processes
//! it forks. The file contains eight 64-bit numbers in native byte order (copied bytes, copies,
//! allocated bytes, allocations, the rest zero), followed by the command line and a zero byte. The
//! file is mapped into memory, so the counts of a killed program are kept.
//!
//! The library does not count copies that the compiler writes without a call, and calls within the
//! C library. A reallocated block counts with its new size, even if it does not move.

#![allow(
    unsafe_code,
    reason = "functions of the C library are replaced, for measuring only"
)]

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

#[repr(C)]
struct Totals {
    copied_bytes: AtomicU64,
    copies: AtomicU64,
    allocated_bytes: AtomicU64,
    allocations: AtomicU64,
    reserved: [u64; 4],
    command: [u8; COMMAND],
}

const COMMAND: usize = 448;

/// Holds the counts until the file is mapped, or if there is no file.
static NOWHERE: Totals = Totals {
    copied_bytes: AtomicU64::new(0),
    copies: AtomicU64::new(0),
    allocated_bytes: AtomicU64::new(0),
    allocations: AtomicU64::new(0),
    reserved: [0; 4],
    command: [0; COMMAND],
};

static TOTALS: AtomicPtr<Totals> = AtomicPtr::new((&raw const NOWHERE).cast_mut());

fn totals() -> &'static Totals {
    // SAFETY: `TOTALS` points to a static or to a mapping that is never removed. Only its atomics
    // change.
    unsafe { &*TOTALS.load(Relaxed) }
}

fn count_copy(bytes: usize) {
    totals().copied_bytes.fetch_add(bytes as u64, Relaxed);
    totals().copies.fetch_add(1, Relaxed);
}

fn count_allocation(bytes: usize) {
    totals().allocated_bytes.fetch_add(bytes as u64, Relaxed);
    totals().allocations.fetch_add(1, Relaxed);
}

#[used]
// SAFETY: the loader calls the functions in this section; on Linux with glibc with these arguments.
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

extern "C" fn start(count: c_int, arguments: *const *const c_char, _: *const *const c_char) {
    let mut name = [0_u8; 512];
    // SAFETY: `getenv` returns null or a string that stays valid.
    let directory = unsafe { libc::getenv(c"COUNTER_DIRECTORY".as_ptr()) };
    if directory.is_null() {
        return;
    }
    for number in 0..1000_i32 {
        // SAFETY: all arguments are strings, and the buffer has the given size.
        let process = unsafe { libc::getpid() };
        let format = c"%s/%d.%d".as_ptr();
        let room = name.len();
        // SAFETY: as above.
        unsafe {
            libc::snprintf(
                name.as_mut_ptr().cast(),
                room,
                format,
                directory,
                process,
                number,
            )
        };
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: the name is a string, ended by `snprintf`.
        let file = unsafe { libc::open(name.as_ptr().cast(), flags, 0o600) };
        if file >= 0 {
            share(file, count, arguments);
            return;
        }
    }
}

/// Maps the file and makes the counts go to the mapping.
fn share(file: c_int, count: c_int, arguments: *const *const c_char) {
    let length = size_of::<Totals>();
    // SAFETY: the file was just opened and is as long as the mapping.
    let map = unsafe {
        if libc::ftruncate(file, length as libc::off_t) != 0 {
            return;
        }
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let map = libc::mmap(
            std::ptr::null_mut(),
            length,
            both,
            libc::MAP_SHARED,
            file,
            0,
        );
        libc::close(file);
        map
    };
    if map == libc::MAP_FAILED {
        return;
    }
    let shared: *mut Totals = map.cast();
    let mut at = 0;
    for number in 0..count as usize {
        // SAFETY: there are so many arguments, each a string; writing stops before the end.
        unsafe {
            let mut argument = (*arguments.add(number)).cast::<u8>();
            while *argument != 0 && at + 2 < COMMAND {
                (&raw mut (*shared).command)
                    .cast::<u8>()
                    .add(at)
                    .write(*argument);
                argument = argument.add(1);
                at += 1;
            }
            if at + 2 < COMMAND {
                (&raw mut (*shared).command)
                    .cast::<u8>()
                    .add(at)
                    .write(b' ');
                at += 1;
            }
        }
    }
    TOTALS.store(shared, Relaxed);
}

/// Copies bytes and counts them, as `memcpy` of C.
///
/// # Safety
/// The requirements are those of C.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void {
    count_copy(bytes);
    // SAFETY: the caller's.
    unsafe { forward(to, from, bytes) };
    to
}

/// Copies bytes and counts them, as `mempcpy` of C.
///
/// # Safety
/// The requirements are those of C.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mempcpy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    count_copy(bytes);
    // SAFETY: the caller's.
    unsafe {
        forward(to, from, bytes);
        to.byte_add(bytes)
    }
}

/// Copies bytes and counts them, as `memmove` of C.
///
/// # Safety
/// The requirements are those of C.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memmove(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    count_copy(bytes);
    let distance = (to as usize).wrapping_sub(from as usize);
    // SAFETY: the caller's. Overlapping ranges are copied from the end where needed.
    unsafe {
        if distance >= bytes {
            forward(to, from, bytes);
        } else {
            backward(to, from, bytes);
        }
    }
    to
}

// This function is written in assembly, because Rust's own copy functions would call `memcpy`
// again.
#[cfg(target_arch = "x86_64")]
unsafe fn forward(to: *mut c_void, from: *const c_void, bytes: usize) {
    // SAFETY: the caller's.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn backward(to: *mut c_void, from: *const c_void, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the caller's; the direction flag is cleared again, as the calling convention
    // requires.
    unsafe {
        std::arch::asm!(
            "std", "rep movsb", "cld",
            inout("rcx") bytes => _,
            inout("rdi") to.byte_add(bytes - 1) => _, inout("rsi") from.byte_add(bytes - 1) => _,
            options(nostack)
        );
    }
}

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, bytes: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, bytes: usize) -> *mut c_void;
}

/// Allocates and counts, as `malloc` of C.
///
/// # Safety
/// The requirements are those of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    count_allocation(bytes);
    // SAFETY: the caller's.
    unsafe { __libc_malloc(bytes) }
}

/// Allocates and counts, as `calloc` of C.
///
/// # Safety
/// The requirements are those of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    count_allocation(count.saturating_mul(bytes));
    // SAFETY: the caller's.
    unsafe { __libc_calloc(count, bytes) }
}

/// Reallocates and counts, as `realloc` of C.
///
/// # Safety
/// The requirements are those of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    count_allocation(bytes);
    // SAFETY: the caller's.
    unsafe { __libc_realloc(block, bytes) }
}

/// Allocates and counts, as `aligned_alloc` of C.
///
/// # Safety
/// The requirements are those of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
    count_allocation(bytes);
    // SAFETY: the caller's.
    unsafe { __libc_memalign(alignment, bytes) }
}

/// Allocates and counts, as `posix_memalign` of C.
///
/// # Safety
/// The requirements are those of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    block: *mut *mut c_void,
    alignment: usize,
    bytes: usize,
) -> c_int {
    count_allocation(bytes);
    // SAFETY: the caller's.
    unsafe {
        let made = __libc_memalign(alignment, bytes);
        if made.is_null() {
            return libc::ENOMEM;
        }
        block.write(made);
    }
    0
}

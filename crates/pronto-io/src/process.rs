//! The process: its umask, and its start. The start replaces the standard library's start for `fn main`, without
//! the parts that take longer than a short command.
//!
//! On Linux with glibc those parts are the search for the main thread's stack (the kernel prints
//! `/proc/self/maps`, which is then parsed) and the second stack for reporting an overflow of the
//! first: about twenty system calls. Other systems use the ordinary start.

use std::panic::{self, UnwindSafe};

/// Defines the start of a program: `pronto_io::entry!(run)` in a `main.rs` that begins with
/// `#![cfg_attr(all(target_os = "linux", target_env = "gnu"), no_main)]`, where `run` is a
/// `fn() -> u8` that gives the exit code.
///
/// Closed standard streams are opened to nothing, so that no file is opened under their numbers;
/// a closed pipe gives an error instead of a signal; a panic ends with 101, as from `fn main`.
#[macro_export]
macro_rules! entry {
    ($run:path) => {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        #[expect(
            unsafe_code,
            reason = "the C library calls the symbol `main`, and no other does"
        )]
        // SAFETY: the one definition of `main` in the program, with the C library's signature.
        #[unsafe(no_mangle)]
        extern "C" fn main(_: i32, _: *const *const u8) -> i32 {
            $crate::process::start($run)
        }

        #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
        fn main() -> std::process::ExitCode {
            std::process::ExitCode::from($run())
        }
    };
}

/// Defines `pronto_start`, the first instructions of a static program for x86-64 (linked with `-e pronto_start`), before those
/// of the C library: one system call, `madvise(MADV_POPULATE_WRITE)`, gets the pages of the constants with addresses (segment
/// `PT_GNU_RELRO`), all of which are written next. Without it each is a page fault. A kernel before 5.14 refuses, and
/// nothing else changes.
#[macro_export]
macro_rules! populate_at_start {
    () => {
        #[expect(unsafe_code, reason = "no function can run before the C library")]
        mod start {
            core::arch::global_asm!(
                ".globl pronto_start",
                ".type pronto_start, @function",
                "pronto_start:",
                // For the C library; a system call changes no register but rax, rcx and r11.
                "mov r8, rdx",
                // The header of the program, the number of its segments, and the first of them.
                "lea r9, [rip + __ehdr_start]",
                "movzx edx, word ptr [r9 + 56]",
                "mov r10, [r9 + 32]",
                "add r10, r9",
                "2:",
                "dec edx",
                "js 4f",
                "cmp dword ptr [r10], 0x6474e552",
                "je 3f",
                "add r10, 56",
                "jmp 2b",
                // From the start of its first page to the end of its last.
                "3:",
                "mov rdi, [r10 + 16]",
                "add rdi, r9",
                "mov rsi, [r10 + 40]",
                "add rsi, rdi",
                "add rsi, 4095",
                "and rdi, -4096",
                "and rsi, -4096",
                "sub rsi, rdi",
                "mov edx, {populate_write}",
                "mov eax, {madvise}",
                "syscall",
                "4:",
                "mov rdx, r8",
                "jmp _start",
                populate_write = const 23,
                madvise = const 28,
            );
        }
    };
}

/// Readies the process, runs `run`, and ends the process with the code it gives. Made for
/// [`entry!`](crate::entry).
pub fn start(run: impl FnOnce() -> u8 + UnwindSafe) -> ! {
    open_standard_streams();
    ignore_closed_pipes();
    /// The exit code of a program that panics.
    const PANICKED: i32 = 101;
    #[expect(
        clippy::exit,
        reason = "the end of `main` itself, with the standard library's own cleaning up"
    )]
    std::process::exit(panic::catch_unwind(run).map_or(PANICKED, i32::from))
}

/// Returns the permissions that new files of this process lack; `None` if the system does not tell. The
/// call that returns them also sets them, for all threads, so the kernel's description of the process is
/// read. Costs one small file.
pub fn umask() -> Option<u32> {
    let status = std::fs::read("/proc/self/status").ok()?;
    let mut lines = status.split(|byte| *byte == b'\n');
    let umask = lines.find_map(|line| line.strip_prefix(b"Umask:"))?;
    let umask = std::str::from_utf8(umask).ok()?;
    u32::from_str_radix(umask.trim(), 8).ok()
}

/// Opens `/dev/null` under each of the numbers 0 to 2 that is closed. One system call when none
/// is.
fn open_standard_streams() {
    let closed = |number: i32| libc::pollfd {
        fd: number,
        events: 0,
        revents: 0,
    };
    let mut streams = [closed(0), closed(1), closed(2)];
    // SAFETY: the array outlives the call and has the length that is passed.
    let answered = unsafe { libc::poll(streams.as_mut_ptr(), streams.len() as libc::nfds_t, 0) };
    if answered <= 0 {
        return;
    }
    for stream in streams {
        if stream.revents & libc::POLLNVAL != 0 {
            // SAFETY: the path is a C string. The lowest free number is taken, which is this one.
            unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        }
    }
}

/// Makes writing to a pipe without a reader fail instead of ending the process. The standard
/// library resets the signal to its default in children.
fn ignore_closed_pipes() {
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

//! The umask of the process, and its entry point. The entry point replaces the standard library's
//! start of `fn main`, without the parts that take longer than a short command.
//!
//! On Linux with glibc these parts are the search for the main thread's stack (the kernel prints
//! `/proc/self/maps`, which is then parsed) and the alternate signal stack for reporting a stack
//! overflow: about twenty system calls. Other systems use the ordinary start.

use std::panic::{self, UnwindSafe};

/// Defines the entry point of a program. Use `pronto_io::entry!(run)` in a `main.rs` that begins
/// with `#![cfg_attr(all(target_os = "linux", target_env = "gnu"), no_main)]`, where `run` is a
/// `fn() -> u8` that returns the exit code.
///
/// Opens `/dev/null` for closed standard streams, so that no other file gets their descriptors. A
/// write to a closed pipe returns an error instead of raising a signal. A panic exits with 101, as
/// in `fn main`.
#[macro_export]
macro_rules! entry {
    ($run:path) => {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        #[expect(
            unsafe_code,
            reason = "the C library calls the symbol `main`, and no other does"
        )]
        // SAFETY: this is the only definition of `main` in the program, with the C library's
        // signature.
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

/// Defines `pronto_start`, the first instructions of a static program for x86-64 (linked with `-e
/// pronto_start`). They run before those of the C library and make one system call,
/// `madvise(MADV_POPULATE_WRITE)`, which allocates the pages of the relocated constants (segment
/// `PT_GNU_RELRO`). All of these pages are written next, so each would be a page fault. On a kernel
/// before 5.14 the call fails, without an effect.
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
                // From the start of the first page to the end of the last page.
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

/// Prepares the process, calls `run`, and exits with the code that `run` returns. Used by
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

/// Returns the umask of this process, or `None` if the system does not report the umask. The system
/// call `umask` would also change the value for all threads, so this reads `/proc/self/status`.
/// Costs one small file.
pub fn umask() -> Option<u32> {
    let status = std::fs::read("/proc/self/status").ok()?;
    let mut lines = status.split(|byte| *byte == b'\n');
    let umask = lines.find_map(|line| line.strip_prefix(b"Umask:"))?;
    let umask = std::str::from_utf8(umask).ok()?;
    u32::from_str_radix(umask.trim(), 8).ok()
}

/// Opens `/dev/null` for each closed descriptor from 0 to 2. Costs one system call if none is
/// closed.
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

/// Ignores SIGPIPE, so that a write to a closed pipe returns an error instead of ending the
/// process. The standard library restores the default in child processes.
fn ignore_closed_pipes() {
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

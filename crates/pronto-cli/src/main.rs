//! The binary `pronto`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![cfg_attr(all(target_os = "linux", target_env = "gnu"), no_main)]

pronto_io::entry!(pronto_cli::main);

// The first instructions of a static program (build.rs), before those of the C library: one system call,
// `madvise(MADV_POPULATE_WRITE)`, gets the pages of the constants with addresses (segment `PT_GNU_RELRO`), all of which are
// written next. Without it each is a page fault. A kernel before 5.14 refuses, and nothing else changes.
#[cfg(static_start)]
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

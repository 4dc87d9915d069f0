//! The programs, the system and the environment variables, for a report.

use std::fs::File;
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use bstr::ByteSlice as _;
use pronto_io::child;
use pronto_io::file_system::FileSystem;
use rustix::process::{Resource, getrlimit};

use super::harmless::is_harmless;
use super::{Surroundings, line};
use crate::commands::version::GIT_VERSION;
use crate::{Context, fallback};

/// Variables beside `GIT_*` and `PRONTO_*` that change how programs behave. Only the names of those
/// that are set are written.
const OTHER_VARIABLES: &[&str] = &[
    "ALL_PROXY",
    "EDITOR",
    "GCM_INTERACTIVE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LD_PRELOAD",
    "NO_PROXY",
    "PAGER",
    "SSH_ASKPASS",
    "TERM",
    "TMPDIR",
    "TZ",
    "VISUAL",
    "XDG_CONFIG_HOME",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Variables whose value is a truth value, a number or a word, so that it is written.
const VARIABLES_WITH_VALUES: &[&str] = &[
    "GIT_ADVICE",
    "GIT_ALLOW_PROTOCOL",
    "GIT_ATTR_NOSYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_DEFAULT_HASH",
    "GIT_DEFAULT_REF_FORMAT",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_GLOB_PATHSPECS",
    "GIT_HTTP_LOW_SPEED_LIMIT",
    "GIT_HTTP_LOW_SPEED_TIME",
    "GIT_ICASE_PATHSPECS",
    "GIT_INDEX_VERSION",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_NO_LAZY_FETCH",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OPTIONAL_LOCKS",
    "GIT_PROGRESS_DELAY",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_REF_PARANOIA",
    "GIT_SSL_NO_VERIFY",
    "GIT_TERMINAL_PROMPT",
    "PRONTO_NO_FALLBACK",
];

/// Types of file systems by the numbers of statfs(2).
const FILE_SYSTEMS: &[(u64, &str)] = &[
    (0x0000_4d44, "vfat"),
    (0x0000_6969, "nfs"),
    (0x0000_ef53, "ext2, ext3 or ext4"),
    (0x00c3_6400, "ceph"),
    (0x0102_1994, "tmpfs"),
    (0x0102_1997, "9p"),
    (0x2011_bab0, "exfat"),
    (0x2fc1_2fc1, "zfs"),
    (0x5346_544e, "ntfs"),
    (0x5846_5342, "xfs"),
    (0x6573_5546, "fuse"),
    (0x7366_746e, "ntfs3"),
    (0x794c_7630, "overlayfs"),
    (0x8584_58f6, "ramfs"),
    (0x9123_683e, "btrfs"),
    (0xca45_1a4e, "bcachefs"),
    (0xf2f5_2010, "f2fs"),
    (0xfe53_4d42, "smb2"),
    (0xff53_4d42, "cifs"),
];

/// The largest size of a file below `/proc` that is read.
const PROC_LIMIT_BYTES: u64 = 64 * 1024;

/// Appends the description.
pub(super) fn describe(surroundings: &Surroundings, context: &Context, text: &mut String) {
    text.push_str("[System Info]\n");
    line(text, "pronto version", env!("CARGO_PKG_VERSION"));
    line(text, "pronto build", build());
    line(text, "pronto follows", format_args!("git {GIT_VERSION}"));
    line(text, "called as", context.program());
    line(text, "git version", git_version(context));
    let kernel = rustix::system::uname();
    let part = |part: &std::ffi::CStr| printable(&part.to_string_lossy());
    line(
        text,
        "kernel",
        format_args!(
            "{} {} {} {}",
            part(kernel.sysname()),
            part(kernel.release()),
            part(kernel.version()),
            part(kernel.machine())
        ),
    );
    line(text, "C library", c_library());
    let count = std::thread::available_parallelism().map_or(0, usize::from);
    line(text, "processors", count);
    line(text, "memory", memory());
    let limit = getrlimit(Resource::Nofile);
    let shown = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |it| it.to_string());
    let (soft, hard) = (shown(limit.current), shown(limit.maximum));
    line(text, "open files", format_args!("{soft}, at most {hard}"));
    line(text, "terminals", terminals());
    file_systems(surroundings, text);
    variables(surroundings, text);
}

fn build() -> String {
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let linkage = if cfg!(target_feature = "crt-static") || cfg!(static_start) {
        "static"
    } else {
        "default linkage"
    };
    let serve = if cfg!(feature = "serve") {
        "with"
    } else {
        "without"
    };
    let (arch, system) = (std::env::consts::ARCH, std::env::consts::OS);
    format!("{profile}, {linkage}, {arch}-{system}, {serve} pronto-server")
}

/// Returns the version of the git that runs calls which are not native.
fn git_version(context: &Context) -> String {
    if fallback::is_forbidden() {
        return "not examined, because PRONTO_NO_FALLBACK is set".to_owned();
    }
    let Ok(git) = fallback::git(&context.globals) else {
        return "no git found".to_owned();
    };
    let mut command = git.command();
    command.arg("--version");
    match first_line(&mut command) {
        Some(version) if version.starts_with("git version ") => version,
        _ => "unknown".to_owned(),
    }
}

fn c_library() -> String {
    let mut command = child::command("getconf");
    command.arg("GNU_LIBC_VERSION");
    let found = first_line(&mut command).filter(|it| it.starts_with("glibc "));
    found.unwrap_or_else(|| "unknown".to_owned())
}

/// Returns the first line of the output of `command`, if it looks like a version.
fn first_line(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let first = output.stdout.lines().next()?.to_str().ok()?.to_owned();
    let is_plain = |each: char| each.is_ascii_alphanumeric() || " .+-_()".contains(each);
    (first.len() <= 100 && first.chars().all(is_plain)).then_some(first)
}

/// Returns `text` without control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|each| !each.is_control()).collect()
}

fn memory() -> String {
    let read = |file: File| {
        let mut text = String::new();
        file.take(PROC_LIMIT_BYTES)
            .read_to_string(&mut text)
            .map(|_| text)
    };
    let table = File::open("/proc/meminfo")
        .and_then(read)
        .unwrap_or_default();
    let total = table
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|total| total.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.map_or("unknown".to_owned(), |kib| format!("{} MiB", kib / 1024))
}

fn terminals() -> String {
    let streams = [
        ("input", std::io::stdin().is_terminal()),
        ("output", std::io::stdout().is_terminal()),
        ("error", std::io::stderr().is_terminal()),
    ];
    let names: Vec<&str> = (streams.iter())
        .filter(|(_, is_terminal)| *is_terminal)
        .map(|(name, _)| *name)
        .collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

fn file_systems(surroundings: &Surroundings, text: &mut String) {
    let name = |path: &Path| {
        let number = File::open(path).and_then(|file| FileSystem::of(&file));
        let number = number.map(FileSystem::number).unwrap_or_default();
        let known = FILE_SYSTEMS.iter().find(|(known, _)| *known == number);
        match known {
            Some((_, name)) => (*name).to_owned(),
            None if number == 0 => "unknown".to_owned(),
            None => format!("{number:#x}"),
        }
    };
    if let Some(repository) = &surroundings.repository {
        line(
            text,
            "file system of the repository",
            name(repository.git_dir()),
        );
        if let Some(top) = repository.work_tree() {
            line(text, "file system of the worktree", name(top));
        }
    }
    let scratch = surroundings.environment.path("TMPDIR");
    let scratch = scratch.unwrap_or(Path::new("/tmp"));
    line(text, "file system of TMPDIR", name(scratch));
}

fn variables(surroundings: &Surroundings, text: &mut String) {
    text.push_str("\n[Environment variables]\n");
    let mut names: Vec<String> = Vec::new();
    for (name, value) in surroundings.environment.variables() {
        let Some(name) = name.to_str() else {
            continue;
        };
        let is_git = name.starts_with("GIT_") || name.starts_with("PRONTO_");
        let is_plain = |each: u8| each.is_ascii_alphanumeric() || each == b'_';
        if !name.bytes().all(is_plain) || !(is_git || OTHER_VARIABLES.contains(&name)) {
            continue;
        }
        let value = value.as_encoded_bytes();
        let is_shown = VARIABLES_WITH_VALUES.contains(&name) && is_harmless(value);
        names.push(match is_shown {
            true => format!("{name} = {}", String::from_utf8_lossy(value)),
            false => format!("{name} (set)"),
        });
    }
    names.sort();
    for name in &names {
        text.push_str(name);
        text.push('\n');
    }
    if names.is_empty() {
        text.push_str("none\n");
    }
}

//! The system calls of `index-pack` and `checkout`, as counted by `strace`. The counts do not
//! depend on the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use test_support::{output_if_installed, skip};

use crate::support::{Scratch, process, pronto_path};

/// The number of objects to index.
const OBJECTS: u32 = 250_000;
/// The number of loose objects in the target repository.
const LOOSE: u32 = 100_000;
/// The number of them that are also in the pack.
const DUPLICATES: u32 = 12;
/// The number of loose objects in each alternate.
const BORROWED: u32 = 2_000;

/// System calls that read or change metadata.
const METADATA: &[&str] = &[
    "access",
    "chdir",
    "chmod",
    "close",
    "faccessat",
    "faccessat2",
    "fchmod",
    "fchmodat",
    "fcntl",
    "flock",
    "fstat",
    "fsync",
    "ftruncate",
    "getcwd",
    "getdents64",
    "link",
    "linkat",
    "lstat",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "readlink",
    "readlinkat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "unlink",
    "unlinkat",
    "utimensat",
];

/// Returns whether `strace` is installed. It must work then.
pub(crate) fn strace_is_installed() -> bool {
    let mut command = Command::new("strace");
    command.args(["-o", "/dev/null", "true"]);
    let Some(output) = output_if_installed(&mut command) else {
        skip!("counting system calls needs strace");
    };
    assert!(output.status.success(), "{output:?}");
    true
}

fn git(directory: &Path, arguments: &[&str]) {
    let status = process("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .status();
    assert!(status.expect("git starts").success(), "git {arguments:?}");
}

/// Creates a repository with a pack of one blob for each of `numbers`. Returns it with the pack.
fn packed(directory: &Path, numbers: std::ops::Range<u32>) -> PathBuf {
    git(
        Path::new("/"),
        &["init", "-q", "--bare", &directory.to_string_lossy()],
    );
    let mut import = process("git")
        .arg("-C")
        .arg(directory)
        .args(["-c", "fastimport.unpackLimit=0", "fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("git starts");
    let mut input = std::io::BufWriter::new(import.stdin.take().expect("it is a pipe"));
    for number in numbers {
        let content = format!("content of the blob {number}\n");
        write!(input, "blob\ndata {}\n{content}", content.len()).expect("git reads");
    }
    drop(input);
    assert!(import.wait().expect("it ends").success());
    let packs = std::fs::read_dir(directory.join("objects/pack")).expect("it is there");
    let mut packs = packs.map(|entry| entry.expect("it can be listed").path());
    packs
        .find(|path| path.extension().is_some_and(|end| end == "pack"))
        .expect("there is a pack")
}

/// Creates a repository with `count` files that have names of loose objects and must not be opened.
fn loose(scratch: &Scratch, name: &str, count: u32, seed: u64) -> PathBuf {
    /// File systems limit the links of one file.
    const NAMES_OF_A_FILE: u32 = 30_000;
    let directory = scratch.path().join(name);
    git(
        Path::new("/"),
        &["init", "-q", "--bare", &directory.to_string_lossy()],
    );
    let objects = directory.join("objects");
    for fanout in 0..256 {
        std::fs::create_dir(objects.join(format!("{fanout:02x}"))).expect("a directory");
    }
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    };
    let mut file = PathBuf::new();
    for number in 0..count {
        let id = format!("{:016x}{:016x}{:016x}", random(), random(), random());
        let path = objects.join(&id[..2]).join(&id[2..40]);
        if number % NAMES_OF_A_FILE == 0 {
            std::fs::write(&path, "no object").expect("it is writable");
            file = path;
        } else {
            std::fs::hard_link(&file, path).expect("a file may have many names");
        }
    }
    directory
}

/// Indexes `pack` in the repository `to` under strace. Returns the log.
fn trace(scratch: &Scratch, to: &Path, pack: &Path, options: &[&str]) -> String {
    let pack = std::fs::File::open(pack).expect("it is there");
    let arguments = ["index-pack", "--stdin"];
    trace_command(scratch, to, &arguments, pack.into(), options)
}

/// Runs pronto with `arguments` in `directory` under strace. Returns the log.
fn trace_command(
    scratch: &Scratch,
    directory: &Path,
    arguments: &[&str],
    input: Stdio,
    options: &[&str],
) -> String {
    let log = scratch.path().join("log");
    let output = process("strace")
        .args(["-f", "-o"])
        .arg(&log)
        .args(options)
        .arg(pronto_path())
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .env("PRONTO_NO_FALLBACK", "1")
        .stdin(input)
        .output()
        .expect("strace starts");
    assert!(output.status.success(), "{output:?}");
    std::fs::read_to_string(log).expect("strace wrote it")
}

/// Parses the calls by name from `strace -c`: percent, seconds, microseconds per call, calls,
/// errors, name.
fn counts(log: &str) -> BTreeMap<&str, u64> {
    let rows = log.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = *fields.last()?;
        fields[0].parse::<f64>().ok()?;
        Some((name, fields.get(3)?.parse().ok()?))
    });
    rows.filter(|(name, _)| *name != "total").collect()
}

#[test]
fn many_objects_into_an_empty_repository_take_few_calls() {
    if !strace_is_installed() {
        return;
    }
    let scratch = Scratch::new();
    let pack = packed(&scratch.path().join("from"), 0..OBJECTS);
    let to = scratch.path().join("to");
    git(scratch.path(), &["init", "-q", "--bare", "to"]);
    let log = trace(&scratch, &to, &pack, &["-c"]);
    let counts = counts(&log);
    let metadata: u64 = METADATA.iter().filter_map(|name| counts.get(name)).sum();
    let all: u64 = counts.values().sum();
    println!("{OBJECTS} objects: {metadata} metadata calls, {all} calls in all: {counts:?}");
    assert!(metadata > 0 && metadata <= 1000, "{counts:?}");
    git(&to, &["verify-pack", &newest_index(&to)]);
}

fn newest_index(repository: &Path) -> String {
    let files = std::fs::read_dir(repository.join("objects/pack")).expect("it is there");
    let mut paths = files.map(|entry| entry.expect("it can be listed").path());
    let index = paths.find(|path| path.extension().is_some_and(|end| end == "idx"));
    index
        .expect("there is an index")
        .to_string_lossy()
        .into_owned()
}

/// Returns the path that a line of a log opens, and whether it is opened as a directory.
fn opened(line: &str) -> Option<(&str, bool)> {
    let call = line.split_once("openat")?.1;
    let path = call.split('"').nth(1)?;
    Some((path, call.contains("O_DIRECTORY")))
}

#[test]
fn many_objects_beside_loose_ones_take_only_listings() {
    if !strace_is_installed() {
        return;
    }
    let scratch = Scratch::new();
    let to = loose(&scratch, "to", LOOSE, 1);
    let one = loose(&scratch, "one", BORROWED, 2);
    let two = loose(&scratch, "two", BORROWED, 3);
    let few = packed(&scratch.path().join("few"), 0..DUPLICATES);
    let status = process("git")
        .arg("-C")
        .arg(&to)
        .args(["unpack-objects", "-q"])
        .stdin(std::fs::File::open(few).expect("it is there"))
        .status();
    assert!(status.expect("git starts").success());
    let alternates = format!("{}/objects\n{}/objects\n", one.display(), two.display());
    std::fs::write(to.join("objects/info/alternates"), alternates).expect("it is writable");
    let pack = packed(&scratch.path().join("from"), 0..OBJECTS);
    let log = trace(
        &scratch,
        &to,
        &pack,
        &["-e", "trace=openat,openat2,stat,newfstatat,statx"],
    );
    for source in [&to, &one, &two] {
        let objects = format!(
            "{}/objects",
            source.canonicalize().expect("it exists").display()
        );
        let relative = "objects".to_owned();
        let is_below = |path: &str| {
            path.starts_with(&objects) || (source == &to && path.starts_with(&relative))
        };
        let opens: Vec<(&str, bool)> = log.lines().filter_map(opened).collect();
        let below = opens.iter().filter(|(path, _)| is_below(path));
        // Files in the pack and object directories are locks, or listings of packs.
        let lists = |path: &str| !path.ends_with("/pack") && !path.ends_with("objects");
        let listings = below
            .clone()
            .filter(|(path, directory)| *directory && lists(path))
            .count();
        let files: BTreeSet<&str> = below
            .filter(|(path, lists)| !lists && is_loose(path))
            .map(|(path, _)| *path)
            .collect();
        let name = source.file_name().expect("it has a name").to_string_lossy();
        println!(
            "{name}: {listings} listings, {} loose objects opened",
            files.len()
        );
        assert!(
            listings > 0 && listings <= 256,
            "{listings} listings of {name}"
        );
        let duplicates = if source == &to {
            DUPLICATES as usize
        } else {
            0
        };
        assert_eq!(files.len(), duplicates, "{files:?}");
    }
    let asked = log
        .lines()
        .filter(|line| line.contains("stat") && is_loose(line))
        .count();
    println!("{asked} questions about loose objects");
    assert!(asked <= 2 * DUPLICATES as usize, "{asked}");
}

/// Whether a path or line names a loose object: two hexadecimal digits, a slash and 38 more.
fn is_loose(text: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split(['"', '\n', ' ']).any(|word| {
        let mut parts = word.rsplit('/');
        let (Some(rest), Some(fanout)) = (parts.next(), parts.next()) else {
            return false;
        };
        rest.len() == 38 && fanout.len() == 2 && is_hex(rest) && is_hex(fanout)
    })
}

#[test]
fn a_checkout_of_many_directories_does_not_look_for_them() {
    /// The number of subdirectories on each of the three levels.
    const WIDTHS: [u32; 3] = [2, 10, 15];
    if !strace_is_installed() {
        return;
    }
    let scratch = Scratch::new();
    git(scratch.path(), &["init", "-q", "-b", "main", "from"]);
    let from = scratch.path().join("from");
    for leaf in 0..WIDTHS.iter().product() {
        let (upper, lower) = (leaf / WIDTHS[2], leaf % WIDTHS[2]);
        let (top, middle) = (upper / WIDTHS[1], upper % WIDTHS[1]);
        let directory = from.join(format!("top{top}/middle{middle}/leaf{lower}"));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join("file"), format!("{leaf}\n")).expect("a file");
    }
    git(&from, &["add", "."]);
    let identity = ["-c", "user.name=a", "-c", "user.email=a@x"];
    git(&from, &[&identity[..], &["commit", "-qm", "one"]].concat());
    git(scratch.path(), &["clone", "-qn", "from", "to"]);
    let arguments = ["-c", "checkout.workers=2", "checkout", "-q", "main"];
    let options = ["-e", "trace=openat2,mkdirat"];
    let to = scratch.path().join("to");
    let log = trace_command(&scratch, &to, &arguments, Stdio::null(), &options);
    git(&to, &["diff", "--quiet", "HEAD"]);
    let count = |call: &str, end: &str| {
        let is_it = |line: &&str| line.contains(call) && line.contains(end);
        log.lines().filter(is_it).count()
    };
    let (made, failed) = (count("mkdirat", "= 0"), count("openat2", "ENOENT"));
    println!("{made} directories made, {failed} looked for in vain");
    assert!(made >= 300, "{log}");
    // A few directories at the top are opened to look for obstacles and attributes, and by each
    // worker.
    assert!(failed <= 24, "{log}");
}

#[test]
fn a_switch_to_an_id_looks_for_references_and_operations_once() {
    if !strace_is_installed() {
        return;
    }
    let scratch = Scratch::new();
    git(scratch.path(), &["init", "-q", "-b", "main", "to"]);
    let to = scratch.path().join("to");
    std::fs::write(to.join("file"), "1\n").expect("a file");
    git(&to, &["add", "."]);
    let identity = ["-c", "user.name=a", "-c", "user.email=a@x"];
    git(&to, &[&identity[..], &["commit", "-qm", "one"]].concat());
    git(&to, &["pack-refs", "--all"]);
    let id = std::fs::read_to_string(to.join(".git/packed-refs")).expect("it was made");
    let line = id.lines().find(|line| line.ends_with(" refs/heads/main"));
    let id = line
        .and_then(|line| line.split(' ').next())
        .expect("a line of it");
    let arguments = ["switch", "-q", "--detach", id];
    let options = ["-e", "trace=file"];
    let log = trace_command(&scratch, &to, &arguments, Stdio::null(), &options);
    let count = |parts: &[&str]| {
        let is_it = |line: &&str| parts.iter().all(|part| line.contains(part));
        log.lines().filter(is_it).count()
    };
    // `gitrevisions` lists six places. One of them would not be a valid name.
    assert_eq!(count(&[id, "ENOENT", "/refs/"]), 5, "{log}");
    // Once for the name, once for replacements, and twice for the branch of `HEAD`.
    assert!(count(&["/packed-refs"]) <= 4, "{log}");
    for state in ["MERGE_HEAD", "REVERT_HEAD", "AUTO_MERGE", "BISECT_LOG"] {
        assert_eq!(count(&[state]), 0, "{log}");
    }
}

#[test]
fn adding_a_file_takes_one_open_stat_read_and_close() {
    const DIRECTORIES: usize = 40;
    const FILES: usize = 60;
    if !strace_is_installed() {
        return;
    }
    let scratch = Scratch::new();
    git(scratch.path(), &["init", "-q", "work"]);
    let work = scratch.path().join("work");
    for directory in 0..DIRECTORIES {
        let path = work.join(format!("d{}/e{directory}", directory % 4));
        std::fs::create_dir_all(&path).expect("a directory");
        for file in 0..FILES {
            let content = format!("file {file} of {directory}\n");
            std::fs::write(path.join(format!("f{file}")), content).expect("a file");
        }
    }
    let log = trace_command(&scratch, &work, &["add", "-A"], Stdio::null(), &[]);
    git(&work, &["fsck", "--strict", "--full"]);
    git(&work, &["diff", "--quiet"]);
    let calls = |names: &[&str]| {
        let is_it = |line: &&str| {
            let call = line.split('(').next().unwrap_or_default();
            names.iter().any(|name| call.ends_with(name))
        };
        let lines: Vec<&str> = log.lines().filter(is_it).collect();
        lines
    };
    let count = |names: &[&str]| calls(names).len();
    let files = DIRECTORIES * FILES;
    let opens = &["open", "openat", "openat2"][..];
    // Each worker opens the directories that it visits. The number of workers, and how they share
    // directories, depends on the load of the machine.
    let is_directory = |line: &&&str| line.contains("O_DIRECTORY");
    let directories = calls(opens).iter().filter(is_directory).count();
    println!("{directories} times a directory for {files} files");
    assert!(directories <= files / 4, "{directories}");
    for (names, bound) in [
        // Each directory may have a file of ignore patterns and one of attributes.
        (opens, files + directories + 2 * DIRECTORIES + 120),
        (
            &["stat", "fstat", "lstat", "newfstatat", "statx"],
            files + directories + 60,
        ),
        (&["read", "pread64"], files + 60),
        (&["close"], files + directories + 80),
        (
            &["write", "pwrite64", "rename", "unlink", "link", "mkdir"],
            60,
        ),
    ] {
        let calls = count(names);
        println!("{names:?}: {calls} for {files} files in {DIRECTORIES} directories");
        assert!(calls <= bound, "{names:?}: {calls}, not up to {bound}");
    }
}

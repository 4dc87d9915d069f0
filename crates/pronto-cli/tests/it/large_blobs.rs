//! Blobs that are larger than the available memory are streamed from the object store to the file.
//! `ulimit -d` limits the allocated memory, without mapped files.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

use crate::support::{self, Scratch, process, pronto_path};

/// The limit of allocated memory in KiB.
const MEMORY_KIB: u64 = 64 << 10;

/// 1 MiB that compresses well and differs for each number.
fn piece(number: u64) -> Vec<u8> {
    let line = format!("line of piece {number:08} 0123456789 abcdefghijklmnopqrstuvwxyz\n");
    let mut bytes = line.repeat((1 << 20) / line.len() + 1).into_bytes();
    bytes.truncate(1 << 20);
    bytes
}

fn write_large(path: &Path, pieces: u64, changed: Option<u64>) {
    let mut file = std::fs::File::create(path).expect("a file");
    for number in 0..pieces {
        let number = if changed == Some(number) {
            number + (1 << 40)
        } else {
            number
        };
        file.write_all(&piece(number)).expect("there is room");
    }
}

fn assert_large(path: &Path, pieces: u64, changed: Option<u64>) {
    let mut file = std::fs::File::open(path).expect("it is there");
    let mut read = vec![0; 1 << 20];
    for number in 0..pieces {
        let number = if changed == Some(number) {
            number + (1 << 40)
        } else {
            number
        };
        file.read_exact(&mut read).expect("it is long enough");
        assert!(read == piece(number), "piece {number} is another one");
    }
    assert_eq!(file.read(&mut read).expect("it can be read"), 0);
}

fn git(directory: &Path, arguments: &[&str]) {
    let fast = ["-c", "core.looseCompression=1", "-c", "pack.compression=1"];
    support::git(directory, &[&fast[..], arguments].concat());
}

/// Runs pronto with this memory limit.
fn pronto_within(memory_kib: u64, directory: &Path, arguments: &str) {
    let script = format!("ulimit -d {memory_kib} && exec \"$0\" {arguments}");
    let output = process("sh")
        .args(["-c", &script])
        .arg(pronto_path())
        .env("PRONTO_NO_FALLBACK", "1")
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("sh starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {said}");
}

/// Creates a repository with a file `large` of that many MiB, and a branch `other` where one MiB
/// differs.
fn repository(scratch: &Scratch, pieces: u64) -> std::path::PathBuf {
    let work = scratch.path().join("work");
    git(scratch.path(), &["init", "-q", "-b", "main", "work"]);
    write_large(&work.join("large"), pieces, None);
    std::fs::write(work.join("small"), "small\n").expect("a file");
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "one"]);
    git(&work, &["checkout", "-q", "-b", "other"]);
    write_large(&work.join("large"), pieces, Some(pieces / 2));
    git(&work, &["commit", "-qam", "two"]);
    work
}

fn check(work: &Path, pieces: u64) {
    pronto_within(MEMORY_KIB, work, "checkout -q -f main");
    assert_large(&work.join("large"), pieces, None);
    pronto_within(MEMORY_KIB, work, "checkout -q other");
    assert_large(&work.join("large"), pieces, Some(pieces / 2));
    git(work, &["diff", "--quiet", "HEAD"]);
}

#[test]
fn large_blobs_are_checked_out_in_little_memory() {
    const PIECES: u64 = 120;
    let scratch = Scratch::new();
    let work = repository(&scratch, PIECES);
    // First loose, then whole in a pack, then as a delta of 120 MiB on 120 MiB.
    check(&work, PIECES);
    git(
        &work,
        &["-c", "core.bigFileThreshold=1m", "repack", "-adfq"],
    );
    check(&work, PIECES);
    git(&work, &["repack", "-adfq", "--window=2", "--threads=1"]);
    check(&work, PIECES);
    // A blob that is converted is held in memory, and freed before the next one.
    std::fs::write(work.join(".git/info/attributes"), "small eol=crlf\n").expect("a file");
    check(&work, PIECES);
    let left = std::fs::read_dir(work.join(".git/objects/pack")).expect("it is there");
    let left = left.filter(|entry| {
        let name = entry.as_ref().expect("it lists").file_name();
        name.to_string_lossy().starts_with("tmp_")
    });
    assert_eq!(left.count(), 0);
}

#[test]
#[ignore = "writes 4 GiB and takes minutes; `cargo test -- --ignored four_gibibytes` runs it"]
fn a_file_of_four_gibibytes_is_checked_out_in_little_memory() {
    const PIECES: u64 = 4100;
    let scratch = Scratch::new();
    let work = scratch.path().join("work");
    git(scratch.path(), &["init", "-q", "-b", "main", "work"]);
    write_large(&work.join("large"), PIECES, None);
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "one"]);
    for _ in 0..2 {
        std::fs::remove_file(work.join("large")).expect("it was there");
        pronto_within(MEMORY_KIB, &work, "checkout -q -f main");
        assert_large(&work.join("large"), PIECES, None);
        git(&work, &["repack", "-adq"]);
    }
}

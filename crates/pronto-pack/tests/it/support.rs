//! Packs created by stock git from small seeded histories, and packs written byte by byte.

use pronto_hash::{Kind, ObjectId, TrailerDigester};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use test_support::Random;

/// A bare repository. Dropping it removes it.
pub(crate) struct Repository {
    directory: TempDir,
}

impl Repository {
    pub(crate) fn empty(kind: Kind) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let repository = Repository { directory };
        let format = format!("--object-format={kind}");
        repository.git(&["init", "-q", "--bare", &format, "."], b"");
        repository
    }

    /// Creates a history of `commits` commits that change, move and delete files of all sizes.
    pub(crate) fn with_history(kind: Kind, commits: u32) -> Self {
        let repository = Self::empty(kind);
        repository.git(&["fast-import", "--quiet"], history(commits).as_bytes());
        repository
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs git and returns its output.
    pub(crate) fn git(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        self.try_git(arguments, input)
            .unwrap_or_else(|message| panic!("git {arguments:?}: {message}"))
    }

    pub(crate) fn try_git(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        let mut child = Command::new("git")
            .args(arguments)
            .current_dir(self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CEILING_DIRECTORIES", "/")
            .env_remove("GIT_DIR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("git is installed");
        let mut stdin = child.stdin.take().expect("it is piped");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // git may end before it has read everything.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().expect("git ran");
        writer.join().expect("the writer does not panic");
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Creates a pack of all objects, with additional arguments for `pack-objects`.
    pub(crate) fn pack(&self, arguments: &[&str]) -> Vec<u8> {
        self.pack_of(&[&["--all"], arguments].concat(), "")
    }

    pub(crate) fn pack_of(&self, arguments: &[&str], revisions: &str) -> Vec<u8> {
        let mut all = vec!["pack-objects", "--stdout", "--revs", "-q"];
        all.extend(arguments);
        self.git(&all, revisions.as_bytes())
    }

    /// Indexes `pack` with `git index-pack --stdin` and returns the files by extension.
    pub(crate) fn index_with_git(&self, pack: &[u8], arguments: &[&str]) -> Vec<(String, Vec<u8>)> {
        let mut all = vec!["index-pack", "--stdin", "--rev-index"];
        all.extend(arguments);
        self.git(&all, pack);
        files(&self.path().join("objects/pack"))
    }
}

/// Returns the files of a directory by extension, sorted.
pub(crate) fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = paths(directory)
        .into_iter()
        .map(|path| {
            let name = path.extension().unwrap_or(path.as_os_str());
            let content = std::fs::read(&path).expect("it is readable");
            (name.to_string_lossy().into_owned(), content)
        })
        .collect();
    files.sort();
    files
}

pub(crate) fn paths(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory)
        .expect("it is a directory")
        .map(|entry| entry.expect("it is readable").path())
        .collect()
}

fn history(commits: u32) -> String {
    let mut random = Random::new(u64::from(commits));
    let mut files: Vec<Vec<String>> = Vec::new();
    let mut stream = String::new();
    for number in 0..commits {
        let _ = writeln!(
            stream,
            "commit refs/heads/main\ncommitter A U Thor <a@example.com> {} +0000\ndata <<END\nchange {number}\nEND",
            1_700_000_000 + number
        );
        for _ in 0..=random.below(3) {
            let which = random.below(40) as usize;
            if files.len() <= which {
                files.push(Vec::new());
            }
            let which = which.min(files.len() - 1);
            change(&mut files[which], &mut random, which);
            let content = files[which].concat();
            let _ = write!(
                stream,
                "M 100644 inline d{}/f{which}\ndata {}\n{content}\n",
                which % 5,
                content.len()
            );
        }
        if number % 50 == 49 {
            let _ = writeln!(
                stream,
                "tag v{number}\nfrom refs/heads/main\ntagger A <a@example.com> 1700000000 +0000\ndata 3\ntag"
            );
        }
    }
    stream
}

fn change(lines: &mut Vec<String>, random: &mut Random, which: usize) {
    let most = if which == 3 { 4000 } else { 60 };
    if lines.is_empty() {
        for _ in 0..random.below(most) {
            lines.push(line(random));
        }
    }
    for _ in 0..=random.below(4) {
        let at = random.below(lines.len() as u64 + 1) as usize;
        if at < lines.len() && random.below(3) == 0 {
            lines.remove(at);
        } else {
            lines.insert(at, line(random));
        }
    }
}

fn line(random: &mut Random) -> String {
    let mut line = String::new();
    for _ in 0..1 + random.below(9) {
        let _ = write!(line, "{:x} ", random.below(5000));
    }
    line.push('\n');
    line
}

/// Writes valid and invalid packs byte by byte.
pub(crate) struct Maker {
    kind: Kind,
    pub(crate) bytes: Vec<u8>,
    pub(crate) offsets: Vec<u64>,
}

impl Maker {
    pub(crate) fn new(count: u32) -> Self {
        let mut bytes = b"PACK\0\0\0\x02".to_vec();
        bytes.extend_from_slice(&count.to_be_bytes());
        Maker {
            kind: Kind::Sha1,
            bytes,
            offsets: Vec::new(),
        }
    }

    /// Adds an entry whose header claims `size`, with the compressed `content`.
    pub(crate) fn entry(
        &mut self,
        header: pronto_pack::entry::EntryHeader,
        size: u64,
        content: &[u8],
    ) {
        let stream = deflate(content);
        self.raw(header, size, &stream);
    }

    /// Adds an entry with this compressed stream.
    pub(crate) fn raw(
        &mut self,
        header: pronto_pack::entry::EntryHeader,
        size: u64,
        stream: &[u8],
    ) {
        self.offsets.push(self.bytes.len() as u64);
        let entry = pronto_pack::entry::Entry {
            header,
            size_bytes: size,
            header_len: 0,
        };
        entry.encode(&mut self.bytes);
        self.bytes.extend_from_slice(stream);
    }

    pub(crate) fn blob(&mut self, content: &[u8]) {
        use pronto_pack::entry::EntryHeader;
        let header = EntryHeader::Object(gix_object::Kind::Blob);
        self.entry(header, content.len() as u64, content);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let mut digester = TrailerDigester::new(self.kind);
        digester.update(&self.bytes);
        self.bytes.extend_from_slice(digester.finish().as_slice());
        self.bytes
    }
}

pub(crate) fn deflate(content: &[u8]) -> Vec<u8> {
    let level = sirocco::deflate::Level::DEFAULT;
    sirocco::compress(sirocco::Format::Zlib, level, content)
}

pub(crate) fn id_of(kind: gix_object::Kind, content: &[u8]) -> ObjectId {
    let header = format!("{kind} {}\0", content.len());
    pronto_hash::digest(Kind::Sha1, &[header.as_bytes(), content]).expect("no collision")
}

/// Returns a delta that inserts `insert`, for a base of `base_len` bytes.
pub(crate) fn delta(base_len: u8, insert: &[u8]) -> Vec<u8> {
    assert!(base_len < 128 && insert.len() < 128);
    let mut delta = vec![base_len, insert.len() as u8, insert.len() as u8];
    delta.extend_from_slice(insert);
    delta
}

/// Returns a stream for `fast-import` with a history of forks and merges of up to five parents,
/// wrong clocks, dates beyond 32 bits, and paths with bytes above 127.
pub(crate) fn forking_history(seed: u64, commits: u32) -> String {
    let mut random = Random::new(seed);
    let mut stream = String::new();
    for number in 1..=commits {
        let time = match random.below(20) {
            0 => random.below(1 << 31),
            1 => random.below(1 << 31) * 8,
            _ => 1_700_000_000 + u64::from(number) * 60,
        };
        let _ = writeln!(
            stream,
            "commit refs/heads/b{}\nmark :{number}\ncommitter A <a@example.com> {time} +0000\ndata 2\nx",
            random.below(4)
        );
        let known = u64::from(number - 1);
        if known > 0 && random.below(40) != 0 {
            let first = known - random.below(known.min(6));
            let _ = writeln!(stream, "from :{first}");
            let merged = [0, 0, 0, 1, 1, 2, 4][random.below(7) as usize];
            let mut parents = vec![first];
            for _ in 0..merged {
                let parent = known - random.below(known.min(30));
                if !parents.contains(&parent) {
                    parents.push(parent);
                    let _ = writeln!(stream, "merge :{parent}");
                }
            }
        }
        let changes = if random.below(30) == 0 {
            900
        } else {
            random.below(4)
        };
        for _ in 0..changes {
            let (directory, file) = (random.below(7), random.below(900));
            let name = ["plain", "\u{e4}\u{f6}", "z"][random.below(3) as usize];
            let content = random.below(9);
            let _ = match random.below(9) {
                0 if changes < 9 => writeln!(stream, "D d{directory}/{name}"),
                _ => writeln!(
                    stream,
                    "M 100644 inline d{directory}/{name}/{file}\ndata 1\n{content}"
                ),
            };
        }
    }
    stream
}

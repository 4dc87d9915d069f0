//! Repositories made by stock git.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_odb::{Options, Store};
use test_support::Random;

/// A repository that is removed when dropped.
pub(crate) struct Repository {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) kind: Kind,
}

/// An object as reported by `git cat-file --batch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedObject {
    pub(crate) id: ObjectId,
    pub(crate) kind: ObjectKind,
    pub(crate) content: Vec<u8>,
}

/// Runs stock git in `directory`, without the user's configuration.
pub(crate) fn git_in(directory: &Path, arguments: &[&str]) -> Vec<u8> {
    git_with_input(directory, arguments, b"")
}

pub(crate) fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "C")
        .env("GIT_COMMITTER_EMAIL", "c@example.com")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000");
    command
}

pub(crate) fn git_with_input(directory: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = command(directory, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git is installed");
    let mut stdin = child.stdin.take().expect("it is piped");
    let (output, error) = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        let mut error = child.stderr.take().expect("it is piped");
        let error = scope.spawn(move || {
            let mut text = String::new();
            error.read_to_string(&mut text).expect("it is text");
            text
        });
        let mut output = Vec::new();
        let mut stdout = child.stdout.take().expect("it is piped");
        stdout.read_to_end(&mut output).expect("it can be read");
        (output, error.join().expect("it reads only"))
    });
    let status = child.wait().expect("it was started");
    assert!(status.success(), "git {arguments:?}: {error}");
    output
}

impl Repository {
    pub(crate) fn new(kind: Kind) -> Repository {
        let repository = Repository {
            directory: tempfile::tempdir().expect("the temporary directory can be written"),
            kind,
        };
        let format = match kind {
            Kind::Sha256 => "--object-format=sha256",
            _ => "--object-format=sha1",
        };
        repository.git(&["init", "-q", format, "-b", "main"]);
        repository.git(&["config", "gc.auto", "0"]);
        repository.git(&["config", "maintenance.auto", "false"]);
        repository
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> Vec<u8> {
        git_in(self.directory.path(), arguments)
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.directory.path().join(".git/objects")
    }

    pub(crate) fn options(&self) -> Options {
        let mut options = Options::default();
        options.kind = self.kind;
        options
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(self.objects(), self.options()).expect("it can be opened")
    }

    /// Creates `commits` commits from a seed with a few files that grow and change, so that packs
    /// have delta chains.
    pub(crate) fn commit_history(&self, seed: u64, commits: usize) {
        let mut random = Random::new(seed);
        let mut files: Vec<Vec<String>> = (0..6)
            .map(|_| (0..200).map(|_| random_line(&mut random)).collect())
            .collect();
        let mut stream = String::new();
        for commit in 0..commits {
            let at = random.index(files.len());
            let line = random.index(files[at].len());
            files[at][line] = random_line(&mut random);
            files[at].push(random_line(&mut random));
            let message = format!("commit {commit} of {seed}");
            stream += &format!(
                "commit refs/heads/main\ncommitter C <c@example.com> {} +0000\ndata {}\n{message}\n",
                1_700_000_000 + commit,
                message.len(),
            );
            if commit == 0 && self.has_head() {
                stream += "from refs/heads/main^0\n";
            }
            let content = files[at].concat();
            stream += &format!(
                "M 100644 inline dir{}/file{at}\ndata {}\n{content}\n",
                at % 2,
                content.len()
            );
        }
        git_with_input(
            self.directory.path(),
            &[
                "-c",
                "fastimport.unpackLimit=100000",
                "fast-import",
                "--quiet",
            ],
            stream.as_bytes(),
        );
    }

    fn has_head(&self) -> bool {
        command(
            self.directory.path(),
            &["rev-parse", "-q", "--verify", "HEAD"],
        )
        .stdout(Stdio::null())
        .status()
        .expect("git is installed")
        .success()
    }

    /// Returns all objects as reported by stock git, sorted by id.
    pub(crate) fn listed_objects(&self) -> Vec<ListedObject> {
        let bytes = self.git(&["cat-file", "--batch", "--batch-all-objects"]);
        let mut listed = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').expect("a line");
            let line = std::str::from_utf8(&rest[..end]).expect("it is text");
            let mut words = line.split(' ');
            let id = words.next().expect("an id");
            let kind = words.next().expect("a type");
            let size: usize = words.next().expect("a size").parse().expect("a number");
            listed.push(ListedObject {
                id: ObjectId::from_hex(id.as_bytes()).expect("hex"),
                kind: ObjectKind::from_bytes(kind.as_bytes()).expect("a type"),
                content: rest[end + 1..end + 1 + size].to_owned(),
            });
            rest = &rest[end + size + 2..];
        }
        listed
    }

    /// Returns the only file in `objects/pack` with this extension.
    pub(crate) fn pack_file(&self, extension: &str) -> PathBuf {
        let mut files = self.pack_files(extension);
        assert_eq!(files.len(), 1, "one {extension}");
        files.remove(0)
    }

    pub(crate) fn pack_files(&self, extension: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.objects().join("pack")).expect("it is there");
        entries
            .map(|entry| entry.expect("it can be listed").path())
            .filter(|path| path.extension().is_some_and(|other| other == extension))
            .collect()
    }
}

/// Returns a line of random numbers.
pub(crate) fn random_line(random: &mut Random) -> String {
    let mut number = || random.number() >> 16;
    format!("{:x} {:x} {:x}\n", number(), number(), number())
}

/// Asserts that every query of every object gives the result of git.
pub(crate) fn assert_same(store: &Store, listed: &[ListedObject]) {
    let mut content = Vec::new();
    for object in listed {
        let id = &object.id;
        let kind = store.find(id, &mut content).expect("it can be read");
        assert_eq!(kind, Some(object.kind), "{id}");
        assert!(content == object.content, "{id}");
        let header = store.header(id).expect("it can be read").expect("there");
        assert_eq!(
            (header.kind, header.size),
            (object.kind, object.content.len() as u64),
            "{id}"
        );
        assert!(store.contains(id).expect("it can be read"));
    }
    let ids: Vec<ObjectId> = listed.iter().map(|object| object.id).collect();
    let iterated: Vec<ObjectId> = store
        .iter()
        .expect("it can be listed")
        .map(|id| id.expect("it can be read"))
        .collect();
    assert!(iterated == ids, "all ids in order");
}

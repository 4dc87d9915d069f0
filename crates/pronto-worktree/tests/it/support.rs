//! Repositories made by stock git, and their objects in memory.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use gix_object::Kind;
use pronto_hash::{ObjectId, oid};
use pronto_worktree::{Error, ErrorKind, ObjectSource};
pub(crate) use test_support::Scratch;

fn command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@example.com")
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "protocol.file.allow=always",
        ]);
    command
}

/// Runs git and returns its output.
pub(crate) fn git(directory: &Path, args: &[&str]) -> String {
    let output = command(directory).args(args).output().expect("git runs");
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .expect("text")
        .trim_end()
        .to_owned()
}

/// Creates a repository with one commit of the files that `fill` writes.
pub(crate) fn repository(path: &Path, fill: impl FnOnce(&Path)) -> ObjectId {
    std::fs::create_dir_all(path).expect("a directory");
    git(path, &["init", "-q"]);
    commit(path, fill)
}

/// Adds a commit and returns its tree.
pub(crate) fn commit(path: &Path, fill: impl FnOnce(&Path)) -> ObjectId {
    fill(path);
    git(path, &["add", "-A"]);
    git(path, &["commit", "-q", "--allow-empty", "-m", "x"]);
    id(&git(path, &["rev-parse", "HEAD^{tree}"]))
}

pub(crate) fn id(hex: &str) -> ObjectId {
    ObjectId::from_hex(hex.as_bytes()).expect("an id")
}

pub(crate) fn write(path: &Path, name: &str, content: impl AsRef<[u8]>) {
    let file = path.join(name);
    std::fs::create_dir_all(file.parent().expect("it is in a directory")).expect("directories");
    std::fs::write(file, content).expect("a file");
}

/// Returns all objects of a repository.
#[derive(Default)]
pub(crate) struct Memory(HashMap<ObjectId, (Kind, Vec<u8>)>);

impl Memory {
    pub(crate) fn load(repository: &Path) -> Self {
        let mut child = command(repository)
            .args(["cat-file", "--batch-all-objects", "--batch"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git runs");
        let mut bytes = Vec::new();
        let mut stdout = child.stdout.take().expect("it is piped");
        std::io::Read::read_to_end(&mut stdout, &mut bytes).expect("it prints");
        child.wait().expect("it ends");
        let mut objects = HashMap::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').expect("a line");
            let line = std::str::from_utf8(&rest[..end]).expect("text");
            let mut words = line.split(' ');
            let (hex, kind, size) = (words.next(), words.next(), words.next());
            let kind = Kind::from_bytes(kind.expect("a kind").as_bytes()).expect("a known kind");
            let size: usize = size.expect("a size").parse().expect("a number");
            rest = &rest[end + 1..];
            objects.insert(id(hex.expect("an id")), (kind, rest[..size].to_vec()));
            rest = &rest[size + 1..];
        }
        Memory(objects)
    }

    pub(crate) fn forget(&mut self, id: &ObjectId) {
        self.0.remove(id);
    }

    pub(crate) fn insert_tree(&mut self, id: ObjectId, content: Vec<u8>) {
        self.0.insert(id, (Kind::Tree, content));
    }
}

impl ObjectSource for Memory {
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        let Some((kind, content)) = self.0.get(id) else {
            return Err(Error::new(ErrorKind::MissingObject, "object not found").on_object(id));
        };
        buffer.clear();
        buffer.extend_from_slice(content);
        Ok(*kind)
    }
}

/// Lists everything below a directory except for `.git`: path, mode and content or target.
pub(crate) fn listing(top: &Path) -> Vec<(String, u32, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt;
    let mut found = Vec::new();
    let mut todo = vec![top.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(&directory).expect("it lists") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(top).expect("below").display().to_string();
            if name == ".git" {
                continue;
            }
            let metadata = path.symlink_metadata().expect("it is there");
            let content = if metadata.is_symlink() {
                let target = std::fs::read_link(&path).expect("a link");
                target.into_os_string().into_encoded_bytes()
            } else if metadata.is_dir() {
                todo.push(path);
                Vec::new()
            } else {
                std::fs::read(&path).expect("a file")
            };
            found.push((name, metadata.mode(), content));
        }
    }
    found.sort();
    found
}

/// Runs git with `input` on standard input.
pub(crate) fn git_with_input(directory: &Path, args: &[&str], input: &[u8]) -> String {
    let mut child = command(directory)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git runs");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(input)
        .expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8(output.stdout)
        .expect("text")
        .trim_end()
        .to_owned()
}

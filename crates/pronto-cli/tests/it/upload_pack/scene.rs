//! A repository to serve, and conversations with two servers about it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory with a repository `origin`: the branches `main` and `side`, merged; tags; a hidden
/// ref; and an unreachable commit.
pub(super) struct Scene {
    folder: tempfile::TempDir,
    git: &'static Path,
    /// The values that replace names in braces in requests and settings.
    names: BTreeMap<String, String>,
    clock: u64,
}

/// One request, and the arguments of the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Call<'a> {
    pub(super) version: u8,
    pub(super) options: &'a [&'a str],
    pub(super) settings: &'a [(&'a str, &'a str)],
    pub(super) variables: &'a [(&'a str, &'a str)],
    /// The lines of the request; `0000` and `0001` stand for a flush and a delimiter packet.
    pub(super) lines: &'a [&'a str],
    /// The directory to serve; empty for `origin`.
    pub(super) directory: &'a str,
}

/// The response of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The packets, without progress and pack data.
    pub(super) lines: Vec<String>,
    /// The objects of the pack.
    pub(super) objects: Option<Vec<String>>,
    pub(super) stderr: String,
    pub(super) code: Option<i32>,
}

impl Scene {
    /// Creates the scene. Returns `None` if there is no reference git.
    pub(super) fn new() -> Option<Scene> {
        let git = test_support::git::reference()?;
        let folder = tempfile::tempdir().expect("a folder");
        let mut scene = Scene {
            folder,
            git,
            names: BTreeMap::new(),
            clock: 1_700_000_000,
        };
        scene.git(&["init", "-q", "-b", "main", "origin"]);
        (0..4).for_each(|number| scene.commit(&format!("m{number}")));
        scene.git(&["-C", "origin", "checkout", "-q", "-b", "side", "HEAD~2"]);
        (0..3).for_each(|number| scene.commit(&format!("s{number}")));
        scene.git(&["-C", "origin", "checkout", "-q", "main"]);
        let merge = [
            "merge", "-q", "--no-ff", "-m", "merge", "side", "-X", "ours",
        ];
        scene.git(&[&["-C", "origin"], &merge[..]].concat());
        scene.commit("after");
        scene.commit("last");
        scene.git(&["-C", "origin", "tag", "-m", "tagged", "v1", "HEAD~1"]);
        scene.git(&["-C", "origin", "tag", "light", "side"]);
        scene.git(&["-C", "origin", "checkout", "-q", "-b", "gone", "HEAD~1"]);
        scene.commit("hidden");
        scene.git(&["-C", "origin", "update-ref", "refs/hidden/x", "HEAD"]);
        scene.commit("gone");
        for (name, revision) in [
            ("main", "main"),
            ("main~1", "main~1"),
            ("main~2", "main~2"),
            ("main~3", "main~3"),
            ("root", "main~5"),
            ("side", "side"),
            ("side~1", "side~1"),
            ("side~3", "side~3"),
            ("v1", "v1"),
            ("hidden", "refs/hidden/x"),
            ("gone", "gone"),
            ("tree", "main^{tree}"),
            ("subtree", "main:sub"),
            ("blob", "main:f0"),
            ("gone-blob", "gone:f0"),
        ] {
            scene.name(name, revision);
        }
        scene.names.insert("none".into(), "12".repeat(20));
        scene.git(&["-C", "origin", "checkout", "-q", "main"]);
        scene.git(&["-C", "origin", "branch", "-q", "-D", "gone"]);
        Some(scene)
    }

    /// Makes `{name}` stand for the id of `revision`.
    pub(super) fn name(&mut self, name: &str, revision: &str) {
        let id = self.git(&["-C", "origin", "rev-parse", revision]);
        self.names.insert(name.into(), id.trim().into());
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn reference(&self) -> &'static Path {
        self.git
    }

    pub(super) fn commit(&mut self, text: &str) {
        self.clock += 1000;
        let origin = self.path().join("origin");
        let deep = origin.join("sub/deep");
        std::fs::create_dir_all(&deep).expect("a folder");
        let number = self.clock / 1000 % 3;
        let write = |path: PathBuf, count: usize| {
            std::fs::write(path, text.repeat(count)).expect("a file");
        };
        write(origin.join(format!("f{number}")), 50);
        write(deep.join(format!("g{text}")), 1);
        write(origin.join("sub/h"), 200);
        self.git(&["-C", "origin", "add", "."]);
        self.git(&["-C", "origin", "commit", "-q", "-m", text]);
    }

    /// Returns a command with the common environment.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let date = format!("{} +0000", self.clock);
        let directory = self.git.parent().unwrap_or(Path::new("/"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::split_paths(&path);
        let path = std::iter::once(directory.to_owned()).chain(path);
        command
            .current_dir(self.path())
            .env("PATH", std::env::join_paths(path).expect("a search path"))
            .env("HOME", self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .envs([("GIT_AUTHOR_DATE", &date), ("GIT_COMMITTER_DATE", &date)]);
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(self.git);
        command.args(arguments).output().expect("it can be started")
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn filled_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.names {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }

    /// Sends the request to both servers, and fails unless the responses are equal.
    pub(super) fn compare(&self, call: &Call<'_>) -> Answer {
        let ours = self.ask(Path::new(env!("CARGO_BIN_EXE_pronto")), call);
        let theirs = self.ask(self.git, call);
        assert_eq!(ours, theirs, "{call:?}");
        ours
    }

    /// Sends the request to the server of `program`.
    pub(super) fn ask(&self, program: &Path, call: &Call<'_>) -> Answer {
        let mut command = self.command(program);
        let directory = match call.directory {
            "" => "origin",
            directory => directory,
        };
        command.arg("upload-pack").args(call.options).arg(directory);
        if call.version > 0 {
            command.env("GIT_PROTOCOL", format!("version={}", call.version));
        }
        command.env("GIT_CONFIG_COUNT", call.settings.len().to_string());
        for (number, (key, value)) in call.settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{number}"), key);
            command.env(format!("GIT_CONFIG_VALUE_{number}"), self.filled_in(value));
        }
        for (name, value) in call.variables {
            command.env(name, self.filled_in(value));
        }
        let mut request = Vec::new();
        for line in call.lines {
            match *line {
                "0000" | "0001" | "0002" => request.extend_from_slice(line.as_bytes()),
                line => {
                    let line = self.filled_in(line);
                    request.extend_from_slice(format!("{:04x}{line}", line.len() + 4).as_bytes());
                }
            }
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let mut input = child.stdin.take().expect("a pipe");
        let writer = std::thread::spawn(move || _ = input.write_all(&request));
        let output = child.wait_with_output().expect("it ends");
        writer.join().expect("it was written");
        let is_thin = call.lines.iter().any(|line| line.contains("thin-pack"));
        let (lines, pack) = parsed(&output.stdout);
        Answer {
            lines,
            objects: pack.map(|pack| self.objects(directory, &pack, is_thin)),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code(),
        }
    }

    /// Returns the objects of a pack, sorted.
    fn objects(&self, directory: &str, pack: &[u8], is_thin: bool) -> Vec<String> {
        let target = self.receiver(directory);
        let mut command = self.command(self.git);
        command.arg("--git-dir").arg(&target);
        command.args(["index-pack", "--stdin", "--fix-thin", "-v"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it can be started");
        let mut input = child.stdin.take().expect("a pipe");
        let pack = pack.to_vec();
        let count = pack[8..12]
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let writer = std::thread::spawn(move || _ = input.write_all(&pack));
        let output = child.wait_with_output().expect("it ends");
        writer.join().expect("it was written");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "a bad pack: {said}");
        let name = String::from_utf8_lossy(&output.stdout);
        let name = name.split_whitespace().last().expect("a name").to_owned();
        let packs = target.join("objects/pack");
        let index = std::fs::read(packs.join(format!("pack-{name}.idx"))).expect("an index");
        // The same repository receives the next pack.
        std::fs::remove_dir_all(&packs).expect("a folder");
        std::fs::create_dir(&packs).expect("a folder");
        // The bases that completed a thin pack are not part of it.
        match is_thin {
            true => vec![format!("{count} objects")],
            false => ids(&index, name.len() / 2),
        }
    }

    /// Returns a repository that has the objects of the one in `directory`, and receives its packs.
    fn receiver(&self, directory: &str) -> PathBuf {
        let target = self.path().join(format!("receiver-of-{directory}"));
        if target.exists() {
            return target;
        }
        let from = self.path().join(directory);
        let git_dir = match from.join(".git").exists() {
            true => from.join(".git"),
            false => from,
        };
        for made in ["objects/info", "objects/pack", "refs"] {
            std::fs::create_dir_all(target.join(made)).expect("a folder");
        }
        let objects = git_dir.join("objects");
        let config = std::fs::read_to_string(git_dir.join("config")).unwrap_or_default();
        let format = config.contains("objectformat = sha256");
        let format = if format {
            "repositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
        } else {
            "repositoryformatversion = 0\n"
        };
        for (file, content) in [
            ("HEAD", "ref: refs/heads/main\n".to_owned()),
            ("config", format!("[core]\n\tbare = true\n\t{format}")),
            (
                "objects/info/alternates",
                format!("{}\n", objects.display()),
            ),
        ] {
            std::fs::write(target.join(file), content).expect("a file");
        }
        target
    }
}

/// Returns the ids in a pack index of version 2, in their order.
fn ids(index: &[u8], id_len: usize) -> Vec<String> {
    const FANOUT: usize = 8;
    let names = FANOUT + 256 * 4;
    let count = index[names - 4..names]
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let ids = index[names..].chunks_exact(id_len).take(count);
    ids.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect()
}

/// Splits a conversation into its packets, without progress, and the pack.
fn parsed(mut bytes: &[u8]) -> (Vec<String>, Option<Vec<u8>>) {
    let mut lines = Vec::new();
    let mut pack: Option<Vec<u8>> = None;
    while !bytes.is_empty() {
        if bytes.starts_with(b"PACK") {
            lines.push("PACK".into());
            pack = Some(bytes.to_vec());
            break;
        }
        let (length, rest) = bytes.split_at(4);
        let length = std::str::from_utf8(length).expect("a length");
        let length = usize::from_str_radix(length, 16).expect("a length");
        let (line, rest) = rest.split_at(length.max(4) - 4);
        bytes = rest;
        match line {
            _ if length < 4 => lines.push(format!("{length:04}")),
            [2, ..] | [1] => {}
            [1, data @ ..] if pack.is_some() || data.starts_with(b"PACK") => {
                if pack.is_none() {
                    lines.push("PACK".into());
                }
                pack.get_or_insert_default().extend_from_slice(data);
            }
            line => lines.push(plain(line)),
        }
    }
    (lines, pack)
}

/// Removes the text of a line that differs between the two programs.
fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line).into_owned();
    let words = text.split_inclusive([' ', '\n']).map(|word| {
        for own in ["agent=", "session-id="] {
            if word.starts_with(own) {
                return own.to_owned();
            }
        }
        word.to_owned()
    });
    words.collect()
}

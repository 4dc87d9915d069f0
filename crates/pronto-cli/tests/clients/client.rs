//! The clients, with the same operations for each.

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use test_support::git::{reference, release};
use test_support::{output_if_installed, report_missing_reference, report_skip};

use crate::stage::Login;

/// The exit code of a client that lacks an operation.
const UNSUPPORTED: i32 = 9;

/// The python for which Debian's modules are installed.
const PYTHON: &str = "/usr/bin/python3";

/// The timeout of an operation in seconds. Only a client that hangs takes so long.
const SECONDS: u32 = 900;

/// A client of Git servers.
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) version: String,
    kind: Kind,
}

enum Kind {
    /// A git, and a directory of helper programs that its installation lacks.
    Git(PathBuf, tempfile::TempDir),
    /// A program with the command line that `bench/clients/README.md` describes.
    Program(Vec<String>),
}

/// An operation of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    Clone {
        url: &'a str,
    },
    /// A shallow clone with one commit.
    Shallow {
        url: &'a str,
    },
    /// A partial clone without blobs.
    Partial {
        url: &'a str,
    },
    Fetch,
    /// A fetch of this number of commits of each branch.
    Deepen(u32),
    Push(&'a [&'a str]),
}

/// The result of an operation.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    /// The operation failed, with this output of the client.
    Failed(String),
    /// The client lacks the operation.
    Unsupported,
}

impl Client {
    fn new(name: &str, kind: Kind) -> Self {
        let mut command = kind.command();
        let output = command.arg("version").output().expect("it starts");
        assert!(output.status.success(), "{name}: {output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let text = text.trim().trim_start_matches("git version ");
        Client {
            name: name.to_owned(),
            version: text.to_owned(),
            kind,
        }
    }

    /// Returns whether the client supports pushes.
    pub(crate) fn can_push(&self) -> bool {
        !self.name.starts_with("gix")
    }

    /// Runs an operation in `directory`, with the login `login`.
    pub(crate) fn run(
        &self,
        operation: Operation<'_>,
        directory: &Path,
        login: &Login<'_>,
    ) -> Outcome {
        let place = directory.to_str().expect("it is ours");
        let mut command = self.kind.command();
        match &self.kind {
            Kind::Git(..) => command.args(as_git(operation, place)),
            Kind::Program(_) => command.args(as_program(operation, place)),
        };
        login.apply(&mut command);
        outcome(&limited(&command).output().expect("it starts"))
    }
}

impl Kind {
    fn command(&self) -> Command {
        let mut command = match self {
            Kind::Git(path, _) => Command::new(path),
            Kind::Program(words) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
        };
        let mut path = std::env::var_os("PATH").unwrap_or_default();
        if let Kind::Git(git, helpers) = self {
            // A git runs the git on `PATH` for some of its work.
            let directory = git.parent().filter(|path| path.is_absolute());
            let mut first = OsString::new();
            for directory in directory.into_iter().chain([helpers.path()]) {
                first.push(directory);
                first.push(":");
            }
            first.push(path);
            path = first;
        }
        command
            .env_clear()
            .env("PATH", path)
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(Stdio::null());
        if matches!(self, Kind::Git(path, _) if path.is_relative()) {
            send_pushes_whole(&mut command);
        }
        command
    }
}

/// Makes git send a push of the scenario in one request. A larger push is streamed, and then some
/// builds of git deadlock: over HTTP/2, libcurl requests more data from `git remote-https` after
/// the end of the push. `git remote-https` reads from `git send-pack`, which waits for the report.
fn send_pushes_whole(command: &mut Command) {
    command
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "http.postBuffer")
        .env("GIT_CONFIG_VALUE_0", "16777216");
}

/// Returns the arguments for git.
fn as_git<'a>(operation: Operation<'a>, directory: &'a str) -> Vec<String> {
    let (words, more): (&[&str], &[&str]) = match operation {
        Operation::Clone { url } => (&["clone", "-q", url, directory], &[]),
        Operation::Shallow { url } => (&["clone", "-q", "--depth=1", url, directory], &[]),
        Operation::Partial { url } => (&["clone", "-q", "--filter=blob:none", url, directory], &[]),
        Operation::Fetch => (&["-C", directory, "fetch", "-q", "origin"], &[]),
        Operation::Deepen(depth) => {
            let depth = format!("--depth={depth}");
            let words = ["-C", directory, "fetch", "-q", &depth, "origin"];
            return words.map(str::to_owned).to_vec();
        }
        Operation::Push(refspecs) => (&["-C", directory, "push", "origin"], refspecs),
    };
    words
        .iter()
        .chain(more)
        .map(|&word| word.to_owned())
        .collect()
}

/// Returns the arguments for other programs.
fn as_program(operation: Operation<'_>, directory: &str) -> Vec<String> {
    let depth;
    let (words, more): (&[&str], &[&str]) = match operation {
        Operation::Clone { url } => (&["clone", url, directory], &[]),
        Operation::Shallow { url } => (&["shallow", url, directory], &[]),
        Operation::Partial { url } => (&["partial", url, directory], &[]),
        Operation::Fetch => (&["fetch", directory], &[]),
        Operation::Deepen(count) => {
            depth = count.to_string();
            (&["deepen", directory, &depth], &[])
        }
        Operation::Push(refspecs) => (&["push", directory], refspecs),
    };
    words
        .iter()
        .chain(more)
        .map(|&word| word.to_owned())
        .collect()
}

/// Returns the command with a timeout, because some clients wait forever for a response that they
/// misunderstand.
fn limited(command: &Command) -> Command {
    let mut limited = Command::new("timeout");
    limited
        .arg("--kill-after=5")
        .arg(SECONDS.to_string())
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null());
    limited
}

fn outcome(output: &Output) -> Outcome {
    match output.status.code() {
        Some(0) => Outcome::Done,
        Some(UNSUPPORTED) => Outcome::Unsupported,
        _ => {
            let streams = [&output.stdout, &output.stderr];
            let text = streams.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            Outcome::Failed(text.concat())
        }
    }
}

/// Returns the clients on this machine, and those of the file that `PRONTO_TEST_CLIENTS` names. A
/// line of the file has the name of a client, a tab, and the words of its command, separated by
/// tabs.
pub(crate) fn all() -> Vec<Client> {
    if let Some(path) = std::env::var_os("PRONTO_TEST_CLIENTS") {
        let text = std::fs::read_to_string(&path).expect("PRONTO_TEST_CLIENTS names a file");
        return text.lines().map(listed).collect();
    }
    let installed = Path::new("git");
    let mut clients = vec![git("git-installed", installed)];
    match reference() {
        Some(path) if release(path) != release(installed) => {
            clients.push(git("git-reference", path));
        }
        Some(_) => {}
        None => report_missing_reference(&"git 2.55 as a client"),
    }
    for (name, module) in [("libgit2", "pygit2"), ("dulwich", "dulwich")] {
        let script = format!(
            "{}/../../bench/clients/{name}/client.py",
            env!("CARGO_MANIFEST_DIR")
        );
        let words = [PYTHON, &script].map(str::to_owned).to_vec();
        if has_module(module) {
            clients.push(Client::new(name, Kind::Program(words)));
        } else {
            let missing = format!("{PYTHON} has no {module}");
            report_skip(&missing, &test_support::INSTALL);
        }
    }
    clients
}

/// Returns whether python with this module is installed.
fn has_module(module: &str) -> bool {
    let script =
        "import importlib.util, sys\nprint(importlib.util.find_spec(sys.argv[1]) is not None)";
    let mut command = Command::new(PYTHON);
    command.args(["-c", script, module]);
    let Some(output) = output_if_installed(&mut command) else {
        return false;
    };
    assert!(output.status.success(), "{output:?}");
    output.stdout == b"True\n"
}

fn git(name: &str, path: &Path) -> Client {
    Client::new(name, kind_of_git(path))
}

/// Returns the client for a git. In a copy of an installed git, the HTTPS helper may be missing,
/// because it was a link to the HTTP helper.
fn kind_of_git(path: &Path) -> Kind {
    let helpers = tempfile::tempdir().expect("a directory");
    let output = Command::new(path).arg("--exec-path").output();
    let output = output.expect("git runs").stdout;
    let programs = PathBuf::from(String::from_utf8_lossy(&output).trim());
    let helper = std::fs::metadata(programs.join("git-remote-https"));
    if !helper.is_ok_and(|file| file.permissions().mode() & 0o111 != 0) {
        let link = helpers.path().join("git-remote-https");
        symlink(programs.join("git-remote-http"), link).expect("a link");
    }
    Kind::Git(path.to_owned(), helpers)
}

fn listed(line: &str) -> Client {
    let mut words = line.split('\t').map(str::to_owned);
    let name = words.next().expect("a name");
    let words: Vec<String> = words.collect();
    let kind = match (name.starts_with("git-"), &words[..]) {
        (true, [path]) => kind_of_git(Path::new(path)),
        _ => Kind::Program(words),
    };
    Client::new(&name, kind)
}

//! The sandbox of one row: a home with credentials, a neighbouring repository, canary files, and
//! the only directory to which the command may write.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The credential helper. It reads the file `credentials` in its directory, whose lines contain
/// protocol, host, user and password.
const HELPER: &str = r#"#!/bin/sh
test "$1" = get || exit 0
while IFS= read -r line; do
    case $line in
    protocol=*) protocol=${line#protocol=} ;;
    host=*) host=${line#host=} ;;
    esac
done
while read -r known_protocol known_host user password; do
    if test "$known_protocol $known_host" = "$protocol $host"; then
        echo "username=$user"
        echo "password=$password"
    fi
done <"${0%/*}/credentials"
"#;

/// The sandbox of one row. The directory is removed when the value is dropped.
pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
    root: PathBuf,
    pub(crate) ids: &'static Ids,
}

/// The objects that hostile servers offer.
#[derive(Debug)]
pub(crate) struct Ids {
    /// The first commit of `project` and of `origin`.
    pub(crate) first: String,
    /// The second commit of `project`, its branch `main`.
    pub(crate) second: String,
    /// A pack with all objects reachable from `first`.
    pub(crate) pack: Vec<u8>,
    /// A pack with all objects reachable from `second`.
    pub(crate) both: Vec<u8>,
}

struct Template {
    folder: tempfile::TempDir,
    ids: Ids,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let template = template();
        let folder = scratch();
        let root = folder.path().canonicalize().expect("it exists");
        copy(template.folder.path(), &root);
        let sandbox = Sandbox {
            folder,
            root,
            ids: &template.ids,
        };
        let helper = sandbox.script("home/helper", HELPER);
        let text = format!(
            "[user]\n\tname = A U Thor\n\temail = author@example.com\n\
             [init]\n\tdefaultBranch = main\n\
             [credential]\n\thelper = {}\n",
            helper.display()
        );
        sandbox.write("home/.gitconfig", text);
        sandbox
    }

    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// Returns the directory of the sandbox.
    pub(crate) fn root(&self) -> &Path {
        debug_assert!(self.folder.path().exists(), "a sandbox outlives its row");
        &self.root
    }

    /// Writes a file, and the directories above it.
    pub(crate) fn write(&self, relative: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        let above = path.parent().expect("it is in the sandbox");
        std::fs::create_dir_all(above).expect("a directory");
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// Appends text to a file.
    pub(crate) fn append(&self, relative: impl AsRef<Path>, text: &str) {
        let path = self.path(relative);
        let mut content = std::fs::read(&path).unwrap_or_default();
        content.extend_from_slice(text.as_bytes());
        std::fs::write(path, content).expect("a file");
    }

    /// Writes an executable script from another process. Otherwise a child that another thread
    /// starts at the same time would inherit the open file, and the script could not be executed
    /// until that child ends.
    pub(crate) fn script(&self, relative: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.path(relative);
        let above = path.parent().expect("it is in the sandbox");
        std::fs::create_dir_all(above).expect("a directory");
        let mut shell = Command::new("sh")
            .args(["-c", r#"cat >"$1" && chmod 755 "$1""#, "sh"])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let mut input = shell.stdin.take().expect("it is a pipe");
        input.write_all(text.as_bytes()).expect("sh reads");
        drop(input);
        assert!(shell.wait().expect("it ends").success(), "a script");
        path
    }

    /// Writes a script that leaves a mark outside of the clone. No attack may run this script.
    pub(crate) fn payload(&self, relative: impl AsRef<Path>) -> PathBuf {
        let mark = self.path("outside/pwned");
        let text = format!("#!/bin/sh\necho pwned >>'{}'\n", mark.display());
        self.script(relative, &text)
    }

    /// Returns the shell command that leaves a mark outside of the clone.
    pub(crate) fn payload_command(&self) -> String {
        format!("touch {}", self.path("outside/pwned").display())
    }

    /// Creates a symbolic link.
    pub(crate) fn link(&self, target: impl AsRef<Path>, relative: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(relative)).expect("a link");
    }

    /// Creates a FIFO without a writer.
    pub(crate) fn fifo(&self, relative: impl AsRef<Path>) {
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, self.path(relative), kind, mode, 0).expect("a FIFO");
    }

    pub(crate) fn remove(&self, relative: impl AsRef<Path>) {
        std::fs::remove_file(self.path(relative)).expect("it was there");
    }

    /// Runs the git that builds repositories in the directory `at`. Returns its output, trimmed.
    pub(crate) fn git(&self, at: &str, arguments: &[&str]) -> String {
        git(&self.path(at), arguments, b"")
    }

    /// Does the same as [`Self::git`], with `input` on standard input.
    pub(crate) fn git_reading(&self, at: &str, arguments: &[&str], input: &[u8]) -> String {
        git(&self.path(at), arguments, input)
    }

    /// Does the same as [`Self::git_reading`], but returns the output as bytes.
    pub(crate) fn git_bytes(&self, at: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        git_bytes(&self.path(at), arguments, input)
    }

    /// Creates the canary of a credential that the helper returns only for `host`.
    pub(crate) fn credential(&self, protocol: &str, host: &str, secret: &str) {
        self.append(
            "home/credentials",
            &format!("{protocol} {host} somebody {secret}\n"),
        );
    }

    /// Appends to the configuration of the user.
    pub(crate) fn configure(&self, text: &str) {
        self.append("home/.gitconfig", text);
    }

    /// Copies the repository `origin` to the directory `at`.
    pub(crate) fn repository(&self, at: &str) {
        copy(&self.path("server/origin"), &self.path(at));
    }
}

fn scratch() -> tempfile::TempDir {
    let builder = tempfile::Builder::new().prefix("pronto-attack-").tempdir();
    builder.expect("a directory")
}

/// Returns the template of all sandboxes.
fn template() -> &'static Template {
    static TEMPLATE: OnceLock<Template> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let folder = scratch();
        let root = folder.path();
        for name in ["home", "outside/folder", "work", "tmp", "server"] {
            std::fs::create_dir_all(root.join(name)).expect("a directory");
        }
        for name in ["outside/canary", "outside/folder/file", "home/.netrc"] {
            std::fs::write(root.join(name), "canary\n").expect("a file");
        }
        let project = root.join("project");
        git(root, &["init", "-q", "-b", "main", "project"], b"");
        std::fs::write(project.join("file"), "one\n").expect("a file");
        git(&project, &["add", "."], b"");
        git(&project, &["commit", "-qm", "one"], b"");
        let first = git(&project, &["rev-parse", "HEAD"], b"");
        git(root, &["clone", "-q", "project", "server/origin"], b"");
        git(
            &root.join("server/origin"),
            &["remote", "remove", "origin"],
            b"",
        );
        std::fs::write(project.join("file"), "two\n").expect("a file");
        git(&project, &["commit", "-qam", "two"], b"");
        let second = git(&project, &["rev-parse", "HEAD"], b"");
        let list = ["pack-objects", "-q", "--all", "--stdout"];
        let pack = git_bytes(&root.join("server/origin"), &list, b"");
        let ids = Ids {
            first,
            second,
            pack,
            both: git_bytes(&project, &list, b""),
        };
        Template { folder, ids }
    })
}

fn git(at: &Path, arguments: &[&str], input: &[u8]) -> String {
    let output = git_bytes(at, arguments, input);
    String::from_utf8_lossy(&output).trim_end().to_owned()
}

/// Runs the git that builds repositories without protections.
fn git_bytes(at: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let lax = [
        "protocol.file.allow=always",
        "core.protectNTFS=false",
        "core.protectHFS=false",
        "safe.directory=*",
        "gc.auto=0",
        "maintenance.auto=false",
    ];
    let lax = lax.iter().flat_map(|setting| ["-c", setting]);
    let arguments: Vec<&str> = lax.chain(arguments.iter().copied()).collect();
    let output = test_support::git::isolated(at, &arguments, input);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    output.stdout
}

/// Copies a directory recursively. Symbolic links stay links.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("it lists").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("it is there");
        if kind.is_dir() {
            copy(&path, &target);
        } else if kind.is_symlink() {
            let link = std::fs::read_link(&path).expect("a link");
            std::os::unix::fs::symlink(link, target).expect("a link");
        } else {
            std::fs::copy(&path, &target).expect("a file");
        }
    }
}

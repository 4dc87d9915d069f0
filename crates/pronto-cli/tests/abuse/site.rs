//! The files of a served site: repositories, users and canaries.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::rc::Rc;
use std::sync::OnceLock;

use test_support::Random;
use test_support::git::isolated;

use crate::judge::files;
use crate::stored::{Behind, Place, leftovers_of_cache, names_in};

/// Returns the program under test.
pub(crate) fn pronto() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pronto"))
}

/// The permissions and rules of every site.
pub(crate) const ACCESS: &str = r#"
[[grant]]
repository = "open/*"
users = ["anonymous"]
role = "read"
[[grant]]
repository = "team/*"
users = ["alice"]
role = "write"
[[grant]]
repository = "team/a"
users = ["bob", "mallory"]
role = "read"
[[grant]]
repository = "vault/*"
users = ["alice"]
role = "read"
[[grant]]
repository = "own/*"
users = ["mallory"]
role = "admin"
[[grant]]
repository = "**"
users = ["root"]
role = "admin"
[[rule]]
repository = "team/a"
refs = "refs/heads/main"
users = ["alice"]
force = false
delete = false
[[rule]]
repository = "own/ruled"
refs = "refs/**"
force = false
"#;

/// The users, each with one token.
const USERS: [&str; 4] = ["alice", "bob", "mallory", "root"];

/// The repositories of every site.
pub(crate) const REPOSITORIES: [&str; 5] = ["team/a", "open/p", "vault/x", "own/m", "own/ruled"];

/// The ids of objects and the tokens of the template.
#[derive(Debug)]
pub(crate) struct Ids {
    /// The first and the second commit of all repositories.
    pub(crate) first: String,
    pub(crate) second: String,
    /// A commit of the hidden ref `refs/hidden/secret` of `team/a` and of `open/p`, and its blob.
    pub(crate) hidden: String,
    pub(crate) hidden_blob: String,
    /// An unreachable commit of `team/a` and of `open/p`.
    pub(crate) lost: String,
    /// A commit that only `vault/x` has.
    pub(crate) vault: String,
    /// The tokens of the users, in the order of [`USERS`].
    tokens: Vec<String>,
}

impl Ids {
    pub(crate) fn token(&self, user: &str) -> &str {
        let at = USERS.iter().position(|known| *known == user);
        &self.tokens[at.expect("a known user")]
    }

    pub(crate) fn tokens(&self) -> &[String] {
        &self.tokens
    }
}

struct Template {
    folder: tempfile::TempDir,
    ids: Ids,
}

/// The files of one row, which are removed when the value is dropped.
pub(crate) struct Site {
    folder: tempfile::TempDir,
    /// The store, if the repositories are in one.
    behind: Option<Rc<Behind>>,
    /// The generations of the repositories in the store when the first server started.
    published: OnceCell<BTreeMap<String, Option<u64>>>,
    /// The names of the repositories when the first server started.
    named: OnceCell<BTreeSet<String>>,
    pub(crate) ids: &'static Ids,
}

impl Site {
    pub(crate) fn new(place: Place) -> Self {
        let template = template();
        let folder = scratch();
        copy(template.folder.path(), folder.path());
        let behind = (place == Place::Store).then(|| {
            copy(stored_template(), &folder.path().join("store"));
            let behind = Behind::new(folder.path());
            Rc::new(behind.with_home(&folder.path().join("home")))
        });
        Site {
            folder,
            behind,
            published: OnceCell::new(),
            named: OnceCell::new(),
            ids: &template.ids,
        }
    }

    /// Returns the store, if the repositories are in one.
    pub(crate) fn share_behind(&self) -> Option<Rc<Behind>> {
        self.behind.clone()
    }

    pub(crate) fn is_store(&self) -> bool {
        self.behind.is_some()
    }

    /// Prepares the repositories for a server. Returns lines to append to its configuration.
    pub(crate) fn publish(&self) -> String {
        let Some(behind) = &self.behind else {
            self.named.get_or_init(|| self.names());
            return String::new();
        };
        self.published.get_or_init(|| {
            for name in REPOSITORIES {
                let now = self.directory(name);
                let then = template_path().join(format!("root/{name}.git"));
                if files(&now) != files(&then) {
                    behind.publish(&now, name);
                }
            }
            behind.publish_new(&self.path("root"));
            let names = behind.names().into_iter();
            names
                .map(|name| (name.clone(), behind.generation(&name)))
                .collect()
        });
        self.named.get_or_init(|| self.names());
        behind.section("cache")
    }

    /// Returns the names of the served repositories.
    fn names(&self) -> BTreeSet<String> {
        match &self.behind {
            Some(behind) => behind.names().into_iter().collect(),
            None => names_in(&self.path("root")).into_iter().collect(),
        }
    }

    /// Returns the names of the repositories that servers have created or removed.
    pub(crate) fn changed_names(&self) -> BTreeSet<String> {
        let before = self.named.get().cloned().unwrap_or_default();
        let now = self.names();
        before.symmetric_difference(&now).cloned().collect()
    }

    /// Returns the number of the newest generation of a repository in a store, if the repository
    /// exists.
    pub(crate) fn generation(&self, name: &str) -> Option<u64> {
        self.behind.as_ref()?.generation(name)
    }

    /// Returns whether servers have left a repository of a store unchanged.
    pub(crate) fn is_unchanged(&self, name: &str) -> bool {
        match (&self.behind, self.published.get()) {
            (Some(behind), Some(published)) => {
                published.get(name) == Some(&behind.generation(name))
            }
            _ => false,
        }
    }

    /// Returns the names of the served repositories below `directory`.
    pub(crate) fn names_below(&self, directory: &str) -> Vec<String> {
        match &self.behind {
            Some(behind) => {
                let start = format!("{directory}/");
                let names = behind.names().into_iter();
                names.filter(|name| name.starts_with(&start)).collect()
            }
            None => {
                let entries = std::fs::read_dir(self.path("root").join(directory));
                let entries = entries.expect("a directory").flatten();
                let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
                names.collect()
            }
        }
    }

    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// Returns the directory of a served repository. If the repository is in a store, the directory
    /// is a copy once a server has started.
    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        match &self.behind {
            Some(behind) if self.published.get().is_some() => {
                let exported = self.path(format!("exported/{name}.git"));
                behind.export(name, &exported);
                exported
            }
            _ => self.directory(name),
        }
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.path(format!("root/{name}.git"))
    }

    /// Checks the repositories of a store, and that requests have left no temporary objects.
    pub(crate) fn check_store(&self) -> Result<(), String> {
        let Some(behind) = &self.behind else {
            return Ok(());
        };
        let names = behind.names().into_iter();
        for name in names.filter(|name| !self.is_unchanged(name)) {
            let problems = behind.problems(&name);
            if !problems.is_empty() {
                return Err(format!("the store has problems with {name}: {problems:?}"));
            }
        }
        if let Some(left) = leftovers_of_cache(&self.path("cache")).first() {
            return Err(format!("'{}' is left", left.display()));
        }
        Ok(())
    }

    /// Adds the repository `open/big`, whose only commit is larger than the buffers of sockets.
    pub(crate) fn add_big(&self) {
        static BIG: OnceLock<tempfile::TempDir> = OnceLock::new();
        let big = BIG.get_or_init(|| {
            let folder = scratch();
            git(folder.path(), &["init", "-q", "-b", "main", "work"]);
            let work = folder.path().join("work");
            git(&work, &["config", "core.compression", "0"]);
            let noise = Random::new(7).bytes(14 << 20);
            std::fs::write(work.join("noise"), noise).expect("a file");
            git(&work, &["add", "."]);
            git(&work, &["commit", "-qm", "noise"]);
            git(folder.path(), &["clone", "-q", "--bare", "work", "big.git"]);
            git(&folder.path().join("big.git"), &["repack", "-adq"]);
            folder
        });
        copy(&big.path().join("big.git"), &self.directory("open/big"));
    }

    /// Sets a key in the configuration of a served repository.
    pub(crate) fn configure(&self, repository: &str, key: &str, value: &str) {
        git(&self.directory(repository), &["config", key, value]);
    }

    /// Installs a hook in a served repository.
    pub(crate) fn hook(&self, repository: &str, name: &str, script: &str) {
        let hooks = self.directory(repository).join("hooks");
        std::fs::create_dir_all(&hooks).expect("a directory");
        let text = format!("#!/bin/sh\n{script}\n");
        test_support::write_program(&hooks.join(name), &text);
    }

    /// Runs git in the directory `at`. It must succeed. Returns its output, trimmed.
    pub(crate) fn git(&self, at: &Path, arguments: &[&str]) -> String {
        git(at, arguments)
    }

    /// Returns whether a served repository has an object.
    pub(crate) fn has(&self, repository: &str, id: &str) -> bool {
        let at = self.repository(repository);
        isolated(&at, &["cat-file", "-e", id], b"").status.success()
    }

    /// Runs git, which may fail.
    pub(crate) fn try_git(&self, at: &Path, arguments: &[&str]) -> Output {
        isolated(at, arguments, b"")
    }
}

fn scratch() -> tempfile::TempDir {
    let builder = tempfile::Builder::new().prefix("pronto-abuse-").tempdir();
    builder.expect("a directory")
}

/// Returns the template: the files of a site before the row starts.
pub(crate) fn template_path() -> &'static Path {
    template().folder.path()
}

/// Returns a store with the repositories of the template.
fn stored_template() -> &'static Path {
    static STORED: OnceLock<tempfile::TempDir> = OnceLock::new();
    let make = || {
        let folder = scratch();
        Behind::new(folder.path()).publish_new(&template_path().join("root"));
        folder
    };
    let folder = STORED.get_or_init(make).path();
    static STORE: OnceLock<PathBuf> = OnceLock::new();
    STORE.get_or_init(|| folder.join("store"))
}

fn template() -> &'static Template {
    static TEMPLATE: OnceLock<Template> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let folder = scratch();
        let root = folder.path();
        for name in ["home", "outside", "tmp", "root"] {
            std::fs::create_dir_all(root.join(name)).expect("a directory");
        }
        std::fs::write(root.join("outside/canary"), "canary\n").expect("a file");
        let ids = repositories(root);
        let config = root.join("server.toml");
        std::fs::write(&config, "root = \"root\"\n").expect("a file");
        let tokens = USERS.map(|user| {
            manage(&config, &["user", "add", user]);
            manage(&config, &["token", user])
        });
        Template {
            ids: Ids {
                tokens: tokens.to_vec(),
                ..ids
            },
            folder,
        }
    })
}

/// Creates all repositories below `root`.
fn repositories(root: &Path) -> Ids {
    git(root, &["init", "-q", "-b", "main", "work"]);
    let work = root.join("work");
    let mut commits = Vec::new();
    for text in ["one", "two"] {
        std::fs::write(work.join("file"), format!("{text}\n")).expect("a file");
        git(&work, &["add", "."]);
        git(&work, &["commit", "-qm", text]);
        commits.push(git(&work, &["rev-parse", "HEAD"]));
    }
    git(&work, &["tag", "-am", "first", "v1", "HEAD~"]);
    for name in REPOSITORIES {
        let bare = format!("root/{name}.git");
        git(root, &["clone", "-q", "--bare", "work", &bare]);
        let bare = root.join(bare);
        git(&bare, &["remote", "remove", "origin"]);
        git(&bare, &["config", "gc.auto", "0"]);
        git(&bare, &["config", "receive.autogc", "false"]);
    }
    let vault = secret(&root.join("root/vault/x.git"), "vault");
    git(
        &root.join("root/vault/x.git"),
        &["branch", "-f", "main", &vault],
    );
    let (mut hidden, mut lost) = (String::new(), String::new());
    for name in ["team/a", "open/p"] {
        let bare = root.join(format!("root/{name}.git"));
        hidden = secret(&bare, "hidden");
        git(&bare, &["update-ref", "refs/hidden/secret", &hidden]);
        git(&bare, &["config", "transfer.hideRefs", "refs/hidden"]);
        lost = secret(&bare, "lost");
    }
    let outside = ["clone", "-q", "--bare", "root/vault/x.git", "outside/s.git"];
    git(root, &outside);
    // The commit that the honest client pushes.
    let honest = ["commit", "-q", "--allow-empty", "-m", "honest"];
    git(&work, &honest);
    git(root, &["init", "-q", "--bare", "reader"]);
    let bare = root.join("root/team/a.git");
    let blob = git(&bare, &["rev-parse", &format!("{hidden}:secret")]);
    Ids {
        first: commits[0].clone(),
        second: commits[1].clone(),
        hidden,
        hidden_blob: blob,
        lost,
        vault,
        tokens: Vec::new(),
    }
}

/// Creates an unreachable commit with a file `secret`.
fn secret(bare: &Path, text: &str) -> String {
    let content = format!("what only {text} holds\n");
    let blob = isolated(bare, &["hash-object", "-w", "--stdin"], content.as_bytes());
    let blob = text_of(&blob);
    let line = format!("100644 blob {blob}\tsecret\n");
    let tree = text_of(&isolated(bare, &["mktree"], line.as_bytes()));
    git(bare, &["commit-tree", "-m", text, &tree])
}

/// Runs `pronto serve` to manage users. Returns its output, trimmed.
pub(crate) fn manage(config: &Path, arguments: &[&str]) -> String {
    let output = Command::new(pronto())
        .args(["serve", "--config"])
        .arg(config)
        .args(arguments)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    text_of(&output)
}

pub(crate) fn text_of(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim_end().to_owned()
}

fn git(at: &Path, arguments: &[&str]) -> String {
    let output = isolated(at, arguments, b"");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    text_of(&output)
}

/// Copies a directory recursively.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("it lists").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().expect("it is there").is_dir() {
            true => copy(&path, &target),
            false => _ = std::fs::copy(&path, &target).expect("a file"),
        }
    }
}

/// Runs `pronto shell` with a forced command of a user. Returns its output.
pub(crate) fn shell_as(site: &Site, user: &str, command: &str, input: &[u8]) -> Output {
    use std::io::Write as _;
    let mut child = Command::new(pronto())
        .args(["shell", "--config"])
        .arg(site.path("server.toml"))
        .args(["--user", user])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", site.path("home"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("PRONTO_NO_FALLBACK", "1")
        .env("SSH_CONNECTION", "127.0.0.66 1 127.0.0.1 22")
        .env("SSH_ORIGINAL_COMMAND", command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // A program that refuses does not read its input.
    let _ = child.stdin.take().expect("it is a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

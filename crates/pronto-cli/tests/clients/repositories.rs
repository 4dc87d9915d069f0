//! Creates the repositories to serve.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::git::isolated;
use test_support::write_program;

/// The hook of both servers: it refuses the branch `hooked`, and updates of `main` that are not
/// fast-forwards. The second rule corresponds to a rule in pronto's test configuration.
const PRE_RECEIVE: &str = "#!/bin/sh\nwhile read old new name; do\n\
    [ \"$name\" = refs/heads/hooked ] || continue\n\
    echo 'no branch may be named hooked'; exit 1\ndone\n";
const UPDATE: &str = "#!/bin/sh\n[ \"$1\" = refs/heads/main ] || exit 0\n\
    git merge-base --is-ancestor \"$2\" \"$3\" && exit 0\necho 'main is protected'; exit 1\n";

/// The repositories from which those of trials are copied.
pub(crate) struct Templates {
    /// The repository that is served.
    served: PathBuf,
    /// The same repository, some commits later.
    later: PathBuf,
}

impl Templates {
    pub(crate) fn new(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).expect("a directory");
        let templates = Templates {
            served: folder.join("served.git"),
            later: folder.join("later.git"),
        };
        let served = &templates.served;
        git(
            folder,
            &["init", "-q", "--bare", "-b", "main", "served.git"],
            "",
        );
        git(served, &["fast-import", "--quiet"], &history());
        let name = ["symbolic-ref", "refs/heads/alias", "refs/heads/main"];
        git(served, &name, "");
        git(
            served,
            &["tag", "-a", "-m", "one", "v1", "refs/heads/main~2"],
            "",
        );
        git(
            served,
            &["tag", "-a", "-m", "a tag of a tag", "v1-again", "v1"],
            "",
        );
        git(
            served,
            &[
                "tag",
                "-a",
                "-m",
                "a tree",
                "tree",
                "refs/heads/main^{tree}",
            ],
            "",
        );
        git(served, &["tag", "blob", "refs/heads/main:file"], "");
        let mut updates = String::new();
        for number in 0..300 {
            let kind = ["heads/many", "tags/many"][number % 2];
            let _ = writeln!(
                updates,
                "create refs/{kind}/{number} refs/heads/main~{}",
                number % 3
            );
        }
        git(served, &["update-ref", "--stdin"], &updates);
        // Some refs and some objects are packed.
        git(served, &["pack-refs", "--all"], "");
        git(served, &["repack", "-q", "-a", "-d"], "");
        git(served, &["tag", "loose", "refs/heads/side"], "");
        git(
            folder,
            &["clone", "-q", "--mirror", "served.git", "later.git"],
            "",
        );
        let later = &templates.later;
        git(
            later,
            &["fast-import", "--quiet", "--force"],
            &more_history(),
        );
        git(
            later,
            &["tag", "-a", "-m", "two", "v2", "refs/heads/main"],
            "",
        );
        for name in ["refs/heads/many/0", "refs/heads/many/2"] {
            git(later, &["update-ref", "-d", name], "");
        }
        templates
    }

    /// Copies the repository, with the hooks.
    pub(crate) fn copy(&self, to: &Path, has_update_hook: bool) {
        let status = Command::new("cp")
            .arg("-r")
            .arg(&self.served)
            .arg(to)
            .status();
        assert!(status.expect("cp runs").success(), "a copy");
        git(to, &["config", "uploadpack.allowFilter", "true"], "");
        git(to, &["config", "http.receivepack", "true"], "");
        let hooks = to.join("hooks");
        std::fs::create_dir_all(&hooks).expect("a directory");
        write_program(&hooks.join("pre-receive"), PRE_RECEIVE);
        if has_update_hook {
            write_program(&hooks.join("update"), UPDATE);
        }
    }

    /// Updates a copy to the later state.
    pub(crate) fn advance(&self, repository: &Path) {
        let later = self.later.to_str().expect("text");
        git(
            repository,
            &["fetch", "-q", "--prune", later, "+refs/*:refs/*"],
            "",
        );
    }
}

/// Runs git and fails unless it succeeds.
pub(crate) fn git(directory: &Path, arguments: &[&str], input: &str) {
    let output = isolated(directory, arguments, input.as_bytes());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {text}");
}

const WHO: &str = "A U Thor <a@example.org> 1700000000 +0100";

/// Returns the beginning of a commit in the format of `fast-import`.
fn commit(branch: &str, message: &str, from: &str) -> String {
    let from = match from {
        "" => String::new(),
        from => format!("from {from}\n"),
    };
    let size = message.len();
    format!("commit {branch}\nauthor {WHO}\ncommitter {WHO}\ndata {size}\n{message}\n{from}")
}

fn file(mode: &str, path: &str, content: &str) -> String {
    format!(
        "M {mode} inline {path}\ndata {}\n{content}\n",
        content.len()
    )
}

/// Returns a history with an empty tree, a merge, a symbolic link, a submodule, an executable file
/// and unusual names.
fn history() -> String {
    let long: String = (0..2000).map(|line| format!("line {line}\n")).collect();
    let submodule = "1234567890123456789012345678901234567890";
    [
        &*commit("refs/heads/main", "nothing", ""),
        &*commit("refs/heads/main", "a file", ""),
        &*file("100644", "file", &long),
        &*file("100755", "bin/program", "#!/bin/sh\n"),
        &*file("120000", "link", "file"),
        &*file("100644", "with space/\"Grüße\"", "x"),
        &*commit("refs/heads/side", "a side", "refs/heads/main"),
        &*file("100644", "side", "side"),
        &format!("M 160000 {submodule} module\n"),
        &*file(
            "100644",
            ".gitmodules",
            "[submodule \"module\"]\n\tpath = module\n\turl = ../m\n",
        ),
        &*commit("refs/heads/main", "again", ""),
        &*file("100644", "file", &long.replace("line 7\n", "line seven\n")),
        &*commit("refs/heads/main", "a merge", ""),
        "merge refs/heads/side\n",
        &*file("100644", "side", "side"),
        &*commit("refs/heads/empty", "nothing again", "refs/heads/main"),
        "deleteall\n",
        "reset refs/notes/commits\nfrom refs/heads/side\n\n",
    ]
    .concat()
}

fn more_history() -> String {
    [
        &*commit("refs/heads/main", "later", "refs/heads/main^0"),
        &*file("100644", "file", "short now"),
        &*commit("refs/heads/main", "later still", ""),
        &*file("100644", "new/file", "new"),
        &*commit("refs/heads/other", "other", "refs/heads/side^0"),
        &*file("100644", "other", "other"),
        // The branch is rewritten.
        &*commit("refs/heads/side", "another side", "refs/heads/main~2"),
        &*file("100644", "side", "another"),
    ]
    .concat()
}

/// Returns the history that a client pushes: a commit for `main`, one for `new` with a large file,
/// and one that replaces `main`.
pub(crate) fn pushed_history() -> String {
    // The content is larger than git's HTTP buffer, and incompressible.
    let mut random = test_support::Random::new(11);
    let large: String = (0..200_000)
        .map(|_| format!("{:x}", random.number()))
        .collect();
    [
        &*commit("refs/heads/pushed", "pushed", "refs/remotes/origin/main^0"),
        &*file("100644", "pushed", "pushed"),
        &*commit("refs/heads/new", "large", "refs/heads/pushed"),
        &*file("100644", "large", &large),
        &*commit(
            "refs/heads/rewritten",
            "instead",
            "refs/remotes/origin/main~1",
        ),
        &*file("100644", "instead", "instead"),
    ]
    .concat()
}

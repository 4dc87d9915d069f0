//! The generated class `obstacles`: each command that changes refs meets each obstacle that can
//! block a ref, its reflog or a file beside it, and hooks that refuse.
//!
//! Git 2.55 and pronto must agree on the exit code, the messages, and the resulting state: which
//! parts have changed although another part could not be changed.

use libtest_mimic::{Failed, Trial};
use test_support::{git, may_skip, report_missing_reference};

use crate::case::{Case, Stderr};
use crate::run;

/// The obstacles, each with the commands that create it in the repository.
const OBSTACLES: &[(&str, &str)] = &[
    ("nothing", ":"),
    ("head-lock", ": >.git/HEAD.lock"),
    ("orig-head-lock", ": >.git/ORIG_HEAD.lock"),
    ("branch-lock", ": >.git/refs/heads/main.lock"),
    ("new-lock", ": >.git/refs/heads/new.lock"),
    ("tracking-lock", ": >.git/refs/remotes/origin/later.lock"),
    ("packed-lock", ": >.git/packed-refs.lock"),
    ("config-lock", "touch -d 2001-01-01 .git/config.lock"),
    ("head-log", "blocked .git/logs/HEAD"),
    ("empty-head-log", "rm .git/logs/HEAD; mkdir .git/logs/HEAD"),
    ("branch-log", "blocked .git/logs/refs/heads/main"),
    ("new-log", "blocked .git/logs/refs/heads/new"),
    ("new-directory", "mkdir -p .git/refs/heads/new/below"),
    (
        "new-directory-with-ref",
        "git update-ref refs/heads/new/below/ref side",
    ),
    ("orig-head", "blocked .git/ORIG_HEAD"),
    ("fetch-head", "blocked .git/FETCH_HEAD"),
    ("message", "blocked .git/COMMIT_EDITMSG"),
    ("preparing", "hook 'test $1 != preparing'"),
    ("prepared", "hook 'test $1 != prepared'"),
    ("committed", "hook 'test $1 != committed'"),
    (
        "aborted",
        "hook 'test $1 != prepared && test $1 != aborted'",
    ),
    ("refuses-head", "hook '! grep -q \" HEAD$\"'"),
    ("refuses-orig-head", "hook '! grep -q \" ORIG_HEAD$\"'"),
    ("refuses-new", "hook '! grep -q refs/heads/new'"),
    ("refuses-tracking", "hook '! grep -q refs/remotes'"),
];

/// The commands. All lines before the last one prepare the repository.
const COMMANDS: &[&str] = &[
    "reset --soft HEAD~1",
    "reset HEAD~1",
    "reset --hard HEAD~1",
    "reset --merge HEAD~1",
    "reset --keep HEAD~1",
    "reset -q",
    "checkout side",
    "checkout -b new",
    "checkout -b new origin/side",
    "checkout -B main HEAD~1",
    "checkout -B side",
    "checkout --detach",
    "checkout -f HEAD~1",
    "git checkout -q --detach; git commit -q -m lost\ncheckout side",
    "git symbolic-ref HEAD refs/heads/unborn\ncheckout -b new",
    "git symbolic-ref HEAD refs/heads/unborn\nreset -q",
    "git update-ref CHERRY_PICK_HEAD side\nreset -q",
    "switch side",
    "switch -c new",
    "switch --detach HEAD~1",
    "switch --orphan new",
    "commit -q -m more",
    "git symbolic-ref HEAD refs/heads/new\ncommit -q -m more",
    "fetch",
    "fetch -q origin side:new",
    "git update-ref refs/remotes/origin/gone HEAD\nfetch --prune",
    "push origin main:later",
    "push origin main:third",
    "push -u origin main",
    "symbolic-ref HEAD refs/heads/side",
    "symbolic-ref refs/heads/new refs/heads/side",
    "symbolic-ref -d refs/remotes/origin/HEAD",
    "pack-refs --all",
    "reflog delete HEAD@{0}",
    "remote remove origin",
    "git update-ref refs/remotes/origin/gone HEAD\nremote prune origin",
    "worktree add ../copy side",
    "worktree add -b new ../copy",
];

/// Prefixes of commands, and obstacles with which they differ from git: messages in another order
/// or form, and the exit code for a `FETCH_HEAD` that is a directory (`docs/design/situations.md`).
const OPEN: &[(&str, &[&str])] = &[
    ("fetch", &["fetch-head", "tracking-lock"]),
    ("fetch -q", &["new-log"]),
    ("fetch --prune", &["packed-lock"]),
    (
        "remote prune",
        &["preparing", "prepared", "aborted", "refuses-tracking"],
    ),
    ("remote remove", &["config-lock"]),
];

fn is_open(call: &str, obstacle: &str) -> bool {
    let mut open = OPEN.iter();
    open.any(|(start, obstacles)| call.starts_with(start) && obstacles.contains(&obstacle))
}

/// The lines at the start of every script. The timeouts of locks are zero.
const SETUP: &str = r#"
mkdir stage && cd stage && git init -q -b main r && cd r
git config core.filesRefLockTimeout 0 && git config core.packedRefsTimeout 0
commit a b && echo more >>a && commit c && git branch side HEAD~1
git clone -q --bare . ../o.git && git remote add origin ../o.git && git fetch -q && git remote set-head origin -a >/dev/null
git -C ../o.git branch -q later side && git -C ../o.git symbolic-ref HEAD refs/heads/main
echo staged >b && git add b && echo local >>a
cd ../..
blocked() {
    rm -rf "$1" && mkdir -p "$1/below" && : >"$1/below/file"
}
hook() {
    mkdir -p .git/hooks && printf '#!/bin/sh\n%s\n' "$1" >.git/hooks/reference-transaction
    chmod +x .git/hooks/reference-transaction
}
state() {
    rm -f .git/hooks/reference-transaction
    find .git ../o.git ../copy \( -name objects -o -name index -o -name hooks -o -name info \) -prune -o -type d -print |
        LC_ALL=C sort
    find .git ../o.git ../copy \( -name objects -o -name index -o -name hooks -o -name info \) -prune -o -type f -print |
        LC_ALL=C sort | xargs tail -v -n +1 --
    git ls-files -s && tail -v -n +1 -- *
} 2>/dev/null
"#;

/// Returns a trial for each command.
pub(crate) fn trials() -> Vec<Trial> {
    let reference = git::reference();
    if reference.is_none() && may_skip() {
        report_missing_reference(&"the class 'obstacles'");
    }
    let trial = |command: &'static str| {
        let case = case(command);
        let run = move || {
            let reference =
                git::reference().ok_or("git 2.55 is missing, and CI may not skip a case")?;
            run::compare(&case, reference).map_err(Failed::from)
        };
        Trial::test(format!("obstacles: {}", title(command)), run)
            .with_ignored_flag(reference.is_none() && may_skip())
    };
    COMMANDS.iter().copied().map(trial).collect()
}

fn title(command: &str) -> String {
    command.replace('\n', "; ")
}

/// Returns the comparison of messages. Git reports a switch from an unborn branch even if it fails,
/// so that line is not compared.
fn stderr(command: &str) -> Stderr {
    match command.contains("unborn") && command.contains("checkout") {
        true => Stderr::Without("Switched to a new branch".to_owned()),
        false => Stderr::Compared,
    }
}

/// Returns the case that runs `command` with each of the obstacles, each in a copy of the
/// repository.
fn case(command: &str) -> Case {
    let (before, call) = command.rsplit_once('\n').unwrap_or((":", command));
    let mut script = SETUP.to_owned();
    let obstacles = OBSTACLES.iter();
    for (name, put) in obstacles.filter(|(name, _)| !is_open(call, name)) {
        script += &format!(
            "cp -R stage {name} && cd {name}/r\n{before}\n{put}\necho '# {name}'; echo '# {name}' >&2\n\
             vcs {call}\nstate; cd ../.. && rm -rf {name}\n"
        );
    }
    Case {
        file: "obstacles".to_owned(),
        title: title(command),
        stderr: stderr(command),
        handed_over: Vec::new(),
        needs: Vec::new(),
        script,
    }
}

//! Completion in bash, zsh and fish: the candidates, and the scripts in `docs/completions`.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use test_support::skip;

use crate::support::{Scratch, git, install, path_with, process, pronto, pronto_path, stdout};

/// The program that runs another one on a terminal.
const SCRIPT: &str = "/usr/bin/script";

/// The time after which a shell that does not answer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The keys that empty the line at the prompt and ask for the next prompt.
const CLEAR: &str = "\u{15}\n";

/// The prompt of the shells.
const PROMPT: &str = "ready> ";

/// A repository with branches, a tag, a remote, a changed and an untracked file, and `pronto` in the
/// directory `bin`.
struct CompletionScene {
    scratch: Scratch,
}

impl CompletionScene {
    fn new() -> Self {
        let scratch = Scratch::new();
        install(&scratch, "bin", "pronto", |from, to| {
            std::os::unix::fs::symlink(from, to)
        });
        let at = scratch.join("repository");
        std::fs::create_dir_all(at.join("src")).expect("a directory");
        let write = |name: &str, text: &str| std::fs::write(at.join(name), text).expect("a file");
        write("kept", "x\n");
        write("changed", "x\n");
        write("src/one", "x\n");
        write("src/two", "x\n");
        for words in [
            &["init", "-q", "-b", "main"][..],
            &["add", "."],
            &["commit", "-qm", "one"],
            &["branch", "topic"],
            &["branch", "topsy/turvy"],
            &["tag", "v1"],
            &["remote", "add", "origin", "../elsewhere"],
            &["update-ref", "refs/remotes/origin/far", "HEAD"],
        ] {
            git(&at, words);
        }
        write("changed", "more\n");
        write("new file", "x\n");
        CompletionScene { scratch }
    }

    fn repository(&self) -> PathBuf {
        self.scratch.join("repository")
    }

    fn isolate<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .current_dir(self.repository())
            .env("PATH", path_with(&self.scratch.join("bin")))
            .env("HOME", self.scratch.path())
            .env("XDG_CONFIG_HOME", self.scratch.join("config"))
            .env("PRONTO_NO_FALLBACK", "1")
            .env("TERM", "xterm")
    }

    /// Returns the lines of `completion-candidates` for fish, which filters by itself.
    fn lines(&self, words: &[&str]) -> Vec<String> {
        self.lines_for("fish", words)
    }

    fn lines_for(&self, shell: &str, words: &[&str]) -> Vec<String> {
        let mut command = pronto();
        command.args(["completion-candidates", shell, "pronto"]);
        let output = self.isolate(command.args(words)).output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        stdout(&output).lines().map(str::to_owned).collect()
    }

    /// Returns the candidates of bash for a line with the cursor at its end.
    fn bash(&self, words: &[&str], line: &str) -> Vec<String> {
        let count = words.len() - 1;
        let script = format!(
            "source '{}'; COMP_LINE=$1; COMP_POINT=${{#1}}; shift; COMP_WORDS=(\"$@\"); COMP_CWORD={count}\n\
             _pronto \"$1\" \"${{COMP_WORDS[COMP_CWORD]}}\" '' 2>/dev/null\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            completions("pronto.bash").display()
        );
        let mut command = process("bash");
        command.args(["--norc", "-c", &script, "bash", line]);
        let output = self.isolate(command.args(words)).output();
        let listed = stdout(&output.expect("bash runs"));
        listed.lines().map(str::to_owned).collect()
    }

    /// Returns the candidates of fish for a line with the cursor at its end.
    fn fish(&self, line: &str) -> Vec<String> {
        let script = format!(
            "source '{}'; complete -C \"$argv[1]\"",
            completions("pronto.fish").display()
        );
        let mut command = process("fish");
        command.args(["--no-config", "-c", &script, line]);
        let output = self.isolate(&mut command).output();
        let listed = stdout(&output.expect("fish runs"));
        listed.lines().map(str::to_owned).collect()
    }

    /// Types into an interactive shell on a terminal: for each step, waits until the terminal has got
    /// a text, and types keys then. Returns what the terminal got.
    fn typed(&self, shell: &str, steps: &[(&str, &str)]) -> String {
        let mut command = process(SCRIPT);
        command.args(["-qec", shell, "/dev/null"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = self.isolate(&mut command).spawn().expect("it starts");
        let mut input = child.stdin.take().expect("it is piped");
        let mut output = child.stdout.take().expect("it is piped");
        let (sender, receiver) = channel();
        let reader = std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut part) {
                let _ = sender.send(part[..count].to_vec());
            }
        });
        let (mut shown, mut seen) = (Vec::new(), 0);
        for (awaited, keys) in steps {
            loop {
                let new = String::from_utf8_lossy(&shown[seen..]);
                if new.contains(awaited) {
                    break;
                }
                let Ok(part) = receiver.recv_timeout(PATIENCE) else {
                    let _ = child.kill();
                    panic!("no '{awaited}' in {:?}", String::from_utf8_lossy(&shown));
                };
                shown.extend(part);
            }
            seen = shown.len();
            input.write_all(keys.as_bytes()).expect("it reads");
        }
        // The shell sees no end of its input while the terminal is open.
        let _ = child.wait();
        drop(input);
        let _ = reader.join();
        shown.extend(receiver.try_iter().flatten());
        String::from_utf8_lossy(&shown).into_owned()
    }

    fn head(&self) -> String {
        git(&self.repository(), &["symbolic-ref", "--short", "HEAD"])
    }
}

fn completions(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.join("../../docs/completions").join(name)
}

fn is_installed(shell: &str) -> bool {
    let found = process("/bin/sh")
        .args(["-c", "command -v \"$1\" >/dev/null", "sh", shell])
        .status();
    found.is_ok_and(|status| status.success())
}

#[test]
fn candidates_are_those_that_matter_to_the_command() {
    let scene = CompletionScene::new();
    let expected: &[(&[&str], &[&str])] = &[
        (
            &["switch", ""],
            &[
                "",
                "main\tbranch",
                "topic\tbranch",
                "topsy/turvy\tbranch",
                "far\tbranch of remote origin",
            ],
        ),
        (
            &["add", ""],
            &["paths", "changed\tmodified", "new file\tuntracked"],
        ),
        (&["restore", ""], &["paths", "changed\tmodified"]),
        (&["restore", "src/"], &["paths", "src/one\t", "src/two\t"]),
        (&["checkout", "--", "c"], &["paths", "changed\tmodified"]),
        (
            &["-C", "src", "restore", "--source=HEAD", ""],
            &["paths", "one\t", "two\t"],
        ),
        (&["fetch", ""], &["directories", "origin\t../elsewhere"]),
        (&["fetch", "origin", ""], &["", "far\tbranch of the remote"]),
        (
            &["push", "origin", "main:"],
            &["", "main:far\tbranch of the remote"],
        ),
        (&["remote", "get-url", ""], &["", "origin\t../elsewhere"]),
        (&["branch", "-d", ""], &["git"]),
        (&["log", ""], &["git"]),
        (&["config", "--"], &["git"]),
        (&["rev-list", ""], &["git"]),
        (
            &["update-index", "k"],
            &["paths", "changed\t", "kept\t", "src/\tdirectory"],
        ),
        (
            &["init", "--ref-format="],
            &["", "--ref-format=files\t", "--ref-format=reftable\t"],
        ),
        (&["clone", "--template", ""], &["directories"]),
    ];
    for (words, lines) in expected {
        let found = scene.lines(words);
        if words[0] == "-C" {
            // Files above the current directory are candidates, too.
            assert!(
                lines.iter().all(|line| found.iter().any(|one| one == line)),
                "{found:?}"
            );
        } else {
            assert_eq!(found, *lines, "{words:?}");
        }
    }
}

#[test]
fn names_options_and_settings_have_descriptions() {
    let scene = CompletionScene::new();
    git(&scene.repository(), &["config", "alias.sw", "switch"]);
    for (words, line) in [
        (&["sto"][..], "store\tkeep repositories in an object store"),
        (&["lo"], "log\tshow the history"),
        (&["s"], "sw\talias for 'switch'"),
        (&["sw", "t"], "topic\tbranch"),
        (&["--git"], "--git-dir=\tUse the repository at this path"),
        (&["switch", "--"], "--detach\tDetach HEAD at the commit"),
        (&["store", ""], "import\t"),
        (&["serve", "user", "key", ""], "add\t"),
        (&["help", "store", ""], "import\t"),
        (&["worktree", ""], "add\tcreate a worktree"),
        (&["config", "get", "core.pa"], "core.pager\t"),
        (
            &["config", "set", "remote."],
            "remote.origin.url\t../elsewhere",
        ),
        (&["-c", "user"], "user.name=\t"),
        (&["pull", "--net"], "--netsync\t"),
    ] {
        let found = scene.lines(words);
        let begins = |found: &String| match line.ends_with('\t') {
            true => found.starts_with(line),
            false => found == line,
        };
        assert!(found.iter().any(begins), "{words:?}: {found:?}");
    }
    // Commands for scripts are offered if nothing else is.
    let starts = |word: &str, name: &str| {
        let lines = scene.lines_for("bash", &[word]);
        lines
            .iter()
            .any(|line| line.starts_with(&format!("{name}\t")))
    };
    assert!(starts("ca", "cat-file") && !starts("c", "cat-file"));
}

#[test]
fn a_line_or_place_that_cannot_be_read_gives_no_candidates() {
    let scene = CompletionScene::new();
    for words in [
        &["--git-dir=/nonexistent", "switch", ""][..],
        &["-C", "/nonexistent", "switch", ""],
        &["--no-such", ""],
        &["switch", "--no-such=x"],
    ] {
        let found = scene.lines(words);
        assert!(
            !found.iter().any(|line| line.contains('\t')),
            "{words:?}: {found:?}"
        );
    }
}

#[test]
fn bash_completes_words_options_and_paths() {
    if !is_installed("bash") {
        skip!("there is no bash");
    }
    let scene = CompletionScene::new();
    for (words, line, expected) in [
        (
            &["pronto", "switch", "to"][..],
            "pronto switch to",
            &["topic", "topsy/turvy"][..],
        ),
        (
            &["pronto", "add", ""],
            "pronto add ",
            &["changed", "new file"],
        ),
        (
            &["pronto", "add", "new\\ f"],
            "pronto add new\\ f",
            &["new file"],
        ),
        (&["pronto", "store", "im"], "pronto store im", &["import"]),
        (
            &["pronto", "serve", "user", "key", ""],
            "pronto serve user key ",
            &["add", "remove", "list", "authorized"],
        ),
        (
            &["pronto", "switch", "--det"],
            "pronto switch --det",
            &["--detach"],
        ),
        (
            &["pronto", "init", "--ref-format", "=", "re"],
            "pronto init --ref-format=re",
            &["reftable"],
        ),
        (
            &["pronto", "push", "origin", "main", ":", "f"],
            "pronto push origin main:f",
            &["far"],
        ),
    ] {
        assert_eq!(scene.bash(words, line), expected, "{line}");
    }
}

#[test]
fn bash_asks_git_about_commands_of_git() {
    if !is_installed("bash") {
        skip!("there is no bash");
    }
    let scene = CompletionScene::new();
    let script = format!(
        "source '{}'\n\
         __git_func_wrap() {{ \"$1\"; }}\n\
         __git_main() {{ COMPREPLY=(\"by git: ${{COMP_WORDS[1]}} \"); }}\n\
         complete_line() {{ COMP_LINE=\"$*\"; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))\n\
         _pronto \"$1\" \"${{!#}}\" '' 2>/dev/null; printf '%s|' \"${{COMPREPLY[@]}}\"; echo; }}\n\
         complete_line pronto log x\n\
         complete_line pronto commit -\n\
         complete_line pronto switch topi",
        completions("pronto.bash").display()
    );
    let mut command = process("bash");
    command.args(["--norc", "-c", &script]);
    let output = scene.isolate(&mut command).output().expect("bash runs");
    let listed = stdout(&output);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines[0], "by git: log |", "{listed}");
    assert!(
        lines[1].starts_with("by git: commit |") && lines[1].contains("|-q |"),
        "{listed}"
    );
    assert_eq!(lines[2], "topic|", "{listed}");
}

/// The steps that switch to a branch and add a file, with tabs.
const SWITCH_AND_ADD: [(&str, &str); 3] = [
    (PROMPT, "pronto switch -q topi\t\n"),
    (PROMPT, "pronto add new\t\n"),
    (PROMPT, "exit\n"),
];

#[test]
fn bash_completes_git_where_that_is_pronto() {
    if !is_installed("bash") {
        skip!("there is no bash");
    }
    let scene = CompletionScene::new();
    let script = format!(
        "source '{}'\ncomplete -p git 2>&1\n\
         COMP_LINE='git switch topi'; COMP_POINT=15; COMP_WORDS=(git switch topi); COMP_CWORD=2\n\
         _pronto git topi switch 2>/dev/null; echo \"${{COMPREPLY[*]}}\"",
        completions("pronto.bash").display()
    );
    let lines = || {
        let mut command = process("bash");
        command.args(["--norc", "-c", &script]);
        let output = scene.isolate(&mut command).output().expect("bash runs");
        let text = stdout(&output);
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    // The scripts leave another git alone.
    assert!(!lines()[0].contains("_pronto"), "{:?}", lines());
    install(&scene.scratch, "bin", "git", |from, to| {
        std::os::unix::fs::symlink(from, to)
    });
    assert_eq!(lines(), ["complete -F _pronto git", "topic"]);
}

#[test]
fn a_tab_in_bash_completes_a_branch_and_a_path() {
    if !is_installed("bash") || !Path::new(SCRIPT).exists() {
        skip!("there is no bash, or no script");
    }
    let scene = CompletionScene::new();
    let rc = scene.scratch.join("rc");
    let source = completions("pronto.bash");
    let text = format!("source '{}'\nPS1='{PROMPT}'\n", source.display());
    std::fs::write(&rc, text).expect("a file");
    let shell = format!("bash --rcfile '{}' -i", rc.display());
    let shown = scene.typed(&shell, &SWITCH_AND_ADD);
    assert_eq!(scene.head(), "topic", "{shown}");
    let staged = git(&scene.repository(), &["diff", "--cached", "--name-only"]);
    assert_eq!(staged, "new file", "{shown}");
}

#[test]
fn a_tab_in_zsh_completes_with_descriptions() {
    if !is_installed("zsh") || !Path::new(SCRIPT).exists() {
        skip!("there is no zsh, or no script");
    }
    let scene = CompletionScene::new();
    let folder = completions("_pronto");
    let folder = folder.parent().expect("it has one").display().to_string();
    let rc = format!(
        "fpath=('{folder}' $fpath)\nautoload -Uz compinit && compinit -u -D\nPS1='{PROMPT}'\n"
    );
    std::fs::write(scene.scratch.join(".zshrc"), rc).expect("a file");
    let shown = scene.typed("zsh -d -i", &SWITCH_AND_ADD);
    assert_eq!(scene.head(), "topic", "{shown}");
    let staged = git(&scene.repository(), &["diff", "--cached", "--name-only"]);
    assert_eq!(staged, "new file", "{shown}");
    scene.typed(
        "zsh -d -i",
        &[
            (PROMPT, "pronto switch --d\t"),
            ("--detach  -- Detach HEAD at the commit", CLEAR),
            (PROMPT, "pronto serve user key \t"),
            ("add  -- Add a public key, and print its fingerprint", CLEAR),
            (PROMPT, "exit\n"),
        ],
    );
}

#[test]
fn fish_completes_with_descriptions() {
    if !is_installed("fish") {
        skip!("there is no fish");
    }
    let scene = CompletionScene::new();
    assert_eq!(
        scene.fish("pronto switch to"),
        ["topic\tbranch", "topsy/turvy\tbranch"]
    );
    let listed = scene.fish("pronto add ");
    assert!(
        listed.contains(&"changed\tmodified".to_owned()),
        "{listed:?}"
    );
    assert!(
        listed.contains(&"new file\tuntracked".to_owned()),
        "{listed:?}"
    );
    let listed = scene.fish("pronto serve user key ");
    assert!(
        listed.iter().any(|line| line.starts_with("add\t")),
        "{listed:?}"
    );
    let listed = scene.fish("pronto switch --det");
    assert_eq!(listed, ["--detach\tDetach HEAD at the commit"]);
}

#[test]
fn completion_never_starts_git() {
    let scene = CompletionScene::new();
    let trap = scene
        .scratch
        .script("trap", "git", "#!/bin/sh\necho trapped >&2\nexit 1\n");
    for words in [&["log", ""][..], &["add", ""], &["commit", "-"], &["x"]] {
        let mut command = process(pronto_path());
        command
            .args(["completion-candidates", "zsh", "pronto"])
            .args(words);
        let output = scene
            .isolate(&mut command)
            .env_remove("PRONTO_NO_FALLBACK")
            .env("PRONTO_GIT", &trap)
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(output.stderr.is_empty(), "{words:?}");
    }
}

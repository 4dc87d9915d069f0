//! Files that an attacker has placed in a worktree or a repository: FIFOs, devices, endless and
//! huge files. Every command ends and uses limited memory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{Scratch, process, pronto_path, stderr, stdout};

/// The time limit, far above the duration of each command.
const SECONDS: &str = "120";
/// The limit of the address space, which includes maps and threads.
const KILOBYTES: &str = "4000000";
/// The limit of memory, far above the use of each command.
const FILLED_KILOBYTES: &str = "1000000";
/// The code of `timeout` after it stopped a command.
const TIMED_OUT: i32 = 124;

/// Runs `program` within the limits.
fn bounded(program: &Path, directory: &Path, arguments: &[&str]) -> Output {
    let output = process("sh")
        .args([
            "-c",
            "ulimit -v $0 && ulimit -d $1 && shift && exec timeout -s KILL -k 1 \"$@\"",
            KILOBYTES,
            FILLED_KILOBYTES,
        ])
        .arg(SECONDS)
        .arg(program)
        .args(arguments)
        .current_dir(directory)
        .env("HOME", directory.parent().expect("it has one"))
        .env("PRONTO_NO_FALLBACK", "1")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@x")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@x")
        .output()
        .expect("it starts");
    let code = output.status.code();
    assert!(
        code.is_some() && code != Some(TIMED_OUT) && code != Some(137),
        "{arguments:?}: {output:?}"
    );
    assert!(
        !stderr(&output).contains("panicked"),
        "{arguments:?}: {output:?}"
    );
    output
}

fn pronto(directory: &Path, arguments: &[&str]) -> Output {
    bounded(pronto_path(), directory, arguments)
}

fn succeeds(directory: &Path, arguments: &[&str]) -> String {
    let output = pronto(directory, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    stdout(&output)
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = bounded(Path::new("git"), directory, arguments);
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    stdout(&output)
}

/// Creates a repository with a file, and a submodule that is not checked out.
fn repository(scratch: &Scratch) -> PathBuf {
    let top = scratch.path().join("repository");
    git(
        &scratch.path().join("."),
        &["init", "-q", "-b", "main", "repository"],
    );
    fs::create_dir(top.join("directory")).expect("a directory");
    fs::write(top.join("file"), "content\n").expect("a file");
    fs::write(top.join("directory/other"), "content\n").expect("a file");
    git(&top, &["add", "."]);
    git(&top, &["commit", "-qm", "one"]);
    let head = git(&top, &["rev-parse", "HEAD"]);
    let link = format!("160000,{},module", head.trim());
    git(&top, &["update-index", "--add", "--cacheinfo", &link]);
    git(&top, &["commit", "-qm", "two"]);
    fs::create_dir(top.join("module")).expect("a directory");
    top
}

fn fifo(path: &Path) {
    let status = process("mkfifo").arg(path).status();
    assert!(status.expect("mkfifo is there").success());
}

/// Objects in place of a text file.
const KINDS: [&str; 6] = [
    "fifo",
    "device",
    "huge",
    "directory",
    "long line",
    "endless include",
];

/// Creates it.
fn place(path: &Path, kind: &str) {
    match kind {
        "fifo" => fifo(path),
        "device" => symlink("/dev/zero", path).expect("a link"),
        "huge" => {
            let file = fs::File::create(path).expect("a file");
            file.set_len(1 << 40).expect("a sparse file takes no room");
        }
        "directory" => fs::create_dir(path).expect("a directory"),
        "long line" => {
            let text = [&b"x".repeat(8 << 20)[..], b" text\n"].concat();
            fs::write(path, text).expect("a file");
        }
        _ => fs::write(path, "[include]\n\tpath = /dev/zero\n").expect("a file"),
    }
}

fn remove(path: &Path) {
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        fs::remove_dir(path).expect("it is empty");
    } else {
        fs::remove_file(path).expect("it is there");
    }
}

#[test]
fn gitmodules_is_a_regular_file_without_includes() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let modules = top.join(".gitmodules");
    for kind in KINDS {
        place(&modules, kind);
        let commands: [&[&str]; 6] = [
            &["status", "--porcelain", "-uno"],
            &["diff-files"],
            &["diff-index", "HEAD"],
            &["diff-index", "--cached", "HEAD"],
            &["checkout", "HEAD"],
            &["checkout", "-q", "main"],
        ];
        for command in commands {
            let reported = succeeds(&top, command);
            assert!(
                !reported.contains("module"),
                "{kind}: {command:?}: {reported}"
            );
        }
        remove(&modules);
    }
}

#[test]
fn gitmodules_that_includes_itself_changes_nothing() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let module = top.join("module");
    git(&top, &["init", "-q", "module"]);
    git(&module, &["commit", "-q", "--allow-empty", "-m", "other"]);
    let changed = "1 .M SC.. 160000 160000 160000";
    let text = "[submodule \"m\"]\n\tpath = module\n[include]\n\tpath = more\n";
    fs::write(top.join(".gitmodules"), text).expect("a file");
    let more = "[submodule \"m\"]\n\tignore = all\n";
    fs::write(top.join("more"), more).expect("a file");
    fs::write(top.join(".git/more"), more).expect("a file");
    let command = ["status", "--porcelain=v2", "-uno"];
    assert!(succeeds(&top, &command).contains(changed));
    assert!(git(&top, &command).contains(changed));
    fs::write(top.join(".gitmodules"), [text, more].concat()).expect("a file");
    assert_eq!(succeeds(&top, &command), "");
    assert_eq!(git(&top, &command), "");
}

#[test]
fn attributes_and_patterns_of_a_worktree_are_bounded() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    for name in [
        ".gitattributes",
        ".gitignore",
        "directory/.gitattributes",
        "directory/.gitignore",
    ] {
        let file = top.join(name);
        for kind in &KINDS[..5] {
            place(&file, kind);
            succeeds(&top, &["status", "--porcelain"]);
            succeeds(&top, &["check-attr", "text", "directory/other"]);
            let ignored = pronto(&top, &["check-ignore", "directory/new"]);
            assert_eq!(ignored.status.code(), Some(1), "{name} {kind}: {ignored:?}");
            fs::write(top.join("file"), format!("{name} {kind}\n")).expect("a file");
            succeeds(&top, &["add", "file"]);
            succeeds(&top, &["reset", "-q", "--hard"]);
            remove(&file);
        }
    }
}

#[test]
fn nested_repositories_in_a_worktree_are_read_with_limits() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let nested = top.join("nested");
    fs::create_dir_all(&nested).expect("a directory");
    for kind in &KINDS[..5] {
        place(&nested.join(".git"), kind);
        succeeds(&top, &["status", "--porcelain"]);
        remove(&nested.join(".git"));
        // After a valid file.
        let behind = scratch.path().join("behind");
        fs::create_dir_all(behind.join("objects")).expect("a directory");
        fs::create_dir_all(behind.join("refs")).expect("a directory");
        fs::write(behind.join("HEAD"), "ref: refs/heads/main\n").expect("a file");
        fs::write(nested.join(".git"), "gitdir: ../../behind\n").expect("a file");
        for name in ["commondir", "config"] {
            place(&behind.join(name), kind);
            succeeds(&top, &["status", "--porcelain"]);
            pronto(&nested, &["status"]);
            remove(&behind.join(name));
        }
        remove(&nested.join(".git"));
    }
}

/// Files of a repository, and the commands that read them.
const REPOSITORY_FILES: [(&str, &[&str]); 14] = [
    ("HEAD", &["status"]),
    ("config", &["status"]),
    ("commondir", &["status"]),
    ("index", &["status"]),
    ("packed-refs", &["show-ref"]),
    ("refs/heads/other", &["show-ref"]),
    ("shallow", &["status"]),
    ("info/attributes", &["check-attr", "text", "file"]),
    ("info/exclude", &["status"]),
    (
        "info/sparse-checkout",
        &["-c", "core.sparseCheckout=true", "status"],
    ),
    ("logs/HEAD", &["rev-parse", "HEAD@{0}"]),
    ("objects/info/alternates", &["cat-file", "-t", "HEAD"]),
    ("MERGE_MSG", &["status"]),
    ("objects/info/commit-graph", &["status"]),
];

#[test]
fn no_file_of_a_repository_makes_a_command_wait() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    for (name, command) in REPOSITORY_FILES {
        let file = top.join(".git").join(name);
        let before = fs::read(&file).ok();
        for kind in ["fifo", "device", "huge"] {
            if file.symlink_metadata().is_ok() {
                remove(&file);
            }
            place(&file, kind);
            // Its output does not matter, only that it ends.
            pronto(&top, command);
        }
        remove(&file);
        if let Some(content) = before {
            fs::write(&file, content).expect("a file");
        }
        succeeds(&top, &["status", "--porcelain"]);
    }
}

#[test]
fn includes_of_a_repository_lead_to_files() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let config = top.join(".git/config");
    let before = fs::read_to_string(&config).expect("it is there");
    fifo(&top.join(".git/pipe"));
    for path in ["/dev/zero", "pipe", "config"] {
        let text = format!("{before}[include]\n\tpath = {path}\n");
        fs::write(&config, text).expect("a file");
        let refused = pronto(&top, &["status"]);
        assert_eq!(refused.status.code(), Some(128), "{path}: {refused:?}");
    }
}

#[test]
fn a_local_clone_takes_files_only() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let objects = top.join(".git/objects");
    for (at, kind) in ["fifo", "device"].into_iter().enumerate() {
        let strange = objects.join(format!("ab{at}"));
        place(&strange, kind);
        let clone = format!("clone{at}");
        let refused = pronto(
            &scratch.path().join("."),
            &["clone", "-q", "repository", &clone],
        );
        assert!(!refused.status.success(), "{kind}: {refused:?}");
        assert!(!scratch.path().join(&clone).exists(), "{kind}");
        remove(&strange);
    }
}

#[test]
fn a_clone_that_shares_another_owners_files_needs_permission() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let clone = |option: &str, config: &str| {
        process(pronto_path())
            .args(["clone", option, "-q", "repository", "clone"])
            .current_dir(scratch.path())
            .env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
            .env("GIT_CONFIG_GLOBAL", scratch.join(config))
            .output()
            .expect("it starts")
    };
    // The options before the command do not concern the server, so a file has the permission.
    let safe = format!("[safe]\n\tdirectory = {}\n", top.join(".git").display());
    fs::write(scratch.join("permission"), safe).expect("a file");
    fs::write(scratch.join("nothing"), "").expect("a file");
    // upload-pack runs nothing that the repository names.
    let sent = clone("--no-local", "nothing");
    assert!(sent.status.success(), "{sent:?}");
    fs::remove_dir_all(scratch.path().join("clone")).expect("it is there");
    for option in ["--local", "--shared"] {
        let refused = clone(option, "nothing");
        assert_eq!(refused.status.code(), Some(128), "{option}: {refused:?}");
        let reported = stderr(&refused);
        assert!(
            reported.contains("detected dubious ownership"),
            "{reported}"
        );
        assert!(!scratch.path().join("clone").exists());
        let allowed = clone(option, "permission");
        assert!(allowed.status.success(), "{option}: {allowed:?}");
        fs::remove_dir_all(scratch.path().join("clone")).expect("it is there");
    }
}

#[test]
fn safe_directory_names_directories_in_any_spelling() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    symlink(&top, scratch.path().join("link")).expect("a link");
    let path = scratch.path().to_str().expect("text");
    let cases = [
        (format!("{path}/repository"), true),
        (format!("{path}/repository/"), true),
        (format!("{path}/repository/."), true),
        (format!("{path}/repository/directory/.."), true),
        (format!("{path}/./repository"), true),
        (format!("{path}/link"), true),
        (format!("{path}/link/."), true),
        (format!("{path}/*"), true),
        (format!("{path}/repository/*"), false),
        (format!("{path}/repositor"), false),
        (format!("{path}/rep*"), false),
        (format!("{path}/missing"), false),
        ("repository".to_owned(), false),
        ("~/repository".to_owned(), true),
        (".".to_owned(), true),
        ("*".to_owned(), true),
        ("/*".to_owned(), true),
        (String::new(), false),
    ];
    let run = |program: &Path, values: &[&str], directory: &Path| {
        let mut command = process(program);
        for value in values {
            command.args(["-c", &format!("safe.directory={value}")]);
        }
        let output = command
            .args(["rev-parse", "--git-dir"])
            .current_dir(directory)
            .env("HOME", scratch.path())
            .env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
            .env("PRONTO_NO_FALLBACK", "1")
            .output();
        output.expect("it starts").status.success()
    };
    for (value, expected) in &cases {
        for name in ["repository", "link"] {
            let directory = scratch.path().join(name);
            let found = run(pronto_path(), &[value], &directory);
            assert_eq!(found, *expected, "'{value}' in {name}");
        }
        assert!(
            !run(pronto_path(), &[value, ""], &top),
            "'{value}' is reset"
        );
    }
    // In a subdirectory, the entered directory is not the repository.
    assert!(!run(pronto_path(), &["."], &top.join("directory")));
}

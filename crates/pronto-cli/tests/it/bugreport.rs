//! `bugreport`: the report has what is needed, and no secret from any place.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use test_support::{Scratch, write_program};

use crate::support::{git, process, pronto_path, stderr, stdout};

/// A text that stands for a secret, and must never be in a report.
const SECRET: &str = "hunter2";

/// Creates a repository with secrets in each place from which a report is made.
fn repository(scratch: &Scratch) -> PathBuf {
    let work = scratch.join("work");
    fs::create_dir(&work).expect("a directory");
    git(&work, &["init", "-q", "-b", "main"]);
    fs::write(work.join(SECRET), SECRET).expect("a file");
    git(&work, &["add", "."]);
    git(&work, &["commit", "-q", "-m", SECRET]);
    git(&work, &["branch", SECRET]);
    git(&work, &["tag", "v-hunter2"]);
    fs::write(work.join("loose"), "another").expect("a file");
    git(&work, &["hash-object", "-w", "loose"]);
    let url = format!("https://user:{SECRET}@example.com/x.git");
    let set = |key: &str, value: &str| drop(git(&work, &["config", "--add", key, value]));
    set("remote.origin.url", &url);
    set(&format!("remote.{SECRET}.url"), &url);
    set(&format!("branch.{SECRET}.remote"), SECRET);
    set("credential.helper", &format!("!echo password={SECRET}"));
    set(&format!("credential.{url}.username"), SECRET);
    set(
        &format!("http.{url}.extraHeader"),
        &format!("Authorization: {SECRET}"),
    );
    set(
        "http.extraHeader",
        &format!("Authorization: Bearer {SECRET}"),
    );
    set("http.proxy", &format!("http://user:{SECRET}@proxy:1"));
    set(&format!("url.{url}.insteadOf"), "short:");
    set(&format!("alias.{SECRET}"), SECRET);
    set(&format!("{SECRET}.token"), SECRET);
    set("sendemail.smtpPass", SECRET);
    set("user.name", SECRET);
    set("user.email", "hunter2@example.com");
    set("user.signingKey", SECRET);
    set("core.sshCommand", &format!("ssh -i /home/{SECRET}/key"));
    set("core.editor", &format!(": {SECRET}"));
    set("core.pager", SECRET);
    set("receive.certNonceSeed", SECRET);
    set("gc.auto", "0");
    set("fetch.prune", "true");
    let hooks = work.join(".git/hooks");
    fs::create_dir_all(&hooks).expect("a directory");
    write_program(
        &hooks.join("pre-push"),
        &format!("#!/bin/sh\necho {SECRET}\n"),
    );
    write_program(&hooks.join(SECRET), "#!/bin/sh\n");
    work
}

fn report_in(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = process(pronto_path());
    command
        .arg("bugreport")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_EDITOR", ":");
    command
}

/// Returns the only report in `directory`.
fn written(directory: &Path, output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stdout(output), "");
    let reports: Vec<PathBuf> = fs::read_dir(directory)
        .expect("it can be listed")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("-bugreport"))
        .collect();
    let [path] = &reports[..] else {
        panic!("{reports:?}");
    };
    let name = path.file_name().expect("a name").to_string_lossy();
    assert!(stderr(output).contains(&*name), "{}", stderr(output));
    let mode = fs::metadata(path).expect("it exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(path).expect("a report");
    fs::remove_file(path).expect("it can be removed");
    text
}

#[test]
fn a_report_has_no_secret_from_any_place() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let variables = [
        ("GIT_SSH_COMMAND", "ssh -i hunter2"),
        ("GIT_ASKPASS", "/hunter2"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "http.https://hunter2@x/.extraHeader"),
        ("GIT_CONFIG_VALUE_0", "hunter2"),
        ("GIT_AUTHOR_NAME", "hunter2"),
        ("GIT_PROGRESS_DELAY", "hunter2"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("PRONTO_TOKEN", "hunter2"),
        ("HTTPS_PROXY", "http://u:hunter2@proxy"),
        ("LANG", "hunter2"),
        ("TERM", "hunter2"),
        ("hunter2_TOKEN", "x"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
    ];
    let call = [
        "--",
        "fetch",
        "--upload-pack=hunter2",
        "--no-such-option=hunter2",
        "https://user:hunter2@example.com/x.git",
    ];
    let output = report_in(&work, &call).envs(variables).output();
    let text = written(&work, &output.expect("it starts"));
    assert!(!text.contains(SECRET), "{text}");
    assert!(!text.contains("example.com"), "{text}");
    let home = scratch.join("").display().to_string();
    assert!(!text.contains(home.trim_end_matches('/')), "{text}");
    for expected in [
        "GIT_SSH_COMMAND (set)\n",
        "GIT_CONFIG_COUNT = 1\n",
        "GIT_OPTIONAL_LOCKS = 0\n",
        "GIT_PROGRESS_DELAY (set)\n",
        "PRONTO_TOKEN (set)\n",
        "HTTPS_PROXY (set)\n",
        "core.pager (set)\n",
        "core.sshCommand (set)\n",
        "credential.helper (set)\n",
        "fetch.prune = true\n",
        "gc.auto = 0\n",
        "http.<url>.*",
        "remote.<name>.url (set), 2 times\n",
        "sendemail.smtpPass (set)\n",
        "settings that neither git nor pronto has: ",
        "[Enabled Hooks]\npre-push\n",
        "branches: 2\n",
        "tags: 1\n",
        "loose objects: 4, ",
        "index: version 2, 1 entries",
        "object format: sha1\n",
        "pronto version: ",
        "git version: git version ",
        "kernel: Linux ",
        "file system of TMPDIR: ",
        "[Call]\ncommand: fetch\n",
        "lacks: option '--no-such-option' of 'fetch' is not implemented natively\n",
        "runs: git\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(!text.contains("AWS_"), "{text}");
}

#[test]
fn the_name_and_place_of_a_report_are_those_of_the_options() {
    let scratch = Scratch::new();
    let place = scratch.join("place");
    fs::create_dir(&place).expect("a directory");
    let run = |arguments: &[&str]| report_in(&place, arguments).output().expect("it starts");
    assert!(run(&["--no-suffix"]).status.success());
    assert!(place.join("pronto-bugreport.txt").exists());
    // A report is never overwritten.
    let again = run(&["--no-suffix"]);
    assert_eq!(again.status.code(), Some(128));
    assert!(stderr(&again).contains("File exists"), "{}", stderr(&again));
    assert!(run(&["-o", "new/below", "-s", "x%%y"]).status.success());
    assert!(place.join("new/below/pronto-bugreport-x%y.txt").exists());
    assert!(run(&["--no-suffix", "--suffix=z"]).status.success());
    let text = fs::read_to_string(place.join("pronto-bugreport-z.txt")).expect("a report");
    assert!(
        text.contains("[Repository]\nnone in this directory\n"),
        "{text}"
    );
    // The default is the local time.
    let output = report_in(&place, &["-o", "time"])
        .env("TZ", "XXX-14")
        .output();
    written(&place.join("time"), &output.expect("it starts"));
}

#[test]
fn the_editor_opens_the_report() {
    let scratch = Scratch::new();
    let place = scratch.join("place");
    fs::create_dir(&place).expect("a directory");
    let edit = |editor: &str| {
        let mut command = report_in(&place, &["-s", "x", "-o", "reports"]);
        command
            .env("GIT_EDITOR", editor)
            .output()
            .expect("it starts")
    };
    let edited = edit("cp -t .");
    assert!(edited.status.success(), "{edited:?}");
    let name = "pronto-bugreport-x.txt";
    let copy = fs::read(place.join(name)).expect("the editor has copied it");
    assert_eq!(
        copy,
        fs::read(place.join("reports").join(name)).expect("it exists")
    );
    fs::remove_dir_all(place.join("reports")).expect("it exists");
    let failed = edit("false");
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(
        stderr(&failed).lines().last(),
        Some("error: editor 'false' failed")
    );
    // Without an editor and a terminal, there is only the file.
    let mut command = report_in(&place, &["-s", "y"]);
    let output = command.env_remove("GIT_EDITOR").output();
    assert!(output.expect("it starts").status.success());
}

#[test]
fn a_damaged_repository_is_described_as_far_as_possible() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    fs::write(work.join(".git/config"), "[core\nhunter2").expect("a file");
    let output = report_in(&work, &[]).output().expect("it starts");
    let text = written(&work, &output);
    assert!(text.contains("cannot be opened: Config"), "{text}");
    assert!(!text.contains(SECRET), "{text}");
}

#[test]
fn calls_are_described_without_running_them() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let described = |call: &[&str]| {
        let arguments = [&["--"], call].concat();
        let text = written(
            &work,
            &report_in(&work, &arguments).output().expect("it starts"),
        );
        assert!(!text.contains(SECRET), "{text}");
        let (_, call) = text.split_once("[Call]\n").expect("a section");
        let (call, _) = call.split_once("\n[Enabled Hooks]\n").expect("a section");
        call.to_owned()
    };
    let native = "runs: pronto, unless it finds later that it lacks something\n";
    assert_eq!(
        described(&["status", "-s"]),
        format!("command: status\n{native}")
    );
    let log = described(&["git", "log", "--grep=hunter2"]);
    assert!(
        log.starts_with("command: log\n") && log.ends_with("git runs it\n"),
        "{log}"
    );
    let unknown = described(&[SECRET, "x"]);
    assert!(
        unknown.starts_with("command: (not named here)\n"),
        "{unknown}"
    );
    let add = described(&["add", "new"]);
    assert!(add.contains(native), "{add}");
    fs::write(work.join("new"), "x").expect("a file");
    described(&["add", "new"]);
    let status = git(&work, &["status", "--porcelain", "new"]);
    assert_eq!(status, "?? new");
    git(&work, &["config", "submodule.recurse", "true"]);
    git(&work, &["config", "http.sslBackend", SECRET]);
    described(&["fetch"]);
    let depth = described(&["clone", "--depth", "--no-such"]);
    assert!(
        depth.contains("native") || depth.contains("runs: "),
        "{depth}"
    );
}

#[test]
fn an_archive_is_made_by_git_alone() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let mut command = report_in(&work, &["--diagnose"]);
    let output = command.env("PRONTO_NO_FALLBACK", "1").output();
    let output = output.expect("it starts");
    assert_eq!(output.status.code(), Some(128));
    let message = "fatal: option '--diagnose' of 'bugreport' is not implemented natively";
    assert_eq!(stderr(&output).lines().next(), Some(message));
    let misplaced = report_in(&work, &["fetch"])
        .env("PRONTO_NO_FALLBACK", "1")
        .output();
    assert_eq!(misplaced.expect("it starts").status.code(), Some(129));
}

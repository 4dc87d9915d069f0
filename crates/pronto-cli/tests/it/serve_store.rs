//! `serve --store`: several servers that share one store.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::serve::{Server, git, git_succeeds, repository, wait_until};
use crate::support::{Scratch, pronto, stderr, stdout, write_program};

/// A store, and a repository with a commit.
pub(crate) struct World {
    pub(crate) scratch: Scratch,
    pub(crate) work: PathBuf,
    pub(crate) url: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.join("store")).expect("a directory");
        World {
            work: repository(&scratch),
            url: format!("file://{}", scratch.join("store").display()),
            scratch,
        }
    }

    fn serve(&self, cache: &str) -> Server {
        let arguments = ["--write", "--store", &self.url, "--cache", cache];
        Server::start(self.scratch.path(), &arguments, "pronto_")
    }

    /// Starts a server with a configuration that anonymous may write with.
    pub(crate) fn serve_configured(&self, cache: &str, settings: &str) -> Server {
        let text = format!(
            "create_on_push = true\n[http]\nmetrics = \"loopback\"\nlisten = [\"127.0.0.1:0\"]\n[[grant]]\nrepository = \"**\"\n\
             users = [\"anonymous\"]\nrole = \"admin\"\n{settings}[store]\nurl = \"{}\"\ncache = \"{cache}\"\n",
            self.url
        );
        let file = format!("{cache}.toml");
        std::fs::write(self.scratch.join(&file), text).expect("a file");
        let last = match self.scratch.join("store/r.git").exists() {
            true => "git clone",
            false => "no repositories yet",
        };
        Server::start(self.scratch.path(), &["--config", &file], last)
    }

    pub(crate) fn git(&self, at: &Path, arguments: &[&str]) -> String {
        git_succeeds(&self.scratch, at, arguments)
    }

    /// Runs git, which must fail. Returns what it said.
    pub(crate) fn fail(&self, at: &Path, arguments: &[&str]) -> String {
        let output = git(&self.scratch, at, arguments);
        assert!(!output.status.success(), "{arguments:?}");
        stderr(&output)
    }

    pub(crate) fn commit(&self, at: &Path, name: &str) -> String {
        std::fs::write(at.join(name), name).expect("a file");
        self.git(at, &["add", name]);
        self.git(at, &["commit", "-q", "-m", name]);
        self.git(at, &["rev-parse", "HEAD"]).trim().to_owned()
    }

    pub(crate) fn pronto(&self, arguments: &[&str]) -> (bool, String, String) {
        let mut command = pronto();
        command.args(arguments).current_dir(self.scratch.path());
        let output = command.output().expect("it starts");
        (output.status.success(), stdout(&output), stderr(&output))
    }

    pub(crate) fn verify(&self) {
        let (success, out, err) = self.pronto(&["store", "verify", &self.url]);
        assert!(success && out.ends_with(" 0 problems\n"), "{out}{err}");
    }
}

/// Returns the address of a repository.
pub(crate) fn address(server: &Server, name: &str) -> String {
    format!("http://{}/{name}", server.host())
}

/// Returns head and body of the answer to a request.
pub(crate) fn get(server: &Server, path: &str) -> String {
    let mut stream = TcpStream::connect(server.host()).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

const REFS: &str = "/r/info/refs?service=git-upload-pack";

#[test]
fn what_one_server_was_given_all_have() {
    let world = World::new();
    let (one, two) = (world.serve("one"), world.serve("two"));
    let work = world.work.clone();
    world.commit(&work, "a");
    world.git(&work, &["tag", "-m", "tagged", "v1"]);
    world.git(
        &work,
        &["push", "-q", &one.owner_url("r"), "main", "v1", "main:side"],
    );
    let listed = world.git(&work, &["ls-remote", &address(&two, "r")]);
    assert!(
        listed.contains("\tHEAD\n") && listed.contains("refs/tags/v1^{}"),
        "{listed}"
    );
    for (name, options) in [
        ("clone", &[][..]),
        ("shallow", &["--depth=1"][..]),
        ("partial", &["--filter=blob:none"][..]),
    ] {
        let url = address(&two, "r");
        let mut arguments = vec!["clone", "-q", "-b", "main"];
        arguments.extend(options);
        arguments.extend([url.as_str(), name]);
        world.git(world.scratch.path(), &arguments);
        let clone = world.scratch.join(name);
        assert!(clone.join("a").exists(), "{name}");
        world.git(&clone, &["fsck"]);
    }
    // Each server sees at once what the other one was given.
    let clone = world.scratch.join("clone");
    for (at, server, other) in [(&clone, &two, &one), (&work, &one, &two)] {
        world.git(at, &["pull", "-q", &address(server, "r"), "main"]);
        let id = world.commit(at, &format!("by {}", server.host()));
        world.git(at, &["push", "-q", &server.owner_url("r"), "main"]);
        let listed = world.git(at, &["ls-remote", &address(other, "r"), "refs/heads/main"]);
        assert!(listed.starts_with(&id), "{listed}");
    }
    world.git(&work, &["push", "-q", &two.owner_url("r"), ":side"]);
    let listed = world.git(&work, &["ls-remote", &address(&one, "r")]);
    assert!(!listed.contains("side"), "{listed}");
    let refused = world.fail(&work, &["push", &one.owner_url("r"), ":main"]);
    assert!(
        refused.contains("deletion of the current branch prohibited"),
        "{refused}"
    );
    world.verify();
    one.signal(Signal::TERM);
    let log = one.end();
    assert!(log.contains("\"store\":{\"bytes\":"), "{log}");
    assert!(log.contains("\"generation\":"), "{log}");
}

#[test]
fn a_change_elsewhere_costs_one_listing_and_one_manifest() {
    let world = World::new();
    let (success, _, err) = world.pronto(&["store", "import", "work", &world.url, "r"]);
    assert!(success, "{err}");
    let server = world.serve_configured("one", "");
    let calls = || {
        world.git(&world.work, &["ls-remote", &address(&server, "r")]);
        let metrics = get(&server, "/metrics");
        ["get", "list"].map(|call| {
            let start = format!("pronto_server_store_calls_total{{call=\"{call}\"}} ");
            let line = metrics.lines().find_map(|line| line.strip_prefix(&start));
            line.map_or(0, |count| count.parse::<u64>().expect("a number"))
        })
    };
    // One request for the advertisement, and one for the list.
    calls();
    let before = calls();
    let unchanged = calls();
    assert_eq!([unchanged[0] - before[0], unchanged[1] - before[1]], [2, 0]);
    let (success, _, err) = world.pronto(&["store", "head", &world.url, "r", "other"]);
    assert!(success, "{err}");
    let changed = calls();
    assert_eq!(
        [changed[0] - unchanged[0], changed[1] - unchanged[1]],
        [2, 1]
    );
}

#[test]
fn refused_pushes_change_nothing() {
    let world = World::new();
    let rules = "[[rule]]\nrepository = \"**\"\nrefs = \"refs/heads/main\"\nforce = false\n";
    let server = world.serve_configured("one", rules);
    let url = address(&server, "r");
    let work = world.work.clone();
    let first = world.commit(&work, "a");
    world.git(&work, &["push", "-q", &url, "main", "main:side"]);
    world.git(&work, &["commit", "-q", "--amend", "-m", "other"]);
    // The branch may be rewritten, but not this one; and if one must change, none does.
    let refused = world.fail(&work, &["push", &url, "+main"]);
    assert!(refused.contains("non-fast-forward"), "{refused}");
    world.git(&work, &["push", "-q", &url, "+main:side"]);
    let refused = world.fail(
        &work,
        &["push", "--atomic", &url, "+main", "main:refs/heads/new"],
    );
    assert!(refused.contains("atomic"), "{refused}");
    let listed = world.git(&work, &["ls-remote", &url]);
    assert!(
        listed.contains(&format!("{first}\trefs/heads/main")),
        "{listed}"
    );
    assert!(!listed.contains("refs/heads/new"), "{listed}");
    // Directories and files of refs exclude each other, also for one that takes the other's place.
    let refused = world.fail(&work, &["push", &url, "main:refs/heads/side/below"]);
    assert!(refused.contains("refname conflict"), "{refused}");
    world.git(
        &work,
        &["push", "-q", &url, ":side", "main:refs/heads/side/below"],
    );
    world.verify();
}

#[test]
fn hooks_of_the_server_see_objects_and_options() {
    let world = World::new();
    world.git(
        &world.work,
        &["config", "receive.advertisePushOptions", "true"],
    );
    world.git(&world.work, &["config", "receive.fsckObjects", "true"]);
    let (success, _, err) = world.pronto(&["store", "import", "work", &world.url, "r"]);
    assert!(success, "{err}");
    let hooks = world.scratch.join("hooks");
    std::fs::create_dir(&hooks).expect("a directory");
    let git = "GIT_DIR=.git-for-objects; export GIT_DIR\n\
        mkdir -p $GIT_DIR/refs $GIT_DIR/objects && echo ref: refs/heads/x >$GIT_DIR/HEAD\n";
    let pre = format!(
        "#!/bin/sh\necho \"pre $GIT_PUSH_OPTION_0\"\nread old new name\n\
         export GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n{git}git cat-file -t $new\n"
    );
    write_program(&hooks.join("pre-receive"), &pre);
    let update = "#!/bin/sh\necho \"update $1\"\ntest \"$1\" != refs/heads/forbidden\n";
    write_program(&hooks.join("update"), update);
    let post = "#!/bin/sh\nread old new name\necho \"post $name by $REMOTE_ADDR\"\n";
    write_program(&hooks.join("post-receive"), post);
    let config = format!("[core]\n\thooksPath = {}\n", hooks.display());
    std::fs::write(world.scratch.join(".gitconfig"), config).expect("a file");
    let server = world.serve_configured("one", "");
    let url = address(&server, "r");
    world.git(&world.work, &["config", "core.hooksPath", "/nonexistent"]);
    world.commit(&world.work, "a");
    let push = ["push", "-o", "hello", &url, "main", "main:forbidden"];
    let said = world.fail(&world.work, &push);
    for expected in [
        "remote: pre hello",
        "remote: commit",
        "remote: update refs/heads/main",
        "remote: post refs/heads/main by 127.0.0.1",
        "hook declined",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let listed = world.git(&world.work, &["ls-remote", &url]);
    assert!(!listed.contains("forbidden"), "{listed}");
    world.verify();
}

#[test]
fn signed_pushes_are_checked_for_hooks_of_the_server() {
    let world = World::new();
    let (success, _, err) = world.pronto(&["store", "import", "work", &world.url, "r"]);
    assert!(success, "{err}");
    let key = world.scratch.join("key");
    if !test_support::keys::make_ssh_key(&key) {
        test_support::skip!("ssh-keygen is not installed");
    }
    let public = std::fs::read_to_string(key.with_extension("pub")).expect("a file");
    let allowed = world.scratch.join("allowed");
    std::fs::write(&allowed, format!("me@x {public}")).expect("a file");
    let hooks = world.scratch.join("hooks");
    std::fs::create_dir(&hooks).expect("a directory");
    let hook = "#!/bin/sh\ncat >/dev/null\n\
        echo $GIT_PUSH_CERT_STATUS $GIT_PUSH_CERT_SIGNER $GIT_PUSH_CERT_NONCE_STATUS\n\
        mkdir -p for-git/refs for-git/objects && echo ref: refs/heads/x >for-git/HEAD\n\
        GIT_OBJECT_DIRECTORY=${GIT_OBJECT_DIRECTORY-objects} GIT_DIR=for-git git cat-file -p $GIT_PUSH_CERT\n\
        test \"$GIT_PUSH_CERT_STATUS\" = G\n";
    for name in ["pre-receive", "post-receive"] {
        write_program(&hooks.join(name), hook);
    }
    let config = format!(
        "[core]\n\thooksPath = {}\n[receive]\n\tcertNonceSeed = s\n\tcertNonceSlop = 600\n\
         [gpg \"ssh\"]\n\tallowedSignersFile = {}\n",
        hooks.display(),
        allowed.display()
    );
    std::fs::write(world.scratch.join(".gitconfig"), config).expect("a file");
    let server = world.serve_configured("one", "");
    let url = address(&server, "r");
    let set = |key: &str, value: &str| world.git(&world.work, &["config", key, value]);
    set("core.hooksPath", "/nonexistent");
    set("gpg.format", "ssh");
    set("user.signingKey", key.to_str().expect("ASCII"));
    world.commit(&world.work, "a");
    let said = world.fail(&world.work, &["push", &url, "main"]);
    assert!(said.contains("pre-receive hook declined"), "{said}");
    let output = git(
        &world.scratch,
        &world.work,
        &["push", "--signed", &url, "main"],
    );
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("remote: G me@x OK").count(), 2, "{said}");
    assert_eq!(
        said.matches("remote: certificate version 0.1").count(),
        2,
        "{said}"
    );
    world.verify();
}

#[test]
fn repositories_are_managed_in_the_store() {
    let world = World::new();
    let (one, two) = (
        world.serve_configured("one", ""),
        world.serve_configured("two", ""),
    );
    let manage = |words: &[&str]| {
        let arguments = [&["serve", "--config", "one.toml", "repository"], words].concat();
        world.pronto(&arguments)
    };
    assert!(manage(&["create", "team/r"]).0);
    let (success, _, err) = manage(&["create", "team/r"]);
    assert!(!success && err.contains("already"), "{err}");
    assert_eq!(manage(&["list"]).1, "team/r\n");
    let (r, other) = (address(&one, "team/r"), address(&two, "team/r"));
    world.git(&world.work, &["push", "-q", &r, "main"]);
    world.git(&world.work, &["ls-remote", "--exit-code", &other, "main"]);
    assert!(manage(&["remove", "team/r"]).0);
    assert_eq!(manage(&["list"]).1, "");
    for url in [&r, &other] {
        let said = world.fail(&world.work, &["ls-remote", url]);
        assert!(said.contains("not found"), "{said}");
    }
    assert!(!manage(&["remove", "team/r"]).0);
    // A push creates it again, with nothing of the old one.
    world.git(&world.work, &["push", "-q", &other, "main:again"]);
    let listed = world.git(&world.work, &["ls-remote", &r]);
    assert!(
        listed.ends_with("refs/heads/again\n") && !listed.contains("main"),
        "{listed}"
    );
    assert_eq!(manage(&["list"]).1, "team/r\n");
    world.verify();
}

#[test]
fn views_that_are_not_used_make_room() {
    let world = World::new();
    let server = world.serve_configured("one", "");
    let text = std::fs::read_to_string(world.scratch.join("one.toml")).expect("text");
    let names: Vec<String> = (0..4).map(|number| format!("r{number}")).collect();
    for name in &names {
        world.commit(&world.work, name);
        world.git(
            &world.work,
            &["push", "-q", &address(&server, name), "main"],
        );
    }
    std::fs::write(
        world.scratch.join("one.toml"),
        format!("{text}cache_bytes = 1\n"),
    )
    .expect("a file");
    server.signal(Signal::HUP);
    wait_until(|| get(&server, "/metrics").contains("reloads_total 1"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (world, server, names) = (&world, &server, &names);
            scope.spawn(move || {
                for round in 0..4 {
                    let name = &names[(thread + round) % names.len()];
                    let target = format!("clone-{thread}-{round}");
                    let url = address(server, name);
                    world.git(world.scratch.path(), &["clone", "-q", &url, &target]);
                    assert!(world.scratch.join(&target).join(name).exists());
                }
            });
        }
    });
    let metrics = get(&server, "/metrics");
    let value = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        let line = line.unwrap_or_else(|| panic!("no {name}: {metrics}"));
        line.trim().parse().expect("a number")
    };
    assert!(value("pronto_server_store_cache_evictions_total ") > 0);
    assert!(value("pronto_server_store_cache_misses_total ") > 4);
    assert!(value("pronto_server_store_calls_total{call=\"create\"} ") >= 8);
    assert!(value("pronto_server_store_bytes_total{call=\"get\"} ") > 0);
    world.verify();
    // At most the repositories of the last requests are left.
    let kept = std::fs::read_dir(world.scratch.join("one")).expect("a directory");
    let kept = kept.filter(|entry| {
        let path = entry.as_ref().expect("readable").path().join("file");
        std::fs::read_dir(path).is_ok_and(|files| files.count() > 0)
    });
    assert!(kept.count() <= 4);
}

#[test]
fn a_store_that_does_not_answer_is_named() {
    let scratch = Scratch::new();
    let config = "[http]\nmetrics = \"loopback\"\nlisten = [\"127.0.0.1:0\"]\n[store]\nurl = \"s3://bucket/prefix\"\n\
        cache = \"cache\"\npatience_seconds = 1\n";
    std::fs::write(scratch.join("s.toml"), config).expect("a file");
    let variables = [
        ("AWS_ENDPOINT", "http://127.0.0.1:1"),
        ("AWS_REGION", "x"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
    ];
    let arguments = ["--config", "s.toml"];
    let server = Server::start_with(
        scratch.path(),
        &arguments,
        "no repositories yet",
        &variables,
    );
    let answer = get(&server, REFS);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("retry-after: 5\r\n"), "{answer}");
    assert!(answer.contains("the store does not respond"), "{answer}");
    let answer = get(&server, "/healthz");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.contains("the store has not answered for"),
        "{answer}"
    );
    server.signal(Signal::TERM);
    let log = server.end();
    assert!(
        log.contains("\"status\":503") && log.contains("127.0.0.1:1"),
        "{log}"
    );
    let mut command = pronto();
    command
        .args(["serve", "--config", "s.toml", "--check"])
        .current_dir(scratch.path())
        .envs(variables);
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(128));
    assert!(
        stderr(&output)
            .contains("cannot reach the store 's3://bucket/prefix' at 'http://127.0.0.1:1'"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn damage_and_a_broken_cache_are_told_apart() {
    let world = World::new();
    let (success, _, err) = world.pronto(&["store", "import", "work", &world.url, "r"]);
    assert!(success, "{err}");
    let (success, _, err) = world.pronto(&["serve", "--store", &world.url, "--check"]);
    assert!(success, "{err}");
    let packs = std::fs::read_dir(world.scratch.join("store/r.git/pack")).expect("a directory");
    let index = packs
        .map(|entry| entry.expect("readable").path())
        .find(|path| path.extension().is_some_and(|it| it == "idx"))
        .expect("an index");
    let good = std::fs::read(&index).expect("a file");
    let mut bad = good.clone();
    bad[100] ^= 1;
    std::fs::write(&index, bad).expect("writable");
    let server = world.serve("one");
    let answer = get(&server, REFS);
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(
        answer.contains("damaged in the store") && answer.contains("(request "),
        "{answer}"
    );
    std::fs::write(&index, good).expect("writable");
    // The disk of the cache fails for one request, and serves again when it is back.
    let cache = world.scratch.join("one");
    std::fs::rename(&cache, world.scratch.join("away")).expect("it moves");
    std::fs::write(&cache, "").expect("a file");
    let answer = get(&server, REFS);
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("cannot use its disk"),
        "{answer}"
    );
    std::fs::remove_file(&cache).expect("there");
    std::fs::rename(world.scratch.join("away"), &cache).expect("it moves");
    let answer = get(&server, REFS);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(get(&server, "/healthz").starts_with("HTTP/1.1 200 "));
    // One process has the cache.
    let arguments = ["serve", "--store", &world.url, "--cache", "one"];
    let (success, _, err) = world.pronto(&arguments);
    assert!(
        !success && err.contains("in use by another process"),
        "{err}"
    );
    server.signal(Signal::TERM);
    let log = server.end();
    assert!(log.contains(".idx"), "the log names the object: {log}");
    let left = world.scratch.join("one");
    let left = std::fs::read_dir(left).expect("a directory").map(|entry| {
        let path = entry.expect("readable").path().join("push");
        std::fs::read_dir(path).map_or(0, Iterator::count)
    });
    assert_eq!(left.sum::<usize>(), 0, "views of pushes are removed");
}

#[test]
fn the_plain_protocol_serves_a_store() {
    let world = World::new();
    let daemon = "[daemon]\nlisten = [\"127.0.0.1:0\"]\npush = \"always\"\n";
    let server = world.serve_configured("one", daemon);
    let lines = server.lines.iter();
    let mut addresses = lines.filter_map(|line| line.strip_prefix("serving at git://"));
    let url = format!("git://{}r", addresses.next().expect("an address"));
    world.git(&world.work, &["push", "-q", &url, "main"]);
    world.commit(&world.work, "a");
    world.git(&world.work, &["push", "-q", &url, "main"]);
    world.git(world.scratch.path(), &["clone", "-q", &url, "clone"]);
    assert!(world.scratch.join("clone/a").exists());
    world.verify();
}

#[test]
fn thin_packs_are_completed_from_the_view() {
    let world = World::new();
    let server = world.serve_configured("one", "");
    let url = address(&server, "r");
    let mut lines: Vec<String> = (0..5000)
        .map(|number| format!("{}\n", number * 7919))
        .collect();
    for round in 0..3 {
        lines[round] = format!("round {round}\n");
        std::fs::write(world.work.join("large"), lines.concat()).expect("a file");
        world.git(&world.work, &["add", "large"]);
        world.git(&world.work, &["commit", "-q", "-m", "large"]);
        world.git(&world.work, &["push", "-q", &url, "main"]);
    }
    world.git(world.scratch.path(), &["clone", "-q", &url, "clone"]);
    let clone = world.scratch.join("clone");
    world.git(&clone, &["fsck", "--strict"]);
    let read = std::fs::read_to_string(clone.join("large")).expect("text");
    assert_eq!(read, lines.concat());
    server.signal(Signal::TERM);
    let log = server.end();
    // The second and third push send a delta, not the file.
    let pushes = log
        .lines()
        .filter(|line| line.contains("git-receive-pack") && !line.contains("\"received_bytes\":0"));
    let received = pushes.map(|line| {
        let (_, rest) = line.split_once("\"received_bytes\":").expect("a count");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().expect("a number")
    });
    let received: Vec<u64> = received.filter(|bytes| *bytes > 100).collect();
    assert_eq!(received.len(), 3, "{log}");
    assert!(received[1] < 2000 && received[2] < 2000, "{received:?}");
    world.verify();
}

//! Tests of `git://`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::stored::{Place, in_both_places};
use crate::support::{Server, Site};

in_both_places!(
    clones_of_all_versions_and_shallow_ones,
    only_what_anonymous_may_read_is_served,
    malformed_requests_are_refused,
    pushes_are_taken_where_they_are_allowed,
    a_refused_push_has_a_report,
    only_marked_repositories_are_for_everyone,
    a_repository_can_forbid_a_service,
);

fn start(site: &Site, text: &str) -> Server {
    let mut config = site.config(text);
    config.daemon = vec![([127, 0, 0, 1], 0).into()];
    Server::start(site, config)
}

fn ask(server: &Server, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(server.started.daemon[0]).expect("it listens");
    socket.write_all(bytes).expect("it reads");
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn clones_of_all_versions_and_shallow_ones(place: Place) {
    let site = Site::new(place);
    let server = start(&site, "");
    let url = format!("git://{}/team/a.git", server.started.daemon[0]);
    for version in ["0", "1", "2"] {
        for depth in ["", "--depth=1"] {
            let target = format!("clone{version}{depth}");
            let protocol = format!("protocol.version={version}");
            let mut arguments = vec!["-c", &protocol, "clone", "-q", &url, &target];
            arguments.extend((!depth.is_empty()).then_some(depth));
            site.git(site.scratch.path(), &arguments);
            site.git(&site.path(&target), &["fsck", "--strict"]);
        }
    }
}

fn only_what_anonymous_may_read_is_served(place: Place) {
    let site = Site::new(place);
    let grant = "[[grant]]\nrepository = \"**\"\nusers = [\"*\"]\nrole = \"write\"";
    let server = start(&site, grant);
    let line = "git-upload-pack /team/a\0host=x\0";
    let answer = ask(&server, format!("{:04x}{line}", line.len() + 4).as_bytes());
    assert!(
        answer.contains("ERR there is no repository 'team/a'"),
        "{answer}"
    );
    let line = "git-receive-pack /team/a\0host=x\0";
    let answer = ask(&server, format!("{:04x}{line}", line.len() + 4).as_bytes());
    assert!(
        answer
            .contains("ERR this server does not accept pushes over git://; use http:// or ssh://"),
        "{answer}"
    );
}

fn malformed_requests_are_refused(place: Place) {
    let site = Site::new(place);
    let server = start(&site, "[limits]\nhead_seconds = 1");
    for bytes in [
        &b"0000"[..],
        b"zzzz",
        b"ffff",
        b"0008abcd",
        b"0016git-nothing /team",
    ] {
        let answer = ask(&server, bytes);
        assert!(answer.contains("ERR "), "{answer}");
    }
    // A slow sender is disconnected.
    let answer = ask(&server, b"00");
    assert!(
        answer.contains("timeout: the request is incomplete"),
        "{answer}"
    );
}

const EVERYONE_WRITES: &str =
    "[[grant]]\nrepository = \"**\"\nusers = [\"anonymous\"]\nrole = \"write\"\n";

fn pushes_are_taken_where_they_are_allowed(place: Place) {
    let site = Site::new(place);
    let set = |value: &str| {
        let repository = site.path("root/team/a.git");
        site.git(&repository, &["config", "daemon.receivePack", value]);
        site.publish("team/a");
    };
    for (push, repository, is_taken) in [
        ("marked", None, false),
        ("marked", Some("true"), true),
        ("always", Some("false"), false),
        ("always", Some("true"), true),
        ("never", Some("true"), false),
    ] {
        if let Some(value) = repository {
            set(value);
        }
        let text = format!("[daemon]\npush = \"{push}\"\n{EVERYONE_WRITES}");
        let server = start(&site, &text);
        let url = format!("git://{}/team/a.git", server.started.daemon[0]);
        let name = format!("main:{push}-{}", repository.unwrap_or("unset"));
        let output = site.try_git(&site.path("work"), &["push", "-q", &url, &name]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.success(),
            is_taken,
            "{push} {repository:?}: {text}"
        );
    }
    // The role is checked, too.
    let server = start(&site, "[daemon]\npush = \"always\"");
    let url = format!("git://{}/team/a.git", server.started.daemon[0]);
    let output = site.try_git(&site.path("work"), &["push", &url, "main:x"]);
    assert!(!output.status.success());
}

fn a_refused_push_has_a_report(place: Place) {
    let site = Site::new(place);
    let rule = "[[rule]]\nrepository = \"**\"\nrefs = \"refs/heads/kept\"\ncreate = false\n";
    let text = format!("[daemon]\npush = \"always\"\n{EVERYONE_WRITES}{rule}");
    let server = start(&site, &text);
    let work = site.path("work");
    // The push is larger than the buffer of a socket, so that the client still sends when it is
    // refused.
    let large: Vec<u8> = test_support::Random::new(1).bytes(16 << 20);
    std::fs::write(work.join("large"), large).expect("a file");
    site.git(&work, &["add", "."]);
    site.git(&work, &["commit", "-q", "-m", "large"]);
    let url = format!("git://{}/team/a.git", server.started.daemon[0]);
    let output = site.try_git(&work, &["push", &url, "main:kept"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("you may not create this ref"), "{text}");
}

fn only_marked_repositories_are_for_everyone(place: Place) {
    let site = Site::new(place);
    let token = site.user("alice");
    let server = start(&site, "require_export_ok = true");
    let daemon = format!("git://{}/team/a.git", server.started.daemon[0]);
    let list = |url: &str| site.try_git(site.scratch.path(), &["ls-remote", url]);
    let (hidden, missing) = (server.url("team/a"), server.url("team/none"));
    for url in [&daemon, &hidden, &missing] {
        assert!(!list(url).status.success(), "{url}");
    }
    // The error does not reveal whether the repository exists.
    for name in ["a", "none"] {
        let path = format!("/team/{name}/info/refs?service=git-upload-pack");
        let answer = server.request("GET", &path, "", "");
        assert_eq!(crate::support::status(&answer), 401, "{answer}");
    }
    assert!(
        list(&server.url_of("alice", &token, "team/a"))
            .status
            .success()
    );
    std::fs::write(site.path("root/team/a.git/git-daemon-export-ok"), "").expect("a file");
    site.publish("team/a");
    for url in [&daemon, &hidden] {
        assert!(list(url).status.success(), "{url}");
    }
}

fn a_repository_can_forbid_a_service(place: Place) {
    let site = Site::new(place);
    let server = start(&site, EVERYONE_WRITES);
    let repository = site.path("root/team/a.git");
    let daemon = format!("git://{}/team/a.git", server.started.daemon[0]);
    let web = server.url("team/a");
    let list = |url: &str| site.try_git(site.scratch.path(), &["ls-remote", url]);
    let push = || site.try_git(&site.path("work"), &["push", &web, "main:x"]);
    let set = |key: &str, value: &str| {
        site.git(&repository, &["config", key, value]);
        site.publish("team/a");
    };
    set("daemon.uploadPack", "false");
    assert!(!list(&daemon).status.success() && list(&web).status.success());
    set("http.receivePack", "false");
    let output = push();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("http.receivepack") && text.contains("403"),
        "{text}"
    );
    set("http.uploadPack", "false");
    assert!(!list(&web).status.success());
    set("http.receivePack", "true");
    assert!(push().status.success());
}

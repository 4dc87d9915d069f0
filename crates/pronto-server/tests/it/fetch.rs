//! Tests of clones and fetches over HTTP.

use crate::stored::{Place, in_a_directory_only, in_both_places};
use crate::support::{Server, Site, status};
use pronto_server::Event;

in_both_places!(
    all_versions_of_the_protocol_clone,
    new_commits_are_fetched,
    shallow_clones_are_served_and_deepened,
    other_requests_get_a_clear_answer,
    requests_are_counted_and_logged,
    bodies_in_chunks_and_compressed_ones_are_read,
);

in_a_directory_only!(
    /// A store has no single repository that needs no configuration.
    a_single_repository_has_the_name_of_its_directory,
);

fn all_versions_of_the_protocol_clone(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config(""));
    for version in ["0", "1", "2"] {
        let target = format!("clone{version}");
        let protocol = format!("protocol.version={version}");
        let url = server.url("team/a.git");
        let arguments = ["-c", &protocol, "clone", "-q", &url, &target];
        site.git(site.scratch.path(), &arguments);
        let clone = site.path(&target);
        site.git(&clone, &["fsck", "--strict"]);
        let refs = [
            "for-each-ref",
            "refs/tags",
            "--format=%(refname) %(objectname)",
        ];
        assert_eq!(site.git(&clone, &refs), site.git(&site.path("work"), &refs));
    }
}

fn new_commits_are_fetched(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config(""));
    for version in ["0", "2"] {
        let target = format!("clone{version}");
        let protocol = format!("protocol.version={version}");
        site.git(
            site.scratch.path(),
            &[
                "-c",
                &protocol,
                "clone",
                "-q",
                &server.url("team/a"),
                &target,
            ],
        );
        let work = site.path("work");
        site.git(&work, &["commit", "-q", "--allow-empty", "-m", "more"]);
        site.git(&work, &["push", "-q", "../root/team/a.git", "main"]);
        site.publish("team/a");
        let clone = site.path(&target);
        site.git(&clone, &["-c", &protocol, "fetch", "-q"]);
        let head = |directory, name| site.git(directory, &["rev-parse", name]);
        assert_eq!(head(&clone, "origin/main"), head(&work, "main"));
    }
}

fn shallow_clones_are_served_and_deepened(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config(""));
    for version in ["0", "2"] {
        let target = format!("shallow{version}");
        let protocol = format!("protocol.version={version}");
        let url = server.url("team/a");
        let arguments = [
            "-c", &protocol, "clone", "-q", "--depth", "1", &url, &target,
        ];
        site.git(site.scratch.path(), &arguments);
        let clone = site.path(&target);
        let count = |clone| site.git(clone, &["rev-list", "--count", "HEAD"]);
        assert_eq!(count(&clone).trim(), "1");
        site.git(&clone, &["-c", &protocol, "fetch", "-q", "--unshallow"]);
        assert_eq!(count(&clone).trim(), "2");
        site.git(&clone, &["fsck", "--strict"]);
    }
}

fn a_single_repository_has_the_name_of_its_directory() {
    let site = Site::new(Place::Directory);
    let mut config = site.config("");
    config.root = site.path("work");
    let server = Server::start(&site, config);
    assert_eq!(server.started.repositories, ["work"]);
    site.git(
        site.scratch.path(),
        &["clone", "-q", &server.url("work"), "clone"],
    );
    let answer = server.request("GET", "/other/info/refs?service=git-upload-pack", "", "");
    assert_eq!(status(&answer), 404, "{answer}");
}

fn other_requests_get_a_clear_answer(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config(""));
    let get = |path: &str| server.request("GET", path, "", "");
    assert_eq!(status(&get("/healthz")), 200);
    for path in [
        "/team/a.git/info/refs",
        "/team/a.git/HEAD",
        "/team/a/objects/info/packs",
    ] {
        let answer = get(path);
        assert_eq!(status(&answer), 400, "{answer}");
        assert!(answer.contains("smart HTTP"), "{answer}");
    }
    let answer = get("/team/b/info/refs?service=git-upload-pack");
    assert_eq!(status(&answer), 404, "{answer}");
    let id = answer.split("x-request-id: ").nth(1).expect("it has an id");
    let id = id.lines().next().expect("a line");
    assert!(answer.contains(&format!("(request {id})")), "{answer}");
    assert_eq!(status(&get("/")), 404);
    assert_eq!(status(&get("/team/a/git-upload-pack")), 405);
    let answer = server.request("POST", "/team/a/git-upload-pack", "", "0000");
    assert_eq!(
        status(&answer),
        400,
        "the type of the content is missing: {answer}"
    );
}

fn requests_are_counted_and_logged(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config(""));
    site.git(
        site.scratch.path(),
        &["clone", "-q", &server.url("team/a"), "clone"],
    );
    let event = server.wait_for(|event| match event {
        Event::Request(request) => {
            request.service == "git-upload-pack" && request.received_bytes > 0
        }
        _ => false,
    });
    let Event::Request(request) = event else {
        unreachable!("it fits");
    };
    assert_eq!(request.repository.as_deref(), Some("team/a"));
    assert_eq!((request.status, request.error), (200, None));
    assert!(request.sent_bytes > 0);
    let answer = server.request("GET", "/metrics", "", "");
    assert_eq!(status(&answer), 200);
    let line = "pronto_server_requests_total{service=\"git-upload-pack\",status=\"200\"} ";
    assert!(answer.contains(line), "{answer}");
    assert!(answer.contains("pronto_server_connections "), "{answer}");
}

fn bodies_in_chunks_and_compressed_ones_are_read(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config(""));
    let request = "0014command=ls-refs\n0016object-format=sha100010000";
    let headers =
        "git-protocol: version=2\r\ncontent-type: application/x-git-upload-pack-request\r\n";
    let plain = server.request("POST", "/team/a/git-upload-pack", headers, request);
    assert!(plain.contains("refs/heads/main"), "{plain}");
    let (first, second) = request.split_at(10);
    let chunks = format!(
        "{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    let text = format!(
        "POST /team/a/git-upload-pack HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         transfer-encoding: chunked\r\nexpect: 100-continue\r\n{headers}\r\n{chunks}"
    );
    let answer = server.raw(text.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 100 Continue\r\n"), "{answer}");
    assert!(answer.contains("refs/heads/main"), "{answer}");
}

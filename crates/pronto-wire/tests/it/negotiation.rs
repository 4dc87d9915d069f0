//! Negotiation: shared history is not sent again.

use pronto_wire::fetch::{Nothing, Request};
use pronto_wire::negotiate::Consecutive;
use pronto_wire::transport::Options;

use test_support::skip;

use crate::servers::{Daemon, Login, Web};
use crate::support::{Local, Scene, VERSIONS, connect, fetch, find, git, refs};

#[test]
fn only_what_is_new_is_sent() {
    let scene = Scene::new("sha1");
    let daemon = Daemon::start(scene.path());
    let Some(web) = Web::start(scene.path(), Login::Open) else {
        skip!("lighttpd is not installed");
    };
    let urls = [
        format!("file://{}", scene.origin().display()),
        daemon.url("origin"),
        web.url("origin"),
    ];
    let copy = scene.path().join("copy");
    git(
        scene.path(),
        &["clone", "-q", "--bare", "--no-local", "origin", "copy"],
    );
    for name in ["four", "five"] {
        scene.commit(name);
    }
    // Commits that the other side lacks, so that many rounds are needed.
    let tree = git(&copy, &["rev-parse", "main^{tree}"]);
    let mut tip = git(&copy, &["rev-parse", "main"]);
    for n in 0..300 {
        let message = format!("ours {n}");
        tip = git(&copy, &["commit-tree", "-p", &tip, "-m", &message, &tree]);
    }
    git(&copy, &["update-ref", "refs/heads/ours", &tip]);
    for url in urls {
        for version in VERSIONS {
            let mut options = Options::default();
            options.version = version;
            let mut client = connect(&url, &options).expect("a connection");
            let head = find(&refs(&mut client), "refs/heads/main")
                .id
                .expect("born");
            let request = Request {
                wants: vec![head],
                thin_pack: true,
                ..Request::default()
            };
            let mut negotiator = Consecutive::new(Local::of(&copy));
            let id = pronto_hash::ObjectId::from_hex(tip.as_bytes()).expect("an id");
            negotiator.add_tip(&id).expect("it is here");
            let into = scene.path().join("into");
            git(scene.path(), &["clone", "-q", "--bare", "copy", "into"]);
            let before = packed(&into);
            fetch(&mut client, &request, &mut negotiator, &into);
            client.close().expect("the server ends well");
            // Two commits, two trees, two blobs: shared objects were not sent. A base may be
            // appended to a thin pack.
            let new = packed(&into) - before;
            assert!((6..=8).contains(&new), "{url} {version:?}: {new} objects");
            git(&into, &["update-ref", "refs/heads/new", &head.to_string()]);
            git(&into, &["fsck", "--full"]);
            std::fs::remove_dir_all(&into).expect("a folder of ours");
        }
    }
}

fn packed(repository: &std::path::Path) -> usize {
    let counts = git(repository, &["count-objects", "-v"]);
    let line = counts
        .lines()
        .find_map(|line| line.strip_prefix("in-pack: "));
    line.and_then(|count| count.parse().ok())
        .expect("git counts")
}

#[test]
fn a_refused_want_is_a_remote_error() {
    let scene = Scene::new("sha1");
    let url = scene.origin();
    let url = url.to_str().expect("a name in ASCII");
    let request = Request {
        wants: vec![
            pronto_hash::ObjectId::from_hex(b"1717171717171717171717171717171717171717")
                .expect("an id"),
        ],
        ..Request::default()
    };
    for version in VERSIONS {
        let mut options = Options::default();
        options.version = version;
        let mut client = connect(url, &options).expect("a connection");
        let error = client.fetch(&request, &mut Nothing, &()).err();
        let error = error.expect("there is no such object").to_string();
        assert!(error.contains("not our ref 1717"), "{version:?}: {error}");
    }
}

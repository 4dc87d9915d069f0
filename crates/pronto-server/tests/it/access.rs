//! Tests of tokens, roles, and names of repositories.

use crate::stored::{Place, in_both_places};
use crate::support::{Server, Site, status};

in_both_places!(
    without_a_token_nothing_is_shown,
    a_user_without_a_role_learns_nothing,
    a_reader_cannot_push,
    names_do_not_lead_out_of_the_root,
    guesses_of_tokens_are_stopped,
);

const CONFIG: &str = r#"
[[grant]]
repository = "team/*"
users = ["alice", "bob"]
role = "read"
[[grant]]
repository = "team/*"
users = ["alice"]
role = "write"
"#;

const REFS: &str = "/team/a/info/refs?service=git-upload-pack";

fn without_a_token_nothing_is_shown(place: Place) {
    let site = Site::new(place);
    let token = site.user("alice");
    site.user("carol");
    let server = Server::start(&site, site.config(CONFIG));
    for path in [REFS, "/team/none/info/refs?service=git-upload-pack"] {
        let answer = server.request("GET", path, "", "");
        assert_eq!(status(&answer), 401, "{answer}");
        assert!(answer.contains("www-authenticate: Basic"), "{answer}");
    }
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    assert_eq!(
        status(&server.request("GET", REFS, &bearer(&token), "")),
        200
    );
    assert_eq!(
        status(&server.request("GET", REFS, &bearer("wrong"), "")),
        401
    );
    let clone =
        |url: &str, target: &str| site.try_git(site.scratch.path(), &["clone", "-q", url, target]);
    assert!(
        clone(&server.url_of("alice", &token, "team/a"), "good")
            .status
            .success()
    );
    // The name must fit the token.
    assert!(
        !clone(&server.url_of("bob", &token, "team/a"), "bad")
            .status
            .success()
    );
    assert!(!clone(&server.url("team/a"), "bad").status.success());
}

fn a_user_without_a_role_learns_nothing(place: Place) {
    let site = Site::new(place);
    let token = site.user("carol");
    let server = Server::start(&site, site.config(CONFIG));
    let header = format!("authorization: Bearer {token}\r\n");
    let body = |path: &str| {
        let answer = server.request("GET", path, &header, "");
        assert_eq!(status(&answer), 404, "{answer}");
        let body = answer.split("\r\n\r\n").nth(1).expect("a body").to_owned();
        body.split(" (request").next().expect("text").to_owned()
    };
    let there = body(REFS);
    let missing = body("/team/z/info/refs?service=git-upload-pack");
    assert_eq!(there.replace("team/a", "X"), missing.replace("team/z", "X"));
}

fn a_reader_cannot_push(place: Place) {
    let site = Site::new(place);
    let token = site.user("bob");
    let server = Server::start(&site, site.config(CONFIG));
    let url = server.url_of("bob", &token, "team/a");
    let output = site.try_git(&site.path("work"), &["push", &url, "main:x"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("403"), "{text}");
    assert!(
        text.contains("you may not push to this repository"),
        "{text}"
    );
}

fn names_do_not_lead_out_of_the_root(place: Place) {
    let site = Site::new(place);
    std::fs::create_dir(site.path("outside")).expect("a directory");
    site.git(
        &site.path("outside"),
        &["init", "-q", "--bare", "secret.git"],
    );
    std::os::unix::fs::symlink(site.path("outside"), site.path("root/link")).expect("a link");
    let server = Server::start(&site, site.config(""));
    for path in [
        "../outside/secret",
        "%2e%2e/outside/secret",
        "team/../../outside/secret",
        "team/%2e%2e%2f%2e%2e%2foutside/secret",
        "link/secret",
        "/etc",
        "team//a",
        "team/a.git/.git",
        "team/a.git/refs",
        "team/a%00",
        "team/a%0a",
        "team\\a",
        ".",
    ] {
        let path = format!("/{path}/info/refs?service=git-upload-pack");
        let answer = server.request("GET", &path, "", "");
        assert!(matches!(status(&answer), 400 | 404), "{path}: {answer}");
    }
}

fn guesses_of_tokens_are_stopped(place: Place) {
    let site = Site::new(place);
    let token = site.user("alice");
    let text = format!("{CONFIG}\n[limits]\nfailures_per_minute = 3");
    let server = Server::start(&site, site.config(&text));
    let get = |token: &str| {
        let header = format!("authorization: Bearer {token}\r\n");
        server.request("GET", REFS, &header, "")
    };
    for _ in 0..3 {
        assert_eq!(status(&get("wrong")), 401);
    }
    let answer = get(&token);
    assert_eq!(status(&answer), 429, "{answer}");
    assert!(answer.contains("retry-after: "), "{answer}");
    assert_eq!(status(&server.request("GET", "/healthz", "", "")), 200);
}

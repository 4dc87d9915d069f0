//! Tests of pushes, and of rules for refs.

use crate::stored::{Place, in_a_directory_only, in_both_places};
use crate::support::{Server, Site};

in_a_directory_only!(
    /// The hooks of a store are those of the server. A test of `pronto serve` has them judge signed pushes.
    signed_pushes_are_judged_and_taken,
);

in_both_places!(
    commits_are_pushed,
    a_large_push_comes_in_chunks,
    rules_for_refs_hold,
    a_refused_push_with_a_large_pack_gets_its_answer,
    a_push_creates_a_repository_where_that_is_allowed,
);

const CONFIG: &str = r#"
create_on_push = true
[[grant]]
repository = "**"
users = ["alice", "bob"]
role = "write"
[[grant]]
repository = "own/*"
users = ["alice"]
role = "admin"
[[rule]]
repository = "**"
refs = "refs/heads/main"
users = ["alice"]
force = false
delete = false
[[rule]]
repository = "**"
refs = "refs/tags/**"
create = false
"#;

struct Pushing {
    site: Site,
    server: Server,
    alice: String,
    bob: String,
}

impl Pushing {
    fn new(place: Place) -> Self {
        let site = Site::new(place);
        let (alice, bob) = (site.user("alice"), site.user("bob"));
        let server = Server::start(&site, site.config(CONFIG));
        Pushing {
            site,
            server,
            alice,
            bob,
        }
    }

    /// Pushes as a user. Returns the output of git, as an error if the push failed.
    fn push(&self, user: &str, name: &str, arguments: &[&str]) -> Result<String, String> {
        let token = if user == "alice" {
            &self.alice
        } else {
            &self.bob
        };
        let url = self.server.url_of(user, token, name);
        let arguments = [&["push", &url][..], arguments].concat();
        let output = self.site.try_git(&self.site.path("work"), &arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(text),
            false => Err(text),
        }
    }
}

fn commits_are_pushed(place: Place) {
    let pushing = Pushing::new(place);
    let (site, work) = (&pushing.site, pushing.site.path("work"));
    site.git(&work, &["commit", "-q", "--allow-empty", "-m", "more"]);
    pushing
        .push("alice", "team/a", &["main", "main:topic"])
        .expect("allowed");
    let bare = site.served("team/a");
    let head = |directory, name| site.git(directory, &["rev-parse", name]);
    assert_eq!(head(&bare, "topic"), head(&work, "main"));
    site.git(&bare, &["fsck", "--strict"]);
    pushing.push("bob", "team/a", &[":topic"]).expect("allowed");
}

fn a_large_push_comes_in_chunks(place: Place) {
    let pushing = Pushing::new(place);
    let work = pushing.site.path("work");
    // The data is larger than the buffer of git for one request, and does not compress.
    let mut random = test_support::Random::new(1);
    let noise = random.bytes(3 << 20);
    std::fs::write(work.join("noise"), noise).expect("a file");
    pushing.site.git(&work, &["add", "."]);
    pushing.site.git(&work, &["commit", "-q", "-m", "noise"]);
    pushing.push("alice", "team/a", &["main"]).expect("allowed");
}

fn rules_for_refs_hold(place: Place) {
    let pushing = Pushing::new(place);
    let work = pushing.site.path("work");
    let refused = |user, arguments: &[&str], reason: &str| {
        let text = pushing
            .push(user, "team/a", arguments)
            .expect_err("refused");
        assert!(text.contains(reason), "{text}");
    };
    refused("bob", &["HEAD~:main", "-f"], "you may not push to this ref");
    refused("alice", &[":main"], "you may not delete this ref");
    refused(
        "alice",
        &["HEAD:refs/tags/new"],
        "you may not create this ref",
    );
    let rule = "you may not push a non-fast-forward to this ref: rule for 'refs/heads/main' in '";
    refused("alice", &["-f", "HEAD~:main"], rule);
    pushing
        .push("alice", "team/a", &["HEAD:refs/heads/x"])
        .expect("allowed");
    pushing
        .push("bob", "team/a", &["-f", "HEAD~:refs/heads/x"])
        .expect("no rule");
    let bare = pushing.site.served("team/a");
    let head = |directory, name| pushing.site.git(directory, &["rev-parse", name]);
    assert_eq!(head(&bare, "main"), head(&work, "main"));
}

fn a_refused_push_with_a_large_pack_gets_its_answer(place: Place) {
    let pushing = Pushing::new(place);
    let work = pushing.site.path("work");
    let mut random = test_support::Random::new(2);
    let noise = random.bytes(4 << 20);
    std::fs::write(work.join("noise"), noise).expect("a file");
    pushing.site.git(&work, &["add", "."]);
    pushing.site.git(&work, &["commit", "-q", "-m", "noise"]);
    let text = pushing
        .push("bob", "team/a", &["main"])
        .expect_err("refused");
    assert!(text.contains("you may not push to this ref"), "{text}");
    // The rule of the second push needs its objects.
    let site = &pushing.site;
    site.git(&work, &["reset", "-q", "--soft", "HEAD~2"]);
    site.git(&work, &["commit", "-q", "-m", "other noise"]);
    let text = pushing
        .push("alice", "team/a", &["+main"])
        .expect_err("refused");
    assert!(
        text.contains("you may not push a non-fast-forward to this ref"),
        "{text}"
    );
    // When the server, which continues to run, has responded, it has kept no objects of the push.
    let left = site.leftovers("team/a");
    assert!(left.is_empty(), "{left:?}");
}

fn a_push_creates_a_repository_where_that_is_allowed(place: Place) {
    let pushing = Pushing::new(place);
    pushing
        .push("alice", "own/new", &["main"])
        .expect("allowed");
    let made = pushing.site.served("own/new");
    pushing.site.git(&made, &["rev-parse", "main"]);
    pushing
        .push("bob", "own/other", &["main"])
        .expect_err("the role is too low");
    pushing
        .push("alice", "team/new", &["main"])
        .expect_err("the role is too low");
    pushing
        .push("alice", "own/a b", &["main"])
        .expect_err("the name is not plain");
    assert!(!pushing.site.has("own/other"));
}

fn signed_pushes_are_judged_and_taken() {
    let pushing = Pushing::new(Place::Directory);
    let site = &pushing.site;
    let key = site.path("key");
    if !test_support::keys::make_ssh_key(&key) {
        test_support::skip!("ssh-keygen is not installed");
    }
    let repository = site.path("root/team/a.git");
    site.git(&repository, &["config", "receive.certNonceSeed", "seed"]);
    site.git(&repository, &["config", "receive.certNonceSlop", "600"]);
    let status = site.path("status");
    let hook = format!(
        "#!/bin/sh\necho \"$GIT_PUSH_CERT_NONCE_STATUS\" >'{}'\n",
        status.display()
    );
    test_support::write_program(&repository.join("hooks/post-receive"), &hook);
    let work = site.path("work");
    site.git(&work, &["config", "gpg.format", "ssh"]);
    let key = key.to_str().expect("a name in ASCII");
    site.git(&work, &["config", "user.signingKey", key]);
    site.git(&work, &["commit", "-q", "--allow-empty", "-m", "signed"]);
    let refused = pushing.push("bob", "team/a", &["--signed", "main"]);
    let text = refused.expect_err("main is for alice");
    assert!(text.contains("you may not push to this ref"), "{text}");
    pushing
        .push("alice", "team/a", &["--signed", "main"])
        .expect("alice may push");
    let status = std::fs::read_to_string(status);
    assert_eq!(status.expect("the hook ran").trim(), "OK");
    let tip = |directory: &std::path::Path| site.git(directory, &["rev-parse", "main"]);
    assert_eq!(tip(&site.served("team/a")), tip(&work));
    // The rules apply to signed pushes, too.
    site.git(&work, &["reset", "-q", "--hard", "HEAD~2"]);
    pushing
        .push("alice", "team/a", &["--signed", "--force", "main"])
        .expect_err("main only moves forward");
}

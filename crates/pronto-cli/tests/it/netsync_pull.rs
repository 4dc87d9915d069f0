//! `pull --netsync`: fetches the history of a peer, which git then merges into the current branch.

use std::process::Output;

use super::netsync::Pair;
use crate::support::{process, pronto_path, stderr, stdout};

fn pull(pair: &Pair, arguments: &[&str]) -> Output {
    process(pronto_path())
        .args(["pull", "--netsync"])
        .args(arguments)
        .current_dir(pair.path("one"))
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
        .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
        .output()
        .expect("it can be started")
}

#[test]
fn a_branch_moves_forward_to_that_of_a_peer() {
    let pair = Pair::new();
    pair.commit("other", "new", "new\n");
    let output = pull(&pair, &["--ff-only", "../other"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(
        said.starts_with(
            "From other\n * new      main -> other/main\nmain is behind other/main\nUpdating "
        ),
        "{said}"
    );
    assert!(said.contains("Fast-forward\n new | 1 +\n"), "{said}");
    let tips = ["one", "other"].map(|place| pair.git(place, &["rev-parse", "main"]));
    assert_eq!(tips[0], tips[1]);
    assert_eq!(pair.git("one", &["status", "--porcelain"]), "");
    // Nothing was sent to the peer.
    assert_eq!(pair.git("other", &["for-each-ref", "refs/remotes"]), "");
}

#[test]
fn diverged_branches_are_merged_or_rebased_as_in_git() {
    let pair = Pair::new();
    pair.commit("one", "mine", "mine\n");
    pair.commit("other", "new", "new\n");
    let undecided = pull(&pair, &["-q", "../other"]);
    assert_eq!(undecided.status.code(), Some(128));
    assert!(stderr(&undecided).contains("Need to specify how to reconcile divergent branches."));
    let merged = pull(
        &pair,
        &["--no-rebase", "--name", "desk", "../other", "main"],
    );
    assert!(merged.status.success(), "{}", stderr(&merged));
    let title = pair.git("one", &["log", "-1", "--format=%s"]);
    assert_eq!(title, "Merge remote-tracking branch 'desk/main'\n");
    pair.git("one", &["reset", "-q", "--hard", "HEAD~1"]);
    let rebased = pull(&pair, &["-q", "--rebase", "../other"]);
    assert!(rebased.status.success(), "{}", stderr(&rebased));
    assert_eq!(stdout(&rebased), "");
    let titles = pair.git("one", &["log", "--format=%s"]);
    assert_eq!(titles, "mine\nnew\nbase\n");
}

#[test]
fn impossible_pulls_are_reported() {
    let pair = Pair::new();
    let absent = pull(&pair, &["../other", "absent"]);
    assert_eq!(absent.status.code(), Some(128));
    assert_eq!(
        stderr(&absent),
        "fatal: peer 'other' has no branch 'absent'\n"
    );
    pair.git("one", &["checkout", "-q", "--detach"]);
    let detached = pull(&pair, &["../other"]);
    assert_eq!(
        stderr(&detached),
        "fatal: HEAD is detached, so there is no default branch to pull\n\
         hint: name the branch to pull: pronto pull --netsync ../other BRANCH\n"
    );
    assert_eq!(pull(&pair, &[]).status.code(), Some(129));
    // Without the option, git runs the whole command.
    let plain = process(pronto_path())
        .args(["pull", "-q", "--ff-only", "../other", "main"])
        .current_dir(pair.path("one"))
        .output()
        .expect("it can be started");
    assert!(plain.status.success(), "{}", stderr(&plain));
}

//! Pushes that are accepted, and pushes that are refused for each reason.

use std::path::Path;

use crate::client::{Operation, Outcome};
use crate::repositories::{git, pushed_history};
use crate::scenario::Scenario;
use crate::stage::Side;
use crate::state::State;

/// The changes that both servers accept, one after another.
const ACCEPTED: [(&str, &[&str]); 3] = [
    (
        "push of a commit, a branch and a tag",
        &[
            "refs/heads/main:refs/heads/main",
            "refs/heads/new:refs/heads/new",
            "refs/tags/pushed:refs/tags/pushed",
        ],
    ),
    ("push of a deletion", &[":refs/heads/many/4"]),
    ("forced push", &["+refs/heads/rewritten:refs/heads/new"]),
];

/// The changes that are refused, and words of which the client must print at least one.
const REFUSED: [(&str, &[&str], &[&str]); 3] = [
    (
        "forced push to a protected branch",
        &["+refs/heads/rewritten:refs/heads/main"],
        &["main"],
    ),
    (
        "deletion of a protected branch",
        &[":refs/heads/main"],
        &["main"],
    ),
    (
        "push that a hook refuses",
        &["refs/heads/main:refs/heads/hooked"],
        &["no branch may be named hooked", "pre-receive hook declined"],
    ),
];

/// Runs all pushes from the clones that exist.
pub(crate) fn run(scenario: &mut Scenario<'_>) {
    let places = Side::BOTH.map(|side| scenario.place(side, "clone"));
    if !places.iter().all(|place| place.exists()) {
        return;
    }
    for place in &places {
        prepare(place);
    }
    for (label, refspecs) in ACCEPTED {
        let [ours, theirs] = Side::BOTH.map(|side| {
            let login = scenario.stage.me(side);
            let place = scenario.place(side, "clone");
            scenario
                .client
                .run(Operation::Push(refspecs), &place, &login)
        });
        if scenario.judge(label, &ours, &theirs) {
            compare(scenario, label);
        }
    }
    if scenario.client.can_push() {
        refusals(scenario);
    }
}

/// Creates the commits and the tag to push.
fn prepare(place: &Path) {
    git(
        place,
        &["fast-import", "--quiet", "--force"],
        &pushed_history(),
    );
    git(
        place,
        &["update-ref", "refs/heads/main", "refs/heads/pushed"],
        "",
    );
    git(
        place,
        &["tag", "-a", "-m", "pushed", "pushed", "refs/heads/pushed"],
        "",
    );
}

/// Compares the repositories of both servers.
fn compare(scenario: &mut Scenario<'_>, label: &str) {
    let [ours, theirs] = Side::BOTH.map(|side| State::read(&scenario.served(side)));
    match ours.and_then(|ours| ours.compare(&theirs?)) {
        Ok(()) => scenario.note(label, "ok", ""),
        Err(problem) => scenario.wrong(label, &problem),
    }
}

fn refusals(scenario: &mut Scenario<'_>) {
    let before = State::read(&scenario.served(Side::Pronto));
    for (label, refspecs, words) in REFUSED {
        let login = scenario.stage.me(Side::Pronto);
        refuse(scenario, label, Operation::Push(refspecs), &login, words);
    }
    let push = Operation::Push(&["refs/heads/new:refs/heads/another"]);
    let guest = scenario.stage.guest();
    refuse(
        scenario,
        "push by a reader",
        push,
        &guest,
        &["may not", "403", "forbidden", "not permitted"],
    );
    let stranger = scenario.stage.stranger();
    let words = [
        "401",
        "authentic",
        "denied",
        "not authorized",
        "credentials",
    ];
    refuse(
        scenario,
        "push with a wrong token or key",
        push,
        &stranger,
        &words,
    );
    let after = State::read(&scenario.served(Side::Pronto));
    match before.and_then(|before| before.compare(&after?)) {
        Ok(()) => {}
        Err(problem) => scenario.wrong("refused pushes", &problem),
    }
}

/// Pushes changes that must be refused.
fn refuse(
    scenario: &mut Scenario<'_>,
    label: &str,
    push: Operation<'_>,
    login: &crate::stage::Login<'_>,
    words: &[&str],
) {
    let place = scenario.place(Side::Pronto, "clone");
    match scenario.client.run(push, &place, login) {
        Outcome::Failed(text) => scenario.readable(label, &text, words),
        outcome => scenario.wrong(label, &format!("it does not fail: {outcome:?}")),
    }
}

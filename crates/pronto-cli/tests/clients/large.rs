//! Clones of a large bare repository, which `PRONTO_TEST_CLIENTS_LARGE` names.

use std::path::{Path, PathBuf};

use crate::client::{Client, Operation};
use crate::scenario::Scenario;
use crate::stage::{Side, Stage, Transport};
use crate::state::run as git;

/// Returns the repository to clone, if the variable is set.
pub(crate) fn requested() -> Option<PathBuf> {
    std::env::var_os("PRONTO_TEST_CLIENTS_LARGE").map(PathBuf::from)
}

/// Clones `directory` from both servers, and compares the clones.
pub(crate) fn run(
    stage: &Stage,
    client: &Client,
    transport: Transport,
    directory: &Path,
) -> Result<(), String> {
    let mut scenario = Scenario::new(stage, client, transport);
    let outcomes = Side::BOTH.map(|side| {
        let served = scenario.repository(side);
        let parent = served.parent().expect("it has one");
        let source = directory.to_str().expect("text");
        let name = served.to_str().expect("text");
        git(
            parent,
            &["clone", "-q", "--mirror", "--shared", source, name],
        )
        .expect("a copy");
        stage.publish(side, transport, &scenario.name);
        let url = stage.url(side, transport, &scenario.name);
        let place = scenario.place(side, "large");
        client.run(Operation::Clone { url: &url }, &place, &stage.me(side))
    });
    let label = "clone of a large repository";
    if scenario.judge(label, &outcomes[0], &outcomes[1]) {
        match Side::BOTH.map(|side| summary(&scenario.place(side, "large"))) {
            [Ok(ours), Ok(theirs)] if ours == theirs => scenario.note(label, "ok", &ours),
            [Ok(ours), Ok(theirs)] => {
                scenario.wrong(label, &format!("pronto {ours}, git {theirs}"))
            }
            [ours, theirs] => scenario.wrong(label, &format!("{ours:?} {theirs:?}")),
        }
    }
    for side in Side::BOTH {
        let _ = std::fs::remove_dir_all(scenario.place(side, "large"));
    }
    scenario.end()
}

/// Checks that all objects are present, and returns the numbers of refs and reachable objects.
fn summary(place: &Path) -> Result<String, String> {
    let lines = |arguments: &[&str]| {
        let output = git(place, arguments)?;
        Ok::<_, String>(output.stdout.split(|&byte| byte == b'\n').count() - 1)
    };
    let refs = lines(&["for-each-ref"])?;
    let objects = lines(&["rev-list", "--objects", "--all", "--no-object-names"])?;
    git(
        place,
        &[
            "fsck",
            "--connectivity-only",
            "--no-progress",
            "--no-dangling",
        ],
    )?;
    Ok(format!("{refs} refs, {objects} objects"))
}

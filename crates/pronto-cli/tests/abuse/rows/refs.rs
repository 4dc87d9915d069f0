//! Hostile ref names in pushes.

use super::Table;
use crate::stage::{Stage, Verdict, require};
use crate::wire::{MISSING, NULL, changes, changes_with, create, no_pack};

pub(super) fn table() -> Table {
    let mut table = Table::new("refs");
    names(&mut table);
    clashes(&mut table);
    changes_of(&mut table);
    table
}

/// Pushes refs of these names, and requires that nothing is made.
fn refuses_names(stage: &mut Stage, names: &[&str]) -> Verdict {
    for name in names {
        let commands = changes([create(&stage.site.ids.first, name)]);
        let push = |stage: &mut Stage| stage.push("mallory", "own/m", &commands, &no_pack());
        let answer = stage.changing_nothing("own/m", push)?;
        let text = answer.text();
        require(
            !text.contains("ok refs/") && !text.contains("ok HEAD"),
            || format!("{name:?}: {text}"),
        )?;
        let is_reported = text.contains("ng ") || answer.status >= 400;
        require(is_reported, || format!("{name:?}: {answer:?}"))?;
    }
    Ok(())
}

fn names(table: &mut Table) {
    for (name, names) in [
        (
            "parent",
            &[
                "refs/../config",
                "refs/heads/../../config",
                "refs/heads/..",
                "../refs/heads/x",
                "refs/heads/../x",
            ][..],
        ),
        (
            "outside-of-refs",
            &[
                "HEAD",
                "config",
                "objects/x",
                "FETCH_HEAD",
                "hooks/pre-receive",
                "/etc/passwd",
                "ORIG_HEAD",
            ],
        ),
        (
            "lock",
            &[
                "refs/heads/x.lock",
                "refs/heads/x.lock/y",
                "refs/heads/main.lock",
            ],
        ),
        (
            "dots",
            &[
                "refs/heads/.x",
                "refs/heads/x.",
                "refs/heads/x..y",
                "refs/heads/.",
                "refs/./heads/x",
            ],
        ),
        (
            "empty-parts",
            &[
                "refs/",
                "refs",
                "refs/heads/",
                "refs//heads/x",
                "refs/heads//x",
                "/refs/heads/x",
                "",
            ],
        ),
        (
            "characters",
            &[
                "refs/heads/x y",
                "refs/heads/x~",
                "refs/heads/x^",
                "refs/heads/x:y",
                "refs/heads/x?",
                "refs/heads/*",
                "refs/heads/[",
                "refs/heads/x\\y",
                "refs/heads/@{",
                "refs/heads/x@{1}",
            ],
        ),
        (
            "controls",
            &[
                "refs/heads/x\ny",
                "refs/heads/x\x1b[2J",
                "refs/heads/x\x7f",
                "refs/heads/x\ty",
                "refs/heads/x\r",
            ],
        ),
        ("one-level", &["refs/x", "refs/stash2"]),
        (
            "hidden",
            &["refs/hidden/x", "refs/hidden", "refs/hidden/secret"],
        ),
    ] {
        table.row(name, move |stage| {
            stage.configure("own/m", "transfer.hideRefs", "refs/hidden");
            refuses_names(stage, names)
        });
    }
    table.row("nul-in-a-name", |stage| {
        // The name ends where the features begin.
        let commands = changes_with(
            "report-status",
            [format!(
                "{}\0x",
                create(&stage.site.ids.first, "refs/heads/../x")
            )],
        );
        let push = |stage: &mut Stage| stage.push("mallory", "own/m", &commands, &no_pack());
        let answer = stage.changing_nothing("own/m", push)?;
        require(!answer.text().contains("ok refs/"), || {
            format!("{answer:?}")
        })
    });
    table.row("long", |stage| {
        let long = [
            format!("refs/heads/{}", "x".repeat(300)),
            format!("refs/heads/{}", "x".repeat(60_000)),
            format!("refs/heads{}", "/x".repeat(3000)),
            format!("refs/heads{}", "/x".repeat(30_000)),
        ];
        // Tables of refs hold names that files cannot have.
        let is_allowed = usize::from(stage.site.is_store());
        for name in &long[is_allowed..] {
            refuses_names(stage, &[name])?;
        }
        Ok(())
    });
    table.row("bytes-that-are-no-text", |stage| {
        stage.allow("own/m", "refs/heads/\u{fffd}");
        let mut commands = changes([create(&stage.site.ids.first, "refs/heads/?")]);
        let at = commands
            .iter()
            .position(|byte| *byte == b'?')
            .expect("it is there");
        commands[at] = 0xff;
        stage.server();
        let before = stage.refs("own/m");
        stage.push("mallory", "own/m", &commands, &no_pack())?;
        let delete = commands_to_delete(&commands, &stage.site.ids.first);
        stage.push("mallory", "own/m", &delete, b"")?;
        let now = stage.refs("own/m");
        require(now == before, || format!("refs are {now}, not {before}"))
    });
}

/// Returns commands that delete what `commands` create.
fn commands_to_delete(commands: &[u8], id: &str) -> Vec<u8> {
    let (digits, rest) = commands.split_at(4);
    let after = format!("{NULL} {id}").len();
    [digits, format!("{id} {NULL}").as_bytes(), &rest[after..]].concat()
}

fn clashes(table: &mut Table) {
    table.row("file-and-directory", |stage| {
        let id = stage.site.ids.first.clone();
        stage.allow("own/m", "refs/heads/x");
        stage.allow("own/m", "refs/heads/x/y");
        for features in ["report-status", "report-status atomic"] {
            let commands = changes_with(
                features,
                [create(&id, "refs/heads/x"), create(&id, "refs/heads/x/y")],
            );
            let answer = stage.push("mallory", "own/m", &commands, &no_pack())?;
            require(answer.text().contains("ng refs/heads/x"), || answer.text())?;
        }
        let refs = stage.refs("own/m");
        let made = refs.lines().filter(|line| line.starts_with("refs/heads/x"));
        require(made.count() <= 1, || refs.clone())
    });
    table.row("below-a-branch-that-is-there", |stage| {
        refuses_names(
            stage,
            &["refs/heads/main/x", "refs/heads/main/x/y", "refs/tags/v1/x"],
        )
    });
    table.row("one-ref-twice", |stage| {
        let (first, second) = (stage.site.ids.first.clone(), stage.site.ids.second.clone());
        stage.allow("own/m", "refs/heads/twice");
        for features in ["report-status", "report-status atomic"] {
            let commands = changes_with(
                features,
                [
                    create(&first, "refs/heads/twice"),
                    create(&second, "refs/heads/twice"),
                ],
            );
            let answer = stage.push("mallory", "own/m", &commands, &no_pack())?;
            require(answer.text().contains("ng refs/heads/twice"), || {
                answer.text()
            })?;
        }
        let refs = stage.refs("own/m");
        let made = refs
            .lines()
            .find(|line| line.starts_with("refs/heads/twice"));
        // A store takes the first change of a push that is not atomic, and says so.
        let is_right = match made {
            None => !stage.site.is_store(),
            Some(line) => stage.site.is_store() && line.contains(&first),
        };
        require(is_right, || refs.clone())
    });
    table.row("through-a-symbolic-ref", |stage| {
        // Its target is not hers.
        let at = stage.repository("team/a");
        stage.site.git(
            &at,
            &["symbolic-ref", "refs/heads/alias", "refs/heads/main"],
        );
        stage.allow("team/a", "refs/heads/alias");
        stage.set("[[grant]]\nrepository = \"team/a\"\nusers = [\"mallory\"]\nrole = \"write\"");
        let (first, second) = (stage.site.ids.first.clone(), stage.site.ids.second.clone());
        let commands = changes([format!("{second} {first} refs/heads/alias")]);
        let push = |stage: &mut Stage| stage.push("mallory", "team/a", &commands, &no_pack());
        let answer = stage.changing_nothing("team/a", push)?;
        require(!answer.text().contains("ok refs/"), || answer.text())?;
        let (refs, alias) = (stage.refs("team/a"), "refs/heads/alias ");
        let line = refs.lines().find(|line| line.starts_with(alias));
        let is_kept = line.is_some_and(|line| line.ends_with(" refs/heads/main"));
        require(is_kept, || refs.clone())
    });
    table.row_on_disk(
        "symbolic-ref-out-of-refs",
        "a store has no files of refs",
        |stage| {
            let at = stage.repository("own/m").join("refs/heads/odd");
            std::fs::write(&at, "ref: ../../outside/s.git/refs/heads/main\n").expect("a file");
            let id = stage.site.ids.first.clone();
            let commands = changes([create(&id, "refs/heads/odd")]);
            let answer = stage.push("mallory", "own/m", &commands, &no_pack())?;
            std::fs::remove_file(at).expect("it is there");
            require(!answer.text().contains("ok refs/"), || answer.text())
        },
    );
}

fn changes_of(table: &mut Table) {
    for (name, old, new, refs, reason) in [
        (
            "wrong-old-value",
            "first",
            "second",
            "refs/heads/main",
            "ng refs/heads/main",
        ),
        (
            "old-value-that-is-not-there",
            "missing",
            "second",
            "refs/heads/main",
            "ng refs/heads/main",
        ),
        (
            "create-what-is-there",
            "null",
            "second",
            "refs/heads/main",
            "ng refs/heads/main",
        ),
        (
            "delete-what-is-not-there",
            "first",
            "null",
            "refs/heads/none",
            "refs/heads/none",
        ),
        (
            "delete-the-current-branch",
            "second",
            "null",
            "refs/heads/main",
            "ng refs/heads/main",
        ),
        (
            "delete-outside",
            "second",
            "null",
            "refs/../../../outside/canary",
            "ng ",
        ),
        ("delete-a-file", "second", "null", "config", "ng "),
        (
            "from-nothing-to-nothing",
            "null",
            "null",
            "refs/heads/none",
            "",
        ),
        (
            "new-value-that-is-not-there",
            "null",
            "missing",
            "refs/heads/none",
            "ng refs/heads/none",
        ),
    ] {
        table.row(name, move |stage| {
            let id = |word: &str| match word {
                "first" => stage.site.ids.first.clone(),
                "second" => stage.site.ids.second.clone(),
                "null" => NULL.to_owned(),
                _ => MISSING.to_owned(),
            };
            let commands = changes([format!("{} {} {refs}", id(old), id(new))]);
            let pack = if new == "null" { Vec::new() } else { no_pack() };
            let push = |stage: &mut Stage| stage.push("mallory", "own/m", &commands, &pack);
            let answer = stage.changing_nothing("own/m", push)?;
            require(answer.text().contains(reason), || {
                format!("{answer:?} {}", answer.text())
            })
        });
    }
    table.row("branch-that-is-no-commit", |stage| {
        let at = stage.repository("own/m");
        let blob = stage.site.git(&at, &["rev-parse", "main:file"]);
        refuses_names_of(stage, &blob, "refs/heads/blob")
    });
}

/// Pushes a ref with a value that it must not have, and requires a refusal.
fn refuses_names_of(stage: &mut Stage, id: &str, name: &str) -> Verdict {
    let commands = changes([create(id, name)]);
    stage.refuses_push("mallory", "own/m", &commands, &no_pack(), name)
}

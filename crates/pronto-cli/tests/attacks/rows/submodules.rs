//! Hostile submodules, which Git's own `submodule` clones.

use super::Table;
use crate::attack::{Attack, Scene, command};
use crate::objects::{FILE, LINK, SUBMODULE, entry, evil};

pub(super) fn table() -> Table {
    let mut table = Table::new("submodules");
    for (name, module) in [
        (
            "url-is-an-option",
            "path = sub\n\turl = --upload-pack=PAYLOAD",
        ),
        ("url-is-a-short-option", "path = sub\n\turl = -u./payload"),
        (
            "url-is-a-quoted-option",
            "path = sub\n\turl = \"-u PAYLOAD\"",
        ),
        ("url-is-a-command", "path = sub\n\turl = ext::PAYLOAD"),
        ("url-is-local", "path = sub\n\turl = ROOT/project"),
        (
            "url-is-local-file",
            "path = sub\n\turl = file://ROOT/project",
        ),
        ("url-is-relative", "path = sub\n\turl = ../../../../project"),
        (
            "url-is-of-ssh",
            "path = sub\n\turl = ssh://-oProxyCommand=PAYLOAD/x",
        ),
        (
            "url-has-a-newline",
            "path = sub\n\turl = \"http://127.0.0.1:1/x\\nhost=x\"",
        ),
        (
            "url-has-an-encoded-newline",
            "path = sub\n\turl = http://127.0.0.1:1/%0ahost=x",
        ),
        ("url-has-no-host", "path = sub\n\turl = http:///x"),
        ("url-with-dots-and-colon", "path = sub\n\turl = ../:x"),
        (
            "path-is-an-option",
            "path = --upload-pack=PAYLOAD\n\turl = ../origin",
        ),
        ("path-climbs", "path = ../../outside/sub\n\turl = ../origin"),
        (
            "path-is-absolute",
            "path = ROOT/outside/sub\n\turl = ../origin",
        ),
        ("path-is-git", "path = .git/modules\n\turl = ../origin"),
        (
            "path-ends-with-a-return",
            "path = \"sub\\r\"\n\turl = ../origin",
        ),
        (
            "path-ends-with-a-bare-return",
            "path = sub\r\n\turl = ../origin",
        ),
        (
            "update-is-a-command",
            "path = sub\n\turl = ../origin\n\tupdate = !PAYLOAD",
        ),
        (
            "branch-is-an-option",
            "path = sub\n\turl = ../origin\n\tbranch = --upload-pack=PAYLOAD",
        ),
        (
            "ignore-is-garbage",
            "path = sub\n\turl = ../origin\n\tignore = \u{1}",
        ),
        (
            "fetch-is-a-command",
            "path = sub\n\turl = ../origin\n\tfetchRecurseSubmodules = !x",
        ),
    ] {
        table.row(name, move |scene| recurse(scene, "sub", module));
    }
    for (name, module) in [
        ("climbs", "../../../../outside/x"),
        ("climbs-into-hooks", "../hooks"),
        ("is-dots", ".."),
        ("is-absolute", "/tmp/pronto-attack-x"),
        ("has-a-return", "x\\r"),
        ("is-in-another", "sub/hooks"),
    ] {
        table.row(format!("name-{name}"), move |scene| {
            recurse(scene, module, "path = sub\n\turl = ../origin")
        });
    }
    links(&mut table);
    reading(&mut table);
    pushing(&mut table);
    table
}

/// Clones a repository with its submodules, whose `.gitmodules` has the section `name`. The payload
/// in the repository must not run.
fn recurse(scene: &Scene, name: &str, module: &str) -> Attack {
    let payload = scene.payload("server/payload").display().to_string();
    let root = scene.root().display().to_string();
    let module = module.replace("PAYLOAD", &payload).replace("ROOT", &root);
    let text = format!("[submodule \"{name}\"]\n\t{module}\n");
    let commit = bytes(&scene.ids.first);
    evil(scene, |forge| {
        let (list, script) = (
            forge.blob(text),
            forge.blob("#!/bin/sh\ntouch ../outside/pwned\n"),
        );
        forge.tree(&[
            entry(FILE, ".gitmodules", list),
            entry("100755", "payload", script),
            entry(SUBMODULE, "sub", commit),
        ])
    });
    command(["clone", "--recurse-submodules", "../server/evil", "clone"])
        .with_fallback()
        .leaves_no("work/clone/sub/file")
        .leaves_no("work/clone/.git/hooks/HEAD")
}

fn links(table: &mut Table) {
    for (name, target) in [
        ("outside", "../../outside"),
        ("git", ".git"),
        ("modules", ".git/modules/sub"),
    ] {
        table.row(format!("path-is-a-link-to-{name}"), move |scene| {
            let text = "[submodule \"sub\"]\n\tpath = a/sub\n\turl = ../origin\n";
            let commit = bytes(&scene.ids.first);
            evil(scene, |forge| {
                let (list, link) = (forge.blob(text), forge.blob(target));
                let below = forge.tree(&[entry(SUBMODULE, "sub", commit)]);
                forge.tree(&[
                    entry(FILE, ".gitmodules", list),
                    entry(LINK, "a", link),
                    entry("40000", "a", below),
                ])
            });
            scene.configure("[protocol \"file\"]\n\tallow = always\n");
            command(["clone", "--recurse-submodules", "../server/evil", "clone"])
                .with_fallback()
                .leaves_no("outside/sub")
        });
    }
    table.row("hooks-of-a-submodule-by-case", |scene| {
        // On a file system that ignores case, `A` leads into the directory of the submodule.
        let text = "[submodule \"x/y\"]\n\tpath = A/modules/x\n\turl = ../origin\n";
        let commit = bytes(&scene.ids.first);
        evil(scene, |forge| {
            let (list, link) = (forge.blob(text), forge.blob(".git"));
            let deeper = forge.tree(&[entry(SUBMODULE, "x", commit)]);
            let below = forge.tree(&[entry("40000", "modules", deeper)]);
            forge.tree(&[
                entry(FILE, ".gitmodules", list),
                entry("40000", "A", below),
                entry(LINK, "a", link),
            ])
        });
        scene.configure("[protocol \"file\"]\n\tallow = always\n");
        command(["clone", "--recurse-submodules", "../server/evil", "clone"])
            .with_fallback()
            .leaves_no("work/clone/.git/modules/x/file")
    });
}

/// Commands that do not clone read the section.
fn reading(table: &mut Table) {
    for (name, directory) in [
        ("outside", "../../../outside/evil"),
        ("payload", "../server/evil/.git"),
    ] {
        table.row(format!("git-file-leads-{name}"), move |scene| {
            scene.repository("work/repo");
            let command_line = scene.payload_command();
            scene.git("server", &["init", "-q", "-b", "main", "evil"]);
            scene.append(
                "server/evil/.git/config",
                &format!("[core]\n\tfsmonitor = {command_line}\n"),
            );
            let entry = format!("160000,{},sub", scene.ids.first);
            scene.git(
                "work/repo",
                &["update-index", "--add", "--cacheinfo", &entry],
            );
            scene.write("work/repo/sub/.git", format!("gitdir: {directory}\n"));
            command(["status"]).within("work/repo").with_fallback()
        });
    }
    table.row("submodule-of-another-owner", |scene| {
        scene.repository("work/repo");
        let entry = format!("160000,{},sub", scene.ids.first);
        scene.git(
            "work/repo",
            &["update-index", "--add", "--cacheinfo", &entry],
        );
        scene.repository("work/repo/sub");
        command(["status"]).within("work/repo").with_fallback()
    });
}

/// A push that pushes submodules first does not run in a repository that a hostile path names.
fn pushing(table: &mut Table) {
    table.row("push-of-an-honest-one", |scene| {
        let attack = push(scene, "sub", "work/repo/sub").succeeds();
        attack.check(|scene, _| {
            let refs = scene.git("work/modules.git", &["for-each-ref", "--format=%(refname)"]);
            match refs == "refs/heads/main" {
                true => Ok(()),
                false => Err(format!("the submodule has pushed '{refs}'")),
            }
        })
    });
    table.row("push-into-a-link", |scene| {
        let attack = push(scene, "sub", "outside/module");
        scene.link("../../outside/module", "work/repo/sub");
        refused(scene, "outside/module", attack).fails()
    });
    table.row("push-into-a-link-within-the-worktree", |scene| {
        let attack = push(scene, "sub", "work/repo/module");
        scene.link("module", "work/repo/sub");
        refused(scene, "work/repo/module", attack).fails()
    });
    table.row("push-through-a-link", |scene| {
        let attack = push(scene, "a/sub", "outside/sub");
        scene.link("../../outside", "work/repo/a");
        refused(scene, "outside/sub", attack).fails()
    });
    for (name, path) in [
        ("that-climbs", "../../outside/module"),
        ("that-climbs-inside", "sub/../../../outside/module"),
    ] {
        table.row(format!("push-into-a-path-{name}"), move |scene| {
            let attack = push(scene, "sub", "outside/module");
            scene.write("work/repo/.gitmodules", listed(path));
            scene.git("work/repo", &["commit", "-qam", "climb"]);
            refused(scene, "outside/module", attack)
                .git_differs_if(name == "that-climbs", "it pushes from there")
        });
    }
    table.row("push-into-an-absolute-path", |scene| {
        let attack = push(scene, "sub", "outside/module");
        let path = scene.path("outside/module").display().to_string();
        scene.write("work/repo/.gitmodules", listed(&path));
        scene.git("work/repo", &["commit", "-qam", "absolute"]);
        refused(scene, "outside/module", attack)
    });
    table.row("push-with-a-list-that-is-a-link", |scene| {
        let attack = push(scene, "sub", "work/repo/lure");
        scene.write("outside/list", listed("lure"));
        scene.remove("work/repo/.gitmodules");
        scene.link("../../outside/list", "work/repo/.gitmodules");
        refused(scene, "work/repo/lure", attack).git_differs("it follows the link")
    });
}

/// Returns a `.gitmodules` whose submodule `sub` is at `path`.
fn listed(path: &str) -> String {
    format!("[submodule \"sub\"]\n\tpath = {path}\n\turl = ./sub\n")
}

/// Pushes `work/repo`, which records a submodule at `path`, with its submodules. The repository of the submodule is at
/// `place`, and has a commit that it would push to `work/modules.git`.
fn push(scene: &Scene, path: &str, place: &str) -> Attack {
    scene.repository("work/repo");
    scene.repository(place);
    for (name, directory) in [("target.git", "work/repo"), ("modules.git", place)] {
        scene.git("work", &["init", "-q", "--bare", "-b", "main", name]);
        let remote = scene.path("work").join(name).display().to_string();
        scene.git(directory, &["remote", "add", "origin", &remote]);
    }
    // A submodule without remote-tracking refs is not pushed.
    let known = ["update-ref", "refs/remotes/origin/old", &scene.ids.first];
    scene.git(place, &known);
    scene.git(place, &["commit", "-q", "--allow-empty", "-m", "new"]);
    let new = scene.git(place, &["rev-parse", "HEAD"]);
    scene.write("work/repo/.gitmodules", listed(path));
    scene.git("work/repo", &["add", ".gitmodules"]);
    let entry = format!("160000,{new},{path}");
    let add = ["update-index", "--add", "--cacheinfo", &entry];
    scene.git("work/repo", &add);
    scene.git("work/repo", &["commit", "-qm", "a submodule"]);
    let words = ["push", "--recurse-submodules=on-demand", "origin", "main"];
    command(words).within("work/repo")
}

/// Gives the repository at `place` a hook, which must not run, and requires that nothing is pushed from it.
fn refused(scene: &Scene, place: &str, attack: Attack) -> Attack {
    scene.payload(format!("{place}/.git/hooks/pre-push"));
    attack.leaves_no("work/modules.git/refs/heads/main")
}

/// The bytes of an id.
fn bytes(id: &str) -> [u8; 20] {
    let digits = id.as_bytes().chunks(2);
    let bytes: Vec<u8> = digits
        .map(|two| {
            let two = std::str::from_utf8(two).expect("digits");
            u8::from_str_radix(two, 16).expect("digits")
        })
        .collect();
    bytes.try_into().expect("20 bytes")
}

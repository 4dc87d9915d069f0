//! Local repositories as sources of clones and fetches, and their settings.

use super::Table;
use crate::attack::{Attack, Scene, command};
use crate::servers::git::{Offer, line};

pub(super) fn table() -> Table {
    let mut table = Table::new("local");
    links(&mut table);
    settings(&mut table);
    lazy(&mut table);
    elsewhere(&mut table);
    editing(&mut table);
    revisions(&mut table);
    table
}

/// Links among the objects of the source.
fn links(table: &mut Table) {
    for (name, options) in [
        ("local", &["--local"][..]),
        ("plain", &[]),
        ("hard-links", &["--no-hardlinks"]),
        ("shared", &["--shared"]),
    ] {
        let clone = move || -> Attack {
            let words = [&["clone"], options, &["../server/origin", "clone"]].concat();
            command(words)
        };
        table.row(format!("objects-are-a-link-{name}"), move |scene| {
            scene.write("outside/objects/secret", "secret\n");
            let objects = scene.path("server/origin/.git/objects");
            std::fs::rename(&objects, scene.path("outside/objects/real")).expect("it moves");
            scene.link("../../../outside/objects", "server/origin/.git/objects");
            clone().leaves_no("work/clone/.git/objects/secret")
        });
        table.row(format!("object-is-a-link-{name}"), move |scene| {
            scene.link(
                "../../../../outside/canary",
                "server/origin/.git/objects/info/secret",
            );
            clone().leaves_no("work/clone/.git/objects/info/secret")
        });
        table.row(
            format!("directory-of-objects-is-a-link-{name}"),
            move |scene| {
                scene.link("../../../../outside", "server/origin/.git/objects/ab");
                clone().leaves_no("work/clone/.git/objects/ab/canary")
            },
        );
    }
    table.row("source-is-a-link", |scene| {
        scene.link("origin", "server/link");
        command(["clone", "../server/link", "clone"]).succeeds()
    });
    table.row("git-directory-is-a-link", |scene| {
        std::fs::create_dir(scene.path("server/link")).expect("a directory");
        scene.link("../origin/.git", "server/link/.git");
        command(["clone", "../server/link", "clone"])
    });
}

/// Settings and hooks of the source.
fn settings(table: &mut Table) {
    for (name, text) in [
        (
            "pack-objects-hook",
            "[uploadpack]\n\tpackObjectsHook = PAYLOAD\n",
        ),
        ("monitor", "[core]\n\tfsmonitor = PAYLOAD\n"),
        ("ssh-command", "[core]\n\tsshCommand = PAYLOAD\n"),
        ("hooks-path", "[core]\n\thooksPath = ROOT/server/hooks\n"),
        (
            "pager",
            "[core]\n\tpager = PAYLOAD\n[pager]\n\tclone = PAYLOAD\n",
        ),
        (
            "alias",
            "[alias]\n\tclone = !PAYLOAD\n\tupload-pack = !PAYLOAD\n",
        ),
        (
            "alternates-command",
            "[core]\n\talternateRefsCommand = PAYLOAD\n",
        ),
        ("credential-helper", "[credential]\n\thelper = !PAYLOAD\n"),
        (
            "maintenance",
            "[maintenance]\n\tauto = true\n[gc]\n\tauto = 1\n\trecentObjectsHook = PAYLOAD\n",
        ),
        ("include", "[include]\n\tpath = /dev/zero\n"),
    ] {
        for (way, source) in [
            ("path", "../server/origin"),
            ("url", "file://ROOT/server/origin"),
        ] {
            table.row(format!("{name}-of-a-source-by-{way}"), move |scene| {
                let root = scene.root().display().to_string();
                let payload = scene.payload("server/payload").display().to_string();
                scene.payload("server/hooks/post-checkout");
                scene.payload("server/origin/.git/hooks/post-checkout");
                let text = text.replace("PAYLOAD", &payload).replace("ROOT", &root);
                scene.append("server/origin/.git/config", &text);
                command(["clone", &source.replace("ROOT", &root), "clone"])
            });
        }
    }
    table.row("hook-of-a-template", |scene| {
        scene.payload("server/origin/.git/hooks/pre-commit");
        scene.payload("server/origin/templates/hooks/post-checkout");
        command(["clone", "../server/origin", "clone"]).succeeds()
    });
    table.row("bare-repository-of-the-tree", |scene| {
        // A directory in the worktree that looks like a repository.
        let origin = "server/origin";
        let payload = scene.payload_command();
        scene.git(origin, &["init", "-q", "--bare", "bare"]);
        scene.write(
            "server/origin/bare/config",
            format!("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = {payload}\n"),
        );
        scene.write("server/origin/bare/refs/keep", "");
        scene.write("server/origin/bare/objects/keep", "");
        scene.git(origin, &["add", "-f", "bare"]);
        scene.git(origin, &["commit", "-qm", "bare"]);
        command(["clone", "../server/origin", "clone"]).succeeds()
    });
}

/// Repositories that name other places for their objects.
fn lazy(table: &mut Table) {
    for (name, url) in [
        ("command", "ext::PAYLOAD"),
        ("path", "PAYLOAD"),
        ("ssh", "ssh://-oProxyCommand=PAYLOAD/x"),
    ] {
        for words in [
            &["clone", "../server/origin", "clone"][..],
            &["clone", "file://ROOT/server/origin", "clone"],
            &["fetch", "ROOT/server/origin"],
        ] {
            let way = words[0].to_owned()
                + if words[1].starts_with("..") {
                    ""
                } else {
                    "-url"
                };
            table.row(format!("lazy-{name}-{way}"), move |scene| {
                let payload = scene.payload("server/payload").display().to_string();
                let root = scene.root().display().to_string();
                scene.git("work", &["init", "-q", "here"]);
                let url = url.replace("PAYLOAD", &payload);
                scene.append(
                    "server/origin/.git/config",
                    &format!(
                        "[remote \"origin\"]\n\turl = {url}\n\tpromisor = true\n\
                         \tuploadpack = {payload}\n[extensions]\n\tpartialClone = origin\n"
                    ),
                );
                // The tree is missing, so that it would have to be fetched.
                let tree = scene.git("server/origin", &["rev-parse", "HEAD^{tree}"]);
                let (two, rest) = tree.split_at(2);
                scene.remove(format!("server/origin/.git/objects/{two}/{rest}"));
                let words = words.iter().map(|word| word.replace("ROOT", &root));
                let directory = match words.len() {
                    2 => "work/here",
                    _ => "work",
                };
                command(words).within(directory).fails()
            });
        }
    }
}

/// Servers that name other places for their objects.
fn elsewhere(table: &mut Table) {
    for (name, url) in [
        ("file", "file://ROOT/outside/canary"),
        ("http", "http://127.0.0.1:EVIL/pack"),
        ("command", "ext::PAYLOAD"),
    ] {
        table.row(format!("pack-at-{name}"), move |scene| {
            let evil =
                scene.http(|_, out| crate::servers::http::respond(out, "404 Not Found", &[], b""));
            let url = place(scene, url, evil);
            let list = [
                line("packfile-uris\n"),
                line(format!("{} {url}\n", "7".repeat(40))),
            ];
            let section = [list.concat(), b"0001".to_vec()].concat();
            let offer = Offer::new(scene.ids).section(section);
            let server = scene.git_server(offer);
            command(["clone", &server, "clone"])
                .fails()
                .never_contacts(evil)
                .git_differs_if(
                    name == "http",
                    "it takes the address of a pack although it asked for none",
                )
        });
        table.row(format!("bundle-at-{name}"), move |scene| {
            let evil =
                scene.http(|_, out| crate::servers::http::respond(out, "404 Not Found", &[], b""));
            let url = place(scene, url, evil);
            let offer = Offer::new(scene.ids)
                .capability("bundle-uri")
                .capability(format!("bundle.x.uri={url}"));
            let server = scene.git_server(offer);
            command(["clone", &server, "clone"]).never_contacts(evil)
        });
    }
    table.row("bundle-of-garbage", |scene| {
        scene.write(
            "server/bundle",
            "# v2 git bundle\n-x\n\x1b[2J refs/heads/../../x\n\nPACK",
        );
        command(["clone", "../server/bundle", "clone"])
            .with_fallback()
            .fails()
    });
}

/// Long lines of a configuration that is edited.
fn editing(table: &mut Table) {
    for words in [
        &["config", "--rename-section", "submodule.x", "submodule.y"][..],
        &["config", "--remove-section", "submodule.x"],
        &["config", "submodule.x.url", "other"],
        &["config", "--unset", "submodule.x.url"],
    ] {
        let name = words[1].trim_start_matches('-').replace('.', "-");
        table.row(format!("long-line-config-{name}"), |scene| {
            scene.repository("work/repo");
            let long = "a".repeat(1 << 14);
            let text = format!(
                "[submodule \"x\"]\n\turl = {long}[core]sshCommand=injected\n\
                 \tpath = \"{long}\\n[core]\\n\tpager = injected\"\n"
            );
            scene.append("work/repo/.git/config", &text);
            command(words.iter().copied())
                .within("work/repo")
                .check(|scene, _| {
                    let at = "work/repo";
                    let list = scene.git(at, &["config", "--local", "--list", "--name-only"]);
                    match list.contains("core.sshcommand") || list.contains("core.pager") {
                        true => Err("a value became a setting".to_owned()),
                        false => Ok(()),
                    }
                })
        });
    }
}

/// Revisions that are slow to resolve.
fn revisions(table: &mut Table) {
    for (name, revision) in [
        ("at-signs", "@".repeat(100_000)),
        ("braces", "HEAD@{".repeat(10_000)),
        ("carets", format!("HEAD{}", "^".repeat(100_000))),
        ("tildes", "HEAD~9999999999999999999999".to_owned()),
        ("peels", format!("HEAD{}", "^{}".repeat(20_000))),
        ("pattern", format!(":/{}", "(a*)*".repeat(200))),
        ("brackets", format!(":/{}", "[".repeat(10_000))),
        ("previous", "@{-999999999999999999}".to_owned()),
        ("stage", ":9:file".to_owned()),
    ] {
        table.row(format!("revision-{name}"), move |scene| {
            scene.repository("work/repo");
            command(["rev-parse", "--verify", &revision])
                .within("work/repo")
                .git_differs_if(
                    name == "carets",
                    "it overflows its stack where a revision has very many suffixes",
                )
        });
    }
}

fn place(scene: &Scene, url: &str, evil: u16) -> String {
    let payload = scene.payload("server/payload").display().to_string();
    url.replace("PAYLOAD", &payload)
        .replace("ROOT", &scene.root().display().to_string())
        .replace("EVIL", &evil.to_string())
}

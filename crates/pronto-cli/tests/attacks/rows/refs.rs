//! Hostile ref names, chosen by a server or by a repository on disk.

use super::Table;
use crate::attack::{Attack, Scene, command};
use crate::servers::git::Offer;

/// The path from the references of the clone to the top of the sandbox.
const UP: &str = "refs/heads/../../../../..";

/// Invalid reference names, each with its intended effect.
const NAMES: &[Name] = &[
    Name::new("moves-a-branch", "UP/project/.git/refs/heads/main"),
    Name::new("creates-a-file", "UP/outside/new/folder/file"),
    Name::new("absolute", "ROOT/outside/absolute"),
    Name::new("no-refs", "config"),
    Name::new("parent-of-refs", "refs/heads/../../config"),
    Name::new("hook", "refs/heads/../../hooks/post-checkout"),
    Name::new("lock", "refs/heads/main.lock"),
    Name::new("escape", "refs/heads/ma\x1b[2Jin"),
    Name::new("bell", "refs/heads/ma\x07in"),
    Name::new("delete", "refs/heads/ma\x7fin"),
    Name::new("backspace", "refs/heads/ma\x08in"),
    Name::new("space", "refs/heads/ma in"),
    Name::new(
        "section",
        "refs/heads/a\"]\n[core]\n\tsshCommand = injected\n[branch \"b",
    ),
    Name::new("section-in-a-line", "refs/heads/a\"] sshCommand = injected"),
    Name::new("carriage-return", "refs/heads/a\r[core]"),
    Name::new("hidden", "refs/heads/.hidden"),
    Name::new("two-dots", "refs/heads/a..b"),
    Name::new("two-slashes", "refs/heads/a//b"),
    Name::new("slash-at-end", "refs/heads/a/"),
    Name::new("dot-at-end", "refs/heads/a."),
    Name::new("reflog", "refs/heads/a@{1}"),
    Name::new("backslashes", "refs/heads/..\\..\\..\\outside\\file"),
    Name::new("empty", ""),
];

/// Names that git refuses for an unborn `HEAD`.
const KEPT: &[&str] = &["absolute", "no-refs", "lock"];

/// Fills paths of the sandbox into a name.
#[derive(Clone, Copy)]
struct Name {
    what: &'static str,
    pattern: &'static str,
}

impl Name {
    const fn new(what: &'static str, pattern: &'static str) -> Self {
        Name { what, pattern }
    }

    fn text(self, scene: &Scene) -> String {
        let root = scene.root().display().to_string();
        self.pattern.replace("UP", UP).replace("ROOT", &root)
    }
}

pub(super) fn table() -> Table {
    let mut table = Table::new("refs");
    for name in NAMES {
        table.row(format!("head-v2-{}", name.what), |scene| {
            let offer = Offer::new(scene.ids).head(name.text(scene));
            clone(scene, offer)
        });
        table.row(format!("listed-v2-{}", name.what), |scene| {
            let offer = Offer::new(scene.ids).reference(name.text(scene));
            clone(scene, offer)
        });
    }
    for name in &NAMES[..8] {
        for version in [0, 1] {
            table.row(format!("head-v{version}-{}", name.what), move |scene| {
                let offer = Offer::new(scene.ids).head(name.text(scene));
                clone(scene, offer.version(version))
            });
        }
        table.row(format!("unborn-{}", name.what), |scene| {
            let offer = Offer::new(scene.ids).unborn(name.text(scene));
            clone(scene, offer).git_differs_if(
                !KEPT.contains(&name.what),
                "2.55 writes what the server says into HEAD (CVE-2026-113408, fixed in 2.56.1)",
            )
        });
        table.row(format!("fetched-head-{}", name.what), |scene| {
            let offer = Offer::new(scene.ids).head(name.text(scene));
            fetch(scene, offer, "+refs/heads/*:refs/remotes/origin/*")
        });
        table.row(format!("mirrored-{}", name.what), |scene| {
            let offer = Offer::new(scene.ids).reference(name.text(scene));
            fetch(scene, offer, "+refs/*:refs/*")
        });
    }
    special(&mut table);
    on_disk(&mut table);
    table
}

fn special(table: &mut Table) {
    table.row("head-over-ssh", |scene| {
        let offer = Offer::new(scene.ids).head(format!("{UP}/outside/file"));
        let ssh = scene.ssh(&offer);
        clone_of(scene, "ssh://host/repository").variable("GIT_SSH_COMMAND", ssh)
    });
    table.row("head-over-http", |scene| {
        let offer = Offer::new(scene.ids).head(format!("{UP}/outside/file"));
        let port =
            scene.http(move |request, out| crate::servers::http::offer(&offer, request, out));
        clone_of(scene, &format!("http://127.0.0.1:{port}/x"))
    });
    table.row("branch-like-an-option", |scene| {
        let offer = Offer::new(scene.ids).head("refs/heads/--upload-pack=touch");
        clone(scene, offer)
    });
    table.row("branch-called-head", |scene| {
        let offer = Offer::new(scene.ids).head("refs/heads/HEAD");
        clone(scene, offer)
    });
    table.row("file-and-directory", |scene| {
        let offer = Offer::new(scene.ids);
        clone(scene, offer.reference("refs/heads/main/below")).leaves_no("outside/below")
    });
    table.row("listed-twice", |scene| {
        let offer = Offer::new(scene.ids);
        clone(scene, offer.reference("refs/heads/main"))
    });
    table.row("nul-in-a-name", |scene| {
        let line = format!("{} refs/heads/a\0/../../x", scene.ids.first);
        let listing = crate::servers::git::lines([line]);
        let offer = Offer::new(scene.ids).listing(listing);
        clone(scene, offer)
    });
    table.row("tag-climbs", |scene| {
        let offer = Offer::new(scene.ids);
        clone(
            scene,
            offer.reference("refs/tags/../../../../../outside/tag"),
        )
    });
    table.row("peeled-of-nothing", |scene| {
        let line = format!("{0} refs/tags/v1 peeled:../../../{0}", scene.ids.first);
        let listing = crate::servers::git::lines([line]);
        let offer = Offer::new(scene.ids).listing(listing);
        clone(scene, offer).fails()
    });
    table.row("remote-name-climbs", |scene| {
        let url = scene.git_server(Offer::new(scene.ids));
        command(["clone", "-o", "../../../../outside/x", &url, "clone"]).fails()
    });
    table.row("remote-name-with-a-section", |scene| {
        let url = scene.git_server(Offer::new(scene.ids));
        command(["clone", "-o", "a\"]\n[core]\nx=", &url, "clone"]).fails()
    });
    table.row("wanted-name-climbs", |scene| {
        let url = scene.git_server(Offer::new(scene.ids));
        scene.repository("work/repo");
        let name = format!("main:{UP}/outside/file");
        command(["fetch", &url, &name]).within("work/repo").fails()
    });
}

/// Hostile files in a repository on disk.
fn on_disk(table: &mut Table) {
    for (name, target) in [
        ("climbs", "refs/heads/../../../../outside/file"),
        ("climbs-at-once", "../../../outside/file"),
        ("outside-of-refs", "config"),
        ("lock", "refs/heads/x.lock"),
    ] {
        table.row(format!("symbolic-{name}"), move |scene| {
            scene.repository("work/repo");
            scene.write("work/repo/.git/HEAD", format!("ref: {target}\n"));
            scene.write("work/repo/new", "new\n");
            command(["commit", "-m", "x", "--allow-empty"])
                .within("work/repo")
                .keeps("work/repo/.git/config")
                .fails()
        });
        table.row(format!("symbolic-second-{name}"), move |scene| {
            scene.repository("work/repo");
            scene.write(
                "work/repo/.git/refs/heads/other",
                format!("ref: {target}\n"),
            );
            scene.write("work/repo/.git/HEAD", "ref: refs/heads/other\n");
            command(["reset", "--soft", &scene.ids.first])
                .within("work/repo")
                .keeps("work/repo/.git/config")
                .fails()
                .git_differs_if(
                    name != "outside-of-refs",
                    "it follows a symbolic reference to any path",
                )
        });
    }
    table.row("symbolic-loop", |scene| {
        scene.repository("work/repo");
        scene.write("work/repo/.git/refs/heads/a", "ref: refs/heads/b\n");
        scene.write("work/repo/.git/refs/heads/b", "ref: refs/heads/a\n");
        command(["rev-parse", "--verify", "a"])
            .within("work/repo")
            .fails()
    });
    table.row("packed-name-climbs", |scene| {
        scene.repository("work/repo");
        let first = &scene.ids.first;
        let text = format!("# pack-refs with: peeled fully-peeled sorted \n{first} refs/heads/../../../../outside/file\n{first} refs/heads/ok\n");
        scene.write("work/repo/.git/packed-refs", text);
        command(["checkout", "refs/heads/../../../../outside/file"])
            .within("work/repo")
            .fails()
    });
    table.row("new-name-climbs", |scene| {
        scene.repository("work/repo");
        command(["checkout", "-b", "../../../../outside/file"])
            .within("work/repo")
            .fails()
    });
    table.row("symbolic-ref-climbs", |scene| {
        scene.repository("work/repo");
        command([
            "symbolic-ref",
            "HEAD",
            "refs/heads/../../../../outside/file",
        ])
        .within("work/repo")
        .keeps("work/repo/.git/HEAD")
        .fails()
    });
    table.row("link-out-of-refs", |scene| {
        scene.repository("work/repo");
        let target = format!("{}\n", scene.ids.first);
        scene.write("outside/reference", target);
        scene.link(
            "../../../../../outside/reference",
            "work/repo/.git/refs/heads/link",
        );
        command(["checkout", "-B", "link", "HEAD"]).within("work/repo")
    });
}

fn clone(scene: &mut Scene, offer: Offer) -> Attack {
    let url = scene.git_server(offer);
    clone_of(scene, &url)
}

fn clone_of(_: &Scene, url: &str) -> Attack {
    command(["clone", url, "clone"]).check(nothing_is_injected("work/clone"))
}

fn fetch(scene: &mut Scene, offer: Offer, refspec: &str) -> Attack {
    let url = scene.git_server(offer);
    scene.repository("work/repo");
    scene.git("work/repo", &["config", "remote.origin.url", &url]);
    scene.git("work/repo", &["config", "remote.origin.fetch", refspec]);
    command(["fetch", "--update-head-ok", "origin"])
        .within("work/repo")
        .keeps("work/repo/.git/config")
        .check(nothing_is_injected("work/repo"))
}

/// Checks that the configuration, the hooks and `HEAD` of the repository do not hold text from the
/// server.
fn nothing_is_injected(
    repository: &'static str,
) -> impl Fn(&Scene, &crate::process::Outcome) -> Result<(), String> {
    move |scene, _| {
        let folder = scene.path(repository).join(".git");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let (config, head) = (read("config"), read("HEAD"));
        if config.contains("injected") || config.contains('\r') {
            return Err(format!("the configuration is the server's: {config}"));
        }
        if folder.join("hooks/post-checkout").exists() {
            return Err("a hook is the server's".to_owned());
        }
        if head.contains("..") || head.contains('\x1b') || head.lines().count() > 1 {
            return Err(format!("HEAD is the server's: {head:?}"));
        }
        if !head.is_empty() && !config.contains("[core]") {
            return Err(format!("the configuration is gone: {config}"));
        }
        Ok(())
    }
}

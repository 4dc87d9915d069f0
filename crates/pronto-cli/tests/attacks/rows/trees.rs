//! Trees whose checkout would write to forbidden places, and hostile files in trees.

use super::Table;
use crate::attack::{Attack, Scene, command, elsewhere};
use crate::objects::{DIRECTORY, Entry, FILE, LINK, SUBMODULE, entry, evil};

/// Names that some file system treats as `.git`, each with the setting that protects.
const NAMES: &[(&str, &[u8])] = &[
    ("git", b".git"),
    ("upper-case", b".GIT"),
    ("mixed-case", b".gIt"),
    ("short-name", b"git~1"),
    ("short-name-upper", b"GIT~1"),
    ("space", b".git "),
    ("dot", b".git."),
    ("spaces-and-dots", b".git . ."),
    ("stream", b".git::$INDEX_ALLOCATION"),
    ("stream-of-short-name", b"git~1:x"),
    ("backslash", b".git\\hooks"),
    ("backslash-further", b"a\\..\\.git"),
    ("joiner", b".g\xe2\x80\x8cit"),
    ("joiner-at-the-end", b".git\xe2\x80\x8d"),
    ("mark", b"\xef\xbb\xbf.git"),
    ("override", b"\xe2\x80\xae.git"),
    ("dots", b".."),
    ("one-dot", b"."),
    ("slash", b"a/b"),
    ("climbs", b"../outside/file"),
    ("absolute", b"/tmp/pronto-attack"),
    ("empty", b""),
    ("in-git", b".git/hooks/post-checkout"),
];

/// The reason why rows of names have no control run.
const SLASHES: &str = "it takes a name with a slash for a path";

pub(super) fn table() -> Table {
    let mut table = Table::new("trees");
    for (name, bytes) in NAMES {
        table.row(format!("directory-{name}"), move |scene| {
            checkout(scene, |forge| {
                let script = forge.blob("#!/bin/sh\ntouch ../outside/pwned\n");
                let hooks = forge.tree(&[entry("100755", "post-checkout", script)]);
                let below = forge.tree(&[entry(DIRECTORY, "hooks", hooks)]);
                forge.tree(&[entry(DIRECTORY, *bytes, below)])
            })
            .fails()
            .git_differs_if(*name == "slash", SLASHES)
        });
        table.row(format!("file-{name}"), move |scene| {
            checkout(scene, |forge| {
                let blob = forge.blob("gitdir: ../outside\n");
                forge.tree(&[entry(FILE, *bytes, blob)])
            })
            .fails()
            .git_differs_if(*name == "slash", SLASHES)
        });
    }
    links(&mut table);
    attributes(&mut table);
    shapes(&mut table);
    table
}

/// Clones the repository whose tree `make` builds, with all protections enabled.
fn checkout(scene: &Scene, make: impl FnOnce(&mut crate::objects::Forge) -> [u8; 20]) -> Attack {
    evil(scene, make);
    scene.configure("[core]\n\tprotectNTFS = true\n\tprotectHFS = true\n");
    command(["clone", "../server/evil", "clone"])
}

/// Symbolic links through which files would be written.
fn links(table: &mut Table) {
    for (name, target) in [
        ("outside", "../../outside"),
        ("git", ".git"),
        ("hooks", ".git/hooks"),
    ] {
        table.row(format!("through-a-link-to-{name}"), move |scene| {
            checkout(scene, |forge| {
                let link = forge.blob(target);
                let script = forge.blob("#!/bin/sh\ntouch ../outside/pwned\n");
                let below = forge.tree(&[entry("100755", "post-checkout", script)]);
                forge.tree(&[entry(LINK, "a", link), entry(DIRECTORY, "a", below)])
            })
            .leaves_no("outside/post-checkout")
            .leaves_no("work/clone/.git/hooks/post-checkout")
        });
        table.row(
            format!("through-a-link-that-was-there-to-{name}"),
            move |scene| {
                evil(scene, |forge| {
                    let script = forge.blob("#!/bin/sh\ntouch ../outside/pwned\n");
                    let below = forge.tree(&[entry("100755", "post-checkout", script)]);
                    forge.tree(&[entry(DIRECTORY, "a", below)])
                });
                scene.repository("work/repo");
                scene.git(
                    "work/repo",
                    &["fetch", "-q", "../../server/evil", "main:evil"],
                );
                scene.link(target, "work/repo/a");
                command(["checkout", "-f", "evil"])
                    .within("work/repo")
                    .leaves_no("outside/post-checkout")
                    .leaves_no("work/repo/.git/hooks/post-checkout")
            },
        );
    }
    for name in [
        ".gitmodules",
        ".GITMODULES",
        "gitmod~1",
        ".gitmodules ",
        "GI7EBA~1",
    ] {
        table.row(
            format!("link-called-{}", name.trim().replace('~', "-")),
            move |scene| {
                checkout(scene, |forge| {
                    let link = forge.blob("../../outside/canary");
                    forge.tree(&[entry(LINK, name, link)])
                })
                .fails()
            },
        );
    }
    table.row("link-with-a-long-target", |scene| {
        checkout(scene, |forge| {
            let link = forge.blob("x/".repeat(1 << 20));
            forge.tree(&[entry(LINK, "a", link)])
        })
        .fails()
    });
    table.row("link-with-nul", |scene| {
        checkout(scene, |forge| {
            let link = forge.blob("a\0b");
            forge.tree(&[entry(LINK, "a", link)])
        })
    });
    table.row("link-in-place-of-a-directory-that-is-removed", |scene| {
        scene.repository("work/repo");
        scene.write("work/repo/folder/file", "file\n");
        scene.git("work/repo", &["add", "."]);
        scene.git("work/repo", &["commit", "-qm", "folder"]);
        std::fs::remove_dir_all(scene.path("work/repo/folder")).expect("it was there");
        scene.link("../../outside/folder", "work/repo/folder");
        command(["checkout", "-f", "HEAD~1"]).within("work/repo")
    });
    table.row("link-in-place-of-a-directory-that-is-cleaned", |scene| {
        scene.repository("work/repo");
        scene.link("../../outside/folder", "work/repo/link");
        command(["clean", "-fdx"]).within("work/repo").succeeds()
    });
    table.row("link-in-place-of-a-directory-that-is-reset", |scene| {
        scene.repository("work/repo");
        scene.write("work/repo/folder/file", "file\n");
        scene.git("work/repo", &["add", "."]);
        scene.git("work/repo", &["commit", "-qm", "folder"]);
        std::fs::remove_dir_all(scene.path("work/repo/folder")).expect("it was there");
        scene.link("../../outside/folder", "work/repo/folder");
        command(["reset", "--hard"]).within("work/repo").succeeds()
    });
    table.row("link-in-place-of-a-directory-that-is-restored", |scene| {
        scene.repository("work/repo");
        scene.write("work/repo/folder/file", "file\n");
        scene.git("work/repo", &["add", "."]);
        scene.git("work/repo", &["commit", "-qm", "folder"]);
        std::fs::remove_dir_all(scene.path("work/repo/folder")).expect("it was there");
        scene.link("../../outside/folder", "work/repo/folder");
        command(["checkout", "--", "folder/file"]).within("work/repo")
    });
    table.row("link-that-is-added-through", |scene| {
        scene.repository("work/repo");
        scene.link("../../outside/folder", "work/repo/folder");
        command(["add", "folder/file"]).within("work/repo").fails()
    });
    table.row("case-folding", |_| {
        elsewhere("it needs a file system that folds case: see folding.rs in the tests beside")
    });
}

/// `.gitattributes` and `.gitignore`, which every command reads.
fn attributes(table: &mut Table) {
    let with = |scene: &Scene, name: &str, content: &str| {
        evil(scene, |forge| {
            let (list, file) = (forge.blob(content), forge.blob("text\n"));
            forge.tree(&[entry(FILE, name, list), entry(FILE, "file", file)])
        });
        command(["clone", "../server/evil", "clone"])
    };
    type Make = fn() -> String;
    const ATTRIBUTES: &[(&str, Make)] = &[
        ("long-line", || "x".repeat(50_000_000)),
        ("long-name", || format!("* {}\n", "a".repeat(5_000_000))),
        ("many-names", || format!("* {}\n", "a=b ".repeat(1_000_000))),
        ("many-lines", || "* a b c\n".repeat(500_000)),
        ("different-names", || {
            (0..100_000)
                .map(|number| format!("* a{number}\n"))
                .collect()
        }),
        ("macros", || {
            (0..20_000)
                .map(|n| format!("[attr]m{n} m{}\n", n + 1))
                .collect()
        }),
        ("macro-of-itself", || {
            "[attr]m m n\n[attr]n m\n* m\n".to_owned()
        }),
        ("stars", || format!("{} x\n", "*a".repeat(60))),
        ("quotes", || "\"a\\777\\x\" x\n\"unended x\n".to_owned()),
        ("encoding", || {
            "* working-tree-encoding=../../x\n".to_owned()
        }),
        ("encoding-long", || {
            format!("* working-tree-encoding={}\n", "u".repeat(1_000_000))
        }),
        ("encoding-utf-16", || {
            "* working-tree-encoding=UTF-16 text eol=crlf\n".to_owned()
        }),
        ("filter", || {
            "* filter=evil diff=evil merge=evil\n".to_owned()
        }),
        ("ident", || "* ident text=auto eol=crlf\n".to_owned()),
    ];
    const IGNORES: &[(&str, Make)] = &[
        ("long-line", || "x".repeat(50_000_000)),
        ("many-lines", || "*a*b*c\n".repeat(200_000)),
        ("stars", || format!("{}b\n", "*a".repeat(60))),
        ("double-stars", || format!("{}b\n", "**/a/".repeat(200))),
        ("classes", || {
            format!("{}\n", "[a-z[:alpha:]-".repeat(10_000))
        }),
    ];
    for (name, make) in ATTRIBUTES {
        table.row(format!("attributes-{name}"), move |scene| {
            with(scene, ".gitattributes", &make())
        });
    }
    for (name, make) in IGNORES {
        table.row(format!("ignore-{name}"), |scene| {
            scene.repository("work/repo");
            scene.write("work/repo/.gitignore", make());
            scene.write("work/repo/".to_owned() + &"a".repeat(100), "x");
            command(["status"]).within("work/repo").succeeds()
        });
    }
    for name in [".gitattributes", ".gitignore"] {
        let what = name.trim_start_matches('.');
        table.row(format!("{what}-is-a-link-outside"), move |scene| {
            scene.repository("work/repo");
            scene.write("outside/list", "file filter=evil\n*\n");
            scene.write("work/repo/untracked", "x\n");
            scene.link("../../outside/list", format!("work/repo/{name}"));
            command(["status", "--porcelain"])
                .within("work/repo")
                .succeeds()
                .check(|_, outcome| match outcome.said().contains("?? untracked") {
                    true => Ok(()),
                    false => Err("a link to a list is followed".to_owned()),
                })
        });
    }
}

/// Trees of extreme shapes.
fn shapes(table: &mut Table) {
    table.row("deep", |scene| {
        checkout(scene, |forge| {
            let blob = forge.blob("x\n");
            let mut tree = forge.tree(&[entry(FILE, "x", blob)]);
            for _ in 0..10_000 {
                tree = forge.tree(&[entry(DIRECTORY, "d", tree)]);
            }
            tree
        })
    });
    table.row("long-path", |scene| {
        checkout(scene, |forge| {
            let blob = forge.blob("x\n");
            let mut tree = forge.tree(&[entry(FILE, "x", blob)]);
            for _ in 0..400 {
                tree = forge.tree(&[entry(DIRECTORY, "n".repeat(200), tree)]);
            }
            tree
        })
    });
    table.row("explodes", |scene| {
        scene.repository("work/repo");
        evil(scene, |forge| {
            let blob = forge.blob("x\n");
            let mut tree = forge.tree(&[entry(FILE, "x", blob)]);
            for _ in 0..12 {
                let entries: Vec<Entry> = (0..10)
                    .map(|number| entry(DIRECTORY, number.to_string(), tree))
                    .collect();
                tree = forge.tree(&entries);
            }
            tree
        });
        // The number of files is astronomical. A fetch must not walk them.
        command(["fetch", "../../server/evil", "main"]).within("work/repo")
    });
    table.row("long-name", |scene| {
        checkout(scene, |forge| {
            let blob = forge.blob("x\n");
            forge.tree(&[entry(FILE, "n".repeat(100_000), blob)])
        })
        .fails()
    });
    table.row("name-twice", |scene| {
        checkout(scene, |forge| {
            let (one, two) = (forge.blob("one\n"), forge.blob("two\n"));
            forge.tree(&[entry(FILE, "a", one), entry(FILE, "a", two)])
        })
    });
    table.row("unknown-mode", |scene| {
        checkout(scene, |forge| {
            let blob = forge.blob("x\n");
            forge.tree(&[entry("104777", "a", blob)])
        })
    });
    table.row("directory-that-is-a-blob", |scene| {
        checkout(scene, |forge| {
            let blob = forge.blob("x\n");
            forge.tree(&[entry(DIRECTORY, "a", blob)])
        })
        .fails()
    });
    table.row("file-that-is-a-tree", |scene| {
        checkout(scene, |forge| {
            let blob = forge.blob("x\n");
            let below = forge.tree(&[entry(FILE, "b", blob)]);
            forge.tree(&[entry(FILE, "a", below)])
        })
        .fails()
    });
    table.row("set-user-id", |scene| {
        checkout(scene, |forge| {
            let blob = forge.blob("x\n");
            forge.tree(&[entry("104755", "a", blob)])
        })
        .check(|scene, _| {
            use std::os::unix::fs::PermissionsExt as _;
            let data = scene.path("work/clone/a").metadata();
            match data.is_ok_and(|data| data.permissions().mode() & 0o7000 != 0) {
                true => Err("a file has special bits".to_owned()),
                false => Ok(()),
            }
        })
    });
    table.row("executable", |scene| {
        checkout(scene, |forge| {
            let blob = forge.blob("x\n");
            forge.tree(&[entry("100755", "a", blob)])
        })
        .succeeds()
        .check(|scene, _| {
            use std::os::unix::fs::PermissionsExt as _;
            let data = scene.path("work/clone/a").metadata();
            let mode = data.map_or(0, |data| data.permissions().mode() & 0o777);
            match mode & 0o002 {
                0 => Ok(()),
                _ => Err(format!("others may write to an executable: {mode:o}")),
            }
        })
    });
    table.row("submodule-in-place-of-a-link", |scene| {
        checkout(scene, |forge| {
            let link = forge.blob("../../outside");
            let commit = [7; 20];
            forge.tree(&[entry(LINK, "a", link), entry(SUBMODULE, "a", commit)])
        })
    });
}

//! Paths that lead out of the repositories.

use super::Table;
use crate::stage::{Stage, Verdict, listing, refused, require};
use crate::wire::{FETCH, PUSH, V2, changes, create, get, git_request, no_pack, post, refs_of};

pub(super) fn table() -> Table {
    let mut table = Table::new("paths");
    names(&mut table);
    links(&mut table);
    inside(&mut table);
    services(&mut table);
    table
}

/// Requires that a path is not found: for all services over HTTP, and over `git://`.
fn is_nothing(stage: &mut Stage, path: &str) -> Verdict {
    let token = stage.token("root");
    let requests = [
        get(&refs_of(path, FETCH), &token).into_bytes(),
        get(&refs_of(path, PUSH), &token).into_bytes(),
        post(path, FETCH, &format!("{V2}{token}"), &listing()),
        post(
            path,
            PUSH,
            &token,
            &[
                changes([create(&stage.site.ids.first, "refs/heads/x")]),
                no_pack(),
            ]
            .concat(),
        ),
    ];
    for request in requests {
        let answer = stage.ask(request)?;
        let is_right = matches!(answer.status, 400 | 404 | 414 | 431);
        require(is_right, || format!("{path}: {answer:?} {}", answer.text()))?;
        require(!answer.text().contains("refs/heads/main"), || {
            format!("{path} leads somewhere")
        })?;
    }
    Ok(())
}

/// Requires that a path is not found over `git://`.
fn is_nothing_in_git(stage: &mut Stage, path: &str) -> Verdict {
    let request = git_request(path, "\0version=2\0");
    let bytes = stage.connect_git().send(request).ends()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    require(text.contains("ERR ") && !text.contains("refs/"), || {
        format!("{path}: {text}")
    })
}

fn names(table: &mut Table) {
    for (name, paths) in [
        (
            "parent",
            &[
                "..",
                "../root/open/p",
                "open/../open/p",
                "open/p/../../../outside/s",
                "open/p/..",
            ][..],
        ),
        (
            "parent-encoded",
            &[
                "%2e%2e/outside/s",
                "open/%2e%2e/%2E%2e/outside/s",
                "..%2foutside%2fs",
                "open%2f..%2fopen%2fp",
            ],
        ),
        (
            "parent-encoded-twice",
            &[
                "%252e%252e/outside/s",
                "open/%252e%252e/open/p",
                "..%252foutside%252fs",
            ],
        ),
        (
            "parent-in-odd-utf-8",
            &[
                "%c0%ae%c0%ae/outside/s",
                "%e0%80%ae./outside/s",
                "..%c0%afoutside",
            ],
        ),
        ("nul", &["open/p%00", "open/p%00.git", "%00", "open%00/p"]),
        (
            "backslash",
            &["open%5cp", "..%5coutside%5cs", "open/..%5c..%5coutside"],
        ),
        (
            "controls",
            &[
                "open/p%0a",
                "open/p%0d%0a",
                "open/%1b[2Jp",
                "open/p%7f",
                "open/p%c2%9b",
            ],
        ),
        (
            "dots",
            &[
                ".",
                "./open/p",
                "open/./p",
                "open/.p",
                ".git",
                "open/...",
                "open/p/.git",
            ],
        ),
        (
            "empty",
            &["", "/", "open//p", "//open/p", "open/", "open/p/"],
        ),
        (
            "suffixes",
            &[
                "open/p.git.git",
                "open/p.git/.git",
                "open/p.lock",
                "open.git/p",
                "open/p.git/objects",
            ],
        ),
        (
            "malformed",
            &["%", "%2", "%zz", "open/p%", "%ff", "open/%f0%28%8c%28"],
        ),
        (
            "absolute",
            &[
                "/etc",
                "%2fetc%2fpasswd",
                "file:///etc",
                "~",
                "~root/x",
                "~%2f",
            ],
        ),
        (
            "options",
            &["--upload-pack=x", "-h", "--help", "open/--exec"],
        ),
    ] {
        table.row(name, move |stage| {
            paths.iter().try_for_each(|path| is_nothing(stage, path))
        });
    }
    table.row("long", |stage| {
        for path in [
            "a".repeat(600),
            "a/".repeat(200),
            "a/".repeat(3000),
            "a".repeat(100_000),
            "%61".repeat(400),
        ] {
            is_nothing(stage, &path)?;
        }
        Ok(())
    });
    table.row("of-git", |stage| {
        for path in [
            "/../outside/s",
            "/open/../open/p",
            "//open/p",
            "/open//p",
            "/open/p/.git",
            "/~root",
            "open/p",
            "/open/p.lock",
            "/%6fpen/p",
            "/open\\p",
            "/open/p\n",
            "/vault/x",
            "/team/a",
            "/--help",
            "/",
        ] {
            is_nothing_in_git(stage, path)?;
        }
        stage.logged_on("git", 400, "begins with a dot")
    });
    table.row("of-git-with-hosts-and-parameters", |stage| {
        for parameters in [
            "\0GIT_DIR=/x:y\0",
            "\0version=2:x\0",
            "\0a\nb\0",
            "\0\x7f\u{ff}\0",
        ] {
            let request = git_request("/vault/x", parameters);
            let bytes = stage.connect_git().send(request).ends()?;
            require(bytes.windows(4).any(|word| word == b"ERR "), || {
                format!("{bytes:?}")
            })?;
        }
        Ok(())
    });
    table.row("case", |stage| {
        is_nothing(stage, "OPEN/P")?;
        is_nothing(stage, "open/p.GIT")
    });
}

fn links(table: &mut Table) {
    table.row_on_disk(
        "link-out-of-the-root",
        "a store has no symbolic links",
        |stage| {
            let root = stage.site.path("root");
            let outside = stage.site.path("outside");
            let link = |target: &std::path::Path, name: &str| {
                std::os::unix::fs::symlink(target, root.join(name)).expect("a link");
            };
            link(&outside, "out");
            link(&outside.join("s.git"), "direct");
            link(&outside.join("s.git"), "suffixed.git");
            for path in ["out/s", "direct", "suffixed"] {
                is_nothing(stage, path)?;
            }
            Ok(())
        },
    );
    table.row_on_disk(
        "git-file-out-of-the-root",
        "a store has no files '.git'",
        |stage| {
            for (name, target) in [
                ("pointed", "../../outside/s.git"),
                ("absolute", "/"),
                ("loop", "."),
            ] {
                let at = stage.site.path(format!("root/{name}"));
                std::fs::create_dir_all(&at).expect("a directory");
                std::fs::write(at.join(".git"), format!("gitdir: {target}\n")).expect("a file");
                is_nothing(stage, name)?;
            }
            Ok(())
        },
    );
    table.row_on_disk(
        "common-directory-out-of-the-root",
        "a store has no worktrees",
        |stage| {
            let at = stage.site.path("root/linked.git");
            std::fs::create_dir_all(&at).expect("a directory");
            std::fs::write(at.join("HEAD"), "ref: refs/heads/main\n").expect("a file");
            std::fs::write(at.join("commondir"), "../../outside/s.git\n").expect("a file");
            is_nothing(stage, "linked")
        },
    );
    table.row_on_disk(
        "objects-of-another-repository",
        "a store has no alternates",
        |stage| {
            // A name that is a file, and one that is a broken repository.
            std::fs::write(stage.site.path("root/file"), "x").expect("a file");
            std::fs::create_dir_all(stage.site.path("root/half.git/objects")).expect("a directory");
            is_nothing(stage, "file")?;
            is_nothing(stage, "file/x")?;
            is_nothing(stage, "half")
        },
    );
}

fn inside(table: &mut Table) {
    table.row("files-of-a-repository", |stage| {
        let token = stage.token("root");
        for path in [
            "config",
            "HEAD",
            "objects/info/packs",
            "objects/info/alternates",
            "info/refs",
            "hooks/pre-receive",
            "packed-refs",
            "../../server.toml",
            "../pronto-users.toml",
            "description",
        ] {
            for suffix in ["", ".git"] {
                let answer = stage.ask(get(&format!("/team/a{suffix}/{path}"), &token))?;
                require(answer.status >= 400, || format!("{path}: {answer:?}"))?;
            }
        }
        Ok(())
    });
    table.row_on_disk(
        "repository-in-a-worktree",
        "a store has no worktrees",
        |stage| {
            // A user who may push to a repository with files must not make another one in them.
            let site = &stage.site;
            let root = site.path("root");
            site.git(&root, &["clone", "-q", "open/p.git", "open/files"]);
            site.git(
                &root,
                &["clone", "-q", "--bare", "open/p.git", "open/files/evil"],
            );
            is_nothing(stage, "open/files/evil")?;
            let answer = stage.fetch(None, "open/files", &listing())?;
            require(answer.status == 200, || format!("{answer:?}"))
        },
    );
    table.row_on_disk(
        "worktree-in-a-repository",
        "a store has no worktrees",
        |stage| {
            // The rules of a repository must not be avoided by another name of it.
            let site = &stage.site;
            let root = site.path("root");
            site.git(&root, &["clone", "-q", "--bare", "open/p.git", "open/bare"]);
            let elsewhere = site.path("tmp/elsewhere").display().to_string();
            site.git(
                &root.join("open/bare"),
                &["worktree", "add", "-q", &elsewhere, "-b", "w"],
            );
            is_nothing(stage, "open/bare/worktrees/elsewhere")?;
            let answer = stage.fetch(None, "open/bare", &listing())?;
            require(answer.status == 200, || format!("{answer:?}"))
        },
    );
    table.row("new-repositories", |stage| {
        stage.set("create_on_push = true");
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        for (name, status) in [
            ("own/m/inner", 404),
            ("own/-option", 400),
            ("own/a%20b", 400),
            ("own/%c3%a9", 400),
            ("own/..", 400),
            ("own/x.lock", 400),
            ("team/new", 404),
            ("vault/new", 404),
            ("own/deep/er", 404),
            ("mine", 404),
        ] {
            let answer = stage.push("mallory", name, &commands, &no_pack())?;
            require(answer.status == status, || {
                format!("{name}: {answer:?} {}", answer.text())
            })?;
        }
        let made = stage.site.names_below("own");
        require(made.len() == 2, || {
            format!("a repository was created: {made:?}")
        })
    });
}

fn services(table: &mut Table) {
    table.row("services", |stage| {
        for query in [
            "service=git-upload-archive",
            "service=../../bin/sh",
            "service=git-upload-pack%00",
            "service=",
            "service",
            "Service=git-upload-pack",
            "service=git-upload-pack/..",
            "x",
            "",
        ] {
            let answer = stage.ask(get(&format!("/open/p/info/refs?{query}"), ""))?;
            require(answer.status == 400 || answer.status == 403, || {
                format!("{query}: {answer:?}")
            })?;
        }
        Ok(())
    });
    table.row("two-services", |stage| {
        // The first one counts, for the role and for the answer.
        let path = "/open/p/info/refs?service=git-upload-pack&service=git-receive-pack";
        let answer = stage.ask(get(path, ""))?;
        require(answer.text().contains("# service=git-upload-pack"), || {
            format!("{answer:?}")
        })?;
        let path = "/open/p/info/refs?service=git-receive-pack&service=git-upload-pack";
        refused(&stage.ask(get(path, ""))?, 401)
    });
    table.row("content-types", |stage| {
        for kind in ["application/x-git-receive-pack-request", "text/plain", "application/x-git-upload-pack-request; x=y"] {
            let request = format!(
                "POST /open/p/{FETCH} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\ncontent-length: 4\r\n\r\n0000"
            );
            refused(&stage.ask(request)?, 400)?;
        }
        let request = format!("POST /open/p/{FETCH} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n0000");
        refused(&stage.ask(request)?, 400)
    });
}

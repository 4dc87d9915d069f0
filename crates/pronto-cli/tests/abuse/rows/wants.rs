//! Requests for objects without permission, by their ids.

use super::Table;
use crate::stage::{Stage, Verdict, listing, require};
use crate::wire::{
    FETCH, MISSING, V2, command, fetch, get, git_request, old_fetch, packet, packets, post, refs_of,
};

pub(super) fn table() -> Table {
    let mut table = Table::new("wants");
    old(&mut table);
    new(&mut table);
    tricks(&mut table);
    malformed(&mut table);
    table
}

/// A fetch of versions 0 and 1 that must not bring a pack.
fn denied_in_old(stage: &mut Stage, id: &str) -> Verdict {
    let body = old_fetch(&[id]);
    let answer = stage.ask(post("open/p", FETCH, "", &body))?;
    require(answer.text().contains("not our ref"), || {
        format!("{answer:?}")
    })?;
    let answer = stage.ask(post("open/p", FETCH, "git-protocol: version=1\r\n", &body))?;
    require(answer.text().contains("not our ref"), || {
        format!("{answer:?}")
    })?;
    let mut daemon = stage.connect_git();
    daemon.send(git_request("/open/p", "")).send(&body);
    let text = String::from_utf8_lossy(&daemon.ends()?).into_owned();
    require(
        text.contains("not our ref") && !text.contains("PACK"),
        || text,
    )
}

fn old(table: &mut Table) {
    table.row("hidden-commit", |stage| {
        let id = stage.site.ids.hidden.clone();
        denied_in_old(stage, &id)
    });
    table.row("lost-commit", |stage| {
        let id = stage.site.ids.lost.clone();
        denied_in_old(stage, &id)
    });
    table.row("commit-of-another-repository", |stage| {
        let id = stage.site.ids.vault.clone();
        denied_in_old(stage, &id)
    });
    table.row("hidden-beside-a-branch", |stage| {
        let (hidden, main) = (stage.site.ids.hidden.clone(), stage.site.ids.second.clone());
        let answer = stage.ask(post("open/p", FETCH, "", &old_fetch(&[&main, &hidden])))?;
        require(answer.text().contains("not our ref"), || {
            format!("{answer:?}")
        })
    });
    table.row("hidden-as-a-cut", |stage| {
        // The history of a branch does not end at what is hidden.
        let (hidden, main) = (stage.site.ids.hidden.clone(), stage.site.ids.second.clone());
        for line in [
            format!("shallow {hidden}"),
            format!("deepen-not {hidden}"),
            "deepen-not refs/hidden/secret".to_owned(),
        ] {
            let mut body = packets([
                format!("want {main} side-band-64k\n"),
                line,
                "deepen 1".to_owned(),
            ]);
            body.extend(packet("done\n"));
            let answer = stage.ask(post("open/p", FETCH, "", &body))?;
            let secret = "what only hidden holds";
            require(!answer.text().contains(secret), || format!("{answer:?}"))?;
        }
        Ok(())
    });
    table.row("listing", |stage| {
        for (service, headers) in [(FETCH, ""), (FETCH, "git-protocol: version=1\r\n")] {
            let answer = stage.ask(get(&refs_of("open/p", service), headers))?;
            let text = answer.text();
            let is_hidden = !text.contains("hidden") && !text.contains(&stage.site.ids.hidden);
            require(is_hidden && text.contains("refs/heads/main"), || text)?;
        }
        // Nor to those who push.
        let token = stage.token("alice");
        let answer = stage.ask(get(&refs_of("team/a", "git-receive-pack"), &token))?;
        let text = answer.text();
        require(
            !text.contains("hidden") && !text.contains(&stage.site.ids.hidden),
            || text,
        )
    });
}

fn new(table: &mut Table) {
    table.row("listing-of-prefixes", |stage| {
        for prefix in [
            "refs/hidden",
            "refs/hidden/secret",
            "refs/h",
            "",
            "refs/",
            "refs/heads/../hidden",
            "../",
        ] {
            let body = command(
                "ls-refs",
                [
                    "peel".to_owned(),
                    "symrefs".into(),
                    "unborn".into(),
                    format!("ref-prefix {prefix}"),
                ],
            );
            let answer = stage.fetch(None, "open/p", &body)?;
            let text = answer.text();
            require(
                !text.contains("hidden") && !text.contains(&stage.site.ids.hidden),
                || text,
            )?;
        }
        Ok(())
    });
    table.row("of-another-repository", |stage| {
        for id in [stage.site.ids.vault.clone(), MISSING.to_owned()] {
            let answer = stage.fetch(None, "open/p", &fetch(&[&id]))?;
            require(
                answer.text().contains("ERR upload-pack: not our ref"),
                || format!("{answer:?}"),
            )?;
            stage
                .logged(200, "not our ref")
                .or_else(|_| stage.logged(400, "not our ref"))?;
        }
        Ok(())
    });
    table.row("of-another-repository-as-have", |stage| {
        // No acknowledgement tells that another repository has an object.
        let (vault, main) = (stage.site.ids.vault.clone(), stage.site.ids.second.clone());
        let body = command("fetch", [format!("want {main}"), format!("have {vault}")]);
        let answer = stage.fetch(None, "open/p", &body)?;
        require(
            answer.text().contains("NAK") && !answer.text().contains(&vault),
            || format!("{answer:?}"),
        )
    });
    table.row("hidden-by-its-name", |stage| {
        stage.configure("open/p", "uploadpack.allowRefInWant", "true");
        for name in [
            "refs/hidden/secret",
            "hidden/secret",
            "refs/heads/../hidden/secret",
            "HEAD^{}",
            "../../vault/x.git/HEAD",
        ] {
            let body = command("fetch", [format!("want-ref {name}"), "done".to_owned()]);
            let answer = stage.fetch(None, "open/p", &body)?;
            require(answer.text().contains("ERR unknown ref"), || {
                format!("{answer:?}")
            })?;
        }
        Ok(())
    });
    table.row("names-that-are-not-offered", |stage| {
        let body = command("fetch", ["want-ref refs/heads/main", "done"]);
        let answer = stage.fetch(None, "open/p", &body)?;
        require(!answer.text().contains("PACK"), || format!("{answer:?}"))?;
        let body = command(
            "object-info",
            [
                "size".to_owned(),
                format!("oid {}", stage.site.ids.hidden_blob),
            ],
        );
        let answer = stage.fetch(None, "open/p", &body)?;
        require(answer.status >= 400, || format!("{answer:?}"))
    });
    table.row("whether-a-hidden-ref-exists", |stage| {
        // A ref that is hidden is as one that is not there.
        let main = stage.site.ids.second.clone();
        let mut texts = Vec::new();
        for name in ["refs/hidden/secret", "refs/hidden/absent"] {
            let body = command(
                "fetch",
                [
                    format!("want {main}"),
                    format!("deepen-not {name}"),
                    "done".to_owned(),
                ],
            );
            let answer = stage.fetch(None, "open/p", &body)?;
            let id = answer.header("x-request-id").unwrap_or_default().to_owned();
            texts.push(answer.text().replace(&id, "ID").replace(name, "NAME"));
        }
        require(texts[0] == texts[1], || format!("{texts:?}"))
    });
}

fn tricks(table: &mut Table) {
    table.row("filters-that-are-not-allowed", |stage| {
        let main = stage.site.ids.second.clone();
        let body = command(
            "fetch",
            [
                format!("want {main}"),
                "filter blob:none".to_owned(),
                "done".to_owned(),
            ],
        );
        let answer = stage.fetch(None, "open/p", &body)?;
        require(!answer.text().contains("PACK"), || format!("{answer:?}"))
    });
    table.row("filter-that-reads-a-blob", |stage| {
        stage.configure("open/p", "uploadpack.allowFilter", "true");
        let (main, blob) = (
            stage.site.ids.second.clone(),
            stage.site.ids.hidden_blob.clone(),
        );
        for filter in [
            format!("sparse:oid={blob}"),
            "sparse:oid=refs/hidden/secret:secret".to_owned(),
            "sparse:path=/etc/passwd".to_owned(),
            "tree:99999999999999999999".to_owned(),
            "blob:limit=-1".to_owned(),
            "object:type=x".to_owned(),
            "combine:".to_owned(),
            "combine:+".to_owned(),
            "combine:%".to_owned(),
            "\x1b[2J".to_owned(),
        ] {
            let body = command(
                "fetch",
                [
                    format!("want {main}"),
                    format!("filter {filter}"),
                    "done".to_owned(),
                ],
            );
            let answer = stage.fetch(None, "open/p", &body)?;
            require(!answer.text().contains("only hidden holds"), || {
                format!("{answer:?}")
            })?;
        }
        Ok(())
    });
    table.row("depths", |stage| {
        let main = stage.site.ids.second.clone();
        for line in [
            "deepen 0",
            "deepen -1",
            "deepen 4294967296",
            "deepen 99999999999999999999",
            "deepen x",
            "deepen ",
            "deepen-since x",
            "deepen-since -1",
            "deepen-since 18446744073709551616",
            "deepen-not ",
            "deepen-not refs/heads/../hidden/secret",
            "deepen-not HEAD:file",
            "deepen-not main@{1}",
            "deepen-not ../../vault/x.git/HEAD",
            "shallow x",
            "shallow ",
        ] {
            let body = command(
                "fetch",
                [format!("want {main}"), line.to_owned(), "done".to_owned()],
            );
            let answer = stage.fetch(None, "open/p", &body)?;
            require(!answer.text().contains("only hidden holds"), || {
                format!("{line}: {answer:?}")
            })?;
        }
        Ok(())
    });
    table.row("quarantine", |stage| {
        // Objects of a push are not there before it is accepted: a hook holds it at that point.
        let gate = stage.site.path("tmp/gate");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &gate,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a FIFO");
        let mark = stage.site.path("tmp/mark");
        stage.hook(
            "team/a",
            "pre-receive",
            &format!(
                "read old new name; case $name in refs/tags/blob) echo >'{}'; read x <'{}'; exit 1;; esac",
                mark.display(),
                gate.display()
            ),
        );
        let blob = crate::pack::Pack::new()
            .object(crate::pack::BLOB, b"not yet\n")
            .finish();
        let id = crate::pack::hex(&crate::pack::id("blob", b"not yet\n"));
        let commands = crate::wire::changes([crate::wire::create(&id, "refs/tags/blob")]);
        let token = stage.token("alice");
        let mut pushing = stage.connect();
        pushing.send(post(
            "team/a",
            "git-receive-pack",
            &token,
            &[commands, blob].concat(),
        ));
        require(crate::server::wait_until(|| mark.exists()), || {
            "the hook does not run".to_owned()
        })?;
        let answer = stage.fetch(Some("bob"), "team/a", &fetch(&[&id]))?;
        std::fs::write(&gate, "\n").expect("the hook reads");
        require(answer.text().contains("not our ref"), || {
            format!("{answer:?}")
        })?;
        let answer = pushing.answer()?;
        let text = String::from_utf8_lossy(&crate::wire::unbanded(&answer.body)).into_owned();
        require(text.contains("pre-receive hook declined"), || text)?;
        let answer = stage.fetch(Some("bob"), "team/a", &fetch(&[&id]))?;
        require(
            answer.text().contains("not our ref") && !stage.site.has("team/a", &id),
            || format!("{answer:?}"),
        )
    });
}

fn malformed(table: &mut Table) {
    for (name, body) in [
        ("packet-of-length-1", b"0001".to_vec()),
        ("packet-of-length-3", b"0003".to_vec()),
        ("packet-of-words", b"zzzzcommand".to_vec()),
        (
            "packet-longer-than-allowed",
            [b"ffff".to_vec(), vec![b'x'; 70_000]].concat(),
        ),
        ("packet-cut", b"00ffcommand=".to_vec()),
        ("nothing-but-a-delimiter", b"0001".to_vec()),
        (
            "command-twice",
            [packet("command=ls-refs"), packets(["command=fetch"])].concat(),
        ),
        ("command-unknown", packets(["command=\x1b[2J\u{202e}x"])),
        (
            "command-of-another-format",
            packets(["command=ls-refs", "object-format=sha256"]),
        ),
        ("want-of-words", command("fetch", ["want x", "done"])),
        (
            "want-of-sha256",
            command("fetch", [format!("want {}", "1".repeat(64))]),
        ),
        ("line-unknown", command("fetch", ["\u{9b}2Jx\u{7f}"])),
        ("error-of-the-client", packets(["ERR nothing"])),
    ] {
        table.row(name, move |stage| {
            for (repository, headers) in [("open/p", V2), ("open/p", "")] {
                let answer = stage.ask(post(repository, FETCH, headers, &body))?;
                let text = answer.text();
                let is_reported =
                    answer.status >= 400 || text.contains("ERR ") || answer.body.is_empty();
                require(is_reported && !text.contains("refs/heads"), || {
                    format!("{answer:?} {text}")
                })?;
            }
            let mut daemon = stage.connect_git();
            daemon
                .send(git_request("/open/p", "\0version=2\0"))
                .send(&body)
                .shut();
            daemon.ends().map(|_| ())
        });
    }
    table.row("git-protocol-header", |stage| {
        for value in [
            "version=99999999999999999999",
            "version=-1",
            "version=2:version=1:x",
            &"version=2:".repeat(200),
            "\u{e9}",
            "GIT_DIR=/x",
        ] {
            let answer = stage.ask(post(
                "open/p",
                FETCH,
                &format!("git-protocol: {value}\r\n"),
                &listing(),
            ))?;
            require(answer.status != 500, || format!("{value}: {answer:?}"))?;
        }
        Ok(())
    });
}

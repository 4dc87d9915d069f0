//! Users who access repositories without permission, and guesses of tokens.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Table;
use crate::client::Answer;
use crate::stage::{Stage, listing, refused, require};
use crate::wire::{
    FETCH, MISSING, NULL, PUSH, V2, changes, create, fetch, get, no_pack, post, refs_of,
};

pub(super) fn table() -> Table {
    let mut table = Table::new("roles");
    tokens(&mut table);
    repositories(&mut table);
    rules(&mut table);
    calls(&mut table);
    connections(&mut table);
    table
}

fn list(stage: &mut Stage, headers: &str) -> Result<Answer, String> {
    stage.ask(post(
        "vault/x",
        FETCH,
        &format!("{V2}{headers}"),
        &listing(),
    ))
}

fn tokens(table: &mut Table) {
    table.row("guesses", |stage| {
        stage.limits("failures_per_minute = 20");
        let mut last = String::new();
        for number in 0..20 {
            let answer = list(stage, &format!("authorization: Bearer pronto_{number}\r\n"))?;
            refused(&answer, 401)?;
            let id = answer.header("x-request-id").unwrap_or_default().to_owned();
            // All wrong tokens have one answer.
            let text = answer.text().replace(&id, "ID");
            require(last.is_empty() || last == text, || text.clone())?;
            last = text;
        }
        // Even the right one is not looked at any more.
        let token = stage.token("alice");
        let answer = list(stage, &token)?;
        refused(&answer, 429)?;
        require(answer.header("retry-after").is_some(), || {
            format!("{answer:?}")
        })?;
        stage.logged(429, "too many invalid tokens")
    });
    table.row("guesses-at-once", |stage| {
        stage.limits("failures_per_minute = 20");
        let request = post("vault/x", FETCH, "authorization: Bearer x\r\n", b"0000");
        let mut all: Vec<_> = (0..100).map(|_| stage.connect()).collect();
        for one in &mut all {
            one.send(&request);
        }
        let mut looked_at = 0;
        for one in &mut all {
            looked_at += usize::from(one.answer()?.status == 401);
        }
        require(looked_at <= 40, || {
            format!("{looked_at} guesses were looked at")
        })
    });
    table.row("almost-a-token", |stage| {
        let token = stage.site.ids.token("alice").to_owned();
        let upper = token.to_uppercase();
        let wrong = [
            token[..token.len() - 1].to_owned(),
            format!("{token}0"),
            format!(" {token}x"),
            upper,
            token.replace("pronto_", ""),
            format!("{token},{token}"),
            "pronto_".to_owned(),
        ];
        for token in wrong {
            refused(
                &list(stage, &format!("authorization: Bearer {token}\r\n"))?,
                401,
            )?;
        }
        Ok(())
    });
    table.row("other-schemes", |stage| {
        let token = stage.site.ids.token("alice").to_owned();
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        for value in [
            format!("Digest {token}"),
            token.clone(),
            "Basic".to_owned(),
            "Basic !!!".to_owned(),
            basic(&token),
            basic(&format!("bob:{token}")),
            basic(&format!("ALICE:{token}")),
            basic(&format!("alice\n:{token}")),
            basic("alice:"),
            basic(":"),
            basic(&format!("anonymous:{token}")),
            format!("Bearer\t{token}"),
            format!("Bearer {}", "x".repeat(8000)),
        ] {
            refused(&list(stage, &format!("authorization: {value}\r\n"))?, 401)?;
        }
        let right = basic(&format!("alice:{token}"));
        let answer = list(stage, &format!("authorization: {right}\r\n"))?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("two-tokens", |stage| {
        let (mine, hers) = (stage.token("mallory"), stage.token("alice"));
        // Both orders: a program in front may look at the other one.
        refused(&list(stage, &format!("{mine}{hers}"))?, 400)?;
        refused(&list(stage, &format!("{hers}{mine}"))?, 400)
    });
    table.row("token-in-the-address", |stage| {
        let token = stage.site.ids.token("alice").to_owned();
        for request in [
            get(
                &format!("/vault/x/info/refs?service=git-upload-pack&token={token}"),
                "",
            ),
            get(
                &format!("/vault/x/info/refs?service=git-upload-pack&access_token={token}"),
                "",
            ),
            get(
                &format!("http://alice:{token}@x/vault/x/info/refs?service=git-upload-pack"),
                "",
            ),
            get(&format!("/{token}/info/refs?service=git-upload-pack"), ""),
        ] {
            let answer = stage.ask(request)?;
            require(answer.status >= 400, || format!("{answer:?}"))?;
            require(!answer.text().contains(&token), || format!("{answer:?}"))?;
        }
        Ok(())
    });
    table.row("token-that-was-revoked", |stage| {
        let token = stage.token("mallory");
        let root = stage.token("root");
        let request = format!("DELETE /api/v1/users/mallory HTTP/1.1\r\nhost: x\r\n{root}\r\n");
        let mut open = stage.connect();
        let ask = post("own/m", FETCH, &format!("{V2}{token}"), &listing());
        let before = open.send(&ask).answer()?;
        require(before.status == 200, || format!("{before:?}"))?;
        let answer = stage.ask(request)?;
        require(answer.status == 204, || format!("{answer:?}"))?;
        // On a connection that is open, too.
        refused(&open.send(&ask).answer()?, 401)
    });
}

fn repositories(table: &mut Table) {
    table.row("nobody-reads", |stage| {
        for name in ["vault/x", "team/a", "own/m", "not/there"] {
            refused(&stage.fetch(None, name, &listing())?, 401)?;
            refused(&stage.ask(get(&refs_of(name, FETCH), V2))?, 401)?;
        }
        Ok(())
    });
    table.row("nobody-pushes", |stage| {
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        let body = [commands, no_pack()].concat();
        let push = |stage: &mut Stage| stage.ask(post("open/p", PUSH, "", &body));
        refused(&stage.changing_nothing("open/p", push)?, 401)?;
        refused(&stage.ask(get(&refs_of("open/p", PUSH), ""))?, 401)
    });
    table.row("reader-pushes", |stage| {
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        let push = |stage: &mut Stage| stage.push("bob", "team/a", &commands, &no_pack());
        refused(&stage.changing_nothing("team/a", push)?, 403)?;
        let token = stage.token("bob");
        refused(&stage.ask(get(&refs_of("team/a", PUSH), &token))?, 403)?;
        let push = ["push", "-q", "URL", "main:refs/heads/x"];
        let push = |stage: &mut Stage| Ok(stage.git_as("bob", &push, "team/a"));
        let output = stage.changing_nothing("team/a", push)?;
        require(!output.status.success(), || format!("{output:?}"))
    });
    table.row("repository-of-another-user", |stage| {
        // It is as if it was not there.
        let id = |answer: &Answer| {
            let id = answer.header("x-request-id").unwrap_or_default().to_owned();
            answer.text().replace(&id, "ID")
        };
        let there = stage.fetch(Some("mallory"), "vault/x", &listing())?;
        let not_there = stage.fetch(Some("mallory"), "vault/y", &listing())?;
        refused(&there, 404)?;
        let texts = (id(&there), id(&not_there).replace("vault/y", "vault/x"));
        require(texts.0 == texts.1, || format!("{texts:?}"))?;
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        let push = |stage: &mut Stage| stage.push("mallory", "vault/x", &commands, &no_pack());
        refused(&stage.changing_nothing("vault/x", push)?, 404)
    });
}

fn rules(table: &mut Table) {
    let writer = "[[grant]]\nrepository = \"team/a\"\nusers = [\"mallory\"]\nrole = \"write\"";
    table.row("branch-of-others", move |stage| {
        stage.set(writer);
        let (first, second) = (stage.site.ids.first.clone(), stage.site.ids.second.clone());
        let commands = changes([format!("{second} {first} refs/heads/main")]);
        stage.refuses_push(
            "mallory",
            "team/a",
            &commands,
            &no_pack(),
            "may not push to this ref",
        )
    });
    table.row("branch-of-others-among-own", move |stage| {
        stage.set(writer);
        let (first, second) = (stage.site.ids.first.clone(), stage.site.ids.second.clone());
        let commands = changes([
            create(&first, "refs/heads/mine"),
            format!("{second} {NULL} refs/heads/main"),
        ]);
        let pack = no_pack();
        stage.refuses_push(
            "mallory",
            "team/a",
            &commands,
            &pack,
            "another ref update of this push was rejected",
        )
    });
    table.row("delete-and-force", |stage| {
        let (first, second) = (stage.site.ids.first.clone(), stage.site.ids.second.clone());
        let delete = changes([format!("{second} {NULL} refs/heads/main")]);
        stage.refuses_push("alice", "team/a", &delete, b"", "may not delete")?;
        let force = changes([format!("{second} {first} refs/heads/main")]);
        stage.refuses_push("alice", "team/a", &force, &no_pack(), "non-fast-forward")
    });
    table.row("force-as-a-creation", |stage| {
        // A change that says that the ref is new.
        let first = stage.site.ids.first.clone();
        let commands = changes([create(&first, "refs/heads/main")]);
        stage.refuses_push("alice", "team/a", &commands, &no_pack(), "refs/heads/main")
    });
    table.row("force-with-a-wrong-old-value", |stage| {
        let first = stage.site.ids.first.clone();
        for old in [first.as_str(), MISSING] {
            let commands = changes([format!("{old} {first} refs/heads/main")]);
            stage.refuses_push("alice", "team/a", &commands, &no_pack(), "refs/heads/main")?;
        }
        Ok(())
    });
    table.row("objects-of-a-refused-force", |stage| {
        // What a rule refuses must not stay.
        let who = "a <a@x> 1112911993 -0700";
        let tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let text = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\nforced\n");
        let made = crate::pack::Pack::new().object(crate::pack::TREE, b"");
        let made = made.object(crate::pack::COMMIT, text.as_bytes()).finish();
        let id = crate::pack::hex(&crate::pack::id("commit", text.as_bytes()));
        let commands = changes([format!("{} {id} refs/heads/main", stage.site.ids.second)]);
        stage.refuses_push("alice", "team/a", &commands, &made, "non-fast-forward")?;
        require(!stage.site.has("team/a", &id), || {
            "the object is there".to_owned()
        })
    });
    table.row("certificate-in-place-of-commands", |stage| {
        let commands = crate::wire::packets([
            "push-cert\0report-status",
            "certificate version 0.1\n",
            "push-cert-end\n",
        ]);
        let push = |stage: &mut Stage| stage.push("alice", "team/a", &commands, b"");
        refused(&stage.changing_nothing("team/a", push)?, 400)
    });
}

/// A call of the interface for programs.
fn call(stage: &mut Stage, user: Option<&str>, line: &str, body: &str) -> Result<Answer, String> {
    let token = user.map(|user| stage.token(user)).unwrap_or_default();
    stage.ask(format!(
        "{line} HTTP/1.1\r\nhost: x\r\n{token}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

fn calls(table: &mut Table) {
    table.row("calls-of-others", |stage| {
        for (line, body) in [
            ("GET /api/v1/users", ""),
            ("POST /api/v1/users", "{\"name\":\"eve\"}"),
            ("DELETE /api/v1/users/alice", ""),
            ("POST /api/v1/users/alice/tokens", ""),
            ("POST /api/v1/users/root/tokens", "{\"replace\":true}"),
        ] {
            refused(&call(stage, None, line, body)?, 401)?;
            refused(&call(stage, Some("mallory"), line, body)?, 403)?;
        }
        for (user, name, status) in [
            ("mallory", "team/a", 403),
            ("alice", "team/a", 403),
            ("mallory", "vault/x", 404),
        ] {
            let line = format!("DELETE /api/v1/repositories/{name}");
            let delete = |stage: &mut Stage| call(stage, Some(user), &line, "");
            refused(&stage.changing_nothing(name, delete)?, status)?;
        }
        Ok(())
    });
    table.row("calls-with-odd-names", |stage| {
        for name in [
            "../x",
            "x/../../y",
            ".x",
            "x\\u0000y",
            "x\\ny",
            "own/x.lock",
            "own/\\u00e9",
            "",
            "team/a/b",
        ] {
            // In a directory, it would be inside of a repository. A store may have both.
            if name == "team/a/b" && stage.site.is_store() {
                continue;
            }
            let body = format!("{{\"name\":\"{name}\"}}");
            let answer = call(stage, Some("root"), "POST /api/v1/repositories", &body)?;
            refused(&answer, 400)?;
        }
        for name in ["a b", "*", "anonymous", "-x", "x:y", "../x", "x\\ny", ""] {
            let body = format!("{{\"name\":\"{name}\"}}");
            let answer = call(stage, Some("root"), "POST /api/v1/users", &body)?;
            refused(&answer, 400)?;
        }
        Ok(())
    });
    table.row("calls-that-are-malformed", |stage| {
        for body in [
            "{",
            "[]",
            "null",
            "{\"name\":1}",
            "{\"name\":\"a\",\"role\":\"admin\"}",
            "\\xff",
            &"[".repeat(60_000),
        ] {
            refused(&call(stage, Some("root"), "POST /api/v1/users", body)?, 400)?;
        }
        let answer = call(
            stage,
            Some("root"),
            "POST /api/v1/users",
            &" ".repeat(100_000),
        )?;
        refused(&answer, 400)
    });
    table.row("list-of-repositories", |stage| {
        let answer = call(stage, Some("mallory"), "GET /api/v1/repositories", "")?;
        let text = answer.text();
        require(text.contains("own/m") && !text.contains("vault"), || text)
    });
    table.row("metrics-of-others", |stage| {
        stage.http("metrics = \"admin\"\n");
        for user in [None, Some("mallory")] {
            let token = user.map(|user| stage.token(user)).unwrap_or_default();
            refused(&stage.ask(get("/metrics", &token))?, 403)?;
        }
        Ok(())
    });
}

fn connections(table: &mut Table) {
    table.row("next-request-without-a-token", |stage| {
        let token = stage.token("alice");
        let mut shared = stage.connect();
        let first = post("vault/x", FETCH, &format!("{V2}{token}"), &listing());
        let answer = shared.send(first).answer()?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        // Nothing of the user is left on the connection, as a proxy may share it.
        let second = post("vault/x", FETCH, V2, &listing());
        refused(&shared.send(&second).answer()?, 401)?;
        let token = stage.token("mallory");
        let third = post("vault/x", FETCH, &format!("{V2}{token}"), &listing());
        refused(&shared.send(third).answer()?, 404)
    });
    table.row("answers-of-two-users", |stage| {
        // Pipelined: each has its own.
        let (alice, mallory) = (stage.token("alice"), stage.token("mallory"));
        let mut shared = stage.connect();
        for (token, name) in [
            (&alice, "vault/x"),
            (&mallory, "own/m"),
            (&alice, "team/a"),
            (&mallory, "vault/x"),
        ] {
            shared.send(post(name, FETCH, &format!("{V2}{token}"), &listing()));
        }
        let vault = stage.site.ids.vault.clone();
        let statuses: Vec<u16> = (0..4)
            .map(|number| {
                let answer = shared.answer()?;
                require(answer.text().contains(&vault) == (number == 0), || {
                    format!("{answer:?}")
                })?;
                Ok(answer.status)
            })
            .collect::<Result<_, String>>()?;
        require(statuses == [200, 200, 200, 404], || format!("{statuses:?}"))
    });
    table.row("answers-are-not-kept", |stage| {
        let token = stage.token("alice");
        let path = refs_of("vault/x", FETCH);
        let headers = format!("{token}if-none-match: *\r\nif-modified-since: Thu, 01 Jan 2037 00:00:00 GMT\r\nrange: bytes=0-3\r\n");
        let answer = stage.ask(get(&path, &headers))?;
        let cache = answer.header("cache-control").unwrap_or_default();
        let is_whole = answer.status == 200 && answer.text().contains("refs/heads/main");
        require(is_whole && cache.contains("no-cache"), || format!("{answer:?}"))
    });
    table.row("pack-of-another-user", |stage| {
        // The same request, one after the other.
        let vault = stage.site.ids.vault.clone();
        let hers = stage.fetch(Some("alice"), "vault/x", &fetch(&[&vault]))?;
        require(hers.status == 200 && hers.body.len() > 100, || {
            format!("{hers:?}")
        })?;
        for name in ["own/m", "team/a"] {
            let answer = stage.fetch(Some("mallory"), name, &fetch(&[&vault]))?;
            require(answer.text().contains("not our ref"), || {
                format!("{answer:?}")
            })?;
        }
        refused(
            &stage.fetch(Some("mallory"), "vault/x", &fetch(&[&vault]))?,
            404,
        )
    });
}

//! Text from clients that would manipulate the log, or the terminal of a person who reads it.

use super::Table;
use crate::stage::require;
use crate::wire::{FETCH, V2, command, git_request, packets, post};

/// Escape sequences for terminals, and lines that look like events.
const EVIL: &str = "\u{9b}2J\u{7f}\u{202e}\u{2028}{\"event\":\"request\",\"user\":\"root\"}";

pub(super) fn table() -> Table {
    let mut table = Table::new("logs");
    table.row("line-of-a-fetch", |stage| {
        let body = command(
            "fetch",
            [format!("x{EVIL}\n{{\"event\":\"drained\"}}\n\x1b[2J")],
        );
        let answer = stage.fetch(None, "open/p", &body)?;
        require(answer.status >= 400, || format!("{answer:?}"))?;
        stage.logged(answer.status.into(), "unexpected line")
    });
    table.row("command-of-a-fetch", |stage| {
        let answer = stage.fetch(None, "open/p", &packets([format!("command={EVIL}")]))?;
        require(answer.status >= 400, || format!("{answer:?}"))?;
        stage.logged(answer.status.into(), "invalid command")
    });
    table.row("name-of-a-ref", |stage| {
        stage.configure("open/p", "uploadpack.allowRefInWant", "true");
        let body = command("fetch", [format!("want-ref refs/{EVIL}")]);
        stage.fetch(None, "open/p", &body).map(|_| ())
    });
    table.row("name-of-a-repository", |stage| {
        for name in [
            "%7b%22event%22%3a1%7d",
            "open/%c2%85x",
            "a%0ab",
            "open/%e2%80%aex",
        ] {
            let answer = stage.fetch(None, name, b"0000")?;
            require(answer.status >= 400, || format!("{answer:?}"))?;
        }
        let text = format!("/{EVIL}");
        stage.connect_git().send(git_request(&text, "")).ends()?;
        stage.logged_on("git", 400, "control character")
    });
    table.row("name-of-a-user", |stage| {
        let token = stage.site.ids.token("alice").to_owned();
        for value in [
            format!("Bearer {token}{EVIL}"),
            format!("Basic {token}\x1b"),
            "Bearer \u{9b}".to_owned(),
        ] {
            let answer = stage.ask(post(
                "vault/x",
                FETCH,
                &format!("authorization: {value}\r\n"),
                b"0000",
            ));
            require(
                answer.as_ref().is_ok_and(|answer| answer.status >= 400),
                || format!("{answer:?}"),
            )?;
        }
        Ok(())
    });
    table.row("long-lines", |stage| {
        let long = "y".repeat(60_000);
        for body in [
            command("fetch", [long.clone()]),
            packets([format!("command={long}")]),
        ] {
            stage.ask(post("open/p", FETCH, V2, &body))?;
        }
        stage
            .logged(400, "unexpected line")
            .or_else(|_| stage.logged(500, "unexpected line"))?;
        let longest = stage.server().text().lines().map(str::len).max();
        require(longest < Some(5000), || {
            format!("a line of {longest:?} bytes")
        })
    });
    table.row("many-lines", |stage| {
        // More than wait for the reader of the log; it may lose lines, but says how many.
        let one = crate::wire::get("/x", "");
        let mut shared = stage.connect();
        for _ in 0..20 {
            shared.send(one.repeat(300));
            for _ in 0..300 {
                shared.answer()?;
            }
        }
        Ok(())
    });
    table
}

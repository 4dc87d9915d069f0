//! Requests that name another host at an address of this machine, as web pages in a browser can
//! cause (DNS rebinding).

use crate::frames::{DATA, END_STREAM, HEADERS, field};
use crate::rows::Table;
use crate::stage::{Stage, Verdict, refused, require};
use crate::wire::{FETCH, refs_of};

const EVIL: &str = "evil.example";

pub(super) fn rows(table: &mut Table) {
    for (name, path) in [
        ("refs", refs_of("open/p", FETCH)),
        ("health", "/healthz".to_owned()),
        ("metrics", "/metrics".to_owned()),
        ("api", "/api/v1/repositories".to_owned()),
    ] {
        table.row(format!("host-of-a-page-{name}"), move |stage| {
            for host in [
                EVIL,
                "evil.example:80",
                "localhost.evil.example",
                "0.0.0.0",
                "10.1.2.3",
            ] {
                refused(&get(stage, &path, host)?, 421)?;
            }
            Ok(())
        });
    }
    table.row("host-of-this-machine", |stage| {
        let path = refs_of("open/p", FETCH);
        for host in [
            "localhost",
            "127.0.0.1:1",
            "[::1]:1",
            "a.localhost",
            "LOCALHOST.",
        ] {
            let answer = get(stage, &path, host)?;
            require(answer.status == 200, || format!("{host}: {answer:?}"))?;
        }
        Ok(())
    });
    table.row("host-in-the-address", |stage| {
        let path = refs_of("open/p", FETCH);
        let line = format!("GET http://{EVIL}{path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        refused(&stage.ask(line)?, 421)?;
        let line = format!("GET http://localhost{path} HTTP/1.1\r\nhost: {EVIL}\r\n\r\n");
        refused(&stage.ask(line)?, 421)
    });
    table.row("host-over-http-2", over_http_2);
    table.row("host-of-the-configuration", |stage| {
        stage.http("hosts = [\"git.example.org\"]\npublic_url = \"https://public.example.org\"\n");
        let path = refs_of("open/p", FETCH);
        for host in [
            "git.example.org",
            "Git.Example.Org:8418",
            "public.example.org",
        ] {
            let answer = get(stage, &path, host)?;
            require(answer.status == 200, || format!("{host}: {answer:?}"))?;
        }
        refused(&get(stage, &path, EVIL)?, 421)
    });
    table.row("host-with-a-token", |stage| {
        // A page that knows a token still is another origin.
        let token = stage.token("root");
        let line = format!("GET /api/v1/users HTTP/1.1\r\nhost: {EVIL}\r\n{token}\r\n");
        refused(&stage.ask(line)?, 421)
    });
}

fn get(stage: &mut Stage, path: &str, host: &str) -> Result<crate::client::Answer, String> {
    stage.ask(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n"))
}

fn over_http_2(stage: &mut Stage) -> Verdict {
    let path = refs_of("open/p", FETCH);
    let mut frames = stage.frames();
    let pairs = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", &path),
        (":authority", EVIL),
    ];
    let fields: Vec<u8> = pairs
        .iter()
        .flat_map(|(name, value)| field(name, value))
        .collect();
    frames.request(1, END_STREAM, &fields);
    frames.until(|frame| frame.kind == HEADERS)?;
    let body = frames.until(|frame| frame.kind == DATA)?.payload;
    let text = String::from_utf8_lossy(&body).into_owned();
    require(
        text.contains("this server does not serve the host name"),
        || text,
    )
}

//! HTTP requests that two programs could interpret differently, or that no program should accept
//! (request smuggling).

use super::Table;
use crate::stage::{Stage, Verdict, refused, require};
use crate::wire::{FETCH, V2, get, post, post_head};

pub(super) fn table() -> Table {
    let mut table = Table::new("smuggling");
    lengths(&mut table);
    chunks(&mut table);
    heads(&mut table);
    lines(&mut table);
    table
}

/// A request that could hide in the body of another one.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n";

/// Sends bytes, and requires that they have at most one answer, and that the connection ends.
fn one_answer(stage: &mut Stage, bytes: &[u8]) -> Result<String, String> {
    stage.limits("head_seconds = 1\nidle_seconds = 1");
    let received = stage.connect().send(bytes).ends()?;
    let text = String::from_utf8_lossy(&received).into_owned();
    let count = text.matches("HTTP/1.1 ").count();
    require(count <= 1, || format!("{count} answers: {text}"))?;
    Ok(text)
}

/// Requires that a head is refused, and its connection closed.
fn bad_head(stage: &mut Stage, bytes: &[u8]) -> Verdict {
    let text = one_answer(stage, bytes)?;
    require(text.starts_with("HTTP/1.1 400 "), || text)
}

/// A POST with these headers about its length, and a hidden request in its body.
fn hiding(headers: &str, body: &str) -> Vec<u8> {
    format!("{}{headers}\r\n{body}", post_head("open/p", FETCH, V2)).into_bytes()
}

fn lengths(table: &mut Table) {
    for (name, headers) in [
        ("two-lengths", "content-length: 4\r\ncontent-length: 37\r\n"),
        ("length-list", "content-length: 4, 37\r\n"),
        ("length-negative", "content-length: -1\r\n"),
        ("length-with-a-plus", "content-length: +4\r\n"),
        ("length-of-hex", "content-length: 0x4\r\n"),
        ("length-with-a-space", "content-length: 4 7\r\n"),
        ("length-of-nothing", "content-length: \r\n"),
        (
            "length-beyond-64-bits",
            "content-length: 18446744073709551620\r\n",
        ),
    ] {
        table.row(name, move |stage| {
            bad_head(stage, &hiding(headers, &format!("0000{HIDDEN}")))
        });
    }
    table.row("length-of-an-exabyte", |stage| {
        stage.limits("stall_seconds = 1");
        let headers = "content-length: 1000000000000000000\r\n";
        one_answer(stage, &hiding(headers, "0000")).map(|_| ())
    });
    table.row("length-and-chunks", |stage| {
        let headers = "content-length: 4\r\ntransfer-encoding: chunked\r\n";
        let body = format!("4\r\n0000\r\n0\r\n\r\n{HIDDEN}");
        one_answer(stage, &hiding(headers, &body)).map(|_| ())
    });
    table.row("chunks-and-length", |stage| {
        let headers = "transfer-encoding: chunked\r\ncontent-length: 60\r\n";
        let body = format!("0\r\n\r\n{HIDDEN}");
        one_answer(stage, &hiding(headers, &body)).map(|_| ())
    });
    table.row("body-of-a-get", |stage| {
        let head = format!(
            "GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
            HIDDEN.len()
        );
        one_answer(stage, format!("{head}{HIDDEN}").as_bytes()).map(|_| ())
    });
    table.row("body-of-a-refused-request", |stage| {
        let head = post_head("vault/x", FETCH, V2);
        let text = format!("{head}content-length: {}\r\n\r\n{HIDDEN}", HIDDEN.len());
        let text = one_answer(stage, text.as_bytes())?;
        require(text.starts_with("HTTP/1.1 401 "), || text)
    });
}

fn chunks(table: &mut Table) {
    for (name, headers) in [
        ("encoding-identity", "transfer-encoding: identity\r\n"),
        (
            "encoding-of-gzip-last",
            "transfer-encoding: chunked, gzip\r\n",
        ),
        ("encoding-unknown", "transfer-encoding: xchunked\r\n"),
        ("encoding-with-a-tab", "transfer-encoding: \x0bchunked\r\n"),
        ("encoding-with-a-space", "transfer-encoding : chunked\r\n"),
        ("encoding-folded", "transfer-encoding:\r\n chunked\r\n"),
    ] {
        table.row(name, move |stage| {
            bad_head(stage, &hiding(headers, &format!("0\r\n\r\n{HIDDEN}")))
        });
    }
    table.row("encoding-in-http-1.0", |stage| {
        let request = format!(
            "POST /open/p/{FETCH} HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"
        );
        bad_head(stage, request.as_bytes())
    });
    for (name, chunk) in [
        ("chunk-size-beyond-64-bits", "10000000000000004\r\n0000\r\n"),
        ("chunk-size-negative", "-4\r\n0000\r\n"),
        ("chunk-size-of-0x", "0x4\r\n0000\r\n"),
        ("chunk-size-of-words", "four\r\n0000\r\n"),
        ("chunk-size-of-nothing", "\r\n0000\r\n"),
        ("chunk-without-end", "4\r\n0000xx"),
        ("chunk-ends-with-newline", "4\n0000\n"),
        ("chunk-ends-with-return", "4\r0000\r"),
        ("chunk-larger-than-it-says", "2\r\n0000\r\n"),
    ] {
        table.row(name, move |stage| {
            let body = format!("{chunk}0\r\n\r\n{HIDDEN}");
            let text = one_answer(stage, &hiding("transfer-encoding: chunked\r\n", &body))?;
            require(!text.starts_with("HTTP/1.1 404"), || text)
        });
    }
    for (name, unit) in [
        ("chunk-extensions", ";x=y"),
        ("chunk-extension-of-zeros", ";0"),
    ] {
        table.row(name, move |stage| {
            let body = format!("4{}\r\n0000\r\n0\r\n\r\n", unit.repeat(100_000));
            one_answer(stage, &hiding("transfer-encoding: chunked\r\n", &body)).map(|_| ())
        });
    }
    table.row("trailers-without-end", |stage| {
        let body = format!("4\r\n0000\r\n0\r\n{}", "x: y\r\n".repeat(100_000));
        one_answer(stage, &hiding("transfer-encoding: chunked\r\n", &body)).map(|_| ())
    });
    table.row("trailer-with-a-token", |stage| {
        let token = stage.token("alice");
        let head = post_head("vault/x", FETCH, V2);
        let request = format!(
            "{head}transfer-encoding: chunked\r\ntrailer: authorization\r\n\r\n0\r\n{token}\r\n"
        );
        let text = one_answer(stage, request.as_bytes())?;
        require(text.starts_with("HTTP/1.1 401 "), || text)
    });
}

fn heads(table: &mut Table) {
    for (name, header) in [
        ("header-folded", "x: y\r\n z: w\r\n"),
        ("header-with-a-nul", "x: a\0b\r\n"),
        ("header-with-a-return", "x: a\rb: c\r\n"),
        ("header-without-a-name", ": y\r\n"),
        ("header-without-a-colon", "x\r\n"),
        ("header-with-a-space-before", " x: y\r\n"),
        ("header-name-with-a-space", "x y: z\r\n"),
    ] {
        table.row(name, move |stage| {
            let request = format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{header}\r\n");
            bad_head(stage, request.as_bytes())?;
            stage.logged_refusal("malformed")
        });
    }
    table.row("header-too-large", |stage| {
        let request = format!(
            "GET /healthz HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n",
            "y".repeat(1 << 20)
        );
        let text = one_answer(stage, request.as_bytes())?;
        require(text.starts_with("HTTP/1.1 431 "), || text)?;
        stage.logged_refusal("too large")
    });
    table.row("headers-too-many", |stage| {
        let request = format!(
            "GET /healthz HTTP/1.1\r\nhost: x\r\n{}\r\n",
            "x: y\r\n".repeat(1000)
        );
        let text = one_answer(stage, request.as_bytes())?;
        require(text.starts_with("HTTP/1.1 431 "), || text)
    });
    for (name, hosts) in [("no-host", ""), ("two-hosts", "host: x\r\nhost: y\r\n")] {
        table.row(name, move |stage| {
            let answer = stage.ask(format!("GET /healthz HTTP/1.1\r\n{hosts}\r\n"))?;
            refused(&answer, 400)
        });
    }
}

fn lines(table: &mut Table) {
    for (name, line) in [
        ("version-0.9", "GET /healthz"),
        ("version-3", "GET /healthz HTTP/3.0"),
        ("version-of-words", "GET /healthz HTTP/x"),
        ("line-with-a-nul", "GET /health\0z HTTP/1.1"),
        ("line-of-two-paths", "GET /healthz /x HTTP/1.1"),
        ("line-of-nothing", " "),
        (
            "target-of-another-scheme",
            "GET file:///etc/passwd HTTP/1.1",
        ),
        ("method-with-a-bracket", "G(ET /healthz HTTP/1.1"),
    ] {
        table.row(name, move |stage| {
            bad_head(stage, format!("{line}\r\nhost: x\r\n\r\n").as_bytes())
        });
    }
    table.row("methods", |stage| {
        for method in [
            "TRACE", "PUT", "DELETE", "PATCH", "OPTIONS", "get", "PROPFIND", "X",
        ] {
            let request = get("/open/p/info/refs?service=git-upload-pack", "");
            let answer = stage.ask(request.replacen("GET", method, 1))?;
            require(answer.status == 405, || format!("{method}: {answer:?}"))?;
        }
        stage.logged(405, "")
    });
    for (name, line, status) in [
        (
            "target-absolute",
            "GET http://elsewhere/hidden HTTP/1.1",
            404,
        ),
        ("target-asterisk", "OPTIONS * HTTP/1.1", 400),
        ("target-of-connect", "CONNECT elsewhere:443 HTTP/1.1", 400),
    ] {
        table.row(name, move |stage| {
            let answer = stage.ask(format!("{line}\r\nhost: x\r\n\r\n"))?;
            refused(&answer, status)
        });
    }
    table.row("header-in-the-path", |stage| {
        let path = "/open/p%0d%0ax-evil:%20yes%0d%0a/info/refs?service=git-upload-pack";
        let answer = stage.ask(get(path, ""))?;
        require(answer.header("x-evil").is_none(), || format!("{answer:?}"))?;
        refused(&answer, 400)
    });
    table.row("override-headers", |stage| {
        let headers = "x-http-method-override: DELETE\r\nx-forwarded-for: 127.0.0.1\r\n\
            x-original-url: /metrics\r\nx-rewrite-url: /metrics\r\nx-request-id: mine\r\n\
            x-remote-user: alice\r\nremote-user: alice\r\n";
        let answer = stage.ask(post("vault/x", FETCH, headers, b"0000"))?;
        refused(&answer, 401)?;
        require(answer.header("x-request-id") != Some("mine"), || {
            format!("{answer:?}")
        })
    });
    table.row("pipelined-after-a-refusal", |stage| {
        let mut bytes = post("vault/x", FETCH, "", b"0000");
        bytes.extend_from_slice(get("/healthz", "").as_bytes());
        let mut connection = stage.connect();
        connection.send(bytes);
        refused(&connection.answer()?, 401)?;
        // The next one is answered, or the connection is closed: nothing else.
        match connection.answer() {
            Ok(answer) => require(answer.status == 200, || format!("{answer:?}")),
            Err(_) => Ok(()),
        }
    });
}

//! Attacks over HTTP/2.

use super::Table;
use crate::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, HEADERS, PING, PRIORITY, RESET,
    SETTINGS, WINDOW_UPDATE, field, fields, frame,
};
use crate::stage::{Stage, Verdict, listing, require};
use crate::wire::{FETCH, fetch, refs_of};

/// Times of a second.
const SHORT: &str = "head_seconds = 1\nidle_seconds = 1\nstall_seconds = 1\nwait_seconds = 1";

pub(super) fn table() -> Table {
    let mut table = Table::new("streams");
    floods(&mut table);
    windows(&mut table);
    order(&mut table);
    table
}

/// A GET that ends its stream.
fn health() -> Vec<u8> {
    fields("GET", "/healthz", &[])
}

/// Sends frames, and requires that the server is shutting down.
fn flood(stage: &mut Stage, make: impl Fn(u32) -> Vec<u8>, count: u32) -> Verdict {
    stage.limits(SHORT);
    let mut attack = stage.frames();
    let mut bytes = Vec::new();
    for number in 0..count {
        bytes.extend(make(number));
        if bytes.len() > 1 << 16 {
            attack.send(&bytes);
            bytes.clear();
        }
    }
    attack.send(&bytes);
    attack.ends().map(|_| ())
}

fn floods(table: &mut Table) {
    table.row("rapid-reset", |stage| {
        let request = fields("GET", &refs_of("open/p", FETCH), &[]);
        flood(
            stage,
            |number| {
                let stream = 2 * number + 1;
                [
                    frame(HEADERS, END_HEADERS | END_STREAM, stream, &request),
                    frame(RESET, 0, stream, &8_u32.to_be_bytes()),
                ]
                .concat()
            },
            5000,
        )
    });
    table.row("resets-by-errors", |stage| {
        // The server resets streams with a window update of nothing.
        let request = health();
        flood(
            stage,
            |number| {
                let stream = 2 * number + 1;
                [
                    frame(HEADERS, END_HEADERS, stream, &request),
                    frame(WINDOW_UPDATE, 0, stream, &0_u32.to_be_bytes()),
                ]
                .concat()
            },
            5000,
        )
    });
    table.row("continuations-without-end", |stage| {
        let part = field("x", &"y".repeat(120)).repeat(100);
        flood(
            stage,
            |number| match number {
                0 => frame(HEADERS, 0, 1, &health()),
                _ => frame(CONTINUATION, 0, 1, &part),
            },
            500,
        )
    });
    table.row("empty-continuations", |stage| {
        flood(
            stage,
            |number| match number {
                0 => frame(HEADERS, 0, 1, &health()),
                _ => frame(CONTINUATION, 0, 1, &[]),
            },
            100_000,
        )
    });
    table.row("settings", |stage| {
        flood(
            stage,
            |_| frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 1]),
            50_000,
        )
    });
    table.row("pings", |stage| {
        flood(stage, |_| frame(PING, 0, 0, &[0; 8]), 50_000)
    });
    table.row("priorities", |stage| {
        flood(
            stage,
            |number| frame(PRIORITY, 0, 2 * number + 1, &[0, 0, 0, 0, 1]),
            50_000,
        )
    });
    table.row("empty-data", |stage| {
        let head = fields(
            "POST",
            "/open/p/git-upload-pack",
            &[("content-type", "application/x-git-upload-pack-request")],
        );
        flood(
            stage,
            |number| match number {
                0 => frame(HEADERS, END_HEADERS, 1, &head),
                _ => frame(DATA, 0, 1, &[]),
            },
            100_000,
        )
    });
    table.row("padding", |stage| {
        let head = fields(
            "POST",
            "/open/p/git-upload-pack",
            &[("content-type", "application/x-git-upload-pack-request")],
        );
        let mut padded = vec![255];
        padded.extend([0; 255]);
        flood(
            stage,
            |number| match number {
                0 => frame(HEADERS, END_HEADERS, 1, &head),
                _ => frame(DATA, 8, 1, &padded),
            },
            20_000,
        )
    });
    table.row("unknown-frames", |stage| {
        flood(stage, |_| frame(0x77, 0, 0, &[0; 100]), 20_000)
    });
    table.row("table-of-headers", |stage| {
        // One large field, and many references to it.
        let mut block = health();
        block.push(0x40);
        block.extend([1, b'x', 0x7f, 0x81, 0x1e]);
        block.extend([b'y'; 4000]);
        block.extend([0xbe; 10_000]);
        flood(
            stage,
            |number| match number {
                0 => frame(HEADERS, END_HEADERS | END_STREAM, 1, &block),
                _ => Vec::new(),
            },
            1,
        )
    });
    table.row("requests-on-one-connection", |stage| {
        stage.limits(SHORT);
        let mut attack = stage.frames();
        for stream in (1..4000).step_by(2) {
            attack.request(stream, END_STREAM, &health());
            attack.until(|frame| frame.stream == stream && frame.flags & END_STREAM != 0)?;
        }
        attack.ends().map(|_| ())
    });
}

/// Begins a fetch of a large repository on a stream.
fn begin_fetch(stage: &Stage, attack: &mut Frames, stream: u32) {
    let head = stage
        .site
        .git(&stage.repository("open/big"), &["rev-parse", "HEAD"]);
    let head_fields = fields(
        "POST",
        "/open/big/git-upload-pack",
        &[
            ("content-type", "application/x-git-upload-pack-request"),
            ("git-protocol", "version=2"),
        ],
    );
    attack.request(stream, 0, &head_fields);
    attack.send(frame(DATA, END_STREAM, stream, &fetch(&[&head])));
}

fn windows(table: &mut Table) {
    table.row("window-that-is-never-opened", |stage| {
        stage.limits(SHORT);
        stage.site.add_big();
        let mut attack = stage.frames();
        for stream in [1, 3, 5] {
            begin_fetch(stage, &mut attack, stream);
        }
        stage.logged(200, "before the end of the response")?;
        attack.ends().map(|_| ())
    });
    table.row("window-of-nothing-with-pings", |stage| {
        // The client lives, and answers, but takes nothing.
        stage.limits(SHORT);
        let mut attack = stage.frames();
        attack.send(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
        for stream in (1..40).step_by(2) {
            attack.request(
                stream,
                END_STREAM,
                &fields("GET", &refs_of("open/p", FETCH), &[]),
            );
        }
        loop {
            match attack.next() {
                Ok(got) if got.kind == PING && got.flags & ACK == 0 => {
                    attack.send(frame(PING, ACK, 0, &got.payload));
                }
                Ok(got) if got.kind == SETTINGS && got.flags & ACK == 0 => {
                    attack.send(frame(SETTINGS, ACK, 0, &[]));
                }
                Ok(_) => {}
                Err(_) => return attack.ends().map(|_| ()),
            }
        }
    });
    table.row("window-opened-byte-by-byte", |stage| {
        stage.limits(SHORT);
        stage.site.add_big();
        let mut attack = stage.frames();
        attack.send(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1]));
        begin_fetch(stage, &mut attack, 1);
        loop {
            match attack.next() {
                Ok(got) if got.kind == DATA && !got.payload.is_empty() => {
                    attack.send(frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes()));
                }
                Ok(got) if got.kind == PING && got.flags & ACK == 0 => {
                    attack.send(frame(PING, ACK, 0, &got.payload));
                }
                Ok(_) => {}
                Err(_) => return attack.ends().map(|_| ()),
            }
        }
    });
    table.row("window-that-overflows", |stage| {
        stage.limits(SHORT);
        let mut attack = stage.frames();
        attack.send(frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes()));
        let reason = attack.ends()?;
        require(reason == Some(3), || format!("{reason:?}"))
    });
    table.row("body-that-does-not-come", |stage| {
        stage.limits(SHORT);
        let mut attack = stage.frames();
        let head = fields(
            "POST",
            "/open/p/git-upload-pack",
            &[
                ("content-type", "application/x-git-upload-pack-request"),
                ("git-protocol", "version=2"),
            ],
        );
        for stream in (1..20).step_by(2) {
            attack.request(stream, 0, &head);
        }
        attack.ends().map(|_| ())
    });
}

fn order(table: &mut Table) {
    for (name, bytes) in [
        ("frame-too-large", frame(DATA, 0, 1, &vec![0; 20_000])),
        ("data-without-a-request", frame(DATA, 0, 1, b"x")),
        (
            "even-stream",
            frame(HEADERS, END_HEADERS | END_STREAM, 2, &health()),
        ),
        (
            "stream-zero",
            frame(HEADERS, END_HEADERS | END_STREAM, 0, &health()),
        ),
        ("ping-too-short", frame(PING, 0, 0, b"x")),
        ("settings-too-short", frame(SETTINGS, 0, 0, b"x")),
        (
            "headers-that-are-none",
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xff; 50]),
        ),
        (
            "continuation-of-nothing",
            frame(CONTINUATION, END_HEADERS, 1, &health()),
        ),
        (
            "padding-longer-than-the-frame",
            frame(HEADERS, END_HEADERS | 8, 1, &[200, 0x82]),
        ),
        (
            "another-stream-within-headers",
            [frame(HEADERS, 0, 1, &health()), frame(PING, 0, 0, &[0; 8])].concat(),
        ),
    ] {
        table.row(name, move |stage| {
            stage.limits(SHORT);
            let mut attack = stage.frames();
            attack.send(&bytes);
            let reason = attack.ends()?;
            require(reason.is_some_and(|code| code != 0), || {
                format!("{reason:?}")
            })?;
            stage.logged_refusal("HTTP/2")
        });
    }
    for (name, block) in [
        (
            "no-path",
            [field(":method", "GET"), field(":scheme", "http")].concat(),
        ),
        ("two-paths", [health(), field(":path", "/x")].concat()),
        ("upper-case", [health(), field("X", "y")].concat()),
        (
            "connection-header",
            [health(), field("connection", "close")].concat(),
        ),
        (
            "encoding-header",
            [health(), field("transfer-encoding", "chunked")].concat(),
        ),
        (
            "newline-in-a-value",
            [health(), field("x", "a\r\nb: c")].concat(),
        ),
        (
            "newline-in-the-path",
            fields("GET", "/healthz HTTP/1.1\r\nx: y", &[]),
        ),
        (
            "length-that-lies",
            [health(), field("content-length", "100")].concat(),
        ),
    ] {
        table.row(name, move |stage| {
            stage.limits(SHORT);
            let mut attack = stage.frames();
            attack.request(1, END_STREAM, &block);
            // A reset, an error, or an answer with 400: not the content.
            loop {
                match attack.next() {
                    Ok(got) if got.kind == DATA => {
                        return require(got.payload != b"ok\n", || "it is answered".to_owned());
                    }
                    Ok(got) if got.kind == RESET => return Ok(()),
                    Ok(_) => {}
                    Err(_) => return attack.ends().map(|_| ()),
                }
            }
        });
    }
    table.row("more-streams-than-allowed", |stage| {
        stage.limits("stall_seconds = 2\nhead_seconds = 2\nidle_seconds = 2");
        let mut attack = stage.frames();
        let head = fields(
            "POST",
            "/open/p/git-upload-pack",
            &[
                ("content-type", "application/x-git-upload-pack-request"),
                ("git-protocol", "version=2"),
            ],
        );
        for stream in (1..80).step_by(2) {
            attack.request(stream, 0, &head);
        }
        let refused = attack.until(|frame| frame.kind == RESET)?;
        require(refused.stream > 32, || format!("{refused:?}"))?;
        // The first ones are served.
        attack.send(frame(DATA, END_STREAM, 1, &listing()));
        attack
            .until(|frame| frame.stream == 1 && frame.kind == DATA)
            .map(|_| ())
    });
}

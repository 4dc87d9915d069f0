//! Small requests that would cost the server much work.

use super::Table;
use crate::pack::{self, BLOB, COMMIT, Pack, TREE, delta, gzip_bomb, zlib_bomb};
use crate::stage::{Stage, Verdict, options, refused, require};
use crate::wire::{
    FETCH, MISSING, PUSH, V2, changes, changes_with, command, create, no_pack, packet, packets,
    post, post_head, unbanded,
};

const GZIP: &str = "content-encoding: gzip\r\n";

pub(super) fn table() -> Table {
    let mut table = Table::new("bombs");
    gzip(&mut table);
    objects(&mut table);
    deltas(&mut table);
    fetches(&mut table);
    pushes(&mut table);
    table
}

/// Returns `start` followed by many copies of `unit`, compressed.
fn compressed(start: &[u8], unit: &[u8], count: usize) -> Vec<u8> {
    let mut content = start.to_vec();
    content.extend(unit.repeat(count));
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::fastest());
    let mut bytes = vec![0; compressor.gzip_compress_bound(content.len())];
    let length = compressor.gzip_compress(&content, &mut bytes);
    bytes.truncate(length.expect("there is room"));
    bytes
}

fn gzip(table: &mut Table) {
    table.row("gzip-of-a-fetch", |stage| {
        stage.limits("fetch_bytes = 1000000");
        let start = packet("command=ls-refs\n");
        let bomb = gzip_bomb(&start, 256 << 20);
        let answer = stage.ask(post("open/p", FETCH, &format!("{V2}{GZIP}"), &bomb))?;
        require(answer.status >= 400, || format!("{answer:?}"))
    });
    table.row("gzip-of-many-packets", |stage| {
        stage.limits("fetch_bytes = 1000000");
        let start = [packet("command=ls-refs\n"), b"0001".to_vec()].concat();
        let bomb = compressed(&start, &packet("x".repeat(60_000)), 1000);
        let answer = stage.ask(post("open/p", FETCH, &format!("{V2}{GZIP}"), &bomb))?;
        require(answer.status >= 400, || format!("{answer:?}"))
    });
    table.row("gzip-of-a-push", |stage| {
        stage.limits("push_bytes = 1000000");
        let mut start = changes([create(MISSING, "refs/heads/x")]);
        start.extend_from_slice(b"PACK\0\0\0\x02\0\0\0\x01");
        let bomb = gzip_bomb(&start, 256 << 20);
        let headers = format!("{}{GZIP}", stage.token("alice"));
        let answer = stage.ask(post("team/a", PUSH, &headers, &bomb))?;
        let text = String::from_utf8_lossy(&unbanded(&answer.body)).into_owned();
        require(!text.contains("ok refs/"), || text)
    });
    table.row("gzip-of-empty-parts", |stage| {
        stage.limits("fetch_bytes = 2000000\nstall_seconds = 5");
        let bomb = gzip_bomb(b"", 0).repeat(90_000);
        let answer = stage.ask(post("open/p", FETCH, &format!("{V2}{GZIP}"), &bomb))?;
        require(answer.body.is_empty() || answer.status >= 400, || {
            format!("{answer:?}")
        })
    });
    table.row("gzip-in-gzip", |stage| {
        let headers = format!("{V2}content-encoding: gzip, gzip\r\n");
        let answer = stage.ask(post("open/p", FETCH, &headers, b"x"))?;
        refused(&answer, 400)
    });
    for (name, bytes) in [
        ("gzip-of-nothing", b"".to_vec()),
        ("gzip-that-is-none", b"0014command=ls-refs\n0000".to_vec()),
        (
            "gzip-cut",
            gzip_bomb(b"0014command=ls-refs\n", 1000)[..30].to_vec(),
        ),
    ] {
        table.row(name, move |stage| {
            let request = post("open/p", FETCH, &format!("{V2}{GZIP}"), &bytes);
            let answer = stage.ask(request)?;
            require(!answer.text().contains("refs/heads"), || {
                format!("{answer:?}")
            })
        });
    }
}

/// Pushes a pack that must be refused because of its content.
fn bad_pack(stage: &mut Stage, id: &str, bytes: &[u8]) -> Verdict {
    let commands = changes([create(id, "refs/heads/bomb")]);
    let answer = stage.push("alice", "team/a", &commands, bytes)?;
    let text = answer.text();
    let is_reported = text.contains("ng refs/heads/bomb") || answer.status >= 400;
    require(is_reported, || format!("{answer:?} {text}"))?;
    require(!stage.site.has("team/a", id), || {
        "the object is there".to_owned()
    })
}

fn objects(table: &mut Table) {
    const LARGE: u64 = 1 << 30;
    for (name, kind, noun) in [
        ("commit-of-a-gigabyte", COMMIT, "commit"),
        ("tree-of-a-gigabyte", TREE, "tree"),
    ] {
        table.row(name, move |stage| {
            stage.most_mebibytes = 384;
            let bomb = zlib_bomb(b"", LARGE);
            let id = pack::hex(&pack::id(noun, b"anything"));
            bad_pack(stage, &id, &Pack::new().entry(kind, LARGE, &bomb).finish())
        });
    }
    table.row("many-large-objects", |stage| {
        stage.most_mebibytes = 384;
        let bomb = zlib_bomb(b"", 64 << 20);
        let mut made = Pack::new();
        for _ in 0..50 {
            made = made.entry(TREE, 64 << 20, &bomb);
        }
        bad_pack(stage, MISSING, &made.finish())
    });
    for (name, claimed, content) in [
        ("object-claims-an-exabyte", 1_u64 << 60, &b"x"[..]),
        ("object-is-larger-than-it-says", 1, b"more than one byte"),
        ("object-is-smaller-than-it-says", 1000, b"x"),
    ] {
        table.row(name, move |stage| {
            let made = Pack::new().entry(BLOB, claimed, &pack::zlib(content));
            bad_pack(stage, MISSING, &made.finish())
        });
    }
    for (name, claimed) in [
        ("pack-claims-4-billion-objects", u32::MAX),
        ("pack-claims-one-more", 2),
    ] {
        table.row(name, move |stage| {
            let made = Pack::new().claim(claimed).object(BLOB, b"x");
            bad_pack(stage, MISSING, &made.finish())
        });
    }
    table.row("deep-trees", |stage| {
        let (mut made, mut id) = (Pack::new(), pack::id("blob", b""));
        made = made.object(BLOB, b"");
        for depth in 0..5000 {
            let mode: &[u8] = if depth == 0 {
                b"100644 a\0"
            } else {
                b"40000 a\0"
            };
            let tree = [mode, &id].concat();
            made = made.object(TREE, &tree);
            id = pack::id("tree", &tree);
        }
        let who = "a <a@x> 1112911993 -0700";
        let text = format!(
            "tree {}\nauthor {who}\ncommitter {who}\n\nx\n",
            pack::hex(&id)
        );
        let commit = pack::hex(&pack::id("commit", text.as_bytes()));
        let bytes = made.object(COMMIT, text.as_bytes()).finish();
        // It is honest, only deep.
        stage.allow("own/m", "refs/heads/deep");
        let commands = changes([create(&commit, "refs/heads/deep")]);
        let answer = stage.push("mallory", "own/m", &commands, &bytes)?;
        require(answer.text().contains("refs/heads/deep"), || {
            format!("{answer:?}")
        })?;
        let body = crate::wire::fetch(&[&commit]);
        stage.fetch(Some("mallory"), "own/m", &body).map(|_| ())
    });
}

fn deltas(table: &mut Table) {
    table.row("delta-chain", |stage| {
        let base = b"a base for many deltas".to_vec();
        let mut made = Pack::new().object(BLOB, &base);
        let mut last = 12;
        for _ in 0..20_000 {
            let here = made.position();
            // Copies the whole base.
            let copy = delta(22, 22, &[0x90, 22]);
            made = made.offset_delta(here - last, &copy);
            last = here;
        }
        bad_pack(stage, MISSING, &made.finish())
    });
    table.row("delta-of-a-terabyte", |stage| {
        let made = Pack::new().object(BLOB, b"base");
        let here = made.position();
        let made = made.offset_delta(here - 12, &delta(4, 1 << 40, &[0x90, 4]));
        bad_pack(stage, MISSING, &made.finish())
    });
    table.row("delta-that-repeats", |stage| {
        stage.most_mebibytes = 384;
        let base = vec![b'x'; 1 << 16];
        let mut made = Pack::new().object(TREE, &base);
        let here = made.position();
        let copies = [0x80_u8].repeat(16_384);
        made = made.offset_delta(here - 12, &delta(1 << 16, 1 << 30, &copies));
        bad_pack(stage, MISSING, &made.finish())
    });
    table.row("delta-of-itself", |stage| {
        let id = pack::id("blob", b"anything");
        let made = Pack::new().reference_delta(id, &delta(8, 8, &[0x90, 8]));
        bad_pack(stage, MISSING, &made.finish())
    });
    table.row("delta-before-the-pack", |stage| {
        let made = Pack::new().offset_delta(1 << 40, &delta(8, 8, &[0x90, 8]));
        bad_pack(stage, MISSING, &made.finish())
    });
}

/// Sends a compressed fetch request with many equal lines. The server may respond or refuse, within
/// a limited time.
fn many_lines(stage: &mut Stage, start: &[u8], line: &str, count: usize) -> Verdict {
    let line = line
        .replace("FIRST", &stage.site.ids.first)
        .replace("SECOND", &stage.site.ids.second);
    let unit: Vec<u8> = line.split('|').flat_map(packet).collect();
    let bomb = compressed(start, &unit, count);
    let answer = stage.ask(post("open/p", FETCH, &format!("{V2}{GZIP}"), &bomb));
    require(answer.is_ok(), || format!("{answer:?}"))
}

fn fetches(table: &mut Table) {
    let begin = |name: &str| {
        let mut start = packet(format!("command={name}\n"));
        start.extend(packet("object-format=sha1"));
        start.extend_from_slice(b"0001");
        start
    };
    for (name, line, count) in [
        ("wants", "want SECOND", 300_000),
        ("haves", "want SECOND|have FIRST", 150_000),
        (
            "haves-of-nothing",
            "have FIRST|have 1111111111111111111111111111111111111111",
            150_000,
        ),
        ("shallow-lines", "want SECOND|shallow FIRST", 150_000),
        (
            "deepen-not-lines",
            "want SECOND|deepen-not refs/heads/main",
            10_000,
        ),
    ] {
        let start = begin("fetch");
        table.row(format!("many-{name}"), move |stage| {
            many_lines(stage, &start, line, count)
        });
    }
    let start = begin("ls-refs");
    table.row("many-prefixes", move |stage| {
        many_lines(stage, &start, "ref-prefix refs/heads/", 500_000)
    });
    table.row("many-capabilities", |stage| {
        many_lines(
            stage,
            &packet("command=ls-refs\n"),
            "server-option=x",
            500_000,
        )
    });
    table.row("nested-filters", |stage| {
        stage.configure("open/p", "uploadpack.allowFilter", "true");
        let mut filter = "blob:none".to_owned();
        while filter.len() < 60_000 {
            let inner = filter
                .replace('%', "%25")
                .replace(':', "%3A")
                .replace('+', "%2B");
            filter = format!("combine:{inner}+tree%3A1");
        }
        filter.truncate(60_000);
        let id = stage.site.ids.second.clone();
        let body = command(
            "fetch",
            [
                format!("want {id}"),
                format!("filter {filter}"),
                "done".into(),
            ],
        );
        stage.fetch(None, "open/p", &body).map(|_| ())
    });
    table.row("want-refs-of-nothing", |stage| {
        stage.configure("open/p", "uploadpack.allowRefInWant", "true");
        let body = command("fetch", vec!["want-ref refs/heads/none"; 1000]);
        let answer = stage.fetch(None, "open/p", &body)?;
        require(answer.text().contains("ERR unknown ref"), || {
            format!("{answer:?}")
        })
    });
}

fn pushes(table: &mut Table) {
    table.row("many-commands", |stage| {
        stage.limits("command_bytes = 16777216");
        stage.most_mebibytes = 384;
        let lines = (0..200_000)
            .map(|number| format!("{MISSING} {} refs/heads/x{number}", stage.site.ids.first));
        let commands = changes(lines.collect::<Vec<_>>());
        let answer = stage.push("mallory", "own/ruled", &commands, &no_pack())?;
        let text = answer.text();
        require(!text.contains("ok refs/"), || {
            "a ref was changed".to_owned()
        })
    });
    table.row("many-commands-that-a-rule-refuses", |stage| {
        stage.most_mebibytes = 384;
        let line = format!("{MISSING} {} refs/heads/main", stage.site.ids.first);
        let commands = changes(vec![line; 100_000]);
        let answer = stage.push("bob", "team/a", &commands, &no_pack())?;
        refused(&answer, 403)
    });
    table.row("commands-without-end", |stage| {
        let token = stage.token("alice");
        let mut endless = stage.connect();
        endless.send(post_head("team/a", PUSH, &token));
        endless.send("transfer-encoding: chunked\r\n\r\n");
        let line = packet(create(MISSING, &format!("refs/heads/{}", "x".repeat(200))));
        let chunk = line.repeat(4000);
        for _ in 0..75 {
            endless
                .send(format!("{:x}\r\n", chunk.len()))
                .send(&chunk)
                .send("\r\n");
        }
        endless.send("0\r\n\r\n");
        let answer = endless.answer()?;
        stage.most_mebibytes = 384;
        refused(&answer, 400)
    });
    table.row("incomplete-commits-for-many-refs", |stage| {
        let who = "a <a@x> 1112911993 -0700";
        let (mut made, mut parent) = (Pack::new(), MISSING.to_owned());
        for number in 0..2000 {
            let tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
            let text = format!(
                "tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\n{number}\n"
            );
            made = made.object(COMMIT, text.as_bytes());
            parent = pack::hex(&pack::id("commit", text.as_bytes()));
        }
        let lines = (0..2000).map(|number| create(&parent, &format!("refs/heads/x{number}")));
        let commands = changes(lines);
        stage.refuses_push(
            "mallory",
            "own/m",
            &commands,
            &made.finish(),
            "missing necessary objects",
        )
    });
    for (name, option, count) in [
        ("many-push-options", "x".to_owned(), 20_000),
        ("large-push-option", "x".repeat(60_000), 60),
        ("push-options-without-end", "x".repeat(60_000), 200),
    ] {
        table.row(name, move |stage| {
            stage.configure("team/a", "receive.advertisePushOptions", "true");
            stage.hook("team/a", "pre-receive", "exit 0");
            let features = "report-status side-band-64k push-options";
            let id = stage.site.ids.first.clone();
            let mut body = changes_with(features, [create(&id, "refs/heads/options")]);
            body.extend(options(vec![option.clone(); count]));
            let answer = stage.push("alice", "team/a", &body, &no_pack())?;
            stage.allow("team/a", "refs/heads/options");
            let text = answer.text();
            let is_reported = text.contains("refs/heads/options") || answer.status >= 400;
            require(is_reported, || format!("{answer:?} {text}"))
        });
    }
    table.row("packets-of-nothing", |stage| {
        let body = b"0004".repeat(1 << 20);
        let token = stage.token("alice");
        let answer = stage.ask(post("team/a", PUSH, &token, &body))?;
        require(answer.status >= 400, || format!("{answer:?}"))?;
        let answer = stage.fetch(None, "open/p", &packets(vec![b""; 1 << 20]))?;
        require(answer.status >= 400, || format!("{answer:?}"))
    });
}

//! Requests that make the server hold memory or a slot that other clients need.

use std::net::Ipv4Addr;

use super::Table;
use crate::client::Connection;
use crate::frames::{ACK, DATA, SETTINGS, WINDOW_UPDATE, fields, frame};
use crate::stage::{Stage, Verdict, listing, refused, require};
use crate::wire::{
    FETCH, MISSING, PUSH, V2, create, git_request, packet, packets, post, post_head,
};

const GZIP: &str = "content-encoding: gzip\r\n";

pub(super) fn table() -> Table {
    let mut table = Table::new("budgets");
    arguments(&mut table);
    commands(&mut table);
    bodies(&mut table);
    slots(&mut table);
    table
}

/// The second and the third address of attackers.
const OTHERS: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 67), Ipv4Addr::new(127, 0, 0, 68)];

/// Returns a compressed `ls-refs` request with `count` prefixes of almost 64 KiB.
fn long_prefixes(count: usize) -> Vec<u8> {
    let mut content = start_of_listing();
    let prefix = format!("ref-prefix {}", "x".repeat(65_500));
    content.extend(packet(prefix).repeat(count));
    content.extend_from_slice(b"0000");
    compressed(&content)
}

fn start_of_listing() -> Vec<u8> {
    let mut content = packet("command=ls-refs\n");
    content.extend(packet("object-format=sha1"));
    content.extend_from_slice(b"0001");
    content
}

fn start_of_fetch() -> Vec<u8> {
    let mut content = packet("command=fetch\n");
    content.extend(packet("object-format=sha1"));
    content.extend_from_slice(b"0001");
    content
}

fn compressed(content: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut bytes = vec![0; compressor.gzip_compress_bound(content.len())];
    let length = compressor.gzip_compress(content, &mut bytes);
    bytes.truncate(length.expect("there is room"));
    bytes
}

fn arguments(table: &mut Table) {
    table.row("long-prefixes", |stage| {
        stage.most_mebibytes = 64;
        let body = long_prefixes(1000);
        require(body.len() < 100_000, || format!("{} bytes", body.len()))?;
        let request = post("open/p", FETCH, &format!("{V2}{GZIP}"), &body);
        let mut all: Vec<Connection> = (0..3).map(|_| stage.connect()).collect();
        for one in &mut all {
            one.send(&request);
        }
        for one in &mut all {
            let text = one.answer()?.text();
            require(
                text.contains("the prefixes of ls-refs have more than"),
                || text.clone(),
            )?;
        }
        Ok(())
    });
    table.row("long-prefixes-at-their-bound", |stage| {
        stage.most_mebibytes = 64;
        let body = long_prefixes(64);
        let answer = stage.ask(post("open/p", FETCH, &format!("{V2}{GZIP}"), &body))?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("long-prefixes-over-git", |stage| {
        stage.most_mebibytes = 64;
        let mut client = stage.connect_git();
        client.send(git_request("/open/p", "\0version=2\0"));
        client.send(start_of_listing());
        let prefix = packet(format!("ref-prefix {}", "x".repeat(65_500)));
        for _ in 0..100 {
            client.send(&prefix);
        }
        client.ends()?;
        stage.logged_on("git", 400, "the prefixes of ls-refs have more than")
    });
    table.row("prefixes-that-are-not-finished", |stage| {
        // What strangers hold together leaves room for users.
        stage.limits("memory_bytes = 16777216\nstall_seconds = 30\nwait_seconds = 1");
        stage.most_mebibytes = 96;
        let mut content = start_of_listing();
        let prefix = packet(format!("ref-prefix {}", "x".repeat(65_000)));
        content.extend(prefix.repeat(60));
        let request = post("open/p", FETCH, V2, &[&content[..], b"0000"].concat());
        let head = post_head("open/p", FETCH, V2);
        let sources = [crate::client::ATTACKER, OTHERS[0], OTHERS[1]];
        let mut held: Vec<Connection> = Vec::new();
        // Three have room in the end. Those that come at once may refuse each other, so others follow.
        let is_refused = crate::server::wait_until(|| {
            let mut one = stage.connect_from(sources[held.len() % sources.len()]);
            one.send(format!("{head}content-length: 99999999\r\n\r\n"));
            one.send(&content);
            held.push(one);
            let answer = stage.connect().send(&request).answer();
            answer.is_ok_and(|answer| answer.text().contains("hold too much memory"))
        });
        require(is_refused, || "strangers hold all memory".to_owned())?;
        let answer = stage.fetch(Some("bob"), "team/a", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("arguments-beyond-the-memory-of-a-user", |stage| {
        // A user holds half of the memory at most, and is told to come later, whatever the protocol is.
        stage.limits("memory_bytes = 16777216");
        stage.most_mebibytes = 96;
        let over_ssh = stage.shell();
        let have = |number: usize| format!("have {number:040x}");
        let lines = (0..150_000).map(have);
        let content = [&start_of_fetch()[..], &packets(lines)].concat();
        let token = stage.token("mallory");
        let answer = stage.ask(post("own/m", FETCH, &format!("{V2}{token}"), &content))?;
        refused(&answer, 429)?;
        require(answer.header("retry-after").is_some(), || {
            format!("{answer:?}")
        })?;
        let mut git = stage.connect_git();
        git.send(git_request("/open/p", "\0version=2\0"))
            .send(&content);
        let text = String::from_utf8_lossy(&git.shut().ends()?).into_owned();
        require(
            text.contains("ERR the requests of this address hold too much memory"),
            || text.chars().rev().take(200).collect(),
        )?;
        stage.logged_on("git", 429, "hold too much memory")?;
        if over_ssh {
            let output = stage
                .ssh()
                .converse("git-upload-pack 'own/m'", "version=2", &content);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            require(text.contains("hold too much memory"), || text.clone())?;
            stage.logged_on("ssh", 429, "hold too much memory")?;
        }
        let answer = stage.fetch(Some("bob"), "team/a", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("arguments-of-many-commands-over-git", |stage| {
        // A conversation gives back what a command has held.
        stage.limits("memory_bytes = 16777216");
        let mut client = stage.connect_git();
        client.send(git_request("/open/p", "\0version=2\0"));
        let mut content = start_of_listing();
        content.extend(packet(format!("ref-prefix {}", "x".repeat(65_000))).repeat(50));
        content.extend_from_slice(b"0000");
        for _ in 0..10 {
            client.send(&content);
        }
        client.send(start_of_listing()).send("0000").shut();
        let text = String::from_utf8_lossy(&client.ends()?).into_owned();
        require(text.contains("refs/heads/main"), || text)
    });
}

/// Sends a push in chunks until the server responds or all is sent. The push must be refused.
fn refuses_pieces(stage: &mut Stage, first: &[u8], piece: &[u8], count: usize) -> Verdict {
    stage.limits("command_bytes = 16777216");
    stage.most_mebibytes = 96;
    let token = stage.token("alice");
    let mut endless = stage.connect();
    endless.send(post_head("team/a", PUSH, &token));
    endless.send("transfer-encoding: chunked\r\n\r\n");
    let mut send = |piece: &[u8]| {
        endless
            .send(format!("{:x}\r\n", piece.len()))
            .send(piece)
            .send("\r\n");
    };
    if !first.is_empty() {
        send(first);
    }
    for _ in 0..count {
        send(piece);
    }
    endless.send("0\r\n\r\n");
    let answer = endless.answer()?;
    refused(&answer, 400)?;
    let text = answer.text();
    require(
        text.contains("the ref updates of the push have more than"),
        || text.clone(),
    )
}

fn commands(table: &mut Table) {
    table.row("commands-of-60-mebibytes", |stage| {
        let line = packet(create(MISSING, &format!("refs/heads/{}", "x".repeat(200))));
        refuses_pieces(stage, b"", &line.repeat(4000), 55)
    });
    table.row("short-commands-of-60-mebibytes", |stage| {
        let line = packet(create(MISSING, "refs/heads/x"));
        refuses_pieces(stage, b"", &line.repeat(10_000), 62)
    });
    table.row("shallow-lines-of-60-mebibytes", |stage| {
        let line = packet(format!("shallow {MISSING}"));
        refuses_pieces(stage, b"", &line.repeat(10_000), 120)
    });
    table.row_on_disk(
        "certificate-of-60-mebibytes",
        "the other rows cover the same",
        |stage| {
            stage.configure("team/a", "receive.certNonceSeed", "seed");
            let first = packet("push-cert\0report-status");
            let line = packet(format!("pushee {}", "x".repeat(60_000)));
            refuses_pieces(stage, &first, &line.repeat(10), 100)
        },
    );
    table.row("commands-beyond-the-memory-of-a-user", |stage| {
        // A user holds half of the memory at most.
        stage.limits("memory_bytes = 16777216");
        stage.most_mebibytes = 96;
        let line = create(MISSING, &format!("refs/heads/{}", "x".repeat(200)));
        let content: Vec<u8> = packet(line).repeat(40_000);
        let token = stage.token("mallory");
        let body = [content, packets(Vec::<Vec<u8>>::new())].concat();
        let answer = stage.ask(post("own/m", PUSH, &token, &body))?;
        refused(&answer, 429)?;
        let answer = stage.fetch(Some("bob"), "team/a", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
}

/// Holds slots from an address, by requests whose body is missing.
fn hold_from(stage: &mut Stage, source: Ipv4Addr, count: usize) -> Vec<Connection> {
    let head = post_head("open/p", FETCH, V2);
    let connections = (0..count).map(|_| {
        let mut one = stage.connect_from(source);
        one.send(format!("{head}content-length: 1000\r\n\r\n"));
        one
    });
    connections.collect()
}

/// Bodies that the library takes before a request has its slot.
fn bodies(table: &mut Table) {
    table.row("bodies-of-http2-that-wait", |stage| {
        stage.limits("memory_bytes = 16777216\nrequests = 4\nuser_share = 50");
        stage.limits("wait_seconds = 30\nstall_seconds = 30");
        stage.most_mebibytes = 96;
        let _held = [
            hold_from(stage, OTHERS[0], 2),
            hold_from(stage, OTHERS[1], 1),
        ];
        stage.slots(3)?;
        let path = format!("/open/p/{FETCH}");
        let kind = format!("application/x-{FETCH}-request");
        let more = [
            ("content-type", kind.as_str()),
            ("git-protocol", "version=2"),
        ];
        let head = fields("POST", &path, &more);
        let mut crowd = Vec::new();
        for _ in 0..160 {
            let mut one = stage.frames();
            one.until(|frame| frame.kind == WINDOW_UPDATE && frame.stream == 0)?;
            one.send(frame(SETTINGS, ACK, 0, b""));
            for stream in [1, 3, 5, 7] {
                one.request(stream, 0, &head);
                // A quarter of a mebibyte, which is the window.
                let piece = frame(DATA, 0, stream, &[b'0'; 1 << 14]);
                (0..16).for_each(|_| _ = one.send(&piece));
            }
            crowd.push(one);
        }
        let answer = stage.fetch(Some("bob"), "team/a", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        stage.logged(429, "hold too much memory")
    });
    table.row("input-of-ssh-that-waits", |stage| {
        stage.limits("memory_bytes = 16777216\nrequests = 4\nuser_share = 50");
        stage.limits("wait_seconds = 30\nstall_seconds = 30");
        if !stage.shell() {
            return Ok(());
        }
        let _held = [stage.hold(Some("mallory")), stage.hold(Some("mallory"))];
        stage.slots(2)?;
        // A user may hold half of the memory: 32 requests that may send ahead.
        let bearer = format!("Bearer {}", stage.site.ids.token("mallory"));
        let path = format!("/own/m/{FETCH}");
        let kind = format!("application/x-{FETCH}-request");
        let more = [("content-type", kind.as_str()), ("authorization", &bearer)];
        let head = fields("POST", &path, &more);
        let mut others = [stage.frames(), stage.frames()];
        for one in &mut others {
            (0..20).for_each(|number| _ = one.request(2 * number + 1, 0, &head));
        }
        stage.logged(429, "hold too much memory")?;
        let output = stage.ssh().run(&["git-upload-pack 'own/m'"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        require(text.contains("hold too much memory"), || text)?;
        stage.logged_on("ssh", 429, "hold too much memory")
    });
}

fn slots(table: &mut Table) {
    const LIMITS: &str = "requests = 16\nuser_share = 50\nwait_seconds = 30\nstall_seconds = 60";
    table.row("idle-bodies-of-two-addresses", |stage| {
        stage.alone();
        stage.limits(LIMITS);
        let mut held = hold_from(stage, crate::client::ATTACKER, 8);
        held.extend(hold_from(stage, OTHERS[0], 8));
        stage.slots(12)?;
        // The last quarter is for users.
        for user in ["root", "bob"] {
            let answer = stage.fetch(Some(user), "team/a", &listing())?;
            require(answer.status == 200, || format!("{user}: {answer:?}"))?;
        }
        // A slot whose client does nothing is given to the next stranger.
        let mut stranger = stage.connect_from(OTHERS[1]);
        let answer = stranger
            .send(post("open/p", FETCH, V2, &listing()))
            .answer()?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        stage.logged(500, "too slow while others wait")
    });
    table.row("idle-conversations-over-git", |stage| {
        stage.alone();
        stage.limits(LIMITS);
        let open = |stage: &mut Stage| {
            let mut one = stage.connect_git();
            one.send(git_request("/open/p", ""));
            one
        };
        let _held: Vec<Connection> = (0..8).map(|_| open(stage)).collect();
        stage.slots(8)?;
        let answer = stage.fetch(None, "open/p", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("clients-that-do-not-read", |stage| {
        stage.alone();
        stage.limits(LIMITS);
        stage.site.add_big();
        let at = stage.repository("open/big");
        let big = stage.site.git(&at, &["rev-parse", "HEAD"]);
        let body = crate::wire::fetch(&[&big]);
        let request = post("open/big", FETCH, V2, &body);
        let mut held: Vec<Connection> = (0..8)
            .map(|_| stage.connect().with_small_buffer())
            .collect();
        for one in &mut held {
            one.send(&request);
        }
        stage.slots(8)?;
        let answer = stage.fetch(None, "open/p", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("a-queue-of-strangers", |stage| {
        stage.alone();
        stage.limits("requests = 4\nuser_share = 100\nqueue = 8\nwait_seconds = 30");
        let _held = hold_from(stage, crate::client::ATTACKER, 3);
        stage.slots(3)?;
        let _waiting = hold_from(stage, OTHERS[0], 20);
        stage.logged_from(OTHERS[0], 503, "too many requests are waiting")?;
        for user in ["root", "bob"] {
            let answer = stage.fetch(Some(user), "team/a", &listing())?;
            require(answer.status == 200, || format!("{user}: {answer:?}"))?;
        }
        Ok(())
    });
}

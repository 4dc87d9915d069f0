//! Clients that are slow or idle.

mod working;

use super::Table;
use crate::stage::{Stage, Verdict, require};
use crate::wire::{
    FETCH, PUSH, V2, changes, command, create, fetch, get, git_request, old_fetch, packet,
    post_head, refs_of,
};

/// Times of a second.
const SHORT: &str = "head_seconds = 1\nidle_seconds = 1\nstall_seconds = 1\nwait_seconds = 1";

pub(super) fn table() -> Table {
    let mut table = Table::new("slow");
    heads(&mut table);
    bodies(&mut table);
    readers(&mut table);
    daemon(&mut table);
    working::rows(&mut table);
    table
}

fn heads(table: &mut Table) {
    table.row("no-request", |stage| {
        stage.limits(SHORT);
        let mut silent: Vec<_> = (0..50).map(|_| stage.connect()).collect();
        silent.iter_mut().try_for_each(|one| one.ends().map(|_| ()))
    });
    for (name, start) in [
        ("half-a-method", "G"),
        ("half-a-line", "GET / HTTP/1.1\r\nhost: "),
        ("half-a-preface", "PRI * HTTP/2.0\r\n"),
        ("head-without-end", "GET / HTTP/1.1\r\nhost: x\r\n"),
    ] {
        table.row(name, move |stage| {
            stage.limits(SHORT);
            stage.connect().send(start).ends()?;
            stage.logged_refusal("timeout: ")
        });
    }
    table.row("head-byte-by-byte", |stage| {
        stage.limits(SHORT);
        let mut slow = stage.connect();
        slow.send("GET / HTTP/1.1\r\n");
        require(slow.dribble(b"x: y\r\n"), || "it is not ended".to_owned())?;
        stage.logged_refusal("timeout: ")
    });
    table.row("second-head-byte-by-byte", |stage| {
        stage.limits(SHORT);
        let mut slow = stage.connect();
        slow.send(get("/healthz", "")).answer()?;
        slow.send("GET / HTTP/1.1\r\n");
        require(slow.dribble(b"x: y\r\n"), || "it is not ended".to_owned())
    });
    table.row("idle-between-requests", |stage| {
        stage.limits(SHORT);
        let mut idle = stage.connect();
        idle.send(get("/healthz", "")).answer()?;
        idle.ends().map(|_| ())
    });
}

/// A client that begins a body of a POST, and sends the rest byte by byte.
fn drip(stage: &mut Stage, head: &str, start: &[u8], drops: &[u8]) -> Verdict {
    stage.limits(SHORT);
    let mut slow = stage.connect();
    slow.send(head).send(start);
    require(slow.dribble(drops), || "it is not ended".to_owned())?;
    Ok(())
}

fn bodies(table: &mut Table) {
    table.row("body-does-not-come", |stage| {
        stage.limits(SHORT);
        let head = post_head("open/p", FETCH, V2);
        let mut slow = stage.connect();
        slow.send(format!("{head}content-length: 1000\r\n\r\n0014command"));
        slow.ends()?;
        stage.logged(500, "")
    });
    table.row("body-byte-by-byte", |stage| {
        let head = post_head("open/p", FETCH, V2);
        let head = format!("{head}content-length: 100000\r\n\r\n");
        let start = command("ls-refs", [""; 0]);
        drip(stage, &head, &start[..start.len() - 4], b"000abcdefg")
    });
    table.row("chunks-of-a-byte", |stage| {
        let head = post_head("open/p", FETCH, V2);
        let head = format!("{head}transfer-encoding: chunked\r\n\r\n");
        drip(stage, &head, b"", b"1\r\n0\r\n")
    });
    table.row("commands-byte-by-byte", |stage| {
        let token = stage.token("alice");
        let head = post_head("team/a", PUSH, &token);
        drip(
            stage,
            &format!("{head}content-length: 100000\r\n\r\n"),
            b"",
            b"00ff",
        )
    });
    table.row("pack-byte-by-byte", |stage| {
        let token = stage.token("alice");
        let head = post_head("team/a", PUSH, &token);
        let head = format!("{head}content-length: 100000\r\n\r\n");
        let mut start = changes([create(&stage.site.ids.first, "refs/heads/slow")]);
        start.extend_from_slice(b"PACK\0\0\0\x02\0\0\0\x09\xb0\xff\xff\xff\x7f\x78\x9c\x01");
        drip(stage, &head, &start, b"x")
    });
    table.row("half-closed", |stage| {
        let head = post_head("open/p", FETCH, V2);
        let mut half = stage.connect();
        half.send(format!("{head}content-length: 1000\r\n\r\n0014command"));
        half.shut().ends().map(|_| ())
    });
    table.row("body-of-a-call", |stage| {
        stage.limits(SHORT);
        let token = stage.token("root");
        let mut slow = stage.connect();
        slow.send(format!(
            "POST /api/v1/users HTTP/1.1\r\nhost: x\r\n{token}\
             content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
        ));
        slow.ends()?;
        stage.logged(400, "timeout: the request body is incomplete")
    });
}

fn readers(table: &mut Table) {
    table.row("answer-is-not-read", |stage| {
        stage.limits(SHORT);
        stage.site.add_big();
        let head = stage
            .site
            .try_git(&stage.repository("open/big"), &["rev-parse", "HEAD"]);
        let body = fetch(&[&crate::site::text_of(&head)]);
        let mut readers: Vec<_> = (0..4)
            .map(|_| {
                let mut one = stage.connect();
                one.send(crate::wire::post("open/big", FETCH, V2, &body));
                one
            })
            .collect();
        stage.measures("connections", |count| count <= 3)?;
        stage.logged(200, "before the end of the response")?;
        // The rest is lost, and not taken for a whole answer.
        let bytes = readers[0].rest().bytes;
        require(!bytes.ends_with(b"0\r\n\r\n"), || {
            "the answer has an end".to_owned()
        })
    });
    table.row("answer-read-byte-by-byte", |stage| {
        stage.limits(SHORT);
        stage.site.add_big();
        let head = stage
            .site
            .try_git(&stage.repository("open/big"), &["rev-parse", "HEAD"]);
        let body = fetch(&[&crate::site::text_of(&head)]);
        let mut slow = stage.connect().with_small_buffer();
        slow.send(crate::wire::post("open/big", FETCH, V2, &body));
        slow.sip_while(|| stage.measured("connections").is_some_and(|count| count > 2))?;
        stage.logged(200, "before the end of the response")
    });
    table.row("small-answers-are-not-read", |stage| {
        stage.limits(SHORT);
        // Without reading, the client asks until the server takes no more.
        let mut deaf = stage.connect().with_small_buffer();
        let many = get(&refs_of("open/p", FETCH), V2).repeat(20_000);
        deaf.send(many);
        stage.measures("connections", |count| count <= 2)
    });
}

fn daemon(table: &mut Table) {
    table.row("git-no-request", |stage| {
        stage.limits(SHORT);
        let bytes = stage.connect_git().ends()?;
        require(bytes.windows(3).any(|word| word == b"ERR"), || {
            "no answer".to_owned()
        })?;
        stage.logged_on("git", 400, "timeout: the request is incomplete")
    });
    table.row("git-half-a-request", |stage| {
        stage.limits(SHORT);
        stage.connect_git().send("0040git-upload-pack /op").ends()?;
        stage.logged_on("git", 400, "timeout: the request is incomplete")
    });
    table.row("git-request-byte-by-byte", |stage| {
        stage.limits(SHORT);
        let mut slow = stage.connect_git();
        slow.send("1000");
        require(slow.dribble(b"x"), || "it is not ended".to_owned())?;
        stage.logged_on("git", 400, "timeout: the request is incomplete")
    });
    table.row("git-negotiation-byte-by-byte", |stage| {
        stage.limits(SHORT);
        let mut slow = stage.connect_git();
        slow.send(git_request("/open/p", "\0version=2\0"));
        slow.send(packet("command=ls-refs\n")).send("0001");
        let lines = packet("ref-prefix refs/\n");
        require(slow.dribble(&lines), || "it is not ended".to_owned())?;
        stage.logged_on("git", 500, "")
    });
    table.row("git-answer-is-not-read", |stage| {
        stage.limits(SHORT);
        stage.site.add_big();
        let head = stage
            .site
            .try_git(&stage.repository("open/big"), &["rev-parse", "HEAD"]);
        let mut deaf = stage.connect_git().with_small_buffer();
        deaf.send(git_request("/open/big", ""));
        deaf.send(old_fetch(&[&crate::site::text_of(&head)]));
        stage.logged_on("git", 500, "")?;
        stage.measures("connections", |count| count <= 2)
    });
}

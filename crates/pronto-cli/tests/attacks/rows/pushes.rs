//! Hostile clients of `receive-pack`, and hostile servers that receive a push.

use super::Table;
use crate::attack::{Attack, Exit, Scene, command};
use crate::process::Outcome;
use crate::servers::git::{band, line};

const NULL: &str = "0000000000000000000000000000000000000000";
const MISSING: &str = "1111111111111111111111111111111111111111";

pub(super) fn table() -> Table {
    let mut table = Table::new("pushes");
    requests(&mut table);
    names(&mut table);
    packs(&mut table);
    servers(&mut table);
    table
}

/// A client that sends `request` to a server for the repository `work/target`.
fn client(scene: &Scene, request: Vec<u8>) -> Attack {
    scene.repository("work/target");
    scene.git("work/target", &["config", "core.bare", "true"]);
    command(["receive-pack", "target/.git"])
        .reads(request)
        .with_raw_output()
        .check(refs_are_intact)
}

/// No ref leads to a missing object, and none but `main` was created.
fn refs_are_intact(scene: &Scene, _: &Outcome) -> Result<(), String> {
    let listing = scene.git("work/target", &["for-each-ref", "--format=%(refname)"]);
    let objects = scene.git("work/target", &["rev-list", "--objects", "--all"]);
    match listing == "refs/heads/main" && !objects.is_empty() {
        true => Ok(()),
        false => Err(format!("refs are {listing}")),
    }
}

fn create(id: &str, name: &str, features: &str) -> Vec<u8> {
    line(format!("{NULL} {id} {name}\0{features}"))
}

/// A request to create `name` at the commit that is there, with a pack of nothing.
fn request(id: &str, name: &str) -> Vec<u8> {
    let features = "report-status side-band-64k object-format=sha1";
    [create(id, name, features), b"0000".to_vec()].concat()
}

fn requests(table: &mut Table) {
    let broken: [(&str, Vec<u8>); 9] = [
        ("garbage", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("nothing", Vec::new()),
        ("half-a-length", b"00".to_vec()),
        ("line-of-length-3", b"0003".to_vec()),
        ("line-that-is-too-long", b"ffff".to_vec()),
        ("half-a-line", b"00a0abc".to_vec()),
        ("command-without-name", line(format!("{NULL} {MISSING}"))),
        ("command-of-words", line("old new refs/heads/x")),
        ("bad-shallow", line("shallow nothing")),
    ];
    for (name, bytes) in broken {
        table.row(name, move |scene| client(scene, bytes.clone()).fails());
    }
    table.row("another-hash", |scene| {
        let first = create(MISSING, "refs/heads/x", "object-format=sha256");
        client(scene, [first, b"0000".to_vec()].concat()).fails()
    });
    table.row("many-commands", |scene| {
        let mut bytes = Vec::new();
        for number in 0..20_000 {
            let name = format!("refs/heads/{number}");
            bytes.extend(line(format!("{MISSING} {NULL} {name}")));
        }
        bytes.extend_from_slice(b"0000");
        client(scene, bytes)
    });
    table.row("endless-certificate", |scene| {
        let mut bytes = line("push-cert\0report-status");
        for _ in 0..200 {
            bytes.extend(line("x".repeat(60_000)));
        }
        client(scene, bytes).fails()
    });
    table.row("nested-certificate", |scene| {
        let parts = [
            line("push-cert\0report-status"),
            line("push-cert\n"),
            line("push-cert-end\n"),
            b"0000".to_vec(),
        ];
        client(scene, parts.concat()).fails()
    });
    table.row("options-without-end", |scene| {
        let first = create(MISSING, "refs/heads/x", "push-options report-status");
        let mut bytes = [first, b"0000".to_vec()].concat();
        for _ in 0..100 {
            bytes.extend(line("o".repeat(60_000)));
        }
        client(scene, bytes)
    });
}

fn names(table: &mut Table) {
    let names = [
        "refs/heads/../../config",
        "refs/heads/../../../outside/canary",
        "refs/heads/.lock",
        "refs/heads/x.lock",
        "HEAD",
        "config",
        "refs/heads/a\u{7}b",
        "refs/heads/-x/",
        "refs/heads//x",
        "refs/x",
        "",
        "/etc/passwd",
        "refs/heads/x y",
        "refs/heads/x\ninjected",
    ];
    for name in names {
        table.row(format!("name-{}", name.escape_default()), move |scene| {
            let id = scene.ids.first.clone();
            let mut bytes = request(&id, name);
            bytes.extend_from_slice(EMPTY_PACK);
            let mut attack = client(scene, bytes);
            attack.exit = Exit::Any;
            attack
        });
    }
    table.row("hidden-ref", |scene| {
        let id = scene.ids.first.clone();
        let mut bytes = request(&id, "refs/secret/x");
        bytes.extend_from_slice(EMPTY_PACK);
        let attack = client(scene, bytes);
        scene.git(
            "work/target",
            &["config", "receive.hideRefs", "refs/secret"],
        );
        attack
    });
}

/// A pack without objects.
const EMPTY_PACK: &[u8] = b"PACK\0\0\0\x02\0\0\0\0\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e";

fn packs(table: &mut Table) {
    table.row("missing-object", |scene| {
        let mut bytes = request(MISSING, "refs/heads/x");
        bytes.extend_from_slice(EMPTY_PACK);
        client(scene, bytes)
    });
    table.row("no-pack", |scene| {
        client(scene, request(MISSING, "refs/heads/x"))
    });
    table.row("half-a-pack", |scene| {
        let pack = scene.ids.both.clone();
        let mut bytes = request(&scene.ids.second.clone(), "refs/heads/x");
        bytes.extend_from_slice(&pack[..pack.len() / 2]);
        client(scene, bytes)
    });
    table.row("pack-of-lies", |scene| {
        let mut bytes = request(MISSING, "refs/heads/x");
        bytes.extend_from_slice(b"PACK\0\0\0\x02\xff\xff\xff\xff");
        bytes.extend_from_slice(&[0x95; 64]);
        client(scene, bytes)
    });
    table.row("garbage-pack", |scene| {
        let mut bytes = request(MISSING, "refs/heads/x");
        bytes.extend_from_slice(&b"junk".repeat(1000));
        client(scene, bytes)
    });
    table.row("commit-without-its-tree", |scene| {
        // The commit is sent alone: what it links to is nowhere.
        let id = scene.ids.second.clone();
        let list = ["pack-objects", "-q", "--stdout"];
        let pack = scene.git_bytes("project", &list, format!("{id}\n").as_bytes());
        let mut bytes = request(&id, "refs/heads/x");
        bytes.extend_from_slice(&pack);
        client(scene, bytes)
    });
    table.row("unreachable-object-counts-for-nothing", |scene| {
        // An earlier push has left a commit whose tree is missing.
        let id = scene.ids.second.clone();
        let list = ["pack-objects", "-q", "--stdout"];
        let pack = scene.git_bytes("project", &list, format!("{id}\n").as_bytes());
        let mut bytes = request(&id, "refs/heads/x");
        bytes.extend_from_slice(EMPTY_PACK);
        let attack = client(scene, bytes);
        scene.git_reading("work/target", &["unpack-objects", "-q"], &pack);
        attack
    });
    table.row("too-large", |scene| {
        let mut bytes = request(&scene.ids.second.clone(), "refs/heads/x");
        bytes.extend_from_slice(&scene.ids.both.clone());
        let attack = client(scene, bytes);
        scene.git("work/target", &["config", "receive.maxInputSize", "20"]);
        attack
    });
}

/// A push to a server that plays `greeting`, reads the request, and plays `answer`.
fn push(scene: &mut Scene, greeting: Vec<u8>, answer: Vec<u8>) -> Attack {
    scene.repository("work/source");
    let port = scene.tcp(move |stream| {
        stream.write_all(&greeting)?;
        let mut buffer = vec![0; 1 << 16];
        // The commands end where the pack begins; both may come in one piece.
        let mut request = Vec::new();
        while !request.windows(4).any(|bytes| bytes == b"PACK") {
            match stream.read(&mut buffer)? {
                0 => break,
                count => request.extend_from_slice(&buffer[..count]),
            }
        }
        stream.write_all(&answer)?;
        // A connection that is closed with unread bytes takes the answer with it.
        while !answer.is_empty() && stream.read(&mut buffer)? > 0 {}
        Ok(())
    });
    let url = format!("git://127.0.0.1:{port}/x");
    command(["push", &url, "main:new"]).within("work/source")
}

fn greeting(features: &str) -> Vec<u8> {
    let first = format!("{NULL} capabilities^{{}}\0{features}");
    [line(first), b"0000".to_vec()].concat()
}

const ABLE: &str = "report-status side-band-64k delete-refs object-format=sha1";

fn report(lines: &[&str]) -> Vec<u8> {
    let mut inner: Vec<u8> = lines.iter().flat_map(line).collect();
    inner.extend_from_slice(b"0000");
    [band(1, &inner), b"0000".to_vec()].concat()
}

fn servers(table: &mut Table) {
    table.row("honest-server", |scene| {
        let answer = report(&["unpack ok\n", "ok refs/heads/new\n"]);
        push(scene, greeting(ABLE), answer).succeeds()
    });
    let answers: [(&str, Vec<u8>); 8] = [
        ("report-missing", b"0000".to_vec()),
        ("report-empty", report(&[])),
        (
            "report-of-nonsense",
            report(&["unpack ok\n", "maybe refs/heads/new\n"]),
        ),
        (
            "report-of-options",
            report(&["unpack ok\n", "option forced-update\n"]),
        ),
        (
            "report-of-other-refs",
            report(&["unpack ok\n", "ok refs/heads/other\n"]),
        ),
        ("report-of-garbage", band(1, b"zzzz")),
        ("fatal-band", band(3, b"no \x1b]0;title\x07\n")),
        ("bad-band", band(9, b"x")),
    ];
    for (name, answer) in answers {
        table.row(name, move |scene| {
            push(scene, greeting(ABLE), answer.clone()).fails()
        });
    }
    table.row("reason-with-escapes", |scene| {
        let answer = report(&["unpack ok\n", "ng refs/heads/new \x1b]0;t\x07\x1b[2J\n"]);
        push(scene, greeting(ABLE), answer)
            .fails()
            .git_differs("it prints reasons as they are")
    });
    table.row("rewritten-to-another-place", |scene| {
        let lines = [
            "unpack ok\n",
            "ok refs/heads/new\n",
            "option refname refs/heads/../../../outside/canary\n",
        ];
        let able = ABLE.replace("report-status", "report-status-v2");
        let attack = push(scene, greeting(&able), report(&lines));
        let fetch = "+refs/heads/*:refs/remotes/x/*";
        scene.git("work/source", &["config", "remote.x.fetch", fetch]);
        attack
    });
    table.row("messages-with-escapes", |scene| {
        let text = band(2, b"a\x1b]0;title\x07b\x1b[2J\n");
        let answer = [text, report(&["unpack ok\n", "ok refs/heads/new\n"])].concat();
        push(scene, greeting(ABLE), answer)
    });
    table.row("refs-with-evil-names", |scene| {
        let id = scene.ids.first.clone();
        let first = line(format!("{id} refs/heads/../../x\0{ABLE}"));
        let answer = report(&["unpack ok\n", "ok refs/heads/new\n"]);
        push(scene, [first, b"0000".to_vec()].concat(), answer)
    });
    table.row("goes-away", |scene| {
        push(scene, greeting(ABLE), Vec::new()).fails()
    });
    table.row("no-features", |scene| push(scene, greeting(""), Vec::new()));
    table.row("another-hash-there", |scene| {
        let able = ABLE.replace("sha1", "sha256");
        let first = format!("{NULL}{} capabilities^{{}}\0{able}", &NULL[..24]);
        push(scene, [line(first), b"0000".to_vec()].concat(), Vec::new()).fails()
    });
}

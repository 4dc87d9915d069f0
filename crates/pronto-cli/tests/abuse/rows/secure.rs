//! Attacks on TLS and on client certificates.

use super::Table;
use crate::client::Connection;
use crate::stage::{Stage, Verdict, listing, refused, require};
use crate::wire::{FETCH, V2, get, post};

/// Times of a second.
const SHORT: &str = "head_seconds = 1\nidle_seconds = 1\nstall_seconds = 1";

pub(super) fn table() -> Table {
    let mut table = Table::new("secure");
    handshakes(&mut table);
    certificates(&mut table);
    table
}

/// A row on a server with TLS; nothing without openssl.
fn with_tls(
    table: &mut Table,
    name: &'static str,
    attack: impl Fn(&mut Stage) -> Verdict + Send + Sync + 'static,
) {
    table.row(name, move |stage| match stage.secure() {
        true => {
            stage.limits(SHORT);
            attack(stage)
        }
        false => Ok(()),
    });
}

fn handshakes(table: &mut Table) {
    with_tls(table, "no-handshake", |stage| {
        let mut silent: Vec<_> = (0..20).map(|_| stage.connect_plain()).collect();
        silent.iter_mut().try_for_each(|one| one.ends().map(|_| ()))
    });
    with_tls(table, "handshake-byte-by-byte", |stage| {
        let mut slow = stage.connect_plain();
        slow.send(b"\x16\x03\x01\x20\0\x01\0\x1f\xfc\x03\x03");
        require(slow.dribble(b"x"), || "it is not ended".to_owned())?;
        stage.logged_refusal("handshake")
    });
    for (name, bytes) in [
        (
            "plain-http",
            b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
        ),
        ("garbage", vec![0xff; 1000]),
        (
            "record-too-large",
            [b"\x16\x03\x01\xff\xff".to_vec(), vec![0; 70_000]].concat(),
        ),
        (
            "hello-too-large",
            [
                b"\x16\x03\x01\x40\0\x01\xff\xff\xff".to_vec(),
                vec![0; 16_380],
            ]
            .concat()
            .repeat(20),
        ),
        (
            "old-version",
            b"\x16\x03\x00\0\x2d\x01\0\0\x29\x03\x00"
                .iter()
                .copied()
                .chain([7; 38])
                .collect(),
        ),
        ("alert-at-once", b"\x15\x03\x03\0\x02\x02\x28".to_vec()),
        (
            "data-before-the-handshake",
            b"\x17\x03\x03\0\x05hello".to_vec(),
        ),
    ] {
        with_tls(table, name, move |stage| {
            stage.connect_plain().send(&bytes).ends()?;
            stage.logged_refusal("handshake")
        });
    }
    with_tls(table, "half-open-after-the-handshake", |stage| {
        let mut half = stage.connect();
        half.send("GET / HTTP/1.1\r\n");
        half.ends()?;
        stage.logged_refusal("timeout: ")
    });
    with_tls(table, "too-many-connections", |stage| {
        stage.limits("connections_per_address = 10");
        let held: Vec<_> = (0..10).map(|_| stage.connect_plain()).collect();
        stage.connect_plain().ends()?;
        drop(held);
        stage.logged_refusal("too many connections from this address")
    });
}

fn ask(connection: &mut Connection, headers: &str) -> Result<crate::client::Answer, String> {
    let request = post("vault/x", FETCH, &format!("{V2}{headers}"), &listing());
    connection.send(request).answer()
}

fn certificates(table: &mut Table) {
    with_tls(table, "certificate-of-a-stranger", |stage| {
        // He says that he is Alice.
        let mut forged = stage.connect_with(Some("forged"));
        let answer = ask(&mut forged, "");
        require(answer.is_err(), || format!("{answer:?}"))?;
        stage.logged_refusal("handshake")
    });
    with_tls(table, "no-certificate", |stage| {
        refused(&ask(&mut stage.connect_with(None), "")?, 401)
    });
    with_tls(table, "certificate-and-token-of-another", |stage| {
        let mut alice = stage.connect_with(Some("alice"));
        let answer = ask(&mut alice, "")?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        // A token counts more, also a wrong one.
        let token = stage.token("mallory");
        refused(&ask(&mut alice, &token)?, 404)?;
        refused(&ask(&mut alice, "authorization: Bearer wrong\r\n")?, 401)
    });
    with_tls(table, "certificate-in-a-header", |stage| {
        let headers =
            "x-ssl-client-cert: Alice\r\nssl-client-verify: SUCCESS\r\nx-client-dn: CN=Alice\r\n";
        refused(&ask(&mut stage.connect(), headers)?, 401)
    });
    with_tls(table, "smuggled-head", |stage| {
        let mut attack = stage.connect();
        attack.send(
            "GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        );
        let answer = attack.answer()?;
        require(answer.status == 400, || format!("{answer:?}"))?;
        let answer = stage.connect().send(get("/healthz", "")).answer()?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
}

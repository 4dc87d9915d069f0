//! Limits that clients try to exceed one by one, or together at the same moment.

use super::Table;
use crate::client::{Answer, Connection};
use crate::pack::{self, BLOB, Pack};
use crate::stage::{Stage, Verdict, listing, refused, require};
use crate::wire::{PUSH, changes, create, no_pack, post, post_head, unbanded};

/// The number of clients that push or create in parallel.
const AT_ONCE: usize = 10;

pub(super) fn table() -> Table {
    let mut table = Table::new("accounts");
    users(&mut table);
    creations(&mut table);
    pushes(&mut table);
    table
}

/// Returns the request of a call of the management API.
fn call(stage: &Stage, user: &str, line: &str, body: &str) -> String {
    let token = stage.token(user);
    format!(
        "{line} HTTP/1.1\r\nhost: x\r\n{token}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Repeats a call, and requires that some calls succeed and that all later ones are refused.
fn calls_until_refused(
    stage: &mut Stage,
    count: usize,
    line: &str,
    body: &dyn Fn(usize) -> String,
) -> Verdict {
    let mut made = 0;
    let mut shared = stage.connect();
    for number in 0..count {
        let answer = shared
            .send(call(stage, "mallory", line, &body(number)))
            .answer()?;
        match answer.status {
            201 if made == number => made += 1,
            _ => refused(&answer, 403)?,
        }
    }
    require(made > 0 && made < count, || {
        format!("{made} of {count} calls are taken")
    })?;
    // What was written can be read.
    stage.restart()?;
    let answer = stage.fetch(Some("mallory"), "own/m", &listing())?;
    require(answer.status == 200, || format!("{answer:?}"))
}

fn users(table: &mut Table) {
    table.row("tokens-without-end", |stage| {
        stage.alone();
        let line = "POST /api/v1/users/mallory/tokens";
        calls_until_refused(stage, 120, line, &|_| String::new())
    });
    table.row("keys-without-end", |stage| {
        stage.alone();
        let key = |number| format!("{{\"key\":\"ed25519:{number:064x} x\"}}");
        calls_until_refused(stage, 60, "POST /api/v1/users/mallory/keys", &key)
    });
    table.row("keys-with-long-comments", |stage| {
        stage.alone();
        for length in [2048, 16_000, 60_000] {
            let body = format!("{{\"key\":\"ed25519:{:064x} {}\"}}", 7, "x".repeat(length));
            let line = "POST /api/v1/users/mallory/keys";
            let request = call(stage, "mallory", line, &body);
            refused(&stage.ask(request)?, 400)?;
        }
        stage.restart()
    });
    table.row("keys-of-many-lines", |stage| {
        stage.alone();
        for comment in ["x\\nssh-ed25519 AAAA", "x\\u0000y", "x\\u0085y"] {
            let body = format!("{{\"key\":\"ed25519:{:064x} {comment}\"}}", 7);
            let line = "POST /api/v1/users/mallory/keys";
            let request = call(stage, "mallory", line, &body);
            refused(&stage.ask(request)?, 400)?;
        }
        stage.restart()
    });
}

/// Sends all requests before reading any response, and returns the responses.
fn all_at_once(stage: &mut Stage, requests: &[Vec<u8>]) -> Result<Vec<Answer>, String> {
    let mut connections: Vec<Connection> = requests.iter().map(|_| stage.connect()).collect();
    for (connection, request) in connections.iter_mut().zip(requests) {
        connection.send(request);
    }
    connections.iter_mut().map(Connection::answer).collect()
}

fn creations(table: &mut Table) {
    const QUOTA: &str = "[[quota]]\nrepository = \"own/*\"\nrepositories = 4\n";
    table.row("repositories-at-once", |stage| {
        stage.set(QUOTA);
        let names: Vec<String> = (0..AT_ONCE)
            .map(|number| format!("own/new{number}"))
            .collect();
        stage.server();
        let line = "POST /api/v1/repositories";
        let requests: Vec<Vec<u8>> = names
            .iter()
            .map(|name| call(stage, "mallory", line, &format!("{{\"name\":\"{name}\"}}")).into())
            .collect();
        let answers = all_at_once(stage, &requests)?;
        let made = names.iter().zip(&answers);
        let made: Vec<&String> = made
            .filter(|(_, answer)| answer.status == 201)
            .map(|(name, _)| name)
            .collect();
        for name in &made {
            stage.allow(name, "refs/heads/none");
        }
        // In a store, all may be refused that come at the same moment.
        let is_right = made.len() == 2 || stage.site.is_store() && made.len() < 2;
        require(is_right, || format!("made {made:?}"))
    });
    table.row("pushes-that-create-at-once", |stage| {
        stage.set("create_on_push = true");
        stage.set(QUOTA);
        stage.server();
        let token = stage.token("mallory");
        let names: Vec<String> = (0..AT_ONCE)
            .map(|number| format!("own/new{number}"))
            .collect();
        let content = b"content\n";
        let id = pack::hex(&pack::id("blob", content));
        let commands = changes([create(&id, "refs/tags/new")]);
        let body = [commands, Pack::new().object(BLOB, content).finish()].concat();
        let requests: Vec<Vec<u8>> = names
            .iter()
            .map(|name| post(name, PUSH, &token, &body))
            .collect();
        let answers = all_at_once(stage, &requests)?;
        let mut made = 0;
        for (name, answer) in names.iter().zip(&answers) {
            if answer.status == 200 {
                made += 1;
                stage.allow(name, "refs/tags/new");
            }
        }
        let is_right = made == 2 || stage.site.is_store() && made < 2;
        require(is_right, || format!("made {made}: {answers:?}"))
    });
    table.row("repositories-one-by-one", |stage| {
        stage.set(QUOTA);
        stage.server();
        for (name, status) in [("own/one", 201), ("own/two", 201), ("own/three", 403)] {
            let body = format!("{{\"name\":\"{name}\"}}");
            let request = call(stage, "mallory", "POST /api/v1/repositories", &body);
            let answer = stage.ask(request)?;
            require(answer.status == status, || format!("{name}: {answer:?}"))?;
            if status == 201 {
                stage.allow(name, "refs/heads/none");
            }
        }
        Ok(())
    });
}

/// Pushes to `own/m`, so that all pushes hold a slot before the server checks the first one.
/// Returns the number of changed refs.
fn pushes_at_once(stage: &mut Stage, bodies: &[Vec<u8>]) -> Result<usize, String> {
    stage.server();
    let token = stage.token("mallory");
    let mut connections: Vec<Connection> = bodies.iter().map(|_| stage.connect()).collect();
    for (connection, body) in connections.iter_mut().zip(bodies) {
        let head = post_head("own/m", PUSH, &token);
        connection.send(format!("{head}content-length: {}\r\n\r\n", body.len()));
    }
    stage.slots(i64::try_from(bodies.len()).expect("a few"))?;
    for (connection, body) in connections.iter_mut().zip(bodies) {
        connection.send(body);
    }
    let mut changed = 0;
    for connection in &mut connections {
        let answer = connection.answer()?;
        let text = String::from_utf8_lossy(&unbanded(&answer.body)).into_owned();
        changed += usize::from(text.contains("ok refs/"));
    }
    Ok(changed)
}

fn pushes(table: &mut Table) {
    table.row("refs-at-once", |stage| {
        let count = stage.refs("own/m").lines().count();
        stage.set(&format!(
            "[[quota]]\nrepository = \"own/*\"\nrefs = {}\n",
            count + 2
        ));
        let bodies: Vec<Vec<u8>> = (0..AT_ONCE)
            .map(|number| {
                let name = format!("refs/heads/new{number}");
                stage.allow("own/m", &name);
                let commands = changes([create(&stage.site.ids.first, &name)]);
                [commands, no_pack()].concat()
            })
            .collect();
        let changed = pushes_at_once(stage, &bodies)?;
        require(changed == 2, || format!("{changed} refs are created"))
    });
    table.row("refs-of-one-push-at-once", |stage| {
        let count = stage.refs("own/m").lines().count();
        stage.set(&format!(
            "[[quota]]\nrepository = \"own/*\"\nrefs = {}\n",
            count + 5
        ));
        let bodies: Vec<Vec<u8>> = (0..AT_ONCE)
            .map(|number| {
                let names = (0..3).map(|ref_number| format!("refs/heads/new{number}-{ref_number}"));
                let names: Vec<String> = names.collect();
                for name in &names {
                    stage.allow("own/m", name);
                }
                let id = stage.site.ids.first.clone();
                let commands = changes(names.iter().map(|name| create(&id, name)));
                [commands, no_pack()].concat()
            })
            .collect();
        let changed = pushes_at_once(stage, &bodies)?;
        require(changed == 1, || format!("{changed} pushes are taken"))
    });
    table.row("bytes-at-once", |stage| {
        const SIZE: usize = 300_000;
        // The repository has less than SIZE bytes.
        stage.set(&format!(
            "[[quota]]\nrepository = \"own/*\"\nbytes = {}\n",
            4 * SIZE
        ));
        let bodies: Vec<Vec<u8>> = (0..AT_ONCE)
            .map(|number| {
                let noise = test_support::Random::new(number as u64 + 1).bytes(SIZE);
                let name = format!("refs/tags/new{number}");
                stage.allow("own/m", &name);
                let id = pack::hex(&pack::id("blob", &noise));
                let commands = changes([create(&id, &name)]);
                [commands, Pack::new().object(BLOB, &noise).finish()].concat()
            })
            .collect();
        let changed = pushes_at_once(stage, &bodies)?;
        require((1..=3).contains(&changed), || {
            format!("{changed} pushes are taken")
        })
    });
    table.row("certificates-count", |stage| {
        // A repository that is full takes no certificate either; see `policies`.
        stage.set("[[quota]]\nrepository = \"own/*\"\nbytes = 1\n");
        let commands = changes([create(&stage.site.ids.first, "refs/heads/new")]);
        stage.refuses_push("mallory", "own/m", &commands, &no_pack(), "is full")
    });
}

//! Networks and users that open all connections. The server still serves other clients over each
//! protocol: the oldest connections of the crowd are closed.

use std::net::Ipv4Addr;

use super::Table;
use super::access::netsync::{self, Wanted};
use crate::client::{ATTACKER, Connection};
use crate::server::wait_until;
use crate::stage::{Stage, Verdict, listing, require};
use crate::wire::{FETCH, V2, get, git_request, post, post_head};

/// The limits of the server: for all connections, and a lower one for each address.
const LIMITS: &str =
    "connections = 12\nconnections_per_address = 5\nwait_seconds = 30\nstall_seconds = 30";

/// The addresses of the crowd.
const CROWD: [Ipv4Addr; 3] = [
    Ipv4Addr::new(127, 0, 0, 67),
    Ipv4Addr::new(127, 0, 0, 68),
    Ipv4Addr::new(127, 0, 0, 69),
];

/// The number of connections of each address of the crowd.
const OF_EACH: usize = 4;

/// The reason in the log for a closed connection.
const MADE_ROOM: &str = "closed to make room for another connection";

/// A function that opens a connection of the crowd.
type Join = fn(&mut Stage, Ipv4Addr) -> Connection;

pub(super) fn table() -> Table {
    let mut table = Table::new("crowds");
    protocols(&mut table);
    requests(&mut table);
    users(&mut table);
    table
}

fn gather(stage: &mut Stage, join: Join) -> Vec<Connection> {
    let sources = CROWD.into_iter().flat_map(|source| [source; OF_EACH]);
    sources.map(|source| join(stage, source)).collect()
}

/// Requires that the server has closed a connection of the crowd in favour of another.
fn made_room(stage: &mut Stage) -> Verdict {
    let crowd = CROWD.map(|source| format!("{source}:"));
    let found = stage.server().logged(|event| {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let mut crowd = crowd.iter();
        text("reason") == MADE_ROOM && crowd.any(|source| text("address").starts_with(source))
    });
    found.map(|_| ())
}

/// Requires that the server serves a user, and clients of the other protocols.
fn serves_all(stage: &mut Stage, has_ssh: bool) -> Verdict {
    let answer = stage.fetch(Some("bob"), "team/a", &listing())?;
    require(answer.status == 200, || format!("{answer:?}"))?;
    let mut git = stage.connect_git();
    git.send(git_request("/open/p", "")).send("0000");
    let text = String::from_utf8_lossy(&git.shut().ends()?).into_owned();
    require(text.contains("refs/heads/main"), || text)?;
    if has_ssh {
        let command = "git-upload-pack 'own/m'";
        let output = stage.ssh().converse(command, "version=2", &listing());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        require(text.contains("refs/heads/main"), || format!("{output:?}"))?;
    }
    Ok(())
}

fn protocols(table: &mut Table) {
    let joins: [(&str, Join); 9] = [
        ("that-send-nothing", |stage, source| {
            stage.connect_from(source)
        }),
        ("with-half-a-head", |stage, source| {
            let mut one = stage.connect_from(source);
            one.send("GET /healthz HTTP/1.1\r\nhost: x\r\n");
            one
        }),
        ("between-requests", |stage, source| {
            let mut one = stage.connect_from(source);
            // One that has made room already has no answer.
            let _ = one.send(get("/healthz", "")).answer();
            one
        }),
        ("with-wrong-tokens", |stage, source| {
            let mut one = stage.connect_from(source);
            let wrong = "authorization: Bearer pronto_wrong\r\n";
            let _ = one.send(get("/api/v1/users", wrong)).answer();
            one
        }),
        ("of-http2", |stage, source| {
            let mut one = stage.connect_from(source);
            one.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
            one
        }),
        ("of-git", |stage, source| {
            let mut one = stage.connect_git_from(source);
            one.send("0040git-upload-pack /op");
            one
        }),
        ("of-ssh-that-send-nothing", |stage, source| {
            stage.connect_ssh_from(source)
        }),
        ("of-ssh-in-the-handshake", |stage, source| {
            let mut one = stage.connect_ssh_from(source);
            one.send("SSH-2.0-x\r\n");
            one
        }),
        ("that-do-not-read", |stage, source| {
            let mut one = stage.connect_from(source).with_small_buffer();
            one.send(get("/open/p/info/refs?service=git-upload-pack", V2).repeat(200));
            one
        }),
    ];
    for (name, join) in joins {
        table.row(format!("connections-{name}"), move |stage| {
            stage.limits(LIMITS);
            let has_ssh = stage.shell();
            if !has_ssh && name.starts_with("of-ssh") {
                return Ok(());
            }
            let _crowd = gather(stage, join);
            serves_all(stage, has_ssh)?;
            made_room(stage)
        });
    }
    let reason = "a store is not served by netsync";
    table.row_on_disk("connections-of-netsync", reason, |stage| {
        stage.limits(LIMITS);
        netsync::serve(stage);
        let to = netsync::address(stage);
        let _crowd = gather(stage, |stage, source| {
            let to = netsync::address(stage);
            Connection::open(source, to, None, &stage.ids)
        });
        serves_all(stage, false)?;
        made_room(stage)?;
        // The honest clients have made it smaller.
        let _crowd: Vec<_> = CROWD
            .into_iter()
            .flat_map(|source| [source; OF_EACH])
            .map(|source| Connection::open(source, to, None, &stage.ids))
            .collect();
        let wanted = Wanted {
            user: Some("bob"),
            repository: "team/a",
            pushes: false,
        };
        let text = String::from_utf8_lossy(&netsync::ask(stage, &wanted)).into_owned();
        require(text.contains("refs/heads/main"), || text)
    });
}

fn requests(table: &mut Table) {
    table.row("connections-that-wait-for-slots", |stage| {
        stage.limits(LIMITS);
        stage.limits("requests = 4\nuser_share = 50");
        let _crowd = gather(stage, |stage, source| {
            let mut one = stage.connect_from(source);
            let head = post_head("open/p", FETCH, V2);
            one.send(format!("{head}content-length: 1000\r\n\r\n"));
            one
        });
        stage.slots(3)?;
        for _ in 0..5 {
            let answer = stage.fetch(Some("bob"), "team/a", &listing())?;
            require(answer.status == 200, || format!("{answer:?}"))?;
        }
        made_room(stage)
    });
    table.row("a-request-with-a-slot-goes-on", |stage| {
        stage.limits(LIMITS);
        let body = listing();
        let head = post_head("open/p", FETCH, V2);
        // The oldest connection of the address with the most.
        let mut held = stage.connect_from(CROWD[0]);
        held.send(format!("{head}content-length: {}\r\n\r\n", body.len()));
        stage.slots(1)?;
        let _crowd = gather(stage, |stage, source| stage.connect_from(source));
        for _ in 0..3 {
            serves_all(stage, false)?;
        }
        made_room(stage)?;
        let answer = held.send(body).answer()?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
}

fn users(table: &mut Table) {
    table.row("connections-of-a-user", |stage| {
        stage.limits(LIMITS);
        let token = stage.token("bob");
        let ask = |one: &mut Connection| {
            let request = post("team/a", FETCH, &format!("{V2}{token}"), &listing());
            one.send(request).answer()
        };
        let mut quiet = stage.connect_from(Ipv4Addr::new(127, 0, 0, 70));
        let answer = ask(&mut quiet)?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        let _crowd = gather(stage, |stage, source| {
            let token = stage.token("mallory");
            let mut one = stage.connect_from(source);
            let request = post("own/m", FETCH, &format!("{V2}{token}"), &listing());
            let _ = one.send(request).answer();
            one
        });
        for _ in 0..3 {
            serves_all(stage, false)?;
        }
        made_room(stage)?;
        // A user with one connection keeps it.
        let answer = ask(&mut quiet)?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("logins-of-a-user", |stage| {
        stage.limits("connections = 4\nconnections_per_address = 4");
        if !stage.shell() {
            return Ok(());
        }
        let ssh = stage.ssh();
        let mut logins = Vec::new();
        for number in 0..4 {
            let control = stage.site.path(format!("control{number}"));
            let option = format!("-S{}", control.display());
            logins.push(ssh.start(&[&option, "-M", "-N"]));
            // The honest client has one of four connections at times, and another login makes room for it.
            wait_until(|| control.exists());
        }
        for _ in 0..5 {
            let token = stage.token("bob");
            let request = post("team/a", FETCH, &format!("{V2}{token}"), &listing());
            let mut one = stage.connect_from(CROWD[0]);
            let answer = one.send(request).answer()?;
            require(answer.status == 200, || format!("{answer:?}"))?;
        }
        let attacker = ATTACKER.to_string();
        let found = stage.server().logged(|event| {
            let text = |name: &str| event[name].as_str().unwrap_or_default();
            text("reason") == MADE_ROOM && text("address").starts_with(&attacker)
        });
        found.map(|_| ())
    });
}

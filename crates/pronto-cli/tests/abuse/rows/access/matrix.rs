//! The same requests over each protocol, from each kind of client.

use super::netsync;
use crate::frames::{DATA, END_STREAM, fields, frame};
use crate::rows::Table;
use crate::site::{copy, shell_as};
use crate::stage::{Stage, Verdict, require};
use crate::wire::{FETCH, PUSH, get, packet, packets, post, refs_of, unbanded};

const ARCHIVE: &str = "git-upload-archive";

/// A protocol over which requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Http,
    Http2,
    Ssh,
    Daemon,
    ForcedCommand,
    Netsync,
}

const TRANSPORTS: [Transport; 6] = [
    Transport::Http,
    Transport::Http2,
    Transport::Ssh,
    Transport::Daemon,
    Transport::ForcedCommand,
    Transport::Netsync,
];

impl Transport {
    /// Returns whether the transport supports clients with this user, or without a user. Only
    /// Mallory has a key.
    fn has(self, user: Option<&str>) -> bool {
        match (self, user) {
            (Transport::Http | Transport::Http2 | Transport::Netsync, _) => true,
            (Transport::Ssh, user) => user.is_none_or(|user| user == "mallory"),
            (Transport::Daemon, user) => user.is_none(),
            (Transport::ForcedCommand, user) => user.is_some(),
        }
    }

    /// Sends a request to a service with its input, and returns the bytes of the response.
    fn ask(self, stage: &mut Stage, asked: &Asked<'_>) -> Result<Vec<u8>, String> {
        let Asked {
            user,
            service,
            repository,
            input,
        } = asked;
        let command = format!("{service} '{repository}'");
        match self {
            Transport::Http => over_http(stage, asked),
            Transport::Http2 => over_http_2(stage, asked),
            Transport::Ssh => {
                let ssh = stage.ssh();
                let ssh = if user.is_none() { ssh.anonymous() } else { ssh };
                Ok(ssh.ask(&command, input))
            }
            Transport::Daemon => {
                let mut daemon = stage.connect_git();
                daemon.send(packet(format!("{service} /{repository}\0host=x\0")));
                daemon.send(input).shut();
                daemon.ends()
            }
            Transport::Netsync => Ok(netsync::ask(
                stage,
                &netsync::Wanted {
                    user: *user,
                    repository,
                    pushes: *service == PUSH,
                },
            )),
            Transport::ForcedCommand => {
                stage.server();
                let user = user.expect("it has users only");
                Ok(shell_as(&stage.site, user, &command, input).stdout)
            }
        }
    }
}

/// A request to a service.
struct Asked<'a> {
    user: Option<&'a str>,
    service: &'a str,
    repository: &'a str,
    input: &'a [u8],
}

fn over_http(stage: &mut Stage, asked: &Asked<'_>) -> Result<Vec<u8>, String> {
    let token = asked.user.map(|user| stage.token(user)).unwrap_or_default();
    let request = match asked.service {
        ARCHIVE => post(asked.repository, ARCHIVE, &token, asked.input),
        service => get(&refs_of(asked.repository, service), &token).into_bytes(),
    };
    Ok(stage.ask(request)?.body)
}

fn over_http_2(stage: &mut Stage, asked: &Asked<'_>) -> Result<Vec<u8>, String> {
    let token = asked
        .user
        .map(|user| format!("Bearer {}", stage.site.ids.token(user)));
    let content_type = format!("application/x-{}-request", asked.service);
    let mut more = Vec::new();
    if let Some(token) = &token {
        more.push(("authorization", token.as_str()));
    }
    let mut frames = stage.frames();
    match asked.service {
        ARCHIVE => {
            more.push(("content-type", &content_type));
            let path = format!("/{}/{ARCHIVE}", asked.repository);
            frames.request(1, 0, &fields("POST", &path, &more));
            frames.send(frame(DATA, END_STREAM, 1, asked.input));
        }
        service => {
            let path = refs_of(asked.repository, service);
            frames.request(1, END_STREAM, &fields("GET", &path, &more));
        }
    }
    let mut body = Vec::new();
    loop {
        let next = frames.until(|frame| frame.stream == 1)?;
        if next.kind == DATA {
            body.extend_from_slice(&next.payload);
        }
        if next.flags & END_STREAM != 0 && next.kind < 2 {
            return Ok(body);
        }
    }
}

pub(super) fn rows(table: &mut Table) {
    table.row("matrix-of-roles", |stage| roles(stage, false));
    table.row_on_disk(
        "matrix-of-roles-over-netsync",
        "netsync serves no store",
        |stage| roles(stage, true),
    );
    table.row("matrix-of-archives", archives);
    table.row("matrix-of-archives-without-a-user", without_a_user);
    table.row("matrix-of-settings", settings);
    table.row("matrix-of-shown-refs", shown_refs);
    table.row("matrix-of-forbidden-services", forbidden_services);
}

/// Calls `check` for each transport and client. Netsync does not support archives and stores.
fn over_all(
    stage: &mut Stage,
    users: &[Option<&str>],
    check: impl Fn(&mut Stage, Transport, Option<&str>) -> Verdict,
) -> Verdict {
    let has_ssh = stage.shell();
    let has_netsync = !stage.site.is_store();
    netsync::serve(stage);
    for transport in TRANSPORTS {
        for user in users {
            let is_there = match transport {
                Transport::Ssh => has_ssh,
                Transport::Netsync => has_netsync,
                _ => true,
            };
            if transport.has(*user) && is_there {
                let done = check(stage, transport, *user);
                done.map_err(|problem| format!("{transport:?} as {user:?}: {problem}"))?;
            }
        }
    }
    Ok(())
}

const CLIENTS: [Option<&str>; 5] = [
    None,
    Some("bob"),
    Some("mallory"),
    Some("alice"),
    Some("root"),
];

/// Checks the permissions for fetches and pushes: over netsync, whose clients are processes, or
/// over all other protocols.
fn roles(stage: &mut Stage, over_netsync: bool) -> Verdict {
    // By repository: who may fetch, and who may push.
    let table: [(&str, &[&str], &[&str]); 4] = [
        (
            "open/p",
            &["anonymous", "bob", "mallory", "alice", "root"],
            &["root"],
        ),
        (
            "team/a",
            &["bob", "mallory", "alice", "root"],
            &["alice", "root"],
        ),
        ("vault/x", &["alice", "root"], &["root"]),
        ("own/m", &["mallory", "root"], &["mallory", "root"]),
    ];
    over_all(stage, &CLIENTS, |stage, transport, user| {
        if over_netsync != (transport == Transport::Netsync) {
            return Ok(());
        }
        for (repository, readers, writers) in table {
            for (service, clients) in [(FETCH, readers), (PUSH, writers)] {
                let input = b"0000";
                let asked = Asked {
                    user,
                    service,
                    repository,
                    input,
                };
                let answer = transport.ask(stage, &asked)?;
                let text = String::from_utf8_lossy(&answer).into_owned();
                let is_served = text.contains("refs/heads/main");
                let expected = clients.contains(&user.unwrap_or("anonymous"));
                require(is_served == expected, || {
                    format!("{service} {repository}: {text}")
                })?;
            }
        }
        Ok(())
    })
}

/// Adds `open/q`, in which refs of each kind lead to an abandoned commit.
fn add_lost(stage: &mut Stage) {
    let root = stage.site.path("root");
    copy(&root.join("open/p.git"), &root.join("open/q.git"));
    let at = root.join("open/q.git");
    let lost = stage.site.ids.lost.clone();
    let tree = stage.site.path("tree");
    let tree = tree.to_str().expect("text");
    stage
        .site
        .git(&at, &["worktree", "add", "-q", "--detach", tree, "main"]);
    for name in [
        "ORIG_HEAD",
        "worktrees/tree/HEAD",
        "worktrees/tree/ORIG_HEAD",
    ] {
        std::fs::write(at.join(name), format!("{lost}\n")).expect("a file");
    }
    let fetched = format!("{lost}\t\tbranch 'x' of y\n");
    std::fs::write(at.join("FETCH_HEAD"), fetched).expect("a file");
    stage
        .site
        .git(&at, &["update-ref", "refs/worktree/own", "main"]);
}

/// Returns whether the archive of a tree is made and contains no abandoned content.
fn is_archived(
    stage: &mut Stage,
    transport: Transport,
    user: Option<&str>,
    tree: &str,
) -> Result<bool, String> {
    let arguments = packets([format!("argument {tree}\n")]);
    let asked = Asked {
        user,
        service: ARCHIVE,
        repository: "open/q",
        input: &arguments,
    };
    let answer = unbanded(&transport.ask(stage, &asked)?);
    let text = String::from_utf8_lossy(&answer).into_owned();
    require(!text.contains("what only"), || format!("{tree}: {text}"))?;
    Ok(text.contains("ustar"))
}

fn archives(stage: &mut Stage) -> Verdict {
    add_lost(stage);
    let ids = stage.site.ids;
    let users = [Some("mallory"), Some("bob")];
    over_all(stage, &users, |stage, transport, user| {
        if transport == Transport::Netsync {
            return Ok(());
        }
        for (tree, expected) in [
            ("main", true),
            ("HEAD", true),
            ("refs/heads/main", true),
            ("v1", true),
            ("main:", true),
            ("refs/hidden/secret", false),
            ("hidden/secret", false),
            ("ORIG_HEAD", false),
            ("ORIG_HEAD:", false),
            ("FETCH_HEAD", false),
            ("worktrees/tree/HEAD", false),
            ("worktrees/tree/ORIG_HEAD", false),
            ("worktrees/tree/HEAD:", false),
            ("main-worktree/HEAD", false),
            ("main-worktree/ORIG_HEAD", false),
            ("main-worktree/refs/heads/main", false),
            ("worktrees/tree/refs/heads/main", false),
            (ids.lost.as_str(), false),
            (ids.hidden.as_str(), false),
        ] {
            let is_made = is_archived(stage, transport, user, tree)?;
            require(is_made == expected, || format!("{tree}: {is_made}"))?;
        }
        Ok(())
    })
}

fn without_a_user(stage: &mut Stage) -> Verdict {
    add_lost(stage);
    over_all(stage, &[None], |stage, transport, user| {
        if transport == Transport::Netsync {
            return Ok(());
        }
        for tree in ["main", "HEAD", "ORIG_HEAD"] {
            let is_made = is_archived(stage, transport, user, tree)?;
            require(!is_made, || format!("{tree} is archived"))?;
        }
        Ok(())
    })
}

/// Checks that a setting which allows a request to anonymous clients applies to each protocol, and
/// only to refs that are visible.
fn settings(stage: &mut Stage) -> Verdict {
    add_lost(stage);
    for key in ["http.uploadarchive", "daemon.uploadarch"] {
        stage.site.configure("open/q", key, "true");
    }
    over_all(stage, &[None, Some("mallory")], |stage, transport, user| {
        if transport == Transport::Netsync {
            return Ok(());
        }
        for (tree, expected) in [
            ("main", true),
            ("ORIG_HEAD", false),
            ("refs/hidden/secret", false),
        ] {
            let is_made = is_archived(stage, transport, user, tree)?;
            require(is_made == expected, || format!("{tree}: {is_made}"))?;
        }
        Ok(())
    })
}

fn shown_refs(stage: &mut Stage) -> Verdict {
    add_lost(stage);
    over_all(stage, &[None, Some("mallory")], |stage, transport, user| {
        let asked = Asked {
            user,
            service: FETCH,
            repository: "open/q",
            input: b"0000",
        };
        let answer = transport.ask(stage, &asked)?;
        let text = String::from_utf8_lossy(&answer).into_owned();
        require(text.contains("refs/heads/main"), || text.clone())?;
        let hidden = ["refs/hidden", "ORIG_HEAD", "worktree", "FETCH_HEAD"];
        let lost = stage.site.ids.lost.as_str();
        let shows = hidden.iter().chain([&lost]).find(|word| {
            // Refs of the main worktree are shown, as by Git.
            text.replace("refs/worktree/own", "").contains(**word)
        });
        require(shows.is_none(), || format!("{shows:?} in {text}"))
    })
}

/// Checks that a repository which forbids a service to anonymous clients does so over each
/// protocol.
fn forbidden_services(stage: &mut Stage) -> Verdict {
    for key in ["daemon.uploadPack", "http.uploadPack"] {
        stage.configure("open/p", key, "false");
    }
    over_all(stage, &[None, Some("mallory")], |stage, transport, user| {
        let asked = Asked {
            user,
            service: FETCH,
            repository: "open/p",
            input: b"0000",
        };
        let answer = transport.ask(stage, &asked)?;
        let text = String::from_utf8_lossy(&answer).into_owned();
        // The setting of HTTP is for all clients, and that of the daemon for those without a user.
        let is_http = matches!(transport, Transport::Http | Transport::Http2);
        let expected = user.is_some() && !is_http;
        require(text.contains("refs/heads/main") == expected, || text)
    })
}

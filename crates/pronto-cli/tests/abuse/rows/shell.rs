//! Attacks over SSH: handshakes, channels and commands.

use super::Table;
use crate::server::wait_until;
use crate::stage::{Stage, Verdict, require};
use crate::wire::packet;

/// Sequences for terminals, and lines that look like events.
const EVIL: &str = "\x1b[2J\u{9b}\u{202e}\u{2028}\n{\"event\":\"request\",\"user\":\"root\"}";

pub(super) fn table() -> Table {
    let mut table = Table::new("shell");
    let mut row = |name: &str, attack: fn(&mut Stage) -> Verdict| {
        table.row(name, move |stage| match stage.shell() {
            true => attack(stage),
            false => Ok(()),
        });
    };
    row("stop-in-the-handshake", handshakes);
    row("connections-of-one-address", connections);
    row("login-without-a-request", idle);
    row("many-channels", channels);
    row("control-characters-in-commands", commands);
    row("paths-that-lead-elsewhere", paths);
    row("window-of-zero", window);
    table
}

fn handshakes(stage: &mut Stage) -> Verdict {
    stage.limits("head_seconds = 1\nlogin_seconds = 1\nidle_seconds = 1");
    let starts: [&[u8]; 6] = [
        b"",
        b"SSH-2.0-",
        b"SSH-2.0-x\r\n",
        b"SSH-2.0-x\r\n\0\0\x01\0\x04\x14",
        b"SSH-2.0-x\r\n\xff\xff\xff\xff\x04\x14",
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    ];
    let mut silent: Vec<_> = starts.iter().map(|_| stage.connect_ssh()).collect();
    for (one, start) in silent.iter_mut().zip(starts) {
        one.send(start);
    }
    for one in &mut silent {
        one.ends()?;
    }
    stage.logged_refusal("handshake")
}

fn connections(stage: &mut Stage) -> Verdict {
    stage.limits("connections_per_address = 20");
    let held: Vec<_> = (0..20).map(|_| stage.connect_ssh()).collect();
    let mut refused = stage.connect_ssh();
    let text = String::from_utf8_lossy(&refused.ends()?).into_owned();
    // A line that clients show.
    let is_line = text.starts_with("too many connections") && text.ends_with("\r\n");
    require(is_line, || text)?;
    drop(held);
    stage.logged_refusal("too many connections from this address")
}

fn idle(stage: &mut Stage) -> Verdict {
    stage.limits("login_seconds = 5");
    let output = stage.ssh().run(&["-N"]);
    require(!output.status.success(), || format!("{output:?}"))?;
    stage.logged_refusal("timeout: no request received")
}

fn channels(stage: &mut Stage) -> Verdict {
    let ssh = stage.ssh();
    let control = stage.site.path("control");
    let option = format!("-S{}", control.display());
    let _master = ssh.start(&[&option, "-M", "-N"]);
    let is_there = wait_until(|| control.exists());
    require(is_there, || "there is no connection".to_owned())?;
    // Without a connection of their own.
    let shared = |command| [option.as_str(), "-oProxyCommand=false", command];
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut one = ssh.start(&shared("git-upload-pack 'own/m'"));
        require(one.begins(), || "a channel is not served".to_owned())?;
        held.push(one);
    }
    for _ in 0..20 {
        let more = ssh.run(&shared("git-upload-pack 'own/m'"));
        let is_refused = !more.status.success() && more.stdout.is_empty();
        require(is_refused, || format!("{more:?}"))?;
    }
    stage.slots(8)
}

fn commands(stage: &mut Stage) -> Verdict {
    let ssh = stage.ssh();
    for command in [
        format!("rm {EVIL}"),
        EVIL.to_owned(),
        format!("git-upload-pack 'own/{EVIL}'"),
        format!("git-upload-pack 'own/m' '{EVIL}'"),
        format!("git-upload-pack 'own/m'; {EVIL}"),
        "y".repeat(60_000),
    ] {
        let output = ssh.run(&[&command]);
        let said = String::from_utf8_lossy(&output.stderr);
        let is_refused = output.status.code() == Some(128) && output.stdout.is_empty();
        let is_clean = !said.contains(['\x1b', '\u{9b}', '\u{202e}']);
        require(is_refused && is_clean, || {
            format!("{command:?}: {output:?}")
        })?;
    }
    let longest = stage.server().text().lines().map(str::len).max();
    require(longest < Some(5000), || {
        format!("a line of {longest:?} bytes")
    })?;
    stage.logged_on("ssh", 400, "")
}

fn paths(stage: &mut Stage) -> Verdict {
    let ssh = stage.ssh();
    let absolute = stage.site.path("outside/s.git").display().to_string();
    for path in [
        "..",
        "../outside/s.git",
        "own/../vault/x",
        "own/m/../../../outside/s.git",
        "/../outside/s.git",
        "~/../outside/s.git",
        "own/./m",
        "own//m",
        "own/m.git/..",
        "own/m/.git",
        "vault/x",
        &absolute,
    ] {
        for service in ["git-upload-pack", "git-receive-pack"] {
            let output = ssh.run(&[&format!("{service} '{path}'")]);
            let is_refused = output.status.code() == Some(128) && output.stdout.is_empty();
            require(is_refused, || format!("{path}: {output:?}"))?;
        }
    }
    stage.logged_on("ssh", 404, "there is no repository")
}

/// The client takes nothing, so the window of its channel stays closed.
fn window(stage: &mut Stage) -> Verdict {
    stage.limits("stall_seconds = 1\nidle_seconds = 1");
    stage.site.add_big();
    let big = stage.repository("open/big");
    let id = stage.site.git(&big, &["rev-parse", "main"]);
    std::fs::rename(&big, stage.repository("own/big")).map_err(|error| error.to_string())?;
    let mut stuck = stage.ssh().start(&["git-upload-pack 'own/big'"]);
    require(stuck.begins(), || "it is not served".to_owned())?;
    let want = packet(format!("want {id} ofs-delta\n"));
    stuck.send(&[&want, &b"0000"[..], &packet("done\n")].concat());
    stage.logged_on("ssh", 500, "timeout: the client makes no progress")?;
    stage.logged_refusal("timeout: the client does not read the response")
}

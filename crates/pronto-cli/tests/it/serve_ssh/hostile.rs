//! SSH clients that are slow, silent or numerous.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Site;
use crate::stored::{Place, in_both_places};
use crate::support::{stderr, write_program};

in_both_places!(
    clients_that_stop_in_the_handshake_are_dropped,
    one_user_cannot_take_all_slots,
    channels_of_a_connection_are_bounded,
    a_client_that_takes_nothing_is_given_up,
    failed_logins_are_bounded,
);

/// Returns how long the server keeps a connection that has sent `bytes`.
fn kept(site: &Site, bytes: &[u8]) -> Duration {
    let begun = Instant::now();
    let mut socket = TcpStream::connect(site.address()).expect("it listens");
    let patience = Some(Duration::from_secs(30));
    socket.set_read_timeout(patience).expect("a socket");
    socket.write_all(bytes).expect("it reads");
    let mut answer = Vec::new();
    // The server may close before it has read all.
    let _ = socket.read_to_end(&mut answer);
    assert!(answer.starts_with(b"SSH-2.0-pronto"));
    begun.elapsed()
}

/// A request that holds its slot: the client waits for what is written to it.
struct Held(Child);

impl Held {
    fn new(site: &Site, more: &[&str]) -> Self {
        let mut child = site
            .ssh("alice")
            .args(more)
            .arg("git-upload-pack 'team/a'")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ssh runs");
        let output = child.stdout.as_mut().expect("it was asked for");
        output.read_exact(&mut [0; 4]).expect("an advertisement");
        Held(child)
    }

    /// Ends the input, and waits for the end of the request. A shared connection tells the server at once
    /// then; if its client is killed, it may tell it with the next packet only.
    fn finish(mut self) {
        drop(self.0.stdin.take());
        let status = self.0.wait().expect("ssh ends");
        assert!(!status.success(), "the request was not complete");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn clients_that_stop_in_the_handshake_are_dropped(place: Place) {
    let limits = "[limits]\nhead_seconds = 1\nlogin_seconds = 2\n";
    let Some(mut site) = Site::new(place, limits) else {
        return;
    };
    for bytes in [
        &b""[..],
        b"SSH",
        b"SSH-2.0-x\r\n",
        b"SSH-2.0-x\r\n\0\0\x01\0",
        b"GET / HTTP/1.1\r\n\r\n",
        b"SSH-2.0-x\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        &b"a".repeat(100_000),
    ] {
        let time = kept(&site, bytes);
        assert!(time < Duration::from_secs(10), "{time:?}");
    }
    // One that has exchanged keys, and does not log in.
    write_program(&site.path("ask"), "#!/bin/sh\nexec sleep 60\n");
    site.make_key("locked", &["-t", "ed25519"]);
    site.serve(&["user", "key", "add", "alice", "locked.pub"]);
    let changed = std::process::Command::new("/usr/bin/ssh-keygen")
        .args(["-q", "-p", "-N", "secret", "-f", "locked"])
        .current_dir(site.scratch.path())
        .output();
    assert!(changed.expect("ssh-keygen runs").status.success());
    let begun = Instant::now();
    let mut command = site.ssh("locked");
    command
        .env("SSH_ASKPASS", site.path("ask"))
        .env("SSH_ASKPASS_REQUIRE", "force")
        .args(["-oBatchMode=no", "git-upload-pack 'team/a'"])
        .stderr(Stdio::null());
    let mut waiting = command.spawn().expect("ssh runs");
    let log = loop {
        let connections = site.connections();
        if connections == 0 && begun.elapsed() > Duration::from_secs(2) {
            break site.end();
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it is kept");
    };
    let _ = waiting.kill();
    let _ = waiting.wait();
    assert!(log.contains("\"event\":\"drained\""), "{log}");
}

fn one_user_cannot_take_all_slots(place: Place) {
    let limits = "[limits]\nrequests = 2\nuser_share = 50\nwait_seconds = 1\n";
    let Some(site) = Site::new(place, limits) else {
        return;
    };
    let held = Held::new(&site, &[]);
    let url = site.url("team/a");
    let text = site.fail("alice", &["ls-remote", &url]);
    assert!(
        text.contains("too many of your requests are running"),
        "{text}"
    );
    site.succeed("bob", &["ls-remote", &url]);
    drop(held);
    crate::serve::wait_until(|| site.git(&["ls-remote", &url]).status.success());
}

fn channels_of_a_connection_are_bounded(place: Place) {
    let Some(mut site) = Site::new(place, "") else {
        return;
    };
    let control = format!("-S{}", site.path("control").display());
    let mut master = site.ssh("alice");
    let mut master = master
        .args([&control, "-M", "-N"])
        .spawn()
        .expect("ssh runs");
    crate::serve::wait_until(|| site.path("control").exists());
    let held: Vec<Held> = (0..8).map(|_| Held::new(&site, &[&control])).collect();
    let mut more = site.ssh("alice");
    let more = more.args([&control, "git-upload-pack 'team/a'"]);
    let text = stderr(&more.output().expect("ssh runs"));
    // ssh connects on its own then.
    assert!(text.contains("Session open refused by peer"), "{text}");
    held.into_iter().for_each(Held::finish);
    // A connection without requests does not hold the server up.
    let server = site.server.take().expect("it runs");
    server.signal(Signal::TERM);
    let log = server.end();
    assert!(
        log.contains("\"connections\":0,\"event\":\"drained\""),
        "{log}"
    );
    assert!(!master.wait().expect("ssh ends").success());
}

fn a_client_that_takes_nothing_is_given_up(place: Place) {
    let limits = "[limits]\nstall_seconds = 1\nidle_seconds = 1\n";
    let Some(site) = Site::new(place, limits) else {
        return;
    };
    let mut random = test_support::Random::new(3);
    std::fs::write(site.path("work/noise"), random.bytes(24 << 20)).expect("a file");
    site.succeed("alice", &["-C", "work", "add", "."]);
    site.succeed("alice", &["-C", "work", "commit", "-q", "-m", "noise"]);
    // Not over SSH: git is silent while it compresses.
    site.succeed(
        "alice",
        &["-C", "work", "push", "-q", "../root/team/a.git", "main"],
    );
    let id = site.succeed("alice", &["-C", "work", "rev-parse", "main"]);
    let mut stuck = Held::new(&site, &[]);
    let want = format!("want {} ofs-delta\n", id.trim());
    let request = format!("{:04x}{want}00000009done\n", want.len() + 4);
    let input = stuck.0.stdin.as_mut().expect("it was asked for");
    input.write_all(request.as_bytes()).expect("it reads");
    // It reads no more. The pack is larger than all buffers on the way.
    crate::serve::wait_until(|| site.connections() == 0);
}

fn failed_logins_are_bounded(place: Place) {
    let limits = "[limits]\nfailures_per_minute = 2\n";
    let Some(site) = Site::new(place, limits) else {
        return;
    };
    site.make_key("stranger", &["-t", "ed25519"]);
    let url = site.url("team/a");
    site.succeed("alice", &["ls-remote", &url]);
    for _ in 0..2 {
        site.fail("stranger", &["ls-remote", &url]);
    }
    // The failures are counted when their connections have ended.
    crate::serve::wait_until(|| !site.git(&["ls-remote", &url]).status.success());
    let text = site.fail("alice", &["ls-remote", &url]);
    assert!(text.contains("Permission denied"), "{text}");
}

//! `sync` checks the allowed transports before it connects.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use crate::netsync_peers::World;
use crate::support::{process, pronto_path, stderr};

/// The name and value of an environment variable, or of a configuration variable (with a dot).
type Setting<'a> = (&'a str, &'a str);

/// A repository, and a program in place of ssh that leaves a trace.
struct Scene {
    world: World,
}

impl Scene {
    fn new() -> Self {
        let world = World::new();
        world.repository("desk");
        world.git(".", &["clone", "-q", "desk", "laptop"]);
        let ssh = world.path("fake-ssh");
        let trace = world.path("trace");
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >'{}'\n", trace.display());
        std::fs::write(&ssh, script).expect("a file");
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&ssh, runs).expect("a file");
        Scene { world }
    }

    fn sync(&self, address: &str, settings: &[Setting<'_>]) -> Output {
        let mut command = self.world.command(pronto_path(), "laptop", "laptop");
        command
            .env("GIT_SSH", self.world.path("fake-ssh"))
            .env_remove("GIT_ALLOW_PROTOCOL");
        for (name, value) in settings {
            match name.contains('.') {
                true => command.args(["-c", &format!("{name}={value}")]),
                false => command.env(name, value),
            };
        }
        command.args(["sync", "--name", "desk", "--", address]);
        command.output().expect("it can be started")
    }

    /// Returns the arguments of ssh if it was started.
    fn trace(&self) -> Option<String> {
        let path = self.world.path("trace");
        let trace = std::fs::read_to_string(&path).ok();
        let _ = std::fs::remove_file(&path);
        trace
    }
}

#[test]
fn forbidden_transports_are_not_used() {
    let scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a place");
    listener.set_nonblocking(true).expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let tls = format!("netsync://127.0.0.1:{port}/desk");
    let (ssh, scp, file, url) = ("ssh://host/x", "host:x", "../desk", "file:///nowhere/desk");
    let rows: &[(&str, &str, &[Setting<'_>])] = &[
        ("ssh", ssh, &[("GIT_ALLOW_PROTOCOL", "file:https")]),
        ("ssh", scp, &[("GIT_ALLOW_PROTOCOL", "")]),
        ("ssh", ssh, &[("protocol.allow", "never")]),
        ("ssh", scp, &[("protocol.ssh.allow", "never")]),
        (
            "ssh",
            scp,
            &[
                ("protocol.ssh.allow", "always"),
                ("GIT_ALLOW_PROTOCOL", "https"),
            ],
        ),
        (
            "ssh",
            ssh,
            &[
                ("protocol.ssh.allow", "user"),
                ("GIT_PROTOCOL_FROM_USER", "0"),
            ],
        ),
        ("file", file, &[("GIT_ALLOW_PROTOCOL", "ssh")]),
        ("file", url, &[("protocol.file.allow", "never")]),
        ("file", file, &[("protocol.allow", "never")]),
        ("file", file, &[("GIT_PROTOCOL_FROM_USER", "0")]),
        ("netsync", &tls, &[("GIT_ALLOW_PROTOCOL", "ssh:file")]),
        ("netsync", &tls, &[("protocol.netsync.allow", "never")]),
        ("netsync", &tls, &[("protocol.allow", "never")]),
        ("netsync", &tls, &[("GIT_PROTOCOL_FROM_USER", "0")]),
    ];
    let before = scene.world.git("laptop", &["for-each-ref"]);
    for (name, address, settings) in rows {
        let output = scene.sync(address, settings);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(128), "{settings:?}: {said}");
        let message = format!("transport '{name}' not allowed");
        assert!(said.contains(&message), "{address} {settings:?}: {said}");
        assert_eq!(scene.trace(), None, "{address} {settings:?}");
    }
    let nobody = listener.accept().expect_err("nobody came");
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(scene.world.git("laptop", &["for-each-ref"]), before);
    // Allowed transports are used.
    let allowed: &[Setting<'_>] = &[
        ("protocol.allow", "never"),
        ("protocol.file.allow", "always"),
    ];
    let output = scene.sync(file, allowed);
    assert!(output.status.success(), "{}", stderr(&output));
    for settings in [
        &[("GIT_PROTOCOL_FROM_USER", "0")][..],
        &[("GIT_ALLOW_PROTOCOL", "ssh")],
    ] {
        scene.sync(ssh, settings);
        let trace = scene.trace().expect("ssh was started");
        assert!(trace.starts_with("host\npronto 'serve' "), "{trace}");
    }
    let said = stderr(&scene.sync(&tls, &[("protocol.netsync.allow", "always")]));
    assert!(said.contains("no netsync key"), "{said}");
}

#[test]
fn no_url_becomes_an_option_or_a_command() {
    let scene = Scene::new();
    let canary = scene.world.path("canary");
    let touch = format!("touch {}", canary.display());
    for address in [
        format!("ssh://-oProxyCommand={touch}/x"),
        format!("-oProxyCommand={touch}:x"),
        format!("ssh://[-oProxyCommand={touch}]/x"),
        "host:-x".to_owned(),
        format!("ext::{touch}"),
    ] {
        let output = scene.sync(&address, &[]);
        assert_eq!(output.status.code(), Some(128), "{address}");
        assert_eq!(scene.trace(), None, "{address}");
    }
    // Shell syntax stays one argument on both sides.
    let line = format!("'{}'", scene.world.path("fake-ssh").display());
    for address in [
        format!("ssh://h;{}/x", touch.replace('/', "%2f")),
        format!("h`{touch}`:x").replace('/', "%2f"),
        format!("host:x';{touch};'"),
        format!("host:$({touch})"),
    ] {
        scene.sync(&address, &[("GIT_SSH_COMMAND", &line)]);
        let trace = scene.trace().expect("ssh was started");
        assert_eq!(trace.lines().count(), 2, "{trace}");
        assert!(!canary.exists(), "{address}");
        let command = trace.lines().nth(1).expect("a command");
        let run = process("sh")
            .args(["-c", command])
            .output()
            .expect("it can be started");
        assert!(!run.status.success() && !canary.exists(), "{command}");
    }
}

//! `git://`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::support::{Server, Site};

fn start(site: &Site, text: &str) -> Server {
    let mut config = site.config(text);
    config.daemon = vec![([127, 0, 0, 1], 0).into()];
    Server::start(site, config)
}

fn ask(server: &Server, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(server.started.daemon[0]).expect("it listens");
    socket.write_all(bytes).expect("it reads");
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn clones_of_all_versions_and_shallow_ones() {
    let site = Site::new();
    let server = start(&site, "");
    let url = format!("git://{}/team/a.git", server.started.daemon[0]);
    for version in ["0", "1", "2"] {
        for depth in ["", "--depth=1"] {
            let target = format!("clone{version}{depth}");
            let protocol = format!("protocol.version={version}");
            let mut arguments = vec!["-c", &protocol, "clone", "-q", &url, &target];
            arguments.extend((!depth.is_empty()).then_some(depth));
            site.git(site.scratch.path(), &arguments);
            site.git(&site.path(&target), &["fsck", "--strict"]);
        }
    }
}

#[test]
fn only_what_anonymous_may_read_is_served() {
    let site = Site::new();
    let grant = "[[grant]]\nrepository = \"**\"\nusers = [\"*\"]\nrole = \"write\"";
    let server = start(&site, grant);
    let line = "git-upload-pack /team/a\0host=x\0";
    let answer = ask(&server, format!("{:04x}{line}", line.len() + 4).as_bytes());
    assert!(
        answer.contains("ERR there is no repository 'team/a'"),
        "{answer}"
    );
    let line = "git-receive-pack /team/a\0host=x\0";
    let answer = ask(&server, format!("{:04x}{line}", line.len() + 4).as_bytes());
    assert!(
        answer.contains("ERR this server takes no pushes over git://"),
        "{answer}"
    );
}

#[test]
fn malformed_requests_are_refused() {
    let site = Site::new();
    let server = start(&site, "[limits]\nhead_seconds = 1");
    for bytes in [
        &b"0000"[..],
        b"zzzz",
        b"ffff",
        b"0008abcd",
        b"0016git-nothing /team",
    ] {
        let answer = ask(&server, bytes);
        assert!(answer.contains("ERR "), "{answer}");
    }
    // A slow sender is given up.
    let answer = ask(&server, b"00");
    assert!(answer.contains("takes too long"), "{answer}");
}

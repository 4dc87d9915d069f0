//! Hostile netsync peers beside honest peers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_netsync::ErrorKind;
use pronto_pack::entry::EntryHeader;

use crate::netsync_peers::World;
use crate::netsync_puppet::{Attacker, id_of, pack, whole};
use crate::support::stderr;

/// A commit of a tree with one file.
pub(crate) fn commit_of(blob: &ObjectId) -> [(ObjectKind, Vec<u8>); 2] {
    let tree = [b"100644 file\0", blob.as_slice()].concat();
    let id = id_of(ObjectKind::Tree, &tree);
    let who = "a <a@x> 1700000000 +0000";
    let commit = format!("tree {id}\nauthor {who}\ncommitter {who}\n\nx\n");
    [
        (ObjectKind::Tree, tree),
        (ObjectKind::Commit, commit.into_bytes()),
    ]
}

/// A delta that repeats its base that many times.
fn repeated(base_len: usize, times: usize) -> Vec<u8> {
    let mut delta = Vec::new();
    for mut number in [base_len, base_len * times] {
        while number >= 0x80 {
            delta.push(number as u8 | 0x80);
            number >>= 7;
        }
        delta.push(number as u8);
    }
    for _ in 0..times {
        // Copy: three bytes of size.
        delta.push(0b1111_0000);
        delta.extend_from_slice(&(base_len as u32).to_le_bytes()[..3]);
    }
    delta
}

fn peers() -> usize {
    let peers = std::env::var("PRONTO_TEST_PEERS").ok();
    peers.map_or(8, |peers| peers.parse().expect("a number"))
}

#[test]
fn a_server_survives_attacks_and_serves_honest_peers() {
    let world = World::new();
    world.repository("desk");
    // This branch and its objects are hidden.
    world.git("desk", &["checkout", "-q", "-b", "hidden"]);
    let secret = "what nobody shall know\n".repeat(40);
    world.commit("desk", "secret", secret.as_bytes());
    let hidden = world.git("desk", &["rev-parse", "hidden:secret"]);
    let hidden = ObjectId::from_hex(hidden.trim().as_bytes()).expect("an id");
    world.git("desk", &["checkout", "-q", "main"]);
    world.git(
        "desk",
        &["config", "transfer.hideRefs", "refs/heads/hidden"],
    );
    let before = world.git("desk", &["for-each-ref"]);
    let (desk, mallory) = (world.key("desk"), world.key("mallory"));
    world.introduce(("desk", &desk), ("mallory", &mallory));
    let friends: Vec<String> = (0..peers()).map(|at| format!("friend{at}")).collect();
    for friend in &friends {
        world.git(".", &["clone", "-q", "desk", friend]);
        world.commit(friend, friend, friend.as_bytes());
        let key = world.key(friend);
        world.introduce(("desk", &desk), (friend, &key));
    }
    let limits = [
        "--memory",
        "384",
        "--handshake-timeout",
        "5",
        "--idle-timeout",
        "20",
    ];
    let arguments = [
        &limits[..],
        &["--max-connections", "100", "--allow-unrelated"],
    ]
    .concat();
    let server = world.serve("desk", "desk", &arguments);
    let attacker = Attacker::new(&world, &server, "mallory");

    // Some connect and stay silent, some send garbage, and one stops after it was accepted.
    let address = &server.address;
    let connect = |_| TcpStream::connect(address).expect("it listens");
    let silent: Vec<TcpStream> = (0..150).map(connect).collect();
    for mut socket in (0..20).map(connect) {
        let _ = socket.write_all(&vec![0x16; 70_000]);
    }
    let stalled = attacker.meet();

    let friendly: Vec<_> = friends
        .iter()
        .map(|friend| {
            let mut command = world.command(crate::support::pronto_path(), friend, friend);
            let url = server.url("");
            command.args(["sync", &url, "--name", "desk"]);
            command
                .stderr(std::process::Stdio::piped())
                .stdout(std::process::Stdio::null());
            command.spawn().expect("it can be started")
        })
        .collect();

    let zeros = vec![0; 64 << 20];
    let blob = b"a blob\n".repeat(20_000);
    let blob_id = id_of(ObjectKind::Blob, &blob);
    let [(_, tree), (_, commit)] = commit_of(&blob_id);
    let tip = id_of(ObjectKind::Commit, &commit);
    // A decompression bomb as an object and as a delta.
    let bomb = pack(&[whole(ObjectKind::Commit, &zeros)]);
    let said = attacker.attack(tip, bomb, 1);
    assert!(said.to_string().contains("exceeds the limit"), "{said}");
    let delta = repeated(blob.len(), 1000);
    let base = EntryHeader::RefDelta { base: blob_id };
    let bomb = pack(&[whole(ObjectKind::Blob, &blob), (base, &delta[..])]);
    let said = attacker.attack(tip, bomb, 2);
    assert!(said.to_string().contains("invalid segment"), "{said}");
    // Wrong counts, and impossible counts.
    let gift = || {
        let blob = whole(ObjectKind::Blob, &blob[..]);
        pack(&[
            blob,
            whole(ObjectKind::Tree, &tree),
            whole(ObjectKind::Commit, &commit),
        ])
    };
    for objects in [1, 200_000, 1 << 40] {
        let said = attacker.attack(tip, gift(), objects);
        assert_eq!(said.kind(), ErrorKind::Malformed, "{said}");
    }
    // A missing object.
    let part = pack(&[whole(ObjectKind::Commit, &commit)]);
    let said = attacker.attack(tip, part, 1);
    assert_eq!(said.kind(), ErrorKind::Malformed, "{said}");
    // A hidden object, named in a tree and as the base of a delta.
    let [(_, stolen_tree), (_, stolen)] = commit_of(&hidden);
    let theft = pack(&[
        whole(ObjectKind::Tree, &stolen_tree),
        whole(ObjectKind::Commit, &stolen),
    ]);
    let said = attacker.attack(id_of(ObjectKind::Commit, &stolen), theft, 2);
    assert!(
        said.to_string().contains("did not send all objects"),
        "{said}"
    );
    let delta = repeated(secret.len(), 2);
    let base = EntryHeader::RefDelta { base: hidden };
    let nothing = EntryHeader::RefDelta {
        base: id_of(ObjectKind::Blob, b"nowhere"),
    };
    let stealing = [base, nothing].map(|base| {
        let theft = pack(&[(base, &delta[..]), whole(ObjectKind::Commit, &commit)]);
        attacker.attack(tip, theft, 2).to_string()
    });
    assert!(stealing[0].contains("unresolved delta"), "{}", stealing[0]);
    assert_eq!(stealing[0], stealing[1], "that it is there cannot be told");

    for (child, friend) in friendly.into_iter().zip(&friends) {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{friend}: {}", stderr(&output));
        let tracked = world.git(
            "desk",
            &["rev-parse", &format!("refs/remotes/{friend}/main")],
        );
        assert_eq!(tracked, world.git(friend, &["rev-parse", "main"]));
    }
    // Sessions that only wait are closed.
    for mut socket in silent {
        let end = Duration::from_secs(120);
        socket.set_read_timeout(Some(end)).expect("a socket");
        let mut read = socket.read(&mut [0; 64]);
        // With a time limit the system does not repeat a call that a signal interrupted.
        while matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::Interrupted) {
            read = socket.read(&mut [0; 64]);
        }
        let is_over = match &read {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        assert!(is_over, "{read:?}");
    }
    server.wait_for(|line| {
        line.contains("\"peer\":\"mallory\"") && line.contains("the peer sent too little within")
    });
    drop(stalled);
    assert!(server.peak_kib() < 400 << 10, "{} KiB", server.peak_kib());
    let refs = world.git("desk", &["for-each-ref"]);
    let kept: Vec<&str> = refs
        .lines()
        .filter(|line| !line.contains("/friend"))
        .collect();
    assert_eq!(kept, before.lines().collect::<Vec<_>>());
    world.git("desk", &["fsck", "--full", "--strict"]);
}

/// A recorded session cannot be replayed: only the greeting of the server is returned.
#[test]
fn a_recorded_session_cannot_be_replayed() {
    let world = World::new();
    world.repository("desk");
    world.git(".", &["clone", "-q", "desk", "laptop"]);
    world.commit("laptop", "l", b"laptop\n");
    let (desk, laptop) = (world.key("desk"), world.key("laptop"));
    world.introduce(("desk", &desk), ("laptop", &laptop));
    let server = world.serve("desk", "desk", &["--handshake-timeout", "3"]);
    // A relay that records the bytes of the client.
    let between = std::net::TcpListener::bind("127.0.0.1:0").expect("a place");
    let at = between.local_addr().expect("an address").to_string();
    let to = server.address.clone();
    let recorded = std::thread::spawn(move || {
        let (mut client, _) = between.accept().expect("somebody comes");
        let mut server = TcpStream::connect(to).expect("it listens");
        let (mut back, mut forth) = (
            server.try_clone().expect("a socket"),
            client.try_clone().expect("a socket"),
        );
        let answers = std::thread::spawn(move || {
            let _ = std::io::copy(&mut back, &mut forth);
            let _ = forth.shutdown(std::net::Shutdown::Write);
        });
        let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            said.extend_from_slice(&buffer[..count]);
            if server.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = server.shutdown(std::net::Shutdown::Write);
        let _ = answers.join();
        said
    });
    let url = format!("netsync://{at}/");
    world.done("laptop", "laptop", &["sync", &url, "--name", "desk"]);
    let said = recorded.join().expect("it is recorded");
    assert!(said.len() > 500, "{}", said.len());
    // No sent text is readable in it.
    assert!(!said.windows(10).any(|part| part == b"refs/heads"));
    let refs = world.git("desk", &["for-each-ref"]);
    let mut socket = TcpStream::connect(&server.address).expect("it listens");
    let _ = socket.write_all(&said);
    let mut heard = Vec::new();
    let _ = socket.read_to_end(&mut heard);
    // A replayed handshake cannot be continued without the secret of the first one.
    assert!(heard.len() < 2000, "{}", heard.len());
    server.wait_for(|line| line.contains("\"number\":1") && line.contains("\"failed\""));
    assert_eq!(world.git("desk", &["for-each-ref"]), refs);
}

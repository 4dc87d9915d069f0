//! Hidden objects cause the same responses as missing objects.

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_netsync::ErrorKind;
use pronto_netsync::message::{TransferPlan, TransferRole};

use crate::netsync_hostile::commit_of;
use crate::netsync_peers::{Server, World};
use crate::netsync_puppet::{Attacker, Puppet, id_of, pack, whole};

/// A server with a hidden branch, and a peer.
struct Scene {
    world: World,
    server: Server,
    peer: Attacker,
}

impl Scene {
    fn new() -> Self {
        let world = World::new();
        world.repository("desk");
        for name in ["one", "two", "three"] {
            world.commit("desk", name, name.as_bytes());
        }
        // Its history is visible except for its tip.
        world.git("desk", &["checkout", "-q", "-b", "hidden"]);
        world.commit("desk", "secret", b"[core]\nwhat = nobody shall know\n");
        world.git("desk", &["checkout", "-q", "main"]);
        world.commit("desk", "four", b"four");
        let hide = ["config", "transfer.hideRefs", "refs/heads/hidden"];
        world.git("desk", &hide);
        let (desk, peer) = (world.key("desk"), world.key("mallory"));
        world.introduce(("desk", &desk), ("mallory", &peer));
        let server = world.serve("desk", "desk", &["--allow-unrelated"]);
        let peer = Attacker::new(&world, &server, "mallory");
        Scene {
            world,
            server,
            peer,
        }
    }

    fn id(&self, revision: &str) -> ObjectId {
        let hex = self.world.git("desk", &["rev-parse", revision]);
        ObjectId::from_hex(hex.trim().as_bytes()).expect("an id")
    }
}

/// An unused id close to another one.
fn near(id: ObjectId) -> ObjectId {
    let mut near = id;
    let last = near.as_mut_slice().last_mut().expect("bytes");
    *last ^= 1;
    near
}

#[test]
fn a_reader_may_name_only_visible_commits() {
    let scene = Scene::new();
    let plan = |held: ObjectId| -> (TransferPlan, u64) {
        let puppet = Puppet {
            wants: true,
            held: vec![held],
            ..Puppet::default()
        };
        let (result, report) = scene
            .peer
            .converse(puppet, TransferRole::Sink, &mut |_, _| {});
        result.expect("it is served");
        let plan = report.incoming_plan.expect("something is to come");
        (plan, report.received_bytes)
    };
    let hidden = scene.id("hidden");
    let of_nothing = plan(near(hidden));
    assert_eq!(of_nothing.0.commits, 5);
    assert_eq!(plan(hidden), of_nothing);
    for kind in ["hidden:secret", "hidden^{tree}", "main:one"] {
        assert_eq!(plan(scene.id(kind)), of_nothing, "{kind}");
    }
    // Visible commits count.
    assert_eq!(plan(scene.id("main~1")).0.commits, 1);
    drop(scene.server);
}

#[test]
fn refusals_do_not_reveal_hidden_objects() {
    let scene = Scene::new();
    let blob = b"a gift\n";
    let parts = commit_of(&id_of(ObjectKind::Blob, blob));
    let [(_, tree), (_, commit)] = &parts;
    let text = String::from_utf8(commit.clone()).expect("text");
    let child = |parent: &ObjectId| {
        let text = text.replacen("author", &format!("parent {parent}\nauthor"), 1);
        text.into_bytes()
    };
    let zeros = ObjectId::from_hex(&[b'0'; 39].iter().chain(b"1").copied().collect::<Vec<_>>());
    let others = [
        zeros.expect("an id"),
        ObjectId::from_hex(&[b'f'; 40]).expect("an id"),
    ];
    let hidden = ["hidden", "hidden^{tree}", "hidden:secret"].map(|name| scene.id(name));
    // Two branches: one based on a hidden commit, the other on a missing one.
    let said = |unknown: &ObjectId, other: &ObjectId, is_first: bool| {
        let (one, two) = (child(unknown), child(other));
        let content = [
            whole(ObjectKind::Blob, blob),
            whole(ObjectKind::Tree, tree),
            whole(ObjectKind::Commit, &one),
            whole(ObjectKind::Commit, &two),
        ];
        let mut tips = [&one, &two].map(|commit| id_of(ObjectKind::Commit, commit));
        if !is_first {
            tips.reverse();
        }
        let error = scene.peer.attack_with(&tips, pack(&content), 4);
        let text = error.to_string();
        (error.kind(), text.replace(&unknown.to_string(), "UNKNOWN"))
    };
    for id in &hidden {
        for other in &others {
            for is_first in [true, false] {
                let is_here = said(id, other, is_first);
                assert_eq!(is_here.0, ErrorKind::Malformed, "{}", is_here.1);
                assert_eq!(is_here, said(&near(*id), other, is_first));
            }
        }
    }
    // Tips that were not sent.
    let offered = |unknown: &ObjectId, other: &ObjectId| {
        let content = [whole(ObjectKind::Blob, &blob[..])];
        let error = scene
            .peer
            .attack_with(&[*unknown, *other], pack(&content), 1);
        let text = error.to_string();
        (error.kind(), text.replace(&unknown.to_string(), "UNKNOWN"))
    };
    for id in &hidden {
        for other in &others {
            assert_eq!(offered(id, other), offered(&near(*id), other));
        }
    }
}

#[test]
fn content_checks_do_not_read_hidden_objects() {
    let scene = Scene::new();
    let said = |unknown: &ObjectId| {
        let tree = [b"100644 .gitmodules\0", unknown.as_slice()].concat();
        let [_, (_, commit)] = commit_of(&id_of(ObjectKind::Blob, b""));
        let text = String::from_utf8(commit).expect("text");
        let id = id_of(ObjectKind::Tree, &tree).to_string();
        let (_, rest) = text.split_once('\n').expect("lines");
        let commit = format!("tree {id}\n{rest}").into_bytes();
        let content = [
            whole(ObjectKind::Tree, &tree),
            whole(ObjectKind::Commit, &commit),
        ];
        let tip = id_of(ObjectKind::Commit, &commit);
        let error = scene.peer.attack(tip, pack(&content), 2).to_string();
        error.replace(&unknown.to_string(), "UNKNOWN")
    };
    for name in ["hidden:secret", "hidden^{tree}", "hidden"] {
        let id = scene.id(name);
        assert_eq!(said(&id), said(&near(id)), "{name}");
    }
}

/// A pack can name many parents in few bytes, which the receiver would hold in memory.
#[test]
fn commits_with_thousands_of_parents_are_refused() {
    let scene = Scene::new();
    let [(_, tree), (_, commit)] = commit_of(&id_of(ObjectKind::Blob, b"x"));
    let text = String::from_utf8(commit).expect("text");
    let parents: String = (0..5000).map(|at| format!("parent {at:040x}\n")).collect();
    let commit = text.replacen("author", &format!("{parents}author"), 1);
    let content = [
        whole(ObjectKind::Blob, b"x"),
        whole(ObjectKind::Tree, &tree),
        whole(ObjectKind::Commit, commit.as_bytes()),
    ];
    let tip = id_of(ObjectKind::Commit, commit.as_bytes());
    let said = scene.peer.attack(tip, pack(&content), 3);
    assert!(said.to_string().contains("too many parents"), "{said}");
}

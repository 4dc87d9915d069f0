//! Tests of dishonest peers, whose data must reach neither refs nor the object store.

use std::sync::Arc;

use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_netsync::Error;
use pronto_netsync::message::{Resume, SegmentKind};
use pronto_netsync::repository::{OfferedRef, SyncRepository as _};
use pronto_peer::{Options, PeerRepository};

use crate::support::Sandbox;

/// A repository with a hidden object, and the repository of a peer that knows only its id.
struct Scene {
    sandbox: Sandbox,
    hidden: String,
    base: String,
}

impl Scene {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.repository("victim");
        sandbox.git("", &["clone", "-q", "victim", "thief"]);
        let secret = sandbox.root.join("secret");
        std::fs::write(&secret, "a secret that nobody may read\n".repeat(50)).expect("a file");
        let hidden = sandbox.git("victim", &["hash-object", "-w", "../secret"]);
        let base = sandbox.git("thief", &["rev-parse", "HEAD"]);
        Scene {
            sandbox,
            hidden,
            base,
        }
    }

    /// Writes a tree of one file in the thief's repository. Its object need not exist.
    fn tree(&self, line: &str) -> String {
        std::fs::write(self.sandbox.root.join("line"), format!("{line}\n")).expect("a file");
        let script = "git mktree --missing <../line";
        self.shell("thief", script)
    }

    /// Writes a tree whose entries may have any type.
    fn raw_tree(&self, lines: &str) -> String {
        let mut content = Vec::new();
        for line in lines.lines() {
            let (head, name) = line.split_once('\t').expect("an entry");
            let mut words = head.split(' ');
            let mode = words.next().expect("a mode").trim_start_matches('0');
            let id = ObjectId::from_hex(words.nth(1).expect("an id").as_bytes()).expect("an id");
            content.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            content.extend_from_slice(id.as_slice());
        }
        self.raw("tree", &content)
    }

    /// Writes a commit of `tree`, which may be any object.
    fn raw_commit(&self, tree: &str) -> String {
        let (base, person) = (&self.base, "T <t@x> 1 +0000");
        let content =
            format!("tree {tree}\nparent {base}\nauthor {person}\ncommitter {person}\n\nx\n");
        self.raw("commit", content.as_bytes())
    }

    fn raw(&self, kind: &str, content: &[u8]) -> String {
        std::fs::write(self.sandbox.root.join("raw"), content).expect("a file");
        let arguments = ["hash-object", "-w", "--literally", "-t", kind, "../raw"];
        self.sandbox.git("thief", &arguments)
    }

    fn commit(&self, tree: &str) -> String {
        self.commit_on(&self.base, tree)
    }

    fn commit_on(&self, parent: &str, tree: &str) -> String {
        let arguments = ["commit-tree", "-p", parent, "-m", "theft", tree];
        self.sandbox.git("thief", &arguments)
    }

    fn shell(&self, directory: &str, script: &str) -> String {
        self.sandbox.git(
            directory,
            &[
                "-c",
                &format!("alias.run=!cd \"$GIT_PREFIX.\" && {script}"),
                "run",
            ],
        )
    }

    /// Creates a pack of `ids` from `directory`.
    fn pack(&self, directory: &str, ids: &[&str]) -> Vec<u8> {
        std::fs::write(self.sandbox.root.join("ids"), ids.join("\n") + "\n").expect("a file");
        let script = "git pack-objects -q --stdout <../ids >../pack";
        self.shell(directory, script);
        std::fs::read(self.sandbox.root.join("pack")).expect("a pack")
    }

    /// Returns the victim after it got the offer `tip` and wants it.
    fn victim(&self, tip: &str) -> (PeerRepository, OfferedRef) {
        let mut victim = self.looked_at(false);
        let offer = offer("refs/heads/loot", tip, None);
        let complete = victim
            .complete(std::slice::from_ref(&offer))
            .expect("they are read");
        let lacks: Vec<bool> = complete.iter().map(|complete| !complete).collect();
        let progress = victim.prepare(std::slice::from_ref(&offer), &lacks);
        assert_eq!(progress.expect("nobody else is at it").wanted, [true]);
        (victim, offer)
    }

    /// Returns the victim after it has sent its refs.
    fn looked_at(&self, fast_forward: bool) -> PeerRepository {
        let mut options = Options::new("thief".to_owned(), 1 << 20);
        options.fast_forward = fast_forward;
        options.threads = 0;
        let repository = Arc::new(self.sandbox.open("victim"));
        let mut victim = PeerRepository::new(repository, options, Interrupt::new()).expect("plain");
        let mut own = Vec::new();
        victim
            .refs(&|_| true, &mut |offer| own.push(offer.name.clone()))
            .expect("refs");
        assert_eq!(own, [b"refs/heads/main".to_vec()]);
        victim
    }

    /// Offers `offers`, sends `ids`, and returns the response of the victim.
    fn publish(&self, offers: &[OfferedRef], ids: &[&str]) -> Error {
        let mut victim = self.looked_at(true);
        let complete = victim.complete(offers).expect("they are read");
        let lacks: Vec<bool> = complete.iter().map(|complete| !complete).collect();
        let progress = victim.prepare(offers, &lacks).expect("alone");
        let arrived: Vec<bool> = (progress.wanted.iter().zip(&complete))
            .map(|(wanted, complete)| *wanted || *complete)
            .collect();
        if !ids.is_empty() {
            let pack = self.pack("thief", ids);
            send(&mut victim, &pack, ids.len() as u64).expect("a sound pack");
        }
        victim.publish(offers, &arrived).expect_err("it is noticed")
    }

    fn check_unharmed(&self) {
        let refs = self
            .sandbox
            .git("victim", &["for-each-ref", "--format=%(refname)"]);
        assert_eq!(refs, "refs/heads/main");
        self.sandbox.git("victim", &["fsck", "--full", "--strict"]);
        let packs = std::fs::read_dir(self.sandbox.root.join("victim/.git/objects/pack"));
        assert_eq!(packs.expect("a folder").count(), 0);
    }
}

fn offer(name: &str, id: &str, peeled: Option<&str>) -> OfferedRef {
    let read = |id: &str| ObjectId::from_hex(id.as_bytes()).expect("an id");
    OfferedRef {
        name: name.into(),
        id: read(id),
        peeled: peeled.map(read),
    }
}

fn send(victim: &mut PeerRepository, pack: &[u8], objects: u64) -> Result<(), Error> {
    victim.begin_segment(SegmentKind::Pack, objects, pack.len() as u64)?;
    for piece in pack.chunks(100) {
        victim.segment_data(piece)?;
    }
    let checksum = ObjectId::try_from(&pack[pack.len() - 20..]).expect("an id");
    let resume = Resume {
        objects,
        mark: [0; 32],
    };
    victim.end_segment(&checksum, resume)
}

#[test]
fn a_hidden_object_cannot_be_made_ones_own() {
    let scene = Scene::new();
    let tree = scene.tree(&format!("100644 blob {}\tloot", scene.hidden));
    let tip = scene.commit(&tree);
    let (mut victim, offer) = scene.victim(&tip);
    send(&mut victim, &scene.pack("thief", &[&tree, &tip]), 2).expect("a sound pack");
    let error = victim
        .publish(std::slice::from_ref(&offer), &[true])
        .expect_err("it is noticed");
    let expected = format!(
        "the peer did not send all objects: {} is missing",
        scene.hidden
    );
    assert_eq!(error.message(), expected);
    scene.check_unharmed();
    // With the missing object, the same commit is accepted.
    scene
        .sandbox
        .git("thief", &["hash-object", "-w", "../secret"]);
    let (mut victim, _) = scene.victim(&tip);
    let pack = scene.pack("thief", &[&tree, &tip, &scene.hidden]);
    send(&mut victim, &pack, 3).expect("a sound pack");
    victim.publish(&[offer], &[true]).expect("all is there");
    assert_eq!(
        scene
            .sandbox
            .git("victim", &["rev-parse", "refs/remotes/thief/loot"]),
        tip
    );
    scene.sandbox.git("victim", &["fsck", "--full", "--strict"]);
}

#[test]
fn a_delta_cannot_read_what_is_hidden() {
    let scene = Scene::new();
    // A delta of the hidden object, written by an attacker that knows only its id.
    scene.sandbox.git("", &["clone", "-q", "victim", "forge"]);
    for (name, end) in [("old", ""), ("new", "and more\n")] {
        let text = "a secret that nobody may read\n".repeat(50) + end;
        std::fs::write(scene.sandbox.root.join("forge/file"), text).expect("a file");
        scene.sandbox.git("forge", &["add", "."]);
        scene.sandbox.git("forge", &["commit", "-q", "-m", name]);
    }
    let script = "printf 'HEAD\\n^HEAD~1\\n' | git pack-objects -q --revs --thin --stdout >../pack";
    scene.shell("forge", script);
    let pack = std::fs::read(scene.sandbox.root.join("pack")).expect("a pack");
    let tip = scene.sandbox.git("forge", &["rev-parse", "HEAD"]);
    let (mut victim, _) = scene.victim(&tip);
    let error = send(&mut victim, &pack, 3).expect_err("it builds on what was not sent");
    assert!(error.message().starts_with("invalid segment: "), "{error}");
    drop(victim);
    scene.check_unharmed();
}

#[test]
fn broken_and_evil_segments_leave_nothing() {
    let scene = Scene::new();
    let blob = scene
        .sandbox
        .git("thief", &["hash-object", "-w", "../secret"]);
    let tree = scene.tree(&format!("100644 blob {blob}\tfile"));
    let tip = scene.commit(&tree);
    let pack = scene.pack("thief", &[&blob, &tree, &tip]);
    let fails = |pack: &[u8], objects: u64, part: &str| {
        let (mut victim, _) = scene.victim(&tip);
        let error = send(&mut victim, pack, objects).expect_err("it is noticed");
        assert!(error.message().contains(part), "{error}");
        drop(victim);
        scene.check_unharmed();
        let left = scene
            .sandbox
            .root
            .join("victim/.git/objects/netsync/thief/objects/pack");
        assert_eq!(std::fs::read_dir(left).expect("a folder").count(), 0);
    };
    fails(&pack, 4, "a segment has 3 objects, but 4 were announced");
    fails(&pack[..pack.len() - 30], 3, "invalid segment: ");
    let mut broken = pack.clone();
    broken[40] ^= 1;
    fails(&broken, 3, "invalid segment: ");
    fails(&[&pack[..], b"x"].concat(), 3, "invalid segment: ");
    // Refs that would take over a worktree.
    let tree = scene.tree(&format!("040000 tree {tree}\t.git"));
    fails(&scene.pack("thief", &[&tree]), 1, "hasDotgit");
    // A second session has to wait for the first one.
    let (first, offer) = scene.victim(&tip);
    let repository = Arc::new(scene.sandbox.open("victim"));
    let mut options = Options::new("thief".to_owned(), 1 << 20);
    options.fast_forward = false;
    options.threads = 0;
    let mut second = PeerRepository::new(repository, options, Interrupt::new()).expect("plain");
    let busy = second.prepare(&[offer], &[true]).expect_err("busy");
    assert_eq!(busy.message(), "another session with this peer is running");
    drop(first);
}

#[test]
fn what_a_peer_says_of_its_tags_counts_for_nothing() {
    let scene = Scene::new();
    let main = scene.sandbox.git("victim", &["rev-parse", "main"]);
    let empty = scene.sandbox.git("thief", &["mktree"]);
    let forward = scene.commit_on(&scene.base, &empty);
    let aside = ["commit-tree", "-m", "unrelated", &empty];
    let aside = scene.sandbox.git("thief", &aside);
    // A branch at a commit, announced with a peeled id that is ahead.
    let lie = offer("refs/heads/main", &aside, Some(&forward));
    let error = scene.publish(&[lie], &[&forward, &aside, &empty]);
    let expected = format!("refs/heads/main does not lead to {forward}");
    assert_eq!(error.message(), expected);
    scene.check_unharmed();
    // The same for a tag, and for a tag that is announced as a commit.
    let lie = offer("refs/tags/v1", &aside, Some(&forward));
    let error = scene.publish(&[lie], &[&forward, &aside, &empty]);
    assert_eq!(
        error.message(),
        format!("refs/tags/v1 does not lead to {forward}")
    );
    scene.check_unharmed();
    scene
        .sandbox
        .git("thief", &["tag", "-m", "a tag", "v1", &forward]);
    let tag = scene.sandbox.git("thief", &["rev-parse", "v1"]);
    let lie = offer("refs/tags/v1", &tag, None);
    let error = scene.publish(&[lie], &[&forward, &empty, &tag]);
    assert_eq!(
        error.message(),
        format!("refs/tags/v1 does not lead to {tag}")
    );
    scene.check_unharmed();
    // Hidden objects of all types: none is reported as present, and none becomes a ref.
    std::fs::write(
        scene.sandbox.root.join("tag"),
        format!("object {main}\ntype commit\ntag t\ntagger T <t@x> 1 +0000\n\nhidden\n"),
    )
    .expect("a file");
    let arguments = ["hash-object", "-w", "-t", "tag", "../tag"];
    let hidden_tag = scene.sandbox.git("victim", &arguments);
    let arguments = ["commit-tree", "-m", "hidden", "-p", &main, &empty];
    scene.sandbox.git("victim", &["mktree"]);
    let hidden_commit = scene.sandbox.git("victim", &arguments);
    for hidden in [&scene.hidden, &hidden_tag, &hidden_commit] {
        for peeled in [None, Some(&main[..])] {
            let mut victim = scene.looked_at(true);
            let lie = offer("refs/tags/loot", hidden, peeled);
            let complete = victim.complete(std::slice::from_ref(&lie));
            assert_eq!(complete.expect("they are read"), [false], "{hidden}");
            let error = victim.publish(std::slice::from_ref(&lie), &[true]);
            error.expect_err("nothing has come");
            drop(victim);
            scene.publish(&[lie], &[&forward, &empty]);
            scene.check_unharmed();
        }
    }
}

#[test]
fn known_tags_lead_where_they_lead() {
    let scene = Scene::new();
    let git = |arguments: &[&str]| scene.sandbox.git("victim", arguments);
    git(&["tag", "-m", "a tag", "v1", "main"]);
    git(&["update-ref", "refs/remotes/thief/tags/v1", "v1"]);
    let kept = scene.sandbox.root.join("victim/.git/objects/netsync/thief");
    std::fs::create_dir_all(kept).expect("what an earlier session leaves");
    let tag = git(&["rev-parse", "v1"]);
    git(&["tag", "-d", "v1"]);
    let mut victim = scene.looked_at(false);
    let honest = offer("refs/tags/v2", &tag, Some(&scene.base));
    let branch = offer("refs/heads/b", &scene.base, None);
    let complete = victim.complete(&[branch, honest]).expect("they are read");
    assert_eq!(complete, [true, true]);
    for lie in [
        offer("refs/tags/v2", &tag, None),
        offer("refs/tags/v2", &tag, Some(&scene.hidden)),
        offer("refs/tags/v2", &scene.base, Some(&scene.hidden)),
    ] {
        let error = victim.complete(&[lie]).expect_err("it is known better");
        assert!(error.message().contains(" does not lead to "), "{error}");
    }
}

#[test]
fn a_submodule_brings_nothing_and_kinds_have_to_fit() {
    let scene = Scene::new();
    let hidden = &scene.hidden;
    let module = scene.tree(&format!("160000 commit {hidden}\tx"));
    let first = scene.commit(&module);
    let file = scene.tree(&format!("100644 blob {hidden}\tx"));
    let second = scene.commit_on(&first, &file);
    let missing = format!("the peer did not send all objects: {hidden} is missing");
    let error = scene.publish(
        &[offer("refs/heads/loot", &second, None)],
        &[&module, &first, &file, &second],
    );
    assert_eq!(error.message(), missing);
    scene.check_unharmed();
    // A discarded tree proves nothing, in any order of the checks.
    let other = scene.tree(&format!("100644 blob {hidden}\tx\n100644 blob {hidden}\ty"));
    let chain = [&file, &other, &file, &other].map(|tree| &tree[..]);
    let mut tips = vec![scene.base.clone()];
    for tree in chain {
        tips.push(scene.commit_on(&tips[tips.len() - 1], tree));
    }
    let mut ids = vec![&file[..], &other];
    ids.extend(tips[1..].iter().map(|tip| &tip[..]));
    for turned in [false, true] {
        let names = ["a", "b", "c", "d"].map(|name| format!("refs/heads/{name}"));
        let mut offers: Vec<OfferedRef> = (names.iter().zip(&tips[1..]))
            .map(|(name, tip)| offer(name, tip, None))
            .collect();
        if turned {
            for (at, tip) in tips[1..].iter().rev().enumerate() {
                offers[at] = offer(&names[at], tip, None);
            }
        }
        assert_eq!(scene.publish(&offers, &ids).message(), missing);
        scene.check_unharmed();
    }
    // A blob in place of a tree, and the reverse.
    let blob = scene
        .sandbox
        .git("thief", &["hash-object", "-w", "../secret"]);
    let empty_file = scene
        .sandbox
        .git("thief", &["hash-object", "-w", "/dev/null"]);
    let inner = scene.tree(&format!("100644 blob {empty_file}\tf"));
    for (line, wrong) in [
        (format!("040000 tree {blob}\tx"), &blob),
        (format!("100644 blob {inner}\tx"), &inner),
        (
            format!("100644 blob {blob}\ta\n040000 tree {blob}\tx"),
            &blob,
        ),
    ] {
        let tree = scene.raw_tree(&line);
        let tip = scene.raw_commit(&tree);
        let ids = [&blob[..], &empty_file, &inner, &tree, &tip];
        let error = scene.publish(&[offer("refs/heads/loot", &tip, None)], &ids);
        let expected = format!("the peer did not send all objects: {wrong} is missing");
        assert_eq!(error.message(), expected, "{line}");
        scene.check_unharmed();
    }
    let tip = scene.raw_commit(&blob);
    let offered = offer("refs/heads/loot", &tip, None);
    let error = scene.publish(&[offered], &[&blob, &tip]);
    assert!(error.message().ends_with("is missing"), "{error}");
    scene.check_unharmed();
}

#[test]
fn the_places_of_others_are_not_a_peers() {
    let scene = Scene::new();
    let git = |arguments: &[&str]| scene.sandbox.git("victim", arguments);
    let begin = |peer: &str| {
        let mut options = Options::new(peer.to_owned(), 1 << 20);
        options.fast_forward = true;
        options.threads = 0;
        let repository = Arc::new(scene.sandbox.open("victim"));
        PeerRepository::new(repository, options, Interrupt::new())
    };
    git(&["config", "remote.origin.url", "../thief"]);
    let fetched = "+refs/heads/*:refs/remotes/up/*";
    git(&["config", "remote.upstream.fetch", fetched]);
    git(&["update-ref", "refs/remotes/svn/trunk", "main"]);
    for (peer, part) in [
        ("origin", "it is the name of a remote"),
        ("up", "it names refs that a remote fetches to"),
        ("svn", "it names a place that already contains refs"),
    ] {
        let error = begin(peer).err().expect("it is taken");
        let expected = format!("invalid peer name '{peer}': {part}");
        assert_eq!(error.message(), expected);
    }
    // Data of a session belongs to its peer, even if nothing had to be sent.
    let mut first = begin("thief").expect("it is free");
    first.refs(&|_| true, &mut |_| {}).expect("refs");
    let own = offer("refs/heads/theirs", &scene.base, None);
    let own = std::slice::from_ref(&own);
    assert_eq!(first.complete(own).expect("they are read"), [true]);
    first.publish(own, &[true]).expect("all is there");
    assert_eq!(git(&["rev-parse", "thief/theirs"]), scene.base);
    drop(begin("thief").expect("it is the peer's"));
}

#[test]
fn hidden_refs_are_neither_shown_nor_moved() {
    let scene = Scene::new();
    let git = |arguments: &[&str]| scene.sandbox.git("victim", arguments);
    let empty = git(&["mktree"]);
    let hidden = git(&["commit-tree", "-m", "hidden", "-p", "main", &empty]);
    git(&["update-ref", "refs/heads/secret/a", &hidden]);
    git(&["update-ref", "refs/heads/secret/b", "main"]);
    git(&["config", "transfer.hideRefs", "refs/heads/secret"]);
    // Only main is advertised.
    let mut victim = scene.looked_at(true);
    let offers = [offer("refs/heads/secret/a", &hidden, None)];
    assert_eq!(victim.complete(&offers).expect("they are read"), [false]);
    drop(victim);
    scene.sandbox.git("thief", &["mktree"]);
    let forward = scene.commit_on(&scene.base, &empty);
    let offers = [offer("refs/heads/secret/b", &forward, None)];
    let mut victim = scene.looked_at(true);
    let complete = victim.complete(&offers).expect("they are read");
    let lacks: Vec<bool> = complete.iter().map(|complete| !complete).collect();
    victim.prepare(&offers, &lacks).expect("alone");
    let pack = scene.pack("thief", &[&forward, &empty]);
    send(&mut victim, &pack, 2).expect("a sound pack");
    victim.publish(&offers, &[true]).expect("all is there");
    assert_eq!(victim.moved(), []);
    assert_eq!(git(&["rev-parse", "secret/b"]), scene.base);
    assert_eq!(git(&["rev-parse", "thief/secret/b"]), forward);
}

//! Invalid packs, sent by servers or stored in repositories.

use super::Table;
use crate::attack::{Attack, Scene, command};
use crate::pack::{BLOB, COMMIT, Pack, TAG, TREE, delta, header, id, sealed, zlib, zlib_bomb};
use crate::servers::git::Offer;

/// Builds a pack.
type Make = fn() -> Vec<u8>;

/// Packs that must be refused.
const BROKEN: &[Case] = &[
    Case::new("empty", || b"PACK".to_vec()),
    Case::new("no-pack", || b"KCAP\0\0\0\x02\0\0\0\0".to_vec()),
    Case::new("version-0", || {
        Pack::new().version(0).object(BLOB, b"x").finish()
    }),
    Case::new("version-4", || {
        Pack::new().version(4).object(BLOB, b"x").finish()
    }),
    Case::new("version-huge", || {
        Pack::new().version(u32::MAX).object(BLOB, b"x").finish()
    }),
    Case::new("claims-4-billion-objects", || {
        Pack::new().claim(u32::MAX).object(BLOB, b"x").finish()
    }),
    Case::new("claims-100-million-objects", || {
        Pack::new().claim(100_000_000).object(BLOB, b"x").finish()
    }),
    Case::new("claims-more", || {
        Pack::new().claim(2).object(BLOB, b"x").finish()
    }),
    Case::new("claims-fewer", || {
        let pack = Pack::new().object(BLOB, b"x").object(BLOB, b"y");
        pack.claim(1).finish()
    }),
    Case::new("wrong-checksum", || {
        let mut bytes = Pack::new().object(BLOB, b"x").finish();
        *bytes.last_mut().expect("it has bytes") ^= 1;
        bytes
    }),
    Case::new("no-checksum", || {
        let mut bytes = Pack::new().object(BLOB, b"x").finish();
        bytes.truncate(bytes.len() - 20);
        bytes
    }),
    Case::new("half-a-checksum", || {
        let mut bytes = Pack::new().object(BLOB, b"x").finish();
        bytes.truncate(bytes.len() - 10);
        bytes
    }),
    Case::new("kind-0", || Pack::new().entry(0, 1, &zlib(b"x")).finish()),
    Case::new("kind-5", || Pack::new().entry(5, 1, &zlib(b"x")).finish()),
    Case::new("size-too-small", || {
        Pack::new().entry(BLOB, 1, &zlib(b"xyz")).finish()
    }),
    Case::new("size-too-large", || {
        Pack::new().entry(BLOB, 9, &zlib(b"xyz")).finish()
    }),
    Case::new("claims-4-gib", || {
        Pack::new().entry(BLOB, 4 << 30, &zlib(b"x")).finish()
    }),
    Case::new("claims-a-huge-commit", || {
        Pack::new().entry(COMMIT, 1 << 40, &zlib(b"x")).finish()
    }),
    Case::new("claims-all-there-is", || {
        Pack::new().entry(BLOB, u64::MAX, &zlib(b"x")).finish()
    }),
    Case::new("size-that-overflows", || {
        let mut bytes = vec![0xbf];
        bytes.extend([0xff; 12]);
        bytes.push(0x7f);
        bytes.extend(zlib(b"x"));
        Pack::new().raw(&bytes).finish()
    }),
    Case::new("size-without-end", || {
        Pack::new().raw(&[0xff; 4096]).finish()
    }),
    Case::new("no-stream", || Pack::new().entry(BLOB, 10, b"").finish()),
    Case::new("broken-stream", || {
        Pack::new().entry(BLOB, 3, b"garbage-garbage").finish()
    }),
    Case::new("stream-that-ends-early", || {
        let stream = zlib(&[b'x'; 5000]);
        Pack::new()
            .entry(BLOB, 5000, &stream[..stream.len() / 2])
            .finish()
    }),
    Case::new("stream-with-a-wrong-sum", || {
        let mut stream = zlib(b"something");
        *stream.last_mut().expect("it has bytes") ^= 1;
        Pack::new().entry(BLOB, 9, &stream).finish()
    }),
    Case::new("bomb", || {
        let stream = zlib_bomb(b"", 128 << 20);
        Pack::new().entry(BLOB, 10, &stream).finish()
    }),
    Case::new("bomb-of-a-tree", || {
        let stream = zlib_bomb(b"", 128 << 20);
        Pack::new().entry(TREE, 10, &stream).finish()
    }),
];

/// Packs whose deltas must be refused.
const DELTAS: &[Case] = &[
    Case::new("upon-itself", || {
        let pack = Pack::new().object(BLOB, b"base");
        pack.offset_delta(0, &delta(4, 4, b"\x90\x04")).finish()
    }),
    Case::new("before-the-pack", || {
        let pack = Pack::new().object(BLOB, b"base");
        pack.offset_delta(1 << 40, &delta(4, 4, b"\x90\x04"))
            .finish()
    }),
    Case::new("upon-the-header", || {
        let pack = Pack::new().object(BLOB, b"base");
        let distance = pack.position() - 4;
        pack.offset_delta(distance, &delta(4, 4, b"\x90\x04"))
            .finish()
    }),
    Case::new("upon-the-middle", || {
        let pack = Pack::new().object(BLOB, b"base");
        let distance = pack.position() - 13;
        pack.offset_delta(distance, &delta(4, 4, b"\x90\x04"))
            .finish()
    }),
    Case::new("distance-that-overflows", || {
        let mut bytes = header(6, 4);
        bytes.extend([0xff; 12]);
        bytes.push(0x7f);
        bytes.extend(zlib(&delta(4, 4, b"\x90\x04")));
        Pack::new().object(BLOB, b"base").raw(&bytes).finish()
    }),
    Case::new("upon-nothing", || {
        let pack = Pack::new().object(BLOB, b"base");
        pack.reference_delta([7; 20], &delta(4, 4, b"\x90\x04"))
            .finish()
    }),
    Case::new("upon-each-other", || {
        // Two deltas with each other as base. Their ids are unknowable, so arbitrary ids are used.
        let pack = Pack::new().reference_delta([1; 20], &delta(4, 4, b"\x90\x04"));
        pack.reference_delta([2; 20], &delta(4, 4, b"\x90\x04"))
            .finish()
    }),
    Case::new("copies-beyond-the-base", || {
        of_base(&delta(4, 100, b"\x90\x64"))
    }),
    Case::new("copies-from-beyond", || {
        of_base(&delta(4, 4, b"\x9f\xff\xff\xff\xff\x04"))
    }),
    Case::new("copies-with-overflow", || {
        of_base(&delta(4, 4, b"\xff\xff\xff\xff\xff\xff\xff\xff"))
    }),
    Case::new("inserts-what-is-not-there", || {
        of_base(&delta(4, 100, b"\x64xyz"))
    }),
    Case::new("unknown-instruction", || of_base(&delta(4, 4, b"\x00"))),
    Case::new("copy-without-arguments", || of_base(&delta(4, 4, b"\xff"))),
    Case::new("makes-less", || of_base(&delta(4, 100, b"\x90\x04"))),
    Case::new("makes-more", || of_base(&delta(4, 2, b"\x90\x04"))),
    Case::new("of-another-base", || of_base(&delta(5, 4, b"\x90\x04"))),
    Case::new("claims-a-terabyte", || {
        of_base(&delta(4, 1 << 40, b"\x90\x04"))
    }),
    Case::new("claims-all-there-is", || {
        of_base(&delta(4, u64::MAX, b"\x90\x04"))
    }),
    Case::new("base-of-all-there-is", || {
        of_base(&delta(u64::MAX, 4, b"\x90\x04"))
    }),
    Case::new("size-without-end", || of_base(&[0xff; 64])),
    Case::new("nothing-at-all", || of_base(b"")),
    Case::new("half-a-head", || of_base(b"\x04")),
];

struct Case {
    name: &'static str,
    make: Make,
}

impl Case {
    const fn new(name: &'static str, make: Make) -> Self {
        Case { name, make }
    }
}

/// A pack with a delta whose base is the blob `base`.
fn of_base(delta: &[u8]) -> Vec<u8> {
    let pack = Pack::new().object(BLOB, b"base");
    let distance = pack.position() - 12;
    pack.offset_delta(distance, delta).finish()
}

pub(super) fn table() -> Table {
    let mut table = Table::new("packs");
    for (kind, cases) in [("pack", BROKEN), ("delta", DELTAS)] {
        for case in cases {
            table.row(format!("indexed-{kind}-{}", case.name), |scene| {
                scene.repository("work/repo");
                command(["index-pack", "--stdin"])
                    .within("work/repo")
                    .reads((case.make)())
                    .fails()
            });
            table.row(format!("unpacked-{kind}-{}", case.name), |scene| {
                scene.repository("work/repo");
                command(["unpack-objects"])
                    .within("work/repo")
                    .reads((case.make)())
                    .fails()
            });
            table.row(format!("fetched-{kind}-{}", case.name), |scene| {
                fetched(scene, (case.make)()).fails()
            });
        }
    }
    accepted(&mut table);
    unsound(&mut table);
    table
}

/// Fetches a commit that exists here already, so that only the pack is wrong.
fn fetched(scene: &mut Scene, pack: Vec<u8>) -> Attack {
    let commit = scene.ids.second.clone();
    let url = scene.git_server(Offer::new(scene.ids).commit(&commit).pack(pack));
    scene.repository("work/repo");
    command(["fetch", &url, "main"]).within("work/repo")
}

/// Packs that are unusual but valid.
fn accepted(table: &mut Table) {
    table.row("two-of-a-kind", |scene| {
        let pack = Pack::new().object(BLOB, b"x").object(BLOB, b"x").finish();
        index(scene, pack)
    });
    table.row("version-3", |scene| {
        index(scene, Pack::new().version(3).object(BLOB, b"x").finish())
    });
    table.row("thin-with-a-delta-before-the-pack", |scene| {
        let base = id("blob", b"two\n");
        let pack = Pack::new().reference_delta(base, &delta(4, 4, b"\x90\x04"));
        let pack = pack.offset_delta(1 << 20, &delta(4, 4, b"\x90\x04"));
        fetched(scene, pack.finish()).fails()
    });
    table.row("header-alone", |scene| {
        let mut pack = Pack::new().claim(u32::MAX).finish();
        pack.truncate(12);
        fetched(scene, pack).fails()
    });
    table.row("empty-is-sound", |scene| {
        index(scene, Pack::new().finish()).succeeds()
    });
    table.row("deep-chain", |scene| {
        let mut pack = Pack::new().object(BLOB, b"base");
        let mut last = 12;
        for number in 0..50_000_u32 {
            let position = pack.position();
            let mut instructions = b"\x90\x04\x08".to_vec();
            instructions.extend(format!("{number:08}").bytes());
            let base = if number == 0 { 4 } else { 12 };
            pack = pack.offset_delta(position - last, &delta(base, 12, &instructions));
            last = position;
        }
        index(scene, pack.finish()).succeeds().mebibytes(512)
    });
    table.row("large-blob-is-not-held", |scene| {
        let size = 520 << 20;
        let pack = Pack::new()
            .entry(BLOB, size, &zlib_bomb(b"", size))
            .finish();
        index(scene, pack).succeeds()
    });
    table.row("object-that-is-known", |scene| {
        index(scene, Pack::new().object(BLOB, b"one\n").finish()).succeeds()
    });
    table.row("junk-after-the-end", |scene| {
        let mut pack = Pack::new().object(BLOB, b"x").finish();
        pack.extend_from_slice(&[b'j'; 10_000]);
        index(scene, pack)
    });
    table.row("sealed-with-nothing", |scene| {
        index(scene, sealed(b"PACK\0\0\0\x02".to_vec())).fails()
    });
}

fn index(scene: &Scene, pack: Vec<u8>) -> Attack {
    scene.repository("work/repo");
    command(["index-pack", "--stdin"])
        .within("work/repo")
        .reads(pack)
}

/// Malformed objects, with `fsckObjects`.
fn unsound(table: &mut Table) {
    for (name, kind, content) in [
        ("tree-without-end", TREE, &b"100644 name-without-end"[..]),
        ("tree-of-garbage", TREE, b"\xff\xff\xff"),
        ("tree-with-half-an-id", TREE, b"100644 a\0xxxx"),
        (
            "tree-with-a-slash",
            TREE,
            b"100644 a/b\0xxxxxxxxxxxxxxxxxxxx",
        ),
        ("tree-with-git", TREE, b"40000 .git\0xxxxxxxxxxxxxxxxxxxx"),
        ("tree-with-dots", TREE, b"40000 ..\0xxxxxxxxxxxxxxxxxxxx"),
        ("commit-of-garbage", COMMIT, b"garbage"),
        ("commit-that-is-empty", COMMIT, b""),
        ("commit-with-nul", COMMIT, b"tree 0\0"),
        ("commit-with-a-short-tree", COMMIT, b"tree 1234\n"),
        ("tag-of-garbage", TAG, b"object\n"),
        ("tag-that-is-empty", TAG, b""),
        (
            "tag-of-a-negative-size",
            TAG,
            b"object 1234\ntype blob\ntag \ntagger \n",
        ),
    ] {
        table.row(format!("strict-{name}"), move |scene| {
            scene.repository("work/repo");
            command(["index-pack", "--strict", "--stdin"])
                .within("work/repo")
                .reads(Pack::new().object(kind, content).finish())
                .fails()
        });
        table.row(format!("shown-{name}"), move |scene| {
            scene.repository("work/repo");
            let pack = Pack::new().object(kind, content).finish();
            scene.write("work/repo/.git/objects/pack/x", "");
            scene.git_reading("work/repo", &["index-pack", "--stdin"], &pack);
            let word = ["", "commit", "tree", "blob", "tag"][usize::from(kind)];
            let id = crate::pack::hex(&id(word, content));
            command(["checkout", &id, "--", "."])
                .within("work/repo")
                .fails()
        });
    }
}

//! Repository files on disk that are broken or not regular files.

use super::Table;
use crate::attack::{Attack, Scene, command};
use crate::pack::{sealed, zlib, zlib_bomb};

/// The reason why rows with FIFOs have no control run.
const PATIENT: &str = "it waits for a writer, or reads without end";

pub(super) fn table() -> Table {
    let mut table = Table::new("files");
    indexes(&mut table);
    objects(&mut table);
    tables(&mut table);
    graphs(&mut table);
    special(&mut table);
    lists(&mut table);
    table
}

/// Commands that read a repository.
const READERS: &[&[&str]] = &[
    &["status"],
    &["rev-parse", "HEAD"],
    &["ls-files"],
    &["checkout", "HEAD"],
    &["diff-index", "HEAD"],
];

/// An index with `body` between header and checksum.
fn index(version: u32, count: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"DIRC".to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.extend(count.to_be_bytes());
    bytes.extend_from_slice(body);
    sealed(bytes)
}

/// An entry of version 2, padded.
fn entry(name: &str, flags: u16) -> Vec<u8> {
    let mut bytes = vec![0; 24];
    bytes.extend(0o100_644_u32.to_be_bytes());
    bytes.extend([0; 12]);
    bytes.extend([7; 20]);
    bytes.extend(flags.to_be_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.resize(bytes.len() + 8 - (62 + name.len()) % 8, 0);
    bytes
}

/// An extension that claims `size` bytes.
fn extension(name: &str, size: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_owned();
    bytes.extend(size.to_be_bytes());
    bytes.extend_from_slice(content);
    bytes
}

fn sound(name: &str, content: &[u8]) -> Vec<u8> {
    extension(name, content.len() as u32, content)
}

fn indexes(table: &mut Table) {
    type Make = fn() -> Vec<u8>;
    const CASES: &[(&str, Make)] = &[
        ("empty", || b"DIRC".to_vec()),
        ("garbage", || vec![b'x'; 4096]),
        ("version-1", || index(1, 0, b"")),
        ("version-huge", || index(u32::MAX, 0, b"")),
        ("claims-4-billion", || index(2, u32::MAX, &entry("a", 1))),
        ("claims-4-billion-v4", || index(4, u32::MAX, b"")),
        ("half-an-entry", || index(2, 1, &entry("a", 1)[..40])),
        ("name-without-end", || index(2, 1, &[b'a'; 4096])),
        ("name-that-is-longer", || index(2, 1, &entry("a", 0xfff))),
        ("climbs", || index(2, 1, &entry("../../outside/file", 18))),
        ("absolute", || index(2, 1, &entry("/tmp/x", 6))),
        ("in-git", || {
            index(2, 1, &entry(".git/hooks/post-checkout", 24))
        }),
        ("strips-too-much-v4", || {
            let mut body = entry("", 0)[..62].to_vec();
            body.extend(b"\x7fname\0");
            index(4, 1, &body)
        }),
        ("strips-without-end-v4", || {
            let mut body = entry("", 0)[..62].to_vec();
            body.extend([0xff; 32]);
            index(4, 1, &body)
        }),
        ("extension-that-is-too-long", || {
            index(2, 0, &extension("TREE", u32::MAX, b"x"))
        }),
        ("unknown-extension", || index(2, 0, &sound("must", b"x"))),
        ("tree-with-4-billion-entries", || {
            index(2, 0, &sound("TREE", b"\x004294967295 4294967295\n"))
        }),
        ("tree-with-negative-children", || {
            index(2, 0, &sound("TREE", b"\x00-1 -5\nx\x00-1 9\n"))
        }),
        ("undo-of-garbage", || {
            index(2, 0, &sound("REUC", b"a\x00777777777777777\x00"))
        }),
        ("link-of-garbage", || index(2, 0, &sound("link", &[7; 20]))),
        ("link-to-nothing", || index(2, 0, &sound("link", b"short"))),
        ("untracked-of-garbage", || {
            index(2, 0, &sound("UNTR", &[0xff; 200]))
        }),
        ("monitor-of-garbage", || {
            index(2, 0, &sound("FSMN", &[0xff; 40]))
        }),
        ("end-of-garbage", || {
            index(2, 0, &sound("EOIE", &[0xff; 24]))
        }),
        ("offsets-of-garbage", || {
            index(2, 0, &sound("IEOT", &[0xff; 40]))
        }),
        ("offsets-of-4-gib", || {
            index(
                2,
                0,
                &sound("IEOT", b"\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff"),
            )
        }),
        ("directories", || index(2, 0, &sound("sdir", b""))),
    ];
    for (name, make) in CASES {
        table.row(format!("index-{name}"), move |scene| {
            scene.repository("work/repo");
            scene.write("work/repo/.git/index", make());
            command(["checkout", "-f", "HEAD"]).within("work/repo")
        });
        table.row(format!("index-status-{name}"), move |scene| {
            scene.repository("work/repo");
            scene.write("work/repo/.git/index", make());
            command(["status"]).within("work/repo")
        });
    }
}

/// Loose objects.
fn objects(table: &mut Table) {
    type Make = fn() -> Vec<u8>;
    const CASES: &[(&str, Make)] = &[
        ("garbage", || b"garbage".to_vec()),
        ("empty", Vec::new),
        ("claims-a-terabyte", || zlib(b"blob 1099511627776\0x")),
        ("claims-all-there-is", || {
            zlib(b"blob 18446744073709551616\0x")
        }),
        ("claims-less", || zlib(b"blob 1\0xyz")),
        ("negative", || zlib(b"blob -1\0x")),
        ("no-end-of-header", || zlib(&vec![b'1'; 1 << 20])),
        ("unknown-kind", || zlib(b"blub 1\0x")),
        ("long-kind", || {
            zlib(&[&[b'k'; 100_000][..], b" 1\0x"].concat())
        }),
        ("another-object", || zlib(b"blob 5\0other")),
        ("bomb", || zlib_bomb(b"blob 10\0", 128 << 20)),
        ("broken-in-the-middle", || {
            let mut stream = zlib(&[&b"blob 65536\0"[..], &[b'x'; 65_536]].concat());
            let middle = stream.len() / 2;
            stream[middle] ^= 0xff;
            stream
        }),
    ];
    const AT: &str = "work/repo/.git/objects/77/77777777777777777777777777777777777777";
    let id = "7".repeat(40);
    for (name, make) in CASES {
        let id = id.clone();
        table.row(format!("loose-{name}"), move |scene| {
            scene.repository("work/repo");
            scene.write(AT, make());
            let attack = command(["cat-file", "-p", &id]).within("work/repo");
            // Large objects are printed while they are read, so earlier output does not count.
            match *name {
                "another-object" | "claims-less" | "claims-a-terabyte" | "bomb" => {
                    attack.with_raw_output()
                }
                _ => attack.fails(),
            }
        });
    }
    for name in ["fifo", "device", "directory"] {
        let id = id.clone();
        table.row(format!("loose-is-a-{name}"), move |scene| {
            scene.repository("work/repo");
            scene.write("work/repo/.git/objects/77/x", "");
            match name {
                "fifo" => scene.fifo(AT),
                "device" => scene.link("/dev/zero", AT),
                _ => std::fs::create_dir(scene.path(AT)).expect("a directory"),
            }
            let attack = command(["cat-file", "-p", &id]).within("work/repo").fails();
            match name {
                "directory" => attack,
                _ => attack.only_pronto(PATIENT),
            }
        });
    }
}

/// Auxiliary files of packs, broken in different ways.
fn tables(table: &mut Table) {
    type Break = fn(&mut Vec<u8>);
    const WAYS: &[(&str, Break)] = &[
        ("empty", Vec::clear),
        ("half", |bytes| bytes.truncate(bytes.len() / 2)),
        ("head-alone", |bytes| bytes.truncate(8)),
        ("of-ones", |bytes| {
            let from = 8.min(bytes.len());
            bytes[from..].fill(0xff);
        }),
        ("of-zeros", |bytes| {
            let from = 8.min(bytes.len());
            bytes[from..].fill(0);
        }),
        ("end-of-ones", |bytes| {
            let from = bytes.len().saturating_sub(200);
            bytes[from..].fill(0xff);
        }),
        ("fanout-of-ones", |bytes| {
            let end = 1032.min(bytes.len());
            bytes[8..end].fill(0xff);
        }),
        ("another-version", |bytes| bytes[7] = 9),
    ];
    for suffix in ["idx", "pack", "rev", "midx", "graph", "bitmap"] {
        for (name, break_it) in WAYS {
            table.row(format!("{suffix}-{name}"), move |scene| {
                packed(scene);
                let path = file_of(scene, suffix);
                let mut bytes = std::fs::read(&path).expect("a file");
                break_it(&mut bytes);
                std::fs::remove_file(&path).expect("it was there");
                std::fs::write(path, bytes).expect("a file");
                match suffix {
                    "bitmap" | "rev" => command(["pack-objects", "--all", "--stdout", "-q"]),
                    "graph" => command(["checkout", "HEAD~1"]),
                    _ => command(["checkout", "-f", "HEAD~1"]),
                }
                .within("work/repo")
                .reads(b"\n".to_vec())
                .with_raw_output()
            });
        }
    }
}

/// Commit-graph parents that do not exist, or are the commit itself.
fn graphs(table: &mut Table) {
    for (name, position) in [
        ("itself", 0),
        ("out-of-range", 0x6fff_ffff),
        ("edges-that-are-not-there", 0xffff_fff0),
    ] {
        table.row(format!("graph-parent-{name}"), move |scene| {
            packed(scene);
            let path = file_of(scene, "graph");
            let mut bytes = std::fs::read(&path).expect("a file");
            parents_at(&mut bytes, position);
            std::fs::remove_file(&path).expect("it was there");
            std::fs::write(path, bytes).expect("a file");
            // A commit that is its own parent.
            let attack = command(["checkout", "HEAD~3"]).within("work/repo");
            match position {
                0 => attack,
                _ => attack.fails(),
            }
        });
    }
}

/// Replaces all parents in a commit-graph with the commit at `position`.
fn parents_at(bytes: &mut [u8], position: u32) {
    let entry = bytes.windows(4).position(|part| part == b"CDAT");
    let entry = entry.expect("git writes the table of commits");
    let number = |at: usize| {
        let digits = bytes[at..at + 8].try_into().expect("8 bytes");
        u64::from_be_bytes(digits) as usize
    };
    let (from, to) = (number(entry + 4), number(entry + 16));
    for commit in (from..to).step_by(36) {
        bytes[commit + 20..commit + 24].copy_from_slice(&position.to_be_bytes());
    }
}

/// A repository with all auxiliary files.
fn packed(scene: &Scene) {
    scene.git("work", &["clone", "-q", "--no-local", "../project", "repo"]);
    let settings = ["-c", "pack.writeReverseIndex=true"];
    let run = |words: &[&str]| scene.git("work/repo", &[&settings, words].concat());
    run(&["repack", "-adbq"]);
    run(&["multi-pack-index", "write"]);
    run(&["commit-graph", "write", "--reachable"]);
}

fn file_of(scene: &Scene, suffix: &str) -> std::path::PathBuf {
    let objects = scene.path("work/repo/.git/objects");
    match suffix {
        "midx" => return objects.join("pack/multi-pack-index"),
        "graph" => return objects.join("info/commit-graph"),
        _ => {}
    }
    let entries = std::fs::read_dir(objects.join("pack")).expect("it lists");
    let mut paths = entries.flatten().map(|entry| entry.path());
    let found = paths.find(|path| path.extension().is_some_and(|found| found == suffix));
    found.expect("git wrote one")
}

/// FIFOs and devices in place of regular files.
fn special(table: &mut Table) {
    for file in [
        ".git/HEAD",
        ".git/refs/heads/main",
        ".git/packed-refs",
        ".git/index",
        ".git/shallow",
        ".git/objects/info/alternates",
        ".git/info/exclude",
        ".git/info/attributes",
        ".gitignore",
        ".gitattributes",
    ] {
        for kind in ["fifo", "device"] {
            let name = file.replace(['/', '.'], "-");
            table.row(format!("{kind}-in-place-of{name}"), move |scene| {
                scene.repository("work/repo");
                let path = format!("work/repo/{file}");
                let above = scene.path(&path);
                let above = above.parent().expect("it is in the sandbox");
                std::fs::create_dir_all(above).expect("a directory");
                let _ = std::fs::remove_file(scene.path(&path));
                match kind {
                    "fifo" => scene.fifo(&path),
                    _ => scene.link("/dev/zero", &path),
                }
                command(["status"]).within("work/repo").only_pronto(PATIENT)
            });
        }
    }
    table.row("fifo-in-the-work-tree", |scene| {
        scene.repository("work/repo");
        scene.fifo("work/repo/pipe");
        scene.remove("work/repo/file");
        scene.fifo("work/repo/file");
        command(["status"]).within("work/repo").succeeds()
    });
    table.row("fifo-that-is-added", |scene| {
        scene.repository("work/repo");
        scene.remove("work/repo/file");
        scene.fifo("work/repo/file");
        command(["add", "file"]).within("work/repo")
    });
    table.row("fifo-that-is-committed", |scene| {
        scene.repository("work/repo");
        scene.remove("work/repo/file");
        scene.fifo("work/repo/file");
        command(["commit", "-a", "-m", "x"]).within("work/repo")
    });
}

/// Lists in a repository.
fn lists(table: &mut Table) {
    let loops = |scene: &Scene, text: &str| -> Attack {
        scene.repository("work/repo");
        scene.write("work/repo/.git/objects/info/alternates", text);
        command(["cat-file", "-t", &"7".repeat(40)])
            .within("work/repo")
            .fails()
    };
    table.row("alternates-of-itself", move |scene| {
        loops(scene, "../objects\n.\n")
    });
    table.row("alternates-of-each-other", move |scene| {
        let other = "../../../other/.git/objects\n";
        scene.repository("work/other");
        scene.write(
            "work/other/.git/objects/info/alternates",
            "../../../repo/.git/objects\n",
        );
        loops(scene, other)
    });
    table.row("alternates-of-many", move |scene| {
        loops(scene, &"/nonexistent\n".repeat(100_000))
    });
    table.row("alternates-with-a-long-path", move |scene| {
        loops(scene, &format!("/{}\n", "x/".repeat(100_000)))
    });
    table.row("alternates-of-a-device", move |scene| {
        loops(scene, "/dev/zero\n/dev\n")
    });
    type Make = fn() -> String;
    const LISTS: &[(&str, Make)] = &[
        ("garbage", || "garbage\n".to_owned()),
        ("short", || "1234\n".to_owned()),
        ("many", || format!("{}\n", "1".repeat(40)).repeat(100_000)),
        ("long-line", || "1".repeat(10_000_000)),
    ];
    const HEADS: &[(&str, Make)] = &[
        ("garbage", || "\u{1}\u{2}\n".to_owned()),
        ("empty", String::new),
        ("long", || "x".repeat(50_000_000)),
        ("long-reference", || {
            format!("ref: refs/heads/{}\n", "x".repeat(1_000_000))
        }),
    ];
    for (name, make) in LISTS {
        table.row(format!("shallow-{name}"), |scene| {
            scene.repository("work/repo");
            scene.write("work/repo/.git/shallow", make());
            command(["checkout", "HEAD"]).within("work/repo")
        });
        table.row(format!("packed-refs-{name}"), |scene| {
            scene.repository("work/repo");
            scene.write("work/repo/.git/packed-refs", make());
            command(["show-ref"]).within("work/repo")
        });
    }
    for (name, make) in HEADS {
        table.row(format!("head-{name}"), |scene| {
            scene.repository("work/repo");
            scene.write("work/repo/.git/HEAD", make());
            command(["status"]).within("work/repo")
        });
    }
    for words in READERS {
        table.row(format!("git-file-of-itself-{}", words[0]), |scene| {
            scene.write("work/repo/.git", "gitdir: .git\n");
            command(words.iter().copied()).within("work/repo").fails()
        });
    }
    table.row("git-file-that-is-large", |scene| {
        scene.write("work/repo/.git", "gitdir: x".repeat(10_000_000));
        command(["status"]).within("work/repo").fails()
    });
    table.row("git-file-that-is-a-fifo", |scene| {
        std::fs::create_dir(scene.path("work/repo")).expect("a directory");
        scene.fifo("work/repo/.git");
        command(["status"]).within("work/repo").fails()
    });
}

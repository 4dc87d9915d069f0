//! Checkouts of whole trees into empty worktrees.

use std::collections::HashMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use bstr::ByteSlice;
use pronto_hash::{Kind, ObjectId};
use pronto_index::{Index, IndexContent, IndexLock, Writer};
use pronto_io::dir::Directory;
use pronto_io::interrupt::Interrupt;
use pronto_io::pool::Workers;
use pronto_worktree::attributes::{Attributes, Files, FromIndex};
use pronto_worktree::checkout::{
    self, CheckoutContext, CheckoutItem, CheckoutPlan, Obstructions, Options, Outcome,
};
use pronto_worktree::filter::{ATTRIBUTES, AutoCrlf, Driver, Settings};
use pronto_worktree::{ErrorKind, Protect, unpack};
use test_support::{Need, need};

use crate::support::{Memory, Scratch, git, git_with_input, id, listing, repository, write};

/// Checks out `tree` of `repository` as clone does, into a new repository that shares objects.
struct Clone {
    scratch: Scratch,
    outcome: Outcome,
}

fn options(workers: Workers) -> Options {
    let mut options = Options::default();
    options.workers = workers;
    options.threshold_for_parallelism = 0;
    options.obstructions = Obstructions::Collide;
    options
}

fn clone(source: &Path, tree: ObjectId, settings: &Settings, options: &Options) -> Clone {
    clone_with(&Memory::load(source), source, tree, settings, options)
}

fn clone_with(
    objects: &Memory,
    source: &Path,
    tree: ObjectId,
    settings: &Settings,
    options: &Options,
) -> Clone {
    let scratch = Scratch::new();
    git(
        source,
        &[
            "clone",
            "-q",
            "--no-checkout",
            "--shared",
            ".",
            &scratch.path().display().to_string(),
        ],
    );
    let top = Directory::open(scratch.path()).expect("it is there");
    let mut settings = settings.clone();
    settings.worktree = Some(scratch.path().to_owned());
    settings.git_dir = Some(scratch.join(".git"));
    let mut unpacked =
        unpack::all(tree, objects, Protect::default(), None).expect("the tree is good");
    let source = FromIndex {
        blobs: FromIndex::<&Memory>::find(
            unpacked
                .plan
                .write
                .iter()
                .map(|item| (item.path.as_bstr(), item.id)),
        ),
        objects: Memory::load(source),
        worktree: None,
    };
    let attributes = Attributes::new(&ATTRIBUTES, &Files::default(), Box::new(source))
        .expect("they can be read");
    let context = CheckoutContext {
        top: &top,
        objects,
        attributes: &attributes,
        settings: &settings,
        progress: &(),
        interrupt: &Interrupt::new(),
    };
    let outcome = checkout::run(&unpacked.plan, &context, options);
    unpacked.record(&outcome);
    let empty = Index::empty(Kind::Sha1);
    let mut content = IndexContent::new(Kind::Sha1, unpacked.entries(&empty));
    content.tree = unpacked
        .cached_tree
        .as_ref()
        .map(std::borrow::Cow::Borrowed);
    let bytes = Writer::default().encode(&content).expect("it encodes");
    let lock = IndexLock::acquire(&scratch.join(".git/index")).expect("nobody holds it");
    lock.commit(&bytes).expect("it is written");
    Clone { scratch, outcome }
}

fn everything(path: &Path) {
    for directory in 0..6 {
        for file in 0..30 {
            let name = format!("d{directory}/e{}/f{file}", file % 3);
            write(
                path,
                &name,
                format!("{directory} {file}\n").repeat(file * 7),
            );
        }
    }
    write(path, "script", "#!/bin/sh\n");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path.join("script"), executable).expect("it is ours");
    write(path, "empty", "");
    write(path, "d0.x", "between d0 and d0/");
    symlink("d0/../script", path.join("link")).expect("a link");
    symlink("nowhere", path.join("d1/e1/link")).expect("a link");
}

#[test]
fn any_number_of_workers_makes_what_git_makes() {
    let source = Scratch::new();
    let tree = repository(source.path(), everything);
    let settings = Settings::new(Kind::Sha1);
    for workers in [
        Workers::Exactly(1),
        Workers::Exactly(2),
        Workers::Exactly(16),
        Workers::ADAPTIVE,
    ] {
        let clone = clone(source.path(), tree, &settings, &options(workers));
        assert!(clone.outcome.failed.is_empty() && clone.outcome.collided.is_empty());
        assert_eq!(listing(clone.scratch.path()), listing(source.path()));
        assert_eq!(git(clone.scratch.path(), &["status", "--porcelain"]), "");
        assert_eq!(
            git(clone.scratch.path(), &["ls-files", "-s"]),
            git(source.path(), &["ls-files", "-s"])
        );
        let dumped = git(clone.scratch.path(), &["write-tree"]);
        assert_eq!(id(&dumped), tree);
    }
}

#[test]
fn conversions_are_those_of_git() {
    let source = Scratch::new();
    let tree = repository(source.path(), |path| {
        write(path, "auto", "a\nb\n");
        write(path, "binary", b"a\n\0b\n");
        write(path, "lf", "a\nb\n");
        write(path, "ident", "$Id$ $Id: old $\n");
        write(path, "sub/utf16", "x\n");
        write(path, "sub/crlf", "a\nb\n");
        write(path, "sub/deep/none", "a\nb\n");
        write(
            path,
            "sub/.gitattributes",
            "crlf text eol=crlf\nutf16 working-tree-encoding=UTF-16LE-BOM\n",
        );
        write(
            path,
            ".gitattributes",
            "* text=auto\nlf eol=lf\nident ident\ndeep/** -text\n[attr]m -text\n*/none m\n",
        );
        git(path, &["config", "core.autocrlf", "false"]);
        let utf16: Vec<u8> = "\u{feff}x\r\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        write(path, "sub/utf16", utf16);
    });
    let mut settings = Settings::new(Kind::Sha1);
    settings.auto_crlf = AutoCrlf::Enabled;
    let ours = clone(
        source.path(),
        tree,
        &settings,
        &options(Workers::Exactly(2)),
    );
    let theirs = Scratch::new();
    git(
        source.path(),
        &[
            "clone",
            "-q",
            "-c",
            "core.autocrlf=true",
            ".",
            &theirs.path().display().to_string(),
        ],
    );
    assert!(ours.outcome.failed.is_empty(), "{:?}", ours.outcome.failed);
    assert_eq!(listing(ours.scratch.path()), listing(theirs.path()));
    assert_eq!(
        git(
            ours.scratch.path(),
            &["-c", "core.autocrlf=true", "status", "--porcelain"]
        ),
        ""
    );
}

/// A long-running filter that delays files and returns them in reverse order in each `list`.
const DELAYING: &str = include_str!("delay.pl");

#[test]
fn programs_filter_each_file_once_even_when_they_put_it_off() {
    let source = Scratch::new();
    let tools = Scratch::new();
    write(tools.path(), "delay.pl", DELAYING);
    let log = tools.join("log");
    let tree = repository(source.path(), |path| {
        for number in 0..20 {
            write(
                path,
                &format!("late/{number}.p"),
                format!("hello {number}\n"),
            );
            write(
                path,
                &format!("now/{number}.s"),
                format!("hello {number}\n"),
            );
        }
        write(
            path,
            ".gitattributes",
            "*.p filter=late\n*.s filter=single\n*.u filter=unknown\n",
        );
        write(path, "x.u", "x\n");
    });
    let mut settings = Settings::new(Kind::Sha1);
    settings.drivers = vec![
        Driver {
            name: "late".into(),
            process: Some(format!("perl {}", tools.join("delay.pl").display()).into()),
            required: true,
            ..Driver::default()
        },
        Driver {
            name: "single".into(),
            smudge: Some(format!("echo %f >> {}; tr a-z A-Z", log.display()).into()),
            ..Driver::default()
        },
    ];
    let ours = clone(
        source.path(),
        tree,
        &settings,
        &options(Workers::Exactly(2)),
    );
    assert!(ours.outcome.failed.is_empty(), "{:?}", ours.outcome.failed);
    for number in 0..20 {
        let read =
            |name: String| std::fs::read_to_string(ours.scratch.join(&name)).expect("it is there");
        assert_eq!(
            read(format!("late/{number}.p")),
            format!("uryyb {number}\n")
        );
        assert_eq!(read(format!("now/{number}.s")), format!("HELLO {number}\n"));
    }
    assert_eq!(
        std::fs::read_to_string(log)
            .expect("it ran")
            .lines()
            .count(),
        20
    );
}

#[test]
fn a_required_program_that_fails_fails_its_files_only() {
    let source = Scratch::new();
    let tree = repository(source.path(), |path| {
        write(path, "a.r", "x\n");
        write(path, "b.o", "y\n");
        write(path, "c", "z\n");
        write(
            path,
            ".gitattributes",
            "*.r filter=required\n*.o filter=optional\n",
        );
    });
    let failing = |name: &str, required| Driver {
        name: name.into(),
        smudge: Some("cat >/dev/null; echo half; exit 3".into()),
        required,
        ..Driver::default()
    };
    let mut settings = Settings::new(Kind::Sha1);
    settings.drivers = vec![failing("required", true), failing("optional", false)];
    let ours = clone(
        source.path(),
        tree,
        &settings,
        &options(Workers::Exactly(1)),
    );
    let failed: Vec<_> = ours
        .outcome
        .failed
        .iter()
        .map(|failure| failure.error.to_string())
        .collect();
    assert_eq!(failed, ["a.r: smudge filter required failed"]);
    assert!(!ours.scratch.join("a.r").exists());
    assert_eq!(
        std::fs::read(ours.scratch.join("b.o")).expect("it is there"),
        b"y\n"
    );
    assert!(ours.scratch.join("c").exists());
    // Each failing program is reported with its code, and again without it, as in git.
    let warnings = &ours.outcome.warnings;
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(warnings[0].ends_with("failed 3") && warnings[1].ends_with("failed"));
}

#[test]
fn one_missing_blob_costs_one_file() {
    let source = Scratch::new();
    let tree = repository(source.path(), everything);
    let mut objects = Memory::load(source.path());
    let lost = id(&git(source.path(), &["rev-parse", "HEAD:d3/e1/f10"]));
    objects.forget(&lost);
    for workers in [Workers::Exactly(1), Workers::Exactly(3)] {
        let settings = Settings::new(Kind::Sha1);
        let ours = clone_with(&objects, source.path(), tree, &settings, &options(workers));
        assert_eq!(ours.outcome.failed.len(), 1);
        assert_eq!(
            ours.outcome.failed[0].error.kind(),
            ErrorKind::MissingObject
        );
        assert_eq!(ours.outcome.failed[0].path, "d3/e1/f10");
        assert_eq!(
            git(ours.scratch.path(), &["status", "--porcelain"]),
            " D d3/e1/f10"
        );
    }
}

#[test]
fn hostile_trees_are_refused_before_anything_is_written() {
    let source = Scratch::new();
    repository(source.path(), |path| write(path, "f", "x"));
    let blob = git(source.path(), &["rev-parse", "HEAD:f"]);
    for name in [".git", ".GIT", "git~1", ".git ", ".git::$DATA", "..", "."] {
        let mut objects = Memory::load(source.path());
        let mut inner = format!("100644 {name}\0").into_bytes();
        inner.extend_from_slice(id(&blob).as_slice());
        let evil = id(&"e".repeat(40));
        objects.insert_tree(evil, inner);
        let mut outer = b"40000 dir\0".to_vec();
        outer.extend_from_slice(evil.as_slice());
        let top = id(&"d".repeat(40));
        objects.insert_tree(top, outer);
        let error = unpack::all(top, &objects, Protect::default(), None).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::HostilePath);
        assert_eq!(error.message(), format!("invalid path 'dir/{name}'"));
    }
}

/// Runs a plan in a directory that may not be empty.
fn run(top: &Path, plan: &CheckoutPlan, objects: &Memory, options: &Options) -> Outcome {
    let attributes = Attributes::new(
        &ATTRIBUTES,
        &Files::default(),
        Box::new(HashMap::<bstr::BString, Vec<u8>>::new()),
    )
    .expect("nothing to read");
    let top = Directory::open(top).expect("it is there");
    let settings = Settings::new(Kind::Sha1);
    let context = CheckoutContext {
        top: &top,
        objects,
        attributes: &attributes,
        settings: &settings,
        progress: &(),
        interrupt: &Interrupt::new(),
    };
    checkout::run(plan, &context, options)
}

fn blobs(source: &Path, contents: &[&str]) -> Vec<ObjectId> {
    repository(source, |_| {});
    contents
        .iter()
        .map(|content| {
            id(&git_with_input(
                source,
                &["hash-object", "-w", "--stdin"],
                content.as_bytes(),
            ))
        })
        .collect()
}

fn item(path: &str, id: ObjectId, mode: u32) -> CheckoutItem {
    CheckoutItem {
        path: path.into(),
        id,
        mode,
        replaces: false,
    }
}

#[test]
fn paths_that_are_one_to_the_file_system_are_all_named_and_the_last_stays() {
    let source = Scratch::new();
    let ids = blobs(source.path(), &["first", "second", "third", "other"]);
    let objects = Memory::load(source.path());
    for workers in [Workers::Exactly(1), Workers::Exactly(4), Workers::ADAPTIVE] {
        let scratch = Scratch::new();
        let mut write: Vec<CheckoutItem> = ids[..3]
            .iter()
            .map(|id| item("same", *id, 0o100644))
            .collect();
        write.insert(0, item("alone", ids[3], 0o100644));
        let plan = CheckoutPlan {
            remove: Vec::new(),
            write,
        };
        let outcome = run(scratch.path(), &plan, &objects, &options(workers));
        assert_eq!(outcome.collided, ["same"]);
        assert!(outcome.failed.is_empty());
        assert!(outcome.written.iter().all(Option::is_some));
        let content = std::fs::read_to_string(scratch.join("same")).expect("it is there");
        assert_eq!(content, "third");
    }
}

#[test]
fn nothing_is_written_through_a_link_that_is_in_the_way() {
    let source = Scratch::new();
    let ids = blobs(source.path(), &["inside", "elsewhere"]);
    let objects = Memory::load(source.path());
    for obstructions in [Obstructions::Replace, Obstructions::Collide] {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.join("elsewhere")).expect("a directory");
        std::fs::create_dir_all(scratch.join("top")).expect("a directory");
        symlink("../elsewhere", scratch.join("top/dir")).expect("a link");
        symlink("../elsewhere/f", scratch.join("top/f")).expect("a link");
        let plan = CheckoutPlan {
            remove: Vec::new(),
            write: vec![
                item("dir/sub/f", ids[0], 0o100644),
                item("f", ids[0], 0o100644),
            ],
        };
        let mut options = options(Workers::Exactly(1));
        options.obstructions = obstructions;
        let outcome = run(&scratch.join("top"), &plan, &objects, &options);
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        assert_eq!(
            std::fs::read_dir(scratch.join("elsewhere"))
                .expect("it lists")
                .count(),
            0
        );
        assert_eq!(
            std::fs::read(scratch.join("top/dir/sub/f")).expect("it is there"),
            b"inside"
        );
        assert_eq!(
            std::fs::read(scratch.join("top/f")).expect("it is there"),
            b"inside"
        );
    }
}

#[test]
fn a_full_file_system_leaves_no_part_of_a_file() {
    let source = Scratch::new();
    let large = "x".repeat(300_000);
    let ids = blobs(source.path(), &[&large, "small"]);
    let objects = Memory::load(source.path());
    let scratch = Scratch::new();
    need!(Need::Mount);
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "none"])
        .arg(scratch.path())
        .output()
        .expect("mount starts");
    assert!(mounted.status.success(), "{mounted:?}");
    let mut write: Vec<CheckoutItem> = (0..8)
        .map(|number| item(&format!("d/large{number}"), ids[0], 0o100644))
        .collect();
    write.push(item("d/small", ids[1], 0o100644));
    let plan = CheckoutPlan {
        remove: Vec::new(),
        write,
    };
    let outcome = run(
        scratch.path(),
        &plan,
        &objects,
        &options(Workers::Exactly(2)),
    );
    let sizes: Vec<u64> = std::fs::read_dir(scratch.join("d"))
        .expect("it lists")
        .map(|entry| {
            entry
                .expect("an entry")
                .metadata()
                .expect("it is there")
                .len()
        })
        .collect();
    // A process that another test forks may have an open file there for a moment.
    let unmounted = std::process::Command::new("umount")
        .arg("--lazy")
        .arg(scratch.path())
        .status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert!(outcome.failed.len() >= 5, "{:?}", outcome.failed);
    assert!(
        outcome.failed[0]
            .error
            .to_string()
            .ends_with("No space left on device")
    );
    assert!(
        sizes.iter().all(|size| *size == 300_000 || *size == 5),
        "{sizes:?}"
    );
    assert_eq!(sizes.len() + outcome.failed.len(), 9);
}

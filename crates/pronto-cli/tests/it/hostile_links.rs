//! Symbolic links that replace directories: existing links, links that another process creates
//! while files are written, and links that a file system treats as a directory of another name.
//! Also trees of extreme size.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use slowfs::Folding;

use crate::faults::Place;
use crate::hostile::{DIRECTORY, FILE, LINK, SUBMODULE, Scene, expect, list, run};
use crate::support::{Scratch, pronto_path, stderr};

fn below(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    list(directory, &mut found);
    found
}

/// Acts as a hostile process: repeatedly replaces `d` and `top` by symbolic links.
fn swap_links(work: &Path, outside: &Path, stop: &AtomicBool) {
    let (directory, away, top) = (work.join("d"), work.join("away"), work.join("top"));
    while !stop.load(Ordering::Relaxed) {
        // Each of these may fail, because the checkout changes the same paths.
        if std::fs::rename(&directory, &away).is_ok() {
            let _ = symlink(outside, &directory);
            std::thread::yield_now();
            let _ = std::fs::remove_file(&directory);
            if std::fs::rename(&away, &directory).is_err() {
                let _ = std::fs::remove_dir_all(&away);
            }
        } else {
            let _ = symlink(outside, &directory);
        }
        let _ = std::fs::remove_file(&top);
        let _ = symlink(outside.join("canary"), &top);
    }
}

#[test]
fn links_created_during_a_checkout_are_not_followed() {
    const FILES: usize = 60;
    const ROUNDS: usize = 30;
    let scene = Scene::new();
    let (work, outside) = (scene.work(), scene.outside());
    let name = |file: usize| format!("d/e{}/f{file}", file % 3);
    for tag in ["one", "two"] {
        for file in 0..FILES {
            let path = work.join(name(file));
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
            std::fs::write(path, format!("{tag} {file}\n")).expect("a file");
        }
        std::fs::write(work.join("top"), tag).expect("a file");
        expect(&work, &["add", "-A"]);
        expect(&work, &["commit", "-qm", tag]);
        expect(&work, &["tag", tag]);
    }
    expect(&work, &["rm", "-qr", "d", "top"]);
    expect(&work, &["commit", "-qm", "three"]);
    expect(&work, &["tag", "three"]);
    // Files with the same names outside must be neither written nor removed.
    for file in 0..FILES {
        let path = outside.join(name(file).replacen("d/", "", 1));
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
        std::fs::write(path, "canary\n").expect("a file");
    }
    std::fs::write(outside.join("canary"), "canary\n").expect("a file");
    let before = below(&outside);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Stops the other thread even if an assertion fails.
        let _stopping = Stopping(&stop);
        scope.spawn(|| swap_links(&work, &outside, &stop));
        for round in 0..ROUNDS {
            let revision = ["one", "two", "three"][round % 3];
            let workers = [
                "checkout.workers=1",
                "checkout.workers=2",
                "checkout.workers=auto",
            ];
            let call = match round % 4 {
                0 => ["reset", "-q", "--hard", revision],
                1 => ["checkout", "-q", "-f", revision],
                2 => ["restore", "-s", revision, "."],
                _ => ["read-tree", "--reset", "-u", revision],
            };
            let setting = ["-c", workers[round % workers.len()]];
            let output = run(pronto_path(), &work, &[&setting[..], &call].concat());
            // It may fail, but not crash.
            assert!(
                output.status.code().is_some_and(|code| code != 101),
                "{output:?}"
            );
            assert!(below(&outside) == before, "{call:?}: {}", stderr(&output));
        }
    });
    for link in ["d", "top"] {
        if work.join(link).is_symlink() {
            std::fs::remove_file(work.join(link)).expect("it is ours");
        }
    }
    let _ = std::fs::remove_dir_all(work.join("away"));
    let output = run(pronto_path(), &work, &["checkout", "-q", "-f", "two"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(expect(&work, &["status", "--porcelain"]), "");
    assert!(below(&outside) == before);
}

struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn files_are_not_written_through_old_or_new_links() {
    let mut scene = Scene::new();
    let (blob, link) = (scene.blob.clone(), scene.link.clone());
    let inner = scene
        .trees
        .make(&[(FILE, b"file", &blob), (FILE, b"new", &blob)]);
    let linked = scene
        .trees
        .make(&[(LINK, b"a", &link), (FILE, b"first", &blob)]);
    let whole = scene
        .trees
        .make(&[(DIRECTORY, b"a", &inner), (FILE, b"first", &blob)]);
    let (linked, whole) = (scene.commit(&linked), scene.commit(&whole));
    let work = scene.work();
    let before = below(&scene.outside());
    for workers in ["1", "2", "auto"] {
        let setting = format!("checkout.workers={workers}");
        for call in ["checkout -q -f", "reset -q --hard", "read-tree --reset -u"] {
            for commit in [&linked, &whole, &linked] {
                let mut arguments = vec!["-c", &setting];
                arguments.extend(call.split(' ').chain([&**commit]));
                let output = run(pronto_path(), &work, &arguments);
                assert!(output.status.success(), "{call}: {}", stderr(&output));
                let is_link = work.join("a").is_symlink();
                assert_eq!(is_link, commit == &linked, "{call}");
            }
        }
        // Another process has replaced the directory by a symbolic link.
        let paths: [&[&str]; 4] = [
            &["checkout-index", "-f", "-a"],
            &["checkout", "-q", "--", "."],
            &["restore", "a"],
            &["reset", "-q", "--hard"],
        ];
        for call in paths {
            expect(&work, &["reset", "-q", "--hard", &whole]);
            std::fs::remove_dir_all(work.join("a")).expect("it is there");
            symlink(scene.outside(), work.join("a")).expect("a link");
            let output = run(pronto_path(), &work, &[&["-c", &setting], call].concat());
            assert!(output.status.success(), "{call:?}: {}", stderr(&output));
            assert!(!work.join("a").is_symlink(), "{call:?}");
            assert!(work.join("a/new").is_file(), "{call:?}");
        }
        expect(&work, &["reset", "-q", "--hard", &scene.base]);
    }
    assert!(below(&scene.outside()) == before);
}

#[test]
fn a_submodule_is_not_created_behind_a_link_of_another_case() {
    let Some(place) = Place::new(Folding::Case) else {
        return;
    };
    let mut scene = Scene::new();
    let (blob, base) = (scene.blob.clone(), scene.base.clone());
    let target = scene.work().join("content");
    std::fs::write(&target, ".git").expect("a file");
    let link = expect(&scene.work(), &["hash-object", "-w", "content"]);
    std::fs::remove_file(target).expect("it was there");
    let x = scene.trees.make(&[(SUBMODULE, b"x", &base)]);
    let modules = scene.trees.make(&[(DIRECTORY, b"modules", &x)]);
    for entries in [
        [(LINK, &b"A"[..], &link), (DIRECTORY, b"a", &modules)],
        [(DIRECTORY, b"A", &modules), (LINK, b"a", &link)],
        [(LINK, b"A", &link), (SUBMODULE, b"a", &base)],
        [(LINK, b"A", &link), (FILE, b"a", &blob)],
    ] {
        let entries = entries.map(|(mode, name, id)| (mode, name, id.as_str()));
        let tree = scene.trees.make(&entries);
        let commit = scene.commit(&tree);
        expect(&scene.work(), &["update-ref", "refs/heads/bad", &commit]);
        for workers in ["1", "2", "auto"] {
            let setting = format!("checkout.workers={workers}");
            let source = scene.work();
            let cloned = place.work().join("cloned");
            let arguments = ["-c", &setting, "clone", "-q", "-b", "bad"];
            let paths = [
                source.to_str().expect("UTF-8"),
                cloned.to_str().expect("UTF-8"),
            ];
            let output = run(
                pronto_path(),
                scene.scratch.path(),
                &[&arguments[..], &paths].concat(),
            );
            let said = stderr(&output);
            assert!(said.contains("have collided"), "{workers}: {said}");
            let real = place.real().join("cloned/.git");
            assert!(real.join("HEAD").is_file(), "{said}");
            assert!(!real.join("modules").exists(), "{entries:?}: {said}");
            std::fs::remove_dir_all(place.real().join("cloned")).expect("it is there");
        }
    }
}

#[test]
fn a_delayed_file_is_not_written_through_a_link_of_another_case() {
    let Some(place) = Place::new(Folding::Case) else {
        return;
    };
    let tools = Scratch::new();
    let filter = tools.script(
        "bin",
        "delay.pl",
        include_str!("../../../pronto-worktree/tests/it/delay.pl"),
    );
    let mut scene = Scene::new();
    let (blob, link) = (scene.blob.clone(), scene.link.clone());
    let attributes = scene.work().join("attributes");
    std::fs::write(&attributes, "*.late filter=late\n").expect("a file");
    let rules = expect(&scene.work(), &["hash-object", "-w", "attributes"]);
    std::fs::remove_file(attributes).expect("it was there");
    let inner = scene.trees.make(&[(FILE, b"x.late", &blob)]);
    let before = below(&scene.outside());
    for (entries, expected) in [
        (
            [(LINK, &b"D"[..], &link), (DIRECTORY, b"d", &inner)],
            Some("d/x.late"),
        ),
        ([(DIRECTORY, b"D", &inner), (LINK, b"d", &link)], None),
        (
            [(FILE, b"F.late", &rules), (FILE, b"f.late", &blob)],
            Some("f.late"),
        ),
        ([(FILE, b"X.late", &blob), (LINK, b"x.late", &link)], None),
    ] {
        let mut entries = entries
            .map(|(mode, name, id)| (mode, name, id.as_str()))
            .to_vec();
        entries.push((FILE, b".gitattributes", &rules));
        let tree = scene.trees.make(&entries);
        let commit = scene.commit(&tree);
        expect(&scene.work(), &["update-ref", "refs/heads/late", &commit]);
        for workers in ["1", "2", "auto"] {
            let workers = format!("checkout.workers={workers}");
            let process = format!("filter.late.process=perl {}", filter.display());
            let cloned = place.work().join("cloned");
            let arguments = ["-c", &workers, "-c", &process, "clone", "-q", "-b", "late"];
            let source = scene.work();
            let paths = [
                source.to_str().expect("UTF-8"),
                cloned.to_str().expect("UTF-8"),
            ];
            let output = run(
                pronto_path(),
                scene.scratch.path(),
                &[&arguments[..], &paths].concat(),
            );
            let said = stderr(&output);
            assert!(said.contains("have collided"), "{workers}: {said}");
            assert!(below(&scene.outside()) == before, "{entries:?}: {said}");
            let real = place.real().join("cloned");
            // The last file in the order of the index exists with the output of the process.
            match expected {
                Some(path) => {
                    let folded = real.join(path.to_uppercase());
                    let path = [real.join(path), folded]
                        .into_iter()
                        .find(|it| it.is_file());
                    let found = find(&real, path.as_deref()).unwrap_or_default();
                    assert_eq!(found, "svefg\n", "{entries:?}: {said}");
                }
                None => {
                    let links = below(&real).into_keys();
                    let links = links.filter(|path| path.is_symlink());
                    assert_eq!(links.count(), 1, "{entries:?}: {said}");
                }
            }
            std::fs::remove_dir_all(real).expect("it is there");
        }
    }
}

/// Returns the content of the only file besides the attributes, in whatever spelling its name has.
fn find(top: &Path, known: Option<&Path>) -> Option<String> {
    let known = known.map(Path::to_owned);
    let found = known.or_else(|| {
        let files = below(top).into_keys();
        let mut files = files.filter(|path| path.to_string_lossy().ends_with(".late"));
        files.find(|path| path.is_file() && !path.is_symlink())
    });
    std::fs::read_to_string(found?).ok()
}

#[test]
fn extreme_trees_are_refused_or_written_completely() {
    let mut scene = Scene::new();
    let blob = scene.blob.clone();
    let work = scene.work();
    // A name that is too long for file systems costs its file. A name of the maximum length works.
    let longest = [b'n'; 255];
    let tree = scene.trees.make(&[
        (FILE, &longest, &blob),
        (FILE, &[b'o'; 256], &blob),
        (FILE, b"first", &blob),
        (FILE, b"last", &blob),
    ]);
    let commit = scene.commit(&tree);
    for workers in ["1", "2", "auto"] {
        let setting = format!("checkout.workers={workers}");
        let output = run(
            pronto_path(),
            &work,
            &["-c", &setting, "checkout", "-q", "-f", &commit],
        );
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("File name too long"), "{said}");
        assert!(work.join("last").is_file());
        let output = run(pronto_path(), &work, &["checkout", "-q", "-f", &scene.base]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(expect(&work, &["status", "--porcelain"]), "");
    }
    // Nested directories: the maximum depth of git's default, and one more.
    let mut tree = scene.trees.make(&[(FILE, b"f", &blob)]);
    let mut commits = Vec::new();
    for depth in 1..=5000 {
        tree = scene.trees.make(&[(DIRECTORY, b"d", &tree)]);
        if [40, 1000, 2049, 5000].contains(&depth) {
            commits.push((depth, scene.commit(&tree)));
        }
    }
    for (depth, commit) in commits {
        for call in ["checkout -q -f", "reset -q --hard", "read-tree -m -u"] {
            let before = scene.everything();
            let arguments: Vec<&str> = call.split(' ').chain([&*commit]).collect();
            let output = run(pronto_path(), &work, &arguments);
            let said = stderr(&output);
            if depth > 2048 {
                assert_eq!(output.status.code(), Some(128), "{call}: {said}");
                let message = "exceeded maximum allowed tree depth";
                assert!(said.contains(message), "{call}: {said}");
                assert!(scene.everything() == before, "{call}");
                continue;
            }
            assert!(output.status.success(), "{call} {depth}: {said}");
            let path = work.join("d/".repeat(depth)).join("f");
            assert!(path.is_file(), "{call} {depth}");
            let output = run(pronto_path(), &work, &["checkout", "-q", "-f", &scene.base]);
            assert!(output.status.success(), "{}", stderr(&output));
            assert!(!work.join("d").exists(), "{call} {depth}");
        }
    }
    // Paths longer than any system call accepts, with names of allowed length.
    let mut tree = scene.trees.make(&[(FILE, b"f", &blob)]);
    for _ in 0..40 {
        tree = scene.trees.make(&[(DIRECTORY, &[b'p'; 200], &tree)]);
    }
    let tree = scene
        .trees
        .make(&[(DIRECTORY, b"long", &tree), (FILE, b"short", &blob)]);
    let commit = scene.commit(&tree);
    let output = run(pronto_path(), &work, &["checkout", "-q", "-f", &commit]);
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{}", stderr(&output));
    assert!(work.join("short").is_file());
    let output = run(pronto_path(), &work, &["checkout", "-q", "-f", &scene.base]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!work.join("short").exists());
}

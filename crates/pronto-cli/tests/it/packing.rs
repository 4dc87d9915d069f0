//! Compares `pack-objects` with git: the same objects, in packs that git accepts.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scene = Scene { folder };
        scene.git(&["init", "-q", "-b", "main", "."], "");
        for number in 0..10 {
            let lines = (0..150).map(|line| format!("{} {line}\n", line * 31 % (90 + number)));
            let name = format!("f{}", number % 3);
            std::fs::write(scene.path().join(name), lines.collect::<String>()).expect("a file");
            scene.git(&["add", "."], "");
            scene.git(&["commit", "-q", "-m", &number.to_string()], "");
        }
        scene.git(&["tag", "-m", "tagged", "v1", "HEAD~2"], "");
        scene
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, program: &str, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let mut stdin = child.stdin.take().expect("it is piped");
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    fn git(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run("git", arguments, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns the ids in the only pack whose name begins with `base`, after git has verified it.
    fn packed(&self, base: &str, hash: &str) -> Vec<String> {
        let index = format!("{base}-{}.idx", hash.trim());
        self.git(&["verify-pack", &index], "");
        let file = std::fs::File::open(self.path().join(&index)).expect("it was written");
        let listed = Command::new("git").arg("show-index").stdin(file).output();
        let listed = listed.expect("git can be started").stdout;
        let listed = String::from_utf8(listed).expect("it is text");
        let ids = listed.lines().filter_map(|line| line.split(' ').nth(1));
        ids.map(str::to_owned).collect()
    }
}

const PRONTO: &str = env!("CARGO_BIN_EXE_pronto");

/// Both programs write files with the same objects.
fn compare(scene: &Scene, options: &[&str], input: &str) {
    let made = [("git", "theirs"), (PRONTO, "ours")].map(|(program, base)| {
        let call = [&["pack-objects", "-q"], options, &[base]].concat();
        let output = scene.run(program, &call, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {call:?}: {said}");
        let hash = String::from_utf8_lossy(&output.stdout).into_owned();
        scene.packed(base, &hash)
    });
    assert_eq!(made[0], made[1], "{options:?}");
}

#[test]
fn files_have_the_requested_objects() {
    let scene = Scene::new();
    for _ in 0..2 {
        compare(&scene, &["--revs"], "main\n");
        compare(
            &scene,
            &["--revs", "--delta-base-offset"],
            "main\n^main~3\n",
        );
        compare(
            &scene,
            &["--revs", "--include-tag"],
            "main~2\n--not\nmain~5\n",
        );
        compare(&scene, &["--revs", "--no-sparse"], "main~6..main\n");
        compare(&scene, &["--revs", "--window=0"], "main~6\n");
        compare(&scene, &["--all", "--no-reuse-delta"], "");
        let listed = scene.git(&["rev-list", "--objects", "main~1"], "");
        compare(&scene, &["--window=3", "--depth=2"], &listed);
        scene.git(&["repack", "-q", "-a", "-d"], "");
    }
}

#[test]
fn bitmaps_are_written_for_packs_of_all_objects() {
    let scene = Scene::new();
    let base = ".git/objects/pack/pack";
    let call = ["pack-objects", "-q", "--all", "--write-bitmap-index", base];
    let output = scene.run(PRONTO, &call, "");
    assert!(output.status.success(), "{output:?}");
    scene.git(&["prune-packed"], "");
    scene.git(&["rev-list", "--test-bitmap", "HEAD"], "");
    scene.git(&["fsck", "--full", "--strict"], "");
}

#[test]
fn wrong_input_is_reported_as_in_git() {
    let scene = Scene::new();
    for (options, input) in [
        (&["--stdout"][..], "nonsense\n"),
        (&["--revs", "--stdout"], "gone\n"),
    ] {
        let call = [&["pack-objects", "-q"], options].concat();
        let [theirs, ours] = ["git", PRONTO].map(|program| {
            let output = scene.run(program, &call, input);
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        });
        assert_eq!(ours, theirs);
    }
}

#[test]
fn all_includes_heads_of_other_worktrees() {
    let scene = Scene::new();
    scene.git(&["worktree", "add", "-q", "--detach", "linked"], "");
    let own = ["-C", "linked", "commit", "-q", "--allow-empty", "-m", "own"];
    scene.git(&own, "");
    scene.git(&["worktree", "add", "-q", "--detach", "gone"], "");
    std::fs::remove_dir_all(scene.path().join("gone")).expect("it is removed");
    compare(&scene, &["--all"], "");
    scene.git(&["checkout", "-q", "--detach"], "");
    let own = ["commit", "-q", "--allow-empty", "-m", "detached"];
    scene.git(&own, "");
    compare(&scene, &["--all"], "");
    let base = |name: &str| scene.path().join(name).display().to_string();
    let made = [("git", "t"), (PRONTO, "o")].map(|(program, name)| {
        let call = ["-C", "linked", "pack-objects", "-q", "--all", &base(name)];
        let output = scene.run(program, &call, "");
        assert!(output.status.success(), "{program} {output:?}");
        scene.packed(name, &String::from_utf8_lossy(&output.stdout))
    });
    assert_eq!(made[0], made[1]);
}

#[test]
fn damage_is_not_copied_where_the_index_has_no_checksums() {
    use std::os::unix::fs::PermissionsExt as _;

    let scene = Scene::new();
    // Deltas, and objects that are stored whole.
    let path = scene.path().join("f0");
    let grown = std::fs::read_to_string(&path).expect("a file") + "more\n";
    std::fs::write(&path, grown).expect("a file");
    scene.git(&["commit", "-q", "-a", "-m", "grown"], "");
    let settings = [
        "-c",
        "pack.indexVersion=1",
        "-c",
        "repack.writeBitmaps=false",
    ];
    scene.git(
        &[&settings[..], &["repack", "-q", "-a", "-d", "-f"]].concat(),
        "",
    );
    let names = std::fs::read_dir(scene.path().join(".git/objects/pack")).expect("it is there");
    let mut paths = names.map(|entry| entry.expect("it is listed").path());
    let path = paths.find(|path| path.extension().is_some_and(|ending| ending == "pack"));
    let path = path.expect("there is one");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let whole = std::fs::read(&path).expect("it is there");
    let listed = scene.git(&["verify-pack", "-v", &path.display().to_string()], "");
    let blobs = listed.lines().filter(|line| line.contains(" blob "));
    for is_delta in [false, true] {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let mut found = blobs.clone().map(words);
        let blob: Vec<String> = found
            .find(|words: &Vec<String>| {
                let is_base = listed.matches(words[0].as_str()).count() > 1;
                (words.len() > 5) == is_delta && !is_base
            })
            .expect("there is one");
        let number = |at: usize| blob[at].parse::<usize>().expect("a number");
        let loose = scene.path().join(".git/objects").join(&blob[0][..2]);
        let content = scene.git(&["cat-file", "blob", &blob[0]], "");
        let mut damaged = whole.clone();
        damaged[number(4) + number(3) - 2] ^= 4;
        std::fs::write(&path, &damaged).expect("it is written");
        for program in ["git", PRONTO] {
            let call = ["pack-objects", "-q", "--all", "bad"];
            let output = scene.run(program, &call, "");
            assert_eq!(output.status.code(), Some(128), "{program} {output:?}");
        }
        // With another copy the call succeeds.
        let odd = scene.path().join("odd");
        std::fs::create_dir_all(odd.join("objects")).expect("a folder");
        scene.git(&["init", "-q", "--bare", "odd"], "");
        scene.git(&["-C", "odd", "hash-object", "-w", "--stdin"], &content);
        std::fs::create_dir_all(&loose).expect("a folder");
        let name = &blob[0][2..];
        let copy = odd.join("objects").join(&blob[0][..2]).join(name);
        std::fs::copy(copy, loose.join(name)).expect("it is copied");
        let output = scene.run(PRONTO, &["pack-objects", "-q", "--all", "good"], "");
        assert!(output.status.success(), "{output:?}");
        scene.packed("good", &String::from_utf8_lossy(&output.stdout));
        std::fs::remove_file(loose.join(name)).expect("it is removed");
    }
}

#[test]
fn a_base_name_is_relative_to_the_top_and_limits_go_to_git() {
    let scene = Scene::new();
    std::fs::create_dir(scene.path().join("sub")).expect("a folder");
    let call = ["-C", "sub", "pack-objects", "-q", "--all", "named"];
    let output = scene.run(PRONTO, &call, "");
    assert!(output.status.success(), "{output:?}");
    scene.packed("named", &String::from_utf8_lossy(&output.stdout));
    scene.git(&["config", "pack.packSizeLimit", "1m"], "");
    let output = scene.run(PRONTO, &call, "");
    assert!(
        !output.status.success(),
        "git is forbidden here: {output:?}"
    );
}

#[test]
fn objects_of_other_packs_can_be_left_out() {
    let scene = Scene::new();
    scene.git(&["repack", "-q", "-d"], "");
    let change = |text: &str| {
        std::fs::write(scene.path().join("new"), text).expect("a file");
        scene.git(&["add", "new"], "");
    };
    change("committed");
    scene.git(&["commit", "-q", "-m", "new"], "");
    compare(&scene, &["--all", "--unpacked", "--incremental"], "");
    compare(&scene, &["--all", "--incremental"], "");
    scene.git(&["reset", "-q", "--hard", "HEAD~1"], "");
    change("staged");
    compare(&scene, &["--all", "--reflog"], "");
    compare(&scene, &["--all", "--reflog", "--indexed-objects"], "");
    compare(&scene, &["--indexed-objects"], "");
    let packs = std::fs::read_dir(scene.path().join(".git/objects/pack")).expect("a directory");
    let mut names = packs.map(|entry| entry.expect("it is listed").path());
    let pack = names.find(|path| path.extension().is_some_and(|ending| ending == "pack"));
    let pack = pack.expect("there is one");
    let name = pack.file_name().expect("it has a name").to_string_lossy();
    let named = format!("--keep-pack={name}");
    compare(&scene, &["--all", "--reflog", &named], "");
    compare(&scene, &["--all", "--reflog", "--honor-pack-keep"], "");
    std::fs::write(pack.with_extension("keep"), "").expect("a file");
    compare(&scene, &["--all", "--reflog", "--honor-pack-keep"], "");
    let listed = scene.git(&["rev-list", "--objects", "--all", "--reflog"], "");
    compare(&scene, &["--honor-pack-keep"], &listed);
}

/// Returns the ids of the deltas in the pack with the index `index`, in order.
fn deltas(scene: &Scene, index: &str) -> Vec<String> {
    let listed = scene.git(&["verify-pack", "-v", index], "");
    let fields = listed
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    // Lines of deltas also have a depth and a base.
    let deltas = fields.filter(|fields| fields.last().is_some_and(|last| last.len() == 40));
    let mut ids: Vec<String> = deltas.map(|fields| fields[0].to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn objects_with_a_delta_attribute_are_stored_whole() {
    let scene = Scene::new();
    std::fs::create_dir(scene.path().join("d")).expect("a folder");
    let names = ["top", "d/below", "d/else", "told", "free"];
    for number in 0..4 {
        for name in names {
            let lines = (0..200).map(|line| format!("{name} {line}\n"));
            let content = lines.collect::<String>() + &number.to_string();
            std::fs::write(scene.path().join(name), content).expect("a file");
        }
        scene.git(&["add", "."], "");
        scene.git(&["commit", "-q", "-m", "more"], "");
    }
    for (path, content) in [
        (".gitattributes", "top -delta\n"),
        ("d/.gitattributes", "below -delta\nelse delta\n"),
        (".git/info/attributes", "told -delta\n"),
    ] {
        std::fs::write(scene.path().join(path), content).expect("a file");
    }
    let listed = scene.git(&["rev-list", "--objects", "--all"], "");
    let at = |path: &str| {
        let lines = listed.lines().filter_map(|line| line.split_once(' '));
        let ids = lines.filter(|(_, name)| *name == path).map(|(id, _)| id);
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    let check = |deltas: &[String], what: &str| {
        for name in names {
            let count = at(name).iter().filter(|id| deltas.contains(id)).count();
            let is_whole = matches!(name, "top" | "d/below" | "told");
            assert_eq!(count, if is_whole { 0 } else { 3 }, "{name}, {what}");
        }
    };
    for (options, input) in [
        (&["--all"][..], ""),
        (&["--revs"], "main\n"),
        (&["--indexed-objects", "--all"], ""),
        (&[], &*listed),
    ] {
        for (program, base) in [("git", "theirs"), (PRONTO, "ours")] {
            // In lines git treats the line feed as part of the path.
            if program == "git" && options.is_empty() {
                continue;
            }
            let call = [&["pack-objects", "-q"], options, &[base]].concat();
            let output = scene.run(program, &call, input);
            assert!(output.status.success(), "{call:?}: {output:?}");
            let hash = String::from_utf8_lossy(&output.stdout).into_owned();
            let made = deltas(&scene, &format!("{base}-{}.idx", hash.trim()));
            check(&made, &format!("{program} {options:?}"));
        }
    }
    let output = scene.run(PRONTO, &["repack", "-q", "-a", "-d", "-f"], "");
    assert!(output.status.success(), "{output:?}");
    let packs = std::fs::read_dir(scene.path().join(".git/objects/pack")).expect("a directory");
    let mut names = packs.map(|entry| entry.expect("it is listed").path());
    let index = names.find(|path| path.extension().is_some_and(|ending| ending == "idx"));
    let index = index.expect("there is one");
    check(&deltas(&scene, &index.to_string_lossy()), "repack");
}

#[test]
fn a_window_may_be_limited_in_memory() {
    let scene = Scene::new();
    compare(&scene, &["--all", "--window-memory=1m"], "");
    compare(&scene, &["--all", "--window-memory=1k", "--window=50"], "");
    compare(&scene, &["--all", "--window-memory=0"], "");
    let call = ["pack-objects", "-q", "--all", "--window-memory=-1", "ours"];
    let output = scene.run(PRONTO, &call, "");
    assert!(!output.status.success(), "left to git: {output:?}");
}

#[test]
fn several_threads_write_the_same_as_one() {
    let scene = Scene::new();
    // Enough objects without deltas to start threads, of many sizes.
    for number in 0..60_u32 {
        let mut state = number + 1;
        let numbers = (0..number * 200).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            format!("{}\n", state >> 20)
        });
        let name = format!("n{number}");
        std::fs::write(scene.path().join(name), numbers.collect::<String>()).expect("a file");
    }
    scene.git(&["add", "."], "");
    scene.git(&["commit", "-q", "-m", "numbers"], "");
    for is_packed in [false, true] {
        let made = ["--threads=1", "--threads=2", "--threads=7"].map(|threads| {
            let all = [
                "pack-objects",
                "-q",
                "--all",
                "--stdout",
                "--no-reuse-object",
            ];
            let sent = ["--window=0", "--window=4"].map(|window| {
                let output = scene.run(PRONTO, &[&all[..], &[window, threads]].concat(), "");
                assert!(output.status.success(), "{threads} {window}: {output:?}");
                output.stdout
            });
            std::fs::write(scene.path().join("some.pack"), &sent[1]).expect("a file");
            scene.git(&["index-pack", "--strict", "some.pack"], "");
            let [whole, _] = sent;
            whole
        });
        assert!(made[0].len() > 128 << 10, "too small to tell");
        let differ = made.iter().any(|pack| *pack != made[0]);
        assert!(!differ, "the threads are seen, packed: {is_packed}");
        scene.git(&["repack", "-q", "-a", "-d"], "");
    }
}

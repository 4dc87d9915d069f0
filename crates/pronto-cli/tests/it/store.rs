//! `store`: imports Git repositories into a store, and exports them.

use std::fs;
use std::path::{Path, PathBuf};

use test_support::git::reference;
use test_support::report_missing_reference;

use crate::netsync::Pair;
use crate::support::{process, pronto_path, stderr, stdout};

/// Repositories, and an empty store.
struct World {
    pair: Pair,
    url: String,
}

impl World {
    fn new(format: &str) -> Self {
        let pair = Pair::empty(format);
        let store = pair.path("store");
        fs::create_dir(&store).expect("a directory");
        let url = format!("file://{}", store.display());
        let world = World { pair, url };
        for number in 0..20 {
            world
                .pair
                .commit("one", &format!("dir/{number}"), "content\n");
        }
        world.git("one", &["tag", "-m", "tagged", "v1"]);
        world.git("one", &["branch", "side", "HEAD~5"]);
        world.git("one", &["config", "receive.denyNonFastForwards", "true"]);
        world.git("one", &["config", "core.hooksPath", "/tmp/evil"]);
        world
    }

    fn git(&self, place: &str, arguments: &[&str]) -> String {
        self.pair.git(place, arguments)
    }

    /// Runs `pronto store`, which must succeed.
    fn store(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.try_store(arguments);
        assert_eq!(code, 0, "{arguments:?}: {out}{err}");
        out
    }

    fn try_store(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut words = vec!["store"];
        words.extend(arguments);
        let output = self.pair.run(pronto_path(), ".", &words);
        let code = output.status.code().expect("it ended");
        (code, stdout(&output), stderr(&output))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.pair.path(name)
    }
}

/// Runs a git that knows reftables. The programs that it starts are its own.
fn newer_git(git: &Path, place: &Path, arguments: &[&str]) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = git.parent().expect("a directory").to_owned();
    let all = std::iter::once(own).chain(std::env::split_paths(&path));
    let output = process(git)
        .args(arguments)
        .env("PATH", std::env::join_paths(all).expect("no colons in it"))
        .current_dir(place)
        .output()
        .expect("it can be started");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    stdout(&output)
}

fn round_trip(format: &str) {
    let world = World::new(format);
    let url = world.url.clone();
    let imported = world.store(&["import", "one", &url, "team/project"]);
    // 20 commits, each with two new trees; one blob and one tag. HEAD, two branches and a tag.
    assert_eq!(imported, "4 refs and 62 objects\n");
    assert_eq!(world.store(&["list", &url]), "team/project\n");
    let listed = world.store(&["list", &url, "team/project"]);
    assert!(
        listed.starts_with("1\t20") && listed.ends_with("Z\n"),
        "{listed}"
    );
    let verified = world.store(&["verify", &url]);
    assert!(
        verified.contains("1 generation up to 1, 5 objects"),
        "{verified}"
    );
    assert!(verified.ends_with("0 orphans, 0 problems\n"), "{verified}");

    assert_eq!(
        world.store(&["export", &url, "team/project", "out.git"]),
        "generation 1\n"
    );
    let refs = |place: &str| {
        let output = world
            .pair
            .run(pronto_path(), place, &["show-ref", "--head", "-d"]);
        stdout(&output)
    };
    let expected = refs("one");
    assert!(expected.contains("refs/tags/v1^{}"), "{expected}");
    assert_eq!(refs("out.git"), expected);
    let config = fs::read_to_string(world.path("out.git/config")).expect("text");
    assert!(
        config.contains("denynonfastforwards = true") && !config.contains("evil"),
        "{config}"
    );
    let names: Vec<String> = fs::read_dir(world.path("out.git/objects/pack"))
        .expect("a directory")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    for ending in [".pack", ".idx", ".rev", ".bitmap"] {
        assert!(names.iter().any(|name| name.ends_with(ending)), "{names:?}");
    }
    world.store(&["copy", &url, "team/project", &url, "copy"]);
    assert_eq!(world.store(&["list", &url]), "copy\nteam/project\n");
    world.store(&["export", "--generation=1", &url, "copy", "again.git"]);
    assert_eq!(refs("again.git"), expected);
    let Some(git) = reference() else {
        return report_missing_reference(&"no git that knows reftables");
    };
    let out = world.path("out.git");
    newer_git(git, &out, &["fsck", "--strict"]);
    let count = [
        "rev-list",
        "--all",
        "--objects",
        "--use-bitmap-index",
        "--count",
    ];
    assert_eq!(newer_git(git, &out, &count), "62\n");
    // It is an ordinary repository: it can be cloned from and changed.
    newer_git(git, &out, &["branch", "new", "main"]);
    let cloned = world
        .pair
        .run(pronto_path(), ".", &["clone", "-q", "out.git", "clone"]);
    assert!(cloned.status.success(), "{}", stderr(&cloned));
}

#[test]
fn a_repository_comes_out_as_it_went_in() {
    round_trip("sha1");
}

#[test]
fn a_repository_with_sha256_comes_out_as_it_went_in() {
    round_trip("sha256");
}

#[test]
fn an_empty_repository_keeps_its_branch() {
    let world = World::new("sha1");
    let url = world.url.clone();
    let imported = world.store(&["import", "other", &url, "empty"]);
    assert_eq!(imported, "1 ref and 0 objects\n");
    world.store(&["export", &url, "empty", "out.git"]);
    let output = world
        .pair
        .run(pronto_path(), "out.git", &["symbolic-ref", "HEAD"]);
    assert_eq!(stdout(&output), "refs/heads/main\n");
}

#[test]
fn damage_and_mistakes_are_named() {
    let world = World::new("sha1");
    let url = world.url.clone();
    world.store(&["import", "one", &url, "r"]);
    let (code, _, err) = world.try_store(&["import", "one", &url, "r"]);
    assert_eq!(code, 128, "{err}");
    assert!(err.contains("repository 'r' already exists"), "{err}");
    let (code, _, err) = world.try_store(&["export", &url, "missing", "out.git"]);
    assert!(
        code == 128 && err.contains("there is no repository 'missing'"),
        "{err}"
    );
    let (code, _, err) = world.try_store(&["export", "--generation=7", &url, "r", "out.git"]);
    assert!(code == 128 && err.contains("has no generation 7"), "{err}");
    let (code, _, err) = world.try_store(&["list", "ftp://x/y"]);
    assert!(code == 128 && err.contains("s3://BUCKET/PREFIX"), "{err}");
    let (code, _, err) = world.try_store(&["verify", "--update", &url, "r"]);
    assert!(code == 129 && err.contains("'--update'"), "{err}");

    let packs = fs::read_dir(world.path("store/r.git/pack")).expect("a directory");
    let pack = packs
        .map(|entry| entry.expect("readable").path())
        .find(|path| path.extension().is_some_and(|it| it == "pack"))
        .expect("a pack");
    let mut bytes = fs::read(&pack).expect("a file");
    bytes[40] ^= 4;
    fs::write(&pack, bytes).expect("writable");
    let name = pack
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let (code, out, _) = world.try_store(&["verify", &url, "r"]);
    assert!(
        code == 1 && out.contains(&name) && out.contains("1 problem"),
        "{out}"
    );
    let (code, _, err) = world.try_store(&["export", &url, "r", "out.git"]);
    assert!(code == 128 && err.contains(&name), "{err}");
    assert!(!world.path("out.git").exists());
}

#[test]
fn repositories_are_brought_up_to_date() {
    let world = World::new("sha1");
    let url = world.url.clone();
    let refs = |place: &str| world.git(place, &["show-ref", "--head", "-d"]);
    // One that is not there is made, and one that did not change makes no generation.
    let imported = world.store(&["import", "--update", "one", &url, "r"]);
    assert_eq!(imported, "4 refs and 62 objects\n");
    let again = world.store(&["import", "--update", "one", &url, "r"]);
    assert_eq!(again, "0 refs and 0 objects\n");
    world.git("one", &["branch", "-D", "side"]);
    world.git("one", &["tag", "-f", "v1", "HEAD~3"]);
    world.git("one", &["branch", "new/name", "HEAD~2"]);
    world.pair.commit("one", "later", "more\n");
    // A commit with its root tree; a blob.
    let updated = world.store(&["import", "--update", "one", &url, "r"]);
    assert_eq!(updated, "4 refs and 3 objects\n");
    assert!(world.store(&["list", &url, "r"]).starts_with("2\t"));
    assert_eq!(world.store(&["list", &url, "r"]).lines().count(), 2);
    world.store(&["export", &url, "r", "out.git"]);
    assert_eq!(refs("out.git"), refs("one"));
    world.git("out.git", &["fsck", "--full", "--strict"]);
    let (code, _, err) = world.try_store(&["import", "one", &url, "r"]);
    assert!(code == 128 && err.contains("already"), "{code} {err}");
    let verified = world.store(&["verify", &url]);
    assert!(verified.ends_with(" 0 problems\n"), "{verified}");
}

#[test]
fn all_repositories_of_a_directory_are_imported() {
    let world = World::new("sha1");
    let url = world.url.clone();
    fs::create_dir_all(world.path("root/team")).expect("a directory");
    let clone = |name: &str| world.git(".", &["clone", "-q", "--bare", "one", name]);
    clone("root/a.git");
    clone("root/team/b.git");
    let imported = world.store(&["import", "--update", "root", &url]);
    assert_eq!(
        imported,
        "a: 4 refs and 62 objects\nteam/b: 4 refs and 62 objects\n"
    );
    world.git("root/team/b.git", &["update-ref", "refs/heads/x", "HEAD~1"]);
    let shallow = world.git("one", &["rev-parse", "HEAD"]);
    fs::write(world.path("root/a.git/shallow"), shallow).expect("a file");
    clone("root/c.git");
    let (code, out, err) = world.try_store(&["import", "--update", "root", &url]);
    assert_eq!(
        (code, err.contains("a: the repository is shallow")),
        (1, true),
        "{out}{err}"
    );
    assert_eq!(
        out,
        "c: 4 refs and 62 objects\nteam/b: 1 ref and 0 objects\n"
    );
    assert_eq!(world.store(&["list", &url]), "a\nc\nteam/b\n");
    let (code, _, err) = world.try_store(&["import", "store", &url]);
    assert!(
        code == 128 && err.contains("no repository found under"),
        "{err}"
    );
}

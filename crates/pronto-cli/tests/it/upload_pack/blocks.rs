//! Packs that are copied from a pack with bitmaps, with more than sixteen thousand objects.

use std::fmt::Write as _;
use std::fs::File;
use std::process::Stdio;

use super::scene::{Call, Scene};
use super::{FILTER, fetch, version_2};

const COMMITS: usize = 12_000;

/// A history of many small commits, in one pack with bitmaps.
fn many() -> Option<Scene> {
    let mut scene = Scene::new()?;
    let mut stream = String::new();
    for number in 0..COMMITS {
        let time = 1_700_000_000 + number;
        let body = format!("{number} and something that is the same in all versions\n").repeat(3);
        let _ = write!(
            stream,
            "commit refs/heads/many\ncommitter C <c@x> {time} +0000\ndata 1\nm\n\
             M 100644 inline d{}/f\ndata {}\n{body}\n",
            number % 7,
            body.len()
        );
    }
    let file = scene.path().join("stream");
    std::fs::write(&file, stream).expect("a file");
    let mut import = scene.command(scene.reference());
    import.args(["-C", "origin", "fast-import", "--quiet"]);
    import.stdin(Stdio::from(File::open(&file).expect("it is there")));
    assert!(import.status().expect("it can be started").success());
    scene.git(&["-C", "origin", "repack", "-adbq"]);
    // Something that bitmaps do not speak of, and a tag of it.
    scene.commit("beside");
    scene.git(&["-C", "origin", "tag", "-m", "tagged", "v2", "many"]);
    for (name, revision) in [
        ("main", "main"),
        ("many", "many"),
        ("old", "many~100"),
        ("older", "many~9000"),
    ] {
        scene.name(name, revision);
    }
    Some(scene)
}

#[test]
fn blocks_have_the_same_objects() {
    let Some(scene) = many() else {
        return test_support::report_missing_reference(&"what upload-pack answers");
    };
    let calls = [
        &["want {many}\n", "want {main}\n"][..],
        &["include-tag\n", "want {many}\n", "want {main}\n"],
        &["want {old}\n"],
        &["ofs-delta\n", "want {old}\n"],
        &["ofs-delta\n", "want {many}\n", "have {older}\n"],
        &["ofs-delta\n", "want {many}\n", "filter blob:none\n"],
        &["ofs-delta\n", "want {many}\n", "filter object:type=tree\n"],
        &["ofs-delta\n", "want {many}\n", "filter tree:0\n"],
    ];
    for lines in calls {
        let lines = fetch(&[lines, &["done\n"]].concat());
        let answer = scene.compare(&version_2(&lines, &[FILTER]));
        assert!(answer.objects.is_some(), "{lines:?}");
    }
    let lines = fetch(&["ofs-delta\n", "want {many}\n", "done\n"]);
    let several = Call {
        settings: &[("pack.allowPackReuse", "multi")],
        ..version_2(&lines, &[])
    };
    scene.git(&["-C", "origin", "repack", "-dq"]);
    scene.git(&["-C", "origin", "multi-pack-index", "write", "--bitmap"]);
    scene.compare(&several);
}

/// A client has the bases of deltas that are not sent.
#[test]
fn thin_packs_are_completed_by_the_client() {
    let Some(scene) = many() else {
        return test_support::report_missing_reference(&"what upload-pack answers");
    };
    let server = format!("{} upload-pack", env!("CARGO_BIN_EXE_pronto"));
    let origin = format!("file://{}", scene.path().join("origin").display());
    scene.git(&["-C", "origin", "branch", "old", "many~11000"]);
    let old = ["clone", "-q", "--bare", "--single-branch", "-b", "old"];
    scene.git(&[&old[..], &["-u", &server, &origin, "client"]].concat());
    let fetch = ["-C", "client", "fetch", "-q", "--upload-pack", &server];
    for branch in ["many~9000", "many"] {
        scene.git(&["-C", "origin", "branch", "-f", "next", branch]);
        scene.git(&[&fetch[..], &[&origin, "next:next"]].concat());
        scene.git(&["-C", "client", "fsck", "--full", "--strict"]);
    }
    assert_eq!(
        scene.git(&["-C", "client", "rev-parse", "next"]),
        scene.git(&["-C", "origin", "rev-parse", "many"])
    );
}

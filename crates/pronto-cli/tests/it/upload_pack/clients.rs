//! git as a client of `pronto upload-pack`, which permits the same requests as git's server.

use std::path::Path;
use std::process::Output;

use super::scene::Scene;

const SERVERS: [&str; 2] = ["ours", "theirs"];

fn command_of(scene: &Scene, name: &str) -> String {
    match name {
        "ours" => format!("'{}' upload-pack", env!("CARGO_BIN_EXE_pronto")),
        _ => format!("'{}' upload-pack", scene.reference().display()),
    }
}

/// All objects, references and ends of history of a repository that is whole.
fn state(scene: &Scene, name: &str) -> [String; 3] {
    let shallow = scene.path().join(name).join("shallow");
    let shallow = std::fs::read_to_string(shallow).unwrap_or_default();
    let mut lines: Vec<&str> = shallow.lines().collect();
    lines.sort_unstable();
    let all = ["cat-file", "--batch-all-objects", "--batch-check"];
    scene.git(&["-C", name, "fsck", "--full", "--strict"]);
    [
        scene.git(&["-C", name, "for-each-ref"]),
        scene.git(&[&["-C", name], &all[..]].concat()),
        lines.join("\n"),
    ]
}

/// Clones from both servers, and fetches in each of these ways.
fn compare(scene: &Scene, url: &str, clone: &[&str], fetches: &[&[&str]]) {
    for version in ["0", "1", "2"] {
        let setting = format!("protocol.version={version}");
        for name in SERVERS {
            let _ = std::fs::remove_dir_all(scene.path().join(name));
            let server = command_of(scene, name);
            let start = ["-c", &setting, "clone", "-q", "--bare", "-u", &server];
            scene.git(&[&start[..], clone, &[url, name]].concat());
            let key = "remote.origin.uploadpack";
            scene.git(&["-C", name, "config", key, &server]);
        }
        assert_eq!(state(scene, "ours"), state(scene, "theirs"), "{clone:?}");
        for fetch in fetches {
            for name in SERVERS {
                let start = ["-C", name, "-c", &setting, "fetch", "-q"];
                scene.git(&[&start[..], fetch].concat());
            }
            let what = format!("version {version}, {clone:?}, {fetch:?}");
            assert_eq!(state(scene, "ours"), state(scene, "theirs"), "{what}");
        }
    }
}

fn url(scene: &Scene) -> String {
    format!("file://{}", scene.path().join("origin").display())
}

#[test]
fn shallow_clones_deepen_and_become_whole() {
    let Some(scene) = Scene::new() else {
        return test_support::report_missing_reference(&"shallow clones");
    };
    let all = "+refs/*:refs/*";
    compare(
        &scene,
        &url(&scene),
        &["--depth=1", "--no-single-branch"],
        &[
            &["--deepen=1", "origin", all],
            &["--depth=4", "origin", all],
            &["--unshallow", "origin", all],
        ],
    );
    // A fetch of everything after these fails with git's own server, too.
    compare(
        &scene,
        &url(&scene),
        &["--depth=1", "--no-single-branch"],
        &[&["--shallow-since=1700003500", "origin", all]],
    );
    compare(&scene, &url(&scene), &["--shallow-exclude=side"], &[]);
}

#[test]
fn partial_clones_lack_the_same() {
    let Some(scene) = Scene::new() else {
        return test_support::report_missing_reference(&"partial clones");
    };
    scene.git(&["-C", "origin", "config", "uploadpack.allowFilter", "true"]);
    scene.git(&[
        "-C",
        "origin",
        "config",
        "uploadpack.allowAnySHA1InWant",
        "true",
    ]);
    for filter in [
        "blob:none",
        "blob:limit=150",
        "tree:0",
        "tree:2",
        "object:type=commit",
    ] {
        let filter = format!("--filter={filter}");
        let fetch: &[&str] = &["--refetch", "--filter=tree:1", "origin", "+refs/*:refs/*"];
        compare(&scene, &url(&scene), &[&filter], &[fetch]);
    }
}

#[test]
fn a_shallow_server_shares_what_it_has() {
    let Some(scene) = Scene::new() else {
        return test_support::report_missing_reference(&"shallow servers");
    };
    scene.git(&[
        "clone",
        "-q",
        "--bare",
        "--depth=4",
        "--no-single-branch",
        &url(&scene),
        "cut",
    ]);
    let cut = format!("file://{}", scene.path().join("cut").display());
    let fetch: &[&str] = &["--depth=3", "origin", "+refs/*:refs/*"];
    compare(&scene, &cut, &[], &[fetch]);
    compare(
        &scene,
        &cut,
        &["--depth=1"],
        &[&["--unshallow", "origin", "+refs/*:refs/*"]],
    );
}

/// Clones by `program` with protected configuration that names `hook`.
fn clone_with_hook(scene: &Scene, hook: &str, target: &str) -> Output {
    let mut command = scene.command(scene.reference());
    let server = command_of(scene, "ours");
    command.args(["clone", "-q", "-u", &server, &url(scene), target]);
    command.env("GIT_CONFIG_COUNT", "1");
    command.env("GIT_CONFIG_KEY_0", "uploadpack.packObjectsHook");
    command.env("GIT_CONFIG_VALUE_0", hook);
    command.output().expect("it can be started")
}

#[test]
fn a_hook_makes_the_pack_where_the_repository_does_not_choose_it() {
    let Some(scene) = Scene::new() else {
        return test_support::report_missing_reference(&"hooks of upload-pack");
    };
    let path = scene.path().join("hook");
    let text =
        "#!/bin/sh\necho \"$@\" >\"$HOME/arguments\"\npwd >>\"$HOME/arguments\"\nexec \"$@\"\n";
    std::fs::write(&path, text).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("its mode");
    let hook = path.display().to_string();
    // Global configuration is passed on to the server by the environment of the test.
    let global = scene.path().join(".gitconfig");
    std::fs::write(
        &global,
        format!("[uploadpack]\n\tpackObjectsHook = {hook}\n"),
    )
    .expect("a file");
    let output = clone_with_hook(&scene, &hook, "hooked");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let arguments = std::fs::read_to_string(scene.path().join("arguments")).expect("it ran");
    assert!(
        arguments.starts_with("git pack-objects --revs --thin --stdout"),
        "{arguments}"
    );
    std::fs::remove_file(scene.path().join("arguments")).expect("it is there");
    std::fs::write(&global, "[uploadpack]\n\tpackObjectsHook = exit 3; true\n").expect("a file");
    let output = clone_with_hook(&scene, "exit 3; true", "failed");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("aborting due to possible repository corruption"),
        "{said}"
    );
    std::fs::remove_file(&global).expect("it is there");
    scene.git(&[
        "-C",
        "origin",
        "config",
        "uploadpack.packObjectsHook",
        &hook,
    ]);
    let server = command_of(&scene, "ours");
    scene.git(&["clone", "-q", "-u", &server, &url(&scene), "unhooked"]);
    assert!(
        !scene.path().join("arguments").exists(),
        "the repository chose the program"
    );
}

#[test]
fn a_client_that_stalls_does_not_hold_the_server() {
    let Some(scene) = Scene::new() else {
        return test_support::report_missing_reference(&"timeouts");
    };
    for version in ["0", "2"] {
        let mut command = scene.command(Path::new(env!("CARGO_BIN_EXE_pronto")));
        command.args(["upload-pack", "--timeout=1", "origin"]);
        command.env("GIT_PROTOCOL", format!("version={version}"));
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null());
        let mut child = command.spawn().expect("it can be started");
        let _input = child.stdin.take();
        let status = child.wait().expect("it ends");
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(14), "version {version}");
    }
}

#[test]
fn everything_works_without_git() {
    let Some(scene) = Scene::new() else {
        return test_support::report_missing_reference(&"work without git");
    };
    scene.git(&["-C", "origin", "config", "uploadpack.allowFilter", "true"]);
    let pronto = Path::new(env!("CARGO_BIN_EXE_pronto"));
    let url = url(&scene);
    let run = |arguments: &[&str]| {
        let mut command = scene.command(pronto);
        command.env("PATH", "/nonexistent").args(arguments);
        let output = command.output().expect("it can be started");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
    };
    run(&["clone", "-q", &url, "whole"]);
    run(&["clone", "-q", "--depth=2", &url, "shallow"]);
    run(&["-C", "shallow", "fetch", "-q", "--unshallow"]);
    run(&["clone", "-q", "--filter=blob:none", &url, "partial"]);
    run(&["-C", "partial", "checkout", "-q", "HEAD~2"]);
    run(&["-C", "whole", "fetch", "-q", "origin"]);
    for name in ["whole", "shallow", "partial"] {
        scene.git(&["-C", name, "fsck", "--full"]);
    }
}

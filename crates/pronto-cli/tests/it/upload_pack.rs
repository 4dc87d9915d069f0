//! Compares conversations with `upload-pack` byte for byte with those of git 2.55. Packs are
//! compared by their objects.

/// A new scene, or the end of the test.
macro_rules! scene {
    () => {
        match Scene::new() {
            Some(scene) => scene,
            None => return test_support::report_missing_reference(&"what upload-pack answers"),
        }
    };
}

mod blocks;
mod clients;
mod filters;
mod negotiation;
mod requests;
mod scene;
mod shallow;

use scene::{Call, Scene};

const HIDDEN: (&str, &str) = ("transfer.hideRefs", "refs/hidden");
const FILTER: (&str, &str) = ("uploadpack.allowFilter", "true");

/// A request of version 2 for the command `fetch`.
fn fetch<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let start = ["command=fetch\n", "0001", "no-progress\n"];
    [&start[..], lines, &["0000"]].concat()
}

fn version_2<'a>(lines: &'a [&'a str], settings: &'a [(&'a str, &'a str)]) -> Call<'a> {
    Call {
        version: 2,
        settings,
        lines,
        ..Call::default()
    }
}

#[test]
fn servers_advertise_the_same() {
    let mut scene = scene!();
    let everything = [
        ("transfer.advertiseObjectInfo", "true"),
        ("transfer.advertiseSID", "true"),
        ("uploadpack.advertiseBundleURIs", "true"),
        ("uploadpack.allowFilter", "true"),
        ("uploadpack.allowRefInWant", "true"),
        ("uploadpack.allowSidebandAll", "true"),
        ("uploadpack.allowAnySHA1InWant", "true"),
        ("uploadpack.blobPackfileUri", "{blob} {none} https://x"),
    ];
    let hidden = [HIDDEN, ("uploadpack.hideRefs", "!refs/hidden/y")];
    let no_any = [
        ("uploadpack.allowAnySHA1InWant", "true"),
        ("uploadpack.allowTipSHA1InWant", "false"),
        ("lsrefs.unborn", "allow"),
    ];
    let promisors = [
        ("promisor.advertise", "true"),
        ("promisor.sendFields", "partialclonefilter, token"),
        ("remote.a;b.url", "https://h/x y"),
        ("remote.a;b.promisor", "true"),
        ("remote.c.url", "https://h/c"),
        ("remote.c.partialCloneFilter", "blob:none"),
        ("remote.c.token", "secret"),
    ];
    for round in 0..3 {
        for version in 0..3 {
            for settings in [&[][..], &everything, &hidden, &no_any, &promisors] {
                for options in [
                    &["--advertise-refs"][..],
                    &["--stateless-rpc", "--http-backend-info-refs"],
                    &["--strict", "--timeout=100"],
                ] {
                    let directory = if options.contains(&"--strict") {
                        "origin/.git"
                    } else {
                        ""
                    };
                    scene.compare(&Call {
                        version,
                        options,
                        settings,
                        lines: &["0000"],
                        directory,
                        ..Call::default()
                    });
                }
            }
        }
        match round {
            0 => _ = scene.git(&["-C", "origin", "checkout", "-q", "--detach"]),
            _ => _ = scene.git(&["-C", "origin", "symbolic-ref", "HEAD", "refs/heads/to-come"]),
        }
        scene.commit(&format!("round{round}"));
    }
}

#[test]
fn wrong_calls_fail_alike() {
    let scene = scene!();
    scene.git(&["init", "-q", "--bare", "bare"]);
    scene.git(&["-C", "origin", "worktree", "add", "-q", "../linked"]);
    for directory in [
        "bare",
        "origin",
        "origin/.git",
        "gone",
        "~",
        "~/origin",
        "~nobody/x",
        "linked",
        "linked/.git",
    ] {
        for options in [&[][..], &["--strict"], &["--strict", "--no-strict"]] {
            scene.compare(&Call {
                options,
                directory,
                lines: &["0000"],
                ..Call::default()
            });
        }
    }
}

#[test]
fn namespaces_are_worlds_of_their_own() {
    let scene = scene!();
    for (name, target) in [
        ("HEAD", "main~1"),
        ("refs/heads/main", "main"),
        ("refs/tags/v1", "v1"),
    ] {
        let full = format!("refs/namespaces/n/{name}");
        scene.git(&["-C", "origin", "update-ref", &full, target]);
    }
    let link = [
        "symbolic-ref",
        "refs/namespaces/m/HEAD",
        "refs/namespaces/m/refs/heads/x",
    ];
    scene.git(&[&["-C", "origin"], &link[..]].concat());
    scene.git(&[
        "-C",
        "origin",
        "update-ref",
        "refs/namespaces/m/refs/heads/x",
        "side",
    ]);
    let list = [
        "command=ls-refs\n",
        "0001",
        "peel\n",
        "symrefs\n",
        "unborn\n",
        "0000",
    ];
    let prefixed = [
        "command=ls-refs\n",
        "0001",
        "symrefs\n",
        "ref-prefix refs/heads/\n",
        "0000",
    ];
    let by_name = fetch(&["want-ref refs/heads/main\n", "done\n"]);
    let hidden = [
        &[][..],
        &[("transfer.hideRefs", "refs/heads")],
        &[("transfer.hideRefs", "^refs/namespaces/n/refs/heads")],
    ];
    for namespace in ["n", "m", "none", "n/o"] {
        for hidden in hidden {
            let settings = [&[("uploadpack.allowRefInWant", "true")], hidden].concat();
            for lines in [&list[..], &prefixed, &by_name] {
                scene.compare(&Call {
                    version: 2,
                    variables: &[("GIT_NAMESPACE", namespace)],
                    settings: &settings,
                    lines,
                    ..Call::default()
                });
            }
            for want in ["{main}", "{side}", "{hidden}"] {
                scene.compare(&Call {
                    variables: &[("GIT_NAMESPACE", namespace)],
                    settings: &settings,
                    lines: &[&format!("want {want} no-progress\n"), "0000", "done\n"],
                    ..Call::default()
                });
            }
        }
    }
}

#[test]
fn a_damaged_repository_is_reported_alike() {
    let mut scene = scene!();
    scene.name("lost", "main:sub/h");
    let lost = scene.git(&["-C", "origin", "rev-parse", "main:sub/h"]);
    let path = format!("origin/.git/objects/{}/{}", &lost[..2], lost[2..].trim());
    std::fs::remove_file(scene.path().join(path)).expect("it is loose");
    for band in ["", " side-band", " side-band-64k"] {
        let want = format!("want {{main}} no-progress{band}\n");
        let call = Call {
            lines: &[&want, "0000", "done\n"],
            ..Call::default()
        };
        let ours = scene.ask(env!("CARGO_BIN_EXE_pronto").as_ref(), &call);
        let theirs = scene.ask(scene.reference(), &call);
        assert_eq!(ours.lines, theirs.lines, "{band}");
        assert_eq!(ours.code, theirs.code, "{band}");
        let last = |text: &str| text.lines().last().map(str::to_owned);
        assert_eq!(last(&ours.stderr), last(&theirs.stderr), "{band}");
    }
}

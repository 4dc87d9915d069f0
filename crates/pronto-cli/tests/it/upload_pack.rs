//! Conversations with `upload-pack`, compared with those of git 2.55 byte for byte. Packs are
//! compared by their objects.

mod clients;
mod scene;

use scene::{Call, Scene};

/// A new scene, or the end of the test.
macro_rules! scene {
    () => {
        match Scene::new() {
            Some(scene) => scene,
            None => return test_support::report_missing_reference(&"what upload-pack answers"),
        }
    };
}

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
fn only_what_is_allowed_can_be_wanted() {
    let scene = scene!();
    let allowances = [
        &[][..],
        &[("uploadpack.allowTipSHA1InWant", "true")],
        &[("uploadpack.allowReachableSHA1InWant", "true")],
        &[("uploadpack.allowAnySHA1InWant", "true")],
    ];
    let names = [
        "main",
        "hidden",
        "gone",
        "main~3",
        "v1",
        "tree",
        "blob",
        "gone-blob",
        "none",
    ];
    for allowance in allowances {
        let settings = [&[HIDDEN], allowance].concat();
        for name in names {
            let want = format!("want {{{name}}} no-progress\n");
            for options in [&[][..], &["--stateless-rpc"]] {
                let lines = [&want[..], "0000", "done\n"];
                scene.compare(&Call {
                    options,
                    settings: &settings,
                    lines: &lines,
                    ..Call::default()
                });
            }
        }
        // Both are refused because of the second.
        scene.compare(&Call {
            settings: &settings,
            lines: &[
                "want {main} no-progress\n",
                "want {gone}\n",
                "want {hidden}\n",
                "0000",
                "done\n",
            ],
            ..Call::default()
        });
    }
    for name in names {
        let want = format!("want {{{name}}}\n");
        scene.compare(&version_2(&fetch(&[&want, "done\n"]), &[HIDDEN]));
    }
}

#[test]
fn negotiations_are_the_same() {
    let scene = scene!();
    let abilities = [
        "",
        " multi_ack",
        " multi_ack_detailed",
        " multi_ack_detailed no-done",
        " multi_ack_detailed side-band-64k ofs-delta",
        " side-band include-tag",
    ];
    let talks = [
        &["0000", "done\n"][..],
        &["0000", "have {none}\n", "0000", "done\n"],
        &["0000", "have {side}\n", "have {none}\n", "0000", "done\n"],
        &[
            "0000",
            "have {main~1}\n",
            "have {main~2}\n",
            "have {side}\n",
            "0000",
            "have {none}\n",
            "0000",
            "done\n",
        ],
        &[
            "0000",
            "have {side~1}\n",
            "0000",
            "have {side}\n",
            "have {tree}\n",
            "done\n",
        ],
        &["0000", "have {main}\n", "0000"],
        &["0000"],
        &["0000", "have {main}\n", "nonsense\n"],
        &["0000", "have 123\n"],
        &["nonsense\n"],
        &["want 123\n"],
        &["deepen 0\n"],
        &["filter blob:none\n"],
    ];
    for ability in abilities {
        for talk in talks {
            for options in [&[][..], &["--stateless-rpc"]] {
                let want = format!("want {{main}} no-progress{ability}\n");
                let lines = [&[&want[..], "want {v1}\n"][..], talk].concat();
                scene.compare(&Call {
                    options,
                    lines: &lines,
                    ..Call::default()
                });
            }
        }
    }
    for haves in [
        &["have {none}\n"][..],
        &["have {main~1}\n", "have {main~2}\n", "have {none}\n"],
        &["have {side}\n", "have {side~1}\n", "have {blob}\n"],
        &["have {main}\n"],
    ] {
        for rest in [
            &[][..],
            &["done\n"],
            &["wait-for-done\n"],
            &["wait-for-done\n", "done\n"],
        ] {
            for want in [
                &["want {main}\n"][..],
                &["want {blob}\n", "want {v1}\n"],
                &[],
            ] {
                let lines = fetch(&[want, haves, rest].concat());
                scene.compare(&version_2(&lines, &[]));
            }
        }
    }
}

#[test]
fn requests_of_version_2_are_judged_alike() {
    let scene = scene!();
    let settings = [
        ("transfer.advertiseObjectInfo", "true"),
        ("uploadpack.advertiseBundleURIs", "true"),
        ("bundle.version", "1"),
        ("bundle.mode", "all"),
        ("bundle.one.uri", "https://x/y"),
        HIDDEN,
    ];
    let requests = [
        &[][..],
        &["0000"],
        &["command=ls-refs\n"],
        &["command=ls-refs\n", "0000", "0000"],
        &[
            "command=ls-refs",
            "0001",
            "peel\n",
            "symrefs\n",
            "unborn",
            "ref-prefix refs/heads/\n",
            "ref-prefix HEAD",
            "ref-prefix refs/heads/m\n",
            "0000",
        ],
        &[
            "command=ls-refs\n",
            "0001",
            "peel\n",
            "ref-prefix refs/tags/v\n",
            "0000",
            "command=ls-refs\n",
            "0001",
            "ref-prefix ref\n",
            "0000",
        ],
        &[
            "command=ls-refs\n",
            "0001",
            "ref-prefix refs/hidden/\n",
            "ref-prefix x\n",
            "0000",
        ],
        &["command=ls-refs\n", "0001", "nonsense\n", "0000"],
        &["command=ls-refs\n", "0001", "peel\n", "0001"],
        &["command=nonsense\n", "0000"],
        &["command=ls-refs\n", "command=fetch\n", "0000"],
        &["command=ls-refs=x\n", "0000"],
        &["agent=x\n", "0000"],
        &["agent=x\n", "nonsense\n", "0000"],
        &["command=ls-refs\n", "object-format=sha256\n", "0000"],
        &["command=ls-refs\n", "object-format=nonsense\n", "0000"],
        &["command=ls-refs\n", "object-format\n", "0000"],
        &["command=ls-refs\n", "session-id=x\n", "0000"],
        &[
            "command=ls-refs\n",
            "server-option=x\n",
            "agent=y\n",
            "object-format=sha1\n",
            "0000",
        ],
        &["command=ls-refs\n", "ls-refs\n", "0000"],
        &["command=fetch\n", "0000"],
        &["command=fetch\n", "0001", "0000"],
        &["command=fetch\n", "0001", "want {main}\n", "0001"],
        &["command=fetch\n", "0001", "want nonsense\n", "0000"],
        &[
            "command=fetch\n",
            "0001",
            "want-ref refs/heads/main\n",
            "0000",
        ],
        &["command=fetch\n", "0001", "filter blob:none\n", "0000"],
        &["command=fetch\n", "0001", "sideband-all\n", "0000"],
        &["command=fetch\n", "0001", "packfile-uris https\n", "0000"],
        &["command=fetch\n", "0001", "have x\n", "0000"],
        &["command=object-info\n", "0000"],
        &[
            "command=object-info\n",
            "0001",
            "size\n",
            "oid {blob}\n",
            "oid {none}\n",
            "oid {main}\n",
            "0000",
        ],
        &["command=object-info\n", "0001", "oid {blob}\n", "0000"],
        &[
            "command=object-info\n",
            "0001",
            "size\n",
            "oid 12\n",
            "nonsense\n",
            "oid {main}\n",
            "0000",
        ],
        &["command=object-info\n", "0001", "size\n", "0001"],
        &["command=bundle-uri\n", "0000"],
        &["command=bundle-uri\n", "0001", "0000"],
        &["command=bundle-uri\n", "0001", "x\n", "0000"],
    ];
    for lines in requests {
        for options in [&[][..], &["--stateless-rpc"]] {
            for settings in [&[][..], &settings] {
                scene.compare(&Call {
                    version: 2,
                    options,
                    settings,
                    lines,
                    ..Call::default()
                });
            }
        }
    }
}

#[test]
fn history_is_cut_in_the_same_places() {
    let scene = scene!();
    let cuts = [
        &["deepen 1\n"][..],
        &["deepen 2\n"],
        &["deepen 3\n"],
        &["deepen 4\n"],
        &["deepen 100\n"],
        &["deepen 2147483647\n"],
        &["shallow {main~2}\n"],
        &["shallow {main~2}\n", "deepen 2147483647\n"],
        &["shallow {main~2}\n", "deepen 1\n"],
        &["shallow {main~2}\n", "deepen 4\n"],
        &[
            "shallow {main~1}\n",
            "shallow {none}\n",
            "shallow {main~1}\n",
            "deepen 3\n",
        ],
        &[
            "shallow {side~1}\n",
            "shallow {main~3}\n",
            "deepen 1\n",
            "RELATIVE",
        ],
        &[
            "shallow {side~1}\n",
            "shallow {main~3}\n",
            "deepen 2\n",
            "RELATIVE",
        ],
        &["shallow {main~1}\n", "deepen 1\n", "RELATIVE"],
        &["shallow {main}\n", "deepen 2\n", "RELATIVE"],
        &["deepen 2\n", "RELATIVE"],
        &["deepen-since 1700006500\n"],
        &["deepen-since 1700004500\n"],
        &["shallow {main~1}\n", "deepen-since 1700003500\n"],
        &["deepen-since 1800000000\n"],
        &["deepen-not side\n"],
        &["deepen-not refs/tags/light\n", "deepen-since 1700003000\n"],
        &["deepen-not v1\n"],
        &["deepen-not main\n"],
        &["deepen-not nothing\n"],
        &["deepen 1\n", "deepen-not side\n"],
        &["shallow {blob}\n"],
        &["shallow nonsense\n"],
        &["deepen x\n"],
        &["deepen-since x\n"],
    ];
    let haves = [
        &[][..],
        &["have {main~2}\n"],
        &["have {main~1}\n", "have {side}\n"],
    ];
    for cut in cuts {
        let relative = if cut.contains(&"RELATIVE") {
            " deepen-relative"
        } else {
            ""
        };
        let lines = cut.iter().copied().filter(|line| *line != "RELATIVE");
        let lines: Vec<&str> = lines.collect();
        for haves in haves {
            let thin = if haves.is_empty() { "" } else { " thin-pack" };
            let want = format!("want {{main}} no-progress ofs-delta{relative}{thin}\n");
            let rest = [&["0000"][..], haves, &["done\n"]].concat();
            let whole = [&[&want[..], "want {v1}\n"][..], &lines, &rest].concat();
            scene.compare(&Call {
                lines: &whole,
                ..Call::default()
            });
            let relative: &[&str] = match relative {
                "" => &[],
                _ => &["deepen-relative\n"],
            };
            for rest in [&["done\n"][..], &[]] {
                let want: &[&str] = &["want {main}\n", "want {v1}\n"];
                let lines = fetch(&[want, &lines, relative, haves, rest].concat());
                scene.compare(&version_2(&lines, &[]));
            }
        }
        let want = "want {main} no-progress multi_ack_detailed\n";
        let lines = [&[want][..], &lines, &["0000"]].concat();
        scene.compare(&Call {
            options: &["--stateless-rpc"],
            lines: &lines,
            ..Call::default()
        });
    }
}

#[test]
fn a_shallow_repository_is_served_alike() {
    let scene = scene!();
    let url = format!("file://{}", scene.path().join("origin").display());
    scene.git(&[
        "clone",
        "-q",
        "--bare",
        "--depth=3",
        "--no-single-branch",
        &url,
        "cut",
    ]);
    let requests = [
        &[][..],
        &["deepen 1\n"],
        &["deepen 2147483647\n"],
        &["shallow {main~1}\n", "deepen 9\n"],
        &["shallow {main~1}\n"],
        &["deepen-since 1700006500\n"],
        &["have {main~1}\n"],
    ];
    for lines in requests {
        for version in [0, 2] {
            let lines = match version {
                2 => fetch(&[&["want {main}\n"], lines, &["done\n"]].concat()),
                _ => {
                    let (needs, haves): (Vec<&str>, Vec<&str>) =
                        lines.iter().partition(|line| !line.starts_with("have"));
                    let want = ["want {main} no-progress\n"];
                    [&want[..], &needs, &["0000"], &haves, &["done\n"]].concat()
                }
            };
            scene.compare(&Call {
                version,
                lines: &lines,
                directory: "cut",
                ..Call::default()
            });
        }
    }
}

#[test]
fn filters_leave_out_the_same() {
    let mut scene = scene!();
    let patterns = scene.path().join("origin/patterns");
    std::fs::write(patterns, "/f*\n!/f1\nsub/deep/\n!gs1\n").expect("a file");
    scene.commit("patterns");
    scene.name("main", "main");
    scene.name("patterns", "main:patterns");
    let filters = [
        "blob:none",
        "blob:limit=0",
        "blob:limit=120",
        "blob:limit=1k",
        "tree:0",
        "tree:1",
        "tree:2",
        "tree:3",
        "sparse:oid={patterns}",
        "sparse:oid=main:patterns",
        "sparse:oid={none}",
        "sparse:oid=main",
        "sparse:path=x",
        "object:type=commit",
        "object:type=tree",
        "object:type=blob",
        "object:type=tag",
        "object:type=x",
        "combine:tree:2+blob:limit=120",
        "combine:sparse:oid=main:patterns+tree:2",
        "combine:object:type=blob+blob:limit=120",
        "combine:blob:none",
        "combine:",
        "combine:tree:1+",
        "combine:a~b",
        "blob:limit=x",
        "tree:x",
        "nonsense",
        "auto",
    ];
    let wants = [
        &["want {main}\n"][..],
        &["want {v1}\n", "want {side}\n"],
        &["want {tree}\n"],
        &["want {subtree}\n", "want {blob}\n"],
        &["want {main}\n", "have {side}\n"],
        &["want {main}\n", "deepen 2\n"],
    ];
    for filter in filters {
        let filter = format!("filter {filter}\n");
        for wants in wants {
            let lines = fetch(&[wants, &[&filter, "done\n"]].concat());
            scene.compare(&version_2(&lines, &[FILTER]));
        }
        scene.compare(&Call {
            settings: &[FILTER],
            lines: &[
                "want {main} filter no-progress\n",
                &filter,
                "0000",
                "done\n",
            ],
            ..Call::default()
        });
    }
    let twice = fetch(&[
        "want {main}\n",
        "filter tree:1\n",
        "filter tree:2\n",
        "done\n",
    ]);
    scene.compare(&version_2(&twice, &[FILTER]));
}

#[test]
fn filters_are_refused_alike() {
    let scene = scene!();
    let settings = [
        &[("uploadpackfilter.allow", "false")][..],
        &[
            ("uploadpackfilter.allow", "false"),
            ("uploadpackfilter.blob:none.allow", "true"),
        ],
        &[("uploadpackfilter.blob:none.allow", "false")],
        &[("uploadpackfilter.combine.allow", "false")],
        &[("uploadpackfilter.tree.maxDepth", "1")],
        &[
            ("uploadpackfilter.tree.maxDepth", "1"),
            ("uploadpackfilter.tree.allow", "false"),
        ],
        &[
            ("uploadpackfilter.allow", "false"),
            ("uploadpackfilter.tree.maxDepth", "2"),
            ("uploadpackfilter.combine.allow", "true"),
        ],
    ];
    for settings in settings {
        let settings = [&[FILTER, ("uploadpack.allowSidebandAll", "true")], settings].concat();
        for filter in [
            "blob:none",
            "tree:1",
            "tree:2",
            "combine:blob:none+tree:2",
            "object:type=blob",
        ] {
            let filter = format!("filter {filter}\n");
            for start in [&["want {main}\n"][..], &["want {main}\n", "sideband-all\n"]] {
                let lines = fetch(&[start, &[&filter, "done\n"]].concat());
                scene.compare(&version_2(&lines, &settings));
            }
            scene.compare(&Call {
                settings: &settings,
                lines: &[
                    "want {main} filter no-progress\n",
                    &filter,
                    "0000",
                    "done\n",
                ],
                ..Call::default()
            });
        }
    }
}

#[test]
fn refs_are_wanted_by_name() {
    let scene = scene!();
    let settings = [
        ("uploadpack.allowRefInWant", "true"),
        ("uploadpack.allowSidebandAll", "true"),
        HIDDEN,
    ];
    for lines in [
        &["want-ref refs/heads/main\n", "done\n"][..],
        &[
            "want-ref refs/heads/main\n",
            "want-ref refs/tags/v1\n",
            "want {side}\n",
            "have {side~1}\n",
            "done\n",
        ],
        &[
            "want-ref refs/heads/main\n",
            "want-ref refs/heads/main\n",
            "done\n",
        ],
        &["want-ref refs/heads/nothing\n", "done\n"],
        &["want-ref refs/hidden/x\n", "done\n"],
        &["want-ref HEAD\n", "done\n"],
        &["want-ref main\n", "done\n"],
        &["want-ref refs/../x\n", "done\n"],
        &[
            "sideband-all\n",
            "want-ref refs/heads/main\n",
            "deepen 2\n",
            "have {none}\n",
            "done\n",
        ],
        &[
            "sideband-all\n",
            "want-ref refs/heads/main\n",
            "have {main~1}\n",
        ],
        &["sideband-all\n", "want-ref refs/hidden/x\n"],
        &["sideband-all\n", "want {none}\n"],
    ] {
        scene.compare(&version_2(&fetch(lines), &settings));
    }
}

#[test]
fn packs_elsewhere_are_named() {
    let scene = scene!();
    let settings = [
        ("uploadpack.allowSidebandAll", "true"),
        (
            "uploadpack.blobPackfileUri",
            "{blob} {none} https://example.com/pack",
        ),
    ];
    for lines in [
        &[
            "sideband-all\n",
            "packfile-uris https,http\n",
            "want {main}\n",
            "done\n",
        ][..],
        &[
            "sideband-all\n",
            "packfile-uris http\n",
            "want {main}\n",
            "done\n",
        ],
        &[
            "sideband-all\n",
            "packfile-uris https\n",
            "want {side}\n",
            "have {main}\n",
            "done\n",
        ],
        &["packfile-uris https\n", "want {main}\n", "done\n"],
        &[
            "sideband-all\n",
            "packfile-uris https\n",
            "packfile-uris http\n",
            "want {main}\n",
        ],
    ] {
        scene.compare(&version_2(&fetch(lines), &settings));
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

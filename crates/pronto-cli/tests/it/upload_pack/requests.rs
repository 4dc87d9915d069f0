//! Requests of protocol version 2.

use super::scene::{Call, Scene};
use super::{HIDDEN, fetch, version_2};

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

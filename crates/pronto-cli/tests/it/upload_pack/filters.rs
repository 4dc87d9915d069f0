//! Object filters of partial clones (`--filter`).

use super::scene::{Call, Scene};
use super::{FILTER, fetch, version_2};

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

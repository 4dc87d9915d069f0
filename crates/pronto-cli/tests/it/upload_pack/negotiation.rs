//! The objects that a client may request, and the negotiation of protocol versions 0 and 1.

use super::scene::{Call, Scene};
use super::{HIDDEN, fetch, version_2};

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

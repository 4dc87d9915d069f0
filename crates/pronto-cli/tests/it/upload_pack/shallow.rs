//! The shallow boundaries that clients receive.

use super::scene::{Call, Scene};
use super::{fetch, version_2};

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

//! Clients of upload-pack that request objects without permission, or more than a server can
//! provide.

use bstr::ByteSlice as _;

use super::Table;
use crate::attack::{Attack, Scene, command};
use crate::servers::git::line;

/// The reason for which the control may take more.
const UNBOUNDED: &str = "it has no bound here";

/// The directory that is served.
const SERVED: &str = "work/served";

pub(super) fn table() -> Table {
    let mut table = Table::new("clients");
    hidden(&mut table);
    programs(&mut table);
    malformed(&mut table);
    bounds(&mut table);
    table
}

/// A repository with a branch, a hidden ref, and a commit that nothing leads to.
fn serve(scene: &Scene) -> Ids {
    scene.repository(SERVED);
    scene.git(
        SERVED,
        &["fetch", "-q", "../../project", "main:refs/secret/x"],
    );
    scene.git(SERVED, &["config", "transfer.hideRefs", "refs/secret"]);
    let tree = scene.git(SERVED, &["rev-parse", "refs/secret/x^{tree}"]);
    let commit = ["commit-tree", "-m", "lost", "-p", "refs/secret/x", &tree];
    Ids {
        hidden: scene.git(SERVED, &["rev-parse", "refs/secret/x"]),
        lost: scene.git(SERVED, &commit),
    }
}

struct Ids {
    hidden: String,
    lost: String,
}

/// A request: lines, where a packet without content stands for itself.
fn request(lines: &[&str]) -> Vec<u8> {
    let packets = lines.iter().map(|text| match *text {
        "0000" | "0001" | "0002" => text.as_bytes().to_vec(),
        text => line(text),
    });
    packets.collect::<Vec<_>>().concat()
}

fn upload_pack(options: &[&str], request: Vec<u8>) -> Attack {
    let arguments = [&["upload-pack"], options, &["served"]].concat();
    command(arguments).reads(request).with_raw_output()
}

fn version_2(request: Vec<u8>) -> Attack {
    upload_pack(&[], request).variable("GIT_PROTOCOL", "version=2")
}

/// Nothing of `what` may be in the output.
fn without(attack: Attack, what: &'static str) -> Attack {
    attack.check(move |_, outcome| match outcome.stdout.find(what) {
        Some(_) => Err(format!("it sends {what}")),
        None => Ok(()),
    })
}

fn hidden(table: &mut Table) {
    for (name, options) in [("", &[][..]), ("-stateless", &["--stateless-rpc"])] {
        table.row(format!("hidden-commit-by-id{name}"), move |scene| {
            let want = format!("want {}\n", serve(scene).hidden);
            let attack = upload_pack(options, request(&[&want, "0000", "done\n"]));
            without(attack, "PACK").fails()
        });
        table.row(format!("lost-commit-by-id{name}"), move |scene| {
            let want = format!("want {}\n", serve(scene).lost);
            let attack = upload_pack(options, request(&[&want, "0000", "done\n"]));
            without(attack, "PACK").fails()
        });
        table.row(
            format!("hidden-commit-beside-a-branch{name}"),
            move |scene| {
                let ids = serve(scene);
                let first = format!("want {}\n", scene.ids.first);
                let want = format!("want {}\n", ids.hidden);
                let lines = request(&[&first, &want, "0000", "done\n"]);
                without(upload_pack(options, lines), "PACK").fails()
            },
        );
        table.row(
            format!("lost-commit-where-tips-are-allowed{name}"),
            move |scene| {
                let want = format!("want {}\n", serve(scene).lost);
                scene.git(SERVED, &["config", "uploadpack.allowTipSHA1InWant", "true"]);
                let attack = upload_pack(options, request(&[&want, "0000", "done\n"]));
                without(attack, "PACK").fails()
            },
        );
        table.row(
            format!("lost-commit-where-reachable-is-allowed{name}"),
            move |scene| {
                let want = format!("want {}\n", serve(scene).lost);
                scene.git(
                    SERVED,
                    &["config", "uploadpack.allowReachableSHA1InWant", "true"],
                );
                let attack = upload_pack(options, request(&[&want, "0000", "done\n"]));
                without(attack, "PACK").fails()
            },
        );
    }
    table.row("hidden-ref-by-prefix", |scene| {
        serve(scene);
        let lines = [
            "command=ls-refs\n",
            "0001",
            "ref-prefix refs/secret/x\n",
            "0000",
        ];
        without(version_2(request(&lines)), "refs/secret").succeeds()
    });
    table.row("hidden-ref-in-the-advertisement", |scene| {
        serve(scene);
        without(upload_pack(&[], request(&["0000"])), "refs/secret").succeeds()
    });
    table.row("hidden-ref-in-want", |scene| {
        serve(scene);
        scene.git(SERVED, &["config", "uploadpack.allowRefInWant", "true"]);
        let lines = [
            "command=fetch\n",
            "0001",
            "want-ref refs/secret/x\n",
            "done\n",
            "0000",
        ];
        without(version_2(request(&lines)), "PACK").fails()
    });
    table.row("ref-in-want-outside-of-refs", |scene| {
        serve(scene);
        scene.git(SERVED, &["config", "uploadpack.allowRefInWant", "true"]);
        let lines = [
            "command=fetch\n",
            "0001",
            "want-ref refs/../../config\n",
            "done\n",
            "0000",
        ];
        without(version_2(request(&lines)), "PACK").fails()
    });
    table.row("namespace-of-another", |scene| {
        let ids = serve(scene);
        let own = "refs/namespaces/own/refs/heads/main";
        scene.git(SERVED, &["update-ref", own, "main"]);
        let other = "refs/namespaces/other/refs/heads/main";
        scene.git(SERVED, &["update-ref", other, &ids.lost]);
        let want = format!("want {}\n", ids.lost);
        let attack = upload_pack(&[], request(&[&want, "0000", "done\n"]));
        without(attack.variable("GIT_NAMESPACE", "own"), "PACK").fails()
    });
    table.row("sizes-that-are-not-offered", |scene| {
        let id = serve(scene).hidden;
        let id = format!("oid {id}\n");
        let lines = ["command=object-info\n", "0001", "size\n", &id, "0000"];
        version_2(request(&lines)).fails()
    });
}

fn programs(table: &mut Table) {
    table.row("hook-of-the-repository", |scene| {
        serve(scene);
        let hook = scene.payload_command();
        scene.git(SERVED, &["config", "uploadpack.packObjectsHook", &hook]);
        let want = format!("want {}\n", scene.ids.first);
        upload_pack(&[], request(&[&want, "0000", "done\n"])).succeeds()
    });
    table.row("filter-by-a-name-with-options", |scene| {
        serve(scene);
        scene.git(SERVED, &["config", "uploadpack.allowFilter", "true"]);
        let want = format!("want {}\n", scene.ids.first);
        let lines = [
            "command=fetch\n",
            "0001",
            &want,
            "filter sparse:oid=--help\n",
            "done\n",
            "0000",
        ];
        without(version_2(request(&lines)), "PACK").fails()
    });
    table.row("deepen-not-with-options", |scene| {
        serve(scene);
        let want = format!("want {}\n", scene.ids.first);
        let lines = [
            "command=fetch\n",
            "0001",
            &want,
            "deepen-not --all\n",
            "done\n",
            "0000",
        ];
        without(version_2(request(&lines)), "PACK").fails()
    });
    table.row("missing-objects-are-not-fetched-for-clients", |scene| {
        serve(scene);
        let payload = format!("ext::sh -c '{}'", scene.payload_command());
        scene.git(SERVED, &["config", "remote.o.url", &payload]);
        scene.git(SERVED, &["config", "remote.o.promisor", "true"]);
        scene.git(SERVED, &["config", "protocol.ext.allow", "always"]);
        let blob = scene.git(SERVED, &["rev-parse", "main:file"]);
        let pack = scene
            .path(SERVED)
            .join(".git/objects")
            .join(&blob[..2])
            .join(&blob[2..]);
        // Loose or packed: the row is about what happens to a missing object.
        let _ = std::fs::remove_file(pack);
        let want = format!("want {}\n", scene.ids.first);
        upload_pack(&[], request(&[&want, "0000", "done\n"]))
    });
}

fn malformed(table: &mut Table) {
    for (name, bytes) in [
        ("length-3", &b"0003"[..]),
        ("length-too-large", b"ffff"),
        ("no-length", b"GET / HTTP/1.1\r\n\r\n"),
        ("end-within-a-line", b"0040want"),
        ("response-end", b"0002"),
        ("error-packet", b"000fERR x\x1b[31m"),
    ] {
        for version in ["0", "2"] {
            table.row(format!("{name}-v{version}"), move |scene| {
                serve(scene);
                let attack = upload_pack(&[], bytes.to_vec());
                let is_bug = (name, version) == ("response-end", "2");
                without(attack, "PACK")
                    .variable("GIT_PROTOCOL", format!("version={version}"))
                    .git_differs_if(is_bug, "git reports a bug and aborts")
            });
        }
    }
    table.row("want-with-controls", |scene| {
        serve(scene);
        upload_pack(&[], request(&["want \x1b]0;x\x07\n", "0000"])).fails()
    });
}

fn bounds(table: &mut Table) {
    table.row("filters-in-filters", |scene| {
        serve(scene);
        scene.git(SERVED, &["config", "uploadpack.allowFilter", "true"]);
        let filter = format!("filter {}blob:none\n", "combine:".repeat(8000));
        let want = format!("want {}\n", scene.ids.first);
        let lines = ["command=fetch\n", "0001", &want, &filter, "done\n", "0000"];
        without(version_2(request(&lines)), "PACK")
            .fails()
            .git_differs(UNBOUNDED)
    });
    table.row("many-filters", |scene| {
        serve(scene);
        scene.git(SERVED, &["config", "uploadpack.allowFilter", "true"]);
        let filter = format!("filter combine:{}\n", vec!["tree:9"; 9000].join("+"));
        let want = format!("want {}\n", scene.ids.first);
        let lines = ["command=fetch\n", "0001", &want, &filter, "done\n", "0000"];
        version_2(request(&lines)).fails().git_differs(UNBOUNDED)
    });
    table.row("many-prefixes", |scene| {
        serve(scene);
        let prefixes = line("ref-prefix refs/secret/x\n").repeat(300_000);
        let start = request(&["command=ls-refs\n", "0001"]);
        let attack = version_2([start, prefixes, b"0000".to_vec()].concat());
        without(attack, "refs/secret").succeeds()
    });
    table.row("many-haves", |scene| {
        serve(scene);
        let haves = (0..400_000u32).map(|number| line(format!("have {number:040x}\n")));
        let haves: Vec<u8> = haves.collect::<Vec<_>>().concat();
        let want = format!("want {}\n", scene.ids.first);
        let start = request(&["command=fetch\n", "0001", &want]);
        let end = request(&["done\n", "0000"]);
        version_2([start, haves, end].concat()).succeeds()
    });
    table.row("one-want-many-times", |scene| {
        serve(scene);
        let want = line(format!("want {}\n", scene.ids.first)).repeat(400_000);
        let end = request(&["0000", "done\n"]);
        upload_pack(&[], [want, end].concat()).succeeds()
    });
    table.row("many-capabilities", |scene| {
        serve(scene);
        let options = line(format!("server-option={}\n", "x".repeat(60_000))).repeat(500);
        let end = request(&["command=ls-refs\n", "0000"]);
        version_2([options, end].concat())
    });
    table.row("deepest-history", |scene| {
        serve(scene);
        let want = format!("want {}\n", scene.ids.first);
        let lines = [&want, "deepen 2147483646\n", "0000", "done\n"];
        upload_pack(&[], request(&lines)).succeeds()
    });
}

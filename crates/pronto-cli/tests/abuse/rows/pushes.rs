//! Pushes whose packs lack objects, contain forbidden content, or are truncated.

use super::Table;
use crate::pack::{self, BLOB, COMMIT, Pack, TAG, TREE, delta};
use crate::server::wait_until;
use crate::stage::{Stage, Verdict, options, require};
use crate::wire::{
    FETCH, MISSING, PUSH, V2, changes, changes_with, create, fetch, no_pack, post, post_head,
};

pub(super) fn table() -> Table {
    let mut table = Table::new("pushes");
    connectivity(&mut table);
    packs(&mut table);
    checks(&mut table);
    aborts(&mut table);
    hooks(&mut table);
    table
}

const WHO: &str = "a <a@x> 1112911993 -0700";

fn commit(tree: &str, parents: &[&str]) -> Vec<u8> {
    let parents: String = parents.iter().map(|id| format!("parent {id}\n")).collect();
    format!("tree {tree}\n{parents}author {WHO}\ncommitter {WHO}\n\nmade\n").into_bytes()
}

/// Returns a tree with one entry.
fn tree(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let id: Vec<u8> = (0..id.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&id[at..at + 2], 16).expect("hex"))
        .collect();
    [format!("{mode} {name}\0").as_bytes(), &id].concat()
}

fn id(noun: &str, content: &[u8]) -> String {
    pack::hex(&pack::id(noun, content))
}

/// Pushes one branch with a pack. The push must be refused for this reason, and no object of the
/// pack is kept.
fn refuses(stage: &mut Stage, tip: &str, bytes: &[u8], reason: &str) -> Verdict {
    let commands = changes([create(tip, "refs/heads/x")]);
    stage.refuses_push("alice", "team/a", &commands, bytes, reason)?;
    let is_new = tip != stage.site.ids.first && tip != stage.site.ids.lost;
    require(!is_new || !stage.site.has("team/a", tip), || {
        "the object is there".to_owned()
    })?;
    let answer = stage.fetch(Some("bob"), "team/a", &fetch(&[tip]))?;
    require(!is_new || answer.text().contains("not our ref"), || {
        format!("{answer:?}")
    })
}

fn connectivity(table: &mut Table) {
    let missing = "missing necessary objects";
    table.row("commit-without-its-tree", move |stage| {
        let made = commit(MISSING, &[]);
        refuses(
            stage,
            &id("commit", &made),
            &Pack::new().object(COMMIT, &made).finish(),
            missing,
        )
    });
    table.row("commit-without-its-parent", move |stage| {
        let empty = id("tree", b"");
        let made = commit(&empty, &[&stage.site.ids.first, MISSING]);
        let bytes = Pack::new().object(TREE, b"").object(COMMIT, &made).finish();
        refuses(stage, &id("commit", &made), &bytes, missing)
    });
    for (name, mode) in [
        ("tree-without-its-blob", "100644"),
        ("tree-without-its-tree", "40000"),
    ] {
        table.row(name, move |stage| {
            let inner = tree(mode, "x", MISSING);
            let made = commit(&id("tree", &inner), &[]);
            let bytes = Pack::new()
                .object(TREE, &inner)
                .object(COMMIT, &made)
                .finish();
            refuses(stage, &id("commit", &made), &bytes, missing)
        });
    }
    table.row("tag-without-its-object", move |stage| {
        let made =
            format!("object {MISSING}\ntype commit\ntag x\ntagger {WHO}\n\nx\n").into_bytes();
        refuses(
            stage,
            &id("tag", &made),
            &Pack::new().object(TAG, &made).finish(),
            missing,
        )
    });
    table.row("parent-of-another-repository", move |stage| {
        let made = commit(&id("tree", b""), &[&stage.site.ids.vault]);
        let bytes = Pack::new().object(TREE, b"").object(COMMIT, &made).finish();
        refuses(stage, &id("commit", &made), &bytes, missing)
    });
    table.row("parent-whose-history-is-missing", move |stage| {
        // It is there, but left over from something, and not whole.
        let at = stage.repository("team/a");
        let left = commit(MISSING, &[]);
        let file = stage.site.path("tmp/left");
        std::fs::write(&file, &left).expect("a file");
        let name = file.display().to_string();
        let left = stage.site.git(
            &at,
            &["hash-object", "-t", "commit", "-w", "--literally", &name],
        );
        let made = commit(&id("tree", b""), &[&left]);
        let bytes = Pack::new().object(TREE, b"").object(COMMIT, &made).finish();
        let refused = refuses(stage, &id("commit", &made), &bytes, missing);
        let path = at.join("objects").join(&left[..2]).join(&left[2..]);
        std::fs::remove_file(path).expect("it is there");
        refused
    });
    table.row("no-object-at-all", |stage| {
        refuses(stage, MISSING, &no_pack(), "refs/heads/x")
    });
    table.row("shallow-history", |stage| {
        let made = commit(&id("tree", b""), &[MISSING]);
        let tip = id("commit", &made);
        let bytes = Pack::new().object(TREE, b"").object(COMMIT, &made).finish();
        let first = crate::wire::packet(format!("shallow {tip}"));
        let commands = [first, changes([create(&tip, "refs/heads/x")])].concat();
        stage.refuses_push(
            "alice",
            "team/a",
            &commands,
            &bytes,
            "shallow update not allowed",
        )
    });
    table.row("delta-against-another-repository", |stage| {
        let vault = stage
            .site
            .git(&stage.repository("vault/x"), &["rev-parse", "main:secret"]);
        let base: Vec<u8> = (0..20)
            .map(|at| u8::from_str_radix(&vault[2 * at..2 * at + 2], 16).expect("hex"))
            .collect();
        let base = base.try_into().expect("20 bytes");
        let bytes = Pack::new()
            .reference_delta(base, &delta(22, 22, &[0x90, 22]))
            .finish();
        refuses(stage, &vault, &bytes, "unpacker error")
    });
}

fn packs(table: &mut Table) {
    let whole = || Pack::new().object(BLOB, b"content\n").finish();
    let cut = |count: usize| whole()[..whole().len() - count].to_vec();
    let mut wrong_sum = whole();
    let last = wrong_sum.len() - 1;
    wrong_sum[last] ^= 1;
    let mut broken = whole();
    broken[16] ^= 0xff;
    for (name, bytes) in [
        ("no-pack", Vec::new()),
        (
            "pack-of-words",
            b"this is no pack, but long enough to be one".to_vec(),
        ),
        ("pack-without-its-sum", cut(20)),
        ("pack-cut-in-an-object", cut(25)),
        ("pack-with-a-wrong-sum", wrong_sum),
        ("pack-with-broken-data", broken),
        (
            "pack-of-version-4",
            Pack::new().version(4).object(BLOB, b"content\n").finish(),
        ),
        (
            "pack-with-type-0",
            Pack::new().entry(0, 8, &pack::zlib(b"content\n")).finish(),
        ),
        (
            "pack-with-type-5",
            Pack::new().entry(5, 8, &pack::zlib(b"content\n")).finish(),
        ),
        (
            "pack-with-an-endless-size",
            Pack::new().raw(&[0xff; 100]).finish(),
        ),
    ] {
        table.row(name, move |stage| {
            refuses(stage, &id("blob", b"content\n"), &bytes, "refs/heads/x")
        });
    }
    table.row("bytes-after-the-pack", |stage| {
        // They are not taken for anything.
        let made = commit(&id("tree", b""), &[]);
        let tip = id("commit", &made);
        let mut bytes = Pack::new().object(TREE, b"").object(COMMIT, &made).finish();
        bytes.extend(changes([create(
            &stage.site.ids.first,
            "refs/heads/smuggled",
        )]));
        bytes.extend(no_pack());
        stage.allow("team/a", "refs/heads/x");
        let commands = changes([create(&tip, "refs/heads/x")]);
        stage.push("alice", "team/a", &commands, &bytes).map(|_| ())
    });
    table.row("object-under-the-name-of-another", |stage| {
        // Content is named by its hash, whatever the command says.
        let forged = commit(&id("tree", b""), &[]);
        let bytes = Pack::new()
            .object(TREE, b"")
            .object(COMMIT, &forged)
            .finish();
        refuses(stage, MISSING, &bytes, "refs/heads/x")
    });
}

fn checks(table: &mut Table) {
    let blob = id("blob", b"");
    let trees: [(&str, Vec<u8>); 8] = [
        ("entry-git", tree("40000", ".git", &id("tree", b""))),
        (
            "entry-git-in-upper-case",
            tree("40000", ".GIT", &id("tree", b"")),
        ),
        ("entry-parent", tree("40000", "..", &id("tree", b""))),
        ("entry-with-a-slash", tree("100644", "a/b", &blob)),
        (
            "entry-twice",
            [tree("100644", "a", &blob), tree("100644", "a", &blob)].concat(),
        ),
        (
            "entries-out-of-order",
            [tree("100644", "b", &blob), tree("100644", "a", &blob)].concat(),
        ),
        ("mode-with-a-zero", tree("0100644", "a", &blob)),
        ("tree-cut", b"100644 a\0short".to_vec()),
    ];
    for (name, content) in trees {
        table.row(format!("fsck-{name}"), move |stage| {
            stage.configure("team/a", "receive.fsckObjects", "true");
            let made = commit(&id("tree", &content), &[]);
            let bytes = Pack::new()
                .object(BLOB, b"")
                .object(TREE, b"")
                .object(TREE, &content)
                .object(COMMIT, &made);
            refuses(
                stage,
                &id("commit", &made),
                &bytes.finish(),
                "unpacker error",
            )
        });
    }
    let empty = id("tree", b"");
    let commits: [(&str, String); 5] = [
        (
            "commit-without-author",
            format!("tree {empty}\ncommitter {WHO}\n\nx\n"),
        ),
        (
            "commit-with-a-nul",
            format!("tree {empty}\nauthor a\0 <a@x> 1 +0000\ncommitter {WHO}\n\nx\n"),
        ),
        (
            "commit-with-a-large-time",
            format!(
                "tree {empty}\nauthor a <a@x> 99999999999999999999 +0000\ncommitter {WHO}\n\nx\n"
            ),
        ),
        ("commit-of-words", "words\n".to_owned()),
        (
            "commit-with-two-trees",
            format!("tree {empty}\ntree {empty}\nauthor {WHO}\ncommitter {WHO}\n\nx\n"),
        ),
    ];
    for (name, text) in commits {
        table.row(format!("fsck-{name}"), move |stage| {
            stage.configure("team/a", "receive.fsckObjects", "true");
            let bytes = Pack::new()
                .object(TREE, b"")
                .object(COMMIT, text.as_bytes());
            refuses(
                stage,
                &id("commit", text.as_bytes()),
                &bytes.finish(),
                "unpacker error",
            )
        });
    }
    table.row("fsck-gitmodules", |stage| {
        stage.configure("team/a", "receive.fsckObjects", "true");
        let evil = b"[submodule \"../x\"]\n\tpath = -x\n\turl = --upload-pack=x\n";
        let outer = tree("100644", ".gitmodules", &id("blob", evil));
        let made = commit(&id("tree", &outer), &[]);
        let bytes = Pack::new()
            .object(BLOB, evil)
            .object(TREE, &outer)
            .object(COMMIT, &made);
        refuses(
            stage,
            &id("commit", &made),
            &bytes.finish(),
            "unpacker error",
        )
    });
}

fn aborts(table: &mut Table) {
    table.row("client-leaves-at-every-point", |stage| {
        let made = commit(&id("tree", b""), &[]);
        let tip = id("commit", &made);
        let pack = Pack::new().object(TREE, b"").object(COMMIT, &made).finish();
        let body = [changes([create(&tip, "refs/heads/x")]), pack].concat();
        let request = post("team/a", PUSH, &stage.token("alice"), &body);
        let start = request.len() - body.len();
        let points = (0..body.len() - 1).step_by(7).map(|at| start + at);
        for end in points.chain([10, start - 3]) {
            stage.connect().send(&request[..end]);
        }
        stage.measures("requests_under_way", |count| count == 0)?;
        require(!stage.site.has("team/a", &tip), || {
            "the object is there".to_owned()
        })
    });
    table.row("reader-leaves-at-every-point", |stage| {
        let body = fetch(&[&stage.site.ids.second]);
        let request = post("open/p", FETCH, V2, &body);
        for end in (0..request.len()).step_by(11) {
            stage.connect().send(&request[..end]);
        }
        for count in 0..20 {
            let mut one = stage.connect();
            one.send(&request);
            let _ = one.take(count * 20);
        }
        stage.measures("requests_under_way", |count| count == 0)
    });
    table.row("client-leaves-while-a-hook-runs", |stage| {
        // The push is whole by then: it is done, even if nobody waits for it.
        let mark = stage.site.path("tmp/mark");
        let gate = stage.site.path("tmp/gate");
        stage.hook(
            "team/a",
            "pre-receive",
            &format!(
                "echo >'{}'; while ! test -e '{}'; do sleep 0.05; done; exit 0",
                mark.display(),
                gate.display()
            ),
        );
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        let body = [commands, no_pack()].concat();
        let request = post("team/a", PUSH, &stage.token("alice"), &body);
        let mut leaving = stage.connect();
        leaving.send(request);
        require(wait_until(|| mark.exists()), || {
            "the hook does not run".to_owned()
        })?;
        drop(leaving);
        std::fs::write(gate, "").expect("a file");
        stage.allow("team/a", "refs/heads/x");
        stage.measures("requests_under_way", |count| count == 0)
    });
    table.row("answer-comes-before-the-pack", |stage| {
        // Refused at its commands, while the client sends on.
        let token = stage.token("alice");
        let mut sending = stage.connect();
        sending.send(post_head("team/a", PUSH, &token));
        sending.send("transfer-encoding: chunked\r\n\r\n");
        let delete = format!(
            "{} {} refs/heads/main",
            stage.site.ids.second,
            crate::wire::NULL
        );
        let start = changes([delete]);
        sending
            .send(format!("{:x}\r\n", start.len()))
            .send(&start)
            .send("\r\n");
        for _ in 0..100 {
            sending
                .send("10000\r\n")
                .send(vec![0; 0x10000])
                .send("\r\n");
        }
        sending.send("0\r\n\r\n");
        let answer = sending.answer()?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        require(text.contains("may not delete"), || text)
    });
}

/// Installs a hook that writes its environment to a file.
fn print_environment(stage: &mut Stage) -> std::path::PathBuf {
    let file = stage.site.path("tmp/environment");
    stage.hook(
        "team/a",
        "pre-receive",
        &format!("env -0 >'{}'", file.display()),
    );
    file
}

fn hooks(table: &mut Table) {
    table.row("environment-of-hooks", |stage| {
        let file = print_environment(stage);
        stage.configure("team/a", "receive.advertisePushOptions", "true");
        let features = "report-status push-options agent=x\ny session-id=x";
        let mut body = changes_with(features, [create(&stage.site.ids.first, "refs/heads/x")]);
        body.extend(options(["one\nGIT_DIR=/elsewhere\nPATH=/evil", "REMOTE_USER=root", "", "$(touch pwned)"]));
        body.extend(no_pack());
        let headers = format!(
            "{}git-protocol: version=1:GIT_DIR=/elsewhere:PATH=/evil\r\nuser-agent: x=y\r\nremote-user: root\r\n\
             proxy: evil\r\nx-forwarded-for: 10.0.0.1\r\n",
            stage.token("alice")
        );
        stage.allow("team/a", "refs/heads/x");
        let answer = stage.ask(post("team/a", PUSH, &headers, &body))?;
        require(answer.text().contains("ok refs/heads/x"), || format!("{answer:?} {}", answer.text()))?;
        let text = std::fs::read_to_string(file).expect("the hook has run");
        let variables: Vec<&str> = text.split('\0').collect();
        for expected in [
            "REMOTE_USER=alice", "REMOTE_ADDR=127.0.0.66", "GIT_PUSH_OPTION_COUNT=4", "GIT_DIR=.",
            "GIT_PUSH_OPTION_0=one\nGIT_DIR=/elsewhere\nPATH=/evil", "GIT_PUSH_OPTION_1=REMOTE_USER=root",
        ] {
            require(variables.contains(&expected), || format!("{expected}: {variables:?}"))?;
        }
        let is_evil = |variable: &&str| {
            ["PATH=/evil", "GIT_DIR=/elsewhere", "HTTP_", "REMOTE_USER=root"].iter().any(|start| variable.starts_with(start))
        };
        require(!variables.iter().any(is_evil), || format!("{variables:?}"))?;
        let secret = stage.site.ids.token("alice");
        require(!text.contains(secret), || "a hook sees the token".to_owned())
    });
    table.row("push-option-with-a-nul", |stage| {
        print_environment(stage);
        stage.configure("team/a", "receive.advertisePushOptions", "true");
        let features = "report-status side-band-64k push-options";
        let mut body = changes_with(features, [create(&stage.site.ids.first, "refs/heads/x")]);
        body.extend(options(["a\0b"]));
        let answer = stage.push("alice", "team/a", &body, &no_pack())?;
        let is_reported = answer.text().contains("ng refs/heads/x") || answer.status == 400;
        require(is_reported, || format!("{answer:?} {}", answer.text()))
    });
    table.row("hook-that-kills-itself", |stage| {
        stage.hook(
            "team/a",
            "pre-receive",
            "read old new name; case $name in refs/heads/x) kill -9 $$;; esac",
        );
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        stage.refuses_push(
            "alice",
            "team/a",
            &commands,
            &no_pack(),
            "pre-receive hook declined",
        )
    });
    table.row("hook-that-says-much", |stage| {
        stage.hook(
            "team/a",
            "pre-receive",
            "read old new name; case $name in refs/heads/x) yes | head -c 3000000; printf '\\033[2J\\377\\n'; exit 1;; esac",
        );
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        stage.refuses_push(
            "alice",
            "team/a",
            &commands,
            &no_pack(),
            "pre-receive hook declined",
        )
    });
    table.row("name-as-an-option-of-a-hook", |stage| {
        let file = stage.site.path("tmp/arguments");
        stage.hook(
            "team/a",
            "update",
            &format!("printf '%s\\0' \"$@\" >'{}'", file.display()),
        );
        let name = "refs/heads/$(touch${IFS}pwned);`x`'|&";
        stage.allow("team/a", name);
        let commands = changes([create(&stage.site.ids.first, name)]);
        stage.push("alice", "team/a", &commands, &no_pack())?;
        let text = std::fs::read_to_string(file).expect("the hook has run");
        require(text.starts_with(&format!("{name}\0")), || text.clone())?;
        let delete = changes([format!(
            "{} {} {name}",
            stage.site.ids.first,
            crate::wire::NULL
        )]);
        stage.push("alice", "team/a", &delete, b"").map(|_| ())
    });
}

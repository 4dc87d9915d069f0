//! Hostile requests for archives: trees without permission, files of the server, endless requests,
//! and expensive archives.

use test_support::git::isolated;

use super::Table;
use crate::server::wait_until;
use crate::site::text_of;
use crate::stage::{Stage, Verdict, require};
use crate::wire::{packet, packets, post, unbanded};

const ARCHIVE: &str = "git-upload-archive";

pub(super) fn table() -> Table {
    let mut table = Table::new("archives");
    trees(&mut table);
    files(&mut table);
    malformed(&mut table);
    costs(&mut table);
    table
}

/// Requests an archive, and returns the response.
fn ask(stage: &mut Stage, body: &[u8]) -> Result<String, String> {
    let token = stage.token("mallory");
    let answer = stage.ask(post("open/p", ARCHIVE, &token, body))?;
    require(answer.status == 200, || format!("{answer:?}"))?;
    Ok(String::from_utf8_lossy(&unbanded(&answer.body)).into_owned())
}

/// Requests an archive that must be refused for this reason.
fn denied(stage: &mut Stage, body: &[u8], reason: &str) -> Verdict {
    let text = ask(stage, body)?;
    require(text.contains(reason) && !text.contains("ustar"), || {
        format!("{reason}: {text}")
    })
}

fn arguments(words: &[&str]) -> Vec<u8> {
    packets(words.iter().map(|word| format!("argument {word}\n")))
}

fn trees(table: &mut Table) {
    table.row("by-id", |stage| {
        let ids = &stage.site.ids;
        for id in [
            ids.hidden.clone(),
            ids.lost.clone(),
            ids.vault.clone(),
            ids.second.clone(),
        ] {
            for name in [
                id.clone(),
                format!("{id}:"),
                format!("{id}^{{tree}}"),
                id[..9].to_owned(),
            ] {
                denied(stage, &arguments(&[&name]), "fatal: no such ref: ")?;
            }
        }
        Ok(())
    });
    table.row("by-a-ref-that-is-named-like-an-id", |stage| {
        let ids = stage.site.ids;
        let at = stage.site.path("root/open/p.git");
        let short = format!("x-g{}", &ids.hidden[..9]);
        for name in [&ids.hidden, &ids.lost, &short] {
            for kind in ["heads", "tags"] {
                let name = format!("refs/{kind}/{name}");
                stage.site.git(&at, &["update-ref", &name, "main"]);
                stage.allow("open/p", &name);
            }
        }
        let own = ask(stage, &arguments(&["main"]))?;
        for name in [&ids.hidden, &ids.lost, &short] {
            for shown in [
                name.clone(),
                format!("{name}:"),
                format!("heads/{name}"),
                format!("refs/tags/{name}"),
            ] {
                let text = ask(stage, &arguments(&[&shown]))?;
                require(!text.contains("what only"), || format!("{shown}: {text}"))?;
                require(text.contains("two\n"), || format!("{shown}: {text}"))?;
            }
            let text = ask(stage, &arguments(&[name, "secret"]))?;
            require(text.contains("did not match any files"), || text)?;
        }
        require(own.contains("two\n"), || own)
    });
    table.row("by-expression", |stage| {
        for name in [
            "main^0",
            "main~0:",
            "main^{tree}",
            ":",
            ":/",
            ":file",
            "--",
            "@{-1}",
            "main@{0}",
            "^main",
        ] {
            let text = ask(stage, &arguments(&["--", name]))?;
            require(!text.contains("ustar"), || format!("{name}: {text}"))?;
        }
        let text = ask(stage, &arguments(&["main"]))?;
        require(text.contains("ustar"), || text)
    });
    table.row("without-a-user", |stage| {
        let answer = stage.ask(post("open/p", ARCHIVE, "", &arguments(&["main"])))?;
        require(answer.status == 403, || format!("{answer:?}"))?;
        let mut daemon = stage.connect_git();
        let line = format!("{ARCHIVE} /open/p\0host=x\0");
        daemon.send(packet(line)).send(arguments(&["main"]));
        let text = String::from_utf8_lossy(&daemon.ends()?).into_owned();
        require(text.contains("ERR ") && !text.contains("ustar"), || text)
    });
    table.row("without-a-user-who-stays", |stage| {
        stage.limits("head_seconds = 1");
        let mut daemon = stage.connect_git();
        let line = format!("{ARCHIVE} /open/p\0host=x\0");
        daemon.send(packet(line)).send(arguments(&["main"]));
        stage.slots(0)?;
        let text = String::from_utf8_lossy(&daemon.ends()?).into_owned();
        require(text.contains("ERR "), || text)
    });
    table.row("of-another-repository", |stage| {
        let token = stage.token("mallory");
        let answer = stage.ask(post("vault/x", ARCHIVE, &token, &arguments(&["main"])))?;
        require(answer.status == 403 || answer.status == 404, || {
            format!("{answer:?}")
        })
    });
}

fn files(table: &mut Table) {
    table.row("of-the-server", |stage| {
        for words in [
            &["--add-file=/etc/passwd", "main"][..],
            &["--add-file", "/etc/passwd", "main"],
            &["--add-fil=/nowhere", "main"],
            &["--add-virtual-file=a:/etc/passwd", "main"],
        ] {
            denied(stage, &arguments(words), "cannot be used together")?;
        }
        denied(
            stage,
            &arguments(&["-o", "/tmp/x", "main"]),
            "Unexpected option --output",
        )?;
        denied(
            stage,
            &arguments(&["-vo/tmp/x", "main"]),
            "Unexpected option --output",
        )?;
        denied(
            stage,
            &arguments(&["--remote=/", "main"]),
            "Unexpected option --remote",
        )?;
        denied(
            stage,
            &arguments(&["--exec=sh", "main"]),
            "requires '--remote'",
        )
    });
    table.row("programs-that-are-not-for-others", |stage| {
        stage.configure("open/p", "tar.evil.command", "cat /etc/passwd");
        denied(
            stage,
            &arguments(&["--format=evil", "main"]),
            "Unknown archive format",
        )?;
        let text = ask(stage, &arguments(&["--list"]))?;
        require(!text.contains("evil"), || text)
    });
}

/// Replaces `main` of `open/p` by a commit with a single file. The file has this content and the
/// attribute `export-subst`.
fn substitute(stage: &mut Stage, message: &str, content: &str) {
    let at = stage.site.path("root/open/p.git");
    let write =
        |arguments: &[&str], input: &str| text_of(&isolated(&at, arguments, input.as_bytes()));
    let blob = |content: &str| write(&["hash-object", "-w", "--stdin"], content);
    let (attributes, file) = (blob("file export-subst\n"), blob(content));
    let lines = format!("100644 blob {attributes}\t.gitattributes\n100644 blob {file}\tfile\n");
    let tree = write(&["mktree"], &lines);
    let commit = write(&["commit-tree", &tree, "-F", "-"], message);
    stage
        .site
        .git(&at, &["update-ref", "refs/heads/main", &commit]);
    stage.allow("open/p", "refs/heads/main");
}

fn costs(table: &mut Table) {
    table.row("placeholders-that-grow", |stage| {
        let message = format!("subject\n\n{}\n", "x".repeat(1 << 20));
        substitute(stage, &message, &"$Format:%B$".repeat(1000));
        denied(
            stage,
            &arguments(&["main"]),
            "'file' has more than 67108864 bytes",
        )
    });
    table.row("placeholders-without-a-value", |stage| {
        // Each looks for the end of the subject.
        let message = format!("{}\n", "x\n".repeat(1 << 20));
        substitute(stage, &message, &"$Format:%b$".repeat(200_000));
        let text = ask(stage, &arguments(&["main"]))?;
        require(text.contains("ustar"), || text)
    });
    table.row("a-large-link", |stage| {
        let at = stage.site.path("root/open/p.git");
        let content = vec![b'a'; (64 << 20) + 1];
        let blob = isolated(&at, &["hash-object", "-w", "--stdin"], &content);
        let line = format!("120000 blob {}\tlink\n", text_of(&blob));
        let tree = text_of(&isolated(&at, &["mktree"], line.as_bytes()));
        let commit = stage.site.git(&at, &["commit-tree", &tree, "-m", "link"]);
        stage
            .site
            .git(&at, &["update-ref", "refs/heads/main", &commit]);
        stage.allow("open/p", "refs/heads/main");
        let text = ask(stage, &arguments(&["main"]))?;
        require(text.contains("'link' has more than 67108864 bytes"), || {
            format!("{} bytes", text.len())
        })
    });
    let reason = "the configuration of a repository in a store names no programs";
    table.row_on_disk("a-program-that-does-not-end", reason, |stage| {
        stage.limits("request_seconds = 4");
        stage.alone();
        let pids = stage.site.path("tmp/pids");
        let line = format!("sleep 1000 & echo $! $$ >{}; sleep 1000", pids.display());
        stage.configure("open/p", "tar.slow.command", &line);
        stage.configure("open/p", "tar.slow.remote", "true");
        let token = stage.token("mallory");
        let body = arguments(&["--format=slow", "main"]);
        let mut waiting = stage.connect();
        waiting.send(post("open/p", ARCHIVE, &token, &body));
        waiting.ends()?;
        stage.slots(0)?;
        let pids = std::fs::read_to_string(pids).map_err(|error| error.to_string())?;
        for pid in pids.split_whitespace() {
            let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
            let has_ended = || stat().map_or(true, |stat| stat.contains(") Z "));
            require(wait_until(has_ended), || format!("{pid} is left"))?;
        }
        Ok(())
    });
}

fn malformed(table: &mut Table) {
    table.row("too-many-arguments", |stage| {
        let words = vec!["argument -v\n"; 100_000];
        denied(stage, &packets(words), "Too many options (>63)")
    });
    table.row("long-arguments", |stage| {
        for length in [4097, 65_000] {
            let long = format!("argument --prefix={}\n", "x".repeat(length));
            let body = packets(vec![long; 60]);
            denied(stage, &body, "an argument has more than 4096 bytes")?;
        }
        // Stars that are tried in many ways cost no more than others.
        let stars = "*x".repeat(2000);
        let text = ask(stage, &arguments(&["main", &stars]))?;
        require(text.contains("did not match any files"), || text)
    });
    table.row("no-arguments", |stage| {
        denied(stage, b"0000", "usage: ")?;
        denied(stage, b"", "fatal: ")?;
        denied(stage, b"00", "fatal: ")?;
        denied(stage, b"zzzz", "fatal: ")?;
        denied(stage, b"0003", "fatal: ")?;
        denied(stage, b"ffffargument main", "fatal: ")?;
        denied(
            stage,
            &packets(["main"]),
            "'argument' token or flush expected",
        )?;
        denied(
            stage,
            &packets(["ERR main"]),
            "'argument' token or flush expected",
        )
    });
    table.row("without-an-end", |stage| {
        stage.limits("stall_seconds = 1");
        let token = stage.token("mallory");
        let head = crate::wire::post_head("open/p", ARCHIVE, &token);
        let mut slow = stage.connect();
        slow.send(format!(
            "{head}content-length: 1000\r\n\r\n0012argument main"
        ));
        slow.ends()?;
        Ok(())
    });
}

//! Requests for archives: trees that a client may not have, files of the server, and requests without end.

use super::Table;
use crate::stage::{Stage, Verdict, require};
use crate::wire::{packet, packets, post, unbanded};

const ARCHIVE: &str = "git-upload-archive";

pub(super) fn table() -> Table {
    let mut table = Table::new("archives");
    trees(&mut table);
    files(&mut table);
    malformed(&mut table);
    table
}

/// Asks for an archive, and returns what the server says.
fn ask(stage: &mut Stage, body: &[u8]) -> Result<String, String> {
    let token = stage.token("mallory");
    let answer = stage.ask(post("open/p", ARCHIVE, &token, body))?;
    require(answer.status == 200, || format!("{answer:?}"))?;
    Ok(String::from_utf8_lossy(&unbanded(&answer.body)).into_owned())
}

/// Asks for an archive that must not be made for this reason.
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

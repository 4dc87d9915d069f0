//! Untrusted text that is printed to the terminal.

use super::Table;
use crate::attack::{Attack, Scene, command};
use crate::objects::{FILE, entry, evil};
use crate::servers::git::{Offer, line, lines};
use crate::servers::http::{challenge, respond};

/// Escape sequences that set the title, clear the screen, move the cursor and ring the bell.
const ESCAPES: &str = "a\x1b]0;title\x07b\x1b[2Jc\x1b[1Ad\x08e\x07f\x7fg\x0bh";

pub(super) fn table() -> Table {
    let mut table = Table::new("terminal");
    for is_terminal in [false, true] {
        let place = ["pipe", "terminal"][usize::from(is_terminal)];
        let on = move |attack: Attack| match is_terminal {
            true => attack.on_terminal(),
            false => attack,
        };
        table.row(format!("progress-{place}"), move |scene| {
            on(clone(scene, |offer| {
                offer.message(2, format!("{ESCAPES}\n"))
            }))
        });
        table.row(format!("progress-in-parts-{place}"), move |scene| {
            on(clone(scene, |offer| {
                let bytes = ESCAPES.bytes();
                bytes.fold(offer, |offer, byte| offer.message(2, [byte]))
            }))
        });
        table.row(format!("fatal-band-{place}"), move |scene| {
            on(clone(scene, |offer| offer.message(3, format!("{ESCAPES}\n"))).fails())
        });
        table.row(format!("error-line-{place}"), move |scene| {
            let text = line(format!("ERR {ESCAPES}\n"));
            on(clone(scene, |offer| offer.greeting(text)).fails())
        });
        table.row(format!("error-of-a-list-{place}"), move |scene| {
            let text = line(format!("ERR {ESCAPES}\n"));
            on(clone(scene, |offer| offer.listing(text)).fails())
        });
        table.row(format!("unknown-answer-{place}"), move |scene| {
            let text = lines([format!("{ESCAPES} x")]);
            on(clone(scene, |offer| offer.listing(text)).fails())
        });
        table.row(format!("unknown-capability-{place}"), move |scene| {
            let text = format!("object-format={ESCAPES}");
            on(clone(scene, |offer| offer.capability(text)))
        });
        table.row(format!("page-{place}"), move |scene| {
            let port = scene.http(|_, out| {
                let kind = "Content-Type: text/plain; charset=utf-8";
                respond(out, "404 Not Found", &[kind], ESCAPES.as_bytes())
            });
            on(
                command(["clone", &format!("http://127.0.0.1:{port}/x"), "clone"])
                    .fails()
                    .git_differs("it prints pages of text as they are"),
            )
        });
    }
    http(&mut table);
    paths(&mut table);
    messages(&mut table);
    archives(&mut table);
    table
}

/// Answers to a request for an archive.
fn archives(table: &mut Table) {
    let accepted = b"0008ACK\n0000".to_vec();
    let band = |band: u8| line([&[band][..], ESCAPES.as_bytes(), b"\n"].concat());
    let answers = [
        ("refused", line(format!("NACK {ESCAPES}\n"))),
        ("error", line(format!("ERR {ESCAPES}\n"))),
        ("unknown", line(format!("{ESCAPES}\n"))),
        (
            "message",
            [accepted.clone(), band(2), b"0000".to_vec()].concat(),
        ),
        ("message-and-end", [accepted.clone(), band(2)].concat()),
        ("fatal-band", [accepted.clone(), band(3)].concat()),
        ("bad-band", [accepted.clone(), band(27)].concat()),
        (
            "late-error",
            [accepted, line(format!("ERR {ESCAPES}\n"))].concat(),
        ),
    ];
    for (name, answer) in answers {
        table.row(format!("archive-{name}"), move |scene| {
            let answer = answer.clone();
            let port = scene.tcp(move |stream| stream.write_all(&answer));
            let remote = format!("--remote=git://127.0.0.1:{port}/x");
            command(["archive", &remote, "HEAD"])
        });
    }
}

fn clone(scene: &mut Scene, change: impl FnOnce(Offer) -> Offer) -> Attack {
    let url = scene.git_server(change(Offer::new(scene.ids)));
    command(["clone", &url, "clone"])
}

fn http(table: &mut Table) {
    table.row("status-line", |scene| {
        let port = scene.http(|_, out| respond(out, &format!("500 {ESCAPES}"), &[], b""));
        command(["clone", &format!("http://127.0.0.1:{port}/x"), "clone"]).fails()
    });
    table.row("content-type", |scene| {
        let port = scene.http(|_, out| {
            let kind = format!("Content-Type: {ESCAPES}");
            respond(out, "200 OK", &[&kind], b"")
        });
        command(["clone", &format!("http://127.0.0.1:{port}/x"), "clone"])
    });
    table.row("realm", |scene| {
        let port = scene.http(|_, out| {
            let wanted = format!("WWW-Authenticate: Basic realm=\"{ESCAPES}\"");
            respond(out, "401 Unauthorized", &[&wanted], b"")
        });
        command(["clone", &format!("http://127.0.0.1:{port}/x"), "clone"]).fails()
    });
    table.row("location", |scene| {
        let port = scene.http(|_, out| {
            let target = "Location: http://127.0.0.1:1/\x1b[2J/info/refs?service=git-upload-pack";
            respond(out, "302 Found", &[target], b"")
        });
        command(["clone", &format!("http://127.0.0.1:{port}/x"), "clone"]).fails()
    });
    table.row("user-in-a-prompt", |scene| {
        let port = scene.http(|_, out| challenge(out));
        let url = format!("http://a%1b%5b2Jb@127.0.0.1:{port}/x");
        command(["clone", &url, "clone"]).fails().on_terminal()
    });
}

/// Paths in trees and on disk.
fn paths(table: &mut Table) {
    table.row("path-in-status", |scene| {
        scene.repository("work/repo");
        scene.write(format!("work/repo/{ESCAPES}"), "x\n");
        scene.configure("[core]\n\tquotePath = false\n");
        command(["status"]).within("work/repo").succeeds()
    });
    table.row("path-in-conflict", |scene| {
        let name = ESCAPES;
        evil(scene, |forge| {
            let blob = forge.blob("x\n");
            forge.tree(&[entry(FILE, name, blob)])
        });
        scene.repository("work/repo");
        let source = scene.path("server/evil").display().to_string();
        scene.git("work/repo", &["fetch", "-q", &source, "main:evil"]);
        scene.write(format!("work/repo/{name}"), "mine\n");
        scene.configure("[core]\n\tquotePath = false\n");
        command(["checkout", "evil"]).within("work/repo").fails()
    });
    table.row("path-that-is-refused", |scene| {
        evil(scene, |forge| {
            let blob = forge.blob("x\n");
            forge.tree(&[
                entry(FILE, "git~1\x1b[2J", blob),
                entry(FILE, "git~1", blob),
            ])
        });
        command(["clone", "../server/evil", "clone"]).fails()
    });
    table.row("path-with-escapes-that-is-refused", |scene| {
        evil(scene, |forge| {
            let blob = forge.blob("x\n");
            let below = forge.tree(&[entry(FILE, ".git", blob)]);
            forge.tree(&[entry("40000", "a\x1b[2J", below)])
        });
        command(["clone", "../server/evil", "clone"]).fails()
    });
    table.row("path-of-the-command-line", |scene| {
        scene.repository("work/repo");
        command(["add", "no\x1b[2Jfile"])
            .within("work/repo")
            .fails()
    });
    table.row("revision-of-the-command-line", |scene| {
        scene.repository("work/repo");
        command(["checkout", "no\x1b[2Jbranch"])
            .within("work/repo")
            .fails()
    });
    table.row("directory-named-by-the-url", |scene| {
        let url = scene.git_server(Offer::new(scene.ids));
        command(["clone", &format!("{url}/a\x1b[2Jb")]).check(|scene, _| {
            let entries = std::fs::read_dir(scene.path("work")).expect("it lists");
            let names = entries.flatten().map(|entry| entry.file_name());
            match names
                .into_iter()
                .any(|name| name.to_string_lossy().contains('\x1b'))
            {
                true => Err("the directory has an escape in its name".to_owned()),
                false => Ok(()),
            }
        })
    });
    table.row("attributes", |scene| {
        scene.repository("work/repo");
        scene.write(
            "work/repo/.gitattributes",
            "* \x1b[2J=x\n[attr]a\x1b[2Jb x\n",
        );
        command(["status"])
            .within("work/repo")
            .succeeds()
            .git_differs("it prints names of attributes as they are")
    });
    table.row("configuration-of-a-repository", |scene| {
        scene.repository("work/repo");
        scene.append("work/repo/.git/config", "[core]\n\tautocrlf = \x1b[2J\n");
        command(["status"]).within("work/repo")
    });
}

/// Messages of commits, and other text in a repository.
fn messages(table: &mut Table) {
    table.row("subject-in-reset", |scene| {
        scene.repository("work/repo");
        let message = format!("subject {ESCAPES}");
        scene.git("work/repo", &["commit", "--allow-empty", "-qm", &message]);
        command(["reset", "--hard"])
            .within("work/repo")
            .succeeds()
            .on_terminal()
            .git_differs("it prints subjects as they are")
    });
    table.row("subject-in-checkout", |scene| {
        scene.repository("work/repo");
        let message = format!("subject {ESCAPES}");
        scene.git("work/repo", &["commit", "--allow-empty", "-qm", &message]);
        command(["checkout", "--detach"])
            .within("work/repo")
            .succeeds()
            .on_terminal()
            .git_differs("it prints subjects as they are")
    });
    table.row("alternates", |scene| {
        scene.repository("work/repo");
        scene.write(
            "work/repo/.git/objects/info/alternates",
            "/no\x1b[2Jwhere\n",
        );
        command(["status"]).within("work/repo")
    });
    table.row("head", |scene| {
        scene.repository("work/repo");
        scene.write("work/repo/.git/HEAD", "ref: refs/heads/a\x1b[2J\n");
        command(["status"]).within("work/repo")
    });
    table.row("hostile-ssh", |scene| {
        let ssh = scene.script("server/ssh", "#!/bin/sh\nprintf '0008\\033[2J'\n");
        command(["clone", "ssh://host/x", "clone"])
            .variable("GIT_SSH_COMMAND", ssh)
            .fails()
    });
}

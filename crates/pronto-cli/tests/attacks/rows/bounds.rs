//! Servers that send endless data or stay silent.

use super::Table;
use crate::attack::{Attack, Scene, command, elsewhere};
use crate::pack::gzip_bomb;
use crate::servers::git::{Offer, line, lines};
use crate::servers::http::{begin, respond};
use crate::servers::{Duplex, flood, stall};

/// The reason why most rows have no control run.
const PATIENT: &str = "it has no bound here, and would run until the server ends";

/// The reason why stalls over `git://` are not tested here.
const MINUTES: &str =
    "a silent server is given up after minutes: pronto-wire tests it with a shorter bound";

pub(super) fn table() -> Table {
    let mut table = Table::new("bounds");
    greetings(&mut table);
    transfers(&mut table);
    over_http(&mut table);
    honest(&mut table);
    table
}

fn clone(port: u16) -> Attack {
    let url = format!("git://127.0.0.1:{port}/x");
    command(["clone", &url, "clone"])
}

/// A server that sends `first`, and then `chunk` without end.
fn endless(scene: &mut Scene, first: Vec<u8>, chunk: Vec<u8>) -> Attack {
    let port = scene.tcp(move |stream| {
        stream.write_all(&first)?;
        flood(stream, &chunk)
    });
    // Five million references are not an attack. Their limit is far above that of other rows.
    clone(port)
        .fails()
        .mebibytes(1200)
        .seconds(300)
        .only_pronto(PATIENT)
}

fn greetings(table: &mut Table) {
    table.row("endless-capabilities", |scene| {
        let chunk = line("capability=of-the-server\n");
        endless(scene, line("version 2\n"), chunk)
    });
    table.row("endless-long-capabilities", |scene| {
        let chunk = line(b"x".repeat(60_000));
        endless(scene, line("version 2\n"), chunk)
    });
    table.row("endless-references-v0", |scene| {
        let first = format!("{} HEAD\0side-band-64k\n", scene.ids.first);
        let second = line(format!("{} refs/heads/main\n", scene.ids.first));
        endless(scene, line(first), second)
    });
    table.row("endless-shallow-v0", |scene| {
        let first = format!("{} HEAD\0side-band-64k shallow\n", scene.ids.first);
        let second = line(format!("shallow {}\n", scene.ids.first));
        endless(scene, line(first), second)
    });
    table.row("endless-empty-lines", |scene| {
        endless(scene, Vec::new(), line(""))
    });
    table.row("endless-versions", |scene| {
        endless(scene, Vec::new(), line("version 1\n"))
    });
    table.row("garbage", |scene| {
        let port = scene.tcp(|stream| stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n"));
        clone(port).fails()
    });
    table.row("line-of-length-1", |scene| {
        let port = scene.tcp(|stream| stream.write_all(b"0001"));
        clone(port).fails()
    });
    table.row("line-that-is-too-long", |scene| {
        let port = scene.tcp(|stream| {
            stream.write_all(b"ffff")?;
            stream.write_all(&b"x".repeat(70_000))
        });
        clone(port).fails()
    });
    table.row("ends-within-a-line", |scene| {
        let port = scene.tcp(|stream| stream.write_all(b"0040version"));
        clone(port).fails()
    });
    table.row("unknown-version", |scene| {
        let port = scene.tcp(|stream| stream.write_all(&lines(["version 9"])));
        clone(port).fails()
    });
    for name in ["before-the-greeting", "within-a-line"] {
        table.row(format!("stall-{name}"), |_| elsewhere(MINUTES));
    }
}

/// Sets short timeouts.
fn impatient(scene: &Scene) {
    scene.configure("[http]\n\tlowSpeedLimit = 1000\n\tlowSpeedTime = 2\n");
}

fn transfers(table: &mut Table) {
    table.row("endless-listing", |scene| {
        let greeting = Offer::new(scene.ids).first_words();
        let chunk = line(format!("{} refs/heads/main\n", scene.ids.first));
        endless(scene, greeting, chunk)
    });
    table.row("endless-attributes-of-a-reference", |scene| {
        let greeting = Offer::new(scene.ids).first_words();
        let text = format!(
            "{} refs/heads/main{}\n",
            scene.ids.first,
            " x:y".repeat(10_000)
        );
        endless(scene, greeting, line(text))
    });
    table.row("endless-shallow-section", |scene| {
        let offer = Offer::new(scene.ids);
        let first = [offer.first_words(), offer.answer_listing()].concat();
        let first = [first, line("shallow-info\n")].concat();
        let chunk = line(format!("shallow {}\n", scene.ids.first));
        endless(scene, first, chunk)
    });
    table.row("endless-acknowledgments", |scene| {
        let offer = Offer::new(scene.ids);
        let first = [offer.first_words(), offer.answer_listing()].concat();
        let first = [first, line("acknowledgments\n")].concat();
        let chunk = line(format!("ACK {}\n", scene.ids.first));
        endless(scene, first, chunk)
    });
    table.row("endless-references-wanted", |scene| {
        let offer = Offer::new(scene.ids);
        let first = [offer.first_words(), offer.answer_listing()].concat();
        let first = [first, line("wanted-refs\n")].concat();
        let chunk = line(format!("{} refs/heads/main\n", scene.ids.first));
        endless(scene, first, chunk)
    });
    table.row("endless-unknown-section", |scene| {
        let offer = Offer::new(scene.ids);
        let first = [offer.first_words(), offer.answer_listing()].concat();
        let first = [first, line("unknown\n")].concat();
        endless(scene, first, line("x\n"))
    });
    table.row("endless-line-of-progress", |scene| {
        let offer = Offer::new(scene.ids);
        let first = [offer.first_words(), offer.answer_listing()].concat();
        let first = [first, line("packfile\n")].concat();
        let port = scene.tcp(move |stream| {
            stream.write_all(&first)?;
            bounded(
                stream,
                &line([&b"\x02"[..], &b"x".repeat(60_000)].concat()),
                5_000,
            )
        });
        // The line has 300 MB.
        clone(port)
            .fails()
            .mebibytes(192)
            .git_differs("it holds a line of progress of any length")
    });
    table.row("stall-in-the-pack", |_| elsewhere(MINUTES));
    table.row("pack-that-ends-early", |scene| {
        let half = scene.ids.pack[..scene.ids.pack.len() / 2].to_owned();
        let url = scene.git_server(Offer::new(scene.ids).pack(half));
        command(["clone", &url, "clone"]).fails()
    });
    table.row("pack-without-end-of-band", |scene| {
        let offer = Offer::new(scene.ids).ending(b"0005\x07".to_vec());
        let url = scene.git_server(offer);
        command(["clone", &url, "clone"]).fails()
    });
    for (name, number) in [("pack", 1), ("progress", 2), ("error", 3)] {
        table.row(format!("empty-packet-of-{name}"), move |scene| {
            let offer = Offer::new(scene.ids).raw_message(&line([number]));
            let url = scene.git_server(offer);
            command(["clone", &url, "clone"])
        });
    }
    table.row("packet-without-a-band", |scene| {
        let offer = Offer::new(scene.ids).raw_message(b"0004");
        let url = scene.git_server(offer);
        command(["clone", &url, "clone"]).fails()
    });
    table.row("pack-without-what-is-wanted", |scene| {
        let pack = crate::pack::Pack::new().finish();
        let url = scene.git_server(Offer::new(scene.ids).pack(pack));
        command(["clone", &url, "clone"]).fails()
    });
    table.row("commit-that-nobody-has", |scene| {
        let offer = Offer::new(scene.ids).commit(&"1".repeat(40));
        let url = scene.git_server(offer);
        command(["clone", &url, "clone"]).fails()
    });
}

fn bounded(stream: &mut dyn Duplex, chunk: &[u8], times: usize) -> std::io::Result<()> {
    for _ in 0..times {
        stream.write_all(chunk)?;
    }
    Ok(())
}

fn over_http(table: &mut Table) {
    table.row("http-stall-before-the-answer", |scene| {
        let port = scene.tcp(|stream| stall(stream));
        impatient(scene);
        http(port).fails()
    });
    table.row("http-stall-in-the-head", |scene| {
        let port = scene.tcp(|stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX: ")?;
            stall(stream)
        });
        impatient(scene);
        http(port).fails()
    });
    table.row("http-stall-in-the-body", |scene| {
        let port = scene.tcp(|stream| {
            let kind = "Content-Type: application/x-git-upload-pack-advertisement";
            write!(stream, "HTTP/1.1 200 OK\r\n{kind}\r\n\r\n001e# service")?;
            stall(stream)
        });
        impatient(scene);
        http(port).fails()
    });
    table.row("http-endless-headers", |scene| {
        let port = scene.http(|_, out| {
            begin(out, "200 OK", &[])?;
            flood(out, b"X-Header: something\r\n")
        });
        http(port).fails()
    });
    table.row("http-endless-header", |scene| {
        let port = scene.http(|_, out| {
            begin(out, "200 OK", &[])?;
            flood(out, b"xxxxxxxxxxxxxxxxxxxxxxxx")
        });
        http(port).fails()
    });
    table.row("http-endless-page", |scene| {
        let port = scene.http(|_, out| {
            begin(out, "404 Not Found", &["Content-Type: text/plain"])?;
            write!(out, "\r\n")?;
            flood(out, b"not found, and not found, and not found\n")
        });
        http(port).fails().only_pronto(PATIENT)
    });
    table.row("http-endless-advertisement", |scene| {
        let chunk = line("capability=of-the-server\n");
        let port = scene.http(move |_, out| {
            let kind = "Content-Type: application/x-git-upload-pack-advertisement";
            begin(out, "200 OK", &[kind])?;
            write!(out, "\r\n001e# service=git-upload-pack\n0000")?;
            out.write_all(&line("version 2\n"))?;
            flood(out, &chunk)
        });
        http(port).fails().only_pronto(PATIENT)
    });
    table.row("http-bomb", |scene| {
        let bomb = gzip_bomb(b"x", 256 << 20);
        let port = scene.http(move |_, out| {
            let kind = "Content-Type: application/x-git-upload-pack-advertisement";
            respond(out, "200 OK", &[kind, "Content-Encoding: gzip"], &bomb)
        });
        http(port).fails()
    });
    table.row("http-bomb-of-a-page", |scene| {
        let bomb = gzip_bomb(b"x", 256 << 20);
        let port = scene.http(move |_, out| {
            let kind = "Content-Type: text/plain";
            respond(out, "500 No", &[kind, "Content-Encoding: gzip"], &bomb)
        });
        http(port).fails()
    });
    table.row("http-huge-length", |scene| {
        let port = scene.http(move |_, out| {
            let kind = "Content-Type: application/x-git-upload-pack-advertisement";
            begin(
                out,
                "200 OK",
                &[kind, "Content-Length: 9223372036854775807"],
            )?;
            write!(out, "\r\n001e# service=git-upload-pack\n0000")
        });
        http(port).fails()
    });
    table.row("http-two-lengths", |scene| {
        let port = scene.http(move |_, out| {
            let kind = "Content-Type: application/x-git-upload-pack-advertisement";
            begin(
                out,
                "200 OK",
                &[kind, "Content-Length: 4", "Content-Length: 9"],
            )?;
            write!(out, "\r\n00000000")
        });
        http(port).fails()
    });
    table.row("http-huge-chunk", |scene| {
        let port = scene.http(move |_, out| {
            let kind = "Content-Type: application/x-git-upload-pack-advertisement";
            begin(out, "200 OK", &[kind, "Transfer-Encoding: chunked"])?;
            write!(
                out,
                "\r\nffffffffffffffff\r\n001e# service=git-upload-pack\n"
            )
        });
        http(port).fails()
    });
}

fn http(port: u16) -> Attack {
    command(["clone", &format!("http://127.0.0.1:{port}/x"), "clone"])
}

/// Checks that the servers of these rows work without an attack.
fn honest(table: &mut Table) {
    for version in [0, 1, 2] {
        table.row(format!("honest-v{version}"), move |scene| {
            let offer = Offer::new(scene.ids).version(version);
            let url = scene.git_server(offer);
            command(["clone", &url, "clone"]).succeeds()
        });
        table.row(format!("honest-http-v{version}"), move |scene| {
            let offer = Offer::new(scene.ids).version(version);
            let port =
                scene.http(move |request, out| crate::servers::http::offer(&offer, request, out));
            http(port).succeeds()
        });
        table.row(format!("honest-ssh-v{version}"), move |scene| {
            let ssh = scene.ssh(&Offer::new(scene.ids).version(version));
            command(["clone", "ssh://host/x", "clone"])
                .variable("GIT_SSH_COMMAND", ssh)
                .succeeds()
        });
    }
}

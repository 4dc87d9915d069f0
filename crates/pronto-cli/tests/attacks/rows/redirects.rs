//! Servers that redirect the client.

use super::Table;
use crate::attack::{Attack, Scene, command, skip};
use crate::servers::http::{challenge, redirect, repository, respond};
use crate::servers::{Server, has_tls};

pub(super) fn table() -> Table {
    let mut table = Table::new("redirects");
    secrets(&mut table);
    over_tls(&mut table);
    targets(&mut table);
    table
}

/// A server that redirects everything to the server at `evil`. Returns its port.
fn victim(scene: &mut Scene, evil: u16) -> u16 {
    scene.http(move |request, out| {
        redirect(out, &format!("http://127.0.0.1:{evil}{}", request.target))
    })
}

fn clone(port: u16) -> Attack {
    let url = format!("http://127.0.0.1:{port}/x");
    command(["clone", &url, "clone"])
}

/// The canaries of the first server.
fn secrets(table: &mut Table) {
    table.row("credential-of-the-host", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let victim = victim(scene, evil);
        let secret = scene.secret(Some(victim));
        scene.credential("http", &format!("127.0.0.1:{victim}"), &secret);
        clone(victim).fails()
    });
    table.row("helper-scoped-by-url", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let victim = victim(scene, evil);
        let secret = scene.secret(Some(victim));
        scene.configure(&format!(
            "[credential \"http://127.0.0.1:{victim}\"]\n\
             \thelper = \"!echo username=x; echo password={secret}; :\"\n"
        ));
        clone(victim).fails()
    });
    table.row("header-scoped-by-url", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let victim = victim(scene, evil);
        let secret = scene.secret(Some(victim));
        scene.configure(&format!(
            "[http \"http://127.0.0.1:{victim}\"]\n\textraHeader = X-Token: {secret}\n"
        ));
        clone(victim).fails().git_differs(
            "it chooses the settings of http.<url>.* once, by the first address; curl sends \
             extra headers along",
        )
    });
    table.row("password-in-the-url", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let victim = victim(scene, evil);
        let secret = scene.secret(Some(victim));
        let url = format!("http://somebody:{secret}@127.0.0.1:{victim}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("password-in-the-url-and-asked-for-before", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let victim = scene.http(move |request, out| match request.is_authorized() {
            false => challenge(out),
            true => redirect(out, &format!("http://127.0.0.1:{evil}{}", request.target)),
        });
        let secret = scene.secret(Some(victim));
        let url = format!("http://somebody:{secret}@127.0.0.1:{victim}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("cookie-of-the-host", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let victim = scene.http(move |request, out| {
            redirect(out, &format!("http://127.0.0.1:{evil}{}", request.target))
        });
        let secret = scene.secret(Some(victim));
        let cookie = format!("localhost\tFALSE\t/\tFALSE\t0\tsession\t{secret}\n");
        let file = scene.write(
            "home/cookies",
            format!("# Netscape HTTP Cookie File\n{cookie}"),
        );
        scene.configure(&format!("[http]\n\tcookieFile = {}\n", file.display()));
        let url = format!("http://localhost:{victim}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("netrc-of-the-host", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let victim = victim(scene, evil);
        let secret = scene.secret(Some(victim));
        scene.write(
            "home/.netrc",
            format!("machine localhost login x password {secret}\n"),
        );
        let url = format!("http://localhost:{victim}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("netrc-of-another-port", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let victim = scene.http(move |request, out| {
            redirect(out, &format!("http://localhost:{evil}{}", request.target))
        });
        let secret = scene.secret(Some(victim));
        scene.write(
            "home/.netrc",
            format!("machine localhost login x password {secret}\n"),
        );
        let url = format!("http://localhost:{victim}/x");
        command(["clone", &url, "clone"])
            .fails()
            .git_differs("curl takes the password for every port of the host")
    });
    table.row("netrc-of-another-user", |scene| {
        let victim = scene.http(|_, out| challenge(out));
        let secret = scene.secret(None);
        scene.write(
            "home/.netrc",
            format!("machine localhost login other password {secret}\n"),
        );
        let url = format!("http://me@localhost:{victim}/x");
        command(["clone", &url, "clone"])
            .fails()
            .git_differs("curl takes the password of any user of the host")
    });
    table.row("after-the-first-answer", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let origin = scene.path("server/origin/.git");
        let victim = scene.http(move |request, out| match request.method.as_str() {
            "POST" => redirect(out, &format!("http://127.0.0.1:{evil}{}", request.target)),
            _ => repository(&origin, request, out),
        });
        let secret = scene.secret(Some(victim));
        scene.configure(&format!(
            "[http \"http://127.0.0.1:{victim}\"]\n\textraHeader = X-Token: {secret}\n"
        ));
        clone(victim).fails().never_contacts(evil)
    });
    table.row("forbidden", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let victim = victim(scene, evil);
        scene.configure("[http]\n\tfollowRedirects = false\n");
        clone(victim).fails().never_contacts(evil)
    });
}

/// The canaries of the first server, with TLS.
fn over_tls(table: &mut Table) {
    table.row("client-certificate", |scene| {
        if !has_tls() {
            return skip("openssl is not installed");
        }
        let evil = scene.https(|_, out| respond(out, "404 Not Found", &[], b""));
        let victim = scene.https(move |request, out| {
            redirect(out, &format!("https://127.0.0.1:{evil}{}", request.target))
        });
        scene.secrets.push(crate::attack::Secret {
            text: crate::servers::CLIENT_CERTIFICATE.to_owned(),
            owner: Some(victim),
        });
        let made = scene.certificates();
        scene.configure(&format!(
            "[http]\n\tsslCAInfo = {}\n[http \"https://127.0.0.1:{victim}\"]\n\
             \tsslCert = {}\n\tsslKey = {}\n",
            made.authority.display(),
            made.chain.display(),
            made.key.display()
        ));
        let url = format!("https://127.0.0.1:{victim}/x");
        command(["clone", &url, "clone"])
            .fails()
            .git_differs("curl presents the certificate to every server of the request")
    });
    table.row("unverified-first-server", |scene| {
        if !has_tls() {
            return skip("openssl is not installed");
        }
        let evil = scene.https(|_, out| challenge(out));
        let victim = scene.https(move |request, out| {
            redirect(out, &format!("https://127.0.0.1:{evil}{}", request.target))
        });
        scene.configure(&format!(
            "[http \"https://127.0.0.1:{victim}\"]\n\tsslVerify = false\n"
        ));
        let url = format!("https://127.0.0.1:{victim}/x");
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(evil)
            .git_differs("it decides once, by the first address, whether certificates count")
    });
    table.row("from-tls-to-plain", |scene| {
        if !has_tls() {
            return skip("openssl is not installed");
        }
        let evil = scene.http(|_, out| challenge(out));
        let victim = scene.https(move |request, out| {
            redirect(out, &format!("http://127.0.0.1:{evil}{}", request.target))
        });
        let secret = scene.secret(Some(victim));
        let authority = scene.certificates().authority.display().to_string();
        scene.credential("https", &format!("127.0.0.1:{victim}"), &secret);
        scene.configure(&format!("[http]\n\tsslCAInfo = {authority}\n"));
        let url = format!("https://somebody:{secret}@127.0.0.1:{victim}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("unknown-certificate", |scene| {
        if !has_tls() {
            return skip("openssl is not installed");
        }
        let evil = scene.https(|_, out| challenge(out));
        let url = format!("https://127.0.0.1:{evil}/x");
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(evil)
    });
    table.row("certificate-of-another-host", |scene| {
        if !has_tls() {
            return skip("openssl is not installed");
        }
        let evil = scene.https(|_, out| challenge(out));
        let authority = scene.certificates().authority.display().to_string();
        scene.configure(&format!("[http]\n\tsslCAInfo = {authority}\n"));
        let url = format!("https://127.0.0.2:{evil}/x");
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(evil)
    });
}

/// Forbidden targets of redirects.
fn targets(table: &mut Table) {
    for (name, target) in [
        (
            "file",
            "file://ROOT/project/.git/info/refs?service=git-upload-pack",
        ),
        (
            "ext",
            "ext::sh -c PAYLOAD/info/refs?service=git-upload-pack",
        ),
        (
            "ftp",
            "ftp://127.0.0.1:EVIL/x/info/refs?service=git-upload-pack",
        ),
        (
            "git",
            "git://127.0.0.1:EVIL/x/info/refs?service=git-upload-pack",
        ),
        (
            "gopher",
            "gopher://127.0.0.1:EVIL/x/info/refs?service=git-upload-pack",
        ),
        (
            "ssh",
            "ssh://-oProxyCommand=PAYLOAD/info/refs?service=git-upload-pack",
        ),
        ("another-suffix", "http://127.0.0.1:EVIL/elsewhere"),
        (
            "a-newline-in-the-host",
            "http://127.0.0.1%0aevil:EVIL/x/info/refs?service=git-upload-pack",
        ),
        ("nothing", ""),
        ("garbage", "http://[::"),
        (
            "a-victim-before-a-question-mark",
            "http://127.0.0.1:VICTIM?@127.0.0.1:EVIL/x/info/refs?service=git-upload-pack",
        ),
    ] {
        table.row(format!("to-{name}"), move |scene| {
            let evil = scene.http(|_, out| challenge(out));
            let payload = scene.payload("server/payload").display().to_string();
            let owner = scene.http(|_, out| challenge(out));
            let secret = scene.secret(Some(owner));
            scene.credential("http", &format!("127.0.0.1:{owner}"), &secret);
            let target = target
                .replace("ROOT", &scene.root().display().to_string())
                .replace("PAYLOAD", &payload)
                .replace("VICTIM", &owner.to_string())
                .replace("EVIL", &evil.to_string());
            let first = scene.http(move |_, out| redirect(out, &target));
            clone(first).fails()
        });
    }
    table.row("without-end", |scene| {
        let port = scene.http(|request, out| redirect(out, &request.target));
        clone(port).fails()
    });
    table.row("with-a-password-of-the-server", |scene| {
        let origin = scene.path("server/origin/.git");
        let evil = scene.http(move |request, out| repository(&origin, request, out));
        let port = scene.http(move |request, out| {
            redirect(
                out,
                &format!("http://u:p@127.0.0.1:{evil}{}", request.target),
            )
        });
        clone(port).check(move |scene, _| {
            let text = std::fs::read_to_string(scene.path("work/clone/.git/config"));
            match text.unwrap_or_default().contains("u:p@") {
                true => Err("the configuration has the server's password".to_owned()),
                false => Ok(()),
            }
        })
    });
    table.row("protocol-for-users-only", |scene| {
        let origin = scene.path("server/origin/.git");
        let evil = scene.http(move |request, out| repository(&origin, request, out));
        if !has_tls() {
            return skip("openssl is not installed");
        }
        let first = scene.https(move |request, out| {
            redirect(out, &format!("http://127.0.0.1:{evil}{}", request.target))
        });
        let authority = scene.certificates().authority.display().to_string();
        scene.configure(&format!(
            "[http]\n\tsslCAInfo = {authority}\n[protocol \"http\"]\n\tallow = user\n"
        ));
        let url = format!("https://127.0.0.1:{first}/x");
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(evil)
    });
    table.row("protocol-that-is-forbidden", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        if !has_tls() {
            return skip("openssl is not installed");
        }
        let first = scene.https(move |request, out| {
            redirect(out, &format!("http://127.0.0.1:{evil}{}", request.target))
        });
        let authority = scene.certificates().authority.display().to_string();
        scene.configure(&format!(
            "[http]\n\tsslCAInfo = {authority}\n[protocol \"http\"]\n\tallow = never\n"
        ));
        let url = format!("https://127.0.0.1:{first}/x");
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(evil)
    });
    table.row("honest", |scene| {
        let origin = scene.path("server/origin/.git");
        let second = scene.http(move |request, out| repository(&origin, request, out));
        let first = victim(scene, second);
        clone(first).succeeds().check(|scene, _| {
            let asked = |server: &Server| !server.log.bytes().is_empty();
            match scene.servers.iter().all(asked) {
                true => Ok(()),
                false => Err("a server was not asked".to_owned()),
            }
        })
    });
}

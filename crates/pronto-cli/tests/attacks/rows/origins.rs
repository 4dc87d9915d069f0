//! URLs whose host is ambiguous, and URLs that are commands.

use super::Table;
use crate::attack::{Scene, command};
use crate::servers::git::Offer;
use crate::servers::http::challenge;

pub(super) fn table() -> Table {
    let mut table = Table::new("origins");
    for (name, between) in [
        ("question-mark", "?@"),
        ("fragment", "#@"),
        ("backslash", "\\@"),
        ("slash", "/@"),
        ("encoded-slash", "%2f@"),
        ("encoded-question-mark", "%3f@"),
        ("encoded-fragment", "%23@"),
        ("encoded-newline", "%0a@"),
        ("semicolon", ";@"),
        ("two-ats", "@x@"),
        ("question-mark-path", "?/@"),
        ("fragment-path", "#/@"),
        ("backslash-slash", "\\/@"),
        ("tab", "\t@"),
        ("newline", "\n@"),
        ("nul-encoded", "%00@"),
    ] {
        table.row(format!("http-{name}"), move |scene| {
            let victim = scene.http(|_, out| challenge(out));
            let evil = scene.http(|_, out| challenge(out));
            secrets_of(scene, victim);
            let url = format!("http://127.0.0.1:{victim}{between}127.0.0.1:{evil}/x");
            command(["clone", &url, "clone"]).fails()
        });
    }
    table.row("git-question-mark", |scene| {
        let evil = scene.tcp(|stream| crate::servers::stall(stream));
        let url = format!("git://127.0.0.1:1?@127.0.0.1:{evil}/x");
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(evil)
    });
    requests(&mut table);
    commands(&mut table);
    table
}

/// Allows all canaries for the server at `port`.
fn secrets_of(scene: &mut Scene, port: u16) {
    let secret = scene.secret(Some(port));
    scene.credential("http", &format!("127.0.0.1:{port}"), &secret);
    let header = scene.secret(Some(port));
    scene.configure(&format!(
        "[http \"http://127.0.0.1:{port}\"]\n\textraHeader = X-Token: {header}\n"
    ));
}

/// URLs that inject lines into requests and into the input of credential helpers.
fn requests(table: &mut Table) {
    for (name, part) in [
        ("newline", "x%0ahost=127.0.0.1:VICTIM%0aprotocol=http"),
        ("return", "x%0d%0ahost=127.0.0.1:VICTIM"),
        ("lone-return", "x%0dhost=127.0.0.1:VICTIM"),
    ] {
        table.row(format!("helper-is-asked-with-a-{name}"), move |scene| {
            let victim = scene.http(|_, out| challenge(out));
            let evil = scene.http(|_, out| challenge(out));
            secrets_of(scene, victim);
            let user = part.replace("VICTIM", &victim.to_string());
            let url = format!("http://{user}@127.0.0.1:{evil}/x");
            command(["clone", &url, "clone"]).fails()
        });
    }
    table.row("empty-host", |scene| {
        let victim = scene.http(|_, out| challenge(out));
        secrets_of(scene, victim);
        command(["clone", "http:///x", "clone"]).fails()
    });
    table.row("host-is-a-number", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let victim = scene.http(|_, out| challenge(out));
        secrets_of(scene, victim);
        let url = format!("http://127.0.0.1:{}/x", u64::from(evil) + 65_536);
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(evil)
    });
    for (name, path) in [
        ("newline", "x\r\nX-Smuggled: yes\r\n"),
        ("space", "x HTTP/1.1\tX"),
    ] {
        table.row(format!("request-with-a-{name}"), move |scene| {
            let evil = scene.http(|_, out| challenge(out));
            let url = format!("http://127.0.0.1:{evil}/{path}");
            command(["clone", &url, "clone"])
                .fails()
                .check(move |scene, _| {
                    let log = String::from_utf8_lossy(&scene.log_of(evil)).into_owned();
                    match log.contains("\r\nX-Smuggled: yes") {
                        true => Err(format!("a header is smuggled: {log}")),
                        false => Ok(()),
                    }
                })
        });
    }
    for (name, url) in [
        ("newline", "git://127.0.0.1:PORT/x\nhost=evil"),
        ("encoded-newline", "git://127.0.0.1:PORT/x%0ahost=evil"),
        ("newline-in-host", "git://127.0.0.1\n:PORT/x"),
    ] {
        table.row(format!("git-request-with-a-{name}"), move |scene| {
            let port = scene.tcp(|stream| crate::servers::stall_once(stream));
            let url = url.replace("PORT", &port.to_string());
            command(["clone", &url, "clone"])
                .fails()
                .check(move |scene, _| match scene.log_of(port).contains(&b'\n') {
                    true => Err("a newline is sent".to_owned()),
                    false => Ok(()),
                })
        });
    }
}

/// URLs that are options or commands.
fn commands(table: &mut Table) {
    for (name, url) in [
        ("ssh-option", "ssh://-oProxyCommand=PAYLOAD/x"),
        ("ssh-option-scp", "-oProxyCommand=PAYLOAD:x"),
        ("ssh-option-user", "ssh://-oProxyCommand=PAYLOAD@host/x"),
        ("ssh-option-brackets", "ssh://[-oProxyCommand=PAYLOAD]/x"),
        ("ssh-option-brackets-scp", "[-oProxyCommand=PAYLOAD]:x"),
        ("ssh-option-port", "ssh://host:-oProxyCommand=PAYLOAD/x"),
        ("ssh-encoded-option", "ssh://%2doProxyCommand=PAYLOAD/x"),
        ("path-option", "ssh://host/-x;PAYLOAD"),
        ("path-option-scp", "host:--upload-pack=PAYLOAD"),
        ("ext", "ext::PAYLOAD"),
        ("unknown-helper", "payload::x"),
        ("helper-with-a-path", "../../outside/helper::x"),
        ("option", "--upload-pack=PAYLOAD"),
        ("local-option", "./-x/--upload-pack=PAYLOAD"),
    ] {
        table.row(format!("command-{name}"), move |scene| {
            let payload = scene.payload("server/payload");
            let ssh = scene.script(
                "server/ssh",
                "#!/bin/sh\nfor word; do case $word in -oProxy*) \"${word#*=}\";; esac; done\nexit 1\n",
            );
            let payload = payload.display().to_string();
            let url = url.replace("PAYLOAD", &payload.replace('/', "%2f"));
            let url = match url.starts_with("ext") || url.starts_with("--") {
                true => url.replace("%2f", "/"),
                false => url,
            };
            command(["clone", &url, "clone"])
                .variable("GIT_SSH", ssh)
                .fails()
                .leaves_no("outside/pwned")
        });
    }
    table.row("command-fd", |_| {
        command(["clone", "fd::17", "clone"])
            .fails()
            .only_pronto("it waits for a file that is not open")
    });
    table.row("upload-pack-of-a-remote", |scene| {
        let payload = scene.payload("server/payload").display().to_string();
        let offer = Offer::new(scene.ids);
        let url = scene.git_server(offer);
        command(["clone", "-u", &payload, &url, "clone"]).leaves_no("outside/pwned")
    });
}

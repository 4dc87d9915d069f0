//! Security settings of the user, which are obeyed, or the command fails.

use super::Table;
use crate::attack::{Attack, Scene, command, skip};
use crate::servers::git::Offer;
use crate::servers::has_tls;
use crate::servers::http::{repository, respond};

pub(super) fn table() -> Table {
    let mut table = Table::new("settings");
    tls(&mut table);
    proxies(&mut table);
    protocols(&mut table);
    programs(&mut table);
    owners(&mut table);
    table
}

/// An honest server with TLS, and the configuration that trusts it.
fn trusted(scene: &mut Scene, settings: &str) -> Attack {
    if !has_tls() {
        return skip("openssl is not installed");
    }
    let origin = scene.path("server/origin/.git");
    let port = scene.https(move |request, out| repository(&origin, request, out));
    let authority = scene.certificates().authority.display().to_string();
    scene.configure(&format!("[http]\n\tsslCAInfo = {authority}\n{settings}"));
    command(["clone", &format!("https://127.0.0.1:{port}/x"), "clone"])
}

fn tls(table: &mut Table) {
    table.row("honest", |scene| trusted(scene, "").succeeds());
    for (name, setting) in [
        (
            "pinned-key",
            "pinnedPubkey = sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        ),
        ("cipher-list", "sslCipherList = no-such-cipher"),
        ("certificate-directory", "sslCAInfo = /no/such/file"),
    ] {
        table.row(name, move |scene| {
            trusted(scene, &format!("\t{setting}\n")).fails()
        });
    }
    table.row("cipher-list-of-the-environment", |scene| {
        trusted(scene, "")
            .variable("GIT_SSL_CIPHER_LIST", "no-such-cipher")
            .fails()
    });
    table.row("resolve", |scene| {
        let evil = scene.http(|_, out| respond(out, "404 Not Found", &[], b""));
        let port = scene.http(|_, out| respond(out, "404 Not Found", &[], b""));
        scene.configure(&format!(
            "[http]\n\tcurloptResolve = localhost:{evil}:127.0.0.9\n"
        ));
        assert_ne!(port, evil, "two servers");
        let url = format!("http://localhost:{evil}/x");
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(evil)
    });
}

fn proxies(table: &mut Table) {
    table.row("git-proxy", |scene| {
        let port = scene.tcp(|stream| crate::servers::stall_once(stream));
        let proxy = scene.script("server/proxy", "#!/bin/sh\nhead -c 9 >/dev/null\nexit 1\n");
        scene.configure(&format!("[core]\n\tgitProxy = {}\n", proxy.display()));
        let url = format!("git://127.0.0.1:{port}/x");
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(port)
    });
    table.row("git-proxy-of-the-environment", |scene| {
        let port = scene.tcp(|stream| crate::servers::stall_once(stream));
        let proxy = scene.script("server/proxy", "#!/bin/sh\nhead -c 9 >/dev/null\nexit 1\n");
        let url = format!("git://127.0.0.1:{port}/x");
        command(["clone", &url, "clone"])
            .variable("GIT_PROXY_COMMAND", proxy)
            .fails()
            .never_contacts(port)
    });
    table.row("http-proxy", |scene| {
        let proxy = scene.http(|_, out| respond(out, "502 Bad Gateway", &[], b""));
        let port = scene.http(|_, out| respond(out, "404 Not Found", &[], b""));
        scene.configure(&format!("[http]\n\tproxy = http://127.0.0.1:{proxy}\n"));
        let url = format!("http://127.0.0.1:{port}/x");
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(port)
    });
    table.row("header-for-a-server-behind-a-proxy", |scene| {
        let proxy = scene.http(|_, out| respond(out, "502 Bad Gateway", &[], b""));
        let secret = scene.secret(None);
        scene.configure(&format!(
            "[http]\n\tproxy = http://127.0.0.1:{proxy}\n\
             [http \"https://127.0.0.1:1\"]\n\textraHeader = X-Token: {secret}\n"
        ));
        command(["clone", "https://127.0.0.1:1/x", "clone"]).fails()
    });
    table.row("proxy-of-another-url", |scene| {
        let origin = scene.path("server/origin/.git");
        let proxy = scene.http(|_, out| respond(out, "502 Bad Gateway", &[], b""));
        let port = scene.http(move |request, out| repository(&origin, request, out));
        let secret = scene.secret(None);
        scene.configure(&format!(
            "[http \"http://127.0.0.1:1\"]\n\tproxy = http://u:{secret}@127.0.0.1:{proxy}\n"
        ));
        let url = format!("http://127.0.0.1:{port}/x");
        command(["clone", &url, "clone"])
            .succeeds()
            .never_contacts(proxy)
    });
    table.row("tls-proxy-certificate", |scene| {
        if !has_tls() {
            return skip("openssl is not installed");
        }
        let proxy = scene.https(|_, out| respond(out, "502 Bad Gateway", &[], b""));
        let port = scene.http(|_, out| respond(out, "404 Not Found", &[], b""));
        scene.configure(&format!(
            "[http]\n\tproxy = https://127.0.0.1:{proxy}\n\tproxySSLCAInfo = /no/such/file\n"
        ));
        let url = format!("http://127.0.0.1:{port}/x");
        command(["clone", &url, "clone"])
            .fails()
            .never_contacts(port)
    });
}

/// The policy of protocols.
fn protocols(table: &mut Table) {
    for (name, url, protocol) in [
        ("git", "git://127.0.0.1:PORT/x", "git"),
        ("http", "http://127.0.0.1:PORT/x", "http"),
        ("ssh", "ssh://host/x", "ssh"),
        ("scp", "host:x", "ssh"),
        ("file", "../server/origin", "file"),
        ("file-url", "file://ROOT/server/origin", "file"),
    ] {
        let address = move |scene: &mut Scene| {
            let port = scene.tcp(|stream| crate::servers::stall_once(stream));
            let root = scene.root().display().to_string();
            let url = url.replace("PORT", &port.to_string());
            let ssh = scene.payload("server/ssh");
            command(["clone", &url.replace("ROOT", &root), "clone"])
                .variable("GIT_SSH_COMMAND", ssh)
                .fails()
                .never_contacts(port)
                .leaves_no("work/clone/.git/objects/pack")
        };
        table.row(format!("{name}-never"), move |scene| {
            scene.configure(&format!("[protocol \"{protocol}\"]\n\tallow = never\n"));
            address(scene)
        });
        table.row(format!("{name}-not-allowed"), move |scene| {
            address(scene).variable("GIT_ALLOW_PROTOCOL", "none")
        });
        table.row(format!("{name}-for-users"), move |scene| {
            scene.configure("[protocol]\n\tallow = user\n");
            address(scene).variable("GIT_PROTOCOL_FROM_USER", "0")
        });
    }
    for (name, variable, value) in [
        ("environment", "GIT_ALLOW_PROTOCOL", "none"),
        ("users", "GIT_PROTOCOL_FROM_USER", "0"),
    ] {
        table.row(format!("sync-{name}"), move |scene| {
            scene.configure("[protocol]\n\tallow = user\n");
            sync(scene).variable(variable, value)
        });
    }
    table.row("sync-configuration", |scene| {
        scene.configure("[protocol \"ssh\"]\n\tallow = never\n");
        sync(scene)
    });
}

fn sync(scene: &Scene) -> Attack {
    scene.repository("work/repo");
    let ssh = scene.payload("server/ssh");
    command(["sync", "ssh://host/x"])
        .within("work/repo")
        .variable("GIT_SSH_COMMAND", ssh)
        .fails()
        .only_pronto("git has no such command")
}

/// Attempts to run a program in place of `git`.
fn programs(table: &mut Table) {
    table.row("recursion-runs-no-git-of-path", |scene| {
        let path = decoy(scene);
        with_submodule(scene);
        command(["clone", "--recurse-submodules", "../server/super", "clone"])
            .variable("PATH", path)
            .only_pronto("it is git that is not to be run")
    });
    table.row("maintenance-runs-no-git-of-path", |scene| {
        let path = decoy(scene);
        scene.repository("work/repo");
        scene.configure(
            "[maintenance]\n\tautoDetach = false\n[maintenance \"gc\"]\n\tenabled = true\n",
        );
        let offer = Offer::new(scene.ids).commit(&scene.ids.second);
        let url = scene.git_server(offer.pack(scene.ids.both.clone()));
        command(["fetch", &url, "main"])
            .within("work/repo")
            .variable("PATH", path)
            .only_pronto("it is git that is not to be run")
    });
    table.row("recursion-runs-the-git-that-is-named", |scene| {
        let path = decoy(scene);
        with_submodule(scene);
        let named = scene.script("server/named", "#!/bin/sh\nexit 3\n");
        command(["clone", "--recurse-submodules", "../server/super", "clone"])
            .with_fallback()
            .variable("PATH", path)
            .variable("PRONTO_GIT", named)
            .only_pronto("it is git that is not to be run")
    });
    table.row("no-program-of-the-current-directory", |scene| {
        scene.payload("work/repo/ssh");
        scene.payload("work/repo/git-remote-payload");
        scene.repository("work/repo");
        command(["fetch", "payload::x"])
            .within("work/repo")
            .variable("GIT_EXEC_PATH", "/nonexistent")
            .fails()
    });
}

/// Puts a `git` that leaves a mark at the front of `PATH`.
fn decoy(scene: &Scene) -> std::ffi::OsString {
    scene.payload("server/decoy/git");
    let mut path = scene.path("server/decoy").into_os_string();
    path.push(":");
    path.push(crate::process::path());
    path
}

fn with_submodule(scene: &Scene) {
    scene.git("server", &["init", "-q", "-b", "main", "super"]);
    scene.git(
        "server/super",
        &["submodule", "--quiet", "add", "../origin", "sub"],
    );
    scene.git("server/super", &["commit", "-qm", "sub"]);
}

/// Repositories of other users.
fn owners(table: &mut Table) {
    let other = |attack: Attack| attack.variable("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    for (name, words) in [
        ("status", &["status"][..]),
        ("commit", &["commit", "--allow-empty", "-m", "x"]),
        ("checkout", &["checkout", "HEAD"]),
        ("upload-pack", &["upload-pack", "."]),
    ] {
        table.row(format!("owner-{name}"), move |scene| {
            scene.repository("work/repo");
            scene.append(
                "work/repo/.git/config",
                &format!("[core]\n\tfsmonitor = {}\n", scene.payload_command()),
            );
            other(command(words.iter().copied()))
                .within("work/repo")
                .with_raw_output()
                .fails()
        });
    }
    table.row("owner-of-a-source", move |_| {
        other(command(["clone", "../server/origin", "clone"])).fails()
    });
    for (name, value, is_safe) in [
        ("itself", "ROOT/work/repo", true),
        ("with-a-dot", "ROOT/work/repo/.", true),
        ("below", "ROOT/work/*", true),
        ("another", "ROOT/work/other", false),
        ("a-prefix", "ROOT/work/rep", false),
        ("relative", "work/repo", false),
    ] {
        table.row(format!("safe-{name}"), move |scene| {
            scene.repository("work/repo");
            let root = scene.root().display().to_string();
            let value = value.replace("ROOT", &root);
            scene.configure(&format!("[safe]\n\tdirectory = {value}\n"));
            let attack = other(command(["status"])).within("work/repo");
            match is_safe {
                true => attack.succeeds(),
                false => attack.fails(),
            }
        });
    }
    for (name, text, is_safe) in [
        ("a-dot", "directory = .", true),
        ("everything", "directory = *", true),
        ("reset", "directory = *\n\tdirectory =", false),
        ("through-a-link", "directory = ROOT/work/link", true),
        (
            "with-dots-inside",
            "directory = ROOT/work/../work/repo",
            true,
        ),
        (
            "with-a-slash-at-the-end",
            "directory = ROOT/work/repo/",
            true,
        ),
    ] {
        table.row(format!("safe-{name}"), move |scene| {
            scene.repository("work/repo");
            scene.link("repo", "work/link");
            let root = scene.root().display().to_string();
            scene.configure(&format!("[safe]\n\t{}\n", text.replace("ROOT", &root)));
            let attack = other(command(["status"])).within("work/repo");
            match is_safe {
                true => attack.succeeds(),
                false => attack.fails(),
            }
        });
    }
    table.row("safe-source-of-a-clone", move |scene| {
        let origin = scene.path("server/origin").display().to_string();
        scene.configure(&format!(
            "[safe]\n\tdirectory = {origin}\n\tdirectory = {origin}/.git\n"
        ));
        other(command(["clone", "../server/origin", "clone"])).succeeds()
    });
    table.row("safe-by-the-repository", move |scene| {
        scene.repository("work/repo");
        scene.append("work/repo/.git/config", "[safe]\n\tdirectory = *\n");
        other(command(["status"])).within("work/repo").fails()
    });
    table.row("bare-repository-in-a-tree", |scene| {
        scene.repository("work/repo");
        scene.git("work/repo", &["init", "-q", "--bare", "bare"]);
        scene.append(
            "work/repo/bare/config",
            &format!("[core]\n\tfsmonitor = {}\n", scene.payload_command()),
        );
        scene.configure("[safe]\n\tbareRepository = explicit\n");
        command(["rev-parse", "--git-dir"])
            .within("work/repo/bare")
            .fails()
    });
    table.row("offer-is-honest", |scene| {
        let url = scene.git_server(Offer::new(scene.ids));
        command(["clone", &url, "clone"]).succeeds()
    });
}

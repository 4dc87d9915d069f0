//! Removed users: credentials that authenticated them before are refused.

use rustix::process::Signal;

use crate::client::{Answer, Connection};
use crate::rows::Table;
use crate::server::wait_until;
use crate::site::shell_as;
use crate::stage::{Stage, Verdict, listing, refused, require};
use crate::wire::{FETCH, PUSH, V2, changes, create, get, no_pack, post, post_head};

pub(super) fn rows(table: &mut Table) {
    table.row("removed-with-a-certificate", |stage| {
        if !stage.secure() {
            return Ok(());
        }
        stage.alone();
        let mut open = stage.connect_with(Some("alice"));
        let answer = ask(&mut open)?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        remove(stage, "alice")?;
        // On the connection that is open, and on a new one.
        refused(&ask(&mut open)?, 401)?;
        refused(&ask(&mut stage.connect_with(Some("alice")))?, 401)?;
        for path in [
            "/api/v1/repositories",
            "/api/v1/users/alice/keys",
            "/metrics",
        ] {
            let answer = open.send(get(path, "")).answer()?;
            require(answer.status >= 400, || format!("{path}: {answer:?}"))?;
        }
        // What everyone may read needs no certificate.
        let body = post("open/p", FETCH, V2, &listing());
        let answer = stage.connect_with(None).send(&body).answer()?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        // One of that name who is added again is the user of the certificate.
        let token = stage.token("root");
        let line = "POST /api/v1/users HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
        let added = stage.ask(format!(
            "{line}{token}content-length: 16\r\n\r\n{{\"name\":\"alice\"}}"
        ))?;
        require(added.status == 201, || format!("{added:?}"))?;
        let answer = ask(&mut open)?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("removed-with-a-certificate-by-hand", |stage| {
        if !stage.secure() {
            return Ok(());
        }
        stage.alone();
        let mut open = stage.connect_with(Some("alice"));
        let answer = ask(&mut open)?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        let config = stage.site.path("server.toml");
        crate::site::manage(&config, &["user", "remove", "alice"]);
        let is_refused = wait_until(|| ask(&mut open).is_ok_and(|answer| answer.status == 401));
        require(is_refused, || "the certificate is still let in".to_owned())
    });
    table.row("certificate-of-nobody", |stage| {
        if !stage.secure() {
            return Ok(());
        }
        // It is configured for a user who never was.
        stage.set("[[certificate]]\nuser = \"zoe\"\nsubject = \"Zoe\"\n");
        stage.set("[[grant]]\nrepository = \"vault/x\"\nusers = [\"zoe\"]\nrole = \"read\"\n");
        refused(&ask(&mut stage.connect_with(None))?, 401)
    });
    table.row("removed-with-a-token", |stage| {
        let token = stage.token("mallory");
        let body = post("own/m", FETCH, &format!("{V2}{token}"), &listing());
        let mut open = stage.connect();
        let answer = open.send(&body).answer()?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        remove(stage, "mallory")?;
        refused(&open.send(&body).answer()?, 401)?;
        refused(
            &open.send(get("/api/v1/repositories", &token)).answer()?,
            401,
        )
    });
    table.row("removed-with-a-key", removed_with_a_key);
    table.row("removed-during-a-push", |stage| {
        during_a_push(stage, |stage| remove(stage, "mallory"))
    });
    table.row("role-taken-during-a-push", |stage| {
        during_a_push(stage, take_role)
    });
    table.row("role-taken-during-a-conversation-over-ssh", |stage| {
        during_a_conversation(stage, take_role)
    });
    table.row("token-replaced-during-a-push", |stage| {
        during_a_push(stage, |stage| {
            let config = stage.site.path("server.toml");
            crate::site::manage(&config, &["token", "--replace", "mallory"]);
            let token = stage.token("mallory");
            let is_refused = wait_until(|| {
                let answer = stage.ask(get("/api/v1/repositories", &token));
                answer.is_ok_and(|answer| answer.status == 401)
            });
            require(is_refused, || "the token is still let in".to_owned())
        })
    });
    let reason = "git pushes to a repository on disk only";
    table.row_on_disk("removed-during-a-push-that-git-takes", reason, |stage| {
        let file = stage.repository("own/m").join("info/grafts");
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        std::fs::write(file, format!("{}\n", stage.site.ids.first)).expect("a file");
        stage.own("own/m", "info/grafts");
        during_a_push(stage, |stage| remove(stage, "mallory"))
    });
    table.row("removed-during-a-push-over-ssh", |stage| {
        if !stage.shell() {
            return Ok(());
        }
        let body = late_push(stage);
        stage.changing_nothing("own/m", |stage| {
            let mut push = stage.ssh().start(&["git-receive-pack 'own/m'"]);
            push.advertisement();
            push.send(&body[..body.len() / 2]);
            remove(stage, "mallory")?;
            push.send(&body[body.len() / 2..]);
            let said = String::from_utf8_lossy(&push.rest()).into_owned();
            require(!said.contains("ok refs/heads/late"), || said)
        })?;
        stage.logged_on("ssh", 403, "your access was withdrawn")
    });
    table.row("removed-during-a-conversation-over-ssh", |stage| {
        during_a_conversation(stage, |stage| remove(stage, "mallory"))
    });
    table.row("shell-with-a-long-command", |stage| {
        stage.server();
        for count in [8192, 100_000] {
            for command in [
                format!("git-upload-pack '{}'", "a".repeat(count)),
                format!("git-upload-pack '{}own/m'", "/".repeat(count)),
                format!("{} 'own/m'", "x".repeat(count)),
                "\\'".repeat(count / 2),
            ] {
                let output = shell_as(&stage.site, "mallory", &command, b"");
                let is_refused = output.status.code() == Some(128) && output.stdout.is_empty();
                require(is_refused, || format!("{output:?}"))?;
            }
        }
        Ok(())
    });
    table.row("removed-with-a-forced-command", |stage| {
        let command = "git-upload-pack 'own/m'";
        stage.server();
        let before = shell_as(&stage.site, "mallory", command, b"0000");
        require(before.status.success(), || format!("{before:?}"))?;
        remove(stage, "mallory")?;
        let after = shell_as(&stage.site, "mallory", command, b"0000");
        require(after.stdout.is_empty() && !after.status.success(), || {
            format!("{after:?}")
        })
    });
}

fn removed_with_a_key(stage: &mut Stage) -> Verdict {
    if !stage.shell() {
        return Ok(());
    }
    let ssh = stage.ssh();
    let control = stage.site.path("control");
    let option = format!("-S{}", control.display());
    let _master = ssh.start(&[&option, "-M", "-N"]);
    let is_there = wait_until(|| control.exists());
    require(is_there, || "there is no connection".to_owned())?;
    let command = "git-upload-archive 'own/m'";
    let shared = [option.as_str(), "-oProxyCommand=false", command];
    let mut before = ssh.start(&shared);
    require(before.begins(), || "a channel is not served".to_owned())?;
    drop(before);
    remove(stage, "mallory")?;
    for arguments in [&shared[..], &[command], &[]] {
        let after = ssh.run(arguments);
        let said = String::from_utf8_lossy(&after.stderr).into_owned();
        let is_refused = !after.status.success() && after.stdout.is_empty();
        require(is_refused && !said.contains("You are mallory"), || said)?;
    }
    Ok(())
}

/// Removes the roles of Mallory from the configuration, and reloads it.
fn take_role(stage: &mut Stage) -> Verdict {
    let config = stage.site.path("server.toml");
    let text = std::fs::read_to_string(&config).map_err(|error| error.to_string())?;
    let text = text.replace("\"mallory\"", "\"nobody\"");
    std::fs::write(&config, text).map_err(|error| error.to_string())?;
    stage.server().signal(Signal::HUP);
    let reloaded = stage
        .server()
        .logged(|event| event["event"] == "reloaded")?;
    require(reloaded["error"].is_null(), || reloaded.to_string())
}

/// Lists refs over SSH, revokes the user's permission, and lists the refs again.
fn during_a_conversation(stage: &mut Stage, lose: impl FnOnce(&mut Stage) -> Verdict) -> Verdict {
    if !stage.shell() {
        return Ok(());
    }
    let command = ["-oSetEnv=GIT_PROTOCOL=version=2", "git-upload-pack 'own/m'"];
    let mut fetch = stage.ssh().start(&command);
    fetch.advertisement();
    fetch.send(&listing());
    let first = String::from_utf8_lossy(&fetch.advertisement()).into_owned();
    require(first.contains("refs/heads/main"), || first)?;
    lose(stage)?;
    fetch.send(&listing());
    let said = String::from_utf8_lossy(&fetch.rest()).into_owned();
    require(!said.contains("refs/heads"), || said)?;
    stage.logged_on("ssh", 403, "your access was withdrawn")
}

/// Returns the body of a push by Mallory.
fn late_push(stage: &Stage) -> Vec<u8> {
    let commands = changes([create(&stage.site.ids.first, "refs/heads/late")]);
    [commands, no_pack()].concat()
}

/// Sends half of a push, revokes the credentials of its user, and sends the rest.
fn during_a_push(stage: &mut Stage, lose: impl FnOnce(&mut Stage) -> Verdict) -> Verdict {
    let body = late_push(stage);
    let head = post_head("own/m", PUSH, &stage.token("mallory"));
    let mut push = stage.connect();
    stage.changing_nothing("own/m", |stage| {
        push.send(format!("{head}content-length: {}\r\n\r\n", body.len()));
        push.send(&body[..body.len() / 2]);
        stage.slots(1)?;
        lose(stage)?;
        let answer = push.send(&body[body.len() / 2..]).answer()?;
        let said = format!("{answer:?} {}", answer.text());
        require(!said.contains("ok refs/heads/late"), || said)
    })?;
    stage.logged(403, "your access was withdrawn")
}

fn ask(connection: &mut Connection) -> Result<Answer, String> {
    connection
        .send(post("vault/x", FETCH, V2, &listing()))
        .answer()
}

/// Removes a user as the administrator.
fn remove(stage: &mut Stage, user: &str) -> Verdict {
    let token = stage.token("root");
    let line = format!("DELETE /api/v1/users/{user} HTTP/1.1\r\nhost: x\r\n{token}\r\n");
    let answer = stage.ask(line)?;
    require(answer.status == 204, || format!("{answer:?}"))
}

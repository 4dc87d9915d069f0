//! Hooks in the configuration. Over each protocol, they decide about pushes like hooks that are
//! files.

use std::process::Output;

use super::Table;
use crate::site::shell_as;
use crate::stage::{Stage, Verdict, require};
use crate::wire::{PUSH, changes, create, no_pack, packet, post, unbanded};

/// The reason for which a store has no such hooks: `store` does not import any, and the rows of
/// class `bucket` attack that.
const NO_HOOKS: &str = "a store has no configuration of hooks";

/// The command of a hook that refuses.
const REFUSING: &str = "echo the policy says no; exit 1";

pub(super) fn table() -> Table {
    let mut table = Table::new("hooks");
    events(&mut table);
    protocols(&mut table);
    broken(&mut table);
    table
}

/// Adds a hook to the configuration of the user who runs the server.
fn configure_server(stage: &Stage, event: &str, command: &str) {
    let file = stage.site.path("home/.gitconfig");
    let file = file.to_str().expect("text");
    for (key, value) in [
        ("hook.policy.event", event),
        ("hook.policy.command", command),
    ] {
        let set = ["config", "-f", file, "--add", key, value];
        stage.site.git(&stage.site.path(""), &set);
    }
}

/// Adds a hook to the configuration of a repository.
fn configure(stage: &mut Stage, repository: &str, event: &str, command: &str) {
    stage.configure(repository, "hook.policy.event", event);
    stage.configure(repository, "hook.policy.command", command);
}

/// Returns the commands of a push of a new branch, with its pack.
fn body(stage: &Stage, name: &str) -> Vec<u8> {
    let commands = changes([create(&stage.site.ids.first, name)]);
    [commands, no_pack()].concat()
}

/// Requires that a push of Mallory to her own repository is refused.
fn refuses(stage: &mut Stage, reason: &str) -> Verdict {
    let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
    stage.refuses_push("mallory", "own/m", &commands, &no_pack(), reason)
}

fn events(table: &mut Table) {
    for (event, reason) in [
        ("pre-receive", "pre-receive hook declined"),
        ("update", "hook declined"),
    ] {
        table.row(format!("{event}-of-the-server"), move |stage| {
            configure_server(stage, event, REFUSING);
            stage.alone();
            let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
            let push = |stage: &mut Stage| stage.push("mallory", "own/m", &commands, &no_pack());
            let text = stage.changing_nothing("own/m", push)?.text();
            let is_refused = text.contains(reason) && text.contains("the policy says no");
            require(is_refused, || text)?;
            // The honest client pushes afterwards.
            std::fs::remove_file(stage.site.path("home/.gitconfig")).expect("it was written");
            Ok(())
        });
        let name = format!("{event}-of-the-repository");
        table.row_on_disk(&name, NO_HOOKS, move |stage| {
            configure(stage, "own/m", event, REFUSING);
            refuses(stage, reason)
        });
    }
    table.row_on_disk("reference-transaction", NO_HOOKS, |stage| {
        let command = "refuse() { test \"$1\" != prepared; }; refuse";
        configure(stage, "own/m", "reference-transaction", command);
        refuses(stage, "hook")
    });
    table.row_on_disk("after-a-push", NO_HOOKS, |stage| {
        let file = stage.site.path("told");
        let command = format!("cat >> {}", file.display());
        for event in ["post-receive", "pre-receive"] {
            let config = stage.site.path("root/own/m.git/config");
            let config = config.to_str().expect("text");
            let set = ["config", "-f", config, "--add", "hook.all.event", event];
            stage.site.git(&stage.site.path(""), &set);
        }
        stage.configure("own/m", "hook.all.command", &command);
        stage.allow("own/m", "refs/heads/x");
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        let text = stage
            .push("mallory", "own/m", &commands, &no_pack())?
            .text();
        require(text.contains("ok refs/heads/x"), || text)?;
        let reported = std::fs::read_to_string(&file).unwrap_or_default();
        require(reported.matches("refs/heads/x").count() == 2, || reported)
    });
    table.row_on_disk("beside-a-file", NO_HOOKS, |stage| {
        // Both decide, in each order of their answers.
        stage.hook("own/m", "pre-receive", "exit 0");
        configure(stage, "own/m", "pre-receive", "exit 1");
        refuses(stage, "pre-receive hook declined")?;
        stage.hook("own/m", "pre-receive", "exit 1");
        stage.configure("own/m", "hook.policy.command", "exit 0");
        refuses(stage, "pre-receive hook declined")
    });
    table.row_on_disk("at-once", NO_HOOKS, |stage| {
        // Each waits for the other one, and the second one refuses.
        let path = |name: &str| stage.site.path(name).display().to_string();
        let (one, two) = (path("one"), path("two"));
        let meet = |own: &str, other: &str, code: u32| {
            format!("touch {own}; i=0; until test -e {other} || test $i = 500; do i=$((i+1)); sleep 0.02; done; \
                     test -e {other} && echo met; exit {code}")
        };
        for (name, command) in [("one", meet(&one, &two, 0)), ("two", meet(&two, &one, 1))] {
            let key = |variable: &str| format!("hook.{name}.{variable}");
            stage.configure("own/m", &key("event"), "pre-receive");
            stage.configure("own/m", &key("command"), &command);
            stage.configure("own/m", &key("parallel"), "true");
        }
        stage.configure("own/m", "hook.jobs", "2");
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        let push = |stage: &mut Stage| stage.push("mallory", "own/m", &commands, &no_pack());
        let text = stage.changing_nothing("own/m", push)?.text();
        let is_refused = text.contains("pre-receive hook declined");
        require(is_refused && text.matches("met").count() == 2, || text)
    });
    table.row_on_disk("one-of-several", NO_HOOKS, |stage| {
        configure(stage, "own/m", "pre-receive", "exit 1");
        stage.configure("own/m", "hook.later.event", "pre-receive");
        stage.configure("own/m", "hook.later.command", "exit 0");
        refuses(stage, "pre-receive hook declined")
    });
}

fn protocols(table: &mut Table) {
    table.row_on_disk("over-ssh", NO_HOOKS, |stage| {
        if !stage.shell() {
            return Ok(());
        }
        configure(stage, "own/m", "pre-receive", REFUSING);
        let body = body(stage, "refs/heads/x");
        let push = |stage: &mut Stage| Ok(stage.ssh().ask("git-receive-pack 'own/m'", &body));
        let said = stage.changing_nothing("own/m", push)?;
        declined(&said)
    });
    table.row_on_disk("over-a-forced-command", NO_HOOKS, |stage| {
        configure(stage, "own/m", "pre-receive", REFUSING);
        let body = body(stage, "refs/heads/x");
        let push = |stage: &mut Stage| {
            let command = "git-receive-pack 'own/m'";
            Ok(shell_as(&stage.site, "mallory", command, &body))
        };
        let Output { stdout, .. } = stage.changing_nothing("own/m", push)?;
        declined(&stdout)
    });
    table.row_on_disk("over-the-daemon", NO_HOOKS, |stage| {
        stage.daemon("push = \"always\"\n");
        let grant = "repository = \"own/m\"\nusers = [\"anonymous\"]\nrole = \"write\"";
        stage.set(&format!("[[grant]]\n{grant}"));
        configure(stage, "own/m", "pre-receive", REFUSING);
        let body = body(stage, "refs/heads/x");
        let push = |stage: &mut Stage| {
            let mut daemon = stage.connect_git();
            let line = format!("{PUSH} /own/m\0host=x\0");
            daemon.send(packet(line)).send(&body).shut();
            daemon.ends()
        };
        let said = stage.changing_nothing("own/m", push)?;
        declined(&said)
    });
    table.row_on_disk("without-a-user", NO_HOOKS, |stage| {
        let grant = "repository = \"own/m\"\nusers = [\"anonymous\"]\nrole = \"write\"";
        stage.set(&format!("[[grant]]\n{grant}"));
        configure(stage, "own/m", "update", REFUSING);
        let body = body(stage, "refs/heads/x");
        let push = |stage: &mut Stage| stage.ask(post("own/m", PUSH, "", &body));
        let answer = stage.changing_nothing("own/m", push)?;
        declined(&answer.body)
    });
}

/// Requires that the report of a push states the refusal by a hook.
fn declined(bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(&unbanded(bytes)).into_owned();
    require(text.contains("hook declined"), || text)
}

fn broken(table: &mut Table) {
    for (name, key, value) in [
        ("without-a-command", "hook.other.event", "pre-receive"),
        (
            "without-a-command-of-another-event",
            "hook.other.event",
            "update",
        ),
        (
            "with-the-name-of-an-event",
            "hook.update.event",
            "pre-receive",
        ),
    ] {
        table.row_on_disk(name, NO_HOOKS, move |stage| {
            // git dies of it, too.
            stage.configure("own/m", key, value);
            let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
            let push = |stage: &mut Stage| {
                let answer = stage.push("mallory", "own/m", &commands, &no_pack());
                Ok(answer.map(|answer| answer.text()).unwrap_or_default())
            };
            let text = stage.changing_nothing("own/m", push)?;
            require(!text.contains("ok refs/heads/x"), || text)
        });
    }
    table.row_on_disk("in-a-shared-repository", NO_HOOKS, |stage| {
        // Its files have permissions that only git sets, so the push goes there, or nowhere.
        stage.configure("own/m", "core.sharedRepository", "group");
        stage.allow("own/m", "refs/heads/x");
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        let text = stage
            .push("mallory", "own/m", &commands, &no_pack())?
            .text();
        require(text.contains("ok refs/heads/x"), || text)?;
        let file = stage.site.path("root/own/m.git/refs/heads/x");
        let found = std::fs::metadata(file).map_err(|error| error.to_string())?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions());
        require(mode & 0o060 == 0o060, || format!("{mode:o}"))
    });
}

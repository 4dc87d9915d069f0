//! Hostile content of a bucket, from an attacker who may write to the bucket but does not run the
//! servers.

mod manifests;

use std::process::Command;

use super::Table;
use crate::site::pronto;
use crate::stage::{Stage, Verdict, listing, require};
use crate::stored::Behind;
use crate::wire::{PUSH, changes, create, no_pack, packets, post, unbanded};

pub(super) fn table() -> Table {
    let mut table = Table::new("bucket");
    configuration(&mut table);
    copies(&mut table);
    manifests::rows(&mut table);
    table
}

/// Returns a repository configuration that would run programs in each process that reads it.
fn hostile(stage: &Stage) -> String {
    let run = format!("touch {}", stage.site.path("ran").display());
    std::fs::write(
        stage.site.path("included"),
        format!("[tar \"y\"]\n\tcommand = \"{run}\"\n\tremote = true\n"),
    )
    .expect("a file");
    let hooks = stage.site.path("evil-hooks");
    std::fs::create_dir_all(&hooks).expect("a directory");
    for name in ["pre-receive", "post-receive", "reference-transaction"] {
        test_support::write_program(&hooks.join(name), &format!("#!/bin/sh\n{run}\n"));
    }
    format!(
        "[tar \"x\"]\n\tcommand = \"{run}; cat\"\n\tremote = true\n\
         [tar \"tar.gz\"]\n\tcommand = \"{run}\"\n\tremote = true\n\
         [include]\n\tpath = {included}\n\
         [includeIf \"gitdir:/**\"]\n\tpath = {included}\n\
         [core]\n\thooksPath = {hooks}\n\tfsmonitor = \"{run}\"\n\tsshCommand = \"{run}\"\n\
         [hook \"a\"]\n\tevent = pre-receive\n\tevent = update\n\tcommand = \"{run}\"\n\
         [uploadpack]\n\tpackObjectsHook = \"{run}\"\n\
         [receive \"fsck\"]\n\tskipList = {included}\n\
         [gpg]\n\tprogram = \"{run}\"\n\
         [filter \"f\"]\n\tsmudge = \"{run}\"\n\
         [transfer]\n\thideRefs = refs/hidden\n",
        included = stage.site.path("included").display(),
        hooks = hooks.display(),
    )
}

/// Publishes the repositories, of which `repository` has a hostile configuration.
fn attack(stage: &mut Stage, behind: &Behind, repository: &str) {
    stage.site.publish();
    behind.force_config(repository, &hostile(stage));
}

fn nothing_ran(stage: &Stage) -> Verdict {
    require(!stage.site.path("ran").exists(), || {
        "a program of the bucket ran".to_owned()
    })
}

fn configuration(table: &mut Table) {
    table.row_in_a_store("formats-of-archives", |stage, behind| {
        attack(stage, behind, "open/p");
        let token = stage.token("mallory");
        for format in ["x", "y", "tar.gz"] {
            let arguments = packets([
                format!("argument --format={format}\n"),
                "argument main\n".to_owned(),
            ]);
            let answer = stage.ask(post("open/p", "git-upload-archive", &token, &arguments))?;
            let text = String::from_utf8_lossy(&unbanded(&answer.body)).into_owned();
            let is_unknown = text.contains("Unknown archive format");
            require(is_unknown || format == "tar.gz", || text)?;
        }
        let list = packets(["argument --list\n"]);
        let answer = stage.ask(post("open/p", "git-upload-archive", &token, &list))?;
        let text = String::from_utf8_lossy(&unbanded(&answer.body)).into_owned();
        require(text.contains("tar") && !text.contains("x\n"), || text)?;
        nothing_ran(stage)
    });
    table.row_in_a_store("programs-of-a-fetch", |stage, behind| {
        attack(stage, behind, "open/p");
        let id = stage.site.ids.second.clone();
        let answer = stage.fetch(None, "open/p", &crate::wire::fetch(&[&id]))?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        // What a manifest may set is obeyed.
        let answer = stage.fetch(None, "open/p", &listing())?;
        let text = answer.text();
        require(
            text.contains("refs/heads/main") && !text.contains("refs/hidden"),
            || text,
        )?;
        nothing_ran(stage)
    });
    table.row_in_a_store("programs-of-a-push", |stage, behind| {
        attack(stage, behind, "own/m");
        stage.allow("own/m", "refs/heads/x");
        let commands = changes([create(&stage.site.ids.first, "refs/heads/x")]);
        let text = stage
            .push("mallory", "own/m", &commands, &no_pack())?
            .text();
        require(text.contains("ok refs/heads/x"), || text)?;
        nothing_ran(stage)
    });
    table.row_in_a_store("configuration-of-an-export", |stage, behind| {
        attack(stage, behind, "open/p");
        let url = format!("file://{}", stage.site.path("store").display());
        let target = stage.site.path("exported-by-hand");
        let target = target.to_str().expect("text");
        store(stage, &["export", &url, "open/p", target])?;
        let config = std::fs::read_to_string(format!("{target}/config"));
        let config = config.map_err(|error| error.to_string())?;
        let is_clean = ["tar", "include", "hook", "filter", "gpg", "skip", "touch"]
            .iter()
            .all(|word| !config.contains(word));
        require(
            is_clean && config.to_lowercase().contains("hiderefs"),
            || config,
        )?;
        nothing_ran(stage)
    });
    table.row_in_a_store("configuration-of-a-copy", |stage, behind| {
        attack(stage, behind, "open/p");
        let url = format!("file://{}", stage.site.path("store").display());
        store(stage, &["copy", &url, "open/p", &url, "open/c"])?;
        let listed = store(stage, &["config", &url, "open/c"])?;
        let of_original = store(stage, &["config", &url, "open/p"])?;
        drop_copy(stage);
        let expected = "transfer.hiderefs=refs/hidden\n";
        require(listed == expected && of_original == expected, || {
            format!("{listed}{of_original}")
        })
    });
    table.row_in_a_store("malformed-configuration", |stage, behind| {
        stage.site.publish();
        behind.force_config("open/p", "[core\n\tbare");
        let answer = stage.fetch(None, "open/p", &listing())?;
        require(answer.status == 500, || format!("{answer:?}"))?;
        // So that it can be checked afterwards.
        behind.force_config("open/p", "[transfer]\n\thideRefs = refs/hidden\n");
        Ok(())
    });
}

/// Runs `pronto store`. Returns its output.
fn store(stage: &Stage, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(pronto())
        .arg("store")
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", stage.site.path("home"))
        .env("TMPDIR", stage.site.path("tmp"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("it starts");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{arguments:?}: {output:?}")),
    }
}

/// Copies `vault/x` to `open/c` in the bucket, and adds a different generation with the same number
/// to each.
fn copy(stage: &mut Stage, behind: &Behind) -> String {
    stage.site.publish();
    behind.copy_objects("vault/x", "open/c");
    let secret = stage.site.ids.vault.clone();
    behind.set_ref("vault/x", "refs/heads/plan", &secret);
    behind.set_ref("open/c", "refs/heads/shown", &stage.site.ids.first.clone());
    secret
}

/// Returns the names of the refs that a client sees.
fn refs(stage: &mut Stage, user: Option<&str>, name: &str) -> Result<String, String> {
    let answer = stage.fetch(user, name, &listing())?;
    require(answer.status == 200, || format!("{answer:?}"))?;
    Ok(answer.text())
}

fn copies(table: &mut Table) {
    table.row_in_a_store("copy-after-its-original", |stage, behind| {
        copy(stage, behind);
        let private = refs(stage, Some("alice"), "vault/x")?;
        require(private.contains("refs/heads/plan"), || private)?;
        let public = refs(stage, None, "open/c")?;
        let is_own = public.contains("refs/heads/shown") && !public.contains("refs/heads/plan");
        drop_copy(stage);
        require(is_own, || public)
    });
    table.row_in_a_store("original-after-its-copy", |stage, behind| {
        copy(stage, behind);
        let public = refs(stage, None, "open/c")?;
        let private = refs(stage, Some("alice"), "vault/x")?;
        drop_copy(stage);
        require(public.contains("refs/heads/shown"), || public)?;
        let is_own = private.contains("refs/heads/plan") && !private.contains("refs/heads/shown");
        require(is_own, || private)
    });
    table.row_in_a_store("older-copy", |stage, behind| {
        copy(stage, behind);
        let more = stage.site.ids.vault.clone();
        behind.set_ref("vault/x", "refs/heads/later", &more);
        let private = refs(stage, Some("alice"), "vault/x")?;
        let public = refs(stage, None, "open/c")?;
        drop_copy(stage);
        require(private.contains("refs/heads/later"), || private)?;
        let is_own = !public.contains("refs/heads/plan") && !public.contains("refs/heads/later");
        require(is_own, || public)
    });
    table.row_in_a_store("push-to-a-copy", |stage, behind| {
        copy(stage, behind);
        let grant = "repository = \"open/c\"\nusers = [\"mallory\"]\nrole = \"write\"";
        stage.set(&format!("[[grant]]\n{grant}"));
        refs(stage, Some("alice"), "vault/x")?;
        let token = stage.token("mallory");
        let answer = stage.ask(crate::wire::get(
            &crate::wire::refs_of("open/c", PUSH),
            &token,
        ))?;
        let text = answer.text();
        drop_copy(stage);
        require(
            text.contains("refs/heads/shown") && !text.contains("refs/heads/plan"),
            || text,
        )
    });
}

/// Removes the copy, and the changes of the row in the original.
fn drop_copy(stage: &mut Stage) {
    stage.allow("vault/x", "refs/heads/plan");
    stage.allow("vault/x", "refs/heads/later");
    let _ = std::fs::remove_dir_all(stage.site.path("store/open/c.git"));
}

//! Manifests with changed words and lines and a correct checksum, behind a running server and
//! `pronto store`. `pronto-store/tests/it/hostile` tries every change without a server.

use std::path::{Path, PathBuf};

use super::{nothing_ran, store};
use crate::form::{Form, Mutant};
use crate::rows::Table;
use crate::stage::{Stage, Verdict, listing, require};
use crate::stored::Behind;
use crate::wire::fetch;

/// The number of changed manifests, each in a repository of its own.
const COPIES: usize = 48;

/// The number of copies that are exported, each by a process of its own.
const EXPORTED: usize = 12;

pub(super) fn rows(table: &mut Table) {
    table.row_in_a_store("manifests", |stage, behind| {
        stage.site.publish();
        super::attack(stage, behind, "open/p");
        stage.server();
        let names = make_copies(stage, behind);
        let served = serve_all(stage, &names);
        let managed = manage_all(stage, &names);
        for name in &names {
            let _ = std::fs::remove_dir_all(place(stage, name));
        }
        served?;
        managed?;
        nothing_ran(stage)
    });
}

fn place(stage: &Stage, name: &str) -> PathBuf {
    stage.site.path(format!("store/{name}.git"))
}

/// Returns the newest manifest of a repository.
fn newest(repository: &Path) -> PathBuf {
    let entries = std::fs::read_dir(repository.join("generation"));
    let entries = entries.expect("a directory").flatten();
    let newest = entries.map(|entry| entry.path()).min();
    newest.expect("a generation")
}

/// Copies a repository several times, and changes the manifest of each copy differently. Returns
/// the names of the copies.
fn make_copies(stage: &Stage, behind: &Behind) -> Vec<String> {
    let read = |name: &str| {
        let bytes = std::fs::read(newest(&place(stage, name)));
        Form::parse(&bytes.expect("a manifest"))
    };
    let mut mutants: Vec<Mutant> = Vec::new();
    read("open/p").each(&read("vault/x"), |mutant| mutants.push(mutant));
    let step = (mutants.len() / COPIES).max(1);
    let mut names = Vec::new();
    for (at, mutant) in mutants.iter().step_by(step).enumerate() {
        let name = format!("open/m{at}");
        behind.copy_objects("open/p", &name);
        std::fs::write(newest(&place(stage, &name)), &mutant.bytes).expect("a file");
        names.push(name);
    }
    names
}

/// Lists and fetches each copy anonymously. No response contains content of the private repository.
fn serve_all(stage: &mut Stage, names: &[String]) -> Verdict {
    let (secret, known) = (stage.site.ids.vault.clone(), stage.site.ids.second.clone());
    for name in names {
        let answer = stage.fetch(None, name, &listing())?;
        let text = answer.text();
        let is_known = matches!(answer.status, 200 | 401 | 404 | 500);
        let is_own = !text.contains(&secret) && !text.contains("what only");
        require(is_known && is_own, || format!("{name}: {answer:?} {text}"))?;
        for id in [&known, &secret] {
            let answer = stage.fetch(None, name, &fetch(&[id]))?;
            let is_sent = answer.body.windows(4).any(|word| word == b"PACK");
            require(!is_sent || id == &known, || format!("{name} has {id}"))?;
        }
    }
    // The other repositories are served.
    let answer = stage.fetch(None, "open/p", &listing())?;
    require(answer.text().contains("refs/heads/main"), || answer.text())
}

/// Verifies and exports copies with `pronto store`, which must name the invalid object.
fn manage_all(stage: &Stage, names: &[String]) -> Verdict {
    let url = format!("file://{}", stage.site.path("store").display());
    let step = (names.len() / EXPORTED).max(1);
    for name in names.iter().step_by(step) {
        let target = stage
            .site
            .path(format!("exported-{}", name.replace('/', "-")));
        let target = target.to_str().expect("text");
        for arguments in [&["export", &url, name, target][..], &["verify", &url, name]] {
            let Err(said) = store(stage, arguments) else {
                continue;
            };
            let names_object = ["generation", "pack/", "refs/", "graph/", "no repository"];
            let is_clear = names_object.iter().any(|word| said.contains(word));
            let is_safe = !said.contains("panicked") && !said.contains("what only");
            require(is_clear && is_safe, || said)?;
        }
        let config = std::fs::read_to_string(format!("{target}/config")).unwrap_or_default();
        require(!config.contains("touch"), || config.clone())?;
    }
    Ok(())
}

//! Checks rules that clippy cannot check: layers, module groups, import cycles, sizes, signatures,
//! the library's API, documents, dependencies, messages, banned phrases, repeated type names and large files.

mod api;
mod dependencies;
mod exemptions;
mod layers;
mod links;
mod messages;
mod metadata;
mod modules;
mod names;
mod rooms;
mod signatures;
mod source;
mod text;
mod tracked;
mod words;

use std::path::Path;

use exemptions::Exemptions;
pub(crate) use links::documents;
use metadata::WorkspaceMetadata;
use source::SourceFile;
use words::BannedWords;

const EXEMPTIONS: &str = "xtask/exemptions.txt";

/// Returns all problems, one line each.
pub(crate) fn run(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    match WorkspaceMetadata::read(root) {
        Ok(metadata) => {
            layers::check(root, &metadata, &mut problems);
            dependencies::check(root, &metadata, &mut problems);
        }
        Err(error) => problems.push(error),
    }
    links::check(root, &mut problems);
    tracked::check(root, &mut problems);
    let sources = source::all(root);
    for source in &sources {
        text::check(source, &mut problems);
    }
    rooms::check(root, &sources, &mut problems);
    api::check(&sources, &mut problems);
    for note in rooms::large_crates(&sources) {
        println!("{note}");
    }
    let exemptions = Exemptions::read(&root.join(EXEMPTIONS), &mut problems);
    let found = findings(root, &sources, &mut problems);
    exemptions.compare(&found, &mut problems);
    problems
}

/// Lowers each exemption to the current size of its violation. Never adds an exemption.
pub(crate) fn ratchet(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let path = root.join(EXEMPTIONS);
    let exemptions = Exemptions::read(&path, &mut problems);
    let found = findings(root, &source::all(root), &mut problems);
    let left = exemptions.lowered(&found);
    if let Err(error) = std::fs::write(&path, left) {
        problems.push(format!("cannot write {EXEMPTIONS}: {error}"));
    }
    problems
}

fn findings(
    root: &Path,
    sources: &[SourceFile],
    problems: &mut Vec<String>,
) -> Vec<exemptions::Finding> {
    let words = BannedWords::read(root, problems);
    sources
        .iter()
        .flat_map(|source| {
            source
                .long_parts()
                .into_iter()
                .chain(messages::findings(source))
        })
        .chain(rooms::findings(sources))
        .chain(names::findings(sources))
        .chain(signatures::findings(sources))
        .chain(words.findings(root, sources))
        .collect()
}

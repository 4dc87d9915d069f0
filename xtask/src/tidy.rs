//! What clippy cannot see: layers, groups, knots, sizes, documents, dependencies, and the words of messages.

mod dependencies;
mod exemptions;
mod layers;
mod links;
mod messages;
mod metadata;
mod modules;
mod rooms;
mod source;
mod text;

use std::path::Path;

use exemptions::Exemptions;
pub(crate) use links::documents;
use metadata::Metadata;
use source::Source;

const EXEMPTIONS: &str = "xtask/exemptions.txt";

/// Everything that is not as it should be, a line each.
pub(crate) fn run(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    match Metadata::read(root) {
        Ok(metadata) => {
            layers::check(root, &metadata, &mut problems);
            dependencies::check(root, &metadata, &mut problems);
        }
        Err(error) => problems.push(error),
    }
    links::check(root, &mut problems);
    let sources = source::all(root);
    for source in &sources {
        text::check(source, &mut problems);
    }
    rooms::check(root, &sources, &mut problems);
    let exemptions = Exemptions::read(&root.join(EXEMPTIONS), &mut problems);
    exemptions.compare(&findings(&sources), &mut problems);
    problems
}

/// Lowers the exemptions to what is left of them. Never adds one.
pub(crate) fn ratchet(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let path = root.join(EXEMPTIONS);
    let exemptions = Exemptions::read(&path, &mut problems);
    let left = exemptions.lowered(&findings(&source::all(root)));
    if let Err(error) = std::fs::write(&path, left) {
        problems.push(format!("cannot write {EXEMPTIONS}: {error}"));
    }
    problems
}

fn findings(sources: &[Source]) -> Vec<exemptions::Finding> {
    sources
        .iter()
        .flat_map(|source| {
            source
                .long_parts()
                .into_iter()
                .chain(messages::findings(source))
        })
        .chain(rooms::findings(sources))
        .collect()
}

//! `cargo xtask exports DIRECTORY`: lists the types that users of crate `pronto` meet and cannot name.
//!
//! rustdoc writes the page of an exported type below `pronto/`, even if a lower crate defines the type.
//! A link from there to a page of a lower crate is thus a type that a signature or a field contains,
//! and that `pronto` does not export.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The prefixes of the pages of types.
const TYPES: &[&str] = &["enum.", "struct.", "trait.", "type.", "union."];

/// Returns the problems of the pages in `directory`, which `cargo doc --no-deps` has made.
pub(crate) fn run(directory: &Path) -> Vec<String> {
    let mut pages = Vec::new();
    if let Err(error) = collect(&directory.join("pronto"), &mut pages) {
        return vec![format!("exports: {}: {error}", directory.display())];
    }
    let mut missing = BTreeMap::<String, PathBuf>::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap_or_default();
        for target in links(&text).filter_map(type_of) {
            missing.entry(target).or_insert_with(|| page.clone());
        }
    }
    missing
        .iter()
        .map(|(target, page)| format!("exports: {target} is not exported ({})", page.display()))
        .collect()
}

fn collect(directory: &Path, pages: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|ending| ending == "html") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(())
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("href=\"").skip(1);
    parts.filter_map(|part| part.split('"').next())
}

/// Returns the name of the type to whose page `link` leads, if a crate below `pronto` defines it.
fn type_of(link: &str) -> Option<String> {
    let page = link.split('#').next()?.trim_start_matches("../");
    let parts: Vec<&str> = page.split('/').collect();
    let (first, last) = (parts.first()?, parts.last()?);
    let kind = TYPES.iter().find(|kind| last.starts_with(**kind))?;
    let name = last.strip_prefix(kind)?.strip_suffix(".html")?;
    let modules = &parts[..parts.len() - 1];
    (link.starts_with("../") && first.starts_with("pronto_"))
        .then(|| format!("{}::{name}", modules.join("::")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_lower_crates_are_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let module = directory.path().join("pronto/add");
        std::fs::create_dir_all(&module).expect("a directory");
        let page = "<a href=\"enum.Event.html\"><a href=\"../../pronto_a/b/struct.Lost.html#x\">\
                    <a href=\"../../src/pronto_a/b.rs.html\"><a href=\"../../pronto_a/b/fn.c.html\">";
        std::fs::write(module.join("index.html"), page).expect("a page");
        let found = run(directory.path());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("exports: pronto_a::b::Lost is not exported"));
        assert_eq!(run(&directory.path().join("nowhere")).len(), 1);
    }
}

//! Checks the links between documents: each must lead to a file of the tree, and to a heading in
//! that file.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Directories without documents of the project.
const SKIPPED: &[&str] = &["target", ".git", "data", "corpus", "artifacts"];

/// Reports each broken relative link of a Markdown file.
pub(super) fn check(root: &Path, problems: &mut Vec<String>) {
    for path in documents(root) {
        // The links of these sources are checked in the generated pages in `docs/reference`.
        if path.starts_with("docs/commands") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else {
            continue;
        };
        for link in links(&text) {
            if let Some(problem) = broken(root, &path, &link) {
                problems.push(format!("{}: {problem}", path.display()));
            }
        }
    }
}

/// Returns all Markdown files, relative to the top of the workspace, sorted.
pub(crate) fn documents(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(root, Path::new(""), &mut found);
    found.sort();
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let path = folder.join(&name);
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && !SKIPPED.iter().any(|skipped| name == *skipped) {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// Returns the targets of all links and images.
fn links(text: &str) -> Vec<String> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(dest_url.into_string())
            }
            _ => None,
        })
        .collect()
}

/// Returns the error of a link in the document `from`, if it has one.
fn broken(root: &Path, from: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = match link.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (link, None),
    };
    let target = match file {
        "" => from.to_owned(),
        file => normal(&from.parent().unwrap_or(Path::new("")).join(file)),
    };
    if !root.join(&target).exists() {
        return Some(format!("the link '{link}' leads to no file"));
    }
    let anchor = anchor?;
    let text = std::fs::read_to_string(root.join(&target)).unwrap_or_default();
    (!anchors(&text).contains(anchor))
        .then(|| format!("the link '{link}' leads to no heading of that file"))
}

/// Returns `path` without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Returns the anchors of a document: its headings in lower case, with hyphens for spaces.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = heading.take().unwrap_or_default().to_lowercase();
                let kept = heading
                    .chars()
                    .filter(|&c| c.is_alphanumeric() || c == ' ' || c == '-' || c == '_');
                anchors.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
            }
            _ => {}
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_anchors() {
        let found = anchors("# One `two`: three\n\n## A-b\n");
        assert!(found.contains("one-two-three"));
        assert!(found.contains("a-b"));
    }

    #[test]
    fn links_to_nothing_are_named() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let from = Path::new("src/x.md");
        assert!(broken(root, from, "../Cargo.toml").is_none());
        assert!(broken(root, from, "https://example.com/x").is_none());
        assert!(broken(root, from, "../nothing.md").is_some());
    }
}

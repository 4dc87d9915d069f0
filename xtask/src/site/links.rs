//! Checks the links of the built site: a relative link must lead to a file, and its fragment to an
//! element with that id.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The properties of a page that the check needs.
#[derive(Debug, Default)]
struct SitePage {
    links: BTreeSet<String>,
    ids: BTreeSet<String>,
}

/// Returns the dead links below `site`, one on each line.
pub(crate) fn dead(site: &Path) -> Result<Vec<String>, String> {
    let mut pages = BTreeMap::new();
    let mut files = BTreeSet::new();
    collect(site, site, &mut pages, &mut files)
        .map_err(|error| format!("cannot read {}: {error}", site.display()))?;
    let mut dead = Vec::new();
    for (from, page) in &pages {
        for link in &page.links {
            if leads_nowhere(from, link, &pages, &files) {
                dead.push(format!("{}: dead link '{link}'", from.display()));
            }
        }
    }
    Ok(dead)
}

fn collect(
    site: &Path,
    folder: &Path,
    pages: &mut BTreeMap<PathBuf, SitePage>,
    files: &mut BTreeSet<PathBuf>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(site, &path, pages, files)?;
            continue;
        }
        let name = path.strip_prefix(site).unwrap_or(&path).to_owned();
        // The print page contains all other pages, and so repeats their links and ids under another
        // URL.
        let is_page = path
            .extension()
            .is_some_and(|extension| extension == "html");
        if is_page && name != Path::new("print.html") && name != Path::new("404.html") {
            let text = std::fs::read_to_string(&path)?;
            pages.insert(name.clone(), parse(&text));
        }
        files.insert(name);
    }
    Ok(())
}

fn parse(text: &str) -> SitePage {
    let values = |name: &str| {
        let opening = format!(" {name}=\"");
        let parts = text.split(opening.as_str()).skip(1);
        let values = parts.filter_map(|part| part.split_once('"').map(|(value, _)| value));
        values
            .map(|value| value.replace("&amp;", "&"))
            .collect::<BTreeSet<_>>()
    };
    let mut links = values("href");
    links.extend(values("src"));
    SitePage {
        links,
        ids: values("id"),
    }
}

fn leads_nowhere(
    from: &Path,
    link: &str,
    pages: &BTreeMap<PathBuf, SitePage>,
    files: &BTreeSet<PathBuf>,
) -> bool {
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let has_scheme = path
        .split_once(':')
        .is_some_and(|(scheme, _)| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    if has_scheme || path.starts_with("//") {
        return false;
    }
    let target = match path.is_empty() {
        true => from.to_owned(),
        false => resolve(from.parent().unwrap_or(Path::new("")), path),
    };
    let target = match files.contains(&target) {
        true => target,
        false => target.join("index.html"),
    };
    if !files.contains(&target) && target != Path::new("print.html") {
        return true;
    }
    let page = pages.get(&target);
    !fragment.is_empty() && page.is_some_and(|page| !page.ids.contains(fragment))
}

/// Resolves `path` relative to `folder`, without `.` and `..`.
fn resolve(folder: &Path, path: &str) -> PathBuf {
    let mut target = PathBuf::new();
    for component in folder.join(path).components() {
        match component {
            Component::ParentDir => _ = target.pop(),
            Component::Normal(name) => target.push(name),
            _ => {}
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_are_found() {
        let site = std::env::temp_dir().join(format!("pronto-site-{}", std::process::id()));
        std::fs::create_dir_all(site.join("docs")).expect("a directory");
        let first = r##"<h1 id="top"><a href="docs/second.html#here">x</a> <a href="#top">x</a>
            <a href="https://example.com/">x</a> <img src="docs/none.svg"></h1>"##;
        std::fs::write(site.join("index.html"), first).expect("a file");
        let second =
            r##"<h2 id="here"><a href="../index.html#none">x</a> <a href="..">x</a></h2>"##;
        std::fs::write(site.join("docs/second.html"), second).expect("a file");
        let found = dead(&site);
        std::fs::remove_dir_all(&site).expect("it was there");
        assert_eq!(
            found.expect("it can be read"),
            [
                "docs/second.html: dead link '../index.html#none'",
                "index.html: dead link 'docs/none.svg'",
            ]
        );
    }
}

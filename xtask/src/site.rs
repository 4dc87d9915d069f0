//! `cargo xtask site [DIRECTORY]`: builds the documents as one searchable site with `mdbook`, and
//! checks its links.

mod links;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A part of the site: its title, and its pages in order.
struct SitePart {
    title: &'static str,
    pages: Vec<PathBuf>,
}

/// Builds the site into `target/site` or into the given directory, and returns the dead links.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Vec<String> {
    let dead = build(root, arguments).and_then(|target| links::dead(&target));
    match dead {
        Ok(dead) => dead.iter().map(|line| format!("site: {line}")).collect(),
        Err(message) => vec![format!("site: {message}")],
    }
}

fn build(root: &Path, arguments: &[&str]) -> Result<PathBuf, String> {
    let target = match arguments {
        [] => root.join("target/site"),
        [directory] => std::path::absolute(directory).map_err(|error| error.to_string())?,
        _ => return Err("too many arguments".to_owned()),
    };
    let work = root.join("target/site-source");
    let _ = std::fs::remove_dir_all(&work);
    let pages = work.join("src");
    for file in files(root) {
        let to = pages.join(&file);
        let made = std::fs::create_dir_all(to.parent().unwrap_or(&pages));
        made.and_then(|()| copy(&root.join(&file), &to))
            .map_err(|error| format!("cannot copy {}: {error}", file.display()))?;
    }
    write(&pages.join("SUMMARY.md"), &summary(root))?;
    write(&work.join("book.toml"), SETTINGS)?;
    let status = Command::new("mdbook")
        .arg("build")
        .arg("--dest-dir")
        .args([&target, &work])
        .status()
        .map_err(|error| {
            format!("cannot run mdbook: {error}; 'cargo install --locked mdbook' installs it")
        })?;
    if !status.success() {
        return Err(format!("mdbook failed with {status}"));
    }
    println!("{}", target.join("index.html").display());
    Ok(target)
}

const SETTINGS: &str = "[book]\ntitle = \"pronto\"\nlanguage = \"en\"\n\n\
    [output.html]\nno-section-label = true\n\n[output.html.fold]\nenable = true\nlevel = 0\n";

/// Copies a file. The page of `README.md` becomes `index.html`, so links to `README.md` are
/// rewritten.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if from.extension().is_none_or(|extension| extension != "md") {
        return std::fs::copy(from, to).map(|_| ());
    }
    let text = std::fs::read_to_string(from)?;
    let text = text
        .replace("README.md)", "index.md)")
        .replace("README.md#", "index.md#");
    std::fs::write(to, text)
}

/// Returns all files of the site: documents, results of measurements, and their plots.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = crate::tidy::documents(root)
        .into_iter()
        .filter(|path| !path.starts_with("docs/commands"))
        .collect();
    for folder in ["bench/results", "docs"] {
        files.extend(listed(root, folder, "svg"));
    }
    files.push(PathBuf::from("docs/settings.tsv"));
    files.extend(["LICENSE-MIT", "LICENSE-APACHE"].map(PathBuf::from));
    files
}

/// Returns the files of a directory with an extension, sorted.
fn listed(root: &Path, folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join(folder));
    let mut found: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(Path::new(folder).join(entry.ok()?.file_name())))
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    found.sort();
    found
}

/// Returns the table of contents.
fn summary(root: &Path) -> String {
    let named = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    let mut guide = named(&["docs/security.md", "SECURITY.md", "CHANGELOG.md"]);
    guide.splice(
        0..0,
        listed(root, "docs", "md")
            .into_iter()
            .filter(|path| path != Path::new("docs/security.md")),
    );
    let by_hand = ["docs/reference/settings.md", "docs/reference/json.md"].map(Path::new);
    guide.extend(by_hand.iter().map(|path| (*path).to_owned()));
    let mut reference = listed(root, "docs/reference", "md");
    reference.retain(|path| !by_hand.contains(&path.as_path()));
    let (overview, commands) = reference
        .into_iter()
        .partition::<Vec<_>, _>(|path| path.ends_with("README.md"));
    let mut contributing = named(&["ARCHITECTURE.md", "CONTRIBUTING.md"]);
    contributing.extend(listed(root, "docs/design", "md"));
    contributing.extend(listed(root, "docs/decisions", "md"));
    let mut results = named(&["bench/README.md", "bench/reports.md"]);
    results.extend(listed(root, "bench/results", "md"));
    let parts = [
        SitePart {
            title: "Guide",
            pages: guide,
        },
        SitePart {
            title: "Commands",
            pages: overview.into_iter().chain(commands).collect(),
        },
        SitePart {
            title: "Design",
            pages: contributing,
        },
        SitePart {
            title: "Measurements",
            pages: results,
        },
    ];
    let mut text = "# Summary\n\n[pronto](README.md)\n".to_owned();
    for part in parts {
        // Writing to a string does not fail.
        let _ = write!(text, "\n# {}\n\n", part.title);
        for page in part.pages {
            let _ = writeln!(text, "- [{}]({})", title(root, &page), page.display());
        }
    }
    text
}

/// Returns the first heading of a document, or its file name.
fn title(root: &Path, page: &Path) -> String {
    let text = std::fs::read_to_string(root.join(page)).unwrap_or_default();
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    let name = page
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    heading.map_or(name, |heading| heading.replace(['[', ']'], ""))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

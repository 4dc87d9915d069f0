//! The files that packages install, below a prefix such as `/usr` or `~/.local`.

use std::path::Path;

use super::PackageParts;
use super::tree::{PackageTree, gzip};

/// The places that differ between packages. Paths begin below the top of the package.
pub(super) struct PackageLayout {
    /// The directory around `bin`, `lib` and `share`, with a slash at its end.
    pub(super) prefix: &'static str,
    /// The prefix on a machine with this package, for systemd.
    pub(super) installed: &'static str,
    /// The directory of functions of zsh below the prefix.
    pub(super) zsh: &'static str,
}

/// A Debian package.
pub(super) const DEBIAN: PackageLayout = PackageLayout {
    prefix: "usr/",
    installed: "/usr",
    zsh: "share/zsh/vendor-completions",
};

/// A tree that is unpacked below any prefix.
pub(super) const PLAIN: PackageLayout = PackageLayout {
    prefix: "",
    installed: "/usr/local",
    zsh: "share/zsh/site-functions",
};

/// The prefix in `contrib/pronto-server.service`.
const UNIT_PREFIX: &str = "/usr/local/";

/// The pages of the manual that are no man pages.
const GUIDES: &[&str] = &[
    "compatibility.md",
    "operate.md",
    "security.md",
    "serve.md",
    "store.md",
    "worktrees.md",
];

/// Adds the files that every package has.
///
/// # Errors
/// Fails if a file of the source cannot be read.
pub(super) fn add(
    tree: &mut PackageTree,
    layout: &PackageLayout,
    parts: &PackageParts<'_>,
) -> Result<(), String> {
    let prefix = layout.prefix;
    let at = |path: &str| format!("{prefix}{path}");
    tree.add_program(&at("bin/pronto"), parts.pronto.clone());
    tree.add_program(&at("libexec/pronto/pronto-server"), parts.server.clone());
    // A directory that comes first in PATH replaces git, and nothing else does.
    tree.add_link(&at("lib/pronto/bin/git"), "../../../bin/pronto");
    for name in names(&parts.root.join("docs/man"))? {
        let page = parts.read(&format!("docs/man/{name}"))?;
        tree.add(&at(&format!("share/man/man1/{name}.gz")), gzip(&page)?);
    }
    let completions = [
        (
            "pronto.bash",
            "share/bash-completion/completions/pronto".to_owned(),
        ),
        ("_pronto", format!("{}/_pronto", layout.zsh)),
        (
            "pronto.fish",
            "share/fish/vendor_completions.d/pronto.fish".to_owned(),
        ),
    ];
    for (from, to) in completions {
        tree.add(&at(&to), parts.read(&format!("docs/completions/{from}"))?);
    }
    let unit = parts.text("contrib/pronto-server.service")?;
    let unit = unit.replace(UNIT_PREFIX, &format!("{}/", layout.installed));
    tree.add(&at("lib/systemd/system/pronto-server.service"), unit);
    add_documents(tree, &at("share/doc/pronto"), parts)
}

fn add_documents(
    tree: &mut PackageTree,
    folder: &str,
    parts: &PackageParts<'_>,
) -> Result<(), String> {
    tree.add(&format!("{folder}/README.md"), parts.read("README.md")?);
    let changes = gzip(&parts.read("CHANGELOG.md")?)?;
    tree.add(&format!("{folder}/CHANGELOG.md.gz"), changes);
    for guide in GUIDES {
        let page = parts.read(&format!("docs/{guide}"))?;
        tree.add(&format!("{folder}/docs/{guide}"), page);
    }
    for name in names(&parts.root.join("contrib/metrics"))? {
        let content = parts.read(&format!("contrib/metrics/{name}"))?;
        tree.add(&format!("{folder}/metrics/{name}"), content);
    }
    let licences = gzip(parts.licences.as_bytes())?;
    tree.add(
        &format!("{folder}/LICENSES-OF-DEPENDENCIES.txt.gz"),
        licences,
    );
    Ok(())
}

/// Returns the names of the files of a directory, sorted.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let failed = |error| format!("cannot read {}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

//! Templates of new repositories (`--template`, `init.templateDir`).

use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use pronto_io::error::IoContext;

use super::shared::{self, SharedPermissions};
use crate::config::Loader;
use crate::environment::Environment;
use crate::{ErrorKind, Result};

/// The template for the initial contents of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TemplateSource {
    /// The directory that the environment or configuration names (`GIT_TEMPLATE_DIR`,
    /// `init.templateDir`), else that of the installed git, else the built-in contents.
    #[default]
    Configured,
    /// No template.
    None,
    /// The template in this directory.
    Directory(PathBuf),
}

/// The template directories of installations of git.
const INSTALLED: &[&str] = &[
    "/usr/share/git-core/templates",
    "/usr/local/share/git-core/templates",
    "/opt/homebrew/share/git-core/templates",
];

/// The largest depth of directories of a template.
const MAX_DEPTH: u32 = 64;

const DESCRIPTION: &str =
    "Unnamed repository; edit this file 'description' to name the repository.\n";

/// Copies the template into `git_dir`, and keeps existing files. A missing template is ignored. Copied
/// files get the permissions of `sharing`.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a file of the template cannot be read or copied.
pub fn copy(
    template: &TemplateSource,
    git_dir: &Path,
    environment: &Environment,
    sharing: SharedPermissions,
) -> Result<()> {
    let directory = match template {
        TemplateSource::None => return Ok(()),
        TemplateSource::Directory(path) => environment.absolute(path),
        TemplateSource::Configured => match configured(environment)? {
            Some(path) if path.as_os_str().is_empty() => return Ok(()),
            Some(path) => environment.absolute(path),
            None => {
                let installed = INSTALLED.iter().map(Path::new).find(|path| path.is_dir());
                match installed {
                    Some(path) => path.to_owned(),
                    None => return write_built_in(git_dir),
                }
            }
        },
    };
    if !directory.is_dir() {
        return Ok(());
    }
    copy_directory(&directory, git_dir, sharing, 0)
}

fn configured(environment: &Environment) -> Result<Option<PathBuf>> {
    if let Some(path) = environment.path("GIT_TEMPLATE_DIR") {
        return Ok(Some(path.to_owned()));
    }
    let config = Loader::new(environment, None)
        .system()?
        .global()
        .command()
        .load()?;
    // Git ignores a key without a value.
    let entry = config.entry_of("init.templatedir");
    match entry.filter(|entry| entry.value.is_some()) {
        None => Ok(None),
        Some(entry) => entry.path(environment.home()),
    }
}

/// Returns the directory of the template if it does not exist, which deserves a warning.
pub fn missing(template: &TemplateSource, environment: &Environment) -> Option<PathBuf> {
    let path = match template {
        TemplateSource::Directory(path) => path.clone(),
        TemplateSource::Configured => configured(environment).ok().flatten()?,
        TemplateSource::None => return None,
    };
    let is_missing = !path.as_os_str().is_empty() && !environment.absolute(&path).is_dir();
    is_missing.then_some(path)
}

fn copy_directory(from: &Path, to: &Path, sharing: SharedPermissions, depth: u32) -> Result<()> {
    super::make_directory(to)?;
    let entries = std::fs::read_dir(from).context(ErrorKind::Io, "cannot opendir", from)?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let (source, target) = (entry.path(), to.join(&name));
        let kind = entry
            .file_type()
            .context(ErrorKind::Io, "cannot stat template", &source)?;
        if kind.is_dir() {
            if depth < MAX_DEPTH {
                copy_directory(&source, &target, sharing, depth + 1)?;
            }
        } else if target.symlink_metadata().is_ok() {
            continue;
        } else if kind.is_symlink() {
            let link =
                std::fs::read_link(&source).context(ErrorKind::Io, "cannot readlink", &source)?;
            std::os::unix::fs::symlink(link, &target).context(
                ErrorKind::Io,
                "cannot symlink",
                &target,
            )?;
        } else if kind.is_file() {
            copy_file(&source, &target)?;
            shared::adjust(sharing, &target)?;
        }
    }
    Ok(())
}

/// Copies a file. The copy is executable if the source is, within the limits of the umask.
fn copy_file(source: &Path, target: &Path) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let cannot = "cannot copy template to";
    let bytes = std::fs::read(source).context(ErrorKind::Io, "cannot read", source)?;
    let mode = std::fs::metadata(source).map_or(0o666, |found| found.permissions().mode());
    let mode = if mode & 0o100 == 0 { 0o666 } else { 0o777 };
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(target);
    file.and_then(|mut file| file.write_all(&bytes))
        .context(ErrorKind::Io, cannot, target)
}

fn write_built_in(git_dir: &Path) -> Result<()> {
    let exclude = "# Patterns of files that are ignored in this clone alone, as in .gitignore.\n";
    for name in ["hooks", "info"] {
        super::make_directory(&git_dir.join(name))?;
    }
    for (name, text) in [("description", DESCRIPTION), ("info/exclude", exclude)] {
        let file = git_dir.join(name);
        if !file.exists() {
            std::fs::write(&file, text.as_bytes().as_bstr()).context(
                ErrorKind::Io,
                "cannot write",
                &file,
            )?;
        }
    }
    Ok(())
}

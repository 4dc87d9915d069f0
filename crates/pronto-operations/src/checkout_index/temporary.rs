//! Writes entries to temporary files.
//!
//! The checkout engine writes the entries into a temporary directory, so that filters see the
//! original paths. The files are renamed from there.

use pronto_io::watch::Watch;
use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;

/// A temporary directory, which is removed with its contents on drop.
struct TemporaryDirectory<'a> {
    top: &'a Directory,
    name: Vec<u8>,
}

impl Drop for TemporaryDirectory<'_> {
    fn drop(&mut self) {
        let _ = self.top.remove_all(&self.name);
    }
}

/// Writes the entries to temporary files, and returns them grouped by path.
pub(super) fn write(
    prepared: &mut WorktreeSession<'_>,
    chosen: &[usize],
    report: &mut Report,
    watch: &Watch<'_>,
) -> Result<()> {
    let work_tree = prepared.repository.require_work_tree()?.to_owned();
    let open = |path: &Path| Directory::open(path).context(ErrorKind::Io, "cannot open", path);
    let top = open(&work_tree)?;
    let name = unused(&top, b".merge_dir_")?;
    top.make_directory(&name).context(
        ErrorKind::Io,
        "unable to create temporary directory",
        &work_tree,
    )?;
    let folder = TemporaryDirectory { top: &top, name };
    let inside: PathBuf = work_tree.join(crate::path::borrow(folder.name.as_bstr()));
    // A symbolic link becomes a file that contains its target.
    prepared.options.symlinks = false;
    let mut names: HashMap<BString, [Option<BString>; 4]> = HashMap::new();
    for stage in 0..4 {
        let index = &prepared.index;
        let (mut positions, mut submodules) = (Vec::new(), Vec::new());
        for &at in chosen {
            let entry = index.entry(at);
            match (entry.stage() == stage, entry.mode) {
                (false, _) => {}
                (true, mode::GITLINK) => submodules.push(entry.path.to_owned()),
                (true, _) => positions.push(at),
            }
        }
        positions.sort_unstable();
        positions.dedup();
        for path in submodules {
            let message = format!("cannot create temporary submodule {path}");
            let error = pronto_worktree::Error::new(pronto_worktree::ErrorKind::Io, message);
            report.failed.push(CheckoutFailure { path, error });
        }
        if positions.is_empty() {
            continue;
        }
        let own = inside.join(stage.to_string());
        std::fs::create_dir(&own).context(ErrorKind::Io, "cannot create directory at", &own)?;
        prepared.top = open(&own)?;
        let plan = plan(prepared, &positions);
        let outcome = prepared.write_as_they_are(&plan, watch)?;
        report.failed.extend(outcome.failed);
        report.warnings.extend(outcome.warnings);
        for (at, written) in positions.iter().zip(&outcome.written) {
            if written.is_none() {
                continue;
            }
            let entry = prepared.index.entry(*at);
            let from = own.join(crate::path::borrow(entry.path));
            let name = publish(&from, entry.mode == mode::SYMLINK, &top, &work_tree)?;
            let files = names.entry(entry.path.to_owned()).or_default();
            files[usize::from(stage)] = Some(BString::from(name));
        }
    }
    // The files are reported in the order of the request.
    for path in chosen.iter().map(|at| prepared.index.entry(*at).path) {
        if let Some(files) = names.remove(path) {
            let path = path.to_owned();
            report.temporaries.push(TemporaryEntry { path, files });
        }
    }
    Ok(())
}

/// Moves the file to an unused name in the top directory of the worktree.
fn publish(from: &Path, is_link: bool, top: &Directory, path: &Path) -> Result<Vec<u8>> {
    let prefix: &[u8] = match is_link {
        true => b".merge_link_",
        false => b".merge_file_",
    };
    let name = unused(top, prefix)?;
    let to = path.join(crate::path::borrow(name.as_bstr()));
    std::fs::set_permissions(from, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| std::fs::rename(from, &to))
        .context(ErrorKind::Io, "unable to create file", &to)?;
    Ok(name)
}

/// Returns an unused name that starts with `prefix`.
fn unused(top: &Directory, prefix: &[u8]) -> Result<Vec<u8>> {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    use std::hash::{BuildHasher, RandomState};
    for attempt in 0..1000_u32 {
        let mut number = RandomState::new().hash_one(attempt);
        let mut name = prefix.to_vec();
        for _ in 0..6 {
            name.push(LETTERS[(number % 62) as usize]);
            number /= 62;
        }
        match top.metadata(&name) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(name),
            _ => {}
        }
    }
    let message = "unable to find an unused name for a temporary file";
    Err(Error::new(ErrorKind::Io, message))
}

//! Contents in temporary files.
//!
//! The checkout engine writes them into a directory of their own, and they are renamed from there.
//! So filters see the original paths.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;

/// A directory that goes with all that is left in it.
struct Folder<'a> {
    top: &'a Directory,
    name: Vec<u8>,
}

impl Drop for Folder<'_> {
    fn drop(&mut self) {
        let _ = self.top.remove_all(&self.name);
    }
}

/// Writes the entries, those of a path together.
pub(super) fn write(
    prepared: &mut WorktreeSession<'_>,
    chosen: &[usize],
    report: &mut Report,
    (progress, interrupt): (&dyn Progress, &Interrupt),
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
    let folder = Folder { top: &top, name };
    let inside: PathBuf = work_tree.join(crate::path::borrow(folder.name.as_bstr()));
    // A link becomes a file that holds where it leads to.
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
            report.failed.push(Failure { path, error });
        }
        if positions.is_empty() {
            continue;
        }
        let own = inside.join(stage.to_string());
        std::fs::create_dir(&own).context(ErrorKind::Io, "cannot create directory at", &own)?;
        prepared.top = open(&own)?;
        let plan = plan(prepared, &positions);
        let outcome = prepared.write_as_they_are(&plan, progress, interrupt)?;
        report.failed.extend(outcome.failed);
        report.warnings.extend(outcome.warnings);
        for (at, written) in positions.iter().zip(&outcome.written) {
            if written.is_none() {
                continue;
            }
            let entry = prepared.index.entry(*at);
            let from = own.join(crate::path::borrow(entry.path));
            let name = publish(&from, entry.mode == mode::SYMLINK, (&top, &work_tree))?;
            let files = names.entry(entry.path.to_owned()).or_default();
            files[usize::from(stage)] = Some(BString::from(name));
        }
    }
    // They are reported in the order of the request.
    for path in chosen.iter().map(|at| prepared.index.entry(*at).path) {
        if let Some(files) = names.remove(path) {
            let path = path.to_owned();
            report.temporaries.push(Temporary { path, files });
        }
    }
    Ok(())
}

/// Gives the file a name of its own in the top of the worktree.
fn publish(from: &Path, is_link: bool, (top, path): (&Directory, &Path)) -> Result<Vec<u8>> {
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

/// An unused name that starts with `prefix`.
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

//! The parts of a new worktree.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::cleanup::Guard;
use pronto_io::error::{IoContext, OsReason};

use super::base_name_of;
use crate::config::Config;
use crate::config::edit::{self, EditRefusal};
use crate::linked::canonical;
use crate::refs::tables;
use crate::worktrees::{DIRECTORY, replace_file};
use crate::{Environment, Error, ErrorKind, Repository, Result, hooks, path};
use pronto_repository::Notice;

/// Creates an administrative directory below `worktrees`, with a name derived from `place`.
pub(super) fn make_own_dir(repository: &Repository, place: &BStr) -> Result<(PathBuf, Guard)> {
    let id = component(base_name_of(place));
    let directory = repository.common_dir().join(DIRECTORY);
    std::fs::create_dir_all(&directory).context(
        ErrorKind::Io,
        "could not create leading directories of",
        crate::worktrees::display_own_dir(repository, id.as_bstr()),
    )?;
    let mut counter = 0_u32;
    loop {
        let mut name = id.clone();
        if counter > 0 {
            name.extend_from_slice(counter.to_string().as_bytes());
        }
        let own_dir = directory.join(path::borrow(&name));
        match std::fs::create_dir(&own_dir) {
            Ok(()) => {
                let guard = Guard::new(&own_dir);
                return Ok((own_dir, guard));
            }
            Err(error)
                if error.kind() == std::io::ErrorKind::AlreadyExists && counter < u32::MAX =>
            {
                counter += 1;
            }
            Err(error) => {
                let said = crate::worktrees::display_own_dir(repository, name.as_bstr());
                let message = format!("could not create directory of '{}'", said.display());
                return Err(Error::new(ErrorKind::Io, message).because(OsReason(error)));
            }
        }
    }
}

/// Creates the directory for the per-worktree refs of the new worktree.
pub(super) fn make_refs_dir(own_dir: &Path) -> Result<()> {
    let directory = own_dir.join("refs");
    match std::fs::create_dir(&directory) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(error).context(ErrorKind::Io, "cannot mkdir", &directory)
        }
        _ => Ok(()),
    }
}

/// Creates the top directory of the worktree at `place`, and opens the repository with the
/// administrative directory `own_dir`. Nothing points to either of them yet: [`connect`] writes the
/// links after `HEAD` is complete, so that a killed process leaves no worktree with an invalid
/// `HEAD`.
pub(super) fn open_new(
    repository: &Repository,
    place: &Path,
    own_dir: &Path,
) -> Result<(Repository, Guard)> {
    std::fs::create_dir_all(place).context(
        ErrorKind::Io,
        "could not create leading directories of",
        place.join(".git"),
    )?;
    let guard = Guard::new(place);
    // A placeholder object id makes the directory a repository; the real `HEAD` follows.
    let head = match repository.refs().tables() {
        Some(_) => {
            tables::prepare(own_dir)?;
            tables::HEAD_STUB.to_owned()
        }
        None => line(&[repository.object_hash().null().to_string().as_bytes()]),
    };
    replace_file(&own_dir.join("HEAD"), &head)?;
    replace_file(&own_dir.join("commondir"), b"../..\n")?;
    pass_on_sparse_checkout(repository, own_dir)?;
    let mut environment: Environment = repository.environment().clone();
    environment.set("GIT_DIR", canonical(own_dir)?);
    environment.set("GIT_WORK_TREE", place);
    let inside = Repository::discover(environment.current_dir(), &environment)?;
    let inside = inside.with_notices(repository.notices().clone());
    Ok((inside, guard))
}

/// Copies the sparse-checkout patterns and the per-worktree configuration of the current worktree
/// to the new one.
fn pass_on_sparse_checkout(repository: &Repository, own_dir: &Path) -> Result<()> {
    let copy = |from: &Path, to: &Path| -> std::io::Result<bool> {
        let content = match std::fs::read(from) {
            Ok(content) => content,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        if let Some(directory) = to.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(to, content)?;
        Ok(true)
    };
    if repository.is_sparse_checkout()? {
        let from = repository.git_path("info/sparse-checkout");
        let to = own_dir.join("info/sparse-checkout");
        if copy(&from, &to).is_err() {
            let (from, to) = (repository.display_path(&from), repository.display_path(&to));
            let (from, to) = (from.display(), to.display());
            let message = format!(
                "failed to copy '{from}' to '{to}'; sparse-checkout may not work correctly"
            );
            repository.notify(Notice::Failure(Error::new(ErrorKind::Io, message)));
        }
    }
    if !repository.format().worktree_config {
        return Ok(());
    }
    let from = repository.git_dir().join("config.worktree");
    let to = own_dir.join("config.worktree");
    match copy(&from, &to) {
        Ok(false) => Ok(()),
        Ok(true) => leave_out_place(&to, repository.config()),
        Err(_) => {
            let (from, to) = (repository.display_path(&from), repository.display_path(&to));
            let (from, to) = (from.display(), to.display());
            let message = format!("failed to copy worktree config from '{from}' to '{to}'");
            repository.notify(Notice::Failure(Error::new(ErrorKind::Io, message)));
            Ok(())
        }
    }
}

pub(super) fn run_hook_there(
    repository: &Repository,
    place: &Path,
    commit: ObjectId,
) -> Result<Option<i32>> {
    let (old, new) = (
        repository.object_hash().null().to_string(),
        commit.to_string(),
    );
    let call = hooks::HookCall {
        arguments: vec![old.as_ref(), new.as_ref(), "1".as_ref()],
        elsewhere: Some(place),
        ..hooks::HookCall::default()
    };
    hooks::run(repository, "post-checkout", &call)
}

/// Links the worktree at `place` and the administrative directory `own_dir` to each other.
pub(super) fn connect(place: &Path, own_dir: &Path) -> Result<()> {
    let (top, own) = (canonical(place)?, canonical(own_dir)?);
    let bytes = |path| path::as_bytes(path).as_bytes();
    replace_file(&own_dir.join("gitdir"), &line(&[bytes(&top), b"/.git"]))?;
    replace_file(&top.join(".git"), &line(&[b"gitdir: ", bytes(&own)]))
}

fn line(parts: &[&[u8]]) -> Vec<u8> {
    [&parts.concat()[..], b"\n"].concat()
}

/// Removes keys that apply to only one worktree from a copied configuration.
pub(super) fn leave_out_place(file: &Path, config: &Config) -> Result<()> {
    edit::edit_file(file, path::as_bytes(file), config, |document| {
        let gone = |set| match set {
            Ok(()) | Err(EditRefusal::NothingSet) => Ok(()),
            Err(_) => {
                let message = format!("failed to unset values in '{}'", file.display());
                Err(Error::new(ErrorKind::Config, message))
            }
        };
        let is_true = |value: &BStr| crate::config::value::parse_bool(Some(value)).unwrap_or(false);
        gone(document.unset("core.bare".into(), false, is_true))?;
        gone(document.unset("core.worktree".into(), false, |_| true))
    })
}

/// Returns `text` as a valid component of a ref name.
fn component(text: &BStr) -> BString {
    let mut name = BString::default();
    let mut last = 0;
    for &byte in text.iter() {
        match byte {
            b'.' if last == b'.' => {}
            b'{' if last == b'@' => name.push(b'-'),
            0..=b' ' | 0x7f | b'~' | b'^' | b':' | b'?' | b'[' | b'\\' | b'*' => name.push(b'-'),
            _ => name.push(byte),
        }
        last = byte;
    }
    if name.first() == Some(&b'.') {
        name[0] = b'-';
    }
    while let Some(shorter) = name.strip_suffix(b".lock") {
        name = shorter.into();
    }
    match name.as_slice() {
        b"" | b"@" => "-".into(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_named_as_references_can_be() {
        for (given, made) in [
            ("a", "a"),
            ("a b", "a-b"),
            (".a", "-a"),
            ("a..b", "a.b"),
            ("a.lock.lock", "a"),
            ("x@{y", "x@-y"),
            ("@", "-"),
            ("..", "-"),
        ] {
            assert_eq!(component(given.into()), made, "{given}");
        }
    }
}

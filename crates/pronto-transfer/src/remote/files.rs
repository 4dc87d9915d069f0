//! Reads remotes from legacy files of the repository: `remotes/NAME` and `branches/NAME`.
//!
//! Git reads both if the configuration has no URL for the remote. A file below `remotes` has lines
//! `URL:`, `Pull:` and `Push:`; a file below `branches` has one line, `URL#BRANCH`.

use std::io;

use bstr::{BStr, ByteSlice};
use pronto_io::error::IoContext;

use super::{Refspec, Remote, rewritten};
use crate::{ErrorKind, Repository, Result, init};
use pronto_repository::Notice;

/// Adds the settings of a file with the name of `remote`, if there is one.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a file cannot be read, and with other kinds if a refspec is
/// malformed.
pub(super) fn read(repository: &Repository, remote: &mut Remote) -> Result<()> {
    if !is_file_name(remote.name.as_bstr()) {
        return Ok(());
    }
    if let Some(text) = content(repository, "remotes", remote)? {
        read_remotes(repository, &text, remote)?;
        remote.file = Some("remotes");
    }
    if remote.urls.is_empty()
        && let Some(text) = content(repository, "branches", remote)?
    {
        read_branches(repository, &text, remote)?;
        remote.file = Some("branches");
    }
    remote.is_configured |= !remote.urls.is_empty();
    Ok(())
}

/// Whether the name of the remote is a valid file name.
fn is_file_name(name: &BStr) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(&b'/')
}

fn content(
    repository: &Repository,
    directory: &'static str,
    remote: &Remote,
) -> Result<Option<Vec<u8>>> {
    let name = &remote.name;
    let directory_path = repository.common_dir().join(directory);
    let path = directory_path.join(crate::path::borrow(name));
    let text = match pronto_io::untrusted::content(&path) {
        Ok(text) => text,
        Err(error) => {
            use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound};
            let is_none = matches!(
                error.kind(),
                InvalidInput | IsADirectory | NotADirectory | NotFound
            );
            return match is_none {
                true => Ok(None),
                false => Err(error).context(ErrorKind::Io, "cannot open", &path),
            };
        }
    };
    repository.notify(Notice::RemoteInFile {
        directory,
        name: name.clone(),
    });
    Ok(Some(text))
}

fn read_remotes(repository: &Repository, text: &[u8], remote: &mut Remote) -> Result<()> {
    for line in text.lines() {
        let value = |key: &[u8]| Some(line.strip_prefix(key)?.trim().as_bstr());
        if let Some(url) = value(b"URL:") {
            remote.urls.push(rewritten(repository.config(), url));
        } else if let Some(spec) = value(b"Pull:") {
            remote.fetch.push(Refspec::parse(spec)?);
        } else if let Some(spec) = value(b"Push:") {
            remote.push.push(spec.to_owned());
        }
    }
    Ok(())
}

fn read_branches(repository: &Repository, text: &[u8], remote: &mut Remote) -> Result<()> {
    let config = repository.config();
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() {
        return Ok(());
    }
    let (url, branch) = match line.split_once_str("#") {
        Some((url, branch)) => (url, branch.into()),
        None => (
            line,
            init::default_branch(config, repository.environment())?.name,
        ),
    };
    remote.urls.push(rewritten(config, url.as_bstr()));
    let spec = format!("refs/heads/{branch}:refs/heads/{}", remote.name);
    remote.fetch.push(Refspec::parse(spec.as_str().into())?);
    remote.push.push(format!("HEAD:refs/heads/{branch}").into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_no_files() {
        assert!(is_file_name("origin".into()));
        for name in ["", ".", "..", "../x", "a/b"] {
            assert!(!is_file_name(name.into()), "{name}");
        }
    }
}

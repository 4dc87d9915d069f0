//! Names that must never be written: `.git` in every spelling that a file system treats as equal, `..`,
//! and names with separators.

use bstr::{BStr, ByteSlice};
use gix_validate::path::component::{Error as Refused, Mode, Options};

use crate::{Error, ErrorKind};

/// The file systems whose spellings of `.git` are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protect {
    /// Refuse spellings of NTFS (`core.protectNTFS`).
    pub ntfs: bool,
    /// Refuse spellings of HFS+ (`core.protectHFS`).
    pub hfs: bool,
}

impl Default for Protect {
    fn default() -> Self {
        Protect {
            ntfs: true,
            hfs: cfg!(target_os = "macos"),
        }
    }
}

impl Protect {
    /// Checks one component of the path `path`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::HostilePath`] if `name` must not be written. The message contains
    /// `path`.
    pub fn check(
        &self,
        name: &BStr,
        is_symlink: bool,
        path: &dyn Fn() -> String,
    ) -> Result<(), Error> {
        let options = Options {
            protect_windows: cfg!(windows),
            protect_hfs: self.hfs,
            protect_ntfs: self.ntfs,
        };
        let mode = is_symlink.then_some(Mode::Symlink);
        let refused = |name: &BStr| gix_validate::path::component(name, mode, options).err();
        let is_git = |name: &BStr| {
            let refused = refused(name);
            matches!(
                refused,
                Some(Refused::DotGitDir | Refused::SymlinkedGitModules)
            )
        };
        let mut good = refused(name).is_none() && !name.contains(&0);
        if good && self.ntfs && name.contains(&b'\\') {
            // On NTFS a backslash also separates components.
            let mut parts = name.split_str("\\").map(ByteSlice::as_bstr);
            let goes_up = |part: &BStr| cfg!(windows) && (part == "." || part == "..");
            good = !parts.any(|part| is_git(part) || goes_up(part));
        }
        if good && self.hfs {
            // On HFS+ a name ends at the first invalid UTF-8.
            let valid = name
                .to_str()
                .map_or_else(|error| error.valid_up_to(), str::len);
            good = valid == name.len() || !is_git(name[..valid].as_bstr());
        }
        if good {
            return Ok(());
        }
        let message = format!("invalid path '{}'", path());
        Err(Error::new(ErrorKind::HostilePath, message))
    }

    /// Checks all components of a path from the top of the worktree.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::HostilePath`] if a component must not be written.
    pub fn check_path(&self, path: &BStr, is_symlink: bool) -> Result<(), Error> {
        let mut names = path.split_str("/").peekable();
        while let Some(name) = names.next() {
            let is_last = names.peek().is_none();
            self.check(name.as_bstr(), is_last && is_symlink, &|| path.to_string())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_file_system_takes_for_dot_git_is_refused() {
        let protect = Protect {
            ntfs: true,
            hfs: true,
        };
        for path in [
            ".git",
            ".GIT/x",
            "a/.Git",
            "..",
            "a/../b",
            ".",
            "",
            "/etc/passwd",
            "a//b",
            "git~1",
            ".git /hooks",
            ".git.",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
            "a\\.git\\x",
            "nul\0",
        ] {
            assert!(protect.check_path(path.into(), false).is_err(), "{path}");
        }
        assert!(protect.check_path(".gitmodules".into(), true).is_err());
        let cut = b".git\xff".as_bstr();
        assert!(protect.check_path(cut, false).is_err());
        assert!(protect.check_path(b"a\\GIT~1".into(), false).is_err());
        for path in [
            ".gitignore",
            "a/b",
            ".gitmodules",
            "a\\b",
            "..\\b",
            "...",
            "git",
            "a.git",
        ] {
            assert!(protect.check_path(path.into(), false).is_ok(), "{path}");
        }
    }
}

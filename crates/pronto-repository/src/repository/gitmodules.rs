//! The file `.gitmodules`: the submodules of a worktree. Its content is part of the history and is not
//! trusted.

use std::path::Path;

use bstr::{BStr, BString};
use pronto_hash::ObjectId;
use pronto_io::untrusted::{self, SymlinkPolicy};

use crate::config::{Config, ConfigOrigin, ConfigScope, Loader, OriginKind};
use crate::environment::Environment;
use crate::{Repository, Result, path};

/// The name of the file, at the top of a worktree.
const NAME: &str = ".gitmodules";

/// The largest size of a file that is read. Larger files are ignored.
const LARGEST_BYTES: u64 = 16 << 20;

/// The settings of a `.gitmodules` file.
#[derive(Clone, Debug, Default)]
pub struct Gitmodules {
    settings: Config,
}

/// Returns whether the worktree at `top` has a regular file `.gitmodules`.
pub fn is_in(top: &Path) -> bool {
    let metadata = top.join(NAME).symlink_metadata();
    metadata.is_ok_and(|metadata| metadata.is_file())
}

impl Gitmodules {
    /// Reads `.gitmodules` in the worktree at `top`. Only a regular file of limited size is read, and
    /// symbolic links are not followed. Any other or malformed file counts as missing.
    pub fn read(top: &Path) -> Gitmodules {
        let content = untrusted::read(&top.join(NAME), SymlinkPolicy::Refuse, LARGEST_BYTES);
        let parsed = content.ok().map(Gitmodules::parse);
        parsed.and_then(Result::ok).unwrap_or_default()
    }

    /// Parses the content of a `.gitmodules` file. Includes are not followed.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Config` if the content is malformed.
    pub fn parse(content: Vec<u8>) -> Result<Gitmodules> {
        let origin = ConfigOrigin {
            scope: ConfigScope::Local,
            kind: OriginKind::File,
            name: NAME.into(),
            path: None,
        };
        let environment = Environment::default();
        let mut loader = Loader::new(&environment, None);
        loader.follow_includes(false).bytes(content, origin);
        Ok(Gitmodules {
            settings: loader.load()?,
        })
    }

    /// Returns the names of the submodules, without names that would escape from `.git/modules`.
    pub fn names(&self) -> Vec<&BStr> {
        let mut names = self.settings.subsections("submodule");
        names.retain(|name| is_safe_name(name));
        names
    }

    /// Returns the value of `submodule.NAME.VARIABLE`.
    pub fn value(&self, name: &BStr, variable: &str) -> Option<&BStr> {
        self.settings.raw(key(name, variable))
    }
}

/// Returns the key `submodule.NAME.VARIABLE`.
pub fn key(name: &BStr, variable: &str) -> BString {
    [&b"submodule."[..], name, b".", variable.as_bytes()]
        .concat()
        .into()
}

/// Returns whether `name` is a path that stays below `.git/modules`.
pub fn is_safe_name(name: &BStr) -> bool {
    !name.is_empty()
        && name
            .split(|byte| b"/\\".contains(byte))
            .all(|part| part != b"..")
}

impl Repository {
    /// Returns the commit that is checked out in the submodule at `path` of the worktree, if there is
    /// one.
    pub fn submodule_commit(&self, path: &BStr) -> Option<ObjectId> {
        let top = self.work_tree().unwrap_or(self.git_dir());
        let git = top.join(path::borrow(path)).join(".git");
        let environment = Environment::empty(top);
        let head = Repository::open(git, &environment).and_then(|inner| inner.head());
        head.ok().and_then(|head| head.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_settings_like_others() {
        let text = "[include] path = /dev/zero\n[submodule \"a\"] path = p\n";
        let modules = Gitmodules::parse(text.into()).expect("well formed");
        assert_eq!(modules.names(), ["a"]);
        assert_eq!(modules.value("a".into(), "path"), Some("p".into()));
    }

    #[test]
    fn names_that_leave_their_directory_are_passed_over() {
        let text = "[submodule \"../a\"] path = p\n[submodule \"a/..\\\\b\"] path = p\n\
                    [submodule \"good/one\"] path = p\n[submodule \"\"] path = p\n";
        let modules = Gitmodules::parse(text.into()).expect("well formed");
        assert_eq!(modules.names(), ["good/one"]);
    }
}

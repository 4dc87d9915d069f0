//! Repositories that several people of one machine use (`core.sharedRepository`).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use pronto_io::error::IoContext;

use crate::config::{Config, value};
use crate::{Error, ErrorKind, Result};

/// Who else may use a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shared {
    /// Whoever the process's umask lets.
    #[default]
    Umask,
    /// The group.
    Group,
    /// The group, and everybody for reading.
    Everybody,
    /// Exactly these permissions for files, whatever the umask.
    Mode(u32),
}

impl Shared {
    /// The value of `core.sharedRepository` or `--shared`. No value means the group.
    ///
    /// # Errors
    /// It is none of the words, no boolean, and no mode that lets the owner read and write.
    pub fn parse(text: Option<&BStr>) -> Result<Self> {
        let Some(text) = text else {
            return Ok(Shared::Group);
        };
        match text.as_bytes() {
            b"umask" => return Ok(Shared::Umask),
            b"group" => return Ok(Shared::Group),
            b"all" | b"world" | b"everybody" => return Ok(Shared::Everybody),
            _ => {}
        }
        let mode = text.to_str().ok().and_then(|text| u32::from_str_radix(text, 8).ok());
        match mode {
            Some(0) => Ok(Shared::Umask),
            Some(1) => Ok(Shared::Group),
            Some(2) => Ok(Shared::Everybody),
            Some(mode) if mode & 0o600 == 0o600 => Ok(Shared::Mode(mode & 0o666)),
            Some(mode) => {
                let message = format!(
                    "problem with core.sharedRepository filemode value (0{mode:03o}).\n\
                     The owner of files must always have read and write permissions."
                );
                Err(Error::new(ErrorKind::ConfigValue, message))
            }
            None => match value::parse_bool(Some(text)) {
                Some(true) => Ok(Shared::Group),
                Some(false) => Ok(Shared::Umask),
                None => {
                    let message =
                        format!("bad boolean config value '{text}' for 'core.sharedrepository'");
                    Err(Error::new(ErrorKind::ConfigValue, message))
                }
            },
        }
    }

    /// What configuration says.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn configured(config: &Config) -> Result<Self> {
        match config.entry_of("core.sharedrepository") {
            Some(entry) => Shared::parse(entry.value),
            None => Ok(Shared::Umask),
        }
    }

    /// Whether anyone is meant beyond those whom the umask lets.
    pub fn is_shared(self) -> bool {
        self != Shared::Umask
    }

    /// How it is written into the configuration of a new repository.
    pub(super) fn config_value(self) -> Option<String> {
        match self {
            Shared::Umask => None,
            Shared::Group => Some("1".into()),
            Shared::Everybody => Some("2".into()),
            Shared::Mode(mode) => Some(format!("0{mode:o}")),
        }
    }

    fn adjusted(self, mode: u32, is_dir: bool) -> u32 {
        let wanted = match self {
            Shared::Umask => return mode,
            Shared::Group => 0o660,
            Shared::Everybody => 0o664,
            Shared::Mode(wanted) => wanted,
        };
        let mut wanted = if mode & 0o200 == 0 { wanted & !0o222 } else { wanted };
        if mode & 0o100 != 0 {
            wanted |= (wanted & 0o444) >> 2;
        }
        let mut adjusted = match self {
            Shared::Mode(_) => (mode & !0o777) | wanted,
            _ => mode | wanted,
        };
        if is_dir {
            adjusted |= (adjusted & 0o444) >> 2;
            if adjusted & 0o060 != 0 {
                adjusted |= 0o2000;
            }
        }
        adjusted
    }

    /// Gives one file or directory the permissions that sharing asks for.
    ///
    /// # Errors
    /// They cannot be changed.
    pub fn adjust(self, path: &Path) -> Result<()> {
        let Ok(metadata) = path.symlink_metadata() else {
            return Ok(());
        };
        if metadata.is_symlink() {
            return Ok(());
        }
        let mode = metadata.permissions().mode();
        let adjusted = self.adjusted(mode, metadata.is_dir());
        if adjusted == mode {
            return Ok(());
        }
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(adjusted))
            .context(ErrorKind::Io, "Could not make writable by group", path)
    }

    /// Adjusts a repository that was just made, or the directories of one that was there.
    pub(super) fn apply(self, git_dir: &Path, existed: bool) -> Result<()> {
        self.adjust(git_dir)?;
        if !existed {
            return self.apply_below(git_dir, 0);
        }
        for name in [
            "config", "refs", "refs/heads", "refs/tags", "objects", "objects/pack", "objects/info",
        ] {
            self.adjust(&git_dir.join(name))?;
        }
        Ok(())
    }

    fn apply_below(self, directory: &Path, depth: u32) -> Result<()> {
        const MAX_TEMPLATE_DEPTH: u32 = 64;
        let entries = std::fs::read_dir(directory);
        for entry in entries.context(ErrorKind::Io, "cannot opendir", directory)?.flatten() {
            self.adjust(&entry.path())?;
            if depth < MAX_TEMPLATE_DEPTH && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.apply_below(&entry.path(), depth + 1)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_follow_the_words() {
        let parse = |text: &str| Shared::parse(Some(text.into()));
        for (text, shared) in [
            ("group", Shared::Group),
            ("true", Shared::Group),
            ("1", Shared::Group),
            ("world", Shared::Everybody),
            ("0", Shared::Umask),
            ("0640", Shared::Mode(0o640)),
        ] {
            assert_eq!(parse(text).expect("it is known"), shared, "{text}");
        }
        assert!(parse("0400").is_err());
        assert!(parse("perhaps").is_err());
        assert_eq!(Shared::Group.adjusted(0o100644, false), 0o100664);
        assert_eq!(Shared::Group.adjusted(0o040755, true), 0o042775);
        assert_eq!(Shared::Everybody.adjusted(0o100444, false), 0o100444);
        assert_eq!(Shared::Mode(0o640).adjusted(0o040755, true), 0o042750);
    }
}

//! Repositories that several users of a machine share (`core.sharedRepository`).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use pronto_io::error::IoContext;

use crate::config::Config;
use crate::{Error, ErrorKind, Result, value};

/// The permissions of new files and directories (`core.sharedRepository`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedPermissions {
    /// The permissions that the umask permits (`umask`, `false`).
    #[default]
    Umask,
    /// Permissions for the group, too (`group`, `true`).
    Group,
    /// Write permission for the group, and read permission for all users (`all`, `world`,
    /// `everybody`).
    Everybody,
    /// Exactly these permissions, independent of the umask (`0660` or another octal number).
    Mode(u32),
}

impl SharedPermissions {
    /// Returns the permissions for a file or directory that has `mode`, or `None` if the
    /// permissions stay unchanged.
    pub fn adjust(self, mode: u32, is_directory: bool) -> Option<u32> {
        let (mut bits, exact) = match self {
            SharedPermissions::Umask => return None,
            SharedPermissions::Group => (0o660, false),
            SharedPermissions::Everybody => (0o664, false),
            SharedPermissions::Mode(bits) => (bits, true),
        };
        if mode & 0o200 == 0 {
            bits &= !0o222;
        }
        if mode & 0o100 != 0 {
            // Read permission implies permission to execute an executable file, or to search a
            // directory.
            bits |= (bits & 0o444) >> 2;
        }
        let mut adjusted = match exact {
            true => (mode & !0o777) | bits,
            false => mode | bits,
        };
        if is_directory {
            adjusted |= 0o2000;
        }
        Some(adjusted)
    }
}

/// Parses a value of `core.sharedRepository` or `--shared`. Without a value, the result is
/// [`SharedPermissions::Group`]. Messages use the name `key`.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if the value is neither a known word, nor a boolean, nor a
/// mode in which the owner can read and write.
pub fn parse(text: Option<&BStr>, key: &str) -> Result<SharedPermissions> {
    let Some(text) = text else {
        return Ok(SharedPermissions::Group);
    };
    match text.as_bytes() {
        b"umask" => return Ok(SharedPermissions::Umask),
        b"group" => return Ok(SharedPermissions::Group),
        b"all" | b"world" | b"everybody" => return Ok(SharedPermissions::Everybody),
        _ => {}
    }
    let digits = text.to_str().ok();
    match digits.and_then(|text| u32::from_str_radix(text, 8).ok()) {
        Some(0) => Ok(SharedPermissions::Umask),
        Some(1) => Ok(SharedPermissions::Group),
        Some(2) => Ok(SharedPermissions::Everybody),
        Some(mode) if mode & 0o600 == 0o600 => Ok(SharedPermissions::Mode(mode & 0o666)),
        Some(mode) => {
            let message = format!(
                "problem with core.sharedRepository filemode value (0{mode:03o}).\n\
                 The owner of files must always have read and write permissions."
            );
            Err(Error::new(ErrorKind::ConfigValue, message))
        }
        None => match value::parse_bool(Some(text)) {
            Some(true) => Ok(SharedPermissions::Group),
            Some(false) => Ok(SharedPermissions::Umask),
            None => {
                let message = format!("bad boolean config value '{text}' for '{key}'");
                Err(Error::new(ErrorKind::ConfigValue, message))
            }
        },
    }
}

/// Returns the configured value of `core.sharedRepository`.
///
/// # Errors
/// Fails with the errors of [`parse`].
pub fn configured(config: &Config) -> Result<SharedPermissions> {
    match config.entry_of("core.sharedrepository") {
        Some(entry) => parse(entry.value, "core.sharedrepository"),
        None => Ok(SharedPermissions::Umask),
    }
}

/// Returns the value of `core.sharedRepository` for the configuration of a new repository.
pub fn config_value(sharing: SharedPermissions) -> Option<String> {
    match sharing {
        SharedPermissions::Umask => None,
        SharedPermissions::Group => Some("1".into()),
        SharedPermissions::Everybody => Some("2".into()),
        SharedPermissions::Mode(mode) => Some(format!("0{mode:o}")),
    }
}

/// Sets the permissions of a file or directory as `sharing` requires.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the permissions cannot be changed.
pub fn adjust(sharing: SharedPermissions, path: &Path) -> Result<()> {
    let Ok(metadata) = path.symlink_metadata() else {
        return Ok(());
    };
    let mode = metadata.permissions().mode();
    match sharing.adjust(mode, metadata.is_dir()) {
        Some(adjusted) if adjusted != mode && !metadata.is_symlink() => std::fs::set_permissions(
            path,
            std::fs::Permissions::from_mode(adjusted),
        )
        .context(ErrorKind::Io, "Could not make writable by group", path),
        _ => Ok(()),
    }
}

/// Adjusts the permissions of a new repository, or if `existed`, those of the directories of an
/// existing one.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if permissions cannot be changed or a directory cannot be listed.
pub fn apply(sharing: SharedPermissions, git_dir: &Path, existed: bool) -> Result<()> {
    adjust(sharing, git_dir)?;
    if !existed {
        return apply_below(sharing, git_dir, 0);
    }
    for name in [
        "config",
        "refs",
        "refs/heads",
        "refs/tags",
        "objects",
        "objects/pack",
        "objects/info",
    ] {
        adjust(sharing, &git_dir.join(name))?;
    }
    Ok(())
}

fn apply_below(sharing: SharedPermissions, directory: &Path, depth: u32) -> Result<()> {
    const MAX_TEMPLATE_DEPTH: u32 = 64;
    let entries = std::fs::read_dir(directory);
    for entry in entries
        .context(ErrorKind::Io, "cannot opendir", directory)?
        .flatten()
    {
        adjust(sharing, &entry.path())?;
        if depth < MAX_TEMPLATE_DEPTH && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            apply_below(sharing, &entry.path(), depth + 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_follow_the_words() {
        let parse = |text: &str| parse(Some(text.into()), "arg");
        for (text, shared) in [
            ("group", SharedPermissions::Group),
            ("true", SharedPermissions::Group),
            ("1", SharedPermissions::Group),
            ("world", SharedPermissions::Everybody),
            ("0", SharedPermissions::Umask),
            ("0640", SharedPermissions::Mode(0o640)),
        ] {
            assert_eq!(parse(text).expect("it is known"), shared, "{text}");
        }
        assert!(parse("0400").is_err());
        assert!(parse("perhaps").is_err());
    }
}

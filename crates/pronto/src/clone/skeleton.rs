//! The directory of a new repository: what every repository has before there is anything in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_io::error::IoContext;

use crate::config::Config;
use crate::environment::Environment;
use crate::{ErrorKind, Result, path};

/// Where templates are when nobody says otherwise.
const TEMPLATES: &str = "/usr/share/git-core/templates";

/// The directory whose files a new repository gets: `given` if it is not empty, else the
/// environment's, the configured one, or the system's.
pub(super) fn template(
    given: Option<&Path>,
    config: &Config,
    environment: &Environment,
) -> Result<Option<PathBuf>> {
    let found = match given {
        Some(path) => Some(environment.absolute(path)).filter(|_| !path.as_os_str().is_empty()),
        None => match environment.path("GIT_TEMPLATE_DIR") {
            Some(path) => Some(environment.absolute(path)).filter(|_| !path.as_os_str().is_empty()),
            None => match config.path("init.templatedir", environment.home())? {
                Some(path) => Some(path).filter(|path| !path.as_os_str().is_empty()),
                None => Some(TEMPLATES.into()),
            },
        },
    };
    Ok(found)
}

/// Makes the directory `git_dir` with its subdirectories and the files of `template`.
pub(super) fn make(git_dir: &Path, template: Option<&Path>, env: &Environment) -> Result<()> {
    let make = |directory: &str| {
        let path = git_dir.join(directory);
        fs::create_dir_all(&path).context(ErrorKind::Io, "cannot mkdir", &path)
    };
    make("refs/heads")?;
    make("refs/tags")?;
    make("objects/info")?;
    make("objects/pack")?;
    match template {
        Some(template) if template.is_dir() => copy(template, git_dir, 0)?,
        Some(template) => {
            let _ = env;
            let shown = path::as_bytes(template);
            pronto_io::data!("clone", "templates_not_found", shown);
        }
        None => {}
    }
    Ok(())
}

/// Templates are not nested deeper than this.
const MAX_DEPTH: usize = 32;

/// Copies what is in `from` and not hidden to `to`; what is there already stays.
fn copy(from: &Path, to: &Path, depth: usize) -> Result<()> {
    let entries = fs::read_dir(from).context(ErrorKind::Io, "cannot opendir", from)?;
    for entry in entries {
        let entry = entry.context(ErrorKind::Io, "cannot opendir", from)?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let (source, target) = (entry.path(), to.join(&name));
        let kind = entry
            .file_type()
            .context(ErrorKind::Io, "cannot stat template", &source)?;
        if kind.is_dir() {
            fs::create_dir_all(&target).context(ErrorKind::Io, "cannot mkdir", &target)?;
            if depth < MAX_DEPTH {
                copy(&source, &target, depth + 1)?;
            }
        } else if target.symlink_metadata().is_ok() {
            continue;
        } else if kind.is_symlink() {
            let link = fs::read_link(&source).context(ErrorKind::Io, "cannot readlink", &source)?;
            std::os::unix::fs::symlink(link, &target).context(
                ErrorKind::Io,
                "cannot symlink",
                &target,
            )?;
        } else if kind.is_file() {
            let bytes = fs::read(&source).context(ErrorKind::Io, "cannot copy", &source)?;
            let mode = source
                .metadata()
                .map_or(0o644, |found| found.permissions().mode());
            write(&target, &bytes, mode & 0o100 != 0)?;
        }
    }
    Ok(())
}

/// Writes a new file with the permissions that the umask leaves.
fn write(target: &Path, bytes: &[u8], executable: bool) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mode = if executable { 0o777 } else { 0o666 };
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(target)
        .and_then(|mut file| file.write_all(bytes));
    written.context(ErrorKind::Io, "cannot copy to", target)
}

/// The text of a configuration file that is being written, as `git config` would write it step by
/// step.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigText(Vec<u8>);

impl ConfigText {
    pub(super) fn new(text: Vec<u8>) -> Self {
        ConfigText(text)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Gives `section.subsection.name` one value more.
    pub(super) fn add(
        &mut self,
        section: &str,
        subsection: Option<&BStr>,
        name: &str,
        value: &BStr,
    ) {
        let header = header(section, subsection);
        let line = line(name, value);
        let Some(end) = self.section_end(&header) else {
            if !self.0.is_empty() && !self.0.ends_with(b"\n") {
                self.0.push(b'\n');
            }
            self.0.extend_from_slice(&header);
            self.0.push(b'\n');
            self.0.extend_from_slice(&line);
            return;
        };
        self.0.splice(end..end, line);
    }

    /// Gives `section.subsection.name` the one value `value`.
    pub(super) fn set(
        &mut self,
        section: &str,
        subsection: Option<&BStr>,
        name: &str,
        value: &BStr,
    ) {
        let header = header(section, subsection);
        let mut inside = false;
        let mut start = 0;
        for line_text in self.0.clone().lines_with_terminator() {
            let trimmed = line_text.trim();
            if trimmed.starts_with(b"[") {
                inside = same_header(trimmed, &header);
            } else if inside && key_of(trimmed).eq_ignore_ascii_case(name.as_bytes()) {
                self.0
                    .splice(start..start + line_text.len(), line(name, value));
                return;
            }
            start += line_text.len();
        }
        self.add(section, subsection, name, value);
    }

    /// Where the last line of the last section with this header ends.
    fn section_end(&self, header: &[u8]) -> Option<usize> {
        let (mut inside, mut end, mut start) = (false, None, 0);
        for line in self.0.lines_with_terminator() {
            let trimmed = line.trim();
            start += line.len();
            if trimmed.starts_with(b"[") {
                inside = same_header(trimmed, header);
            }
            if inside && !trimmed.is_empty() && !trimmed.starts_with(b"#") {
                end = Some(start);
            }
        }
        end
    }
}

fn same_header(found: &[u8], wanted: &[u8]) -> bool {
    match (found.split_once_str(" "), wanted.split_once_str(" ")) {
        (Some((found, rest)), Some((wanted, wanted_rest))) => {
            found.eq_ignore_ascii_case(wanted) && rest == wanted_rest
        }
        (None, None) => found.eq_ignore_ascii_case(wanted),
        _ => false,
    }
}

fn key_of(line: &[u8]) -> &[u8] {
    line.split_once_str("=").map_or(line, |(key, _)| key).trim()
}

fn header(section: &str, subsection: Option<&BStr>) -> Vec<u8> {
    let mut header = format!("[{section}").into_bytes();
    if let Some(subsection) = subsection {
        header.extend_from_slice(b" \"");
        for &byte in subsection.iter() {
            if matches!(byte, b'"' | b'\\') {
                header.push(b'\\');
            }
            header.push(byte);
        }
        header.push(b'"');
    }
    header.push(b']');
    header
}

fn line(name: &str, value: &BStr) -> Vec<u8> {
    let mut line = format!("\t{name} = ").into_bytes();
    let needs_quotes =
        value.find_byteset(b";#").is_some() || value.starts_with(b" ") || value.ends_with(b" ");
    if needs_quotes {
        line.push(b'"');
    }
    for &byte in value.iter() {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\t' => line.extend_from_slice(b"\\t"),
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            _ => line.push(byte),
        }
    }
    if needs_quotes {
        line.push(b'"');
    }
    line.push(b'\n');
    line
}

/// A `key=value` of the command line taken apart: section, subsection, name, value.
pub(super) fn split_setting(setting: &BStr) -> Result<(String, Option<BString>, String, BString)> {
    let (key, value) = match setting.split_once_str("=") {
        Some((key, value)) => (key, BString::from(value)),
        None => (setting.as_bytes(), BString::from("true")),
    };
    // Checks that the key is well formed.
    crate::config::canonical(key.as_bstr())?;
    let bad = || {
        let message = format!("key does not contain a section: {}", key.as_bstr());
        crate::Error::new(ErrorKind::Config, message)
    };
    let first = key.find_byte(b'.').ok_or_else(bad)?;
    let last = key.rfind_byte(b'.').ok_or_else(bad)?;
    let section = key[..first].to_str_lossy().to_ascii_lowercase();
    let subsection = (first < last).then(|| key[first + 1..last].into());
    let name = key[last + 1..].to_str_lossy().to_ascii_lowercase();
    Ok((section, subsection, name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_land_where_git_puts_them() {
        let mut text = ConfigText::default();
        text.add("core", None, "bare", "false".into());
        let origin = Some("origin".into());
        text.add("remote", origin, "url", "a;b".into());
        text.add("core", None, "x", "\"q\"".into());
        text.set("core", None, "bare", "true".into());
        text.add("remote", origin, "fetch", "+a:b".into());
        let expected = "[core]\n\tbare = true\n\tx = \\\"q\\\"\n[remote \"origin\"]\n\
                        \turl = \"a;b\"\n\tfetch = +a:b\n";
        assert_eq!(text.bytes().as_bstr(), expected);
    }
}

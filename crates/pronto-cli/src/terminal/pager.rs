//! The pager, chosen and started by Git's rules.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;

use pronto_io::child;
use rustix::fs::MemfdFlags;

/// The pager if none is configured.
const USUAL_PAGER: &str = "less";

/// The options of pagers that Git sets, unless the user has set them.
const USUAL_OPTIONS: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// Returns the command line of the pager: `GIT_PAGER`, the value of `core.pager`, which `configured`
/// returns, `PAGER`, or `less`. Returns `None` if the pager is `cat`, an empty text, or a program
/// that does not exist.
pub(crate) fn command_line(
    variable: impl Fn(&str) -> Option<OsString>,
    configured: impl FnOnce() -> Option<OsString>,
) -> Option<OsString> {
    let line = variable("GIT_PAGER")
        .or_else(configured)
        .or_else(|| variable("PAGER"))
        .unwrap_or_else(|| USUAL_PAGER.into());
    let is_none = line.is_empty() || line == "cat";
    (!is_none && may_run(&line)).then_some(line)
}

/// Returns whether the shell may find the program of `line`.
fn may_run(line: &OsStr) -> bool {
    let bytes = line.as_bytes();
    child::needs_shell(bytes) || bytes.contains(&b'/') || child::find(line).is_some()
}

/// Replaces this process by the pager `line`, which shows `text`. Returns only if that fails.
///
/// The text is in a file without a name, so that no process has to write it while the pager runs.
pub(crate) fn become_pager(
    line: &OsStr,
    text: &[u8],
    variable: impl Fn(&str) -> Option<OsString>,
) -> io::Error {
    let input = match file_with(text) {
        Ok(input) => input,
        Err(error) => return error,
    };
    let mut command = child::shell(line, line);
    command.stdin(input).env("GIT_PAGER_IN_USE", "true");
    let missing = USUAL_OPTIONS
        .into_iter()
        .filter(|(name, _)| variable(name).is_none());
    command.envs(missing).exec()
}

fn file_with(text: &[u8]) -> io::Result<File> {
    let file = rustix::fs::memfd_create("manual", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)], configured: Option<&str>) -> Option<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).into())
        };
        let line = command_line(variable, || configured.map(Into::into))?;
        Some(line.to_string_lossy().into_owned())
    }

    #[test]
    fn the_pager_is_chosen_as_git_chooses_it() {
        let all = [("GIT_PAGER", "a -x"), ("PAGER", "c -x")];
        assert_eq!(chosen(&all, Some("b -x")).as_deref(), Some("a -x"));
        assert_eq!(chosen(&all[1..], Some("b -x")).as_deref(), Some("b -x"));
        assert_eq!(chosen(&all[1..], None).as_deref(), Some("c -x"));
        for none in ["", "cat", "no-such-pager"] {
            assert_eq!(chosen(&[("GIT_PAGER", none)], Some("b -x")), None);
        }
    }
}

//! The editor of the user, chosen and started by Git's rules.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use bstr::BStr;
use pronto_io::child;

/// The editor if none is configured.
const USUAL_EDITOR: &str = "vi";

/// Converts the value of `core.editor`.
pub(crate) fn from_config(value: &BStr) -> OsString {
    OsString::from_vec(value.to_vec())
}

/// Returns the command line of the editor: `GIT_EDITOR`, the value of `core.editor`, which
/// `configured` returns, `VISUAL` on a terminal that is not dumb, `EDITOR`, or `vi` if the standard
/// streams are such a terminal. Returns `None` if there is no editor to run.
pub(crate) fn command_line(
    variable: impl Fn(&str) -> Option<OsString>,
    configured: impl FnOnce() -> Option<OsString>,
) -> Option<OsString> {
    let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
    let line = variable("GIT_EDITOR")
        .or_else(configured)
        .or_else(|| variable("VISUAL").filter(|_| !is_dumb))
        .or_else(|| variable("EDITOR"))
        .or_else(|| {
            let on_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
            (on_terminal && !is_dumb).then(|| USUAL_EDITOR.into())
        })?;
    // A colon is the command of the shell that does nothing.
    (!line.is_empty() && line != ":").then_some(line)
}

/// Runs the editor `line` with the file `path`, and waits until it ends.
///
/// # Errors
/// Fails with a message if the editor cannot be started, or if it fails.
pub(crate) fn run(line: &OsStr, path: &Path) -> Result<(), String> {
    let mut script = line.as_bytes().to_vec();
    script.extend_from_slice(b" \"$@\"");
    let mut command = match child::needs_shell(line.as_bytes()) {
        true => child::shell(OsString::from_vec(script), line),
        false => child::command(line),
    };
    let status = child::status(command.arg(path)).map_err(|error| {
        let reason = pronto_io::error::reason(&error);
        format!("cannot run editor '{}': {reason}", line.display())
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("editor '{}' failed", line.display())),
    }
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
    fn the_editor_is_chosen_as_git_chooses_it() {
        let all = [
            ("GIT_EDITOR", "a -x"),
            ("VISUAL", "c"),
            ("EDITOR", "d"),
            ("TERM", "xterm"),
        ];
        assert_eq!(chosen(&all, Some("b")).as_deref(), Some("a -x"));
        assert_eq!(chosen(&all[1..], Some("b")).as_deref(), Some("b"));
        assert_eq!(chosen(&all[1..], None).as_deref(), Some("c"));
        // Without TERM, the terminal is dumb.
        assert_eq!(chosen(&all[1..3], None).as_deref(), Some("d"));
        assert_eq!(chosen(&[("GIT_EDITOR", ":")], Some("b")), None);
    }
}

//! Colours and the spelling of paths.

use crate::CliError;
use bstr::{BStr, BString};
use pronto::Repository;
use pronto::quote::c_quote_into;
use std::io::{IsTerminal, Write};

/// What a piece of output is about, which decides on its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Header,
    Updated,
    Changed,
    Untracked,
    NoBranch,
    Unmerged,
    LocalBranch,
    RemoteBranch,
    OnBranch,
    /// No colour whatever is configured.
    Plain,
}

const SLOTS: [(&str, &str); 9] = [
    ("header", ""),
    ("updated", "\x1b[32m"),
    ("changed", "\x1b[31m"),
    ("untracked", "\x1b[31m"),
    ("nobranch", "\x1b[31m"),
    ("unmerged", "\x1b[31m"),
    ("localbranch", "\x1b[32m"),
    ("remotebranch", "\x1b[31m"),
    ("branch", ""),
];

const RESET: &str = "\x1b[m";

/// The colours.
pub(super) struct Look {
    /// `None` if there are to be no colours.
    palette: Option<[String; 9]>,
}

impl Look {
    pub(super) fn read(repository: &Repository, colored: bool) -> Result<Look, CliError> {
        if !colored || !wants_color(repository)? {
            return Ok(Look { palette: None });
        }
        let mut palette = SLOTS.map(|(_, color)| color.to_owned());
        let config = repository.config();
        for (slot, (name, _)) in palette.iter_mut().zip(SLOTS) {
            let mut names = vec![name];
            if name == "updated" {
                names.push("added");
            }
            for name in names {
                for section in ["status.color.", "color.status."] {
                    if let Some(entry) = config.entry_of(format!("{section}{name}")) {
                        let value = entry.string()?;
                        *slot =
                            pronto::config::color::parse(value).ok_or_else(|| bad_color(value))?;
                    }
                }
            }
        }
        if palette[Slot::OnBranch as usize].is_empty() {
            palette[Slot::OnBranch as usize] = palette[Slot::Header as usize].clone();
        }
        Ok(Look {
            palette: Some(palette),
        })
    }

    fn color(&self, slot: Slot) -> &str {
        match &self.palette {
            Some(palette) => palette.get(slot as usize).map_or("", String::as_str),
            None => "",
        }
    }

    /// Writes `text` in the colour of `slot`.
    pub(super) fn write(
        &self,
        out: &mut impl Write,
        slot: Slot,
        text: &[u8],
    ) -> std::io::Result<()> {
        let color = self.color(slot);
        out.write_all(color.as_bytes())?;
        out.write_all(text)?;
        if !color.is_empty() {
            out.write_all(RESET.as_bytes())?;
        }
        Ok(())
    }
}

fn bad_color(value: &BStr) -> CliError {
    CliError::error(format!("invalid color value: {value}"))
}

fn wants_color(repository: &Repository) -> Result<bool, CliError> {
    let config = repository.config();
    let entry = ["color.status", "status.color", "color.ui"]
        .iter()
        .find_map(|key| config.entry_of(key));
    let automatic = || {
        let dumb = repository
            .environment()
            .text("TERM")
            .is_none_or(|term| term == "dumb");
        std::io::stdout().is_terminal() && !dumb
    };
    let Some(entry) = entry else {
        return Ok(automatic());
    };
    match entry.string() {
        Ok(value) if value.eq_ignore_ascii_case(b"always") => Ok(true),
        Ok(value) if value.eq_ignore_ascii_case(b"never") => Ok(false),
        Ok(value) if value.eq_ignore_ascii_case(b"auto") => Ok(automatic()),
        _ => Ok(entry.bool()? && automatic()),
    }
}

/// `path` as seen from the directory `prefix`, quoted if it has to be. `space` quotes a path with
/// a space too.
pub(super) fn shown_path(path: &BStr, prefix: &BStr, (all, space): (bool, bool)) -> BString {
    let seen = relative(path, prefix);
    let mut out = Vec::with_capacity(seen.len() + 2);
    c_quote_into(&seen, all, &mut out);
    if space && out.first() != Some(&b'"') && out.contains(&b' ') {
        out.insert(0, b'"');
        out.push(b'"');
    }
    out.into()
}

/// `path` as seen from the directory `prefix` (empty, or with a slash at its end).
fn relative(path: &BStr, prefix: &BStr) -> BString {
    if prefix.is_empty() {
        return path.to_owned();
    }
    let mut common = 0;
    for (at, (one, two)) in path.iter().zip(prefix.iter()).enumerate() {
        if one != two {
            break;
        }
        if *one == b'/' {
            common = at + 1;
        }
    }
    let ups = prefix[common..]
        .iter()
        .filter(|&&byte| byte == b'/')
        .count();
    let mut seen = b"../".repeat(ups);
    seen.extend_from_slice(&path[common..]);
    if seen.is_empty() {
        seen.extend_from_slice(b"./");
    }
    seen.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_where_one_stands() {
        let seen = |path: &str, prefix: &str| relative(path.into(), prefix.into()).to_string();
        assert_eq!(seen("a/b", ""), "a/b");
        assert_eq!(seen("a/b", "a/"), "b");
        assert_eq!(seen("ab", "a/"), "../ab");
        assert_eq!(seen("a/b/c", "a/d/e/"), "../../b/c");
        assert_eq!(seen("a/", "a/"), "./");
        assert_eq!(seen("x", "a/b/"), "../../x");
    }

    #[test]
    fn paths_with_spaces_are_quoted_where_that_matters() {
        let shown = |path: &str, space| shown_path(path.into(), "".into(), (true, space));
        assert_eq!(shown("a b", true), "\"a b\"");
        assert_eq!(shown("a b", false), "a b");
        assert_eq!(shown("a\tb c", true), "\"a\\tb c\"");
    }
}

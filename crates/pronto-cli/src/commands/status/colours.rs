//! The colours and the format of paths in `status`.

use crate::CliError;
use bstr::BStr;
use pronto::Repository;
use std::io::{IsTerminal, Write};

/// The kind of a piece of output, which selects its colour (`color.status.SLOT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColourSlot {
    Header,
    Updated,
    Changed,
    Untracked,
    NoBranch,
    Unmerged,
    LocalBranch,
    RemoteBranch,
    OnBranch,
    /// Never coloured.
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

/// The colours of `status`.
pub(super) struct StatusColours {
    /// The escape sequence of each slot; `None` without colours.
    palette: Option<[String; 9]>,
}

impl StatusColours {
    pub(super) fn read(repository: &Repository, colored: bool) -> Result<StatusColours, CliError> {
        if !colored || !wants_color(repository)? {
            return Ok(StatusColours { palette: None });
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
        if palette[ColourSlot::OnBranch as usize].is_empty() {
            palette[ColourSlot::OnBranch as usize] = palette[ColourSlot::Header as usize].clone();
        }
        Ok(StatusColours {
            palette: Some(palette),
        })
    }

    /// Returns the escape sequence that selects the colour of `slot`.
    pub(super) fn color(&self, slot: ColourSlot) -> &str {
        match &self.palette {
            Some(palette) => palette.get(slot as usize).map_or("", String::as_str),
            None => "",
        }
    }

    /// Returns the escape sequence that ends a coloured line.
    pub(super) fn line_end(&self) -> &'static str {
        match self.palette {
            Some(_) => "\x1b[m\n",
            None => "\n",
        }
    }

    /// Writes `text` in the colour of `slot`.
    pub(super) fn write(
        &self,
        out: &mut impl Write,
        slot: ColourSlot,
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

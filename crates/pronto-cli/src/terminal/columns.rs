//! Formats lists in columns (`--column`, `column.*`).

use std::io::{self, IsTerminal, Write};

use bstr::{BStr, BString};
use pronto::Repository;

use crate::CliError;

/// The layout of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    when: ColumnMode,
    layout: ColumnLayout,
    /// Whether each column is as wide as its content (`dense`).
    dense: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ColumnMode {
    #[default]
    Never,
    Always,
    /// In columns if standard output is a terminal (`auto`).
    Auto,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ColumnLayout {
    /// Filled from top to bottom, then to the right (`column`).
    #[default]
    Columns,
    /// Filled from left to right, then down (`row`).
    Rows,
    /// One item on each line (`plain`).
    Plain,
}

/// The text around the items of a list.
pub(crate) struct ColumnFrame {
    /// The text before each line.
    pub(crate) indent: String,
    /// The text at the end of each line.
    pub(crate) end: &'static str,
    /// The largest width of a line.
    pub(crate) width: usize,
}

impl Columns {
    /// Reads the layout from `column.ui` and `column.COMMAND`, and then from `given`, the value of
    /// `--column`.
    ///
    /// # Errors
    /// Fails if a word is unknown.
    pub(crate) fn read(
        repository: &Repository,
        command: &str,
        given: Option<&BStr>,
    ) -> Result<Columns, CliError> {
        let mut columns = Columns::default();
        for name in ["ui", command] {
            if let Some(value) = repository.config().raw(format!("column.{name}")) {
                columns.apply(value).map_err(|word| unknown(&word))?;
            }
        }
        match given {
            None => {}
            Some(words) => {
                columns.when = ColumnMode::Always;
                columns.apply(words).map_err(|word| unknown(&word))?;
            }
        }
        Ok(columns)
    }

    fn apply(&mut self, words: &BStr) -> Result<(), BString> {
        let (mut has_when, mut has_layout) = (false, false);
        let words = words.split(|byte| b" ,".contains(byte));
        for word in words.filter(|word| !word.is_empty()) {
            match word {
                b"always" => self.when = ColumnMode::Always,
                b"never" => self.when = ColumnMode::Never,
                b"auto" => self.when = ColumnMode::Auto,
                b"column" => self.layout = ColumnLayout::Columns,
                b"row" => self.layout = ColumnLayout::Rows,
                b"plain" => self.layout = ColumnLayout::Plain,
                b"dense" => self.dense = true,
                b"nodense" => self.dense = false,
                _ => return Err(word.into()),
            }
            has_when |= matches!(word, b"always" | b"never" | b"auto");
            has_layout |= matches!(word, b"column" | b"row" | b"plain");
        }
        if has_layout && !has_when {
            self.when = ColumnMode::Always;
        }
        Ok(())
    }

    /// Returns whether lists are laid out in columns.
    pub(crate) fn is_active(self) -> bool {
        match self.when {
            ColumnMode::Never => false,
            ColumnMode::Always => true,
            ColumnMode::Auto => io::stdout().is_terminal(),
        }
    }

    /// Prints `items`, which must be ASCII.
    pub(crate) fn print(
        self,
        items: &[BString],
        frame: &ColumnFrame,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let Some(widest) = items.iter().map(|item| item.len()).max() else {
            return Ok(());
        };
        let room = frame.width.saturating_sub(frame.indent.len());
        let columns = match self.layout {
            ColumnLayout::Plain => 1,
            _ => (room / (widest + 1)).max(1),
        };
        let mut grid = Grid {
            items,
            by_rows: self.layout == ColumnLayout::Rows,
            columns,
            rows: items.len().div_ceil(columns),
        };
        let mut widths = vec![widest + 1; grid.columns];
        if self.dense && self.layout != ColumnLayout::Plain {
            widths = grid.shrink(room);
        }
        grid.print(&widths, frame, out)
    }
}

fn unknown(word: &BString) -> CliError {
    CliError::unsupported(format!("column style '{word}'"))
}

/// The arrangement of the items of a list in rows and columns.
struct Grid<'a> {
    items: &'a [BString],
    by_rows: bool,
    columns: usize,
    rows: usize,
}

impl Grid<'_> {
    fn at(&self, column: usize, row: usize) -> usize {
        match self.by_rows {
            true => row * self.columns + column,
            false => column * self.rows + row,
        }
    }

    /// Returns the width of each column, including the blank after it.
    fn widths(&self) -> Vec<usize> {
        let width = |column| {
            let items = (0..self.rows).filter_map(|row| self.items.get(self.at(column, row)));
            1 + items.map(|item| item.len()).max().unwrap_or(0)
        };
        (0..self.columns).map(width).collect()
    }

    /// Reduces the number of rows as far as the columns fit into `room`, and returns the column
    /// widths.
    fn shrink(&mut self, room: usize) -> Vec<usize> {
        while self.rows > 1 {
            let rows = self.rows - 1;
            let tighter = Grid {
                columns: self.items.len().div_ceil(rows),
                rows,
                ..*self
            };
            if tighter.widths().iter().sum::<usize>() > room {
                break;
            }
            *self = tighter;
        }
        self.widths()
    }

    fn print(&self, widths: &[usize], frame: &ColumnFrame, out: &mut impl Write) -> io::Result<()> {
        for row in 0..self.rows {
            for (column, width) in widths.iter().enumerate() {
                let at = self.at(column, row);
                let Some(item) = self.items.get(at) else {
                    break;
                };
                if column == 0 {
                    out.write_all(frame.indent.as_bytes())?;
                }
                out.write_all(item)?;
                let is_last = match self.by_rows {
                    true => column + 1 == self.columns || at + 1 == self.items.len(),
                    false => at + self.rows >= self.items.len(),
                };
                match is_last {
                    true => out.write_all(frame.end.as_bytes())?,
                    false => write!(out, "{:1$}", "", width - item.len())?,
                }
            }
        }
        Ok(())
    }
}

/// Returns the largest width of lines on standard output: the terminal width minus one.
pub(crate) fn line_width(repository: &Repository) -> usize {
    let variable = repository.environment().text("COLUMNS");
    let wanted = variable.and_then(|columns| columns.parse::<usize>().ok());
    let width = wanted.filter(|&columns| columns > 0).unwrap_or_else(|| {
        rustix::termios::tcgetwinsize(rustix::stdio::stdout())
            .ok()
            .filter(|size| size.ws_col > 0)
            .map_or(80, |size| usize::from(size.ws_col))
    });
    width - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(words: &str, width: usize) -> String {
        let mut columns = Columns::default();
        columns.apply(words.into()).expect("known words");
        let items = ["a", "bbbbbbbb", "cc", "d", "ee"].map(BString::from);
        let frame = ColumnFrame {
            indent: "> ".to_owned(),
            end: "\n",
            width,
        };
        let mut out = Vec::new();
        columns.print(&items, &frame, &mut out).expect("memory");
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn columns_and_rows() {
        assert_eq!(print("column", 22), "> a        d\n> bbbbbbbb ee\n> cc\n");
        assert_eq!(
            print("row", 22),
            "> a        bbbbbbbb\n> cc       d\n> ee\n"
        );
        assert_eq!(print("plain", 22), "> a\n> bbbbbbbb\n> cc\n> d\n> ee\n");
        assert_eq!(
            print("column,dense", 18),
            "> a        cc ee\n> bbbbbbbb d\n"
        );
    }
}

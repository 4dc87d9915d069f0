//! The parser of configuration files. Its cursor yields one event after another, with the bytes of
//! each event, so the same parser serves reading and editing.

use std::ops::Range;

/// The error of a malformed line, with its number (counted from one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine(pub u32);

/// An event at the cursor. The names and values are in fields of the [`ConfigParser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A section header. [`ConfigParser::section`] is its name.
    Section,
    /// A variable: [`ConfigParser::name`] and [`ConfigParser::value`] are set.
    Entry,
    /// White space and line ends between other events.
    Blank,
    /// A comment, up to the end of its line.
    Comment,
}

/// A cursor over the bytes of a configuration file. Allocates only when one of its three buffers
/// grows.
pub struct ConfigParser<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
    /// The current section in canonical form with a trailing dot: `core.`, `remote.Name.`.
    pub section: Vec<u8>,
    /// The position in `section` at which a quoted subsection starts, or `None` without a quoted
    /// subsection.
    pub subsection_at: Option<usize>,
    /// The name of the last variable, in lower case.
    pub name: Vec<u8>,
    /// The value of the last variable, if it has one.
    pub value: Option<Vec<u8>>,
    /// The number of the line on which the last variable ends.
    pub entry_line: u32,
    /// The range of bytes of the last event.
    pub span: Range<usize>,
}

impl<'a> ConfigParser<'a> {
    /// Creates a parser at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        let at = if bytes.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        ConfigParser {
            bytes,
            at,
            line: 1,
            section: Vec::new(),
            subsection_at: None,
            name: Vec::new(),
            value: None,
            entry_line: 0,
            span: at..at,
        }
    }

    /// Returns the next event, or `None` at the end of the file.
    ///
    /// # Errors
    /// Fails with [`BadLine`] if a line is malformed.
    pub fn next_event(&mut self) -> Result<Option<Event>, BadLine> {
        let begin = self.at;
        let Some(byte) = self.read() else {
            self.span = begin..begin;
            return Ok(None);
        };
        let event = match byte {
            b'#' | b';' => {
                while self.peek().is_some_and(|byte| byte != b'\n') {
                    self.at += 1;
                }
                Event::Comment
            }
            b'[' => {
                self.read_section()?;
                Event::Section
            }
            byte if is_space(byte) => {
                while self.peek().is_some_and(is_space) {
                    self.read();
                }
                Event::Blank
            }
            byte if byte.is_ascii_alphabetic() => {
                self.read_entry(byte)?;
                Event::Entry
            }
            _ => return Err(BadLine(self.line)),
        };
        self.span = begin..self.at;
        Ok(Some(event))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Reads one byte. Skips a carriage return before a line feed, and counts lines.
    fn read(&mut self) -> Option<u8> {
        let mut byte = self.peek()?;
        self.at += 1;
        if byte == b'\r' && self.peek() == Some(b'\n') {
            self.at += 1;
            byte = b'\n';
        }
        if byte == b'\n' {
            self.line += 1;
        }
        Some(byte)
    }

    /// Reads one byte like [`read`](Self::read). The end of the file counts as a line end.
    fn read_or_line_end(&mut self) -> u8 {
        self.read().unwrap_or(b'\n')
    }

    fn read_section(&mut self) -> Result<(), BadLine> {
        self.section.clear();
        self.subsection_at = None;
        loop {
            let line = self.line;
            match self.read() {
                Some(b']') => break,
                Some(byte) if is_space(byte) => return self.read_subsection(byte, line),
                Some(byte) if is_key_byte(byte) || byte == b'.' => {
                    self.section.push(byte.to_ascii_lowercase());
                }
                _ => return Err(BadLine(line)),
            }
        }
        self.section.push(b'.');
        Ok(())
    }

    fn read_subsection(&mut self, mut byte: u8, mut line: u32) -> Result<(), BadLine> {
        while is_space(byte) {
            if byte == b'\n' {
                return Err(BadLine(line));
            }
            line = self.line;
            byte = self.read_or_line_end();
        }
        if byte != b'"' {
            return Err(BadLine(line));
        }
        self.section.push(b'.');
        self.subsection_at = Some(self.section.len());
        loop {
            match self.read_or_line_end() {
                b'\n' => return Err(BadLine(line)),
                b'"' => break,
                b'\\' => match self.read_or_line_end() {
                    b'\n' => return Err(BadLine(line)),
                    escaped => self.section.push(escaped),
                },
                byte => self.section.push(byte),
            }
        }
        self.section.push(b'.');
        match self.read() {
            Some(b']') => Ok(()),
            _ => Err(BadLine(line)),
        }
    }

    fn read_entry(&mut self, first: u8) -> Result<(), BadLine> {
        self.name.clear();
        self.name.push(first.to_ascii_lowercase());
        while let Some(byte) = self.peek().filter(|&byte| is_key_byte(byte)) {
            self.name.push(byte.to_ascii_lowercase());
            self.at += 1;
        }
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.entry_line = self.line;
        match self.read_or_line_end() {
            b'\n' => self.value = None,
            b'=' => self.read_value()?,
            _ => return Err(BadLine(self.line)),
        }
        Ok(())
    }

    fn read_value(&mut self) -> Result<(), BadLine> {
        let mut value = self.value.take().unwrap_or_default();
        value.clear();
        let (mut quoted, mut comment, mut trimmed) = (false, false, None);
        loop {
            let line = self.line;
            let byte = self.read_or_line_end();
            if byte == b'\n' {
                if quoted {
                    return Err(BadLine(line));
                }
                value.truncate(trimmed.unwrap_or(value.len()));
                self.entry_line = line;
                self.value = Some(value);
                return Ok(());
            }
            if comment {
                continue;
            }
            if is_space(byte) && !quoted {
                trimmed = trimmed.or(Some(value.len()));
                if !value.is_empty() {
                    value.push(byte);
                }
                continue;
            }
            if !quoted && matches!(byte, b';' | b'#') {
                comment = true;
                continue;
            }
            trimmed = None;
            match byte {
                b'"' => quoted = !quoted,
                b'\\' => match self.read_or_line_end() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    escaped @ (b'\\' | b'"') => value.push(escaped),
                    _ => return Err(BadLine(line)),
                },
                byte => value.push(byte),
            }
        }
    }
}

/// Whether `byte` is white space for Git: C's white space without vertical tab and form feed.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a section or variable name may contain `byte`.
pub fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Result<Vec<(String, Option<String>)>, BadLine> {
        let mut parser = ConfigParser::new(text.as_bytes());
        let mut all = Vec::new();
        while let Some(event) = parser.next_event()? {
            if event == Event::Entry {
                let key = [parser.section.as_slice(), &parser.name].concat();
                let value = parser.value.clone();
                let text = |bytes| String::from_utf8(bytes).expect("text in, text out");
                all.push((text(key), value.map(text)));
            }
        }
        Ok(all)
    }

    #[test]
    fn names_and_values_are_read_as_git_reads_them() {
        let text = "\u{feff}[Core]\n\tBare = true ; yes\r\nempty=\nflag\n[a \"B\\\"c\"] x = \" y \"#\n\
                    long = one \\\n  two\\n  \n[d.E]k=v";
        let expected = [
            ("core.bare", Some("true")),
            ("core.empty", Some("")),
            ("core.flag", None),
            ("a.B\"c.x", Some(" y ")),
            ("a.B\"c.long", Some("one   two\n")),
            ("d.e.k", Some("v")),
        ];
        let expected: Vec<_> = expected
            .map(|(key, value)| (key.to_owned(), value.map(str::to_owned)))
            .into();
        assert_eq!(entries(text), Ok(expected));
    }

    #[test]
    fn broken_files_name_the_line() {
        for (text, line) in [
            ("[a", 1),
            ("[a]\n=x", 2),
            ("[a]\nb = \"x\nc = 1", 2),
            ("[a]\nb = \\x", 2),
            ("[a \"b\nc\"]", 1),
            ("[a \"b\" ]", 1),
            ("[a]\nb !", 2),
            ("[a b]", 1),
        ] {
            assert_eq!(entries(text), Err(BadLine(line)), "{text:?}");
        }
    }
}

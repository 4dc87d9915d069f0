//! Converts Markdown to manual pages.
//!
//! Supports the elements that the pages of commands use: headings, paragraphs, lists, tables of two
//! columns, code blocks, `code`, *emphasis* and links.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use roff::{Inline, Roff, bold, italic, roman};

/// Returns a manual page of section 1.
///
/// `name` is the name of the page (`pronto-add`), `about` is the line of its section NAME, and
/// `body` is the rest in Markdown.
pub(super) fn page(name: &str, about: &str, body: &str) -> Vec<u8> {
    let mut roff = Roff::new();
    let title = name.to_uppercase();
    let version = concat!("pronto ", env!("CARGO_PKG_VERSION"));
    roff.control("TH", [title.as_str(), "1", "", version, "pronto manual"]);
    roff.control("SH", ["NAME"]);
    roff.text(vec![roman(format!("{name} - {about}"))]);
    let mut writer = Writer {
        roff,
        line: Vec::new(),
        bold: 0,
        italic: 0,
        lists: Vec::new(),
        is_in_code: false,
        term: Term::None,
        links: Vec::new(),
    };
    for event in Parser::new_ext(body, Options::ENABLE_TABLES) {
        writer.event(event);
    }
    // The crate writes an empty argument without quotes, so that the next one would be the date.
    let page = writer.roff.to_roff();
    page.replacen(" 1  \"", " 1 \"\" \"", 1).into_bytes()
}

/// The state of the search for the term of a list item: `- TERM: text`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Term {
    /// The text is not part of an item.
    None,
    /// The item has only contained code and commas so far, so that this text may be its term.
    Possible,
    /// The term has been written, or the item has no term.
    Over,
}

struct Writer {
    roff: Roff,
    /// The inline elements that are not written yet.
    line: Vec<Inline>,
    bold: usize,
    italic: usize,
    /// The number of the next item of each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    is_in_code: bool,
    term: Term,
    links: Vec<String>,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_in_code => {
                for line in text.lines() {
                    self.roff.text(vec![roman(line)]);
                }
            }
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.line.push(bold(text.as_ref())),
            Event::SoftBreak => self.line.push(roman(" ")),
            Event::HardBreak => {
                self.flush();
                self.roff.control("br", []);
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.term == Term::Possible {
            if let Some(rest) = text.strip_prefix(": ") {
                self.begin_term();
                self.flush();
                self.push(rest);
                return;
            }
            if text.trim_matches([',', ' ']).is_empty() {
                self.push(text);
                return;
            }
            self.begin_bullet();
        }
        self.push(text);
    }

    fn push(&mut self, text: &str) {
        self.line.push(if self.bold > 0 {
            bold(text)
        } else if self.italic > 0 {
            italic(text)
        } else {
            roman(text)
        });
    }

    /// Writes the line so far as the term of the item.
    fn begin_term(&mut self) {
        self.roff.control("TP", []);
        self.term = Term::Over;
    }

    /// Writes the number or the bullet of an item without a term.
    fn begin_bullet(&mut self) {
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}.", *number - 1)
            }
            _ => "•".to_owned(),
        };
        self.roff.control("IP", [mark.as_str(), "4"]);
        self.term = Term::Over;
    }

    fn flush(&mut self) {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.roff.text(line);
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph if self.lists.is_empty() => {
                self.roff.control("PP", []);
            }
            Tag::CodeBlock(_) => {
                self.flush();
                self.is_in_code = true;
                self.roff.control("PP", []);
                self.roff.control("RS", ["4"]);
                self.roff.control("nf", []);
            }
            Tag::List(first) => {
                self.end_item();
                if !self.lists.is_empty() {
                    self.roff.control("RS", []);
                }
                self.lists.push(first);
            }
            Tag::Item | Tag::TableRow => self.term = Term::Possible,
            Tag::Strong => self.bold += 1,
            Tag::Emphasis => self.italic += 1,
            Tag::Link { dest_url, .. } => self.links.push(dest_url.into_string()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => {
                let heading: String = self.line.drain(..).map(plain).collect();
                if level as usize <= 2 {
                    self.roff.control("SH", [heading.to_uppercase().as_str()]);
                } else {
                    self.roff.control("SS", [heading.as_str()]);
                }
            }
            TagEnd::Paragraph => self.flush(),
            TagEnd::CodeBlock => {
                self.is_in_code = false;
                self.roff.control("fi", []);
                self.roff.control("RE", []);
            }
            TagEnd::Item => {
                self.end_item();
                self.term = Term::None;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                if !self.lists.is_empty() {
                    self.roff.control("RE", []);
                }
            }
            // The first cell of a row is the term, and the other cells are the text. Headers are
            // omitted.
            TagEnd::TableHead => self.line.clear(),
            TagEnd::TableCell if self.term == Term::Possible => {
                self.begin_term();
                self.flush();
            }
            TagEnd::TableCell if self.term == Term::Over => self.line.push(roman(" ")),
            TagEnd::TableRow => {
                self.flush();
                self.term = Term::None;
            }
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Link => self.end_link(),
            _ => {}
        }
    }

    /// Appends the URL of an external link to its text.
    fn end_link(&mut self) {
        if let Some(url) = self.links.pop()
            && url.contains("://")
        {
            self.push(&format!(" <{url}>"));
        }
    }

    fn end_item(&mut self) {
        if self.term == Term::Possible {
            self.begin_bullet();
        }
        self.flush();
    }
}

fn plain(inline: Inline) -> String {
    match inline {
        Inline::Roman(text) | Inline::Italic(text) | Inline::Bold(text) => text,
        Inline::LineBreak => " ".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(body: &str) -> String {
        let page = page("pronto-x", "does x", body);
        String::from_utf8(page).expect("text was converted")
    }

    #[test]
    fn the_title_has_an_empty_date() {
        let text = converted("");
        assert!(text.starts_with(".TH PRONTO-X 1 \"\" \"pronto "), "{text}");
    }

    #[test]
    fn options_are_terms() {
        let text = converted("## Options\n\n- `-s`, `--short`: Be *short*\n");
        assert!(
            text.contains(
                ".SH OPTIONS\n.TP\n\\fB\\-s\\fR, \\fB\\-\\-short\\fR\nBe \\fIshort\\fR\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn items_without_a_term_get_bullets_and_numbers() {
        let text = converted("- one\n- two\n\n1. first\n2. second\n");
        assert_eq!(text.matches(".IP • 4").count(), 2, "{text}");
        assert!(text.contains(".IP 2. 4\nsecond"), "{text}");
    }

    #[test]
    fn code_keeps_its_lines() {
        let text = converted("```\n.a\n  b\n```\n");
        assert!(text.contains(".nf\n\\&.a\n  b\n.fi"), "{text}");
    }

    #[test]
    fn rows_of_tables_are_terms() {
        let text = converted("| key | meaning |\n|---|---|\n| `a.b` | sets b |\n");
        assert!(text.contains(".TP\n\\fBa.b\\fR\nsets b"), "{text}");
        assert!(!text.contains("meaning"), "{text}");
    }
}

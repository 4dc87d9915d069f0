//! Formats a manual page as text, without `man`.
//!
//! Supports the requests that `cargo xtask docs` writes: headings, paragraphs, tagged and numbered
//! items, indented blocks, text that is not filled, and the fonts `\fB`, `\fI` and `\fR`.

/// The left margin of the text below headings.
const MARGIN: usize = 7;
/// The additional margin of the text of tagged items.
const ITEM_INDENT: usize = 7;
/// The left margin of subheadings.
const SUBHEADING_MARGIN: usize = 3;

/// The form of a formatted page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageLook {
    /// The width of the lines.
    pub(crate) columns: usize,
    /// Print bold letters twice and underline emphasised ones, with backspaces between, as pagers
    /// expect it.
    pub(crate) overstrike: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Font {
    Roman,
    Bold,
    Italic,
}

/// A character with its font.
type Glyph = (char, Font);

/// Formats the page `source`.
pub(crate) fn render(source: &str, look: PageLook) -> String {
    let mut writer = PageWriter::new(look);
    for line in source.lines() {
        match line.strip_prefix('.') {
            Some(request) => writer.request(request),
            None => writer.text(line),
        }
    }
    writer.finish()
}

struct PageWriter {
    look: PageLook,
    out: String,
    /// The words of the paragraph that are not written yet.
    words: Vec<Vec<Glyph>>,
    /// The margin of the paragraph.
    margin: usize,
    /// The margin of the text of an item; equal to `margin` outside of items.
    indent: usize,
    /// The margins and indents outside of the open blocks.
    outer: Vec<(usize, usize)>,
    /// The tag of the item that begins.
    tag: Option<Vec<Glyph>>,
    /// Whether the next line is a tag.
    expects_tag: bool,
    /// Whether lines are filled.
    fills: bool,
    /// Whether nothing has been written since the last heading.
    is_below_heading: bool,
    /// The parts of the last line.
    source: String,
    title: String,
}

impl PageWriter {
    fn new(look: PageLook) -> Self {
        PageWriter {
            look,
            out: String::new(),
            words: Vec::new(),
            margin: MARGIN,
            indent: MARGIN,
            outer: Vec::new(),
            tag: None,
            expects_tag: false,
            fills: true,
            is_below_heading: false,
            source: String::new(),
            title: String::new(),
        }
    }

    fn request(&mut self, request: &str) {
        let (name, rest) = request.split_once(' ').unwrap_or((request, ""));
        let arguments = arguments(rest);
        let argument = |at: usize| arguments.get(at).map(String::as_str).unwrap_or_default();
        self.flush();
        match name {
            "TH" => self.header(&arguments),
            "SH" => self.heading(argument(0), 0),
            "SS" => self.heading(argument(0), SUBHEADING_MARGIN),
            "PP" => {
                self.gap();
                self.indent = self.margin;
            }
            "TP" => {
                self.gap();
                self.indent = self.margin + ITEM_INDENT;
                self.expects_tag = true;
            }
            "IP" => {
                self.gap();
                self.indent = self.margin + argument(1).parse().unwrap_or(ITEM_INDENT);
                self.tag = Some(glyphs(argument(0)));
            }
            "RS" => {
                self.outer.push((self.margin, self.indent));
                let width = argument(0).parse().ok();
                self.margin = width.map_or(self.indent, |width: usize| self.margin + width);
                self.indent = self.margin;
            }
            "RE" => (self.margin, self.indent) = self.outer.pop().unwrap_or((MARGIN, MARGIN)),
            "nf" => self.fills = false,
            "fi" => self.fills = true,
            _ => {}
        }
    }

    fn text(&mut self, line: &str) {
        let line = glyphs(line);
        if std::mem::take(&mut self.expects_tag) {
            self.tag = Some(line);
        } else if self.fills {
            let words = line.split(|(letter, _)| *letter == ' ');
            let words = words.filter(|word| !word.is_empty());
            self.words.extend(words.map(<[Glyph]>::to_vec));
        } else {
            self.line(self.margin, &line);
        }
    }

    /// Writes the paragraph so far.
    fn flush(&mut self) {
        let (words, tag) = (std::mem::take(&mut self.words), self.tag.take());
        let mut line = Vec::new();
        let mut start = self.indent;
        if let Some(tag) = tag {
            let room = self.indent.saturating_sub(self.margin);
            if tag.len() < room {
                line = tag;
                line.resize(room, (' ', Font::Roman));
                start = self.margin;
            } else {
                self.line(self.margin, &tag);
            }
        }
        let mut is_first = true;
        for word in words {
            let is_full = start + line.len() + 1 + word.len() > self.look.columns;
            if !is_first && is_full {
                self.line(start, &line);
                (line, start) = (Vec::new(), self.indent);
            } else if !is_first {
                line.push((' ', Font::Roman));
            }
            line.extend(word);
            is_first = false;
        }
        if !line.is_empty() {
            self.line(start, &line);
        }
    }

    fn line(&mut self, margin: usize, line: &[Glyph]) {
        self.is_below_heading = false;
        self.out.extend(std::iter::repeat_n(' ', margin));
        for &(letter, font) in line {
            match font {
                _ if !self.look.overstrike || letter == ' ' => {}
                Font::Roman => {}
                Font::Bold => self.out.extend([letter, '\u{8}']),
                Font::Italic => self.out.extend(['_', '\u{8}']),
            }
            self.out.push(letter);
        }
        self.out.truncate(self.out.trim_end_matches(' ').len());
        self.out.push('\n');
    }

    /// Writes an empty line, unless the last line is empty or a heading.
    fn gap(&mut self) {
        if !self.is_below_heading && !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn heading(&mut self, heading: &str, margin: usize) {
        self.gap();
        (self.margin, self.indent) = (MARGIN, MARGIN);
        self.outer.clear();
        let bold = |(letter, _): Glyph| (letter, Font::Bold);
        let heading: Vec<Glyph> = glyphs(heading).into_iter().map(bold).collect();
        self.line(margin, &heading);
        self.is_below_heading = true;
    }

    /// Writes the first line: the title on both sides, and the name of the manual between them.
    fn header(&mut self, arguments: &[String]) {
        let argument = |at: usize| plain(arguments.get(at).map_or("", String::as_str));
        self.title = format!("{}({})", argument(0), argument(1));
        self.source = argument(3);
        let (title, manual) = (self.title.clone(), argument(4));
        self.spread(&title, &manual, &title);
    }

    fn finish(mut self) -> String {
        self.flush();
        self.gap();
        let (source, title) = (self.source.clone(), self.title.clone());
        self.spread(&source, "", &title);
        self.out
    }

    /// Writes a line with one text at the left, one in the middle and one at the right.
    fn spread(&mut self, left: &str, middle: &str, right: &str) {
        let width = |text: &str| text.chars().count();
        let all = self.look.columns;
        let before = (all.saturating_sub(width(middle)) / 2).saturating_sub(width(left));
        let used = width(left) + before.max(1) + width(middle);
        let after = all.saturating_sub(used + width(right));
        let (before, after) = (" ".repeat(before.max(1)), " ".repeat(after.max(1)));
        self.out
            .push_str(&format!("{left}{before}{middle}{after}{right}\n"));
    }
}

/// Splits the arguments of a request, which may be in double quotes.
fn arguments(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (argument, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        found.push(argument.to_owned());
        rest = after.trim_start();
    }
    found
}

/// Resolves the escapes in `text`.
fn glyphs(text: &str) -> Vec<Glyph> {
    let mut found = Vec::with_capacity(text.len());
    let mut font = Font::Roman;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            found.push((letter, font));
            continue;
        }
        match letters.next() {
            Some('f') => {
                font = match letters.next() {
                    Some('B') => Font::Bold,
                    Some('I') => Font::Italic,
                    _ => Font::Roman,
                }
            }
            Some('e') => found.push(('\\', font)),
            Some('&') | None => {}
            Some(escaped) => found.push((escaped, font)),
        }
    }
    found
}

/// Resolves the escapes in `text`, and removes the fonts.
fn plain(text: &str) -> String {
    glyphs(text).into_iter().map(|(letter, _)| letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#".TH PRONTO-X 1 "" "pronto 1" "pronto manual"
.SH NAME
pronto\-x \- do x
.SH "SEE ALSO"
.PP
One two three four five six
\fBseven\fR \fIeight\fR.
.TP
\fB\-\-longer\fR
The text of an item.
.TP
\fB\-s\fR
Short.
.IP 1. 4
first
.PP
.RS 4
.nf
\&.code  here
.fi
.RE
"#;

    fn rendered(columns: usize, overstrike: bool) -> String {
        render(
            SOURCE,
            PageLook {
                columns,
                overstrike,
            },
        )
    }

    #[test]
    fn a_page_has_the_form_that_man_gives_it() {
        let expected = "\
PRONTO-X(1)  pronto manual   PRONTO-X(1)

NAME
       pronto-x - do x

SEE ALSO
       One two three four five six seven
       eight.

       --longer
              The text of an item.

       -s     Short.

       1.  first

           .code  here

pronto 1                     PRONTO-X(1)
";
        assert_eq!(rendered(40, false), expected);
    }

    #[test]
    fn fonts_are_for_pagers_only() {
        let text = rendered(80, true);
        assert!(text.contains("N\u{8}NA\u{8}AM\u{8}ME\u{8}E\n"), "{text:?}");
        assert!(
            text.contains("_\u{8}e_\u{8}i_\u{8}g_\u{8}h_\u{8}t."),
            "{text:?}"
        );
        assert!(!rendered(80, false).contains('\u{8}'));
    }

    #[test]
    fn a_narrow_terminal_gets_one_word_on_each_line() {
        assert!(rendered(1, false).contains("\n       One\n       two\n"));
    }
}

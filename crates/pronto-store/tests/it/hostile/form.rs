//! A manifest as lines of words, and all changes of them that keep the checksum valid.
//!
//! The changes are derived from the bytes, so that a line or a word that a later version adds is
//! changed, too.

use pronto_store::Digest;

/// The keywords of lines whose last word is the number of bytes that follow.
const WITH_CONTENT: [&str; 2] = ["config", "inline"];

/// A line, with the bytes that follow it if it has a byte count.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    words: Vec<Vec<u8>>,
    content: Option<Vec<u8>>,
}

impl Line {
    fn of(text: &str) -> Self {
        Line {
            words: text
                .split(' ')
                .map(|word| word.as_bytes().to_vec())
                .collect(),
            content: None,
        }
    }

    fn keyword(&self) -> &[u8] {
        &self.words[0]
    }
}

/// The lines of a manifest without the last one.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    lines: Vec<Line>,
}

/// A change of a manifest.
pub(crate) struct Mutant {
    /// The changed line and word, and a description of the change.
    pub(crate) label: String,
    /// The keyword of the line with the index of the word, or the kind of another change.
    pub(crate) place: String,
    pub(crate) bytes: Vec<u8>,
}

impl Form {
    /// Reads the bytes of a manifest.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let end = end.expect("a line ends");
            let text = std::str::from_utf8(&rest[..end]).expect("lines are text");
            let mut line = Line::of(text);
            rest = &rest[end + 1..];
            if text.starts_with("checksum ") {
                break;
            }
            if WITH_CONTENT
                .iter()
                .any(|word| line.keyword() == word.as_bytes())
            {
                let size = text.rsplit(' ').next().expect("a word");
                let size: usize = size.parse().expect("a number");
                line.content = Some(rest[..size].to_vec());
                rest = &rest[size + 1..];
            }
            lines.push(line);
        }
        Form { lines }
    }

    /// Returns the bytes, with the checksum.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for line in &self.lines {
            out.extend(line.words.join(&b' '));
            out.push(b'\n');
            if let Some(content) = &line.content {
                out.extend(content);
                out.push(b'\n');
            }
        }
        sealed(out)
    }

    /// Returns the manifest with other bytes after the first line `keyword`, and their length.
    pub(crate) fn with_content(&self, keyword: &str, content: &[u8]) -> Self {
        let mut form = self.clone();
        for line in &mut form.lines {
            if line.keyword() == keyword.as_bytes() && line.content.is_some() {
                *line.words.last_mut().expect("a word") = content.len().to_string().into();
                line.content = Some(content.to_vec());
                break;
            }
        }
        form
    }

    /// Returns the bytes after the first line `keyword`.
    pub(crate) fn content(&self, keyword: &str) -> Vec<u8> {
        let mut lines = self.lines.iter();
        let found = lines.find(|line| line.keyword() == keyword.as_bytes());
        found
            .and_then(|line| line.content.clone())
            .expect("there is such a line")
    }

    /// Returns the manifest with another word in the first line `keyword`.
    pub(crate) fn with_word(&self, keyword: &str, at: usize, word: &str) -> Self {
        let mut form = self.clone();
        let mut lines = form.lines.iter_mut();
        let line = lines.find(|line| line.keyword() == keyword.as_bytes());
        line.expect("there is such a line").words[at] = word.into();
        form
    }

    /// Returns the manifest without the lines `keyword`, and with the given lines at the end.
    pub(crate) fn with_lines(&self, keyword: &str, lines: &[String]) -> Self {
        let mut form = self.clone();
        form.lines
            .retain(|line| line.keyword() != keyword.as_bytes());
        form.lines.extend(lines.iter().map(|line| Line::of(line)));
        form
    }

    /// Returns the manifest with other words at the end of the lines that end with `old`.
    pub(crate) fn with_text(&self, old: &str, new: &str) -> Self {
        let mut form = self.clone();
        for line in &mut form.lines {
            let text = String::from_utf8_lossy(&line.words.join(&b' ')).into_owned();
            if let Some(start) = text.strip_suffix(old) {
                *line = Line::of(&format!("{start}{new}"));
            }
        }
        form
    }

    /// Returns the manifest without packs, layers and tables.
    pub(crate) fn without_objects(&self) -> Self {
        let mut form = self.clone();
        let kinds = ["pack", "file", "layer", "table", "inline", "drop"];
        form.lines
            .retain(|line| !kinds.iter().any(|kind| line.keyword() == kind.as_bytes()));
        form
    }

    /// Passes every change of a word, of a line and of the whole to `visit`. `other` is the
    /// manifest of another repository, whose words and lines are used, too.
    pub(crate) fn each(&self, other: &Form, mut visit: impl FnMut(Mutant)) {
        for at in 0..self.lines.len() {
            self.each_word(at, other, &mut visit);
            self.each_line(at, other, &mut visit);
        }
        let whole = self.bytes();
        let body = whole.len() - "checksum \n".len() - 64;
        let mut ends: Vec<usize> = (0..body).filter(|at| whole[*at] == b'\n').collect();
        ends.extend([0, 1, body / 2, body - 1]);
        for end in ends {
            visit(Mutant {
                label: format!("cut short at {end}"),
                place: "cut short".to_owned(),
                bytes: sealed(whole[..end].to_vec()),
            });
        }
    }

    fn each_word(&self, at: usize, other: &Form, visit: &mut impl FnMut(Mutant)) {
        let line = &self.lines[at];
        for (number, word) in line.words.iter().enumerate() {
            let mut values = values(word);
            // The words at the same index in other lines: keys and digests of other objects, and of
            // another repository.
            let alike = self.lines.iter().chain(&other.lines);
            let alike = alike.filter(|other| other.keyword() == line.keyword());
            let alike = alike.filter_map(|other| other.words.get(number).cloned());
            for value in alike {
                if values.len() < MOST_VALUES && value != *word && !values.contains(&value) {
                    values.push(value);
                }
            }
            for value in values {
                let mut form = self.clone();
                form.lines[at].words[number].clone_from(&value);
                let shown = String::from_utf8_lossy(&value[..value.len().min(40)]).into_owned();
                let place = format!("{} {number}", line.keyword().escape_ascii());
                visit(Mutant {
                    label: format!("line {at}, {place}: {shown:?} ({} bytes)", value.len()),
                    place,
                    bytes: form.bytes(),
                });
            }
        }
    }

    fn each_line(&self, at: usize, other: &Form, visit: &mut impl FnMut(Mutant)) {
        let line = &self.lines[at];
        let mut show = |how: &str, change: &dyn Fn(&mut Vec<Line>)| {
            let mut form = self.clone();
            change(&mut form.lines);
            let keyword = line.keyword().escape_ascii();
            visit(Mutant {
                label: format!("line {at}, {keyword}: {how}"),
                place: format!("{keyword} {how}"),
                bytes: form.bytes(),
            });
        };
        show("removed", &|lines| _ = lines.remove(at));
        show("twice", &|lines| lines.insert(at, line.clone()));
        show("very often", &|lines| {
            let many = std::iter::repeat_n(line.clone(), 3000);
            lines.splice(at..at, many);
        });
        show("first", &|lines| lines[..=at].rotate_right(1));
        show("last", &|lines| lines[at..].rotate_left(1));
        show("behind the next", &|lines| {
            let next = (at + 1).min(lines.len() - 1);
            lines.swap(at, next);
        });
        show("with a word more", &|lines| {
            lines[at].words.push(b"0".to_vec())
        });
        show("with a word less", &|lines| _ = lines[at].words.pop());
        show("in front of one of no known kind", &|lines| {
            lines.insert(at + 1, Line::of("run sh -c true"));
        });
        show("of another repository", &|lines| {
            let mut alike = other.lines.iter();
            let alike = alike.find(|other| other.keyword() == line.keyword());
            if let Some(alike) = alike {
                lines[at] = alike.clone();
            }
        });
        show("with content of another size", &|lines| {
            if let Some(content) = &mut lines[at].content {
                content.push(b'#');
            }
        });
    }
}

/// The largest number of values of a word.
const MOST_VALUES: usize = 60;

/// Returns the values that a word can be given, whatever its meaning is.
fn values(word: &[u8]) -> Vec<Vec<u8>> {
    let mut values: Vec<Vec<u8>> = [
        "",
        "0",
        "1",
        "2",
        "-1",
        "+1",
        "00",
        "4294967295",
        "4294967296",
        "4611686018427387904",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "1000000000000000000000000000000",
        "-",
        ".",
        "..",
        "/",
        "/etc/passwd",
        "../../vault/x.git/pack",
        "vault/x",
        "\t",
        "\r",
        "\u{1b}[2J",
        "\0",
        "a\nb",
        "sha256",
        "promisor",
        "pack",
        "bundle",
        "midx",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    values.push(vec![b'a'; 600]);
    values.push(vec![b'9'; 100_000]);
    values.push(vec![0xff; 16]);
    for byte in [b'0', b'f', b'F'] {
        values.push(vec![byte; word.len()]);
    }
    let number = std::str::from_utf8(word).ok();
    if let Some(number) = number.and_then(|text| text.parse::<u64>().ok()) {
        for near in [number.wrapping_sub(1), number.wrapping_add(1), number * 2] {
            values.push(near.to_string().into());
        }
    }
    values.retain(|value| value != word);
    values
}

/// Adds the checksum.
fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let digest = Digest::of(&body);
    body.extend(format!("checksum {digest}\n").into_bytes());
    body
}

//! Checks that comments, documents and identifiers do not use the phrases in `xtask/words.txt`, and
//! that doc comments do not start with them.
//!
//! Remaining phrases are counted for each crate or document and listed in the exemptions, which
//! only shrink.

use std::collections::BTreeMap;
use std::path::Path;

use super::exemptions::Finding;
use super::source::{self, SourceFile};
use super::text::code_of;

const LIST: &str = "xtask/words.txt";
/// The largest number of places that a problem lists.
const PLACES: usize = 5;

/// The list of phrases.
#[derive(Debug, Default)]
pub(crate) struct BannedWords {
    phrases: Vec<Phrase>,
    identifiers: Vec<Phrase>,
    /// The phrases with which no doc comment may start.
    starts: Vec<Phrase>,
}

/// A phrase as its words in lower case, and its replacement. An identifier is one word in its own
/// case.
#[derive(Debug)]
struct Phrase {
    words: Vec<String>,
    instead: String,
}

/// The places of phrases, by crate or document.
type FindingsByUnit = BTreeMap<String, Vec<String>>;

impl BannedWords {
    pub(crate) fn read(root: &Path, problems: &mut Vec<String>) -> Self {
        match std::fs::read_to_string(root.join(LIST)) {
            Ok(text) => Self::parse(&text, problems),
            Err(error) => {
                problems.push(format!("cannot read {LIST}: {error}"));
                Self::default()
            }
        }
    }

    fn parse(text: &str, problems: &mut Vec<String>) -> Self {
        let mut list = BannedWords::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((phrase, instead)) = line.split_once(" -> ") else {
                problems.push(format!("{LIST}: malformed line: {line}"));
                continue;
            };
            let instead = instead.to_owned();
            let in_lower_case = |text: &str| text.split(' ').map(str::to_lowercase).collect();
            if let Some(identifier) = phrase.strip_prefix("code ") {
                let words = vec![identifier.to_owned()];
                list.identifiers.push(Phrase { words, instead });
            } else if let Some(start) = phrase.strip_prefix("start ") {
                let words = in_lower_case(start);
                list.starts.push(Phrase { words, instead });
            } else {
                let words = in_lower_case(phrase);
                list.phrases.push(Phrase { words, instead });
            }
        }
        // The longest of the phrases that begin at a word is reported.
        list.phrases
            .sort_by_key(|phrase| std::cmp::Reverse(phrase.words.len()));
        list
    }

    /// Counts the phrases in sources (for each crate) and in documents (for each file).
    pub(crate) fn findings(&self, root: &Path, sources: &[SourceFile]) -> Vec<Finding> {
        let mut places = FindingsByUnit::new();
        for source in sources {
            let unit = source::unit_of(&source.path);
            self.search_source(source, places.entry(unit).or_default());
        }
        for document in super::links::documents(root) {
            let text = std::fs::read_to_string(root.join(&document)).unwrap_or_default();
            let path = document.to_string_lossy().into_owned();
            let found = self.search_document(&path, &text);
            places.entry(path).or_default().extend(found);
        }
        places
            .into_iter()
            .filter(|(_, places)| !places.is_empty())
            .map(|(unit, places)| Finding {
                what: format!("words {unit}"),
                size: places.len(),
                rule: rule(&places),
            })
            .chain(self.starts_of_comments(sources))
            .collect()
    }

    /// Counts the doc comments of each crate that start with a phrase of the list.
    fn starts_of_comments(&self, sources: &[SourceFile]) -> Vec<Finding> {
        let mut places = FindingsByUnit::new();
        for source in sources {
            let unit = source::unit_of(&source.path);
            self.search_starts(source, places.entry(unit).or_default());
        }
        places
            .into_iter()
            .filter(|(_, places)| !places.is_empty())
            .map(|(unit, places)| Finding {
                what: format!("comments {unit}"),
                size: places.len(),
                rule: rule(&places),
            })
            .collect()
    }

    fn search_starts(&self, source: &SourceFile, places: &mut Vec<String>) {
        let mut is_inside = false;
        for (at, line) in source.lines.iter().enumerate() {
            let is_doc = is_doc_comment(line);
            if is_doc && !is_inside {
                let mut words = Vec::new();
                append(&mut words, comment_of(line).unwrap_or_default(), at + 1);
                let found = self.starts.iter().find(|phrase| phrase.is_at(&words));
                if let Some(phrase) = found {
                    let advice = phrase.advice();
                    places.push(format!("{}:{}: {advice}", source.path, at + 1));
                }
            }
            is_inside = is_doc;
        }
    }

    fn search_source(&self, source: &SourceFile, places: &mut Vec<String>) {
        let mut block = Vec::new();
        for (at, line) in source.lines.iter().enumerate() {
            if let Some(comment) = comment_of(line) {
                append(&mut block, comment, at + 1);
            } else {
                self.search(&source.path, &std::mem::take(&mut block), places);
                self.search_code(&source.path, line, at + 1, places);
            }
        }
        self.search(&source.path, &block, places);
    }

    fn search_document(&self, path: &str, text: &str) -> Vec<String> {
        let mut places = Vec::new();
        let mut block = Vec::new();
        let mut is_code = false;
        for (at, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            if !is_code && !line.starts_with("    ") {
                append(&mut block, line, at + 1);
            }
        }
        self.search(path, &block, &mut places);
        places
    }

    /// Searches the words of a paragraph for phrases.
    fn search(&self, path: &str, block: &[TextWord], places: &mut Vec<String>) {
        let mut at = 0;
        while at < block.len() {
            let found = self
                .phrases
                .iter()
                .find(|phrase| phrase.is_at(&block[at..]));
            if let Some(phrase) = found {
                places.push(format!("{path}:{}: {}", block[at].line, phrase.advice()));
            }
            at += found.map_or(1, |phrase| phrase.words.len());
        }
    }

    fn search_code(&self, path: &str, line: &str, number: usize, places: &mut Vec<String>) {
        let code = code_of(line);
        for identifier in code.split(|c: char| !c.is_alphanumeric() && c != '_') {
            let found = self
                .identifiers
                .iter()
                .find(|phrase| phrase.words[0] == identifier);
            if let Some(phrase) = found {
                places.push(format!("{path}:{number}: {}", phrase.advice()));
            }
        }
    }
}

impl Phrase {
    fn is_at(&self, words: &[TextWord]) -> bool {
        words.len() >= self.words.len()
            && self
                .words
                .iter()
                .zip(words)
                .all(|(own, word)| *own == word.text)
    }

    fn advice(&self) -> String {
        format!("'{}' (write: {})", self.words.join(" "), self.instead)
    }
}

/// A word in lower case, with the number of its line.
#[derive(Debug)]
struct TextWord {
    text: String,
    line: usize,
}

/// Appends the words of a line, except words in backticks. Text in backticks and punctuation
/// separate words, so that they form no phrase.
fn append(block: &mut Vec<TextWord>, text: &str, line: usize) {
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            block.push(TextWord {
                text: String::new(),
                line,
            });
            continue;
        }
        for piece in part.split_inclusive([' ', ',', '.', ';', ':', '(', ')']) {
            let word = piece.trim_matches(|c: char| !c.is_alphanumeric());
            if !word.is_empty() {
                block.push(TextWord {
                    text: word.to_lowercase(),
                    line,
                });
            }
            if piece.ends_with([',', '.', ';', ':', '(', ')']) {
                block.push(TextWord {
                    text: String::new(),
                    line,
                });
            }
        }
    }
}

/// Returns the text of a line that contains only a comment.
fn comment_of(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']))
}

/// Returns whether a line is part of a doc comment.
fn is_doc_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("///") && !line.starts_with("////") || line.starts_with("//!")
}

fn rule(places: &[String]) -> String {
    let mut text = format!(
        "phrases that {LIST} lists: {}",
        places[..places.len().min(PLACES)].join(", ")
    );
    if places.len() > PLACES {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> BannedWords {
        let text = "# A comment.\nwork tree -> worktree\nwhat came -> input\nwhat came of -> result\ncode Deed -> Operation\n";
        let mut problems = Vec::new();
        let words = BannedWords::parse(text, &mut problems);
        assert_eq!(problems, [""; 0]);
        words
    }

    fn places(text: &str) -> Vec<String> {
        let mut places = Vec::new();
        let source = SourceFile::new("a.rs".to_owned(), text);
        list().search_source(&source, &mut places);
        places
    }

    #[test]
    fn phrases_are_found_in_comments_across_lines() {
        assert_eq!(
            places("//! A work\n//! tree, and What came of it.\nlet work = tree();\n"),
            [
                "a.rs:1: 'work tree' (write: worktree)",
                "a.rs:2: 'what came of' (write: result)"
            ]
        );
    }

    #[test]
    fn backticks_strings_and_punctuation_are_no_phrase() {
        assert_eq!(
            places("// `work tree`, much work. Tree of it.\nlet a = \"work tree\";\n"),
            [""; 0]
        );
    }

    #[test]
    fn identifiers_are_found_in_code_alone() {
        assert_eq!(
            places("// A Deed.\nlet a = Deed::Good; let Deeds = \"Deed\";\n"),
            ["a.rs:2: 'Deed' (write: Operation)"]
        );
    }

    #[test]
    fn doc_comments_are_judged_by_their_start() {
        let mut problems = Vec::new();
        let words = BannedWords::parse("start what -> name the thing\n", &mut problems);
        let text = "/// What it is.\nlet a = 1;\n/// A thing.\n/// What it is.\nlet b = 1;\n// What now?\n";
        let source = SourceFile::new("a.rs".to_owned(), text);
        let mut places = Vec::new();
        words.search_starts(&source, &mut places);
        assert_eq!(places, ["a.rs:1: 'what' (write: name the thing)"]);
    }

    #[test]
    fn documents_are_searched_outside_of_code() {
        let text = "A work tree.\n\n```\nwork tree\n```\n\n    work tree\n";
        assert_eq!(list().search_document("a.md", text).len(), 1);
    }
}

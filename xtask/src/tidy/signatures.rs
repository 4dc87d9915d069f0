//! Checks the parameters of functions: a parameter must not be a tuple.
//!
//! Remaining tuples are counted for each crate and listed in the exemptions, which only shrink. A
//! method of `impl Trait for Type` has the signature of the trait and is not counted.

use std::collections::BTreeMap;

use super::exemptions::Finding;
use super::source::{self, SourceFile};
use super::text::code_of;

/// The largest number of places that a problem lists.
const PLACES: usize = 5;

/// Counts the tuple parameters of each crate.
pub(crate) fn findings(sources: &[SourceFile]) -> Vec<Finding> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources {
        let found = search(source);
        if !found.is_empty() {
            let unit = source::unit_of(&source.path);
            places.entry(unit).or_default().extend(found);
        }
    }
    places
        .into_iter()
        .map(|(unit, places)| Finding {
            what: format!("tuples {unit}"),
            size: places.len(),
            rule: rule(&places),
        })
        .collect()
}

fn rule(places: &[String]) -> String {
    let named = places[..places.len().min(PLACES)].join(", ");
    let more = if places.len() > PLACES { ", …" } else { "" };
    format!("no tuple parameters in signatures: {named}{more}")
}

/// Returns the tuple parameters in a file, except in tests, with their lines.
fn search(source: &SourceFile) -> Vec<String> {
    let mut places = Vec::new();
    // The indentation of the trait implementation around the line.
    let mut trait_indent = None;
    for (at, line) in source.lines.iter().enumerate() {
        if source.is_test[at] || line.trim().is_empty() {
            continue;
        }
        let indent = source::indentation(line);
        if trait_indent.is_some_and(|outer| indent <= outer) {
            trait_indent = None;
        }
        if is_trait_implementation(&source.lines, at) {
            trait_indent = Some(indent);
        }
        let is_prescribed = trait_indent.is_some_and(|outer| indent == outer + 4);
        let Some(name) = source::function_name(line).filter(|_| !is_prescribed) else {
            continue;
        };
        for parameter in parameters(&head(&source.lines, at)) {
            if is_tuple(type_of(&parameter)) {
                places.push(format!("{}:{} {name} ({parameter})", source.path, at + 1));
            }
        }
    }
    places
}

/// Returns whether the line begins `impl Trait for Type`, which may continue on further lines.
fn is_trait_implementation(lines: &[String], at: usize) -> bool {
    let start = lines[at].trim_start();
    (start.starts_with("impl ") || start.starts_with("impl<") || start.starts_with("unsafe impl"))
        && head(lines, at).contains(" for ")
}

/// Returns the code from the line to the brace or semicolon that ends the head of the item, joined
/// into one line.
pub(super) fn head(lines: &[String], at: usize) -> String {
    let mut head = String::new();
    for line in &lines[at..] {
        head.push_str(code_of(line).trim());
        head.push(' ');
        if line.trim_end().ends_with(['{', ';', '}']) {
            break;
        }
    }
    head
}

/// Returns the parameters of a function, as written.
pub(super) fn parameters(head: &str) -> Vec<String> {
    let Some(after) = head.find("fn ").map(|at| &head[at + 3..]) else {
        return Vec::new();
    };
    let mut depth = BracketDepth::default();
    // The list opens at the first parenthesis outside of the generic parameters.
    let Some(open) = after.find(|letter| letter == '(' && depth.at_top() || depth.passes(letter))
    else {
        return Vec::new();
    };
    let mut depth = BracketDepth::default();
    let mut parameters = vec![String::new()];
    for letter in after[open + 1..].chars() {
        if depth.at_top() && letter == ')' {
            break;
        }
        if depth.at_top() && letter == ',' {
            parameters.push(String::new());
            continue;
        }
        depth.passes(letter);
        if let Some(parameter) = parameters.last_mut() {
            parameter.push(letter);
        }
    }
    parameters
        .iter()
        .map(|parameter| parameter.trim().to_owned())
        .filter(|parameter| !parameter.is_empty())
        .collect()
}

/// Returns the type of a parameter, without references around it.
fn type_of(parameter: &str) -> &str {
    let mut depth = BracketDepth::default();
    let colon = parameter.find(|letter| {
        let is_end = depth.at_top() && letter == ':';
        depth.passes(letter);
        is_end
    });
    let mut kind = colon.map_or("", |at| parameter[at + 1..].trim());
    while let Some(inner) = kind.strip_prefix('&') {
        kind = inner.trim_start();
        if kind.starts_with('\'') {
            kind = kind.split_once(' ').map_or("", |(_, inner)| inner);
        }
        kind = kind.strip_prefix("mut ").unwrap_or(kind).trim_start();
    }
    kind
}

/// Returns whether a type in parentheses has a comma: `(A, B)`, but neither `()` nor `(dyn A + B)`.
fn is_tuple(kind: &str) -> bool {
    let Some(inner) = kind.strip_prefix('(') else {
        return false;
    };
    let mut depth = BracketDepth::default();
    for letter in inner.chars() {
        if depth.at_top() && letter == ',' {
            return true;
        }
        depth.passes(letter);
    }
    false
}

/// The number of open brackets.
#[derive(Debug, Default)]
struct BracketDepth {
    open: i32,
    last: char,
}

impl BracketDepth {
    fn at_top(&self) -> bool {
        self.open == 0
    }

    /// Counts a letter. Always returns false, for use in the predicate of a search.
    fn passes(&mut self, letter: char) -> bool {
        match letter {
            '(' | '[' | '{' | '<' => self.open += 1,
            ')' | ']' | '}' => self.open -= 1,
            // The `>` of an arrow closes no bracket.
            '>' if self.last != '-' => self.open -= 1,
            _ => {}
        }
        self.last = letter;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let source = SourceFile::new("crates/x/src/a.rs".to_owned(), text);
        search(&source)
            .iter()
            .filter_map(|place| Some(place.split_once(' ')?.1.to_owned()))
            .collect()
    }

    #[test]
    fn tuples_are_found_in_any_layout() {
        let text = "//! x\nfn a((b, c): (u8, u8)) {}\n\
                    pub(crate) fn d<T: Fn(u8) -> (u8, u8)>(\n    e: T,\n    \
                    f: &'a mut (Vec<(u8, u8)>, T), // A pair.\n) -> u8 {\n}\n";
        assert_eq!(
            names(text),
            ["a ((b, c): (u8, u8))", "d (f: &'a mut (Vec<(u8, u8)>, T))"]
        );
    }

    #[test]
    fn parentheses_and_pairs_in_containers_are_no_tuples() {
        let text = "//! x\nfn a(b: &(dyn C + 'static), d: (), e: &[(u8, u8)]) -> (u8, u8) {\n    \
                    run(|(f, g): (u8, u8)| f);\n}\n";
        assert_eq!(names(text), [""; 0]);
    }

    #[test]
    fn traits_prescribe_signatures() {
        let text = "//! x\nimpl A for B {\n    fn c(d: (u8, u8)) {}\n}\n\
                    impl B {\n    fn e(f: (u8, u8)) {}\n}\n\
                    trait A {\n    fn c(d: (u8, u8));\n}\n";
        assert_eq!(names(text), ["e (f: (u8, u8))", "c (d: (u8, u8))"]);
    }
}

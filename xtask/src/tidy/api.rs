//! Checks the public signatures of the crates that users of the library see.
//!
//! Results and public fields are plain data: they contain no tuples. Every operation takes the repository
//! first, and the `Watch` last; only functions that it calls may follow.

use super::signatures::{head, parameters};
use super::source::{SourceFile, function_name, unit_of};

/// The crates whose items `pronto` re-exports as operations.
const CRATES: &[&str] = &[
    "pronto",
    "pronto-operations",
    "pronto-repository",
    "pronto-storage",
    "pronto-transfer",
];

pub(crate) fn check(sources: &[SourceFile], problems: &mut Vec<String>) {
    let is_public = |source: &&SourceFile| {
        let unit = unit_of(&source.path);
        let name = unit.strip_prefix("crates/").unwrap_or(&unit);
        CRATES.contains(&name)
    };
    for source in sources.iter().filter(is_public) {
        for (line, problem) in search(source) {
            problems.push(format!("{}:{line}: {problem}", source.path));
        }
    }
}

/// Returns the problems of a file with the numbers of their lines.
fn search(source: &SourceFile) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in source.lines.iter().enumerate() {
        let text = line.trim_start();
        if source.is_test[at] || !text.starts_with("pub ") {
            continue;
        }
        let problem = match function_name(line) {
            Some(name) => problem_of(name, &head(&source.lines, at)),
            None => match text
                .strip_suffix(',')
                .and_then(|field| field.split_once(": "))
            {
                Some((name, kind)) if has_tuple(kind) => {
                    Some(format!("{name}: public fields have no tuples"))
                }
                _ => None,
            },
        };
        found.extend(problem.map(|problem| (at + 1, problem)));
    }
    found
}

fn problem_of(name: &str, head: &str) -> Option<String> {
    if head
        .rsplit_once(") -> ")
        .is_some_and(|(_, result)| has_tuple(result))
    {
        return Some(format!("{name}: results have no tuples"));
    }
    let given: Vec<String> = parameters(head)
        .into_iter()
        .filter(|parameter| !parameter.ends_with("self"))
        .collect();
    let position = |kind: &str| given.iter().position(|parameter| parameter.contains(kind));
    if position(": &Repository").is_some_and(|at| at > 0 && given[at].ends_with("&Repository")) {
        return Some(format!("{name}: the repository is the first parameter"));
    }
    let is_call = |parameter: &String| parameter.contains("Fn");
    if position("&Watch<").is_some_and(|at| !given[at + 1..].iter().all(is_call)) {
        return Some(format!("{name}: the watch is the last parameter"));
    }
    given
        .iter()
        .any(|parameter| parameter.ends_with("&Interrupt") || parameter.ends_with("&dyn Progress"))
        .then(|| format!("{name}: a Watch carries progress and interrupt"))
}

/// Returns whether a type contains a tuple: parentheses with a comma that do not belong to a function.
fn has_tuple(kind: &str) -> bool {
    let mut before = String::new();
    // For each open parenthesis: whether it may be a tuple.
    let mut open: Vec<bool> = Vec::new();
    for letter in kind.chars() {
        match letter {
            '(' => open.push(
                !before.ends_with("Fn")
                    && !before.ends_with("FnMut")
                    && !before.ends_with("FnOnce"),
            ),
            ')' => _ = open.pop(),
            ',' if open.last() == Some(&true) => return true,
            // A comma between the arguments of a generic type separates no members of a tuple.
            '<' => open.push(false),
            '>' if !before.ends_with('-') => _ = open.pop(),
            _ => {}
        }
        before.push(letter);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let source = SourceFile::new("crates/pronto/src/a.rs".to_owned(), text);
        search(&source)
            .into_iter()
            .map(|(_, problem)| problem)
            .collect()
    }

    #[test]
    fn tuples_in_results_and_fields_are_found() {
        let text = "//! x\npub struct A {\n    pub b: Vec<(u8, u8)>,\n    pub c: Box<dyn Fn(u8, u8) -> u8>,\n    \
                    pub e: HashMap<u8, u8>,\n}\npub fn d(x: u8) -> Result<Option<(u8, B)>> {\n}\n\
                    pub fn f() -> Result<()> {\n}\nfn g() -> (u8, u8) {\n}\n";
        assert_eq!(
            problems(text),
            [
                "pub b: public fields have no tuples",
                "d: results have no tuples"
            ]
        );
    }

    #[test]
    fn the_order_of_parameters_is_checked() {
        let text = "//! x\npub fn a(x: u8, repository: &Repository) {\n}\n\
                    pub fn b(repository: &Repository, watch: &Watch<'_>, call: &mut dyn FnMut(u8)) {\n}\n\
                    pub fn c(watch: &Watch<'_>, x: u8) {\n}\n\
                    pub fn d(x: u8, interrupt: &Interrupt) {\n}\n";
        assert_eq!(
            problems(text),
            [
                "a: the repository is the first parameter",
                "c: the watch is the last parameter",
                "d: a Watch carries progress and interrupt",
            ]
        );
    }
}

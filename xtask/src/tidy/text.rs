//! Checks rules about the text of each source file.

use super::source::SourceFile;

/// The crates that may contain `unsafe`.
const UNSAFE_CRATES: &[&str] = &["crates/pronto-io/", "crates/pronto-hash/", "bench/counter/"];

pub(crate) fn check(source: &SourceFile, problems: &mut Vec<String>) {
    let path = &source.path;
    if path.ends_with("/mod.rs") {
        problems.push(format!(
            "{path}: modules are files of their own name, never mod.rs"
        ));
    }
    if !source
        .lines
        .first()
        .is_some_and(|line| line.starts_with("//! "))
    {
        problems.push(format!("{path}: does not open with //!"));
    }
    let may_be_unsafe = UNSAFE_CRATES
        .iter()
        .any(|allowed| path.starts_with(allowed));
    for (at, line) in source.lines.iter().enumerate() {
        let number = at + 1;
        if is_empty_document(source, at) {
            problems.push(format!("{path}:{number}: a document that says nothing"));
        }
        let code = code_of(line);
        if code.contains("allow(missing_docs") {
            problems.push(format!(
                "{path}:{number}: missing_docs is not to be allowed"
            ));
        }
        if !may_be_unsafe && has_word(&code, "unsafe") {
            problems.push(format!(
                "{path}:{number}: unsafe lives in pronto-io and pronto-hash"
            ));
        }
        if !may_be_unsafe
            && (code.contains("allow(unsafe_code") || code.contains("expect(unsafe_code"))
        {
            problems.push(format!(
                "{path}:{number}: unsafe_code is not to be allowed here"
            ));
        }
    }
}

/// Returns whether the line is an empty doc comment line without a doc comment line beside it.
fn is_empty_document(source: &SourceFile, at: usize) -> bool {
    let marker = source.lines[at].trim();
    if marker != "///" && marker != "//!" {
        return false;
    }
    let is_beside = |at: Option<usize>| {
        at.and_then(|at| source.lines.get(at))
            .is_some_and(|line| line.trim().starts_with(marker))
    };
    !is_beside(at.checked_sub(1)) || !is_beside(Some(at + 1))
}

/// Returns the line without its strings and comments, as far as a single line shows them.
pub(crate) fn code_of(line: &str) -> String {
    let mut code = String::new();
    let mut in_string = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if in_string => {
                characters.next();
            }
            '"' => in_string = !in_string,
            '/' if !in_string && characters.peek() == Some(&'/') => break,
            _ if !in_string => code.push(character),
            _ => {}
        }
    }
    code
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> usize {
        let mut problems = Vec::new();
        check(&SourceFile::new(path.to_owned(), text), &mut problems);
        problems.len()
    }

    #[test]
    fn each_rule_bites() {
        let path = "crates/pronto/src/a.rs";
        assert_eq!(
            problems(
                path,
                "//! Fine.\n\n/// Also fine.\n///\n/// Yes.\nfn a() {}\n"
            ),
            0
        );
        assert_eq!(problems(path, "fn a() {}\n"), 1);
        assert_eq!(problems("crates/pronto/src/a/mod.rs", "//! x\n"), 1);
        assert_eq!(problems(path, "//! x\n///\nfn a() {}\n"), 1);
        let risky = format!("//! x\n{} {{ b() }}\n", "unsafe");
        assert_eq!(problems(path, &risky), 1);
        assert_eq!(problems("crates/pronto-io/src/a.rs", &risky), 0);
        assert_eq!(
            problems(path, "//! x\nfn a() { \"unsafe\"; } // unsafe\n"),
            0
        );
    }
}

//! Names of types that the workspace defines more than once.
//!
//! A reader who searches for a type by its name finds one definition. Names that are conventional when
//! a module qualifies them (`status::Options`) are not counted.

use std::collections::BTreeMap;

use super::exemptions::Finding;
use super::source::SourceFile;

/// Names that each module may define.
const CONVENTIONAL: &[&str] = &[
    "Args",
    "Entry",
    "Error",
    "ErrorKind",
    "Event",
    "Iter",
    "Kind",
    "Mode",
    "Options",
    "Outcome",
    "Reader",
    "Report",
    "Request",
    "Result",
    "Settings",
    "Writer",
];
/// The largest number of names that a problem lists.
const LISTED: usize = 5;

/// Counts the definitions of types, tests excluded, whose name another type of the workspace has
/// already.
pub(crate) fn findings(sources: &[SourceFile]) -> Option<Finding> {
    let mut definitions = BTreeMap::<&str, Vec<&str>>::new();
    for source in sources
        .iter()
        .filter(|source| source.path.contains("/src/"))
    {
        for (line, _) in source
            .lines
            .iter()
            .zip(&source.is_test)
            .filter(|(_, is_test)| !**is_test)
        {
            let name = type_name(line).filter(|name| !CONVENTIONAL.contains(name));
            if let Some(name) = name {
                definitions.entry(name).or_default().push(&source.path);
            }
        }
    }
    definitions.retain(|_, paths| paths.len() > 1);
    let size = definitions.values().map(|paths| paths.len() - 1).sum();
    let listed: Vec<String> = definitions
        .iter()
        .take(LISTED)
        .map(|(name, paths)| format!("{name} ({})", paths.join(", ")))
        .collect();
    (size > 0).then(|| Finding {
        what: "repeated-names".to_owned(),
        size,
        rule: format!(
            "definitions of types under a name that exists: {}",
            listed.join("; ")
        ),
    })
}

/// The name of the type or trait that a line defines. An indented `type` is an associated type.
fn type_name(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => code,
    };
    let (keyword, rest) = code.split_once(' ')?;
    let is_type = match keyword {
        "struct" | "enum" | "union" | "trait" => true,
        "type" => !line.starts_with(' '),
        _ => false,
    };
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let name = &rest[..end];
    (is_type && name.starts_with(char::is_uppercase)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_definitions_alone() {
        for (line, name) in [
            ("pub struct Walk<'a> {", Some("Walk")),
            ("pub(in crate::a) enum Walk {", Some("Walk")),
            ("pub type Walk = u32;", Some("Walk")),
            ("    struct Walk;", Some("Walk")),
            ("    type Item = u32;", None),
            ("pub fn walk() {", None),
            ("/// A struct Walk", None),
            ("    pub enum $name {", None),
        ] {
            assert_eq!(type_name(line), name, "{line}");
        }
    }

    #[test]
    fn repeated_definitions_are_counted_outside_of_tests() {
        let source = |path: &str, text: &str| SourceFile::new(path.to_owned(), text);
        let mut sources = vec![
            source("crates/a/src/lib.rs", "struct Walk;\nstruct Options;\n"),
            source("crates/b/src/lib.rs", "enum Options {}\nstruct Other;\n"),
            source("crates/b/tests/it/main.rs", "struct Walk;\n"),
            source(
                "crates/c/src/lib.rs",
                "#[cfg(test)]\nmod tests {\n    struct Walk;\n}\n",
            ),
        ];
        assert_eq!(findings(&sources), None);
        sources.push(source(
            "crates/d/src/lib.rs",
            "trait Walk {}\ntype Walk2 = u8;\n",
        ));
        sources.push(source("bench/src/main.rs", "union Walk {}\n"));
        let found = findings(&sources).expect("a name is repeated");
        assert_eq!((found.what.as_str(), found.size), ("repeated-names", 2));
        assert!(found.rule.contains("Walk (crates/a/src/lib.rs, crates/d"));
    }
}

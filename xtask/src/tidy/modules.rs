//! The modules of a crate and their imports, taken from the text of its files.
//!
//! Paths that begin with `crate`, `self` or `super` are resolved against the tree of modules, and
//! through re-exports. A method call on a type of another module is not an import: a module depends
//! only on the names in its text.

use std::collections::{BTreeMap, BTreeSet};

use super::source::SourceFile;

/// The largest number of re-exports through which a name is followed.
const MAX_REEXPORTS: usize = 8;

/// The path of a module from the root of its crate; empty for the root.
pub(crate) type ModulePath = Vec<String>;

/// The modules of one crate.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    pub(crate) name: String,
    /// The number of lines without tests.
    pub(crate) line_count: usize,
    modules: BTreeMap<ModulePath, Module>,
}

#[derive(Debug, Default)]
struct Module {
    /// The imported paths, as written.
    paths: Vec<ModulePath>,
    /// The imported and re-exported names of the module, with the path of each.
    names: BTreeMap<String, ModulePath>,
}

/// The import edges between modules with the same parent.
pub(crate) type ImportEdges = BTreeMap<String, BTreeSet<String>>;

/// Returns the crates below `crates/`, with their modules.
pub(crate) fn crates(sources: &[SourceFile]) -> Vec<Crate> {
    let mut crates: BTreeMap<String, Crate> = BTreeMap::new();
    for source in sources {
        let Some((name, file)) = source
            .path
            .strip_prefix("crates/")
            .and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        let entry = crates.entry(name.to_owned()).or_default();
        entry.name = name.to_owned();
        entry.add(file, source);
    }
    crates.into_values().collect()
}

impl Crate {
    fn add(&mut self, file: &str, source: &SourceFile) {
        let lines = source.lines.iter().zip(&source.is_test);
        let code: Vec<&str> = lines
            .filter(|(_, is_test)| !**is_test)
            .map(|(line, _)| without_comment(line))
            .collect();
        self.line_count += code.len();
        // A crate with a library and a program has two roots, which are merged.
        let module = self.modules.entry(module_path(file)).or_default();
        let text = code.join("\n");
        for import in imports(&text) {
            if let Some(name) = import.alias {
                module.names.insert(name, import.path.clone());
            }
            module.paths.push(import.path);
        }
        module.paths.extend(inline_paths(&text));
    }

    /// Returns the modules directly below the root.
    pub(crate) fn top_modules(&self) -> BTreeSet<String> {
        let first = |path: &ModulePath| path.first().cloned();
        self.modules.keys().filter_map(first).collect()
    }

    /// Returns the import edges between the child modules of each module.
    pub(crate) fn edges(&self) -> BTreeMap<ModulePath, ImportEdges> {
        let mut edges: BTreeMap<ModulePath, ImportEdges> = BTreeMap::new();
        for (from, module) in &self.modules {
            for path in &module.paths {
                let Some(to) = self.resolve(from, path, MAX_REEXPORTS) else {
                    continue;
                };
                let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(user), Some(used)) = (from.get(shared), to.get(shared)) {
                    let level = edges.entry(from[..shared].to_vec()).or_default();
                    let used_by = level.entry(user.clone()).or_default();
                    used_by.insert(used.clone());
                }
            }
        }
        edges
    }

    /// Returns the module that contains the item `path`, as written in the module `from`.
    fn resolve(&self, from: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let mut at = from.clone();
        let mut rest = path.iter();
        let first = rest.next()?;
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                at.pop();
            }
            name => at = self.step(&at, name, depth)?,
        }
        for name in rest {
            if name == "super" {
                at.pop();
                continue;
            }
            match self.step(&at, name, depth) {
                Some(next) => at = next,
                None => break,
            }
        }
        Some(at)
    }

    /// Returns the path of the child module or re-exported name `name` of the module `at`.
    fn step(&self, at: &ModulePath, name: &str, depth: usize) -> Option<ModulePath> {
        let mut below = at.clone();
        below.push(name.to_owned());
        if self.modules.contains_key(&below) {
            return Some(below);
        }
        let path = self.modules.get(at)?.names.get(name)?;
        // A name that resolves to itself is an item of another crate.
        if depth == 0 || path.first().is_some_and(|first| first == name) {
            return None;
        }
        self.resolve(at, path, depth - 1)
    }
}

/// Returns the import cycles: sets of modules that import each other, directly or indirectly.
pub(crate) fn knots(edges: &ImportEdges) -> Vec<BTreeSet<String>> {
    let mut knots: Vec<BTreeSet<String>> = Vec::new();
    for module in edges.keys() {
        if knots.iter().any(|knot| knot.contains(module)) {
            continue;
        }
        let used = reachable(edges, module);
        if used.contains(module) {
            let knot = used
                .into_iter()
                .filter(|other| reachable(edges, other).contains(module));
            knots.push(knot.collect());
        }
    }
    knots
}

fn reachable(edges: &ImportEdges, start: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![start.to_owned()];
    while let Some(module) = waiting.pop() {
        for next in edges.get(&module).into_iter().flatten() {
            if found.insert(next.clone()) {
                waiting.push(next.clone());
            }
        }
    }
    found
}

fn module_path(file: &str) -> ModulePath {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    match stem {
        "lib" | "main" => Vec::new(),
        _ => stem.split('/').map(str::to_owned).collect(),
    }
}

fn without_comment(line: &str) -> &str {
    line.find("//")
        .map_or(line, |at| match line[..at].contains('"') {
            true => line,
            false => &line[..at],
        })
}

/// A name that a `use` declaration imports.
#[derive(Debug, PartialEq, Eq)]
struct UseImport {
    path: ModulePath,
    /// The name in this module; `None` for a glob import.
    alias: Option<String>,
}

/// Parses the `use` declarations of a file. rustfmt starts each on a new line.
fn imports(text: &str) -> Vec<UseImport> {
    let mut imports = Vec::new();
    let mut rest = text;
    while let Some(at) = next_use(rest) {
        rest = &rest[at..];
        let end = rest.find(';').unwrap_or(rest.len());
        expand("", &rest[..end], &mut imports);
        rest = &rest[end..];
    }
    imports
}

/// Returns the position of the tree of the next `use` declaration.
fn next_use(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let mut head = &line[indent..];
        if let Some(public) = head.strip_prefix("pub") {
            head = match public.strip_prefix('(') {
                Some(scope) => scope.split_once(')').map_or("", |(_, after)| after),
                None => public,
            };
            head = head.trim_start();
        }
        if let Some(tree) = head.strip_prefix("use ") {
            return Some(at + line.len() - tree.len());
        }
        at += line.len();
    }
    None
}

/// Splits a tree of imports into paths, which all start with `prefix`.
fn expand(prefix: &str, tree: &str, imports: &mut Vec<UseImport>) {
    let mut depth = 0;
    let parts = tree.split(|letter: char| {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        if let Some((head, inner)) = part.split_once('{') {
            let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
            expand(&format!("{prefix}{head}"), inner, imports);
            continue;
        }
        let (path, alias) = part.split_once(" as ").unwrap_or((part, ""));
        let full = format!("{prefix}{path}");
        let mut path: ModulePath = full
            .split("::")
            .map(|name| name.trim().to_owned())
            .collect();
        let is_itself = path.len() > 1 && path.last().is_some_and(|last| last == "self");
        let is_all = path.last().is_some_and(|last| last == "*");
        if is_itself || is_all {
            path.pop();
        }
        let alias = match alias.trim() {
            "" => path.last().cloned(),
            alias => Some(alias.to_owned()),
        };
        let alias = alias.filter(|_| !is_all);
        imports.push(UseImport { path, alias });
    }
}

/// Returns the paths in code that begin with `crate` or `super`.
fn inline_paths(text: &str) -> Vec<ModulePath> {
    let mut paths = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
            if text[..at].ends_with(is_part) {
                continue;
            }
            let path = text[at..].split(|letter| !is_part(letter)).next();
            let names = path.unwrap_or_default().split("::");
            paths.push(
                names
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect(),
            );
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges_of(files: &[(&str, &str)]) -> BTreeMap<ModulePath, ImportEdges> {
        let sources: Vec<SourceFile> = files
            .iter()
            .map(|(file, text)| SourceFile::new(format!("crates/x/src/{file}"), text))
            .collect();
        crates(&sources)[0].edges()
    }

    #[test]
    fn imports_are_resolved_through_reexports() {
        let edges = edges_of(&[
            (
                "lib.rs",
                "mod a;\nmod b;\nmod c;\npub use c::{Thing as Other, deep};\n",
            ),
            (
                "a.rs",
                "use crate::{\n    b::{self, B},\n    Other,\n};\n// use crate::d;\n",
            ),
            ("b.rs", "fn x() { super::a::f() }\n"),
            ("c.rs", "mod deep;\nmod low;\npub use deep::Thing;\n"),
            (
                "c/deep.rs",
                "use super::low::Low;\nuse std::a::b;\npub struct Thing;\n",
            ),
            (
                "c/low.rs",
                "#[cfg(test)]\nmod tests {\n    use super::super::deep;\n}\n",
            ),
        ]);
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let root = &edges[&Vec::new()];
        assert_eq!(root["a"], set(&["b", "c"]));
        assert_eq!(root["b"], set(&["a"]));
        assert!(!root.contains_key("c"));
        assert_eq!(edges[&vec!["c".to_owned()]]["deep"], set(&["low"]));
        assert_eq!(knots(root), [set(&["a", "b"])]);
    }

    #[test]
    fn trees_of_imports_are_taken_apart() {
        let found = imports("pub(crate) use crate::{a::{self, B as C}, d::*};\n");
        let path = |text: &str| text.split("::").map(str::to_owned).collect();
        let expected = [("crate::a", "a"), ("crate::a::B", "C"), ("crate::d", "")];
        let expected = expected.map(|(text, alias)| UseImport {
            path: path(text),
            alias: (!alias.is_empty()).then(|| alias.to_owned()),
        });
        assert_eq!(found, expected);
    }
}

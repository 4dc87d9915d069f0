//! Generates the command reference, manual pages and completions from the clap definitions, and the
//! pages about settings and messages. `cargo xtask docs` runs this program.
#![expect(clippy::print_stderr, reason = "a development tool")]

mod messages;
mod page;
mod roff;
mod settings;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, Command};

/// The directories that contain only generated files, apart from [`WRITTEN`].
const FOLDERS: &[&str] = &["docs/reference", "docs/man", "docs/completions"];

/// The page about JSON documents, and the directory of their schemas, which are written by hand.
const WRITTEN: &[&str] = &["docs/reference/json.md", "docs/reference/schema"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let problems = match words.as_slice() {
        [] => write(&root()),
        ["--check"] => check(&root()),
        _ => vec!["usage: cargo xtask docs [--check]".to_owned()],
    };
    for problem in &problems {
        eprintln!("{problem}");
    }
    match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Returns the top directory of the workspace.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

/// Writes stale files, and removes files that are no longer generated.
fn write(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let files = files(root);
    for (path, contents) in &files {
        let path = root.join(path);
        let folder = path.parent().unwrap_or(root);
        let is_fresh = std::fs::read(&path).is_ok_and(|known| known == *contents);
        if is_fresh {
            continue;
        }
        let written =
            std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, contents));
        if let Err(error) = written {
            problems.push(format!("cannot write {}: {error}", path.display()));
        }
    }
    for path in leftovers(root, &files) {
        if let Err(error) = std::fs::remove_file(root.join(&path)) {
            problems.push(format!("cannot remove {path}: {error}"));
        }
    }
    problems
}

/// Returns the stale files, and the problems of the hand-written parts.
fn check(root: &Path) -> Vec<String> {
    let files = files(root);
    let stale = files
        .iter()
        .filter(|(path, contents)| {
            std::fs::read(root.join(path)).map_or(true, |known| known != **contents)
        })
        .map(|(path, _)| format!("{path} is stale: cargo xtask docs"));
    let left = leftovers(root, &files);
    stale
        .chain(
            left.into_iter()
                .map(|path| format!("{path} is no longer made: cargo xtask docs")),
        )
        .chain(incomplete(root))
        .collect()
}

fn leftovers(root: &Path, files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    FOLDERS
        .iter()
        .filter_map(|folder| Some((folder, std::fs::read_dir(root.join(folder)).ok()?)))
        .flat_map(|(folder, entries)| {
            entries
                .filter_map(Result::ok)
                .map(move |entry| format!("{folder}/{}", entry.file_name().to_string_lossy()))
        })
        .filter(|path| !files.contains_key(path) && !WRITTEN.contains(&path.as_str()))
        .collect()
}

fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let definition = pronto_cli::commands::definition();
    let mut files = BTreeMap::new();
    files.insert(
        "docs/reference/README.md".to_owned(),
        overview(&definition).into_bytes(),
    );
    files.insert(
        "docs/reference/settings.md".to_owned(),
        settings::page().into_bytes(),
    );
    files.insert(
        "docs/reference/messages.md".to_owned(),
        messages::page(root).into_bytes(),
    );
    let whole = page::body(&definition, &source(root, "pronto").unwrap_or_default());
    files.insert(
        "docs/man/pronto.1".to_owned(),
        roff::page("pronto", &about(&definition), &whole),
    );
    for command in definition.get_subcommands() {
        let (name, about) = (command.get_name(), about(command));
        let source = source(root, name).unwrap_or_default();
        let body = page::body(command, &source);
        files.insert(
            format!("docs/reference/{name}.md"),
            format!("# pronto {name}\n\n{about}\n{body}").into_bytes(),
        );
        files.insert(
            format!("docs/man/pronto-{name}.1"),
            roff::page(&format!("pronto-{name}"), &about, &body),
        );
        let parent = ParentCommand {
            path: format!("pronto {name}"),
            source: &source,
            inherited: Vec::new(),
        };
        pages_below(command, &parent, &mut files);
    }
    for (name, script) in COMPLETIONS {
        let path = format!("docs/completions/{name}");
        files.insert(path, script.as_bytes().to_vec());
    }
    files
}

/// The completion scripts.
const COMPLETIONS: [(&str, &str); 3] = [
    ("pronto.bash", include_str!("completions/pronto.bash")),
    ("_pronto", include_str!("completions/_pronto")),
    ("pronto.fish", include_str!("completions/pronto.fish")),
];

/// A command with subcommands.
struct ParentCommand<'a> {
    /// The full name, with spaces.
    path: String,
    /// The hand-written part of the page of the native command.
    source: &'a str,
    /// The options that its subcommands have, too.
    inherited: Vec<&'a Arg>,
}

/// Adds the manual pages of the subcommands of `command`.
fn pages_below(
    command: &Command,
    parent: &ParentCommand<'_>,
    files: &mut BTreeMap<String, Vec<u8>>,
) {
    let global = page::options(command).filter(|option| option.is_global_set());
    let inherited: Vec<&Arg> = parent.inherited.iter().copied().chain(global).collect();
    for below in command.get_subcommands() {
        let path = format!("{} {}", parent.path, below.get_name());
        let body = page::body_below(below, &path, parent.source, &inherited);
        let name = path.replace(' ', "-");
        files.insert(
            format!("docs/man/{name}.1"),
            roff::page(&name, &about(below), &body),
        );
        let parent = ParentCommand {
            path,
            source: parent.source,
            inherited: inherited.clone(),
        };
        pages_below(below, &parent, files);
    }
}

/// Returns the hand-written part of the page of `name`.
fn source(root: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(root.join(format!("docs/commands/{name}.md"))).ok()
}

/// Returns the problems of the hand-written parts.
fn incomplete(root: &Path) -> Vec<String> {
    let definition = pronto_cli::commands::definition();
    let names = definition.get_subcommands().map(Command::get_name);
    names
        .chain(["pronto"])
        .flat_map(|name| page::complaints(name, source(root, name).as_deref()))
        .collect()
}

fn overview(definition: &Command) -> String {
    let mut page = "# Commands of pronto\n\n\
        These pages are generated from the definitions of the arguments by `cargo xtask docs`. Every\n\
        other command, and every call with an option that is not listed, goes to the installed git.\n\n\
        | command | |\n|---|---|\n"
        .to_owned();
    for command in definition.get_subcommands() {
        let (name, about) = (command.get_name(), about(command));
        // Writing to a string does not fail.
        let _ = writeln!(page, "| [`{name}`]({name}.md) | {about} |");
    }
    page.push_str(
        "\nThe page [settings](settings.md) lists which of git's settings are supported, \
         [messages](messages.md) the messages of commands that only pronto has, and\n\
         [JSON](json.md) the output of `--json`.\n",
    );
    page.push_str("\n## Options before the command\n\n");
    page::list_options(page::options(definition), &mut page);
    page
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_from_the_definitions_is_fresh() {
        let problems = check(&root());
        assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    }
}

//! Command reference, manual pages and completions, all made from the definitions of arguments, and
//! the page about settings.

mod settings;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command};
use clap_complete::Shell;

/// Folders whose files are all made here.
const FOLDERS: &[&str] = &["docs/reference", "docs/man", "docs/completions"];

/// Writes what is stale, and removes what is made no longer.
pub(crate) fn write(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let files = files();
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

/// Says what is stale.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let files = files();
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
        .filter(|path| !files.contains_key(path))
        .collect()
}

fn files() -> BTreeMap<String, Vec<u8>> {
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
    files.insert("docs/man/pronto.1".to_owned(), manual(&definition));
    for command in definition.get_subcommands() {
        let name = command.get_name();
        files.insert(
            format!("docs/reference/{name}.md"),
            reference(command).into_bytes(),
        );
        let named = command.clone().name(format!("pronto-{name}"));
        files.insert(format!("docs/man/pronto-{name}.1"), manual(&named));
    }
    for (shell, name) in [
        (Shell::Bash, "pronto.bash"),
        (Shell::Zsh, "_pronto"),
        (Shell::Fish, "pronto.fish"),
    ] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut definition.clone(), "pronto", &mut text);
        files.insert(format!("docs/completions/{name}"), text);
    }
    files
}

fn manual(definition: &Command) -> Vec<u8> {
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = clap_mangen::Man::new(definition.clone())
        .date("")
        .render(&mut page);
    page
}

fn overview(definition: &Command) -> String {
    let mut page = "# Commands of pronto\n\n\
        Made from the definitions of the arguments by `cargo xtask docs`. Every other command, and\n\
        every option that is not listed, goes to the installed git as it was typed.\n\n\
        | command | |\n|---|---|\n"
        .to_owned();
    for command in definition.get_subcommands() {
        let (name, about) = (command.get_name(), about(command));
        // Writing to a string does not fail.
        let _ = writeln!(page, "| [`{name}`]({name}.md) | {about} |");
    }
    page.push_str(
        "\nThe page about [settings](settings.md) says which of git's settings are obeyed.\n",
    );
    page.push_str("\n## Options before the command\n\n");
    options(definition, &mut page);
    page
}

fn reference(command: &Command) -> String {
    let name = command.get_name();
    let mut page = format!("# pronto {name}\n\n{}\n", about(command));
    let operands: Vec<&Arg> = command.get_positionals().collect();
    if !operands.is_empty() {
        page.push_str("\n## Arguments\n\n");
        for operand in operands {
            // Writing to a string does not fail.
            let _ = writeln!(page, "- `{operand}`: {}", help(operand));
        }
    }
    page.push_str("\n## Options\n\n");
    options(command, &mut page);
    if let Some(notes) = command.get_after_help() {
        // Writing to a string does not fail.
        let _ = writeln!(page, "\n## Notes\n\n{notes}");
    }
    page
}

fn options(command: &Command, page: &mut String) {
    for option in command
        .get_arguments()
        .filter(|option| !option.is_positional() && !option.is_hide_set())
    {
        let mut spellings = Vec::new();
        let value = value(option);
        if let Some(short) = option.get_short() {
            spellings.push(format!("`-{short}{}`", value.replace('=', " ")));
        }
        if let Some(long) = option.get_long() {
            spellings.push(format!("`--{long}{value}`"));
        }
        // Writing to a string does not fail.
        let _ = writeln!(page, "- {}: {}", spellings.join(", "), help(option));
    }
}

/// `=<value>`, `[=<value>]`, or nothing.
fn value(option: &Arg) -> String {
    if !option.get_action().takes_values() {
        return String::new();
    }
    let names = option.get_value_names().unwrap_or_default();
    let name = names
        .first()
        .map_or("value".to_owned(), |name| name.to_lowercase());
    let is_optional = option
        .get_num_args()
        .is_some_and(|range| range.min_values() == 0);
    if is_optional {
        format!("[=<{name}>]")
    } else {
        format!("=<{name}>")
    }
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn help(argument: &Arg) -> String {
    let text = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    text.split('\n').collect::<Vec<_>>().join(" ")
}

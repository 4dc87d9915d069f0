//! Formats the page of one command: the arguments from their definition, between the hand-written
//! sections of `docs/commands/NAME.md`.

use std::fmt::Write as _;

use clap::{Arg, Command};

/// The exit status section for pages whose source has none.
const EXIT_STATUS: &str = "`0` if the command succeeds, `128` if it fails, `129` if it is called \
incorrectly. A call that goes to git exits with git's status.\n";

/// A section of the source: its heading, and its text in Markdown.
struct PageSection<'a> {
    heading: &'a str,
    text: &'a str,
}

/// Returns the page in Markdown, without its title.
///
/// `source` is the hand-written part. Its sections `Synopsis` and `Description` precede the
/// options. All other sections follow the options, in their order.
pub(super) fn body(command: &Command, source: &str) -> String {
    let sections = sections(source);
    let mut page = String::new();
    let synopsis = match find(&sections, "Synopsis") {
        Some(text) => text.to_owned(),
        None => {
            let path = format!("pronto {}", command.get_name());
            format!("```\n{}\n```\n", usage(command, &path))
        }
    };
    section(&mut page, "Synopsis", &synopsis);
    if let Some(text) = find(&sections, "Description") {
        let text = match pronto_cli::commands::native_part(command.get_name()) {
            Some(part) => format!("{}\n\n{}", in_part(part), text.trim_matches('\n')),
            None => text.to_owned(),
        };
        section(&mut page, "Description", &text);
    }
    arguments(command, &mut page);
    if find(&sections, "Exit status").is_none() {
        section(&mut page, "Exit status", EXIT_STATUS);
    }
    for PageSection { heading, text } in &sections {
        if !["Synopsis", "Description"].contains(heading) {
            section(&mut page, heading, text);
        }
    }
    page
}

/// Returns the sentences about a command that is native only in part.
fn in_part(part: &str) -> String {
    format!("pronto itself runs a part of this command: {part}. git runs all other calls.")
}

/// Returns the page of a subcommand in Markdown, without its title.
///
/// `path` is its full name, `source` the hand-written part of the page of the native command, and
/// `inherited` are the options of the commands above that it has, too.
pub(super) fn body_below(
    command: &Command,
    path: &str,
    source: &str,
    inherited: &[&Arg],
) -> String {
    let sections = sections(source);
    let of_command = |line: &&str| {
        line.strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let lines = find(&sections, "Synopsis").unwrap_or_default().lines();
    let mut synopsis: Vec<String> = lines.filter(of_command).map(str::to_owned).collect();
    if synopsis.is_empty() {
        synopsis.push(usage(command, path));
    }
    let mut page = String::new();
    let synopsis = format!("```\n{}\n```\n", synopsis.join("\n"));
    section(&mut page, "Synopsis", &synopsis);
    let about = command.get_about().map(ToString::to_string);
    let (parent, _) = path.rsplit_once(' ').unwrap_or((path, ""));
    let root = parent.split(' ').nth(1).unwrap_or(parent);
    let description = format!(
        "{}. The page of [pronto {root}]({root}.md) describes the command as a whole.\n",
        about.unwrap_or_default()
    );
    section(&mut page, "Description", &description);
    own_arguments(command, &mut page);
    let mut list = String::new();
    for below in command.get_subcommands() {
        let about = below.get_about().map(ToString::to_string);
        // Writing to a string does not fail.
        let _ = writeln!(
            list,
            "- `{}`: {}",
            below.get_name(),
            about.unwrap_or_default()
        );
    }
    if !list.is_empty() {
        section(&mut page, "Commands", &list);
    }
    let mut list = String::new();
    list_options(inherited.iter().copied(), &mut list);
    if !list.is_empty() {
        section(&mut page, "Options of the commands above", &list);
    }
    let status =
        "`0` if the command succeeds, `128` if it fails, `129` if it is called incorrectly.";
    section(&mut page, "Exit status", status);
    section(&mut page, "See also", &format!("[{root}]({root}.md)"));
    page
}

/// Returns the problems of the hand-written part of `name`, one line each.
pub(super) fn complaints(name: &str, source: Option<&str>) -> Vec<String> {
    let path = format!("docs/commands/{name}.md");
    let Some(source) = source else {
        return vec![format!(
            "{path} is missing: each native command has a description and examples"
        )];
    };
    let sections = sections(source);
    ["Description", "Examples", "See also"]
        .iter()
        .filter(|heading| find(&sections, heading).is_none())
        .map(|heading| format!("{path}: the section '## {heading}' is missing"))
        .collect()
}

fn section(page: &mut String, heading: &str, text: &str) {
    // Writing to a string does not fail.
    let _ = write!(page, "\n## {heading}\n\n{}\n", text.trim_matches('\n'));
}

fn find<'a>(sections: &[PageSection<'a>], heading: &str) -> Option<&'a str> {
    let section = sections.iter().find(|section| section.heading == heading)?;
    Some(section.text)
}

/// Returns the sections of a source, in order. Text before the first heading is not part of the
/// page.
fn sections(source: &str) -> Vec<PageSection<'_>> {
    let mut sections = Vec::new();
    let mut rest = source.strip_prefix("## ").or_else(|| {
        let at = source.find("\n## ")?;
        Some(&source[at + 4..])
    });
    while let Some(here) = rest {
        let (section, next) = match here.split_once("\n## ") {
            Some((section, next)) => (section, Some(next)),
            None => (here, None),
        };
        let (heading, text) = section.split_once('\n').unwrap_or((section, ""));
        sections.push(PageSection {
            heading: heading.trim(),
            text,
        });
        rest = next;
    }
    sections
}

/// Returns the usage line of the command with the full name `path` from the definition of the
/// arguments.
fn usage(command: &Command, path: &str) -> String {
    let has_options = options(command).next().is_some();
    let mut line = path.to_owned();
    if has_options {
        line.push_str(" [<options>]");
    }
    if command.has_subcommands() {
        line.push_str(" <command>");
    }
    for operand in operands(command) {
        // Writing to a string does not fail.
        let _ = write!(line, " {operand}");
    }
    line
}

/// Lists operands, options in the groups of the definition, and subcommands.
fn arguments(command: &Command, page: &mut String) {
    own_arguments(command, page);
    commands_below(command, &format!("pronto {}", command.get_name()), page);
}

/// Appends a section for each subcommand.
fn commands_below(command: &Command, path: &str, page: &mut String) {
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name());
        let about = below.get_about().map(ToString::to_string);
        let mut text = format!("{}.\n", about.unwrap_or_default());
        let mut list = String::new();
        for operand in operands(below) {
            // Writing to a string does not fail.
            let _ = writeln!(list, "- `{operand}`: {}", help(operand));
        }
        list_options(options(below), &mut list);
        if !list.is_empty() {
            text.push('\n');
            text.push_str(&list);
        }
        // Nested subcommands have sections of their own.
        if !below.has_subcommands() {
            section(page, &path, &text);
        }
        commands_below(below, &path, page);
    }
}

fn own_arguments(command: &Command, page: &mut String) {
    let operands: Vec<&Arg> = operands(command).collect();
    if !operands.is_empty() {
        let mut list = String::new();
        for operand in operands {
            // Writing to a string does not fail.
            let _ = writeln!(list, "- `{operand}`: {}", help(operand));
        }
        section(page, "Arguments", &list);
    }
    let mut groups: Vec<&str> = Vec::new();
    for option in options(command) {
        let group = option.get_help_heading().unwrap_or("Options");
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    // Options without a group precede all groups.
    groups.sort_by_key(|group| *group != "Options");
    for group in groups {
        let mut list = String::new();
        let members = options(command)
            .filter(|option| option.get_help_heading().unwrap_or("Options") == group);
        list_options(members, &mut list);
        section(page, group, &list);
    }
}

fn operands(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_positionals()
        .filter(|operand| !operand.is_hide_set())
}

/// Returns the options that the page lists, in the order of their definition.
pub(super) fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|option| !option.is_positional() && !option.is_hide_set())
}

/// Appends a line for each option, with its spellings and its help.
pub(super) fn list_options<'a>(options: impl Iterator<Item = &'a Arg>, page: &mut String) {
    for option in options {
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

/// Returns `=<value>`, `[=<value>]`, or an empty text for an option without a value.
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

/// Returns the help of an argument in one line. `<` outside of code is escaped, so that it opens no
/// HTML tag.
fn help(argument: &Arg) -> String {
    let text = argument
        .get_long_help()
        .or_else(|| argument.get_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = line.split('`').enumerate();
    let escaped = parts.map(|(at, part)| match at % 2 {
        0 => part.replace('<', "\\<"),
        _ => part.to_owned(),
    });
    escaped.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keep_their_order_and_text() {
        let found = sections("## One\n\na\n\n### Below\n\n## Two\nb\n");
        let headings: Vec<&str> = found.iter().map(|section| section.heading).collect();
        assert_eq!(headings, ["One", "Two"]);
        assert_eq!(found[0].text.trim(), "a\n\n### Below");
        assert_eq!(found[1].text.trim(), "b");
    }

    #[test]
    fn a_page_has_the_synopsis_first_and_examples_last() {
        let command = Command::new("add").arg(
            Arg::new("all")
                .long("all")
                .help("Add all")
                .action(clap::ArgAction::SetTrue),
        );
        let page = body(&command, "## Description\n\nText.\n\n## Examples\n\nx\n");
        let headings: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .collect();
        assert_eq!(
            headings,
            [
                "Synopsis",
                "Description",
                "Options",
                "Exit status",
                "Examples"
            ]
        );
        assert!(page.contains("- `--all`: Add all\n"));
    }
}

//! Help, and wrong arguments of every own command.

use clap::Command as Definition;

use super::Table;
use super::world::World;

/// The commands that only pronto has.
const OWN: [&str; 5] = ["netsync", "serve", "shell", "store", "sync"];

/// Appends the definition of a command and of its subcommands.
fn collect(definition: &Definition, found: &mut Vec<Definition>) {
    found.push(definition.clone());
    for below in definition.get_subcommands() {
        collect(below, found);
    }
}

/// Returns a result whose output is reduced to its first line, and the number of further lines.
fn short(result: &str) -> String {
    let mut lines = result.lines();
    let mut text = String::new();
    // An empty line and the call precede the output.
    for line in lines.by_ref().take(3) {
        text.push_str(line);
        text.push('\n');
    }
    let rest: Vec<&str> = lines.collect();
    let exit = rest.last().filter(|line| line.starts_with("exit "));
    let more = rest.len() - usize::from(exit.is_some());
    if more > 0 {
        text.push_str("(more lines)\n");
    }
    if let Some(exit) = exit {
        text.push_str(exit);
        text.push('\n');
    }
    text
}

#[test]
fn usage() {
    let world = World::new();
    let mut table = Table::new("usage");
    for name in OWN {
        let command = pronto_cli::commands::find(name).expect("a command");
        let mut found = Vec::new();
        collect(&command.definition(), &mut found);
        for definition in found {
            let path = definition
                .get_bin_name()
                .unwrap_or("pronto shell")
                .to_owned();
            table.condition(&path);
            let words = path.strip_prefix("pronto ").expect("the program");
            table.record(&short(&world.run(&format!("{path} -h"))));
            table.record(&short(&world.run(&format!("{path} --help"))));
            table.record(&short(&world.run(&format!("pronto help {words}"))));
            wrong(&world, &mut table, &definition, &path);
        }
    }
    for line in [
        "cd work && pronto pull --netsync",
        "cd work && pronto pull --netsync ../other main side",
        "cd work && pronto pull --netsync --zap ../other",
        "cd work && pronto pull --netsync --remote-progam x ../other",
        "cd work && pronto worktree add --carry=a --zap ../new",
        "cd work && pronto worktree add --carry",
        "cd work && pronto worktree add --carry=a --carry-reflink=maybe ../new",
        "cd work && pronto worktree list --carry=a",
        "pronto stroe list",
    ] {
        if line.contains("pull") && line.ends_with("--netsync") {
            table.condition("pull --netsync, worktree --carry");
        }
        table.call(&world, line);
    }
    table.compare();
}

/// Runs a command with wrong arguments.
fn wrong(world: &World, table: &mut Table, definition: &Definition, path: &str) {
    table.call(world, &format!("{path} --zap"));
    let options = definition.get_arguments().filter_map(clap::Arg::get_long);
    if let Some(option) = options.filter(|option| option.len() > 4).min() {
        let misspelt = format!(
            "{}{}",
            &option[..option.len() - 2],
            &option[option.len() - 1..]
        );
        table.call(world, &format!("{path} --{misspelt}"));
    }
    let operands: Vec<_> = definition.get_positionals().collect();
    if definition.has_subcommands() && operands.is_empty() {
        table.call(world, path);
        let first = definition.get_subcommands().next().expect("one");
        let name = first.get_name();
        table.call(world, &format!("{path} {}x", name));
        table.call(world, &format!("{path} help {name}x"));
    }
    if operands.iter().any(|operand| operand.is_required_set()) {
        table.call(world, path);
    }
    if !definition.has_subcommands() && path != "pronto sync" {
        let more = vec!["x"; operands.len() + 1].join(" ");
        table.call(world, &format!("{path} {more}"));
    }
}

//! Commands that pronto runs itself only in part.

/// Returns the part of the command `name` that pronto runs itself, if git runs a whole other part:
/// subcommands, output formats, or all calls without certain options. Single options that git handles
/// are in the manual of each command.
pub fn native_part(name: &str) -> Option<&'static str> {
    Some(match name {
        "commit" => "only with -q and a message from -m or -F",
        "diff-files" | "diff-index" | "diff-tree" => "only raw formats, no patches",
        "pull" => "only with --netsync",
        "reflog" => "without 'show'",
        "refs" => "without 'list' and 'verify'",
        "shell" => "only with --config",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::find;

    #[test]
    fn parts_are_of_native_commands() {
        for name in ["commit", "diff-tree", "pull", "reflog", "refs", "shell"] {
            assert!(
                native_part(name).is_some() && find(name).is_some(),
                "{name}"
            );
        }
        assert_eq!(native_part("status"), None);
    }
}

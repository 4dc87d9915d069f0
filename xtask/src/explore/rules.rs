//! The rules about accepted differences. Each rule cites a line of `docs/compatibility.md`.

use super::compare::{NO_OTHERS, OutcomeDifference};

/// An accepted difference.
#[derive(Debug)]
pub(super) struct AcceptedDifference {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "a test compares it with the page")
    )]
    /// The words of the line in `docs/compatibility.md` that documents the difference and its
    /// reason.
    pub(super) reason: &'static str,
    accepts: fn(&OutcomeDifference) -> bool,
}

const RULES: [AcceptedDifference; 17] = [
    AcceptedDifference {
        reason: "Packs have other deltas and compressed bytes than git's, so that they and their names differ",
        accepts: |difference| difference.kind == "stdout" && difference.command == "pack-objects",
    },
    AcceptedDifference {
        reason: "fails without the message\n  `error: object ID is a tree, not a commit`",
        accepts: |difference| {
            let line = &difference.git;
            difference.is_message()
                && line.starts_with("error: object ")
                && line.contains(", not a commit")
        },
    },
    AcceptedDifference {
        reason: "With `-o`, the file is created after the tree is found, so that a wrong name does not empty an old archive",
        accepts: |difference| {
            difference.command == "archive"
                && difference.kind.starts_with("file")
                && difference.pronto.ends_with(": (absent)")
        },
    },
    AcceptedDifference {
        reason: "`init` in an existing repository keeps its format",
        accepts: |difference| {
            let is_older = difference.git.ends_with("repositoryformatversion = 0")
                && difference.pronto.ends_with("repositoryformatversion = 1");
            let keeps = difference.pronto.ends_with("[extensions]");
            difference.command == "init"
                && difference.kind == "configuration"
                && (is_older || keeps)
        },
    },
    AcceptedDifference {
        reason: "`prune` keeps the objects that operations in progress name",
        accepts: |difference| {
            difference.command == "prune"
                && difference.kind == "objects"
                && difference.git.ends_with(NO_OTHERS)
        },
    },
    AcceptedDifference {
        reason: "`rename` and `set-head` record the committer that the configuration names",
        accepts: |difference| {
            difference.kind == "reflog"
                && ["remote rename", "remote set-head"].contains(&&*difference.command)
        },
    },
    AcceptedDifference {
        reason: "no command warns of a `.gitignore`\n  that is a symbolic link",
        accepts: |difference| {
            difference.is_message()
                && difference.git.starts_with("warning: unable to access")
                && difference
                    .git
                    .ends_with(".gitignore': Too many levels of symbolic links")
        },
    },
    AcceptedDifference {
        reason: "An error about a `.git` file with a missing target names the target. Git 2.55 prints `(null)` there",
        accepts: |difference| {
            difference.kind == "failure"
                && difference.git == "fatal: not a git repository: (null)"
                && difference
                    .pronto
                    .starts_with("fatal: not a git repository: ")
        },
    },
    AcceptedDifference {
        reason: "Only `add` and `check-attr` report lines of attributes files that cannot be used",
        accepts: |difference| {
            let reports = ["add", "check-attr"].contains(&difference.command.as_str());
            difference.is_message()
                && !reports
                && difference.git.contains("is not a valid attribute name")
        },
    },
    AcceptedDifference {
        reason: "The values of settings are checked when a command starts, so that a malformed one leaves nothing half done",
        accepts: |difference| {
            difference.kind == "failure"
                && (is_about_setting(&difference.pronto)
                    || difference.pronto.starts_with("warning: hook."))
        },
    },
    AcceptedDifference {
        reason: "Git repeats the\n  messages in each process that it starts",
        accepts: |difference| {
            let is_flaw = difference.git.starts_with("error: object directory ")
                || difference
                    .git
                    .starts_with("warning: bad replace ref name: ");
            difference.kind == "stderr" && is_flaw
        },
    },
    AcceptedDifference {
        reason: "A message about a file that cannot be written names the file and the reason",
        accepts: |difference| {
            let rest = difference.pronto.strip_prefix(difference.git.as_str());
            difference.kind == "failure"
                && !difference.git.is_empty()
                && rest.is_some_and(|rest| rest.starts_with([' ', ':']))
        },
    },
    AcceptedDifference {
        reason: "A damaged object is reported with its id, its pack and the offset",
        accepts: |difference| {
            difference.is_message()
                && (difference.git.starts_with("error: inflate: ")
                    || difference.git.starts_with("error: unable to unpack "))
        },
    },
    AcceptedDifference {
        reason: "The lock file of the index is not listed as untracked",
        accepts: |difference| {
            difference.kind == "stdout"
                && difference.command == "status"
                && difference.git.ends_with(".lock")
        },
    },
    AcceptedDifference {
        reason: "A branch called `HEAD`, which git refuses to create, does not make `HEAD` ambiguous",
        accepts: |difference| {
            difference.is_message()
                && difference.git.starts_with("warning: refname ")
                && difference.git.ends_with(" is ambiguous.")
        },
    },
    AcceptedDifference {
        reason: "It writes no trees of staged changes, to which nothing would refer",
        accepts: |difference| {
            difference.kind == "objects"
                && difference.command.starts_with("sparse-checkout")
                && difference.pronto.ends_with(NO_OTHERS)
        },
    },
    AcceptedDifference {
        reason: "A name of a new branch that begins with `-` is refused",
        accepts: |difference| {
            difference.kind == "failure"
                && difference.command == "worktree add"
                && difference.git.starts_with("error: unknown ")
                && difference.pronto.ends_with(" is not a valid branch name")
        },
    },
];

/// Returns whether a message is about a malformed value of a setting.
fn is_about_setting(message: &str) -> bool {
    let message = message
        .strip_prefix("fatal: ")
        .or_else(|| message.strip_prefix("error: "));
    message.is_some_and(|message| {
        message.starts_with("bad boolean config value")
            || message.starts_with("bad numeric config value")
            || message.starts_with("bad config ")
            || message.starts_with("missing value for ")
            || message.starts_with("malformed value for ")
            || message.starts_with("invalid color value")
    })
}

/// Returns the rule that accepts a difference.
pub(super) fn accepting(difference: &OutcomeDifference) -> Option<&'static AcceptedDifference> {
    RULES.iter().find(|rule| (rule.accepts)(difference))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_documented() {
        let page = include_str!("../../../docs/compatibility.md");
        for rule in &RULES {
            assert!(page.contains(rule.reason), "{}", rule.reason);
        }
    }

    #[test]
    fn other_differences_are_not_accepted() {
        let mut difference = OutcomeDifference {
            kind: "stderr",
            command: "checkout".to_owned(),
            git: "error: object 12 is a tree, not a commit".to_owned(),
            pronto: String::new(),
        };
        assert!(accepting(&difference).is_some());
        difference.kind = "exit code";
        assert!(accepting(&difference).is_none());
    }
}

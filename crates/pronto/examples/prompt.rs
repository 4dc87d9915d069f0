//! Prints the state of a repository for a shell prompt, within a tenth of a second for repositories
//! of every size:
//!
//! ```text
//! PS1='$(prompt) \$ '
//! ```
//!
//! `main*?` means the branch `main` with changed and with untracked files; `main…` means that the
//! time limit ended the search. Outside of a repository, the output is empty.

use pronto::refs::HeadValue;
use pronto::status::{Options, StatusItem};
use pronto::{Environment, Repository};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// The time limit of the search.
const BUDGET: Duration = Duration::from_millis(100);

fn main() -> pronto::Result<()> {
    let environment = Environment::from_process()?;
    let Some(repository) = Repository::discover_optional(environment.current_dir(), &environment)?
    else {
        return Ok(());
    };
    if repository.work_tree().is_none() {
        return Ok(());
    }
    let line = describe(&Arc::new(repository))?;
    // A closed standard output is no error.
    let _ = writeln!(std::io::stdout(), "{line}");
    Ok(())
}

fn describe(repository: &Arc<Repository>) -> pronto::Result<String> {
    let head = repository.head()?;
    let name = match (&head, head.id()) {
        (HeadValue::Detached { .. }, Some(id)) => id.to_hex_with_len(7).to_string(),
        _ => head.name().map_or_else(String::new, |name| {
            let name = name.to_string();
            name.trim_start_matches("refs/heads/").to_owned()
        }),
    };
    let mut options = Options::default();
    options.renames = None;
    options.state = false;
    options.detached_from = false;
    let (mut staged, mut changed, mut untracked, mut is_complete) = (false, false, false, false);
    for item in pronto::status::items(repository, options, Some(BUDGET))? {
        match item? {
            StatusItem::Worktree(..) => changed = true,
            StatusItem::Untracked(_) => untracked = true,
            StatusItem::Complete(report) => {
                is_complete = true;
                staged = report.entries.iter().any(|entry| entry.index.is_some());
            }
            StatusItem::OutOfTime => {}
        }
    }
    let mark = |is_there: bool, mark: &'static str| if is_there { mark } else { "" };
    Ok([
        &name,
        mark(staged, "+"),
        mark(changed, "*"),
        mark(untracked, "?"),
        mark(!is_complete, "…"),
    ]
    .concat())
}

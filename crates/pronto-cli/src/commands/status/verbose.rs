//! Prints changes as patches (`status -v`). git formats the patches, if there are any.

use super::lines::StatusWriter;
use super::{ColourSlot, StatusView};
use crate::{CliError, Context, fallback};
use pronto::diff::MOST_SIMILAR;
use pronto::status::Renames;
use std::io::Write;

/// The calls of git that print the patches.
pub(super) struct Differences {
    git: fallback::FallbackGit,
    /// Whether patches of unstaged changes are printed, too (`-vv`).
    worktree: bool,
    /// Whether patches of staged changes are printed. As in Git, the patches cover all staged
    /// changes, even if the status is limited to some paths.
    staged: bool,
}

impl Differences {
    /// Searches for git before anything is written, if there may be patches to print. `times` is
    /// the number of `-v` options. `is_limited` is whether paths were given.
    pub(super) fn prepare(
        view: &StatusView,
        times: u8,
        is_limited: bool,
        context: &Context,
    ) -> Result<Option<Differences>, CliError> {
        let (report, worktree) = (&view.report, times > 1);
        if worktree && report.has_conflicts() {
            return Err(CliError::unsupported("'status -vv' with conflicts"));
        }
        let staged = is_limited || report.is_committable() || report.has_conflicts();
        if !(staged || worktree && report.is_worktree_dirty()) {
            return Ok(None);
        }
        Ok(Some(Differences {
            git: fallback::git(&context.globals)?,
            worktree,
            staged,
        }))
    }

    /// Prints the patches. `lines` is flushed first, so that earlier output precedes them.
    pub(super) fn print<W: Write>(&self, lines: &mut StatusWriter<'_, W>) -> Result<(), CliError> {
        let report = &lines.view.report;
        let (staged, changed) = (report.is_committable(), report.is_worktree_dirty());
        let headed = self.worktree && staged;
        if headed {
            lines.line(ColourSlot::Header, "Changes to be committed:")?;
        }
        if self.staged {
            let prefixes = headed.then_some(("c/", "i/"));
            self.run(lines, &["--cached"], prefixes)?;
        }
        if self.worktree && changed {
            let rule = "-".repeat(50);
            lines.line(ColourSlot::Header, &rule)?;
            lines.line(ColourSlot::Header, "Changes not staged for commit:")?;
            self.run(lines, &[], Some(("i/", "w/")))?;
        }
        Ok(())
    }

    fn run<W: Write>(
        &self,
        lines: &mut StatusWriter<'_, W>,
        what: &[&str],
        prefixes: Option<(&str, &str)>,
    ) -> Result<(), CliError> {
        lines.flush()?;
        let mut command = self.git.command();
        command.args(["--no-pager", "--no-optional-locks", "diff", "--patch"]);
        command.args(["--no-ext-diff", "--no-textconv", "--ita-invisible-in-index"]);
        command.args(what);
        match lines.view.settings.renames {
            None => command.arg("--no-renames"),
            Some(renames) => command.args(words(renames)),
        };
        if let Some((from, to)) = prefixes {
            command.args([format!("--src-prefix={from}"), format!("--dst-prefix={to}")]);
        }
        let status = command.status();
        let status = status.map_err(|error| self.git.cannot_run(&error))?;
        if status.success() {
            return Ok(());
        }
        Err(CliError::fatal(
            "cannot show the changes: 'git diff' failed",
        ))
    }
}

/// Returns the options that make git detect renames in the same way.
fn words(renames: Renames) -> [String; 2] {
    let letter = if renames.copies { 'C' } else { 'M' };
    let score = match renames.minimum_score {
        MOST_SIMILAR.. => "100%".to_owned(),
        // The digits after the decimal point, rounded up because git rounds down.
        score => format!("{:05}", (score * 10).div_ceil(MOST_SIMILAR / 10_000)),
    };
    [format!("-{letter}{score}"), format!("-l{}", renames.limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarities_are_told_as_git_reads_them() {
        let reported = |minimum_score| {
            words(Renames {
                minimum_score,
                ..Renames::default()
            })
        };
        assert_eq!(reported(30_000), ["-M50000", "-l1000"]);
        assert_eq!(reported(1)[0], "-M00002");
        assert_eq!(reported(60_000)[0], "-M100%");
    }
}

//! Formats the result of a push as a table.

use std::fmt::Write;

use bstr::{BStr, ByteSlice};
use pronto::Repository;
use pronto::fetch::pretty;
use pronto::push::{Outcome, PushStatus, PushedRef, RewrittenRef};
use pronto_hash::ObjectId;

use crate::CliError;
use crate::terminal::colors::Paint;
use crate::terminal::text::sanitized;

/// The options that change the table.
#[derive(Clone, Debug)]
pub(in super::super) struct Mode {
    /// Whether refs that were up to date are shown, too (`--verbose`).
    pub(in super::super) verbose: bool,
    /// Whether the format is stable for scripts (`--porcelain`).
    pub(in super::super) porcelain: bool,
    /// The colours of lines about rejected refs.
    pub(in super::super) rejected: Paint,
}

/// Formats the lines of the table, with the URL first.
pub(in super::super) fn render(
    repository: &Repository,
    outcome: &Outcome,
    url: &BStr,
    mode: Mode,
) -> Result<String, CliError> {
    let mut table = PushTable {
        repository,
        porcelain: mode.porcelain,
        rejected: mode.rejected,
        width: width(repository, &outcome.refs)?,
        text: String::new(),
    };
    let is_change = |it: &PushedRef| it.status == PushStatus::Ok;
    let is_current = |it: &PushedRef| it.status == PushStatus::UpToDate && mode.verbose;
    let refs = &outcome.refs;
    // Git colours every line up to the last rejected ref.
    let colored = refs.iter().rposition(is_failure).map_or(0, |at| at + 1);
    let groups: [&dyn Fn(&PushedRef) -> bool; 3] = [&is_current, &is_change, &is_failure];
    for is_in in groups {
        for (at, pushed) in refs.iter().enumerate().filter(|(_, it)| is_in(it)) {
            table.add(pushed, at < colored)?;
        }
    }
    if table.text.is_empty() {
        return Ok(table.text);
    }
    Ok(format!("To {url}\n{}", table.text))
}

/// Returns whether the update of a ref failed.
fn is_failure(pushed: &PushedRef) -> bool {
    !matches!(
        pushed.status,
        PushStatus::None | PushStatus::Ok | PushStatus::UpToDate
    )
}

struct PushTable<'a> {
    repository: &'a Repository,
    porcelain: bool,
    rejected: Paint,
    width: usize,
    text: String,
}

/// A line of the table.
struct TableLine<'a> {
    flag: char,
    summary: String,
    from: Option<&'a BStr>,
    to: &'a BStr,
    remark: Option<&'a str>,
}

impl PushTable<'_> {
    fn add(&mut self, pushed: &PushedRef, is_colored: bool) -> Result<(), CliError> {
        if pushed.rewrites.is_empty() {
            let line = self.line(pushed, None)?;
            self.write(&line, is_colored);
        }
        for rewrite in &pushed.rewrites {
            let line = self.line(pushed, Some(rewrite))?;
            self.write(&line, is_colored);
        }
        Ok(())
    }

    fn line<'a>(
        &self,
        pushed: &'a PushedRef,
        rewrite: Option<&'a RewrittenRef>,
    ) -> Result<TableLine<'a>, CliError> {
        let from = pushed.peer.as_ref().map(|peer| peer.name.as_bstr());
        let to = rewrite.and_then(|rewrite| rewrite.name.as_ref());
        let mut line = TableLine {
            flag: '!',
            summary: "[rejected]".to_owned(),
            from,
            to: to.unwrap_or(&pushed.name).as_bstr(),
            remark: None,
        };
        let unless_deleted = from.filter(|_| !pushed.deletes);
        match pushed.status {
            PushStatus::None => {
                line.flag = 'X';
                line.summary = format!("[{}]", pushed.status);
                line.from = None;
            }
            PushStatus::Ok => self.succeed(pushed, rewrite, &mut line)?,
            PushStatus::UpToDate => {
                line.flag = '=';
                line.summary = format!("[{}]", pushed.status);
            }
            PushStatus::RejectNoDelete => {
                line.from = None;
                line.remark = Some(pushed.status.as_str());
            }
            PushStatus::RemoteReject => {
                line.summary = format!("[{}]", pushed.status);
                line.from = unless_deleted;
                line.remark = pushed.remark.as_deref();
            }
            PushStatus::ExpectingReport => {
                line.summary = "[remote failure]".to_owned();
                line.from = unless_deleted;
                line.remark = Some(pushed.status.as_str());
            }
            status => line.remark = Some(status.as_str()),
        }
        Ok(line)
    }

    fn succeed(
        &self,
        pushed: &PushedRef,
        rewrite: Option<&RewrittenRef>,
        line: &mut TableLine<'_>,
    ) -> Result<(), CliError> {
        let old = rewrite.and_then(|it| it.old).unwrap_or(pushed.old);
        let new = rewrite.and_then(|it| it.new).unwrap_or(pushed.new);
        let forced = rewrite.map_or(pushed.forced_update, |it| it.forced);
        if pushed.deletes {
            line.flag = '-';
            line.summary = "[deleted]".to_owned();
            line.from = None;
            return Ok(());
        }
        if old.is_null() {
            line.flag = '*';
            line.summary = match line.to {
                name if name.starts_with(b"refs/tags/") => "[new tag]",
                name if name.starts_with(b"refs/heads/") => "[new branch]",
                _ => "[new reference]",
            }
            .to_owned();
            return Ok(());
        }
        let (old, new) = (self.short(&old)?, self.short(&new)?);
        if forced {
            line.flag = '+';
            line.summary = format!("{old}...{new}");
            line.remark = Some("forced update");
        } else {
            line.flag = ' ';
            line.summary = format!("{old}..{new}");
        }
        Ok(())
    }

    fn short(&self, id: &ObjectId) -> Result<String, CliError> {
        Ok(self.repository.abbreviate(id)?)
    }

    fn write(&mut self, line: &TableLine<'_>, is_colored: bool) {
        let TableLine {
            flag,
            summary,
            from,
            to,
            remark,
        } = line;
        let text = &mut self.text;
        if self.porcelain {
            let from = from.unwrap_or_default();
            let _ = write!(text, "{flag}\t{from}:{to}\t{summary}");
        } else {
            let width = self.width;
            let (start, end) = match is_colored {
                true => (&self.rejected.start[..], &self.rejected.end[..]),
                false => ("", ""),
            };
            let _ = write!(text, " {start}{flag} {summary:width$}{end} ");
            if let Some(from) = from {
                let _ = write!(text, "{} -> ", pretty(from));
            }
            let _ = write!(text, "{}", pretty(to));
        }
        if let Some(remark) = remark {
            let _ = write!(text, " ({})", sanitized(remark));
        }
        text.push('\n');
    }
}

/// Returns the width of the summary column, which has room for two abbreviated ids.
fn width(repository: &Repository, refs: &[PushedRef]) -> Result<usize, CliError> {
    let mut longest = 0;
    for pushed in refs {
        for id in [&pushed.old, &pushed.new] {
            longest = longest.max(repository.abbreviate(id)?.len());
        }
    }
    Ok(2 * longest.max(7) + 3)
}

//! Formats the result of a fetch as a table.

use std::fmt::Write;

use pronto::fetch::{Flag, Outcome, pretty};

use super::upstream::has_refusals;

/// Formats the lines of the table, with the URL first. With `dry_run`, the lines about removed refs
/// say that they would be removed.
pub(super) fn render(outcome: &Outcome, compact: bool, dry_run: bool) -> String {
    let mut text = String::new();
    let lines = outcome.updates.iter();
    let mut is_first = true;
    let pruned = outcome
        .updates
        .iter()
        .filter(|update| update.flag == Flag::Pruned)
        .count();
    // Git 2.55 does not align the columns if an update is refused.
    let summary_width = match has_refusals(outcome) {
        true => 0,
        false => outcome.summary_width,
    };
    for (at, update) in lines.enumerate() {
        if std::mem::take(&mut is_first) {
            let _ = writeln!(text, "From {}", outcome.url);
        }
        let remote = match update.flag {
            Flag::Pruned => "(none)".to_owned(),
            _ => pretty(update.remote.as_ref()).to_string(),
        };
        let local = pretty(update.local.as_ref()).to_string();
        let _ = write!(text, " {} ", update.flag.sign());
        let width = match update.flag {
            Flag::Pruned => outcome.summary_width,
            _ => summary_width,
        };
        pad(&mut text, &update.summary.to_string(), width);
        text.push(' ');
        let (remote, local) = match compact {
            true => shortened(&remote, &local),
            false => (remote, local),
        };
        pad(&mut text, &remote, outcome.name_width);
        let _ = write!(text, " -> {local}");
        if let Some(note) = &update.note {
            let _ = write!(text, "  ({note})");
        }
        text.push('\n');
        if at + 1 == pruned {
            let (will, is) = if dry_run {
                ("will", "is")
            } else {
                ("has", "was")
            };
            for found in &outcome.dangling {
                let (name, target) = (&found.name, &found.target);
                let _ = writeln!(
                    text,
                    "   {name} {will} become dangling after {target} {is} deleted"
                );
            }
        }
    }
    text
}

fn pad(text: &mut String, word: &str, width: usize) {
    text.push_str(word);
    for _ in word.chars().count()..width {
        text.push(' ');
    }
}

/// Joins the names on both sides and writes their common part once (`fetch.output=compact`).
fn shortened(remote: &str, local: &str) -> (String, String) {
    if remote == local {
        return (remote.to_owned(), "*".into());
    }
    if let Some(remote) = with_star(remote, local) {
        return (remote, local.to_owned());
    }
    let local = with_star(local, remote).unwrap_or_else(|| local.to_owned());
    (remote.to_owned(), local)
}

/// Returns `name` with `part` in it, between slashes, replaced by a star.
fn with_star(name: &str, part: &str) -> Option<String> {
    let at = name.find(part)?;
    let (before, after) = (&name[..at], &name[at + part.len()..]);
    let fits = (before.is_empty() || before.ends_with('/'))
        && (after.is_empty() || after.starts_with('/'));
    fits.then(|| format!("{before}*{after}"))
}

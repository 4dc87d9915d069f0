//! Prints the result of a sync, as text or JSON.

use std::io::{self, Write};

use bstr::ByteSlice as _;
use pronto_netsync::message::{PublishedRef, StoreResult, TransferPlan};
use pronto_netsync::session::Report;
use pronto_peer::{BranchRelation, Moved};

use super::super::shared::counted;
use crate::json::{self, VERSION};

/// The result of a sync.
pub(super) struct SyncSummary<'a> {
    pub(super) peer: &'a str,
    pub(super) own_name: &'a str,
    pub(super) report: &'a Report,
    pub(super) moved: &'a [Moved],
}

impl SyncSummary<'_> {
    pub(super) fn as_text(&self, out: &mut impl Write) -> io::Result<()> {
        let report = self.report;
        if report.is_dry_run {
            return self.dry_run(out);
        }
        let directions = [
            (format!("From {}", self.peer), &report.published),
            (format!("To {}", self.peer), &report.published_there),
        ];
        for (title, published) in directions {
            if published.is_empty() {
                continue;
            }
            writeln!(out, "{title}")?;
            for each in published {
                writeln!(out, " {}", fate(each))?;
            }
        }
        let has_moved = |moved: &Moved| moved.relation == BranchRelation::FastForwarded;
        let is_nothing = report.published.is_empty()
            && report.published_there.is_empty()
            && !self.moved.iter().any(has_moved);
        if is_nothing {
            writeln!(out, "Already up to date.")?;
        }
        for moved in self.moved {
            let name = short(&moved.name);
            let peer = self.peer;
            match moved.relation {
                BranchRelation::FastForwarded => {
                    writeln!(out, "{name} was moved forward to {peer}/{name}")?
                }
                BranchRelation::Behind => writeln!(out, "{name} is behind {peer}/{name}")?,
                BranchRelation::CheckedOut => {
                    writeln!(out, "{name} is behind {peer}/{name}, and checked out")?;
                }
                BranchRelation::Ahead => writeln!(out, "{name} is ahead of {peer}/{name}")?,
                BranchRelation::Diverged => {
                    writeln!(out, "{name} and {peer}/{name} have diverged")?
                }
            }
        }
        Ok(())
    }

    fn dry_run(&self, out: &mut impl Write) -> io::Result<()> {
        let report = self.report;
        let directions = [
            (
                "Would receive",
                report.incoming_plan,
                &report.theirs,
                &report.incoming,
            ),
            (
                "Would send",
                report.outgoing_plan,
                &report.ours,
                &report.outgoing,
            ),
        ];
        let mut is_nothing = true;
        for (title, plan, offers, wanted) in directions {
            let wanted = offers.iter().zip(wanted).filter(|(_, wanted)| **wanted);
            let names: Vec<_> = wanted.map(|(offer, _)| short(&offer.name)).collect();
            let Some(plan) = plan.filter(|_| !names.is_empty()) else {
                continue;
            };
            is_nothing = false;
            writeln!(
                out,
                "{title} {}, {} of {}:",
                counted(plan.commits, "commit"),
                counted(plan.objects, "object"),
                counted(plan.bytes, "byte")
            )?;
            for name in names {
                writeln!(out, " {name}")?;
            }
        }
        if is_nothing {
            writeln!(out, "No commits would move.")?;
        }
        Ok(())
    }

    pub(super) fn as_json(&self, out: &mut impl Write) -> io::Result<()> {
        let report = self.report;
        let list = |items: Vec<String>| format!("[{}]", items.join(","));
        let published = |refs: &[PublishedRef]| {
            let items = refs.iter().map(|each| {
                let (what, text) = match each.stored {
                    StoreResult::Refused if !each.stored_as.is_empty() => {
                        ("reason", &each.stored_as)
                    }
                    _ => ("stored_as", &each.stored_as),
                };
                format!(
                    "{{\"name\":{},\"fate\":\"{}\",\"{what}\":{}}}",
                    json::name(&each.name),
                    word(each.stored),
                    json::name(text)
                )
            });
            list(items.collect())
        };
        let plan = |plan: Option<TransferPlan>| {
            let plan = plan.unwrap_or_default();
            format!(
                "{{\"commits\":{},\"objects\":{},\"bytes\":{}}}",
                plan.commits, plan.objects, plan.bytes
            )
        };
        let moved = self.moved.iter().map(|moved| {
            format!(
                "{{\"name\":{},\"from\":\"{}\",\"theirs\":\"{}\",\"relation\":\"{}\"}}",
                json::name(&moved.name),
                moved.from,
                moved.theirs,
                match moved.relation {
                    BranchRelation::FastForwarded => "fast-forwarded",
                    BranchRelation::Behind => "behind",
                    BranchRelation::CheckedOut => "checked-out",
                    BranchRelation::Ahead => "ahead",
                    BranchRelation::Diverged => "diverged",
                }
            )
        });
        writeln!(
            out,
            "{{\"version\":{VERSION},\"command\":\"sync\",\"peer\":{},\"as\":{},\"dry_run\":{},\"received_bytes\":{},\"sent_bytes\":{},\
             \"incoming\":{},\"outgoing\":{},\"published\":{},\"published_there\":{},\"branches\":{}}}",
            json::name(self.peer.as_bytes()),
            json::name(self.own_name.as_bytes()),
            report.is_dry_run,
            report.received_bytes,
            report.sent_bytes,
            plan(report.incoming_plan),
            plan(report.outgoing_plan),
            published(&report.published),
            published(&report.published_there),
            list(moved.collect()),
        )
    }
}

fn word(stored: StoreResult) -> &'static str {
    match stored {
        StoreResult::New => "new",
        StoreResult::FastForward => "fast-forward",
        StoreResult::Divergent => "forced",
        StoreResult::Refused => "refused",
    }
}

fn fate(published: &PublishedRef) -> String {
    let name = short(&published.name);
    let to = short(&published.stored_as);
    match published.stored {
        StoreResult::New => format!("* new      {name} -> {to}"),
        StoreResult::FastForward => format!("  forward  {name} -> {to}"),
        StoreResult::Divergent => format!("+ forced   {name} -> {to}"),
        StoreResult::Refused if published.stored_as.is_empty() => format!("! refused  {name}"),
        StoreResult::Refused => format!("! refused  {name} ({to})"),
    }
}

/// Formats a name for output. A control character, which a peer may send, becomes a question mark.
fn short(name: &[u8]) -> String {
    let prefixes: [&[u8]; 3] = [b"refs/heads/", b"refs/remotes/", b"refs/"];
    let found = prefixes
        .iter()
        .find_map(|prefix| name.strip_prefix(*prefix));
    let name = found.unwrap_or(name).to_str_lossy();
    let shown = |each: char| if each.is_control() { '?' } else { each };
    name.chars().map(shown).collect()
}

//! Files whose content a program makes: one after another, in the order of the index. What a
//! long-running process puts off comes last.

use std::collections::{HashMap, HashSet};

use bstr::{BString, ByteSlice};
use pronto_io::progress::Meter;

use super::directories::Directories;
use super::run::Found;
use super::write::{Content, Writer, Written};
use super::{Context, Item, Obstructions, Options, Outcome, Plan};
use crate::filter::{Asked, Delayed, FileToSmudge, Programs};
use crate::{Error, ErrorKind, objects};

/// The files that a process owes.
type Owed = HashMap<Delayed, HashMap<BString, u32>>;

/// Writes the items of `found.need_program`.
pub(super) fn write_with_programs(
    plan: &Plan,
    context: &Context<'_>,
    options: &Options,
    (meter, found): (&Meter, &mut Found),
    outcome: &mut Outcome,
) {
    let replace = options.obstructions == Obstructions::Replace;
    let directories = Directories::new(context.top, false, replace);
    let mut lane = Lane {
        writer: Writer::new(context, options, &directories),
        context,
        programs: Programs::new(context.settings),
        filtered: Vec::new(),
        owed: Owed::new(),
    };
    for at in &found.need_program {
        if context.interrupt.is_triggered() {
            outcome.interrupted = true;
            break;
        }
        let item = &plan.write[*at as usize];
        match lane.smudge(*at, item) {
            Ok(None) => {}
            Ok(Some(written)) => lane.writer.note(*at, item, written),
            Err(error) => lane.writer.note(*at, item, Written::Failed(error)),
        }
        meter.add(1);
    }
    if !lane.owed.is_empty() && !outcome.interrupted {
        outcome.interrupted = !lane.collect(plan);
    }
    let Lane {
        mut writer,
        mut programs,
        ..
    } = lane;
    outcome
        .warnings
        .append(&mut writer.internal.take_warnings());
    outcome.warnings.append(&mut programs.take_warnings());
    for (at, stat) in writer.done {
        outcome.written[at as usize] = Some(stat);
    }
    found.collided.append(&mut writer.collided);
    found.failed.append(&mut writer.failed);
}

struct Lane<'a> {
    writer: Writer<'a>,
    context: &'a Context<'a>,
    programs: Programs,
    filtered: Vec<u8>,
    owed: Owed,
}

impl Lane<'_> {
    /// `None` if the file comes later.
    fn smudge(&mut self, at: u32, item: &Item) -> Result<Option<Written>, Error> {
        let settings = self.context.settings;
        let path = item.path.as_bstr();
        let conversion = self.writer.conversion(path)?;
        let mut blob = std::mem::take(&mut self.writer.blob);
        let mut internal = std::mem::take(&mut self.writer.internal);
        let written = objects::blob(self.context.objects, &item.id, &mut blob).and_then(|()| {
            let content = internal.to_worktree(path, &blob, &conversion, settings)?;
            let file = FileToSmudge {
                path,
                id: item.id,
                content,
                conversion: &conversion,
                may_delay: true,
            };
            match self.programs.smudge(&file, settings, &mut self.filtered)? {
                Asked::Filtered => self
                    .writer
                    .place(item, Content::File(&self.filtered))
                    .map(Some),
                Asked::Unfiltered => self.writer.place(item, Content::File(content)).map(Some),
                Asked::Delayed(process) => {
                    self.owed
                        .entry(process)
                        .or_default()
                        .insert(item.path.clone(), at);
                    Ok(None)
                }
            }
        });
        (self.writer.blob, self.writer.internal) = (blob, internal);
        written
    }

    /// Fetches what is owed; `false` if it was interrupted.
    fn collect(&mut self, plan: &Plan) -> bool {
        let total = self.owed.values().map(HashMap::len).sum::<usize>() as u64;
        let meter = self
            .context
            .progress
            .begin("Filtering content", Some(total));
        let mut processes: Vec<Delayed> = self.owed.keys().cloned().collect();
        let mut broken: HashSet<Delayed> = HashSet::new();
        while !processes.is_empty() {
            for process in &processes {
                if self.context.interrupt.is_triggered() {
                    return false;
                }
                if !self.collect_ready(process, plan, &meter) {
                    broken.insert(process.clone());
                }
            }
            processes.retain(|process| {
                !broken.contains(process)
                    && self.owed.get(process).is_some_and(|left| !left.is_empty())
            });
        }
        let lost = self.owed.drain().flat_map(|(_, left)| left);
        let mut lost: Vec<(BString, u32)> = lost.collect();
        lost.sort();
        for (path, at) in lost {
            let error = Error::new(
                ErrorKind::Filter,
                format!("'{path}' was not filtered properly"),
            );
            self.writer
                .note(at, &plan.write[at as usize], Written::Failed(error));
        }
        meter.finish();
        true
    }

    /// `false` if nothing more is to be had from the process.
    fn collect_ready(&mut self, process: &Delayed, plan: &Plan, meter: &Meter) -> bool {
        let ready = match self.programs.ready(process) {
            Ok(ready) if !ready.is_empty() => ready,
            _ => return false,
        };
        for path in ready {
            // A process that names what it does not owe cannot be relied on.
            let Some(at) = self
                .owed
                .get_mut(process)
                .and_then(|left| left.remove(&path))
            else {
                return false;
            };
            let item = &plan.write[at as usize];
            let written = self
                .programs
                .fetch(process, path.as_bstr(), &mut self.filtered)
                .and_then(|()| self.writer.place(item, Content::File(&self.filtered)));
            let written = written.unwrap_or_else(Written::Failed);
            self.writer.note(at, item, written);
            meter.add_bytes(self.filtered.len() as u64);
            meter.add(1);
        }
        true
    }
}

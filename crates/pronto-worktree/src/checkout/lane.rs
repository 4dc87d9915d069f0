//! Files whose content a long-running filter process creates (`filter.<driver>.process`). A separate
//! thread communicates with the processes, beside the workers. If the process supports delayed answers
//! (`delay`), requests are sent without waiting for answers, and delayed contents are fetched at the
//! end as they become ready.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use bstr::{BString, ByteSlice};
use pronto_io::progress::Meter;

use super::content::NewContent;
use super::directories::SharedDirectories;
use super::write::{Smudged, WriteResult, Writer};
use super::{CheckoutContext, CheckoutFailure, CheckoutPlan, Options};
use crate::filter::Delayed;
use crate::{Error, ErrorKind};

/// The files for which a process has delayed its answer.
type Owed = HashMap<Delayed, HashMap<BString, u32>>;

/// The thread that communicates with filter processes, beside the workers that write all other files.
/// It starts with the first file that needs a process.
pub(super) struct Beside<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    job: CheckoutJob<'env>,
    running: Mutex<Option<RunningLane<'scope, 'env>>>,
}

type RunningLane<'scope, 'env> = (Sender<u32>, ScopedJoinHandle<'scope, LaneResult<'env>>);

/// The input of the thread.
#[derive(Clone, Copy)]
pub(super) struct CheckoutJob<'a> {
    pub(super) plan: &'a CheckoutPlan,
    pub(super) context: &'a CheckoutContext<'a>,
    pub(super) options: &'a Options,
    pub(super) directories: &'a SharedDirectories<'a>,
    pub(super) meter: &'a Meter,
}

/// The results of the thread.
pub(super) struct LaneResult<'a> {
    pub(super) writer: Writer<'a>,
    pub(super) interrupted: bool,
}

impl<'scope, 'env> Beside<'scope, 'env> {
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, job: CheckoutJob<'env>) -> Self {
        Beside {
            scope,
            job,
            running: Mutex::new(None),
        }
    }

    /// Passes the item at `at` to the thread.
    pub(super) fn hand(&self, at: u32) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, _) = running.get_or_insert_with(|| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let job = self.job;
            let thread = self.scope.spawn(move || Lane::new(job).work(&receiver));
            (sender, thread)
        });
        // The thread receives items until all senders are dropped.
        let _ = sender.send(at);
    }

    /// Waits until all items are written.
    ///
    /// # Panics
    /// Propagates panics of the thread.
    pub(super) fn finish(self) -> Option<LaneResult<'env>> {
        let running = self.running.into_inner();
        let (sender, thread) = running.unwrap_or_else(PoisonError::into_inner)?;
        drop(sender);
        match thread.join() {
            Ok(done) => Some(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

struct Lane<'a> {
    job: CheckoutJob<'a>,
    writer: Writer<'a>,
    owed: Owed,
}

impl<'a> Lane<'a> {
    fn new(job: CheckoutJob<'a>) -> Self {
        Lane {
            job,
            writer: Writer::new(job.context, job.options, job.directories, job.meter),
            owed: Owed::new(),
        }
    }

    fn work(mut self, items: &Receiver<u32>) -> LaneResult<'a> {
        let mut interrupted = false;
        for at in items {
            if self.job.context.interrupt.is_triggered() {
                interrupted = true;
                break;
            }
            self.ask(at);
            self.job.meter.add(1);
        }
        if !self.owed.is_empty() && !interrupted {
            interrupted = !self.collect(self.job.plan);
        }
        LaneResult {
            writer: self.writer,
            interrupted,
        }
    }

    fn ask(&mut self, at: u32) {
        let item = &self.job.plan.write[at as usize];
        let asked = self.writer.conversion(item.path.as_bstr());
        let asked =
            asked.and_then(|conversion| self.writer.write_file(item, None, &conversion, true));
        let written = match asked {
            Ok(Smudged::Now(written)) => written,
            Ok(Smudged::Later(process)) => {
                let owed = self.owed.entry(process).or_default();
                owed.insert(item.path.clone(), at);
                return;
            }
            Err(error) => WriteResult::Failed(error),
        };
        self.writer.note(at, item, written);
    }

    /// Fetches the delayed answers. Returns `false` after an interrupt.
    fn collect(&mut self, plan: &CheckoutPlan) -> bool {
        let total = self.owed.values().map(HashMap::len).sum::<usize>() as u64;
        let context = self.job.context;
        let meter = context.progress.begin("Filtering content", Some(total));
        let mut processes: Vec<Delayed> = self.owed.keys().cloned().collect();
        let mut broken: HashSet<Delayed> = HashSet::new();
        while !processes.is_empty() {
            for process in &processes {
                if context.interrupt.is_triggered() {
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
                ErrorKind::DelayedFilter,
                format!("'{path}' was not filtered properly"),
            );
            self.writer
                .note(at, &plan.write[at as usize], WriteResult::Failed(error));
        }
        meter.finish();
        true
    }

    /// Fetches the contents that are ready. Returns `false` if the process has no further answers.
    fn collect_ready(&mut self, process: &Delayed, plan: &CheckoutPlan, meter: &Meter) -> bool {
        let ready = match self.writer.programs().ready(process) {
            Ok(ready) if !ready.is_empty() => ready,
            _ => return false,
        };
        let mut is_reliable = true;
        for path in ready {
            let Some(at) = self
                .owed
                .get_mut(process)
                .and_then(|left| left.remove(&path))
            else {
                let error = process.unexpected(path.as_bstr());
                self.writer
                    .failed
                    .push((u32::MAX, CheckoutFailure { path, error }));
                is_reliable = false;
                continue;
            };
            let item = &plan.write[at as usize];
            let mut filtered = std::mem::take(&mut self.writer.filtered);
            let programs = self.writer.programs();
            let written = programs
                .fetch(process, path.as_bstr(), &mut filtered)
                .and_then(|()| self.writer.place(item, NewContent::File(&filtered)));
            let written = written.unwrap_or_else(WriteResult::Failed);
            self.writer.note(at, item, written);
            meter.add_bytes(filtered.len() as u64);
            meter.add(1);
            self.writer.filtered = filtered;
        }
        is_reliable
    }
}

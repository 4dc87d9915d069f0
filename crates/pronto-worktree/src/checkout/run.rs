//! Executes a plan from start to end.

use std::ops::{ControlFlow, Range};
use std::process::ExitStatus;

use pronto_index::Stat;
use pronto_io::dir::Overwriter;
use pronto_io::pool::{self, Gather, Workers};
use pronto_io::progress::Meter;

use super::directories::SharedDirectories;
use super::lane::{Beside, CheckoutJob};
use super::results::WorkerResults;
use super::write::Writer;
use super::{
    CheckoutContext, CheckoutFailure, CheckoutPlan, CheckoutWarning, InPlace, Obstructions,
    Options, Outcome, ReflinkSources, collide, order, remove,
};

/// Executes `plan`. Failures are reported in the outcome and do not stop the execution; only an
/// interrupt stops it.
///
/// Blocks until the plan is completed. Starts threads according to the options and waits for them.
pub fn run(plan: &CheckoutPlan, context: &CheckoutContext<'_>, options: &Options) -> Outcome {
    let _region = pronto_io::region!("checkout", "update_files");
    let mut outcome = Outcome {
        written: vec![None; plan.write.len()],
        ..Outcome::default()
    };
    let total = plan.remove.len() + plan.write.len();
    let meter = context.progress.begin("Updating files", Some(total as u64));
    let workers = workers_for(plan.remove.len(), options);
    remove::remove(&plan.remove, context, options, workers, &mut outcome);
    meter.add(plan.remove.len() as u64);
    if !outcome.interrupted {
        let found = write_all(plan, context, options, &meter, &mut outcome);
        finish(plan, context, options, &meter, found, &mut outcome);
    }
    if outcome.interrupted {
        // An unfinished meter reports the interruption when it is dropped.
        return outcome;
    }
    meter.finish();
    pronto_io::data!("checkout", "workers", outcome.most_workers);
    trace_workers(outcome.most_workers);
    outcome
}

/// Writes the number of parallel workers to the trace, as git does for its processes.
fn trace_workers(count: usize) {
    if count < 2 {
        return;
    }
    let mut command = pronto_io::child::command("git");
    command.arg("checkout--worker");
    for _ in 0..count {
        let worker = pronto_io::child::started_as("?", "git", &command);
        worker.ended(std::process::id(), ExitStatus::default());
    }
}

fn workers_for(count: usize, options: &Options) -> Workers {
    match options.workers {
        Workers::Exactly(_) if count < options.threshold_for_parallelism => Workers::Exactly(1),
        workers => workers,
    }
}

/// The collected results of all workers.
#[derive(Default)]
struct GatheredResults {
    done: Gather<(u32, Stat)>,
    collided: Gather<u32>,
    failed: Gather<(u32, CheckoutFailure)>,
    warnings: Gather<(u32, CheckoutWarning)>,
}

impl GatheredResults {
    fn take_from(&self, writer: Writer<'_>) {
        self.warnings.add(writer.warnings);
        self.done.add(writer.done);
        self.collided.add(writer.collided);
        self.failed.add(writer.failed);
    }
}

/// The number of files below which in-place writes are not used.
const FEWEST_OVERWRITTEN: usize = 16;

/// Returns the writer that overwrites replaced files in place, if that is permitted.
fn overwriter(
    plan: &CheckoutPlan,
    context: &CheckoutContext<'_>,
    options: &Options,
) -> Option<Overwriter> {
    let replaced = || plan.write.iter().filter(|item| item.replaces);
    let anywhere = match options.in_place {
        InPlace::Never => return None,
        InPlace::Auto if replaced().nth(FEWEST_OVERWRITTEN - 1).is_none() => return None,
        InPlace::Auto => false,
        InPlace::Always => true,
    };
    Overwriter::new(context.top, anywhere)
}

fn write_all(
    plan: &CheckoutPlan,
    context: &CheckoutContext<'_>,
    options: &Options,
    meter: &Meter,
    outcome: &mut Outcome,
) -> WorkerResults {
    let fresh = options.obstructions == Obstructions::Collide;
    let directories =
        SharedDirectories::new(context.top, fresh, overwriter(plan, context, options));
    if let Some(sources) = &options.reflink_sources {
        sources.prepare(context.top, plan.write.len());
    }
    let (order, ends) = order::order(&plan.write, context.objects);
    let gathered = GatheredResults::default();
    let job = CheckoutJob {
        plan,
        context,
        options,
        directories: &directories,
        meter,
    };
    let (summary, lane) = std::thread::scope(|scope| {
        let lane = Beside::new(scope, job);
        let summary = pool::run_groups(
            workers_for(plan.write.len(), options),
            &ends,
            || Writer::new(context, options, &directories, meter),
            |writer: &mut Writer<'_>, range: Range<usize>| {
                let mut finished = 0;
                for next in &order[range] {
                    if context.interrupt.is_triggered() {
                        return ControlFlow::Break(());
                    }
                    let before = writer.collided.len();
                    writer.write(*next, &plan.write[next.at as usize]);
                    finished += 1 + before as u64 - writer.collided.len() as u64;
                    if let Some(at) = writer.need_program.pop() {
                        finished -= 1;
                        lane.hand(at);
                    }
                }
                meter.add(finished);
                ControlFlow::Continue(())
            },
            |writer| gathered.take_from(writer),
        );
        (summary, lane.finish())
    });
    outcome.most_workers = outcome.most_workers.max(summary.most_workers);
    outcome.interrupted |= !summary.complete;
    if let Some(mut lane) = lane {
        outcome.interrupted |= lane.interrupted;
        outcome.programs = lane.writer.programs.take().map(Box::new);
        gathered.take_from(lane.writer);
    }
    for (at, stat) in gathered.done.into_inner() {
        outcome.written[at as usize] = Some(stat);
    }
    let mut warnings = gathered.warnings.into_inner();
    warnings.sort_by_key(|(at, _)| *at);
    let warnings = warnings.into_iter().map(|(_, warning)| warning);
    let unshared = (options.reflink_sources.as_deref()).and_then(ReflinkSources::warning);
    outcome.warnings.extend(warnings.chain(unshared));
    let mut collided = gathered.collided.into_inner();
    collided.sort_unstable();
    let failed = gathered.failed.into_inner();
    WorkerResults { collided, failed }
}

/// Handles colliding paths, which several workers cannot do.
fn finish(
    plan: &CheckoutPlan,
    context: &CheckoutContext<'_>,
    options: &Options,
    meter: &Meter,
    mut found: WorkerResults,
    outcome: &mut Outcome,
) {
    if !outcome.interrupted && !found.collided.is_empty() {
        collide::settle(plan, context, options, &mut found, meter, outcome);
        meter.add(found.collided.len() as u64);
    }
    found.failed.sort_by_key(|(at, _)| *at);
    outcome
        .failed
        .extend(found.failed.into_iter().map(|(_, failure)| failure));
}

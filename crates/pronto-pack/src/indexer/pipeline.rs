//! The phases of the indexer, and the threads of the first phase.

use super::arrive::{ArrivalState, Arrivals};
use super::batch::BatchPool;
use super::contents::Complete;
use super::crew::{Alone, Crew};
use super::digesting::NumberedIds;
use super::forest::Forest;
use super::indexed::IndexedPack;
use super::kept::{ArenaBudget, DeltaArena};
use super::limits::ObjectLimits;
use super::receive::{Deliver, PackReceiver, ReceivedEntries};
use super::resolve::DeltaResolution;
use super::scout::{OpenSegments, Scout};
use super::spool::{IndexSpool, LocalSpool, QUEUE_LEN, RemoteSpool, SegmentSink, SpoolStorage};
use super::tables::{EntryBase, EntryTables};
use super::window::InputWindow;
use super::{IndexContext, Options, Outcome, StageContext, collide, outcome, thin};
use crate::error::{Error, ErrorKind};
use crate::install;
use pronto_hash::ObjectId;
use pronto_io::progress::Meter;
use pronto_io::view::FileView;
use pronto_io::{data, region};
use std::io::Read;
use std::sync::mpsc;

/// The number of workers above which further workers would be idle in the first phase.
const MOST_ARRIVAL_WORKERS: usize = 16;

/// The arguments of one call of the indexer.
pub(super) struct IndexRun<'a> {
    pub(super) options: &'a Options,
    pub(super) context: &'a IndexContext<'a>,
    pub(super) threads: usize,
}

/// The results of the first phase, for each thread.
struct ReceivedWork {
    received: ReceivedEntries,
    workers: Vec<ArrivalState>,
    spool: IndexSpool,
}

/// The results of indexing, before any file has its final name.
pub(super) struct ReceivedPhase {
    pub(super) checksum: ObjectId,
    pub(super) tables: EntryTables,
    /// The concatenated ids, in the order of entries.
    pub(super) ids: Vec<u8>,
    /// The entry numbers, sorted by id.
    pub(super) order: Vec<u32>,
    pub(super) deltas: u64,
    pub(super) added: u32,
    pub(super) leftover: Vec<u8>,
}

impl IndexRun<'_> {
    /// Indexes `input`. The bytes are written to `store`, or are there already.
    pub(super) fn index(
        &self,
        input: &mut dyn Read,
        store: SpoolStorage,
    ) -> Result<(ReceivedPhase, SpoolStorage), Error> {
        let before = self.surroundings(Meter::new("", None));
        let arrival = {
            let _region = region!("index-pack", "receive");
            self.receive(input, store, &before)?
        };
        let ReceivedWork {
            mut received,
            workers,
            spool,
        } = arrival;
        let leftover = std::mem::take(&mut received.leftover);
        let deltas = received.deltas;
        data!("index-pack", "objects", received.tables.len());
        data!("index-pack", "deltas", deltas);
        let (store, checksum) = spool.finish(&received.trailer)?;
        if self.options.must_end && !leftover.is_empty() {
            let end = received.tables.end + received.trailer.len() as u64;
            let junk = Error::new(ErrorKind::Trailing, "pack has junk at the end");
            return Err(junk.at_offset(end));
        }
        if let Some(arrived) = self.context.arrived {
            arrived();
        }
        let meter = self.begin_resolving(deltas, before.resolving.done());
        let after = self.surroundings(meter);
        let indexed = {
            let _region = region!("index-pack", "resolve");
            self.resolve(&after, received, workers, store, checksum)?
        };
        match indexed.added {
            0 => after.resolving.finish(),
            1 => after
                .resolving
                .finish_saying("completed with 1 local object".into()),
            added => {
                let ending = format!("completed with {added} local objects");
                after.resolving.finish_saying(ending);
            }
        }
        let _region = region!("index-pack", "check");
        let order = install::sort_by_id(&indexed.ids, self.options.kind, self.threads);
        self.look_for_trouble(&indexed, &order)?;
        if let Some(inspect) = self.context.inspect {
            let complete = Complete::new(&indexed, &order, self.limits(), self.options.kind)?;
            inspect.complete(&complete)?;
        }
        let done = ReceivedPhase {
            checksum: indexed.checksum,
            tables: indexed.tables,
            ids: indexed.ids,
            order,
            deltas,
            added: indexed.added,
            leftover,
        };
        Ok((done, indexed.store))
    }

    /// Checks the pack in `input` without storing it.
    pub(super) fn scan(&self, input: &mut dyn Read) -> Result<Outcome, Error> {
        let nothing = SpoolStorage::Given(FileView::from_bytes(Vec::new()));
        let surroundings = self.surroundings(Meter::new("", None));
        let mut arrival = self.receive(input, nothing, &surroundings)?;
        let (_, checksum) = arrival.spool.finish(&arrival.received.trailer)?;
        Ok(outcome(ReceivedPhase {
            checksum,
            leftover: std::mem::take(&mut arrival.received.leftover),
            deltas: arrival.received.deltas,
            tables: arrival.received.tables,
            ids: Vec::new(),
            order: Vec::new(),
            added: 0,
        }))
    }

    fn surroundings(&self, resolving: Meter) -> StageContext<'_> {
        StageContext {
            kind: self.options.kind,
            inspect: self.context.inspect,
            progress: self.context.progress,
            interrupt: self.context.interrupt,
            limits: self.limits(),
            resolving,
        }
    }

    fn limits(&self) -> ObjectLimits<'_> {
        let most = self.options.max_object_size_bytes.unwrap_or(u64::MAX);
        ObjectLimits {
            most_bytes: usize::try_from(most).unwrap_or(usize::MAX),
            files: self.options.in_files.as_ref(),
        }
    }

    fn begin_resolving(&self, deltas: u64, done: u64) -> Meter {
        if deltas == 0 || !self.options.show_resolving {
            return Meter::new("", None);
        }
        let meter = self
            .context
            .progress
            .begin("Resolving deltas", Some(deltas));
        meter.add(done);
        meter
    }

    /// Runs the first phase: receives the pack up to its last byte.
    fn receive(
        &self,
        input: &mut dyn Read,
        store: SpoolStorage,
        surroundings: &StageContext<'_>,
    ) -> Result<ReceivedWork, Error> {
        let spool = IndexSpool::new(store, self.options.kind);
        let budget = ArenaBudget::new(self.options.kept_deltas_bytes);
        let workers = (self.threads - 1).clamp(1, MOST_ARRIVAL_WORKERS);
        let cache_bytes = self.options.base_cache_bytes / workers;
        let worker = |number| Arrivals::new(surroundings, &budget, number, cache_bytes);
        let pool = BatchPool::default();
        if self.threads == 1 {
            let mut spool = LocalSpool::new(spool);
            let mut alone = Alone::new(worker(0), &pool);
            let received = self.take_in(input, surroundings, &mut spool, &mut alone, &pool)?;
            return Ok(ReceivedWork {
                received,
                workers: vec![alone.finish()?],
                spool: spool.into_spool(),
            });
        }
        let ahead = OpenSegments::default();
        let most_bytes =
            (self.options.big_file_threshold_bytes).min(self.limits().most_bytes as u64);
        let scout = || Scout::new(&ahead, &pool, self.options.kind, most_bytes);
        std::thread::scope(|scope| {
            let (full, segments) = mpsc::sync_channel(QUEUE_LEN);
            let (empty_sender, empty) = mpsc::channel();
            let writer = scope.spawn(move || spool.run(&segments, &empty_sender));
            let members = (0..workers).map(|number| (worker(number as u16), scout()));
            let (mut crew, handles) = Crew::start(scope, &pool, &ahead, scout(), members);
            let mut remote = RemoteSpool { full, empty };
            let received = self.take_in(input, surroundings, &mut remote, &mut crew, &pool);
            drop((remote, crew));
            let workers = handles.into_iter().map(join).collect();
            let spool = join(writer);
            finish_arrival(received, workers, spool)
        })
    }

    fn take_in(
        &self,
        input: &mut dyn Read,
        surroundings: &StageContext<'_>,
        sink: &mut dyn SegmentSink,
        deliver: &mut dyn Deliver,
        pool: &BatchPool,
    ) -> Result<ReceivedEntries, Error> {
        let window = InputWindow::new(input, sink, self.options.max_input_size_bytes);
        let ready = self.context.ready.filter(|_| self.threads > 1);
        PackReceiver::new(surroundings, self.options, window, deliver, pool, ready).run()
    }

    /// Runs the second phase: resolves deltas until every entry has an id. Meanwhile, the pack is
    /// flushed to the disk.
    fn resolve(
        &self,
        surroundings: &StageContext<'_>,
        received: ReceivedEntries,
        workers: Vec<ArrivalState>,
        store: SpoolStorage,
        checksum: ObjectId,
    ) -> Result<IndexedPack, Error> {
        let mut tables = received.tables;
        let mut arenas: Vec<DeltaArena> = Vec::new();
        let mut pending = Vec::new();
        let mut found: Vec<NumberedIds> = vec![received.ids];
        for worker in workers {
            arenas.push(worker.arena);
            found.push(worker.ids);
            pending.extend(worker.pending);
        }
        let known: Vec<&NumberedIds> = found.iter().collect();
        let forest = Forest::plant(&mut tables, pending, received.by_id, &known);
        let (mut checksum, mut added) = (checksum, 0);
        if forest.waiting > 0 {
            let view = store.view()?;
            let mut work = DeltaResolution::new(surroundings, &tables, &forest, &arenas, &view);
            let made = self.with_sync(&store, || work.run(self.threads))?;
            let mut left = forest.waiting - made.iter().map(NumberedIds::len).sum::<usize>();
            found.extend(made);
            if left > 0 && self.options.fix_thin {
                let fix = thin::Fix {
                    surroundings,
                    existing: self.context.bases.or(self.context.existing),
                    forest: &forest,
                    arenas: &arenas,
                    view: &view,
                };
                let fixed = fix.run(&store, &mut tables)?;
                left -= fixed.ids.len() - fixed.added as usize;
                added = fixed.added;
                checksum = fixed.checksum.unwrap_or(checksum);
                store.sync(self.options.sync)?;
                found.push(fixed.ids);
            }
            if left > 0 {
                return Err(unresolved(left));
            }
            adopt(&mut tables, &forest);
        } else {
            store.sync(self.options.sync)?;
        }
        let ids = flatten(&found, tables.len(), self.options.kind.len_in_bytes());
        Ok(IndexedPack {
            store,
            checksum,
            tables,
            ids,
            added,
        })
    }

    /// Runs `work` while the pack is flushed to the disk.
    fn with_sync<T>(
        &self,
        store: &SpoolStorage,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.options.sync.is_no() {
            return work();
        }
        std::thread::scope(|scope| {
            let sync = scope.spawn(|| store.sync(self.options.sync));
            let result = work()?;
            join(sync)?;
            Ok(result)
        })
    }

    fn look_for_trouble(&self, indexed: &IndexedPack, order: &[u32]) -> Result<(), Error> {
        let id_len = self.options.kind.len_in_bytes();
        let id = |place: u32| &indexed.ids[place as usize * id_len..][..id_len];
        if self.options.forbid_duplicates
            && let Some(pair) = order.windows(2).find(|pair| id(pair[0]) == id(pair[1]))
        {
            let offset = indexed.tables.offsets[pair[1] as usize];
            return Err(duplicate(&ObjectId::from_bytes_or_panic(id(pair[0]))).at_offset(offset));
        }
        match self
            .context
            .existing
            .filter(|_| self.options.check_collisions)
        {
            Some(existing) => {
                collide::check(self.options.kind, self.limits(), existing, indexed, order)
            }
            None => Ok(()),
        }
    }
}

/// Records in `tables` the bases that were named by id and are known now.
fn adopt(tables: &mut EntryTables, forest: &Forest) {
    for group in &forest.groups {
        if let Some(base) = group.base() {
            for node in group.nodes.clone() {
                let index = forest.nodes[node as usize].index;
                tables.bases[index as usize] = EntryBase::entry(base);
            }
        }
    }
}

/// Concatenates the ids in the order of entries.
fn flatten(found: &[NumberedIds], count: usize, id_len: usize) -> Vec<u8> {
    let mut flat = vec![0; count * id_len];
    for (index, id) in found.iter().flat_map(NumberedIds::iter) {
        flat[index as usize * id_len..][..id_len].copy_from_slice(id);
    }
    flat
}

/// Returns the error for an object that a pack contains twice.
#[cold]
pub(super) fn duplicate(id: &ObjectId) -> Error {
    Error::new(ErrorKind::Duplicate, "pack has duplicate objects").on_object(id)
}

#[cold]
fn unresolved(count: usize) -> Error {
    let plural = if count == 1 { "" } else { "s" };
    Error::new(
        ErrorKind::Unresolved,
        format!("pack has {count} unresolved delta{plural}"),
    )
}

fn finish_arrival(
    received: Result<ReceivedEntries, Error>,
    workers: Vec<Result<ArrivalState, Error>>,
    spool: Result<IndexSpool, Error>,
) -> Result<ReceivedWork, Error> {
    match (received, super::first_real_error(workers), spool) {
        (Ok(received), Ok(workers), Ok(spool)) => Ok(ReceivedWork {
            received,
            workers,
            spool,
        }),
        (received, workers, spool) => {
            let errors = [received.err(), workers.err(), spool.err()];
            let errors = errors.into_iter().flatten().map(Err).collect();
            super::first_real_error::<ReceivedWork>(errors)
                .and_then(|mut none| none.pop().ok_or_else(super::stopped))
        }
    }
}

fn join<T>(handle: std::thread::ScopedJoinHandle<'_, T>) -> T {
    match handle.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

//! Servers of the simulation.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::content::{self, ObjectLinks};
use super::executor::{Tasks, Timeline};
use super::random::SimulationRandom;
use super::world::{FaultyBucket, PREFIX};
use crate::backend::{PlantedFault, StoreBackend, has_fault};
use crate::change::{Outcome, PackPush, PackReplacement, StoreChange};
use crate::clock::Clock;
use crate::commit::Creating;
use crate::generations::InBucket;
use crate::manifest::{LEAST_GRACE_SECONDS, RetentionPolicy, StoredPack};
use crate::refs::RefUpdate;
use crate::repository::{Generation, Options, StoreRepository};
use crate::upload::NewPack;
use crate::{Result, name};

/// The number of servers.
pub(super) const SERVERS: usize = 3;

/// The grace period and the retention of the repository.
pub(super) const POLICY: RetentionPolicy = RetentionPolicy {
    retention_seconds: 2 * LEAST_GRACE_SECONDS,
    grace_seconds: LEAST_GRACE_SECONDS,
};

/// The clock of a server, which runs slightly too fast or too slow.
pub(super) struct ServerClock {
    timeline: Timeline,
    random: Arc<Mutex<SimulationRandom>>,
    /// The speed, in thousandths.
    speed: u32,
}

impl Clock for ServerClock {
    fn now(&self) -> Duration {
        self.timeline.now() * self.speed / 1000
    }

    fn time(&self) -> Duration {
        // The time is wrong on purpose, because no decision may depend on it.
        Duration::from_secs(u64::from(self.speed)) + self.timeline.now()
    }

    async fn sleep(&self, duration: Duration) {
        self.timeline.sleep(duration).await;
    }

    fn random(&self) -> u64 {
        self.random.lock().expect("no panic").next()
    }
}

/// The backend of a server.
pub(super) struct ServerBackend {
    bucket: FaultyBucket,
    generations: InBucket<FaultyBucket>,
    clock: ServerClock,
    fault: Option<PlantedFault>,
}

impl StoreBackend for ServerBackend {
    type Bucket = FaultyBucket;
    type Generations = InBucket<FaultyBucket>;
    type Clock = ServerClock;

    fn bucket(&self) -> &FaultyBucket {
        &self.bucket
    }

    fn generations(&self) -> &InBucket<FaultyBucket> {
        &self.generations
    }

    fn clock(&self) -> &ServerClock {
        &self.clock
    }

    fn fault(&self) -> Option<PlantedFault> {
        self.fault
    }
}

pub(super) type ServerRepository = StoreRepository<ServerBackend>;

/// The running servers.
#[derive(Clone)]
pub(super) struct Servers {
    pub(super) bucket: FaultyBucket,
    tasks: Tasks,
    fault: Option<PlantedFault>,
    /// Whether upkeep runs on all servers, or on the first one only.
    all_have_upkeep: bool,
    running: Arc<Mutex<Vec<Option<Arc<ServerRepository>>>>>,
    /// Whether regular upkeep has ended.
    is_over: Arc<Mutex<bool>>,
}

impl Servers {
    pub(super) fn new(bucket: FaultyBucket, tasks: Tasks, fault: Option<PlantedFault>) -> Self {
        let all_have_upkeep = bucket.random.lock().expect("no panic").chance(50);
        Servers {
            bucket,
            tasks,
            fault,
            all_have_upkeep,
            running: Arc::new(Mutex::new(vec![None; SERVERS])),
            is_over: Arc::default(),
        }
    }

    pub(super) fn repository(&self) -> Arc<ServerRepository> {
        let random = Arc::clone(&self.bucket.random);
        let speed = 995 + random.lock().expect("no panic").below(11) as u32;
        let backend = ServerBackend {
            generations: InBucket(Arc::new(self.bucket.clone())),
            bucket: self.bucket.clone(),
            clock: ServerClock {
                timeline: self.bucket.timeline.clone(),
                random,
                speed,
            },
            fault: self.fault,
        };
        let name = PREFIX.trim_end_matches(".git/");
        Arc::new(StoreRepository::new(
            Arc::new(backend),
            name,
            Options::default(),
        ))
    }

    /// Creates the repository, with retries after failures.
    pub(super) fn create(&self) {
        let repository = self.repository();
        let creating = Creating {
            policy: POLICY,
            ..Creating::default()
        };
        self.tasks.spawn(0, async move {
            for _ in 0..100 {
                let created = repository.create(&creating, PackPush::default()).await;
                if created.is_ok_and(|()| true) || repository.latest().await.is_ok() {
                    return;
                }
            }
        });
    }

    /// Starts a server without any state.
    pub(super) fn start(&self, server: usize) {
        let repository = self.repository();
        self.running.lock().expect("no panic")[server] = Some(Arc::clone(&repository));
        // A server without upkeep can be idle until all its known data has expired.
        if server > 0 && !self.all_have_upkeep {
            return;
        }
        let servers = self.clone();
        self.tasks.spawn(server, async move {
            while !*servers.is_over.lock().expect("no panic") {
                // Most events happen in the first minutes.
                let random = || repository.backend.clock.random();
                let pause = match random() % 4 {
                    0 => random() % 1800,
                    _ => random() % 20,
                };
                let pause = Duration::from_secs(1 + pause);
                servers.bucket.timeline.sleep(pause).await;
                upkeep(&repository).await;
            }
        });
    }

    /// Schedules the kills and restarts of servers.
    pub(super) fn plan_kills(&self, random: &mut SimulationRandom) {
        for _ in 0..random.below(12) {
            // Most events happen in the first minutes.
            let most = if random.chance(70) {
                120_000
            } else {
                4 * 3_600_000
            };
            let at = Duration::from_millis(random.below(most));
            let pause = Duration::from_millis(random.below(30_000));
            let server = random.below(SERVERS as u64) as usize;
            let servers = self.clone();
            let kill = move || {
                if servers.running.lock().expect("no panic")[server]
                    .take()
                    .is_none()
                {
                    return;
                }
                servers.tasks.kill(server);
                let timeline = servers.bucket.timeline.clone();
                timeline.after(pause, Box::new(move || servers.start(server)));
            };
            self.bucket.timeline.after(at, Box::new(kill));
        }
    }

    /// Runs `work` on a server. Returns `None` if the server does not run, or is killed in the
    /// meantime.
    pub(super) async fn ask<T: Send + 'static, F>(
        &self,
        server: usize,
        work: impl FnOnce(Arc<ServerRepository>) -> F,
    ) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let repository = self.running.lock().expect("no panic")[server].clone()?;
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let work = work(repository);
        self.tasks.spawn(server, async move {
            let _ = sender.send(work.await);
        });
        receiver.await.ok()
    }

    /// Ends the regular upkeep, so that a history ends.
    pub(super) fn end(&self) {
        *self.is_over.lock().expect("no panic") = true;
    }

    /// Runs upkeep until all expired data is deleted.
    pub(super) fn clean_up(&self, pause: Duration) {
        let repository = self.repository();
        let timeline = self.bucket.timeline.clone();
        self.tasks.spawn(super::CLIENTS_GROUP, async move {
            timeline.sleep(pause).await;
            upkeep(&repository).await;
            // The data that this made obsolete has expired now, and no new data is created.
            timeline.sleep(pause).await;
            delete(&repository).await;
        });
    }
}

/// The state on which a push of a client is based.
#[derive(Clone, Copy)]
pub(super) struct PushBasis {
    pub(super) generation: u64,
    pub(super) is_atomic: bool,
}

/// Pushes to a server: uploads, then commits.
pub(super) async fn push(
    repository: &ServerRepository,
    pack: &NewPack,
    updates: Vec<RefUpdate>,
    seen: PushBasis,
) -> Result<Outcome> {
    let hasty = has_fault(&*repository.backend, PlantedFault::CommitBeforeUpload);
    let (uploaded, contents) = match hasty {
        true => repository.pretend(pack),
        false => (repository.upload(pack).await?, Vec::new()),
    };
    let clock = &repository.backend.clock;
    if clock.random().is_multiple_of(20) {
        // The pause is so long that the files may be deleted as garbage, in which case the push
        // must fail.
        let pause = clock.random() % (3 * POLICY.grace_seconds);
        clock.sleep(Duration::from_secs(pause)).await;
    }
    let push = PackPush {
        base: Some(seen.generation),
        packs: vec![uploaded],
        updates,
        is_atomic: seen.is_atomic,
        ..PackPush::default()
    };
    let outcome = repository.commit(StoreChange::Push(push)).await;
    repository.write(contents).await?;
    outcome
}

/// Reads the objects of packs.
pub(super) async fn read(
    repository: &ServerRepository,
    packs: &[StoredPack],
) -> Result<ObjectLinks> {
    let mut objects = ObjectLinks::new();
    for pack in packs {
        let wanted = name::pack(&pack.id, pack.upload, "pack");
        let object = pack.objects().find(|object| object.name == wanted);
        let bytes = repository
            .object(&object.expect("a pack"), u64::MAX)
            .await?;
        content::unpack(&bytes, &mut objects);
    }
    Ok(objects)
}

async fn repack(repository: &ServerRepository) -> Result<()> {
    let newest: Arc<Generation> = repository.latest().await?;
    let mut packs = newest.manifest.packs.clone();
    packs.retain(|_| !repository.backend.clock.random().is_multiple_of(4));
    if packs.len() < 2 {
        return Ok(());
    }
    let mut objects = read(repository, &packs).await?;
    let mut prunes = None;
    if repository.backend.clock.random().is_multiple_of(2) {
        let all = read(repository, &newest.manifest.packs).await?;
        let reached = content::reached(&content::tips(&newest.refs), &all);
        let before = objects.len();
        objects.retain(|id, _| reached.contains(id));
        let index = newest.manifest.next_update_index();
        prunes = (objects.len() < before).then_some(index);
        // Large repositories take long to read.
        let pause = repository.backend.clock.random() % 120;
        repository
            .backend
            .clock
            .sleep(Duration::from_secs(pause))
            .await;
    }
    let mut replacement = PackReplacement {
        dropped_packs: packs.iter().map(|pack| pack.upload).collect(),
        prunes,
        ..PackReplacement::default()
    };
    if !objects.is_empty() {
        let uploaded = repository.upload(&content::pack(&objects)).await?;
        replacement.packs.push(uploaded);
    }
    repository.commit(StoreChange::Replace(replacement)).await?;
    Ok(())
}

/// Does all upkeep. A failed step is retried by the next call.
async fn upkeep(repository: &ServerRepository) {
    let _ = repository.merge_tables().await;
    let _ = repack(repository).await;
    delete(repository).await;
}

async fn delete(repository: &ServerRepository) {
    let _ = repository.expire().await;
    let _ = repository.sweep().await;
}

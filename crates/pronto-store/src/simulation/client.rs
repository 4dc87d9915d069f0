//! Clients of the simulation, which push and read, and their observations.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bstr::{BString, ByteSlice as _};
use pronto_hash::ObjectId;

use super::content::{self, ObjectLinks};
use super::executor::Timeline;
use super::random::SimulationRandom;
use super::server::{self, POLICY, SERVERS, ServerRepository, Servers};
use crate::change::{Outcome, PackPush};
use crate::commit::Creating;
use crate::refs::{self, ExpectedRefValue, RefDecision, RefUpdate, StoredRefValue};
use crate::repository::Generation;
use crate::{ErrorKind, Result};

/// The number of requests of a client.
const REQUESTS: u64 = 10;

/// The names of the refs.
const REFS: [&str; 3] = ["refs/heads/a", "refs/heads/b", "refs/tags/t"];

/// The result of a push, as the client observed it.
#[derive(Clone, Debug)]
pub(super) enum PushResult {
    /// The server responded.
    Answered(Outcome),
    /// The server reported that nothing has changed.
    Failed,
    /// The result is unknown.
    Unknown,
}

/// A push.
#[derive(Clone, Debug)]
pub(super) struct SeenPush {
    pub(super) begun: Duration,
    pub(super) ended: Duration,
    pub(super) updates: Vec<RefUpdate>,
    pub(super) ending: PushResult,
}

/// A request that read a generation.
#[derive(Clone, Debug)]
pub(super) struct SeenRead {
    pub(super) begun: Duration,
    pub(super) ended: Duration,
    pub(super) generation: u64,
}

/// The result of a request that created or removed the repository, or found no repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existence {
    /// The repository did not exist.
    Absent,
    /// The repository existed, and could not be created.
    Present,
    Removed,
    Created,
    /// The result of the removal is unknown.
    MaybeRemoved,
    /// The result of the creation is unknown.
    MaybeCreated,
}

/// The response to such a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenExistence {
    pub(super) begun: Duration,
    pub(super) ended: Duration,
    pub(super) existence: Existence,
}

/// The responses to all clients.
#[derive(Default)]
pub(super) struct Observations {
    pub(super) pushes: Vec<SeenPush>,
    pub(super) reads: Vec<SeenRead>,
    pub(super) existences: Vec<SeenExistence>,
    pub(super) violations: Vec<String>,
    /// The number of clients that have ended.
    ended: usize,
}

/// A client.
pub(super) struct SimulatedClient {
    number: u64,
    servers: Servers,
    timeline: Timeline,
    observations: Arc<Mutex<Observations>>,
    random: SimulationRandom,
    serial: u64,
    /// Whether the client sometimes removes the repository.
    pub(super) removes: bool,
}

impl SimulatedClient {
    pub(super) fn new(
        number: u64,
        servers: &Servers,
        observations: &Arc<Mutex<Observations>>,
        seed: u64,
    ) -> Self {
        SimulatedClient {
            number,
            servers: servers.clone(),
            timeline: servers.bucket.timeline.clone(),
            observations: Arc::clone(observations),
            random: SimulationRandom::new(seed),
            serial: 0,
            removes: false,
        }
    }

    pub(super) async fn run(mut self) {
        for _ in 0..REQUESTS {
            let pause = match self.random.below(20) {
                0 => self.random.below(8 * 3_600_000),
                1..4 => self.random.below(120_000),
                _ => self.random.below(500),
            };
            self.timeline.sleep(Duration::from_millis(pause)).await;
            if self.removes && self.random.chance(8) {
                self.remove().await;
                continue;
            }
            match self.random.chance(60) {
                true => self.push().await,
                false => self.read().await,
            }
        }
        let mut observations = self.observations.lock().expect("no panic");
        observations.ended += 1;
        if observations.ended == super::CLIENTS {
            self.servers.end();
        }
    }

    fn server(&mut self) -> usize {
        self.random.below(SERVERS as u64) as usize
    }

    fn new_id(&mut self) -> ObjectId {
        self.serial += 1;
        content::id(self.number << 32 | self.serial)
    }

    /// Queries a server for the newest generation, and records its content.
    async fn latest(&mut self, server: usize) -> Option<Arc<Generation>> {
        let begun = self.timeline.now();
        let ask = |repository: Arc<ServerRepository>| async move { repository.latest().await };
        let answer = self.servers.ask(server, ask).await?;
        let ended = self.timeline.now();
        let kind = answer.as_ref().err().map(|error| error.kind());
        if kind == Some(ErrorKind::NotFound) {
            self.note(begun, Existence::Absent);
            if self.random.chance(60) {
                self.create(server).await;
            }
            return None;
        }
        let mut observations = self.observations.lock().expect("no panic");
        match answer {
            Ok(generation) => {
                observations.reads.push(SeenRead {
                    begun,
                    ended,
                    generation: generation.number(),
                });
                Some(generation)
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => None,
            Err(error) => {
                observations
                    .violations
                    .push(format!("a request fails: {error}"));
                None
            }
        }
    }

    /// Removes the repository.
    async fn remove(&mut self) {
        let server = self.server();
        let begun = self.timeline.now();
        let ask = |repository: Arc<ServerRepository>| async move { repository.remove().await };
        let existence = match self.servers.ask(server, ask).await {
            Some(Ok(())) => Existence::Removed,
            Some(Err(error)) if error.kind() == ErrorKind::NotFound => Existence::Absent,
            Some(Err(error)) if error.kind() == ErrorKind::Unavailable => return,
            None | Some(Err(_)) => Existence::MaybeRemoved,
        };
        self.note(begun, existence);
    }

    /// Creates the repository again.
    async fn create(&mut self, server: usize) {
        let begun = self.timeline.now();
        let ask = |repository: Arc<ServerRepository>| async move {
            let creating = Creating {
                policy: POLICY,
                ..Creating::default()
            };
            repository.create(&creating, PackPush::default()).await
        };
        let existence = match self.servers.ask(server, ask).await {
            Some(Ok(())) => Existence::Created,
            Some(Err(error)) if error.kind() == ErrorKind::Exists => Existence::Present,
            None | Some(Err(_)) => Existence::MaybeCreated,
        };
        self.note(begun, existence);
    }

    fn note(&self, begun: Duration, existence: Existence) {
        let ended = self.timeline.now();
        let mut observations = self.observations.lock().expect("no panic");
        observations.existences.push(SeenExistence {
            begun,
            ended,
            existence,
        });
    }

    async fn push(&mut self) {
        let server = self.server();
        let Some(seen) = self.latest(server).await else {
            return;
        };
        if self.random.chance(30) {
            // The client takes time to create its commits. In the meantime, other clients delete
            // refs, and upkeep prunes.
            let pause = self.random.below(120_000);
            self.timeline.sleep(Duration::from_millis(pause)).await;
        }
        let mut objects = ObjectLinks::new();
        let mut updates = Vec::new();
        let count = if self.random.chance(20) { 2 } else { 1 };
        let first = self.random.below(REFS.len() as u64) as usize;
        for at in 0..count {
            let name = REFS[(first + at) % REFS.len()];
            let update = self.update(&seen, name, &mut objects);
            updates.push(update);
        }
        if self.random.chance(5) {
            // The pause is long enough for the uploads of a slow push to expire.
            let pause = self.random.below(POLICY.grace_seconds * 1000);
            self.timeline.sleep(Duration::from_millis(pause)).await;
        }
        let pack = content::pack(&objects);
        let resting = server::PushBasis {
            generation: seen.number(),
            is_atomic: self.random.chance(50),
        };
        let sent = updates.clone();
        let begun = self.timeline.now();
        let ask = |repository: Arc<ServerRepository>| async move {
            server::push(&repository, &pack, sent, resting).await
        };
        let answer = self.servers.ask(server, ask).await;
        let ending = match answer {
            None => PushResult::Unknown,
            Some(Ok(outcome)) => PushResult::Answered(outcome),
            Some(Err(error)) if error.kind() == ErrorKind::Unknown => PushResult::Unknown,
            Some(Err(_)) => PushResult::Failed,
        };
        let ended = self.timeline.now();
        self.observations
            .lock()
            .expect("no panic")
            .pushes
            .push(SeenPush {
                begun,
                ended,
                updates,
                ending,
            });
    }

    /// Creates a commit on top of the ref, or deletes the ref.
    fn update(&mut self, seen: &Generation, name: &str, objects: &mut ObjectLinks) -> RefUpdate {
        let found = refs::find(&seen.refs, name.into()).expect("sound tables");
        let parent = match found {
            Some(StoredRefValue::Direct { id, .. }) => Some(id),
            _ => None,
        };
        let (commit, blob) = (self.new_id(), self.new_id());
        let deletes = parent.is_some() && self.random.chance(15);
        let mut links = vec![blob];
        links.extend(parent);
        if self.random.chance(40) {
            // A merge of a ref that another client may delete in the meantime.
            let tips = content::tips(&seen.refs);
            links.extend(tips.get(self.random.below(3) as usize));
        }
        objects.insert(blob, Vec::new());
        objects.insert(commit, links);
        RefUpdate {
            name: name.into(),
            old: parent.map_or(ExpectedRefValue::Missing, ExpectedRefValue::Id),
            new: (!deletes).then_some(StoredRefValue::direct(commit)),
        }
    }

    /// Reads all objects of a generation, which may take long.
    async fn read(&mut self) {
        let server = self.server();
        let Some(generation) = self.latest(server).await else {
            return;
        };
        let lasts = match self.random.chance(20) {
            true => self.random.below(POLICY.grace_seconds * 900),
            false => self.random.below(2000),
        };
        let packs = generation.manifest.packs.clone();
        let timeline = self.timeline.clone();
        let ask = |repository: Arc<ServerRepository>| async move {
            timeline.sleep(Duration::from_millis(lasts)).await;
            server::read(&repository, &packs).await
        };
        let answer: Option<Result<ObjectLinks>> = self.servers.ask(server, ask).await;
        let tips = content::tips(&generation.refs);
        let number = generation.number();
        let violation = match answer {
            None => return,
            Some(Err(error)) if error.kind() == ErrorKind::Unavailable => return,
            Some(Err(error)) => format!("generation {number} cannot be read: {error}"),
            Some(Ok(objects)) => match content::missing(tips, &objects) {
                None => return,
                Some(id) => format!("generation {number} lacks the object {id}"),
            },
        };
        self.observations
            .lock()
            .expect("no panic")
            .violations
            .push(violation);
    }
}

impl SeenPush {
    /// Returns the updates that the client knows to be applied.
    pub(super) fn applied(&self) -> impl Iterator<Item = &RefUpdate> {
        let verdicts = match &self.ending {
            PushResult::Answered(outcome) => outcome.verdicts.as_slice(),
            _ => &[],
        };
        let pairs = self.updates.iter().zip(verdicts);
        pairs
            .filter(|(_, verdict)| **verdict == RefDecision::Applied)
            .map(|(update, _)| update)
    }

    /// Returns the updates that the client knows not to be applied.
    pub(super) fn refused(&self) -> Vec<(&RefUpdate, Option<&RefDecision>)> {
        match &self.ending {
            PushResult::Unknown => Vec::new(),
            PushResult::Failed => self.updates.iter().map(|update| (update, None)).collect(),
            PushResult::Answered(outcome) => {
                let pairs = self.updates.iter().zip(&outcome.verdicts);
                pairs
                    .filter(|(_, verdict)| **verdict != RefDecision::Applied)
                    .map(|(update, verdict)| (update, Some(verdict)))
                    .collect()
            }
        }
    }
}

/// Returns the name of a ref in messages.
pub(super) fn shown(name: &BString) -> String {
    name.to_str_lossy().into_owned()
}

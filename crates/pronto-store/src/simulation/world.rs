//! The store of the simulation: its content, and the invariants that it checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;

use super::executor::Timeline;
use super::random::SimulationRandom;
use crate::bucket::{Bucket, CreationResult, Entry, ListingPage, UploadContent};
use crate::manifest::Manifest;
use crate::{Error, ErrorKind, Result, name};

/// The prefix of the repository.
pub(super) const PREFIX: &str = "r.git/";

/// The longest time after which a failed call can still take effect.
const LATEST: Duration = Duration::from_secs(900);

/// A generation as it was created.
#[derive(Clone)]
pub(super) struct CreatedGeneration {
    pub(super) at: Duration,
    pub(super) bytes: Bytes,
    pub(super) manifest: Manifest,
    /// The objects that the generation references.
    pub(super) names: BTreeSet<String>,
}

/// The objects, and the history of the store.
#[derive(Default)]
pub(super) struct World {
    pub(super) objects: BTreeMap<String, (Bytes, Duration)>,
    /// The generations, starting at 1.
    pub(super) log: Vec<CreatedGeneration>,
    /// All objects that ever existed.
    pub(super) history: BTreeMap<String, Bytes>,
    /// The violations that the store itself detects.
    pub(super) violations: Vec<String>,
    /// The number of calls.
    pub(super) calls: u64,
}

impl World {
    /// Returns the number of the newest generation at a point in time.
    pub(super) fn newest_at(&self, moment: Duration) -> u64 {
        self.log
            .iter()
            .take_while(|created| created.at <= moment)
            .count() as u64
    }

    fn put(&mut self, name: String, bytes: Bytes, now: Duration) {
        self.history.insert(name.clone(), bytes.clone());
        self.objects.insert(name, (bytes, now));
    }

    fn create(&mut self, name: String, bytes: Bytes, now: Duration) -> CreationResult {
        if self.objects.contains_key(&name) {
            return CreationResult::Exists;
        }
        if let Some(number) = name.strip_prefix(PREFIX).and_then(name::parse_generation) {
            self.note_generation(number, &bytes, now);
        }
        self.put(name, bytes, now);
        CreationResult::Created
    }

    fn note_generation(&mut self, number: u64, bytes: &Bytes, now: Duration) {
        let manifest = match Manifest::decode(bytes) {
            Ok(manifest) => manifest,
            Err(error) => {
                return self
                    .violations
                    .push(format!("generation {number}: {error}"));
            }
        };
        if number != self.log.len() as u64 + 1 {
            let newest = self.log.len();
            let message = format!("generation {number} was created when {newest} was the newest");
            return self.violations.push(message);
        }
        let names: BTreeSet<String> = manifest.objects().map(|object| object.name).collect();
        for name in &names {
            if !self.objects.contains_key(&format!("{PREFIX}{name}")) {
                let message = format!("generation {number} was created without {name}");
                self.violations.push(message);
            }
        }
        self.log.push(CreatedGeneration {
            at: now,
            bytes: bytes.clone(),
            manifest,
            names,
        });
    }

    fn delete(&mut self, name: &str, now: Duration) {
        if self.objects.remove(name).is_none() {
            return;
        }
        let short = name.strip_prefix(PREFIX).unwrap_or(name);
        let number = name::parse_generation(short);
        for (at, created) in self.log.iter().enumerate() {
            let retention = Duration::from_secs(created.manifest.policy.retention_seconds);
            let next = self.log.get(at + 1);
            let is_kept = next.is_none_or(|next| next.at + retention >= now);
            let uses = created.names.contains(short) || number == Some(at as u64 + 1);
            if is_kept && uses {
                let message = format!("{short} was deleted early: generation {} has it", at + 1);
                self.violations.push(message);
                return;
            }
        }
    }
}

/// The rates of faults of calls, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SimulatedFaults {
    /// The store refuses the call.
    pub(super) refused: u64,
    /// The call takes effect, and the response is lost.
    pub(super) lost: u64,
    /// The call fails, and takes effect later.
    pub(super) late: u64,
    /// The call is slow.
    pub(super) slow: u64,
}

/// A store that fails according to `faults`. Calls that were sent take effect even if the caller is
/// killed.
#[derive(Clone)]
pub(super) struct FaultyBucket {
    pub(super) world: Arc<Mutex<World>>,
    pub(super) timeline: Timeline,
    pub(super) random: Arc<Mutex<SimulationRandom>>,
    pub(super) faults: Arc<Mutex<SimulatedFaults>>,
}

/// The outcome of a call.
enum CallOutcome {
    Answered,
    Refused,
    Lost,
    Late(Duration),
}

impl FaultyBucket {
    fn draw(&self) -> (CallOutcome, Duration, Duration) {
        let faults = *self.faults.lock().expect("no panic");
        let mut random = self.random.lock().expect("no panic");
        let mut span = || match random.chance(faults.slow) {
            true => Duration::from_millis(random.below(5000)),
            false => Duration::from_millis(1 + random.below(50)),
        };
        let (there, back) = (span(), span());
        let lot = random.below(100);
        let fate = if lot < faults.refused {
            CallOutcome::Refused
        } else if lot < faults.refused + faults.lost {
            CallOutcome::Lost
        } else if lot < faults.refused + faults.lost + faults.late {
            CallOutcome::Late(Duration::from_millis(
                random.below(LATEST.as_millis() as u64),
            ))
        } else {
            CallOutcome::Answered
        };
        (fate, there, back)
    }

    async fn call<T: Send + 'static>(
        &self,
        effect: impl FnOnce(&mut World, Duration) -> T + Send + 'static,
    ) -> Result<T> {
        let (fate, there, back) = self.draw();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let (world, timeline) = (Arc::clone(&self.world), self.timeline.clone());
        let act = move || {
            let mut world = world.lock().expect("no panic");
            world.calls += 1;
            effect(&mut world, timeline.now())
        };
        let timeline = self.timeline.clone();
        match fate {
            CallOutcome::Answered => self.timeline.after(
                there,
                Box::new(move || {
                    let answer = act();
                    let send = move || drop(sender.send(Some(answer)));
                    timeline.after(back, Box::new(send));
                }),
            ),
            CallOutcome::Refused => {
                let send = move || drop(sender.send(None));
                self.timeline.after(there, Box::new(send));
            }
            CallOutcome::Lost => self.timeline.after(
                there,
                Box::new(move || {
                    act();
                    let send = move || drop(sender.send(None));
                    timeline.after(back, Box::new(send));
                }),
            ),
            CallOutcome::Late(delay) => {
                let send = move || drop(sender.send(None));
                self.timeline.after(there, Box::new(send));
                let late = move || drop(act());
                self.timeline.after(delay, Box::new(late));
            }
        }
        match receiver.await {
            Ok(Some(answer)) => Ok(answer),
            _ => Err(Error::new(
                ErrorKind::Unavailable,
                "the store did not answer",
            )),
        }
    }
}

impl Bucket for FaultyBucket {
    async fn get(&self, name: &str, _: u64) -> Result<Option<Bytes>> {
        let name = name.to_owned();
        let get =
            move |world: &mut World, _| world.objects.get(&name).map(|(bytes, _)| bytes.clone());
        self.call(get).await
    }

    async fn get_range(&self, name: &str, start: u64, len: u64) -> Result<Option<Bytes>> {
        let found = self.get(name, u64::MAX).await?;
        Ok(found.map(|bytes| {
            let start = (start as usize).min(bytes.len());
            bytes.slice(start..bytes.len().min(start + len as usize))
        }))
    }

    async fn head(&self, name: &str) -> Result<Option<Entry>> {
        let name = name.to_owned();
        let head = move |world: &mut World, _| {
            let (bytes, modified) = world.objects.get(&name)?;
            Some(Entry {
                name: name.clone(),
                size_bytes: bytes.len() as u64,
                modified: *modified,
            })
        };
        self.call(head).await
    }

    async fn put(&self, name: &str, content: &UploadContent) -> Result<()> {
        let (name, content) = (name.to_owned(), content.clone());
        let put = move |world: &mut World, now| match content {
            UploadContent::Bytes(bytes) => world.put(name, bytes, now),
            UploadContent::File(_) => world.violations.push("a file in the simulation".into()),
        };
        self.call(put).await
    }

    async fn create(&self, name: &str, bytes: Bytes) -> Result<CreationResult> {
        let name = name.to_owned();
        self.call(move |world, now| world.create(name, bytes, now))
            .await
    }

    async fn list(&self, prefix: &str, limit: usize, page: Option<&str>) -> Result<ListingPage> {
        let prefix = prefix.to_owned();
        let after = page.unwrap_or_default().to_owned();
        let list = move |world: &mut World, _| {
            let from = after.clone().max(prefix.clone());
            let found = world.objects.range(from..);
            let found = found.filter(|(name, _)| **name > after);
            let found = found.take_while(|(name, _)| name.starts_with(&prefix));
            let mut entries: Vec<Entry> = found
                .take(limit + 1)
                .map(|(name, (bytes, modified))| Entry {
                    name: name.clone(),
                    size_bytes: bytes.len() as u64,
                    modified: *modified,
                })
                .collect();
            let is_whole = entries.len() <= limit;
            entries.truncate(limit);
            let last = entries.last().map(|entry| entry.name.clone());
            ListingPage {
                entries,
                next: last.filter(|_| !is_whole),
            }
        };
        self.call(list).await
    }

    async fn directories(&self, _: &str) -> Result<Vec<String>> {
        Err(Error::new(
            ErrorKind::Unsupported,
            "the simulation has one repository",
        ))
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.call(move |world, now| world.delete(&name, now)).await
    }
}

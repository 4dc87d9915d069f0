//! A repository in a store: its newest generation, and the content of generations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pronto_refs::reftable::StackSnapshot;

use crate::backend::{PlantedFault, StoreBackend, has_fault};
use crate::clock::Clock as _;
use crate::digest::Digest;
use crate::generations::{GenerationStore as _, GenerationSummary};
use crate::manifest::{Manifest, Nonce};
use crate::name::UploadId;
use crate::queue::ChangeQueue;
use crate::{Error, ErrorKind, Result, name};

/// The number of attempts to find the newest generation while it expires immediately.
const TRIES: u32 = 5;

/// The first pause before a retry.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause before a retry.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The options of a [`StoreRepository`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The time after which a failed call of the store is no longer retried.
    pub patience: Duration,
    /// The time for which a listing of the generations is valid.
    pub window: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            patience: Duration::from_secs(20),
            window: Duration::from_secs(60),
        }
    }
}

/// A generation whose refs can be read. Its data stays readable for at least the grace period.
#[derive(Debug)]
pub struct Generation {
    /// The manifest of the generation.
    pub manifest: Manifest,
    /// The digest of the manifest.
    pub digest: Digest,
    /// The refs, including `HEAD`.
    pub refs: StackSnapshot,
}

impl Generation {
    /// Returns the number of the generation.
    pub fn number(&self) -> u64 {
        self.manifest.number
    }
}

/// The newest known generation.
#[derive(Clone)]
pub(crate) struct CachedGeneration {
    pub(crate) generation: Arc<Generation>,
    /// A time at which, or after which, the generation was the newest one.
    pub(crate) confirmed: Duration,
    /// The creation time in the listing that showed the generation.
    created: Option<Duration>,
}

/// A repository in a store, as used by one process. `Send + Sync`; requests share one value, so
/// that they share probes and commits.
pub struct StoreRepository<B> {
    pub(crate) backend: Arc<B>,
    /// The prefix of all object names, which ends with a slash.
    pub(crate) prefix: String,
    pub(crate) options: Options,
    /// The random id that distinguishes the generations of this process from those of other
    /// processes.
    pub(crate) writer: u64,
    known: Mutex<Option<CachedGeneration>>,
    /// The number of probes that have started.
    started: AtomicU64,
    /// The number of the last completed probe.
    probe: tokio::sync::Mutex<u64>,
    pub(crate) queue: ChangeQueue,
}

impl<B: StoreBackend> StoreRepository<B> {
    /// Prepares the use of the repository `name`, without a call of the store.
    pub fn new(backend: Arc<B>, name: &str, options: Options) -> Self {
        let writer = backend.clock().random();
        let mut options = options;
        // A commit begins in the first half of the window, and must end within the window.
        options.patience = options.patience.min(options.window / 2);
        StoreRepository {
            backend,
            prefix: format!("{name}.git/"),
            options,
            writer,
            known: Mutex::new(None),
            started: AtomicU64::new(0),
            probe: tokio::sync::Mutex::new(0),
            queue: ChangeQueue::default(),
        }
    }

    /// Returns the name of the repository.
    pub fn name(&self) -> &str {
        self.prefix.trim_end_matches(".git/")
    }

    /// Returns the generation that is the newest one at some time after the call. If nothing has
    /// changed, this costs one call of the store, which concurrent calls of this method share.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`] if the repository does not exist.
    /// - [`ErrorKind::Restored`] if the store has an older state than before.
    /// - [`ErrorKind::Corrupt`] or [`ErrorKind::Missing`] if the repository is damaged.
    /// - The errors of the store.
    pub async fn latest(&self) -> Result<Arc<Generation>> {
        if has_fault(&*self.backend, PlantedFault::StaleRead)
            && let Some(known) = self.known()
        {
            return Ok(known.generation);
        }
        let newest = self.tip().await?;
        match newest.manifest.is_removed {
            true => Err(self.not_found()),
            false => Ok(newest),
        }
    }

    /// Returns the newest generation, even if it marks the repository as removed.
    pub(crate) async fn tip(&self) -> Result<Arc<Generation>> {
        Ok(self.probe().await?.generation)
    }

    pub(crate) fn not_found(&self) -> Error {
        let message = format!("there is no repository '{}'", self.name());
        Error::new(ErrorKind::NotFound, message)
    }

    /// Queries the store for the newest generation, or waits for a probe that begins after this
    /// call.
    async fn probe(&self) -> Result<CachedGeneration> {
        let arrival = self.started.load(Ordering::SeqCst);
        let mut completed = self.probe.lock().await;
        let shared = (*completed > arrival).then(|| self.known()).flatten();
        if let Some(known) = shared {
            return Ok(known);
        }
        let this = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        let known = self.refresh().await?;
        *completed = this;
        Ok(known)
    }

    /// Returns an older generation, which can expire at any time.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NotFound`] if the generation does not exist or has expired, and for
    /// the same reasons as [`latest`](Self::latest).
    pub async fn at(&self, number: u64) -> Result<Arc<Generation>> {
        match self.read(number).await? {
            Some(bytes) => Ok(Arc::new(self.accept(&bytes, number, None).await?)),
            None => Err(Error::new(
                ErrorKind::NotFound,
                format!("repository '{}' has no generation {number}", self.name()),
            )
            .with_hint("upkeep deletes generations after the retention time")),
        }
    }

    /// Returns the newest known generation if it was the newest one recently enough for a commit,
    /// and not before `not_before`. Otherwise queries the store.
    pub(crate) async fn base(&self, not_before: Duration) -> Result<CachedGeneration> {
        let now = self.backend.clock().now();
        if let Some(known) = self.known()
            && known.confirmed >= not_before
            && now.saturating_sub(known.confirmed) < self.window(&known) / 2
        {
            return Ok(known);
        }
        self.probe().await
    }

    /// Queries the store for the newest generation.
    async fn refresh(&self) -> Result<CachedGeneration> {
        let asked = self.backend.clock().now();
        if let Some(known) = self.known()
            && asked.saturating_sub(known.confirmed) < self.window(&known)
        {
            let next = known.generation.number() + 1;
            match self.read(next).await? {
                None => return Ok(self.learn(known.generation, asked, None)),
                Some(bytes) => {
                    let base = Some(&*known.generation);
                    let found = Arc::new(self.accept(&bytes, next, base).await?);
                    // The generation may not be the newest one, so the confirmed time stays.
                    self.learn(found, known.confirmed, None);
                    return self.refresh_by_listing(Some(next)).await;
                }
            }
        }
        self.refresh_by_listing(None).await
    }

    /// Finds the newest generation with a listing. `read` is the number of a generation that was
    /// read immediately before.
    async fn refresh_by_listing(&self, read: Option<u64>) -> Result<CachedGeneration> {
        for _ in 0..TRIES {
            let known = self.known();
            let asked = self.backend.clock().now();
            let Some(newest) = self.newest().await? else {
                return Err(match known {
                    None => self.not_found(),
                    Some(known) => self.restored(&known.generation),
                });
            };
            if let Some(known) = &known {
                let number = known.generation.number();
                if newest.number < number {
                    return Err(self.restored(&known.generation));
                }
                let is_same = known.created == Some(newest.created) || read == Some(number);
                if newest.number == number && is_same {
                    let generation = Arc::clone(&known.generation);
                    return Ok(self.learn(generation, asked, Some(newest.created)));
                }
            }
            let Some(bytes) = self.read(newest.number).await? else {
                // The generation expired after the listing, so newer ones exist.
                continue;
            };
            let base = known.as_ref().map(|known| &*known.generation);
            let found = self.accept(&bytes, newest.number, base).await?;
            return Ok(self.learn(Arc::new(found), asked, Some(newest.created)));
        }
        let message = format!(
            "gave up: other processes keep changing '{}'; try again",
            self.name()
        );
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// Checks a manifest and opens its refs. `base` is the previously known generation.
    pub(crate) async fn accept(
        &self,
        bytes: &Bytes,
        number: u64,
        base: Option<&Generation>,
    ) -> Result<Generation> {
        let manifest = self.decode(bytes, number)?;
        let digest = Digest::of(bytes);
        if let Some(base) = base {
            let follows = match number.checked_sub(base.number()) {
                Some(0) => digest == base.digest,
                Some(1) => manifest.replaces == Some(base.digest),
                _ => true,
            };
            if !follows || manifest.repository != base.manifest.repository {
                return Err(self.restored(base));
            }
        }
        let refs = self.open_tables(&manifest, base).await?;
        Ok(Generation {
            manifest,
            digest,
            refs,
        })
    }

    /// Decodes the manifest of generation `number`. The number in a manifest must match its name,
    /// so that loops over generations terminate.
    ///
    /// # Errors
    /// Fails for the same reasons as [`Manifest::decode`]. The error contains the name of the
    /// object.
    pub(crate) fn decode(&self, bytes: &Bytes, number: u64) -> Result<Manifest> {
        let path = || self.generation_path(number);
        let manifest = Manifest::decode(bytes).map_err(|error| error.at_path(path()))?;
        if manifest.number == number {
            return Ok(manifest);
        }
        let message = format!("generation {number} has the number {}", manifest.number);
        Err(Error::new(ErrorKind::Corrupt, message).at_path(path()))
    }

    /// Returns the name of a generation in the store.
    pub(crate) fn generation_path(&self, number: u64) -> String {
        format!("{}{}", self.prefix, name::generation(number))
    }

    fn restored(&self, known: &Generation) -> Error {
        let number = known.number();
        let message = format!(
            "the store lost generation {number} of '{}': it was restored from a backup or replaced",
            self.name()
        );
        let hint = "stop all servers, run 'pronto store verify', then start them with empty caches";
        Error::new(ErrorKind::Restored, message).with_hint(hint)
    }

    /// Records that `generation` was the newest one at `confirmed`, and returns the newest known
    /// generation.
    pub(crate) fn learn(
        &self,
        generation: Arc<Generation>,
        confirmed: Duration,
        created: Option<Duration>,
    ) -> CachedGeneration {
        let mut slot = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match slot.take() {
            Some(known) if known.generation.number() > generation.number() => known,
            Some(mut known) if known.generation.number() == generation.number() => {
                known.confirmed = known.confirmed.max(confirmed);
                known.created = created.or(known.created);
                known
            }
            _ => CachedGeneration {
                generation,
                confirmed,
                created,
            },
        };
        *slot = Some(known.clone());
        known
    }

    fn known(&self) -> Option<CachedGeneration> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// Returns the time for which a confirmation is valid.
    fn window(&self, known: &CachedGeneration) -> Duration {
        let grace = known.generation.manifest.policy.grace_seconds;
        self.options.window.min(Duration::from_secs(grace / 4))
    }

    /// Returns the newest generation according to a listing.
    pub(crate) async fn newest(&self) -> Result<Option<GenerationSummary>> {
        let generations = self.backend.generations();
        self.persist(|| generations.newest(&self.prefix)).await
    }

    /// Returns the bytes of a manifest.
    pub(crate) async fn read(&self, number: u64) -> Result<Option<Bytes>> {
        let generations = self.backend.generations();
        self.persist(|| generations.read(&self.prefix, number))
            .await
    }

    /// Retries a call that fails temporarily, until the time for retries has passed.
    pub(crate) async fn persist<T, F>(&self, call: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut pauses = Pauses::begin(self);
        loop {
            match call().await {
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    if !pauses.wait().await {
                        return Err(error);
                    }
                }
                answer => return answer,
            }
        }
    }

    pub(crate) fn upload_id(&self) -> UploadId {
        UploadId(self.backend.clock().random())
    }

    pub(crate) fn nonce(&self) -> Nonce {
        let clock = self.backend.clock();
        let number = u128::from(clock.random()) << 64 | u128::from(clock.random());
        Nonce(number.to_be_bytes())
    }

    pub(crate) fn time_ms(&self) -> u64 {
        u64::try_from(self.backend.clock().time().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The growing pauses between retries, until the time for retries has passed.
pub(crate) struct Pauses<'a, B> {
    repository: &'a StoreRepository<B>,
    begun: Duration,
    next: Duration,
}

impl<'a, B: StoreBackend> Pauses<'a, B> {
    pub(crate) fn begin(repository: &'a StoreRepository<B>) -> Self {
        Pauses {
            repository,
            begun: repository.backend.clock().now(),
            next: FIRST_PAUSE,
        }
    }

    /// Waits before a retry. Returns `false` if the time for retries has passed.
    pub(crate) async fn wait(&mut self) -> bool {
        let clock = self.repository.backend.clock();
        // The pause is random, so that processes that were refused at the same time do not retry at
        // the same time.
        let share = (clock.random() % 1024) as u32;
        let pause = self.next / 2 + self.next * share / 2048;
        if clock.now().saturating_sub(self.begun) + pause > self.repository.options.patience {
            return false;
        }
        clock.sleep(pause).await;
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        true
    }
}

//! The first generation of a repository.

use bytes::Bytes;
use pronto_hash::Kind;
use pronto_refs::reftable::StackSnapshot;

use super::plan::{ChangeDecision, GenerationPlan};
use super::{check_names, expired};
use crate::backend::StoreBackend;
use crate::bucket::{CreationResult, UploadContent};
use crate::change::{PackPush, StoreChange};
use crate::digest::Digest;
use crate::generations::GenerationStore as _;
use crate::manifest::{Manifest, RetentionPolicy};
use crate::refs::RefDecision;
use crate::repository::{Generation, StoreRepository};
use crate::{Error, ErrorKind, Result};

/// The properties of a new repository.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Creating {
    /// The hash function of object ids.
    pub hash: Kind,
    /// The time for which unused objects are kept.
    pub policy: RetentionPolicy,
    /// The configuration in Git's format.
    pub config: Bytes,
}

impl Default for Creating {
    fn default() -> Self {
        Creating {
            hash: Kind::Sha1,
            policy: RetentionPolicy::default(),
            config: Bytes::new(),
        }
    }
}

impl<B: StoreBackend> StoreRepository<B> {
    /// Creates the repository, with packs and refs.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Exists`] if the repository exists, with [`ErrorKind::Options`] if
    /// the refs cannot be created, and with the errors of the store.
    pub async fn create(&self, creating: &Creating, content: PackPush) -> Result<()> {
        if !creating.policy.is_safe() {
            let message = "the grace period or the retention is too short";
            return Err(Error::new(ErrorKind::Options, message));
        }
        let nothing = self.before(creating).await?;
        let change = StoreChange::Push(content);
        check_names(&change)?;
        let plan = GenerationPlan::make(self, &nothing, &[&change], None)?;
        if let Some(ChangeDecision::Refs(verdicts)) = plan.decisions.first()
            && verdicts
                .iter()
                .any(|verdict| *verdict != RefDecision::Applied)
        {
            let message =
                "the refs of the new repository conflict: one name is a directory of another";
            return Err(Error::new(ErrorKind::Options, message));
        }
        let bytes = match &plan.next {
            Some(next) => next.bytes.clone(),
            None => {
                let mut manifest = nothing.manifest.clone();
                manifest.follow(&nothing);
                manifest.encode()?
            }
        };
        if let Some((name, table)) = plan.next.as_ref().and_then(|next| next.object.clone()) {
            self.write(vec![(name, UploadContent::Bytes(table))])
                .await?;
        }
        if !self.is_in_time(&nothing, &plan) {
            return Err(expired());
        }
        let generations = self.backend.generations();
        let number = nothing.number() + 1;
        let created = self.persist(|| generations.create(&self.prefix, number, bytes.clone()));
        match created.await? {
            CreationResult::Created => Ok(()),
            // The response to an earlier call may have been lost.
            CreationResult::Exists if self.read(number).await?.as_ref() == Some(&bytes) => Ok(()),
            CreationResult::Exists => Err(self.exists()),
        }
    }

    /// Checks that the repository does not exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Exists`] if the repository exists, and with the errors of the store.
    pub async fn check_new(&self) -> Result<()> {
        self.removed().await.map(drop)
    }

    /// Returns the newest generation if it marks the repository as removed, or `None` if there is
    /// no generation. Fails with [`ErrorKind::Exists`] if the repository is not removed.
    async fn removed(&self) -> Result<Option<Generation>> {
        // Generation 1 of an old repository may have expired.
        let Some(newest) = self.newest().await? else {
            let generations = self.backend.generations();
            self.persist(|| generations.claim(&self.prefix)).await?;
            return Ok(None);
        };
        let Some(bytes) = self.read(newest.number).await? else {
            return Err(self.exists());
        };
        let found = self.accept(&bytes, newest.number, None).await?;
        match found.manifest.is_removed {
            true => Ok(Some(found)),
            false => Err(self.exists()),
        }
    }

    /// Returns the predecessor of the first generation: an empty one, or a removed repository.
    async fn before(&self, creating: &Creating) -> Result<Generation> {
        let Some(removed) = self.removed().await? else {
            return Ok(self.nothing(creating));
        };
        let Generation { manifest, .. } = self.nothing(creating);
        let manifest = Manifest {
            writer: manifest.writer,
            nonce: manifest.nonce,
            time_ms: manifest.time_ms,
            hash: manifest.hash,
            policy: manifest.policy,
            config: manifest.config,
            is_removed: false,
            ..removed.manifest
        };
        Ok(Generation {
            manifest,
            ..removed
        })
    }

    /// Returns an empty predecessor of the first generation.
    fn nothing(&self, creating: &Creating) -> Generation {
        Generation {
            manifest: Manifest {
                repository: self.nonce(),
                number: 0,
                replaces: None,
                writer: self.writer,
                nonce: self.nonce(),
                time_ms: self.time_ms(),
                hash: creating.hash,
                policy: creating.policy,
                dropped: 0,
                pruned: 0,
                is_removed: false,
                config: creating.config.clone(),
                packs: Vec::new(),
                layers: Vec::new(),
                tables: Vec::new(),
                drops: Vec::new(),
            },
            digest: Digest::of(b""),
            refs: StackSnapshot::default(),
        }
    }

    fn exists(&self) -> Error {
        let message = format!("repository '{}' already exists", self.name());
        Error::new(ErrorKind::Exists, message)
    }
}

//! Verifies that a repository in a store is complete and unchanged.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::time::Duration;

use pronto_io::watch::Watch;

use crate::backend::StoreBackend;
use crate::digest::Digest;
use crate::generations::{GenerationStore as _, GenerationSummary};
use crate::manifest::{Manifest, StoreObject};
use crate::name::CONTENTS;
use crate::repository::StoreRepository;
use crate::view::interrupted;
use crate::{Error, ErrorKind, Result};

/// A fault of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreProblem {
    /// Generations between existing ones are missing.
    NoGenerations {
        /// The number of the first missing generation.
        first: u64,
        /// The number of the last missing generation.
        last: u64,
    },
    /// A manifest cannot be read.
    Manifest {
        /// The number of the generation.
        number: u64,
        /// The reason of the failure.
        reason: String,
    },
    /// A generation does not reference the digest of its predecessor.
    Chain {
        /// The number of the generation.
        number: u64,
    },
    /// An object is missing.
    Missing {
        /// The name of the object.
        name: String,
        /// The newest generation that needs it.
        number: u64,
    },
    /// An object has another content than the written one.
    Changed {
        /// The name of the object.
        name: String,
        /// The newest generation that needs it.
        number: u64,
        /// A description of the difference.
        reason: String,
    },
}

impl fmt::Display for StoreProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreProblem::NoGenerations { first, last } if first == last => {
                write!(f, "generation {first} is missing")
            }
            StoreProblem::NoGenerations { first, last } => {
                write!(f, "generations {first} to {last} are missing")
            }
            StoreProblem::Manifest { number, reason } => {
                write!(f, "generation {number} cannot be read: {reason}")
            }
            StoreProblem::Chain { number } => {
                write!(
                    f,
                    "generation {number} does not name generation {} as its predecessor",
                    number - 1
                )
            }
            StoreProblem::Missing { name, number } => {
                write!(f, "'{name}' of generation {number} is missing")
            }
            StoreProblem::Changed {
                name,
                number,
                reason,
            } => {
                write!(f, "'{name}' of generation {number} is corrupt: {reason}")
            }
        }
    }
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The number of the newest generation.
    pub newest: u64,
    /// The number of existing generations.
    pub generations: u64,
    /// The number of objects that the generations reference.
    pub objects: u64,
    /// The total size in bytes of these objects.
    pub bytes: u64,
    /// The number of unreferenced objects. Upkeep deletes them after the grace period.
    pub orphans: u64,
    /// The faults.
    pub problems: Vec<StoreProblem>,
}

/// An object, and the newest generation that needs it.
struct Needed {
    object: StoreObject,
    number: u64,
}

impl<B: StoreBackend> StoreRepository<B> {
    /// Verifies all generations: manifests form a chain, and all objects exist with their sizes.
    /// With `digests`, each object is read. Generations that expire in the meantime are skipped.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NotFound`] if the repository does not exist, and with the errors of
    /// the store. Problems are not errors.
    pub async fn verify(&self, digests: bool, watch: &Watch<'_>) -> Result<Verified> {
        let generations = self.backend.generations();
        let listed = self.persist(|| generations.list(&self.prefix)).await?;
        let Some(newest) = listed.first() else {
            let message = format!("there is no repository '{}'", self.name());
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        let mut verified = Verified {
            newest: newest.number,
            generations: listed.len() as u64,
            ..Verified::default()
        };
        let mut needed = self
            .verify_generations(&listed, &mut verified, watch)
            .await?;
        verified.objects = needed.len() as u64;
        let sizes = needed.values().map(|needed| needed.object.size_bytes);
        verified.bytes = sizes.fold(0, u64::saturating_add);
        self.verify_presence(&mut needed, &mut verified).await?;
        if digests {
            self.verify_digests(&needed, &mut verified, watch).await?;
        }
        Ok(verified)
    }

    /// Reads all manifests, the newest first, and returns the objects that they reference.
    async fn verify_generations(
        &self,
        listed: &[GenerationSummary],
        verified: &mut Verified,
        watch: &Watch<'_>,
    ) -> Result<BTreeMap<String, Needed>> {
        let mut needed = BTreeMap::new();
        let mut next: Option<Manifest> = None;
        let meter = watch
            .progress()
            .begin("Reading generations", Some(listed.len() as u64));
        for (at, GenerationSummary { number, .. }) in listed.iter().enumerate() {
            watch.interrupt().check().map_err(interrupted)?;
            meter.add(1);
            // The numbers come from untrusted names, so a gap can be wider than a list of its
            // numbers could be.
            let above = listed[..at].last().map(|listed| listed.number - 1);
            if let Some(last) = above.filter(|last| last > number) {
                let first = number + 1;
                verified
                    .problems
                    .push(StoreProblem::NoGenerations { first, last });
            }
            let Some(bytes) = self.read(*number).await? else {
                // The oldest generations expire during the verification.
                break;
            };
            let followed = next.take().filter(|next| next.number == number + 1);
            if let Some(next) = followed
                && next.replaces != Some(Digest::of(&bytes))
            {
                let number = next.number;
                verified.problems.push(StoreProblem::Chain { number });
            }
            match self.decode(&bytes, *number) {
                Ok(manifest) => {
                    for object in manifest.objects() {
                        need(&mut needed, object, *number, &mut verified.problems);
                    }
                    next = Some(manifest);
                }
                Err(error) => verified.problems.push(StoreProblem::Manifest {
                    number: *number,
                    reason: error.to_string(),
                }),
            }
        }
        meter.finish();
        Ok(needed)
    }

    /// Compares the objects with a listing. Missing objects are removed from further checks.
    async fn verify_presence(
        &self,
        needed: &mut BTreeMap<String, Needed>,
        verified: &mut Verified,
    ) -> Result<()> {
        let mut found = BTreeMap::new();
        for directory in CONTENTS {
            let visit = |name: String, size: u64, _: Duration| {
                found.insert(name, size);
            };
            self.list(directory, visit).await?;
        }
        needed.retain(|name, needed| {
            let (name, number) = (name.clone(), needed.number);
            let wanted = needed.object.size_bytes;
            let problem = match found.remove(&name) {
                Some(size) if size == wanted => return true,
                Some(size) => StoreProblem::Changed {
                    name,
                    number,
                    reason: format!("it has {size} bytes instead of {wanted}"),
                },
                None => StoreProblem::Missing { name, number },
            };
            verified.problems.push(problem);
            false
        });
        verified.orphans = found.len() as u64;
        Ok(())
    }

    async fn verify_digests(
        &self,
        needed: &BTreeMap<String, Needed>,
        verified: &mut Verified,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let meter = watch
            .progress()
            .begin("Reading objects", Some(needed.len() as u64));
        for (name, needed) in needed {
            watch.interrupt().check().map_err(interrupted)?;
            let read = self.read_object(&needed.object, |_| Ok(())).await;
            meter.add(1);
            meter.add_bytes(needed.object.size_bytes);
            let (name, number) = (name.clone(), needed.number);
            match read {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Missing => {
                    verified
                        .problems
                        .push(StoreProblem::Missing { name, number });
                }
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    let reason = error.message().to_owned();
                    let problem = StoreProblem::Changed {
                        name,
                        number,
                        reason,
                    };
                    verified.problems.push(problem);
                }
                Err(error) => return Err(error),
            }
        }
        meter.finish();
        Ok(())
    }
}

/// Records that generation `number` needs an object. An object is written once, so all generations
/// must describe it identically.
fn need(
    needed: &mut BTreeMap<String, Needed>,
    object: StoreObject,
    number: u64,
    problems: &mut Vec<StoreProblem>,
) {
    match needed.entry(object.name.clone()) {
        Entry::Vacant(place) => _ = place.insert(Needed { object, number }),
        Entry::Occupied(known) if known.get().object == object => {}
        Entry::Occupied(known) => {
            let other = known.get().number;
            problems.push(StoreProblem::Changed {
                name: object.name,
                number,
                reason: format!("generation {other} records another size or digest for it"),
            });
        }
    }
}

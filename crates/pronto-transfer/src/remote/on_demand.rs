//! Fetches the missing objects of a partial clone when they are read.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::ByteSlice;
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::interrupt::Interrupt;
use pronto_io::watch::Watch;
use pronto_odb::{PromisedObjects, Store};

use super::Exact;
use crate::environment::Environment;
use crate::{ErrorKind, Repository, Result};
use pronto_object::TreeEntries;

/// Makes `repository` fetch missing objects from its promisor remotes when they are read, if it is
/// a partial clone and `GIT_NO_LAZY_FETCH` is not set. Each object costs one request; for a tree,
/// all trees below it are received, too.
///
/// # Errors
/// Fails if the configuration or the object store cannot be read.
pub fn fetch_on_demand(repository: &Repository, watch: &Watch<'_>) -> Result<()> {
    let environment = repository.environment();
    if !repository.has_promisor()? || environment.boolean("GIT_NO_LAZY_FETCH", false)? {
        return Ok(());
    }
    repository.objects()?.fetch_missing_with(Box::new(OnDemand {
        git_dir: repository.git_dir().to_owned(),
        environment: environment.clone(),
        interrupt: watch.interrupt().clone(),
        opened: Mutex::default(),
        is_broken: AtomicBool::new(false),
    }));
    Ok(())
}

/// The state of on-demand fetches. The repository is opened again when the first object is missing.
struct OnDemand {
    git_dir: PathBuf,
    environment: Environment,
    interrupt: Interrupt,
    opened: Mutex<Option<Arc<Repository>>>,
    /// Whether a request failed. In that case no further requests are sent.
    is_broken: AtomicBool,
}

impl std::fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnDemand")
            .field("git_dir", &self.git_dir)
            .finish_non_exhaustive()
    }
}

impl PromisedObjects for OnDemand {
    fn fetch(&self, id: &oid) -> Result<bool, pronto_odb::Error> {
        self.fetch_one(id.to_owned()).map_err(|error| {
            error.map_kind(|kind| match kind {
                ErrorKind::Interrupted => pronto_odb::ErrorKind::Interrupted,
                _ => pronto_odb::ErrorKind::Missing,
            })
        })
    }
}

impl OnDemand {
    fn fetch_one(&self, id: ObjectId) -> Result<bool> {
        // Threads that need missing objects at the same time wait for each other.
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let repository = match opened.take() {
            Some(repository) => repository,
            None => Arc::new(Repository::open(&self.git_dir, &self.environment)?),
        };
        let repository = opened.insert(repository);
        let store = repository.objects()?;
        let watch = Watch::none().with_interrupt(&self.interrupt);
        let exact = Exact {
            repository,
            watch: &watch,
        };
        if self.is_broken.load(Relaxed) {
            return Ok(false);
        }
        match exact.fetch_promised([id], store) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            // An object to which no other object links is not promised.
            Err(_) if !is_referred_to(&id, store)? => Ok(false),
            Err(error) => {
                self.is_broken.store(true, Relaxed);
                Err(error)
            }
        }
    }
}

/// Whether an object in a pack links to `id`. Costs reading all commits, trees and tags.
fn is_referred_to(id: &ObjectId, store: &Store) -> Result<bool> {
    let (hex, length) = (id.to_string(), id.kind().len_in_bytes());
    let (mut is_found, mut content) = (false, Vec::new());
    let visited = store.for_each_packed(|other, location| {
        if is_found {
            return Ok(());
        }
        is_found = match store.header_at(location, other)?.map(|header| header.kind) {
            None | Some(ObjectKind::Blob) => false,
            Some(ObjectKind::Tree) => {
                store.find_at(location, other, &mut content)?;
                TreeEntries::new(&content, length).any(|entry| entry.id == id.as_bytes())
            }
            Some(ObjectKind::Commit | ObjectKind::Tag) => {
                store.find_at(location, other, &mut content)?;
                content.contains_str(&hex)
            }
        };
        Ok::<_, pronto_odb::Error>(())
    });
    visited.map_err(crate::objects::from_odb)?;
    Ok(is_found)
}

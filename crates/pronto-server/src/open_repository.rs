//! A repository that is open for a request.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use pronto::Repository;
use pronto::receive_pack::PushDestination;
use pronto_store::{Generation, GenerationView};

use crate::{ErrorKind, Result};

/// A repository that was opened for a request.
pub struct OpenRepository {
    repository: Repository,
    /// The destination that records pushes.
    landing: Option<Arc<dyn PushDestination>>,
    view: Option<Arc<GenerationView>>,
    /// The generation that the view shows.
    generation: Option<Arc<Generation>>,
    /// Values that must live as long as the repository is open.
    _held: Vec<Box<dyn Any>>,
}

impl OpenRepository {
    /// Returns a repository that is a `view` of `generation`, or borrows its objects.
    pub(crate) fn view(
        repository: Repository,
        view: Arc<GenerationView>,
        generation: Arc<Generation>,
    ) -> Self {
        OpenRepository {
            view: Some(view),
            generation: Some(generation),
            ..OpenRepository::from(repository)
        }
    }

    /// Sets the destination that records pushes.
    pub(crate) fn with_landing(mut self, landing: Arc<dyn PushDestination>) -> Self {
        self.landing = Some(landing);
        self
    }

    /// Keeps `value` alive as long as the repository is open.
    pub(crate) fn holding(mut self, value: Box<dyn Any>) -> Self {
        self._held.push(value);
        self
    }

    /// Returns the destination that records pushes, or `None` if pushes change the repository
    /// itself.
    pub fn landing(&self) -> Option<&Arc<dyn PushDestination>> {
        self.landing.as_ref()
    }

    /// Returns the plain repository. The caller must not use it as a view.
    pub(crate) fn into_repository(self) -> Repository {
        self.repository
    }

    /// Returns a path that identifies the repository, and is the same for all its views.
    pub fn identity(&self) -> &Path {
        let git_dir = self.repository.git_dir();
        match self.is_view() {
            // The directory of a view is two levels below the directory of its repository in the
            // cache.
            true => git_dir.ancestors().nth(2).unwrap_or(git_dir),
            false => git_dir,
        }
    }

    /// Returns the size in bytes of the objects and their indexes: all files below `objects`
    /// outside of quarantines, or the objects of a store that the generation references.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Failed`] if a directory cannot be read.
    pub fn object_bytes(&self) -> Result<u64> {
        if let Some(generation) = &self.generation {
            let objects = generation.manifest.objects();
            return Ok(objects.map(|object| object.size_bytes).sum());
        }
        let bytes = pronto::receive_pack::object_bytes(&self.objects_dir());
        bytes.map_err(|error| error.map_kind(|_| ErrorKind::Failed))
    }

    /// Returns whether this is a view of a generation of a store.
    pub fn is_view(&self) -> bool {
        self.view.is_some()
    }
}

impl From<Repository> for OpenRepository {
    fn from(repository: Repository) -> Self {
        OpenRepository {
            repository,
            landing: None,
            view: None,
            generation: None,
            _held: Vec::new(),
        }
    }
}

impl Deref for OpenRepository {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        &self.repository
    }
}

impl fmt::Debug for OpenRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Opened").field(&self.git_dir()).finish()
    }
}

//! Stores in a directory, and pushes to them.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use pronto::Environment;
use pronto_hash::ObjectId;
use pronto_store::{
    BlockingStore, Creating, DatabaseAddress, Error, ExpectedRefValue, FileKind, NewPack, Outcome,
    PackPush, RefUpdate, StoreChange, StoredRefValue, StoredRepository, UploadFile,
};

/// A server: a store, and its view of the repository `r`.
pub(crate) struct Server {
    pub(crate) store: BlockingStore,
    pub(crate) repository: Arc<StoredRepository>,
}

impl Server {
    /// Opens the store in `directory`.
    pub(crate) fn new(directory: &Path) -> Self {
        let url = format!("file://{}", directory.display());
        Server::open(&url, &Environment::empty("/"))
    }

    /// Opens the store at `url`.
    pub(crate) fn open(url: &str, environment: &Environment) -> Self {
        Server::of(BlockingStore::open(url, environment).expect("a store"))
    }

    /// Opens the store at `url`, with generations in the database at `database`.
    pub(crate) fn with_database(url: &str, database: &str, environment: &Environment) -> Self {
        let database = DatabaseAddress::parse(database, environment).expect("an address");
        let store = BlockingStore::open(url, environment).expect("a store");
        Server::of(store.with_generations(database).expect("no certificates"))
    }

    fn of(store: BlockingStore) -> Self {
        let repository = store.repository("team/r").expect("a valid name");
        let repository = Arc::new(repository);
        Server { store, repository }
    }

    /// Makes the repository.
    pub(crate) fn create(&self) {
        let creating = Creating::default();
        let created = self.repository.create(&creating, PackPush::default());
        self.store.wait(created).expect("a new repository");
    }

    /// Pushes a pack that holds `content`, and sets `name` from `old` to an id made of `content`.
    pub(crate) fn push(
        &self,
        name: &str,
        old: Option<ObjectId>,
        content: &str,
    ) -> Result<Outcome, Error> {
        let pack = pack(content);
        let uploaded = self.store.wait(self.repository.upload(&pack))?;
        let mut push = PackPush::default();
        push.packs.push(uploaded);
        push.updates.push(RefUpdate {
            name: name.into(),
            old: old.map_or(ExpectedRefValue::Missing, ExpectedRefValue::Id),
            new: Some(StoredRefValue::direct(id(content))),
        });
        self.store
            .wait(self.repository.commit(StoreChange::Push(push)))
    }
}

/// Returns an id made of `content`.
pub(crate) fn id(content: &str) -> ObjectId {
    let digest = pronto_store::Digest::of(content.as_bytes());
    ObjectId::from_bytes_or_panic(&digest.as_bytes()[..20])
}

fn pack(content: &str) -> NewPack {
    let file = |kind| UploadFile::from_bytes(kind, Bytes::from(content.to_owned()));
    NewPack {
        id: id(content),
        objects: 1,
        is_promisor: false,
        files: vec![file(FileKind::Pack), file(FileKind::Index)],
    }
}

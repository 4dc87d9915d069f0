//! Counts calls of the store, and sequential calls. The time of the test is virtual: each call
//! takes one unit, so that the elapsed time is the number of round trips.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use pronto::Watch;
use pronto_io::view::{FileView, ViewAccess};
use pronto_store::{
    BlockCache, BlockOptions, Bucket, Creating, CreationResult, Entry, ExpectedRefValue, FileKind,
    ListingPage, NewPack, Options, PackPush, RefUpdate, Result, StoreRepository, StoredRefValue,
    SystemBackend, UploadContent, UploadFile,
};
use test_support::{Random, Scratch};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use super::support::id;

const TRIP: Duration = Duration::from_millis(50);

/// A store in memory.
#[derive(Clone, Default)]
struct Counted(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    objects: BTreeMap<String, Bytes>,
    calls: Vec<String>,
    running: usize,
    most_running: usize,
}

impl Counted {
    async fn call<T>(&self, what: &str, act: impl FnOnce(&mut World) -> T) -> Result<T> {
        let running = |change: &dyn Fn(&mut World)| change(&mut self.0.lock().expect("no panic"));
        running(&|world| {
            world.calls.push(what.to_owned());
            world.running += 1;
            world.most_running = world.most_running.max(world.running);
        });
        tokio::time::sleep(TRIP).await;
        running(&|world| world.running -= 1);
        Ok(act(&mut self.0.lock().expect("no panic")))
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic").calls)
    }
}

impl Bucket for Counted {
    async fn get(&self, name: &str, _: u64) -> Result<Option<Bytes>> {
        let get = |world: &mut World| world.objects.get(name).cloned();
        self.call("get", get).await
    }

    async fn get_range(&self, name: &str, start: u64, len: u64) -> Result<Option<Bytes>> {
        let get = |world: &mut World| {
            let bytes = world.objects.get(name)?;
            let end = bytes.len().min((start + len) as usize);
            Some(bytes.slice((start as usize).min(end)..end))
        };
        let extension = name.rsplit('.').next().expect("a name");
        self.call(extension, get).await
    }

    async fn head(&self, _: &str) -> Result<Option<Entry>> {
        self.call("head", |_| None).await
    }

    async fn put(&self, name: &str, content: &UploadContent) -> Result<()> {
        let UploadContent::Bytes(bytes) = content.clone() else {
            panic!("files are not used here");
        };
        let name = name.to_owned();
        let put = |world: &mut World| drop(world.objects.insert(name, bytes));
        self.call("put", put).await
    }

    async fn create(&self, name: &str, bytes: Bytes) -> Result<CreationResult> {
        let create = |world: &mut World| {
            if world.objects.contains_key(name) {
                return CreationResult::Exists;
            }
            world.objects.insert(name.to_owned(), bytes);
            CreationResult::Created
        };
        self.call("create", create).await
    }

    async fn list(&self, prefix: &str, limit: usize, _: Option<&str>) -> Result<ListingPage> {
        let list = |world: &mut World| {
            let found = world
                .objects
                .iter()
                .filter(|(name, _)| name.starts_with(prefix));
            let entries = found.take(limit).map(|(name, bytes)| Entry {
                name: name.clone(),
                size_bytes: bytes.len() as u64,
                modified: Duration::ZERO,
            });
            ListingPage {
                entries: entries.collect(),
                next: None,
            }
        };
        self.call("list", list).await
    }

    async fn directories(&self, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn delete(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

type Counting = StoreRepository<SystemBackend<Counted>>;

fn open(bucket: &Counted) -> Arc<Counting> {
    let backend = Arc::new(SystemBackend::new(bucket.clone()));
    Arc::new(StoreRepository::new(backend, "r", Options::default()))
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.expect("a runtime")
}

/// Creates a repository of packs with the given numbers of blocks, whose content has no valid
/// format.
fn make(bucket: &Counted, blocks: &[usize]) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    runtime().block_on(async {
        let repository = open(bucket);
        let mut push = PackPush::default();
        for (number, blocks) in blocks.iter().enumerate() {
            let bytes = Random::new(number as u64).bytes((blocks << 20) - 7);
            contents.push(bytes.clone());
            let file = |kind| UploadFile::from_bytes(kind, Bytes::from(vec![number as u8; 3000]));
            let pack = NewPack {
                id: id(&number.to_string()),
                objects: 1,
                is_promisor: false,
                files: vec![
                    UploadFile::from_bytes(FileKind::Pack, bytes.into()),
                    file(FileKind::Index),
                    file(FileKind::Reverse),
                    file(FileKind::Bitmap),
                ],
            };
            push.packs
                .push(repository.upload(&pack).await.expect("uploaded"));
        }
        push.updates.push(RefUpdate {
            name: "HEAD".into(),
            old: ExpectedRefValue::Missing,
            new: Some(StoredRefValue::Symbolic("refs/heads/main".into())),
        });
        let created = repository.create(&Creating::default(), push).await;
        created.expect("a new repository");
    });
    bucket.calls();
    contents
}

/// Calls `read` in another thread, and returns the number of round trips that elapse.
async fn trips<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> (T, u32) {
    let begun = Instant::now();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || drop(sender.send(read())));
    let value = receiver.await.expect("no panic");
    (value, begun.elapsed().div_duration_f64(TRIP).round() as u32)
}

#[test]
fn a_cold_clone_starts_after_four_round_trips() {
    let bucket = Counted::default();
    let blocks = [100, 40, 9, 3, 1, 1, 1];
    let contents = make(&bucket, &blocks);
    let scratch = Scratch::new();
    let (directory, files) = (scratch.join("view"), scratch.join("files"));
    let runtime = runtime();
    runtime.block_on(async {
        let repository = open(&bucket);
        let handle = tokio::runtime::Handle::current();
        let cache = BlockCache::new(handle, BlockOptions::default(), |line| panic!("{line}"));
        let begun = Instant::now();
        let newest = repository.latest().await.expect("readable");
        let watch = Watch::none();
        let view = repository.write_ranged_view(&newest, &directory, &files, &cache, &watch);
        let view = view.await.expect("written");
        assert_eq!(begun.elapsed(), TRIP * 3, "listing, manifest, files");
        assert_eq!(view.packs(), 4);
        let mut counts = BTreeMap::new();
        for call in bucket.calls() {
            *counts.entry(call).or_insert(0) += 1;
        }
        let counts: Vec<(&str, i32)> = counts.iter().map(|(call, n)| (call.as_str(), *n)).collect();
        // The first and the last block of each large pack, which every reader needs, are fetched
        // together with the files.
        let wanted = [
            ("bitmap", 7),
            ("get", 1),
            ("idx", 7),
            ("list", 1),
            ("pack", 8 + 3),
            ("rev", 7),
            ("sum", 4),
        ];
        assert_eq!(counts, wanted);

        let path = directory.join(format!("objects/pack/pack-{}.pack", id("0")));
        let pack = Arc::new(FileView::open(&path, ViewAccess::Auto).expect("a view"));
        let content = Arc::new(contents.into_iter().next().expect("a pack"));
        let compare = |offset: usize, len: usize| {
            let (pack, content) = (Arc::clone(&pack), Arc::clone(&content));
            move || {
                let mut buffer = Vec::new();
                let read = pack.read(offset as u64, len, &mut buffer).expect("fetched");
                assert!(read == &content[offset..offset + len]);
            }
        };
        for (offset, len) in [(0, 12), (content.len() - 20, 20)] {
            let (_, passed) = trips(compare(offset, len)).await;
            assert_eq!(passed, 0, "opening a pack costs nothing");
        }
        let (_, passed) = trips(compare(50 << 20, 100)).await;
        assert_eq!((passed, bucket.calls().len()), (1, 1), "the first object");
        // Reads within fetched blocks cost nothing.
        let (_, passed) = trips(compare(50 << 20, 1 << 20)).await;
        assert_eq!((passed, bucket.calls().len()), (0, 0));
    });
}

#[test]
fn a_whole_pack_streams_in_few_requests_at_once() {
    let bucket = Counted::default();
    let contents = make(&bucket, &[256]);
    let scratch = Scratch::new();
    let (directory, files) = (scratch.join("view"), scratch.join("files"));
    let runtime = runtime();
    runtime.block_on(async {
        let repository = open(&bucket);
        let handle = tokio::runtime::Handle::current();
        let cache = BlockCache::new(handle, BlockOptions::default(), |line| panic!("{line}"));
        let newest = repository.latest().await.expect("readable");
        let watch = Watch::none();
        let view = repository.write_ranged_view(&newest, &directory, &files, &cache, &watch);
        let _view = view.await.expect("written");
        bucket.calls();
        bucket.0.lock().expect("no panic").most_running = 0;
        let path = directory.join(format!("objects/pack/pack-{}.pack", id("0")));
        let pack = FileView::open(&path, ViewAccess::Auto).expect("a view");
        let content = contents.into_iter().next().expect("a pack");
        let stream = move || {
            let mut buffer = Vec::new();
            for at in (0..content.len()).step_by(1 << 20) {
                let len = (content.len() - at).min(1 << 20);
                let read = pack.read(at as u64, len, &mut buffer).expect("fetched");
                assert!(read == &content[at..at + len]);
            }
            assert!(pack.bytes().is_some_and(|bytes| bytes == content));
        };
        trips(stream).await;
        let calls = bucket.calls();
        // Most reads have 8 blocks. Other tests share the budget of this process.
        assert!(calls.len() <= 64, "{}", calls.len());
        // Unit tests cover the windows, and the number of overlapping ones.
        let most = bucket.0.lock().expect("no panic").most_running;
        assert!(most <= 17, "{most}");
    });
}

#[test]
fn a_push_elsewhere_costs_the_files_of_its_pack() {
    let bucket = Counted::default();
    make(&bucket, &[20]);
    let scratch = Scratch::new();
    let files = scratch.join("files");
    runtime().block_on(async {
        let repository = open(&bucket);
        let handle = tokio::runtime::Handle::current();
        let cache = BlockCache::new(handle, BlockOptions::default(), |line| panic!("{line}"));
        let watch = Watch::none();
        let newest = repository.latest().await.expect("readable");
        let first = scratch.join("1");
        let first = repository.write_ranged_view(&newest, &first, &files, &cache, &watch);
        let _first = first.await.expect("written");
        // A pack with one block is fetched whole, together with its index.
        let other = open(&bucket);
        let file = |kind| UploadFile::from_bytes(kind, Bytes::from(vec![3; 5000]));
        let pack = NewPack {
            id: id("new"),
            objects: 1,
            is_promisor: false,
            files: vec![file(FileKind::Pack), file(FileKind::Index)],
        };
        let mut push = PackPush::default();
        push.packs
            .push(other.upload(&pack).await.expect("uploaded"));
        push.updates.push(RefUpdate {
            name: "refs/heads/main".into(),
            old: ExpectedRefValue::Missing,
            new: Some(StoredRefValue::direct(id("new"))),
        });
        let committed = other.commit(pronto_store::StoreChange::Push(push)).await;
        committed.expect("committed");
        bucket.calls();
        let begun = Instant::now();
        let newest = repository.latest().await.expect("readable");
        let second = scratch.join("2");
        let second = repository.write_ranged_view(&newest, &second, &files, &cache, &watch);
        let _second = second.await.expect("written");
        let mut calls = bucket.calls();
        calls.sort_unstable();
        assert_eq!(calls, ["get", "idx", "list", "pack"]);
        assert_eq!(
            begun.elapsed(),
            TRIP * 3,
            "probe with the manifest, listing, files"
        );
        // After a restart, only the data that determines the newest generation is fetched.
        let again = open(&bucket);
        let handle = tokio::runtime::Handle::current();
        let cache = BlockCache::new(handle, BlockOptions::default(), |line| panic!("{line}"));
        let newest = again.latest().await.expect("readable");
        let third = scratch.join("3");
        let third = again.write_ranged_view(&newest, &third, &files, &cache, &watch);
        let _third = third.await.expect("written");
        assert_eq!(bucket.calls(), ["list", "get"]);
    });
}

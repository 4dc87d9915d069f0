//! Tests block files with a source that answers from memory, in its own threads and with faults.

use std::sync::Barrier;
use std::sync::atomic::AtomicBool;

use std::fs::File;

use test_support::{Random, Scratch};

use super::super::{FileView, ViewAccess};
use super::*;

/// The content of the source, and the requests that it received.
#[derive(Debug, Default)]
struct TestContent {
    content: Vec<u8>,
    requests: Mutex<Vec<Range<u32>>>,
    notes: Mutex<Vec<String>>,
    fails: AtomicBool,
    /// The block that is answered with wrong bytes.
    wrong: AtomicU32,
    /// Whether prefetches are cancelled.
    refuses_ahead: AtomicBool,
    /// Whether requests are delayed until this is false.
    is_held: Mutex<bool>,
    released: std::sync::Condvar,
}

/// A handle, so that the test keeps the source that the block file uses.
#[derive(Debug)]
struct SourceHandle(Arc<TestContent>);

impl BlockSource for SourceHandle {
    fn fetch(&self, request: Request) {
        let origin = Arc::clone(&self.0);
        if request.is_ahead() && origin.refuses_ahead.load(Ordering::Relaxed) {
            return request.cancel();
        }
        origin
            .requests
            .lock()
            .expect("no panic")
            .push(request.blocks());
        std::thread::spawn(move || {
            let mut held = origin.is_held.lock().expect("no panic");
            while *held {
                held = origin.released.wait(held).expect("no panic");
            }
            drop(held);
            if origin.fails.load(Ordering::Relaxed) {
                return request.land(Err(io::Error::other("no answer")));
            }
            let range = request.range();
            let mut bytes = origin.content[range.start as usize..range.end as usize].to_vec();
            let wrong = origin.wrong.load(Ordering::Relaxed);
            if request.blocks().contains(&wrong) {
                bytes[((wrong - request.blocks().start) as usize) << 20] ^= 1;
            }
            request.land(Ok(&bytes));
        });
    }

    fn check(&self, block: u32, bytes: &[u8]) -> io::Result<()> {
        let start = (block as usize) << 20;
        let wanted = &self.0.content[start..self.0.content.len().min(start + (1 << 20))];
        match bytes == wanted {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("block {block}"),
            )),
        }
    }

    fn note(&self, note: BlockReport<'_>) {
        let kind = match note {
            BlockReport::Damaged { block, .. } => format!("damaged {block}"),
            BlockReport::Replaced { .. } => "replaced".into(),
            BlockReport::Unwritable { .. } => "unwritable".into(),
            BlockReport::Failed(error) => format!("failed: {error}"),
        };
        self.0.notes.lock().expect("no panic").push(kind);
    }
}

impl TestContent {
    fn new(len: usize) -> Arc<TestContent> {
        Arc::new(TestContent {
            content: Random::new(len as u64).bytes(len),
            wrong: AtomicU32::new(u32::MAX),
            ..TestContent::default()
        })
    }

    fn open(self: &Arc<Self>, path: &Path) -> Arc<BlockFile> {
        self.open_with(path, &SpareBudget::new(8 << 20))
    }

    fn open_with(self: &Arc<Self>, path: &Path, spare: &Arc<SpareBudget>) -> Arc<BlockFile> {
        BlockFile::new(BlockFileParts {
            path: path.to_owned(),
            len: self.content.len() as u64,
            source: Arc::new(SourceHandle(Arc::clone(self))),
            spare: Arc::clone(spare),
        })
    }

    fn requests(&self) -> Vec<Range<u32>> {
        std::mem::take(&mut *self.requests.lock().expect("no panic"))
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().expect("no panic"))
    }

    fn hold(&self, held: bool) {
        *self.is_held.lock().expect("no panic") = held;
        self.released.notify_all();
    }
}

fn read(file: &Arc<BlockFile>, offset: usize, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    file.read(offset as u64, &mut bytes)?;
    Ok(bytes)
}

const MIB: usize = 1 << 20;

#[test]
fn blocks_are_fetched_once_and_stay() {
    let scratch = Scratch::new();
    let origin = TestContent::new(20 * MIB + 77);
    let path = scratch.join("blocks");
    let file = origin.open(&path);
    assert_eq!(file.blocks(), 21);
    for (offset, len) in [(5 * MIB + 3, 10), (5 * MIB, MIB), (20 * MIB, 77)] {
        let found = read(&file, offset, len).expect("fetched");
        assert_eq!(found, origin.content[offset..offset + len]);
        assert!(file.in_place(offset as u64, len).expect("there").is_some());
    }
    assert_eq!(origin.requests(), [5..6, 20..21]);
    // A read of several blocks requests them together.
    let found = read(&file, 12 * MIB - 1, 2 * MIB + 2).expect("fetched");
    assert_eq!(found, origin.content[12 * MIB - 1..][..2 * MIB + 2]);
    assert_eq!(origin.requests(), std::slice::from_ref(&(11..15)));
    assert!(file.bytes().is_none());
    // Another process verifies the blocks on the disk, and fetches the rest.
    drop(file);
    let file = origin.open(&path);
    assert_eq!(
        read(&file, 11 * MIB, 4 * MIB).expect("there").len(),
        4 * MIB
    );
    assert_eq!(origin.requests(), []);
    assert!(file.fill().expect("fetched"));
    assert_eq!(file.bytes(), Some(&origin.content[..]));
    assert_eq!(origin.notes(), [""; 0]);
    let fetched: u32 = origin
        .requests()
        .iter()
        .map(|range| range.end - range.start)
        .sum();
    assert_eq!(fetched, 21 - 6);
}

#[test]
fn threads_share_a_fetch() {
    let scratch = Scratch::new();
    let origin = TestContent::new(4 * MIB);
    let file = origin.open(&scratch.join("blocks"));
    origin.hold(true);
    let barrier = Barrier::new(17);
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (file, barrier, origin) = (&file, &barrier, &origin);
            scope.spawn(move || {
                barrier.wait();
                let found = read(file, 2 * MIB + thread, 100).expect("fetched");
                assert_eq!(found, origin.content[2 * MIB + thread..][..100]);
            });
        }
        barrier.wait();
        origin.hold(false);
    });
    assert_eq!(origin.requests(), std::slice::from_ref(&(2..3)));
}

#[test]
fn wrong_and_missing_blocks_are_errors_for_those_that_read_them() {
    let scratch = Scratch::new();
    let origin = TestContent::new(4 * MIB);
    let path = scratch.join("blocks");
    let file = origin.open(&path);
    origin.wrong.store(1, Ordering::Relaxed);
    let error = read(&file, 0, 4 * MIB).expect_err("a wrong block");
    assert_eq!(error.to_string(), "block 1");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    // The damaged block is requested again, once.
    assert_eq!(origin.requests(), [0..4, 1..2]);
    // The other blocks of the request are valid, and no damaged block is on the disk.
    assert_eq!(
        read(&file, 2 * MIB, 9).expect("right"),
        origin.content[2 * MIB..][..9]
    );
    assert_eq!(
        std::fs::read(&path).expect("a file")[MIB..2 * MIB],
        vec![0; MIB]
    );
    origin.fails.store(true, Ordering::Relaxed);
    assert_eq!(
        read(&file, MIB, 1).expect_err("no answer").to_string(),
        "no answer"
    );
    origin.fails.store(false, Ordering::Relaxed);
    origin.wrong.store(u32::MAX, Ordering::Relaxed);
    assert!(file.fill().expect("fetched"));
    assert_eq!(file.bytes(), Some(&origin.content[..]));
}

#[test]
fn damage_of_the_disk_is_noticed_and_healed() {
    let scratch = Scratch::new();
    let origin = TestContent::new(5 * MIB + 9);
    let path = scratch.join("blocks");
    assert!(origin.open(&path).fill().expect("fetched"));
    let mut bytes = std::fs::read(&path).expect("a file");
    bytes[3 * MIB + 12345] ^= 4;
    std::fs::write(&path, &bytes).expect("writable");
    origin.requests();
    let file = origin.open(&path);
    assert!(file.fill().expect("fetched"));
    assert_eq!(file.bytes(), Some(&origin.content[..]));
    assert_eq!(origin.requests(), std::slice::from_ref(&(3..4)));
    assert_eq!(origin.notes(), ["damaged 3"]);
    // A sparse file of another size is not used.
    std::fs::write(&path, &bytes[..4 * MIB]).expect("writable");
    let file = origin.open(&path);
    assert_eq!(read(&file, 0, 5).expect("fetched"), origin.content[..5]);
    assert_eq!(origin.notes(), ["replaced"]);
}

#[test]
fn a_disk_that_cannot_be_written_costs_memory_within_the_budget() {
    let scratch = Scratch::new();
    let origin = TestContent::new(12 * MIB);
    origin.refuses_ahead.store(true, Ordering::Relaxed);
    let spare = SpareBudget::new(3 * MIB);
    let nowhere = scratch.join("missing/blocks");
    let file = origin.open_with(&nowhere, &spare);
    for _ in 0..2 {
        for block in 0..12 {
            let found = read(&file, block * MIB, 7).expect("fetched");
            assert_eq!(found, origin.content[block * MIB..][..7]);
            assert!(
                file.in_place((block * MIB) as u64, 7)
                    .expect("there")
                    .is_none()
            );
            assert!(spare.bytes() <= 3 * MIB);
        }
    }
    assert_eq!(read(&file, 0, 12 * MIB).expect("fetched"), origin.content);
    assert!(!file.fill().expect("fetched"), "not on the disk");
    assert!(file.bytes().is_none());
    while Arc::strong_count(&file) > 1 {
        std::thread::yield_now();
    }
    drop(file);
    assert_eq!(spare.bytes(), 0);
    // A removed file is not written, and the file that replaced it stays unchanged.
    let path = scratch.join("blocks");
    let file = origin.open_with(&path, &spare);
    read(&file, 0, 1).expect("fetched");
    std::fs::remove_file(&path).expect("a file");
    std::fs::write(&path, b"another").expect("writable");
    assert_eq!(
        read(&file, 5 * MIB, 3).expect("fetched"),
        origin.content[5 * MIB..][..3]
    );
    assert_eq!(read(&file, 0, 3).expect("fetched"), origin.content[..3]);
    assert_eq!(std::fs::read(&path).expect("a file"), b"another");
    // Without a budget, waiting threads still receive the block.
    let file = origin.open_with(&nowhere, &SpareBudget::new(0));
    assert_eq!(read(&file, 9, 3).expect("fetched"), origin.content[9..12]);
}

#[test]
fn sequential_reads_fetch_ahead_in_few_requests() {
    let scratch = Scratch::new();
    let origin = TestContent::new(100 * MIB);
    let file = origin.open(&scratch.join("blocks"));
    for block in 0..100 {
        let found = read(&file, block * MIB, 100).expect("fetched");
        assert_eq!(found, origin.content[block * MIB..][..100]);
    }
    let requests = origin.requests();
    let fetched: u32 = requests.iter().map(|range| range.end - range.start).sum();
    assert_eq!(fetched, 100, "each block once");
    assert_eq!(requests[0], 0..1);
    assert!(requests.len() <= 16, "{requests:?}");
    // Threads that need the blocks of a cancelled request request them again.
    let file = origin.open(&scratch.join("others"));
    origin.refuses_ahead.store(true, Ordering::Relaxed);
    for block in 0..100 {
        read(&file, block * MIB, 100).expect("fetched");
    }
}

#[test]
fn a_stub_is_a_view_of_the_blocks_while_it_is_published() {
    let scratch = Scratch::new();
    let origin = TestContent::new(3 * MIB);
    let (path, stub) = (scratch.join("blocks"), scratch.join("stub"));
    let published = Stub::at(&stub, 42).expect("writable");
    assert_eq!(
        published,
        Stub::at(&stub, 43).expect("readable"),
        "its key stays"
    );
    let published = published.publish(origin.open(&path));
    std::fs::hard_link(&stub, scratch.join("link")).expect("a link");
    let view = FileView::open(scratch.join("link"), ViewAccess::Auto).expect("published");
    assert_eq!((view.len(), view.bytes()), (3 * MIB as u64, None));
    let mut buffer = Vec::new();
    assert_eq!(
        view.read(MIB as u64, 4, &mut buffer).expect("fetched"),
        &origin.content[MIB..][..4]
    );
    assert_eq!(buffer, origin.content[MIB..][..4]);
    let place = view.in_place(2, 8).expect("fetched").expect("on the disk");
    assert_eq!(place, &origin.content[2..MIB]);
    assert!(view.read(3 * MIB as u64, 1, &mut buffer).is_err());
    assert!(view.in_place(u64::MAX, 2).is_err());
    // The sparse file was truncated: existing views fail, and a new view works.
    let cut = File::options().write(true).open(&path).expect("a file");
    cut.set_len(0).expect("writable");
    let _ = view.read(0, 8, &mut buffer);
    view.check().expect_err("cut short");
    let again = FileView::open(&stub, ViewAccess::Auto).expect("published");
    assert_eq!(
        again.read(0, 8, &mut buffer).expect("fetched"),
        &origin.content[..8]
    );
    again.check().expect("another file");
    assert_eq!(origin.notes(), ["replaced"]);
    drop(published);
    let ordinary = FileView::open(&stub, ViewAccess::Auto).expect("a file");
    assert!(ordinary.len() < 200, "the stub itself");
    assert_eq!(
        again.read(MIB as u64, 8, &mut buffer).expect("fetched"),
        &origin.content[MIB..][..8]
    );
    let error = Stub::at(&path, 1).expect_err("no stub");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn prefetched_blocks_are_requested_together_and_once() {
    let scratch = Scratch::new();
    let origin = TestContent::new(9 * MIB);
    let file = origin.open(&scratch.join("blocks"));
    origin.hold(true);
    let offset = |block: u64| block * BLOCK_BYTES + 5;
    file.prefetch_all(&[0, 1, 2, 5, 8].map(offset));
    file.prefetch_all(&[2, 2, 3, 8].map(offset));
    file.prefetch_all(&[offset(9), u64::MAX]);
    assert_eq!(origin.requests(), [0..3, 5..6, 8..9, 3..4]);
    origin.hold(false);
    assert_eq!(
        read(&file, 5 * MIB, 4).expect("fetched"),
        origin.content[5 * MIB..][..4]
    );
    assert_eq!(
        origin.requests(),
        [],
        "the read waits for what was expected"
    );
}

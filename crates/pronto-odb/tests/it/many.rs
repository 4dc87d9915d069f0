//! Thousands of packs with a low limit of file descriptors.

use std::path::Path;
use std::process::Command;

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, TrailerDigester};
use pronto_io::view::ViewAccess;
use pronto_odb::{Options, Store};
use pronto_pack::indexer::{self, IndexContext, index_stream};

use super::support::Repository;

/// The variable that names the object directory for the child.
const OBJECTS: &str = "PRONTO_TEST_MANY_PACKS";
const PACKS: usize = 2_000;
const DESCRIPTORS: usize = 256;

fn content(number: usize) -> Vec<u8> {
    format!("the only object of pack {number}\n").into_bytes()
}

fn id(number: usize) -> ObjectId {
    gix_object::compute_hash(Kind::Sha1, ObjectKind::Blob, &content(number))
        .expect("it can be hashed")
}

/// Writes a pack of one blob, and its index.
fn write_pack(directory: &Path, number: usize) {
    let content = content(number);
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    // The type is blob, and the size takes two bytes.
    let size = content.len();
    assert!((16..2048).contains(&size));
    pack.extend([0x80 | 3 << 4 | (size & 15) as u8, (size >> 4) as u8]);
    let level = sirocco::deflate::Level::DEFAULT;
    pack.extend(sirocco::compress(sirocco::Format::Zlib, level, &content));
    let mut digester = TrailerDigester::new(Kind::Sha1);
    digester.update(&pack);
    pack.extend_from_slice(digester.finish().as_slice());
    let mut options = indexer::Options::default();
    (options.sync, options.threads) = (pronto_io::sync::SyncMethod::No, 1);
    index_stream(
        &mut &pack[..],
        directory,
        &options,
        &IndexContext::default(),
    )
    .expect("it is sound");
}

#[test]
fn child() {
    let Some(objects) = std::env::var_os(OBJECTS) else {
        return;
    };
    for (access, step) in [(ViewAccess::Mapped, 11), (ViewAccess::Positional, 353)] {
        let mut options = Options::default();
        options.access = access;
        let store = Store::open(&objects, options).expect("it can be opened");
        let mut found = Vec::new();
        for number in (0..PACKS).step_by(step) {
            let kind = store.find(&id(number), &mut found).expect("it can be read");
            assert_eq!(kind, Some(ObjectKind::Blob), "{number}");
            assert_eq!(found, content(number));
        }
        let missing = store.find(&id(PACKS), &mut found).expect("no error");
        assert_eq!(missing, None);
        let mut ids: Vec<ObjectId> = (0..PACKS).map(id).collect();
        ids.sort_unstable();
        let there = store.contains_batch(&ids).expect("it can be read");
        assert!(there.iter().all(|there| *there));
        let listed = store.iter().expect("it can be listed").map(Result::ok);
        assert!(listed.eq(ids.into_iter().map(Some)));
    }
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    assert!(open < 100, "{open}");
    println!("all were read");
}

#[test]
fn thousands_of_packs_with_few_descriptors() {
    let repository = Repository::new(Kind::Sha1);
    let directory = repository.objects().join("pack");
    for number in 0..PACKS {
        write_pack(&directory, number);
    }
    let reported = repository.git(&["cat-file", "blob", &id(1711).to_string()]);
    assert_eq!(reported, content(1711));
    let output = Command::new("sh")
        .args(["-c", "ulimit -n \"$1\" && shift && exec \"$@\"", "sh"])
        .arg(DESCRIPTORS.to_string())
        .arg(std::env::current_exe().expect("it runs"))
        .args(["--exact", "many::child", "--nocapture"])
        .env(OBJECTS, repository.objects())
        .output()
        .expect("it can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains("all were read"), "{text}{errors}");
}

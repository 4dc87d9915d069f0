//! Objects of manifests that are changed, together with their own checksums, the digests of their
//! blocks, and their digests in the manifest.

use std::fs;
use std::path::PathBuf;

use pronto_hash::Kind;
use pronto_store::{BlockDigester, Digest, ViewCache};

use super::form::Form;
use super::{BlockOptions, Bucket};

/// The number of offsets at which an object is changed.
const PLACES: usize = 12;

/// Computes the checksum at the end of an object again.
type Seal = fn(&mut [u8]);

/// Returns the changes of an object.
fn mutants(bytes: &[u8], seal: Seal) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let len = bytes.len();
    // Half of the offsets are in the header, and the others anywhere.
    let header = (0..PLACES).map(|at| at * 4);
    let anywhere = (0..PLACES).map(|at| at * len / PLACES);
    for at in header.chain(anywhere).filter(|at| at + 4 <= len) {
        for value in [0_u32, 1, 0x7fff_ffff, u32::MAX] {
            // All values at every fourth offset.
            if at / 4 % 4 != value as usize % 4 {
                continue;
            }
            let mut changed = bytes.to_vec();
            changed[at..at + 4].copy_from_slice(&value.to_be_bytes());
            all.push((format!("{value:#x} at {at}"), changed));
        }
    }
    for end in [0, 1, 12, len / 2, len.saturating_sub(25), len - 1] {
        all.push((
            format!("cut short at {end}"),
            bytes[..end.min(len)].to_vec(),
        ));
    }
    all.push(("longer".to_owned(), [bytes, &[0; 64]].concat()));
    for (_, changed) in &mut all {
        seal(changed);
    }
    all.retain(|(_, changed)| changed != bytes);
    all
}

fn seal_with_sha1(bytes: &mut [u8]) {
    if let Some(body) = bytes.len().checked_sub(20) {
        let digest = pronto_hash::digest(Kind::Sha1, &[&bytes[..body]]).expect("no collision");
        bytes[body..].copy_from_slice(digest.as_bytes());
    }
}

fn seal_with_crc32(bytes: &mut [u8]) {
    // The footer of a table has 68 bytes, and ends with its CRC-32.
    if let (Some(footer), Some(end)) = (bytes.len().checked_sub(68), bytes.len().checked_sub(4)) {
        let crc = crc32(&bytes[footer..end]);
        bytes[end..].copy_from_slice(&crc.to_be_bytes());
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

fn as_it_is(_: &mut [u8]) {}

/// An object in the store, and its line in the manifest.
struct Target {
    path: PathBuf,
    bytes: Vec<u8>,
    digest: Digest,
}

impl Bucket {
    /// Returns the largest object whose name ends with `ending`.
    fn target(&self, ending: &str) -> Target {
        let objects = self.manifest.objects();
        let objects = objects.filter(|object| object.name.ends_with(ending));
        let object = objects.max_by_key(|object| object.size_bytes);
        let object = object.expect("the generation has one");
        let path = self.world.path("store/team/r.git").join(&object.name);
        Target {
            bytes: fs::read(&path).expect("an object"),
            path,
            digest: object.digest,
        }
    }

    /// Returns the manifest with the size and the digest of the current content of an object.
    fn describing(&self, target: &Target, changed: &[u8]) -> Vec<u8> {
        let old = format!("{} {}", target.bytes.len(), target.digest);
        let new = format!("{} {}", changed.len(), Digest::of(changed));
        self.form().with_text(&old, &new).bytes()
    }

    /// Computes the digests of the blocks of a changed pack again, and records them in the
    /// manifest.
    fn describe_blocks(&self, changed: &[u8]) {
        let target = self.target(".sum");
        let mut digester = BlockDigester::default();
        digester.update(changed);
        let sums = digester.finish().blocks;
        fs::write(&target.path, &sums).expect("a file");
        let old = format!("{} {}", target.bytes.len(), target.digest);
        let new = format!("{} {}", sums.len(), Digest::of(&sums));
        let form = Form::parse(&fs::read(&self.file).expect("a manifest"));
        self.put(&form.with_text(&old, &new).bytes());
    }

    /// Reads the repository with an empty cache.
    fn serve_anew(&mut self) -> Result<(), String> {
        self.exports += 1;
        let directory = self.world.path(&format!("cache-{}", self.exports));
        let blocks = self.store().block_cache(BlockOptions::default(), |_| ());
        self.cache = ViewCache::open(&directory, u64::MAX, blocks).expect("a directory");
        let served = self.serve().map(drop);
        let verified = self.verify(true);
        verified.expect("problems are no errors");
        served
    }
}

/// Changes the object whose name ends with `ending`. Returns the number of changes that a reader
/// detected.
fn attack(bucket: &mut Bucket, ending: &str, seal: Seal) -> u32 {
    let target = bucket.target(ending);
    let sums = bucket.target(".sum");
    let mut refused = 0;
    for (label, changed) in mutants(&target.bytes, seal) {
        fs::write(&target.path, &changed).expect("a file");
        bucket.put(&bucket.describing(&target, &changed));
        if ending == ".pack" {
            bucket.describe_blocks(&changed);
        }
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bucket.serve_anew()));
        refused += u32::from(matches!(served, Ok(Err(_))));
        assert!(served.is_ok(), "{ending}: {label}");
    }
    for target in [target, sums] {
        fs::write(&target.path, &target.bytes).expect("a file");
    }
    refused
}

#[test]
fn every_object() {
    let mut bucket = Bucket::new();
    for (ending, seal) in [
        (".pack", seal_with_sha1 as Seal),
        (".idx", seal_with_sha1),
        (".rev", seal_with_sha1),
        (".bitmap", seal_with_sha1),
        (".graph", seal_with_sha1),
        (".ref", seal_with_crc32),
        (".sum", as_it_is),
    ] {
        let refused = attack(&mut bucket, ending, seal);
        // Not every reader needs the other files.
        let is_needed = [".pack", ".idx", ".ref", ".sum"].contains(&ending);
        assert!(refused > 0 || !is_needed, "nothing is noticed in {ending}");
    }
    bucket.check_others();
}

#[test]
fn a_table_in_the_manifest() {
    let mut bucket = Bucket::new();
    let table = bucket.form().content("inline");
    for (label, changed) in mutants(&table, seal_with_crc32) {
        bucket.put(&bucket.form().with_content("inline", &changed).bytes());
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bucket.serve_anew()));
        assert!(served.is_ok(), "{label}");
    }
    bucket.check_others();
}

//! Bundles for clones: a header, followed by an existing pack of the repository.
//!
//! A bundle is as public as the advertised refs. It is created only from a pack that contains
//! exactly the objects reachable from these refs.

use std::collections::{HashSet, VecDeque};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::BString;
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, TrailerDigester};
use pronto_io::interrupt::Interrupt;
use pronto_io::view::{self, ViewAccess};
use pronto_io::watch::Watch;
use pronto_odb::Bitmapped;
use pronto_pack::bitmap::Bits;

use super::cache::ListingKey;
use super::hidden::Hidden;
use super::shown::NamespaceView;
use crate::bundle::{BundleHeader, BundleRef, BundleVersion};
use crate::interrupted;
use crate::objects::from_odb;
use crate::{Repository, Result};
use pronto_object::TagRef;

/// The limit for the number of refs in a header. A client creates a ref for each.
const MOST_REFS: usize = 4096;

/// The limit for the number of commits that are newer than the pack. A client fetches them after
/// the bundle.
const MOST_NEWER: usize = 1 << 16;

/// A source of bundles for clones. All requests share it.
pub trait BundleSource: Debug + Send + Sync {
    /// Returns whether there may be a bundle of `repository`. This function is called for each
    /// advertisement, so it must be cheap.
    fn may_have(&self, repository: &Repository) -> bool;

    /// Returns the URL of a bundle of `repository`, relative to the URL of the repository.
    ///
    /// # Errors
    /// Fails if the repository cannot be read, or `interrupt` is triggered.
    fn uri(&self, repository: &Repository, interrupt: &Interrupt) -> Result<Option<String>>;
}

/// A bundle, which consists of a header and an existing pack.
#[derive(Clone, Debug)]
pub struct PackedBundle {
    /// The header. Each header that was created for an equal [`key`](Self::key) describes the pack,
    /// too.
    pub header: Arc<[u8]>,
    /// The path of the pack.
    pub pack: PathBuf,
    /// The checksum of the pack.
    pub checksum: ObjectId,
    /// The key: the digests of the repository, the pack and the rules of hidden refs.
    pub key: ListingKey,
}

impl PackedBundle {
    /// Returns a file name that is unique for the pack and the header.
    pub fn file_name(&self) -> String {
        let mut digest = TrailerDigester::new(Kind::Sha256);
        digest.update(&self.header);
        format!("{}-{}.bundle", self.checksum, digest.finish())
    }
}

/// Returns whether there may be a [`PackedBundle`], that is, a pack with bitmaps of at least
/// `least_bytes`. Costs one directory listing.
pub fn may_have_packed_bundle(repository: &Repository, least_bytes: u64) -> bool {
    let directory = repository.common_dir().join("objects").join("pack");
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let path = entry.path();
        path.extension()
            .is_some_and(|extension| extension == "bitmap")
            && is_large(&path.with_extension("pack"), least_bytes)
    })
}

/// Returns whether a pack has at least `least_bytes`. The file of a pack that is read in blocks is
/// shorter.
fn is_large(pack: &Path, least_bytes: u64) -> bool {
    view::FileView::open(pack, ViewAccess::Positional).is_ok_and(|pack| pack.len() >= least_bytes)
}

/// Returns the pack with bitmaps as a bundle, if it has at least `least_bytes`, and exactly the
/// objects that were reachable from the advertised refs when it was created. Returns `None` if the
/// pack has other objects, if the history is modified (grafts, replace refs, shallow commits), or
/// in a namespace. `identity` identifies the repository in the [`key`](PackedBundle::key):
/// different repositories have different identities, and views of one repository have the same.
///
/// Costs reading the refs, the commits that are newer than the pack, and a bitmap for each ref that
/// reaches objects that the previous refs do not.
///
/// # Errors
/// Fails if refs or objects cannot be read, or with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
pub fn packed_bundle(
    repository: &Repository,
    least_bytes: u64,
    identity: &Path,
    watch: &Watch<'_>,
) -> Result<Option<PackedBundle>> {
    let has_namespace = !repository.refs().namespace().is_empty();
    if has_namespace || !repository.has_usable_bitmaps()? {
        return Ok(None);
    }
    let Some(bitmaps) = repository.objects()?.bitmaps().map_err(from_odb)? else {
        return Ok(None);
    };
    let Some(pack) = bitmaps.reused_pack().map_err(from_odb)? else {
        return Ok(None);
    };
    let is_of_pack = pack.with_extension("bitmap") == bitmaps.file().path();
    if !is_of_pack || !is_large(&pack, least_bytes) {
        return Ok(None);
    }
    let hidden = Hidden::configured(repository.config());
    let Some(references) = tips(repository, &hidden, &bitmaps, watch.interrupt())? else {
        return Ok(None);
    };
    let ids: Vec<ObjectId> = references.iter().map(|found| found.id).collect();
    let watch = Watch::from(watch.interrupt());
    let found = repository.reachable_bits(Some(&bitmaps), &ids, &[], &watch)?;
    let is_whole = found.others.is_empty() && found.bits.count() == found.bits.limit();
    if !is_whole || references.is_empty() {
        return Ok(None);
    }
    let checksum = bitmaps.file().checksum();
    let identity = identity.as_os_str().as_encoded_bytes();
    let rest = format!("\0{checksum}{hidden:?}");
    let subject = [identity, rest.as_bytes()].concat();
    Ok(Some(PackedBundle {
        header: header(repository, references).into(),
        pack,
        checksum,
        key: ListingKey::of(&subject, b""),
    }))
}

fn header(repository: &Repository, references: Vec<BundleRef>) -> Vec<u8> {
    let hash = repository.object_hash();
    let header = BundleHeader {
        version: match hash {
            Kind::Sha1 => BundleVersion::V2,
            _ => BundleVersion::V3,
        },
        hash,
        filter: None,
        prerequisites: Vec::new(),
        references,
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes
}

/// Returns the tips for the header: objects of the pack from which all objects of the pack that the
/// advertised refs reach are reachable. `None` if there are too many tips, or too many newer
/// commits.
fn tips(
    repository: &Repository,
    hidden: &Hidden,
    bitmaps: &Bitmapped,
    interrupt: &Interrupt,
) -> Result<Option<Vec<BundleRef>>> {
    let mut tips = HeaderRefs {
        repository,
        bitmaps,
        covered: bitmaps.empty(),
        references: Vec::new(),
        newer: HashSet::new(),
        buffer: Vec::new(),
    };
    let mut shown = NamespaceView { repository, hidden }.shown(&[], false)?;
    // `HEAD` is the last, because it usually points to the same object as a branch.
    shown.sort_by_key(|found| found.name == "HEAD");
    for found in shown {
        interrupt.check().map_err(interrupted)?;
        let Some(id) = found.id.filter(|id| !id.is_null()) else {
            continue;
        };
        if !tips.add(found.name, id, interrupt)? {
            return Ok(None);
        }
    }
    Ok(Some(tips.references))
}

/// The refs of a header, while they are searched.
struct HeaderRefs<'a> {
    repository: &'a Repository,
    bitmaps: &'a Bitmapped,
    /// The objects that are known to be reachable from the refs.
    covered: Bits,
    references: Vec<BundleRef>,
    /// The commits and tags that the pack lacks.
    newer: HashSet<ObjectId>,
    buffer: Vec<u8>,
}

impl HeaderRefs<'_> {
    /// Adds the object of a ref, or its nearest ancestors in the pack. Returns whether the limits
    /// still hold.
    fn add(&mut self, name: BString, id: ObjectId, interrupt: &Interrupt) -> Result<bool> {
        let mut queue = VecDeque::from([id]);
        let is_branch = name.starts_with(b"refs/heads/");
        let mut name = Some(name);
        while let Some(next) = queue.pop_front() {
            if let Some(bit) = self.bitmaps.bit(&next).map_err(from_odb)? {
                if self.cover(&next, bit)? {
                    // The first parents of a branch are previous values of the branch.
                    let own = name.take_if(|_| is_branch || next == id);
                    let name = own.unwrap_or_else(|| format!("refs/heads/{next}").into());
                    self.references.push(BundleRef { id: next, name });
                }
            } else if self.newer.insert(next) {
                interrupt.check().map_err(interrupted)?;
                match self.repository.kind_of(next)? {
                    Some(ObjectKind::Commit) => {
                        let links = self.repository.commit_links(&next, &mut self.buffer)?;
                        queue.extend(links.parents);
                    }
                    Some(ObjectKind::Tag) => {
                        let store = self.repository.objects()?;
                        store.find(&next, &mut self.buffer).map_err(from_odb)?;
                        queue.extend(TagRef::new(&self.buffer).target());
                    }
                    _ => {}
                }
            }
            if self.references.len() > MOST_REFS || self.newer.len() > MOST_NEWER {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Records the object of `bit`, and the objects reachable from it by its bitmap. Returns
    /// whether the object was new.
    fn cover(&mut self, id: &ObjectId, bit: u32) -> Result<bool> {
        if !self.covered.insert(bit) {
            return Ok(false);
        }
        if let Some(bits) = self.bitmaps.reachable_from(id).map_err(from_odb)? {
            self.covered.union(&bits);
        }
        Ok(true)
    }
}

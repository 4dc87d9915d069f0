//! The links between objects, and the expected types of their targets.

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_object::{CommitLinks, TagRef, TreeEntries};

/// The number of collected links at which duplicates are removed.
const CROWDED: usize = 1 << 20;

/// The links of all objects, each with the expected type of its target.
#[derive(Debug, Default)]
pub(super) struct FsckLinks {
    all: Vec<(ObjectId, ObjectKind)>,
    /// The number of links after the last removal of duplicates.
    distinct: usize,
}

impl FsckLinks {
    /// Adds the links of one object. If `is_cut`, the parents of a shallow commit are not added.
    pub(super) fn add(&mut self, kind: ObjectKind, content: &[u8], hash: Kind, is_cut: bool) {
        match kind {
            ObjectKind::Blob => {}
            ObjectKind::Commit => {
                let links = CommitLinks::parse(content);
                for links in links.iter() {
                    self.all.push((links.tree, ObjectKind::Tree));
                    if !is_cut {
                        let parents = links.parents.iter();
                        self.all
                            .extend(parents.map(|parent| (*parent, ObjectKind::Commit)));
                    }
                }
            }
            ObjectKind::Tag => self.all.extend(tag_link(content)),
            ObjectKind::Tree => {
                for entry in TreeEntries::new(content, hash.len_in_bytes()) {
                    let kind = match entry.is_directory() {
                        true => ObjectKind::Tree,
                        false => ObjectKind::Blob,
                    };
                    if !entry.is_submodule()
                        && let Ok(id) = ObjectId::try_from(entry.id)
                    {
                        self.all.push((id, kind));
                    }
                }
            }
        }
        if self.all.len() >= CROWDED.max(2 * self.distinct) {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.all.sort_unstable();
        self.all.dedup();
        self.distinct = self.all.len();
    }

    /// Returns the links without duplicates.
    pub(super) fn into_distinct(mut self) -> Vec<(ObjectId, ObjectKind)> {
        self.sort();
        self.all
    }
}

fn tag_link(content: &[u8]) -> Option<(ObjectId, ObjectKind)> {
    let target = TagRef::new(content).target()?;
    let line = bstr::ByteSlice::lines(content).nth(1)?;
    let kind = ObjectKind::from_bytes(line.strip_prefix(b"type ")?).ok()?;
    Some((target, kind))
}

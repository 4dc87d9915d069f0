//! The contents of commits and trees as data.

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_object::{CommitRef, IdentityRef, Signature, TreeEntries, message};

use crate::errors::from_odb;
use crate::{Error, ErrorKind, Repository, Result};

/// The bits of the type in a mode.
const TYPE: u32 = 0o170_000;

/// The content of a commit, as [`Repository::commit`] reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitObject {
    /// The id of the commit.
    pub id: ObjectId,
    /// The id of the tree.
    pub tree: ObjectId,
    /// The ids of the parents, in order. Empty for a root commit and at the shallow boundary.
    pub parents: Vec<ObjectId>,
    /// The author (`%an`, `%ae`, `%ad`), or `None` if the line is missing or malformed.
    pub author: Option<Signature>,
    /// The committer (`%cn`, `%ce`, `%cd`), or `None` if the line is missing or malformed.
    pub committer: Option<Signature>,
    /// The encoding of the message (`i18n.commitEncoding`), or `None` for UTF-8.
    pub encoding: Option<BString>,
    /// The message, in its own encoding.
    pub message: BString,
}

impl CommitObject {
    /// Returns the subject: the first paragraph of the message on one line (`%s`).
    pub fn subject(&self) -> BString {
        message::subject(self.message.as_bstr())
    }
}

/// An entry of a tree, as [`Repository::tree`] reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedTreeEntry {
    /// The name, without slashes.
    pub name: BString,
    /// The mode, for example `0o100644`.
    pub mode: u32,
    /// The id of the object. The commit of a submodule is in another repository.
    pub id: ObjectId,
}

impl OwnedTreeEntry {
    /// Returns the type of the object that `git ls-tree` prints: a tree for a directory, a commit for
    /// a submodule, and otherwise a blob.
    pub fn kind(&self) -> ObjectKind {
        match self.mode & TYPE {
            0o040_000 => ObjectKind::Tree,
            0o160_000 => ObjectKind::Commit,
            _ => ObjectKind::Blob,
        }
    }
}

impl Repository {
    /// Reads the commit `id`. Replacements, grafts and the shallow boundary apply as in `git log`.
    /// [`resolve_commit`](Self::resolve_commit) finds the id of a revision.
    ///
    /// Reads and copies the whole commit. [`history`](crate::history) walks many commits at less cost.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::MissingObject`] if the object does not exist, [`ErrorKind::Object`] if the
    /// object is not a commit, [`ErrorKind::Corrupt`] if the tree or a parent is malformed or the object
    /// is damaged, or [`ErrorKind::Io`] if the object store cannot be read.
    pub fn commit(&self, id: &oid) -> Result<CommitObject> {
        let mut content = Vec::new();
        let links = self.commit_links(id, &mut content)?;
        let commit = CommitRef::new(&content);
        Ok(CommitObject {
            id: id.to_owned(),
            tree: links.tree,
            parents: links.parents,
            author: commit.author().and_then(signature_of),
            committer: commit.committer().and_then(signature_of),
            encoding: commit.encoding().map(BStr::to_owned),
            message: commit.message().to_owned(),
        })
    }

    /// Reads the entries of the tree `id`, in the order of the tree, without those of its
    /// subdirectories (`git ls-tree`). [`resolve_tree`](Self::resolve_tree) finds the id of the tree of
    /// a revision.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::MissingObject`] if the object does not exist, [`ErrorKind::Object`] if the
    /// object is not a tree, [`ErrorKind::Corrupt`] if an entry is malformed or the object is damaged, or
    /// [`ErrorKind::Io`] if the object store cannot be read.
    pub fn tree(&self, id: &oid) -> Result<Vec<OwnedTreeEntry>> {
        let fail = |kind, message: &str| Error::new(kind, message).on_object(id);
        let mut content = Vec::new();
        match self.objects()?.find(id, &mut content).map_err(from_odb)? {
            Some(ObjectKind::Tree) => {}
            Some(_) => return Err(fail(ErrorKind::Object, "not a tree")),
            None => return Err(fail(ErrorKind::MissingObject, "could not read tree")),
        }
        let malformed = || fail(ErrorKind::Corrupt, "malformed tree");
        let mut entries = TreeEntries::new(&content, self.object_hash().len_in_bytes());
        let mut items = Vec::new();
        for entry in entries.by_ref() {
            items.push(OwnedTreeEntry {
                name: entry.name.into(),
                mode: entry.mode_bits().ok_or_else(malformed)?,
                id: entry.object_id().ok_or_else(malformed)?,
            });
        }
        match entries.rest().is_empty() {
            true => Ok(items),
            false => Err(malformed()),
        }
    }
}

/// Returns the parts of an identity line with a date.
fn signature_of(identity: IdentityRef<'_>) -> Option<Signature> {
    Some(Signature {
        name: identity.name.to_owned(),
        email: identity.email.to_owned(),
        time: identity.time()?,
    })
}

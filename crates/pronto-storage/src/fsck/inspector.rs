//! The checks of objects while a pack is indexed.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, oid};
use pronto_odb::Store;
use pronto_pack::indexer::{IndexedObjects, Inspect};
use pronto_pack::{Error, ErrorKind};

use super::links::FsckLinks;
use super::{Findings, Levels, Message, Report, lines, special};

/// The checks that an [`FsckInspector`] performs.
#[derive(Clone, Copy, Debug, Default)]
pub struct InspectionScope<'a> {
    /// Check that objects are well formed (`--fsck-objects`, `--strict`).
    pub objects: bool,
    /// Check that linked objects exist.
    pub links: bool,
    /// The shallow commits, whose parents need not exist.
    pub shallow: Option<&'a BTreeSet<ObjectId>>,
    /// The object store with the objects that are not in the pack.
    pub store: Option<&'a Store>,
    /// Whether missing objects are promised by a promisor remote.
    pub promised: bool,
    /// Whether missing `.gitmodules` blobs are reported by [`FsckInspector::missing_modules`] instead of as
    /// errors.
    pub leave_modules: bool,
}

/// Inspects every object of a pack, and the whole pack at the end. An `FsckInspector` is `Send + Sync`:
/// several threads may pass objects to it.
pub struct FsckInspector<'a> {
    hash: Kind,
    levels: &'a Levels,
    scope: InspectionScope<'a>,
    state: Mutex<InspectorState>,
}

#[derive(Default)]
struct InspectorState {
    reports: Vec<Report>,
    links: FsckLinks,
    modules: BTreeSet<ObjectId>,
    attributes: BTreeSet<ObjectId>,
    large: BTreeSet<ObjectId>,
    missing_modules: Vec<ObjectId>,
    foreign: usize,
}

impl<'a> FsckInspector<'a> {
    /// Creates an inspector of objects with the hash function `hash`.
    pub fn new(hash: Kind, levels: &'a Levels, scope: InspectionScope<'a>) -> Self {
        FsckInspector {
            hash,
            levels,
            scope,
            state: Mutex::default(),
        }
    }

    /// Removes and returns the collected reports.
    pub fn take_reports(&self) -> Vec<Report> {
        std::mem::take(&mut self.state().reports)
    }

    /// Returns the missing blobs that trees name `.gitmodules`, if [`InspectionScope::leave_modules`] is set.
    pub fn missing_modules(&self) -> Vec<ObjectId> {
        self.state().missing_modules.clone()
    }

    /// Returns the number of linked objects that exist, but not in the pack.
    pub fn foreign_links(&self) -> usize {
        self.state().foreign
    }

    fn state(&self) -> MutexGuard<'_, InspectorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the findings. Returns an error if the object is rejected.
    fn keep(&self, findings: Findings<'_>, refusal: ErrorKind) -> Result<(), Error> {
        let errors = findings.reports.iter().filter(|report| report.is_error);
        let errors: Vec<String> = errors.map(ToString::to_string).collect();
        let error = (!errors.is_empty()).then(|| refused(refusal, &errors.join("\n")));
        let mut state = self.state();
        state.modules.extend(findings.modules);
        state.attributes.extend(findings.attributes);
        state.reports.extend(findings.reports);
        error.map_or(Ok(()), Err)
    }

    /// Rejects objects that Git cannot parse.
    fn parse(&self, kind: ObjectKind, id: &ObjectId, content: &[u8]) -> Result<(), Error> {
        let unusable = match kind {
            ObjectKind::Commit => lines::unusable_commit(content, id, self.hash),
            ObjectKind::Tag => lines::unusable_tag(content, id, self.hash),
            _ => None,
        };
        let Some(reason) = unusable else {
            return Ok(());
        };
        let invalid = Error::new(ErrorKind::Unparsable, format!("invalid {kind}"));
        if reason.is_empty() {
            return Err(invalid.on_object(id));
        }
        let error = invalid.because(reason.clone());
        self.state().reports.push(Report {
            is_error: true,
            object: *id,
            message: None,
            detail: reason,
        });
        Err(error)
    }

    /// Reads an object from the pack, or from the object store.
    fn find(
        &self,
        contents: &dyn IndexedObjects,
        id: &oid,
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectKind>, Error> {
        match (contents.find(id, out)?, self.scope.store) {
            (None, Some(store)) => {
                let found = store.without_replacements().find(id, out);
                found.map_err(|error| error.map_kind(ErrorKind::from))
            }
            (found, _) => Ok(found),
        }
    }

    /// Checks the blobs that trees name `.gitmodules` or `.gitattributes`.
    fn check_special(&self, contents: &dyn IndexedObjects) -> Result<(), Error> {
        let (modules, attributes, large) = {
            let mut state = self.state();
            (
                std::mem::take(&mut state.modules),
                std::mem::take(&mut state.attributes),
                std::mem::take(&mut state.large),
            )
        };
        for (ids, is_modules) in [(modules, true), (attributes, false)] {
            for id in &ids {
                self.check_one(contents, id, is_modules, large.contains(id))?;
            }
        }
        Ok(())
    }

    fn check_one(
        &self,
        contents: &dyn IndexedObjects,
        id: &ObjectId,
        is_modules: bool,
        is_large: bool,
    ) -> Result<(), Error> {
        let (name, missing, wrong) = match is_modules {
            true => (
                ".gitmodules",
                Message::GitmodulesMissing,
                Message::GitmodulesBlob,
            ),
            false => (
                ".gitattributes",
                Message::GitattributesMissing,
                Message::GitattributesBlob,
            ),
        };
        let mut content = Vec::new();
        let found = match is_large {
            true => Some(ObjectKind::Blob),
            false => self.find(contents, id, &mut content)?,
        };
        let content = (!is_large).then_some(content.as_slice());
        let mut findings = Findings::new(self.levels, id);
        match found {
            None if self.scope.promised => {}
            None if is_modules && self.scope.leave_modules => {
                self.state().missing_modules.push(*id);
            }
            None => {
                findings.report(missing, format!("unable to read {name} blob"));
            }
            Some(ObjectKind::Blob) if self.levels.skips(id) => {}
            Some(ObjectKind::Blob) if is_modules => special::check_modules(content, &mut findings),
            Some(ObjectKind::Blob) => special::check_attributes(content, &mut findings),
            Some(_) => {
                findings.report(wrong, format!("non-blob found at {name}"));
            }
        }
        let in_pack = contents.kind(id).is_some();
        self.keep(findings, ErrorKind::RejectedBlob { in_pack })
    }

    /// Checks that linked objects exist and have the expected type.
    fn check_links(&self, contents: &dyn IndexedObjects) -> Result<(), Error> {
        let links = std::mem::take(&mut self.state().links).into_distinct();
        let mut foreign = 0;
        for (id, expected) in links {
            let found = match (contents.kind(&id), self.scope.store) {
                (None, Some(store)) => {
                    let header = store.without_replacements().header(&id);
                    let header = header.map_err(|error| error.map_kind(ErrorKind::from))?;
                    foreign += usize::from(header.is_some());
                    header.map(|header| header.kind)
                }
                (found, _) => found,
            };
            let message = match found {
                Some(kind) if kind == expected => continue,
                Some(kind) => format!("object {id}: expected type {expected}, found {kind}"),
                None => format!("did not receive expected object {id}"),
            };
            return Err(Error::new(ErrorKind::BrokenLink, message));
        }
        self.state().foreign = foreign;
        Ok(())
    }
}

impl Inspect for FsckInspector<'_> {
    fn object(&self, kind: ObjectKind, id: &ObjectId, content: &[u8]) -> Result<(), Error> {
        if kind == ObjectKind::Blob {
            return Ok(());
        }
        self.parse(kind, id, content)?;
        if self.scope.objects {
            let mut findings = Findings::new(self.levels, id);
            findings.check(kind, content, self.hash);
            if !findings.is_empty() {
                self.keep(findings, ErrorKind::Rejected)?;
            }
        }
        if self.scope.links {
            let is_cut = self.scope.shallow.is_some_and(|cut| cut.contains(id));
            self.state().links.add(kind, content, self.hash, is_cut);
        }
        Ok(())
    }

    fn large_blob(&self, id: &ObjectId, _size_bytes: u64) -> Result<(), Error> {
        self.state().large.insert(*id);
        Ok(())
    }

    fn complete(&self, contents: &dyn IndexedObjects) -> Result<(), Error> {
        if self.scope.links {
            self.check_links(contents)?;
        }
        self.check_special(contents)
    }
}

#[cold]
fn refused(kind: ErrorKind, reason: &str) -> Error {
    let message = match kind {
        ErrorKind::RejectedBlob { in_pack: true } => "fsck error in packed blob",
        ErrorKind::RejectedBlob { in_pack: false } => "fsck error in pack objects",
        _ => "fsck error in packed object",
    };
    Error::new(kind, message).because(reason.to_owned())
}

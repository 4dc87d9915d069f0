//! The checks of `git fsck` for single objects.
//!
//! The indexer calls [`FsckInspector`] while it has an object in memory. Each finding has a message id
//! ([`Message`]), and [`Levels`] determine its severity.

mod inspector;
mod levels;
mod lines;
mod links;
mod message;
mod names;
mod special;
mod tree;

use std::fmt;

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};

pub use inspector::{FsckInspector, InspectionScope};
pub use levels::Levels;
pub use message::{FsckSeverity, Message};

/// A defect of an object. [`Display`](fmt::Display) writes Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Report {
    /// Whether the object is rejected because of the defect.
    pub is_error: bool,
    /// The id of the object.
    pub object: ObjectId,
    /// The message id of the failed check; `None` if Git cannot parse the object.
    pub message: Option<Message>,
    /// The description of the defect.
    pub detail: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = self.message {
            write!(f, "object {}: {}: ", self.object, message.name())?;
        }
        f.write_str(&self.detail)
    }
}

/// Returns the findings of the strict checks (`fsck --strict`) in `content`, an object of type `kind`:
/// message ids and descriptions, including informational ones.
pub fn findings(kind: ObjectKind, content: &[u8], hash: Kind) -> Vec<String> {
    let (levels, id) = (Levels::strict(), ObjectId::null(hash));
    let mut findings = Findings::new(&levels, &id);
    findings.check(kind, content, hash);
    let reports = findings.reports.into_iter();
    let shown = reports.map(|report| match report.message {
        Some(message) => format!("{}: {}", message.name(), report.detail),
        None => report.detail,
    });
    shown.collect()
}

/// The findings in one object.
pub(crate) struct Findings<'a> {
    levels: &'a Levels,
    id: &'a ObjectId,
    reports: Vec<Report>,
    /// The blobs that trees name `.gitmodules`.
    modules: Vec<ObjectId>,
    /// The blobs that trees name `.gitattributes`.
    attributes: Vec<ObjectId>,
}

impl<'a> Findings<'a> {
    fn new(levels: &'a Levels, id: &'a ObjectId) -> Self {
        Findings {
            levels,
            id,
            reports: Vec::new(),
            modules: Vec::new(),
            attributes: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.reports.is_empty() && self.modules.is_empty() && self.attributes.is_empty()
    }

    /// Records a finding. Returns whether the object is rejected because of it.
    fn report(&mut self, message: Message, detail: impl Into<String>) -> bool {
        let level = self.levels.of(message);
        if level == FsckSeverity::Ignore || self.levels.skips(self.id) {
            return false;
        }
        let is_error = matches!(level, FsckSeverity::Error | FsckSeverity::Fatal);
        self.reports.push(Report {
            is_error,
            object: *self.id,
            message: Some(message),
            detail: detail.into(),
        });
        is_error
    }

    /// Records an error that Git reports without a message id.
    fn remark(&mut self, detail: impl Into<String>) {
        self.reports.push(Report {
            is_error: true,
            object: *self.id,
            message: None,
            detail: detail.into(),
        });
    }

    fn check(&mut self, kind: ObjectKind, content: &[u8], hash: Kind) {
        match kind {
            ObjectKind::Commit => lines::check_commit(content, hash, self),
            ObjectKind::Tag => lines::check_tag(content, hash, self),
            ObjectKind::Tree => tree::check(content, hash, self),
            // Blobs are checked only if a tree names them `.gitmodules` or `.gitattributes`.
            ObjectKind::Blob => {}
        }
    }
}

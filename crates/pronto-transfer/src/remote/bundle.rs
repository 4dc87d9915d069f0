//! Reads bundles in place of remotes.

use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;

use bstr::BStr;
use pronto_hash::ObjectId;
use pronto_io::progress::ProgressMessage;
use pronto_io::untrusted::{self, SymlinkPolicy};
use pronto_pack::bundle::{BundleHeader, Prerequisite};

use super::{Cuts, is_connected, shallow};
use crate::environment::Environment;
use crate::{Error, ErrorKind, Repository, Result};

/// The content of the `.promisor` file of a pack from a filtered bundle.
pub const FROM_BUNDLE: &[u8] = b"from-bundle\n";

/// An open bundle whose header was read. The pack is the next content.
pub(super) struct OpenBundle {
    pub(super) header: BundleHeader,
    pub(super) pack: Box<dyn BufRead + Send>,
}

/// Opens the bundle at `path`. Returns `None` if `path` is not a file or has no bundle header.
pub(super) fn open(path: &BStr, environment: &Environment) -> Option<OpenBundle> {
    let path = environment.resolve(crate::path::borrow(path));
    let file = untrusted::open(&path, SymlinkPolicy::Follow).ok()?;
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return None;
    }
    let mut pack = BufReader::new(file);
    let header = BundleHeader::read(&mut pack).ok()?;
    Some(OpenBundle {
        header,
        pack: Box::new(pack),
    })
}

/// The result of verifying a bundle against a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fitness {
    /// The repository has all prerequisites of the bundle.
    Fits,
    /// The repository lacks these prerequisite commits.
    Lacks(Vec<Prerequisite>),
    /// The prerequisite commits exist, but not all objects reachable from them.
    Unconnected,
}

/// Checks the prerequisites of a bundle in `repository`.
///
/// # Errors
/// Fails if an object or a ref cannot be read.
pub fn verify(repository: &Repository, header: &BundleHeader) -> Result<Fitness> {
    let needed = &header.prerequisites;
    if needed.is_empty() {
        return Ok(Fitness::Fits);
    }
    let mut lacking = Vec::new();
    for prerequisite in needed {
        if repository.kind_of(prerequisite.id)? != Some(gix_object::Kind::Commit) {
            lacking.push(prerequisite.clone());
        }
    }
    if !lacking.is_empty() {
        return Ok(Fitness::Lacks(lacking));
    }
    let mut known = Vec::new();
    repository.refs().for_each("refs/", |reference| {
        known.push(reference.id);
        Ok(ControlFlow::Continue(()))
    })?;
    let tips: Vec<ObjectId> = needed.iter().map(|prerequisite| prerequisite.id).collect();
    let cut = shallow::read(repository)?;
    let store = repository.objects()?;
    Ok(
        match is_connected(store, &tips, &known, Cuts::unchanged(&cut))? {
            true => Fitness::Fits,
            false => Fitness::Unconnected,
        },
    )
}

/// Checks that `repository` has all prerequisites of a bundle.
///
/// # Errors
/// Fails with [`ErrorKind::Bundle`] if a prerequisite is missing or not connected, and with other
/// kinds if an object or a ref cannot be read.
pub fn require(repository: &Repository, header: &BundleHeader) -> Result<()> {
    let message = match verify(repository, header)? {
        Fitness::Fits => return Ok(()),
        Fitness::Lacks(commits) => {
            let mut text = String::from(LACKS);
            for commit in commits {
                // Git drops the subject, and keeps the space before it.
                text.push_str(&format!("\n{} ", commit.id));
            }
            text
        }
        Fitness::Unconnected => UNCONNECTED.to_owned(),
    };
    Err(Error::new(ErrorKind::Bundle, message))
}

const LACKS: &str = "Repository lacks these prerequisite commits:";
const UNCONNECTED: &str = "some prerequisite commits exist in the object store, \
                           but are not connected to the repository's history";

/// Returns the error for a fetch from a bundle whose pack failed with `error`.
pub fn unusable(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Interrupted | ErrorKind::Io => error,
        _ => Error::new(ErrorKind::Bundle, "index-pack died").because(error),
    }
}

/// A line of Git's error output, without its prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureLine {
    /// A line with the prefix `error: `.
    Error(String),
    /// A line with the prefix `fatal: `.
    Fatal(String),
}

impl FailureLine {
    /// Returns the line as a message of a running operation.
    pub fn as_message(&self) -> ProgressMessage<'_> {
        match self {
            FailureLine::Error(text) => ProgressMessage::Error(text),
            FailureLine::Fatal(text) => ProgressMessage::Fatal(text),
        }
    }
}

/// Returns the lines of Git's error output for an unusable bundle. Git reads the pack with another
/// program, whose error is the first line.
pub fn failure_lines(error: &Error) -> Vec<FailureLine> {
    let mut lines = Vec::new();
    let cause = std::error::Error::source(error);
    if let Some(cause) = cause.and_then(|cause| cause.downcast_ref::<Error>()) {
        let is_rejected = cause.kind() == ErrorKind::Rejected;
        let reason = std::error::Error::source(cause).filter(|_| is_rejected);
        let reason = reason.map(ToString::to_string).unwrap_or_default();
        let reason = reason.lines();
        lines.extend(reason.map(|line| FailureLine::Error(line.to_owned())));
        lines.push(FailureLine::Fatal(match is_rejected {
            true => "fsck error in packed object".to_owned(),
            false => cause.message().to_owned(),
        }));
    }
    let own = error.message().lines();
    lines.extend(own.map(|line| FailureLine::Error(line.to_owned())));
    lines
}

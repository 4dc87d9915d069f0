//! Creates bundles: `git bundle create`.

use std::collections::HashSet;
use std::io::Write;

use bstr::{BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_io::watch::Watch;
use pronto_odb::packing::PackCounts;
use pronto_storage::pack_objects::{
    self, MissingObjects, ObjectFilter, ReceiverTips, Select, SelectedObjects, select_filtered,
};

use super::limited::{self, Limited, boundary, only_ref};
use super::{BundleHeader, BundleRef, BundleVersion, Prerequisite};
use crate::revision::{RevisionSet, SetMember};
use crate::support::{self, Operation};
use crate::walk::WalkOptions;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_repository::UngraftedRepository;

/// Options of `git bundle create`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CreateOptions {
    /// The format version (`--version`). Unset, the lowest possible version is used.
    pub version: Option<BundleVersion>,
    /// The object filter (`--filter`).
    pub filter: Option<BString>,
    /// The revisions to bundle, as `git rev-list` takes them.
    pub revisions: RevisionSet,
    /// The limits of the commits, such as `--max-count` or `--since`.
    pub walk: WalkOptions,
}

/// A bundle whose objects are selected, ready to be written.
pub struct PreparedBundle<'a> {
    repository: UngraftedRepository<'a>,
    header: BundleHeader,
    selection: SelectedObjects,
    excluded: Vec<BString>,
}

/// Selects the objects of a new bundle, and the refs that point to them.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if the version does not support the filter or the object
/// format, and with other kinds if an object cannot be read.
pub fn create<'a>(
    repository: &'a Repository,
    options: &CreateOptions,
    watch: &Watch<'_>,
) -> Result<PreparedBundle<'a>> {
    support::require(repository, Operation::CreateBundle)?;
    let original = repository.original()?;
    let repository: &Repository = &original;
    let hash = repository.object_hash();
    let filter = options.filter.as_ref();
    let filter = filter
        .map(|spec| ObjectFilter::parse(spec.as_bstr()))
        .transpose()?;
    let least = match hash == Kind::Sha1 && filter.is_none() {
        true => BundleVersion::V2,
        false => BundleVersion::V3,
    };
    let version = options.version.unwrap_or(least);
    if version < least {
        let number = version.number();
        let message = format!("cannot write bundle version {number} with algorithm {hash}");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let limited = limited::find(repository, &options.revisions, &options.walk, watch)?;
    let selection = select(
        repository,
        options,
        limited.as_ref(),
        filter.as_ref(),
        watch,
    )?;
    let mut header = BundleHeader {
        version,
        hash,
        filter: filter.map(|filter| filter.to_spec()),
        prerequisites: Vec::new(),
        references: Vec::new(),
    };
    let mut excluded = Vec::new();
    let members = &options.revisions.members;
    match &limited {
        Some(limited) => {
            header.prerequisites = described(repository, &limited.boundary)?;
            header.references = references(repository, members, &mut |member, kind| {
                limited.admits(repository, member, kind, &mut excluded)
            })?;
        }
        None => {
            let selected: HashSet<ObjectId> = selection.members.iter().map(|it| it.id).collect();
            let commits = commits_of(repository, &selection)?;
            let boundary = boundary(repository, &commits, &selected)?;
            header.prerequisites = described(repository, &boundary)?;
            header.references = references(repository, members, &mut |member, kind| {
                let is_commit = kind == Some(ObjectKind::Commit);
                Ok(!is_commit || selected.contains(&member.found.id))
            })?;
        }
    }
    Ok(PreparedBundle {
        repository: original,
        header,
        selection,
        excluded,
    })
}

impl PreparedBundle<'_> {
    /// Returns the named refs that the limits of the commits exclude.
    pub fn excluded(&self) -> &[BString] {
        &self.excluded
    }

    /// Writes the bundle.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the bundle would be empty, with [`ErrorKind::Io`]
    /// if writing fails, and with other kinds if an object cannot be read.
    pub fn write(&self, out: &mut dyn Write, watch: &Watch<'_>) -> Result<PackCounts> {
        if self.header.references.is_empty() {
            let message = "Refusing to create empty bundle.";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let mut header = Vec::new();
        self.header.write(&mut header);
        out.write_all(&header).map_err(unwritable)?;
        let mut options = pack_objects::packing_options(&self.repository)?;
        options.offset_deltas = true;
        let sent = pack_objects::send(&self.repository, &self.selection, &options, out, watch)?;
        out.flush().map_err(unwritable)?;
        Ok(sent.counts)
    }
}

fn unwritable(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "unable to write the bundle").because(error)
}

fn select(
    repository: &Repository,
    options: &CreateOptions,
    limited: Option<&Limited>,
    filter: Option<&ObjectFilter>,
    watch: &Watch<'_>,
) -> Result<SelectedObjects> {
    let (wants, haves) = match limited {
        Some(limited) => (limited.wants.clone(), limited.haves(&options.revisions)),
        None => (options.revisions.ids(false), options.revisions.ids(true)),
    };
    let select = Select {
        thin: !haves.is_empty(),
        sparse: repository.config().bool_or("pack.usesparse", true)?,
        missing: MissingObjects::Fail,
        ..Select::default()
    };
    let tips = ReceiverTips {
        wants: &wants,
        haves: &haves,
    };
    match filter {
        None => pack_objects::select(repository, &wants, &haves, &select, watch),
        Some(filter) => select_filtered(repository, tips, filter, &select, watch),
    }
}

/// Returns the commits of `selection` in order. They precede the other objects.
fn commits_of(repository: &Repository, selection: &SelectedObjects) -> Result<Vec<ObjectId>> {
    let mut commits = Vec::new();
    for member in &selection.members {
        match repository.kind_of(member.id)? {
            Some(ObjectKind::Commit) => commits.push(member.id),
            Some(ObjectKind::Tag) => {}
            _ => break,
        }
    }
    Ok(commits)
}

/// Returns the commits of `boundary` as prerequisites, with their subjects.
fn described(repository: &Repository, boundary: &[ObjectId]) -> Result<Vec<Prerequisite>> {
    let mut buffer = Vec::new();
    let mut needed = Vec::with_capacity(boundary.len());
    for &id in boundary {
        repository.commit_links(&id, &mut buffer)?;
        let comment = subject(&buffer);
        needed.push(Prerequisite { id, comment });
    }
    Ok(needed)
}

/// Returns the subject of the commit with this content: the first paragraph of the message, on one
/// line.
fn subject(content: &[u8]) -> BString {
    let message = content
        .split_once_str("\n\n")
        .map_or(&b""[..], |parts| parts.1);
    let lines = message.lines().map(|line| line.trim_end());
    let lines = lines.skip_while(|line| line.is_empty());
    let paragraph: Vec<&[u8]> = lines.take_while(|line| !line.is_empty()).collect();
    BString::from(paragraph.join(&b' ')).trim().into()
}

/// A predicate that decides whether a member, with its object type, is in the bundle.
type Admits<'a> = dyn FnMut(&SetMember, Option<ObjectKind>) -> Result<bool> + 'a;

/// Returns the refs by which the admitted objects were named, without duplicates.
fn references(
    repository: &Repository,
    members: &[SetMember],
    admits: &mut Admits<'_>,
) -> Result<Vec<BundleRef>> {
    let mut references = Vec::new();
    let mut seen = HashSet::new();
    let excluded = members.iter().filter(|member| member.is_excluded);
    let excluded: HashSet<ObjectId> = excluded.map(|member| member.found.id).collect();
    for member in members {
        let id = member.found.id;
        if !seen.insert((id, &member.name)) || member.is_excluded || excluded.contains(&id) {
            continue;
        }
        if !admits(member, repository.kind_of(id)?)? {
            continue;
        }
        if let Some(found) = only_ref(repository, member).filter(|found| found.id == Some(id)) {
            let name = match repository.refs().is_symbolic(&member.name) {
                true => member.name.clone(),
                false => found.name,
            };
            references.push(BundleRef { id, name });
        }
    }
    Ok(references)
}

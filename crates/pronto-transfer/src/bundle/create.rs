//! Making bundles.

use std::collections::HashSet;
use std::io::Write;

use bstr::{BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_io::watch::Watch;
use pronto_odb::packing::Counts;

use super::{Header, Prerequisite, Reference, Version};
use crate::pack_objects::{Filter, Missing, Select, Selection, Tips, select_filtered};
use crate::refs::name;
use crate::revision::{RevisionSet, SetMember};
use crate::{Error, ErrorKind, Repository, Result};

/// Options of a new bundle.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CreateOptions {
    /// The version; the lowest possible if there is none.
    pub version: Option<Version>,
    /// The filter by which objects are left out.
    pub filter: Option<BString>,
    /// The revisions: see [`parse_revisions`](super::parse_revisions).
    pub revisions: RevisionSet,
}

/// A bundle of which the objects are known.
pub struct Created<'a> {
    repository: &'a Repository,
    header: Header,
    selection: Selection,
}

/// Selects the objects of a new bundle, and the refs that lead to them.
///
/// # Errors
/// No ref would be in it, the version cannot express it, or an object cannot be read.
pub fn create<'a>(
    repository: &'a Repository,
    options: &CreateOptions,
    watch: &Watch<'_>,
) -> Result<Created<'a>> {
    let hash = repository.object_hash();
    let filter = options.filter.as_ref();
    let filter = filter
        .map(|spec| Filter::parse(spec.as_bstr()))
        .transpose()?;
    let least = match hash == Kind::Sha1 && filter.is_none() {
        true => Version::V2,
        false => Version::V3,
    };
    let version = options.version.unwrap_or(least);
    if version < least {
        let number = version.number();
        let message = format!("cannot write bundle version {number} with algorithm {hash}");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let selection = select(repository, &options.revisions, filter.as_ref(), watch)?;
    let selected: HashSet<ObjectId> = selection.members.iter().map(|it| it.id).collect();
    let header = Header {
        version,
        hash,
        filter: filter.map(|filter| filter.to_spec()),
        prerequisites: prerequisites(repository, &selection, &selected)?,
        references: references(repository, &options.revisions.members, &selected)?,
    };
    if header.references.is_empty() {
        let message = "Refusing to create empty bundle.";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(Created {
        repository,
        header,
        selection,
    })
}

impl Created<'_> {
    /// Writes the bundle.
    ///
    /// # Errors
    /// An object cannot be read, or writing fails.
    pub fn write(&self, out: &mut dyn Write, watch: &Watch<'_>) -> Result<Counts> {
        let mut header = Vec::new();
        self.header.write(&mut header);
        out.write_all(&header).map_err(unwritable)?;
        let count = (self.selection.members.len() + self.selection.bases.len()) as u64;
        let meter = watch.progress().begin("Counting objects", Some(count));
        meter.add(count);
        meter.finish();
        let mut options = self.repository.packing_options()?;
        options.offset_deltas = true;
        let sent = self
            .repository
            .send_pack(&self.selection, &options, out, watch)?;
        out.flush().map_err(unwritable)?;
        Ok(sent.1)
    }
}

fn unwritable(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "unable to write the bundle").because(error)
}

fn select(
    repository: &Repository,
    revisions: &RevisionSet,
    filter: Option<&Filter>,
    watch: &Watch<'_>,
) -> Result<Selection> {
    let (wants, haves) = (revisions.ids(false), revisions.ids(true));
    let select = Select {
        thin: !haves.is_empty(),
        sparse: repository.config().bool_or("pack.usesparse", true)?,
        missing: Missing::Fail,
        ..Select::default()
    };
    let tips = Tips {
        wants: &wants,
        haves: &haves,
    };
    match filter {
        None => repository.select_objects(&wants, &haves, &select, watch),
        Some(filter) => select_filtered(repository, tips, filter, &select, watch),
    }
}

/// The parents of selected commits that are not selected.
fn prerequisites(
    repository: &Repository,
    selection: &Selection,
    selected: &HashSet<ObjectId>,
) -> Result<Vec<Prerequisite>> {
    let mut found = HashSet::new();
    let mut buffer = Vec::new();
    let mut boundary = Vec::new();
    // Commits precede the other objects.
    for member in &selection.members {
        match repository.kind_of(member.id)? {
            Some(ObjectKind::Commit) => {}
            Some(ObjectKind::Tag) => continue,
            _ => break,
        }
        for parent in repository.commit_links(&member.id, &mut buffer)?.parents {
            if !selected.contains(&parent) && found.insert(parent) {
                boundary.push(parent);
            }
        }
    }
    let mut needed = Vec::with_capacity(boundary.len());
    // As in Git, the commit that was found last comes first.
    for id in boundary.into_iter().rev() {
        repository.commit_links(&id, &mut buffer)?;
        let comment = subject(&buffer);
        needed.push(Prerequisite { id, comment });
    }
    Ok(needed)
}

/// The subject of the commit with this content: the first paragraph of its message, on one line.
fn subject(content: &[u8]) -> BString {
    let message = content
        .split_once_str("\n\n")
        .map_or(&b""[..], |parts| parts.1);
    let lines = message.lines().map(|line| line.trim_end());
    let lines = lines.skip_while(|line| line.is_empty());
    let paragraph: Vec<&[u8]> = lines.take_while(|line| !line.is_empty()).collect();
    BString::from(paragraph.join(&b' ')).trim().into()
}

/// The refs by which the included objects were named, each once.
fn references(
    repository: &Repository,
    members: &[SetMember],
    selected: &HashSet<ObjectId>,
) -> Result<Vec<Reference>> {
    let mut references = Vec::new();
    let mut seen = HashSet::new();
    let excluded = members.iter().filter(|member| member.is_excluded);
    let excluded: HashSet<ObjectId> = excluded.map(|member| member.found.id).collect();
    for member in members {
        let id = member.found.id;
        if !seen.insert((id, &member.name)) || member.is_excluded || excluded.contains(&id) {
            continue;
        }
        let is_commit = repository.kind_of(id)? == Some(ObjectKind::Commit);
        if is_commit && !selected.contains(&id) {
            continue;
        }
        if let Some(name) = shown_name(repository, member)? {
            references.push(Reference { id, name });
        }
    }
    Ok(references)
}

/// The name of the only ref that `member` was named by, if it has the object.
fn shown_name(repository: &Repository, member: &SetMember) -> Result<Option<BString>> {
    let refs = repository.refs();
    let mut found = Vec::new();
    for candidate in name::candidates(member.name.as_bstr()) {
        let resolved = refs.resolve(&candidate).ok().flatten();
        if let Some(resolved) = resolved.filter(|resolved| resolved.id.is_some()) {
            found.push(resolved);
        }
    }
    Ok(match &found[..] {
        [only] if only.id == Some(member.found.id) => Some(match refs.is_symbolic(&member.name) {
            true => member.name.clone(),
            false => only.name.clone(),
        }),
        _ => None,
    })
}

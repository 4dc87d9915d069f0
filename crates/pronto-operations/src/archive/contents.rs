//! The contents of the entries of an archive.

use std::io::Read;

use bstr::{BStr, ByteSlice};
use gix_object::Kind;
use pronto_io::watch::Watch;
use pronto_odb::{ObjectData, ObjectReader, Store};
use pronto_worktree::filter::{FileToSmudge, FilterAnswer, FilterPrograms, Internal, Settings};

use super::substitute::Substitution;
use super::{Entry, MemberKind, too_large, unsupported};
use crate::errors::{from_odb, from_worktree};
use crate::{Error, ErrorKind, Repository, Result};

/// The size limits for contents.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContentLimits {
    /// Files above this size are neither held in memory nor converted, as in Git, unless
    /// placeholders are replaced in them.
    pub(super) big_file_bytes: u64,
    /// The limit for contents that must be held in memory even above `big_file_bytes`.
    pub(super) most_held_bytes: u64,
}

/// The content of an entry.
pub(super) enum EntryBody<'a> {
    /// The whole content.
    Bytes(&'a [u8]),
    /// A large blob, which is streamed.
    Stream { size: u64, from: &'a mut dyn Read },
}

/// Reads and converts contents. Owns its buffers.
pub(super) struct ContentConverter<'a> {
    objects: &'a Store,
    settings: &'a Settings,
    limits: ContentLimits,
    watch: &'a Watch<'a>,
    blob: Vec<u8>,
    large: Option<ObjectReader>,
    internal: Internal,
    filtered: Vec<u8>,
    programs: Option<FilterPrograms>,
    substitution: Option<&'a Substitution<'a>>,
    substituted: Vec<u8>,
}

impl<'a> ContentConverter<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        settings: &'a Settings,
        limits: ContentLimits,
        watch: &'a Watch<'a>,
    ) -> Result<Self> {
        Ok(ContentConverter {
            objects: repository.objects()?,
            settings,
            limits,
            watch,
            blob: Vec::new(),
            large: None,
            internal: Internal::default(),
            filtered: Vec::new(),
            programs: None,
            substitution: None,
            substituted: Vec::new(),
        })
    }

    /// Sets the substitution for files with the attribute `export-subst`.
    pub(super) fn substituting(mut self, substitution: Option<&'a Substitution<'a>>) -> Self {
        self.substitution = substitution;
        self
    }

    /// Returns the content of `entry`, converted as in a checkout.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the blob is missing or corrupt, and with other kinds if
    /// the blob is too large or a required filter fails.
    pub(super) fn read(&mut self, entry: &Entry) -> Result<EntryBody<'_>> {
        let is_held = match entry.kind {
            MemberKind::Directory => return Ok(EntryBody::Bytes(b"")),
            MemberKind::Link => true,
            // Git also reads these files as a whole if the tree has no commit for the substitution.
            MemberKind::File { .. } => entry.substitutes,
        };
        let most_bytes = match is_held {
            true => self.limits.most_held_bytes,
            false => self.limits.big_file_bytes,
        };
        let found = self
            .objects
            .find_or_stream(&entry.id, most_bytes.saturating_add(1), &mut self.blob)
            .map_err(from_odb)?;
        match found {
            Some(ObjectData::Whole(Kind::Blob)) => {}
            Some(ObjectData::Large(reader)) if reader.kind() == Kind::Blob => {
                if is_held {
                    return Err(too_large(entry.path.as_bstr(), most_bytes));
                }
                let size = reader.size_bytes();
                let from = self.large.insert(reader);
                return Ok(EntryBody::Stream { size, from });
            }
            _ => {
                let message = format!("cannot read '{}'", entry.id);
                return Err(Error::new(ErrorKind::MissingObject, message));
            }
        }
        match entry.kind {
            MemberKind::File { .. } if entry.substitutes => self.substitute(entry),
            MemberKind::File { .. } => self.convert(entry),
            _ => Ok(EntryBody::Bytes(&self.blob)),
        }
    }

    fn substitute(&mut self, entry: &Entry) -> Result<EntryBody<'_>> {
        let (Some(substitution), watch) = (self.substitution, self.watch) else {
            return self.convert(entry);
        };
        if entry.conversion.needs_program(self.settings) {
            return Err(unsupported("'export-subst' for a file with a filter"));
        }
        let EntryBody::Bytes(content) = self.convert(entry)? else {
            return Err(unsupported("'export-subst' for a file of this size"));
        };
        let substituted = substitution.apply(entry.path.as_bstr(), content, watch)?;
        self.substituted = substituted;
        Ok(EntryBody::Bytes(&self.substituted))
    }

    fn convert(&mut self, entry: &Entry) -> Result<EntryBody<'_>> {
        let (path, conversion): (&BStr, _) = (entry.path.as_bstr(), &entry.conversion);
        let settings = self.settings;
        let content = self
            .internal
            .to_worktree(path, &self.blob, conversion, settings)
            .map_err(from_worktree)?;
        if !conversion.needs_program(settings) {
            return Ok(EntryBody::Bytes(content));
        }
        let file = FileToSmudge {
            path,
            id: entry.id,
            content,
            conversion,
            may_delay: false,
        };
        let programs = &mut self.programs;
        let programs = programs.get_or_insert_with(|| FilterPrograms::new(settings));
        let asked = programs.smudge(&file, settings, &mut self.filtered);
        match asked.map_err(from_worktree)? {
            FilterAnswer::Filtered => Ok(EntryBody::Bytes(&self.filtered)),
            FilterAnswer::Unfiltered | FilterAnswer::Delayed(_) => Ok(EntryBody::Bytes(content)),
        }
    }
}

//! The properties of objects by which refs are sorted.

use super::AdvertisedRef;
use crate::objects::from_odb;
use crate::{Error, ErrorKind, ObjectKind, Repository, Result};

/// The part of an object that the sort keys need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectPart {
    /// The type and size.
    Header,
    /// The type, size and dates.
    Content,
}

/// The properties of an object. Dates are seconds since 1970, and zero if the object has none.
#[derive(Default)]
pub(super) struct ObjectProperties {
    pub(super) type_name: &'static str,
    pub(super) size: u64,
    pub(super) author_date: i64,
    pub(super) committer_date: i64,
    pub(super) tagger_date: i64,
}

impl ObjectProperties {
    /// Reads the object of `listed`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if the object is missing or cannot be read.
    pub(super) fn read(
        repository: &Repository,
        listed: &AdvertisedRef,
        known: ObjectPart,
        buffer: &mut Vec<u8>,
    ) -> Result<Self> {
        let (id, name) = (listed.id, &listed.name);
        let missing = || {
            Error::new(
                ErrorKind::MissingObject,
                format!("missing object {id} for {name}"),
            )
        };
        let store = repository.objects()?;
        let header = store.header(&id).map_err(from_odb)?.ok_or_else(missing)?;
        let mut properties = ObjectProperties {
            type_name: type_name(header.kind),
            size: header.size,
            ..ObjectProperties::default()
        };
        let has_dates = matches!(header.kind, ObjectKind::Commit | ObjectKind::Tag);
        if known == ObjectPart::Header || !has_dates {
            return Ok(properties);
        }
        store
            .find(&id, buffer)
            .map_err(from_odb)?
            .ok_or_else(missing)?;
        let date = |field: &str| pronto_object::header_time(buffer, field).unwrap_or(0);
        match header.kind {
            ObjectKind::Tag => properties.tagger_date = date("tagger"),
            _ => {
                properties.author_date = date("author");
                properties.committer_date = date("committer");
            }
        }
        Ok(properties)
    }
}

fn type_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Blob => "blob",
        ObjectKind::Commit => "commit",
        ObjectKind::Tag => "tag",
        ObjectKind::Tree => "tree",
    }
}

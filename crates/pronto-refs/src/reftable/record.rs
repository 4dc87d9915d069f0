//! Records of refs and reflogs, borrowed from the table.

use bstr::BStr;
use pronto_hash::oid;

use crate::{BadName, RefNameRef};

/// The value of a reference in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefValue<'a> {
    /// The reference was deleted: records of older tables do not count.
    Deletion,
    /// The id of an object that is not an annotated tag.
    Direct(&'a oid),
    /// The id of an annotated tag.
    Peeled {
        /// The tag.
        object: &'a oid,
        /// The object to which the tag finally leads.
        target: &'a oid,
    },
    /// The name to which a symbolic reference points. It is as read and need not be valid.
    Symbolic(&'a BStr),
}

impl<'a> RefValue<'a> {
    /// Whether the reference was deleted.
    pub fn is_deletion(&self) -> bool {
        matches!(self, RefValue::Deletion)
    }

    /// The object that the reference points at itself, if it does.
    pub fn object(&self) -> Option<&'a oid> {
        match *self {
            RefValue::Direct(object) | RefValue::Peeled { object, .. } => Some(object),
            RefValue::Deletion | RefValue::Symbolic(_) => None,
        }
    }

    /// Returns the object to which the annotated tag leads, if the reference points at one.
    pub fn target(&self) -> Option<&'a oid> {
        match *self {
            RefValue::Peeled { target, .. } => Some(target),
            _ => None,
        }
    }

    /// Returns whether `id` is the object or its peeled object.
    pub fn leads_to(&self, id: &oid) -> bool {
        self.object() == Some(id) || self.target() == Some(id)
    }
}

/// The entry of a table for a reference whose name is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefEntry<'a> {
    /// The transaction that wrote it.
    pub update_index: u64,
    /// Its value.
    pub value: RefValue<'a>,
}

/// A record of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefRecord<'a> {
    /// The name, as it was read: see [`checked_name`](Self::checked_name).
    pub name: &'a BStr,
    /// The transaction that wrote it.
    pub update_index: u64,
    /// Its value.
    pub value: RefValue<'a>,
}

impl<'a> RefRecord<'a> {
    /// Returns the name, if a new reference may have it.
    ///
    /// # Errors
    /// The program that wrote the table accepted an invalid name.
    pub fn checked_name(&self) -> Result<RefNameRef<'a>, BadName> {
        RefNameRef::new(self.name)
    }
}

/// The content of a reflog entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry<'a> {
    /// The value before.
    pub old: &'a oid,
    /// The value after.
    pub new: &'a oid,
    /// The name of the person who changed the reference.
    pub name: &'a BStr,
    /// The address of that person, without `<` and `>`.
    pub email: &'a BStr,
    /// When it was changed, in seconds since 1970.
    pub time: u64,
    /// The time zone as Git writes it, read as a decimal number: `-0830` is -830. The
    /// description of the format speaks of minutes, but Git has always written this.
    pub time_zone: i16,
    /// Why it was changed. Git ends it with a newline.
    pub message: &'a BStr,
}

/// A record of a reflog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// The name of the reference, as it was read.
    pub name: &'a BStr,
    /// The transaction that changed the reference; a greater one is newer.
    pub update_index: u64,
    /// The entry; `None` hides the entry with the same name and update index in older tables.
    pub entry: Option<LogEntry<'a>>,
}

impl<'a> LogRecord<'a> {
    /// Returns the name of the reference, if a new reference may have it.
    ///
    /// # Errors
    /// The program that wrote the table accepted an invalid name.
    pub fn checked_name(&self) -> Result<RefNameRef<'a>, BadName> {
        RefNameRef::new(self.name)
    }
}

/// The length of what stands behind the name in the key of a log record.
const LOG_SUFFIX: usize = 9;

/// Makes `key` the key of a log record: newer ones of one reference sort first.
pub(crate) fn set_log_key(key: &mut Vec<u8>, name: &[u8], update_index: u64) {
    key.clear();
    key.extend_from_slice(name);
    key.push(0);
    key.extend_from_slice(&(!update_index).to_be_bytes());
}

/// The parts of the key of a log record: name and update index.
pub(crate) fn split_log_key(key: &[u8]) -> Option<(&BStr, u64)> {
    let at = key.len().checked_sub(LOG_SUFFIX).filter(|at| *at > 0)?;
    let (name, suffix) = key.split_at(at);
    let (zero, index) = suffix.split_first()?;
    let index = u64::from_be_bytes(index.try_into().ok()?);
    (*zero == 0).then_some((BStr::new(name), !index))
}

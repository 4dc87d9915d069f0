//! Records of refs and reflogs, borrowed from the table.

use bstr::BStr;
use pronto_hash::oid;

use crate::{BadName, RefNameRef};

/// The value of a ref in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefValue<'a> {
    /// The ref is deleted; this record hides the records of older tables.
    Deletion,
    /// The id of an object that is not an annotated tag.
    Direct(&'a oid),
    /// The id of an annotated tag, and its peeled object.
    Peeled {
        /// The id of the tag.
        object: &'a oid,
        /// The id of the peeled object.
        target: &'a oid,
    },
    /// The target of a symref, as read. The name may be invalid.
    Symbolic(&'a BStr),
}

impl<'a> RefValue<'a> {
    /// Returns whether the ref is deleted.
    pub fn is_deletion(&self) -> bool {
        matches!(self, RefValue::Deletion)
    }

    /// Returns the object to which the ref points directly, if there is one.
    pub fn object(&self) -> Option<&'a oid> {
        match *self {
            RefValue::Direct(object) | RefValue::Peeled { object, .. } => Some(object),
            RefValue::Deletion | RefValue::Symbolic(_) => None,
        }
    }

    /// Returns the peeled object if the ref points to an annotated tag.
    pub fn target(&self) -> Option<&'a oid> {
        match *self {
            RefValue::Peeled { target, .. } => Some(target),
            _ => None,
        }
    }

    /// Returns whether `id` is the object or the peeled object of the ref.
    pub fn leads_to(&self, id: &oid) -> bool {
        self.object() == Some(id) || self.target() == Some(id)
    }
}

/// The entry of a table for a ref, without the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefEntry<'a> {
    /// The update index of the transaction that wrote the entry.
    pub update_index: u64,
    /// The value of the ref.
    pub value: RefValue<'a>,
}

/// A ref record: name and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefRecord<'a> {
    /// The name of the ref, as read; see [`checked_name`](Self::checked_name).
    pub name: &'a BStr,
    /// The update index of the transaction that wrote the record.
    pub update_index: u64,
    /// The value of the ref.
    pub value: RefValue<'a>,
}

impl<'a> RefRecord<'a> {
    /// Returns the name if a new ref may have this name.
    ///
    /// # Errors
    /// Fails with [`BadName`] if the name is invalid.
    pub fn checked_name(&self) -> Result<RefNameRef<'a>, BadName> {
        RefNameRef::new(self.name)
    }
}

/// The content of a reflog entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry<'a> {
    /// The value of the ref before the change.
    pub old: &'a oid,
    /// The value of the ref after the change.
    pub new: &'a oid,
    /// The name of the committer.
    pub name: &'a BStr,
    /// The mail address of the committer, without `<` and `>`.
    pub email: &'a BStr,
    /// The time of the change in seconds since 1970.
    pub time: u64,
    /// The time zone as Git writes it, read as a decimal number: `-0830` is -830. The description
    /// of the format defines minutes, but Git has always written the decimal number.
    pub time_zone: i16,
    /// The message of the entry. Git ends the message with a newline.
    pub message: &'a BStr,
}

/// A record of a reflog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// The name of the ref, as read.
    pub name: &'a BStr,
    /// The update index of the transaction that changed the ref; a greater one is newer.
    pub update_index: u64,
    /// The entry; `None` for a deletion record, which hides the entry with the same name and update
    /// index in older tables.
    pub entry: Option<LogEntry<'a>>,
}

impl<'a> LogRecord<'a> {
    /// Returns the name of the ref if a new ref may have this name.
    ///
    /// # Errors
    /// Fails with [`BadName`] if the name is invalid.
    pub fn checked_name(&self) -> Result<RefNameRef<'a>, BadName> {
        RefNameRef::new(self.name)
    }
}

/// The length of the suffix after the name in the key of a log record.
const LOG_SUFFIX: usize = 9;

/// Sets `key` to the key of a log record. The newer entries of a ref sort first.
pub(crate) fn set_log_key(key: &mut Vec<u8>, name: &[u8], update_index: u64) {
    key.clear();
    key.extend_from_slice(name);
    key.push(0);
    key.extend_from_slice(&(!update_index).to_be_bytes());
}

/// Splits the key of a log record into ref name and update index.
pub(crate) fn split_log_key(key: &[u8]) -> Option<(&BStr, u64)> {
    let at = key.len().checked_sub(LOG_SUFFIX).filter(|at| *at > 0)?;
    let (name, suffix) = key.split_at(at);
    let (zero, index) = suffix.split_first()?;
    let index = u64::from_be_bytes(index.try_into().ok()?);
    (*zero == 0).then_some((BStr::new(name), !index))
}

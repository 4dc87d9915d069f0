//! Values of refs, the decisions about ref updates, and the table that records the updates.

use std::collections::BTreeMap;
use std::ops::Bound;

use bstr::{BStr, BString, ByteSlice as _};
use pronto_hash::{Kind, ObjectId};
use pronto_refs::reftable::{
    RefRecord, RefValue, StackSnapshot, TableWriteOptions, TableWriter, UpdateIndexRange,
};

use crate::{Error, ErrorKind, Result};

/// The value of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredRefValue {
    /// The id of an object.
    Direct {
        /// The id of the object.
        id: ObjectId,
        /// The peeled object of an annotated tag.
        peeled: Option<ObjectId>,
    },
    /// The target of a symbolic ref.
    Symbolic(BString),
}

impl StoredRefValue {
    /// Returns the value for an object that is not an annotated tag.
    pub fn direct(id: ObjectId) -> Self {
        StoredRefValue::Direct { id, peeled: None }
    }
}

/// The value that a ref must have before an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedRefValue {
    /// Any value, or no ref.
    Any,
    /// No ref with this name.
    Missing,
    /// The given object id.
    Id(ObjectId),
    /// A symbolic ref with the given target.
    Symbolic(BString),
}

/// A ref update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefUpdate {
    /// The name of the ref, which must be valid.
    pub name: BString,
    /// The expected old value.
    pub old: ExpectedRefValue,
    /// The new value. `None` deletes the ref.
    pub new: Option<StoredRefValue>,
}

/// The result of a ref update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefDecision {
    /// The ref has the new value.
    Applied,
    /// The ref had this value instead of the expected one.
    Stale(Option<StoredRefValue>),
    /// The name conflicts with this ref, because one name is a directory prefix of the other.
    Conflicts(BString),
    /// Another ref update of the same atomic push was refused.
    Aborted,
    /// The repository would contain this many bytes of objects, more than the push allows.
    TooManyBytes(u64),
    /// The repository would contain this many refs, more than the push allows.
    TooManyRefs(u64),
}

/// The number of refs, and the number of refs that a push creates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RefCount {
    pub(crate) now: u64,
    pub(crate) created: u64,
}

/// The refs of a generation, with updates that are not part of the generation yet.
pub(crate) struct Overlay<'a> {
    base: &'a StackSnapshot,
    changed: BTreeMap<BString, Option<StoredRefValue>>,
}

impl<'a> Overlay<'a> {
    pub(crate) fn new(base: &'a StackSnapshot) -> Self {
        Overlay {
            base,
            changed: BTreeMap::new(),
        }
    }

    /// Returns the value of a ref.
    pub(crate) fn find(&self, name: &BStr) -> Result<Option<StoredRefValue>> {
        match self.changed.get(name) {
            Some(value) => Ok(value.clone()),
            None => find(self.base, name),
        }
    }

    /// Returns the number of refs below `refs/`, and the number that `updates` adds. Each update
    /// costs a lookup.
    pub(crate) fn count(&self, updates: &[RefUpdate]) -> Result<RefCount> {
        let mut count = RefCount::default();
        let mut records = self.base.refs_with_prefix(b"refs/").map_err(broken)?;
        while let Some(record) = records.next().map_err(broken)? {
            if !self.changed.contains_key(record.name) {
                count.now += 1;
            }
        }
        let changed = self.changed.iter();
        let changed = changed.filter(|(name, value)| value.is_some() && name.starts_with(b"refs/"));
        count.now += changed.count() as u64;
        for update in updates {
            let is_new = self.find(update.name.as_bstr())?.is_none();
            count.created += u64::from(is_new && update.new.is_some());
        }
        Ok(count)
    }

    /// Returns the number of updated refs.
    pub(crate) fn len(&self) -> usize {
        self.changed.len()
    }

    /// Decides about `updates`, and adds the accepted ones. If one update is refused and
    /// `is_atomic` is set, all updates are refused.
    pub(crate) fn apply(
        &mut self,
        updates: &[RefUpdate],
        is_atomic: bool,
    ) -> Result<Vec<RefDecision>> {
        let before = self.changed.clone();
        let mut verdicts = Vec::with_capacity(updates.len());
        for update in updates {
            let verdict = self.judge(update)?;
            if verdict == RefDecision::Applied {
                self.changed.insert(update.name.clone(), update.new.clone());
            }
            verdicts.push(verdict);
        }
        let is_refused = |verdict: &RefDecision| *verdict != RefDecision::Applied;
        if is_atomic && verdicts.iter().any(is_refused) {
            self.changed = before;
            for verdict in &mut verdicts {
                if *verdict == RefDecision::Applied {
                    *verdict = RefDecision::Aborted;
                }
            }
        }
        Ok(verdicts)
    }

    fn judge(&self, update: &RefUpdate) -> Result<RefDecision> {
        let found = self.find(update.name.as_bstr())?;
        let fits = match (&update.old, &found) {
            (ExpectedRefValue::Any, _) | (ExpectedRefValue::Missing, None) => true,
            (ExpectedRefValue::Id(wanted), Some(StoredRefValue::Direct { id, .. })) => wanted == id,
            (ExpectedRefValue::Symbolic(wanted), Some(StoredRefValue::Symbolic(target))) => {
                wanted == target
            }
            _ => false,
        };
        if !fits {
            return Ok(RefDecision::Stale(found));
        }
        match found.is_none() && update.new.is_some() {
            true => Ok(self
                .conflict(&update.name)?
                .map_or(RefDecision::Applied, RefDecision::Conflicts)),
            false => Ok(RefDecision::Applied),
        }
    }

    /// Returns an existing ref whose name conflicts with the new `name`.
    fn conflict(&self, name: &BString) -> Result<Option<BString>> {
        for at in name.find_iter("/") {
            let parent = name[..at].as_bstr();
            if self.find(parent)?.is_some() {
                return Ok(Some(parent.to_owned()));
            }
        }
        let mut directory = name.clone();
        directory.push(b'/');
        let range = (Bound::Included(directory.clone()), Bound::Unbounded);
        let changed = self.changed.range(range);
        let mut changed = changed.take_while(|(below, _)| below.starts_with(&directory));
        if let Some((below, _)) = changed.find(|(_, value)| value.is_some()) {
            return Ok(Some(below.clone()));
        }
        let mut below = self.base.refs_with_prefix(&directory).map_err(broken)?;
        while let Some(record) = below.next().map_err(broken)? {
            if !self.changed.contains_key(record.name) {
                return Ok(Some(record.name.to_owned()));
            }
        }
        Ok(None)
    }

    /// Returns the updates as an encoded table.
    pub(crate) fn table(&self, kind: Kind, update_index: u64) -> Result<Vec<u8>> {
        let limits = UpdateIndexRange {
            min: update_index,
            max: update_index,
        };
        let mut options = TableWriteOptions::default();
        // Most tables have a few records, for which a whole block would waste space.
        options.is_padded = false;
        let writer = TableWriter::new(Vec::new(), kind, limits, options);
        let mut writer = writer.map_err(refused)?;
        for (name, value) in &self.changed {
            let value = match value {
                None => RefValue::Deletion,
                Some(StoredRefValue::Symbolic(target)) => RefValue::Symbolic(target.as_bstr()),
                Some(StoredRefValue::Direct { id, peeled: None }) => RefValue::Direct(id),
                Some(StoredRefValue::Direct {
                    id,
                    peeled: Some(target),
                }) => RefValue::Peeled { object: id, target },
            };
            let record = RefRecord {
                name: name.as_bstr(),
                update_index,
                value,
            };
            writer.add_ref(&record).map_err(refused)?;
        }
        Ok(writer.finish().map_err(refused)?.sink)
    }
}

/// Returns the value of a ref.
///
/// # Errors
/// Fails with [`ErrorKind::Corrupt`] if a table is malformed.
pub(crate) fn find(refs: &StackSnapshot, name: &BStr) -> Result<Option<StoredRefValue>> {
    let found = refs.find(name).map_err(broken)?;
    Ok(found.and_then(|entry| value_of(&entry.value)))
}

/// Returns all refs and `HEAD`, sorted by name.
///
/// # Errors
/// Fails with [`ErrorKind::Corrupt`] if a table is malformed.
pub(crate) fn all(refs: &StackSnapshot) -> Result<Vec<(BString, StoredRefValue)>> {
    let mut all = Vec::new();
    let mut records = refs.refs().map_err(broken)?;
    while let Some(record) = records.next().map_err(broken)? {
        all.extend(value_of(&record.value).map(|value| (record.name.to_owned(), value)));
    }
    Ok(all)
}

fn value_of(value: &RefValue<'_>) -> Option<StoredRefValue> {
    match *value {
        RefValue::Deletion => None,
        RefValue::Direct(id) => Some(StoredRefValue::direct(id.to_owned())),
        RefValue::Peeled { object, target } => Some(StoredRefValue::Direct {
            id: object.to_owned(),
            peeled: Some(target.to_owned()),
        }),
        RefValue::Symbolic(target) => Some(StoredRefValue::Symbolic(target.to_owned())),
    }
}

/// Converts an error of reading a table.
pub(crate) fn broken(error: pronto_refs::reftable::Error) -> Error {
    error.map_kind(|_| ErrorKind::Corrupt)
}

fn refused(error: pronto_refs::reftable::Error) -> Error {
    error.map_kind(|_| ErrorKind::Options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[byte; 20])
    }

    fn set(name: &str, old: ExpectedRefValue, new: u8) -> RefUpdate {
        RefUpdate {
            name: name.into(),
            old,
            new: Some(StoredRefValue::direct(id(new))),
        }
    }

    #[test]
    fn old_values_and_directories_decide() {
        let base = StackSnapshot::default();
        let mut overlay = Overlay::new(&base);
        let mut apply =
            |update: RefUpdate| overlay.apply(&[update], false).expect("sound").remove(0);
        assert_eq!(
            apply(set("refs/heads/a", ExpectedRefValue::Missing, 1)),
            RefDecision::Applied
        );
        assert_eq!(
            apply(set("refs/heads/a", ExpectedRefValue::Missing, 2)),
            RefDecision::Stale(Some(StoredRefValue::direct(id(1))))
        );
        assert_eq!(
            apply(set("refs/heads/a", ExpectedRefValue::Id(id(1)), 2)),
            RefDecision::Applied
        );
        assert_eq!(
            apply(set("refs/heads/a/b", ExpectedRefValue::Missing, 2)),
            RefDecision::Conflicts("refs/heads/a".into())
        );
        assert_eq!(
            apply(set("refs/heads/c/d", ExpectedRefValue::Any, 2)),
            RefDecision::Applied
        );
        assert_eq!(
            apply(set("refs/heads/c", ExpectedRefValue::Any, 2)),
            RefDecision::Conflicts("refs/heads/c/d".into())
        );
        let deletion = RefUpdate {
            name: "refs/heads/c/d".into(),
            old: ExpectedRefValue::Id(id(2)),
            new: None,
        };
        assert_eq!(apply(deletion), RefDecision::Applied);
        assert_eq!(
            apply(set("refs/heads/c", ExpectedRefValue::Any, 2)),
            RefDecision::Applied
        );
    }

    #[test]
    fn an_atomic_push_changes_all_or_nothing() {
        let base = StackSnapshot::default();
        let mut overlay = Overlay::new(&base);
        let updates = [
            set("refs/heads/a", ExpectedRefValue::Missing, 1),
            set("refs/heads/b", ExpectedRefValue::Id(id(9)), 1),
        ];
        let verdicts = overlay.apply(&updates, true).expect("sound");
        assert_eq!(verdicts, [RefDecision::Aborted, RefDecision::Stale(None)]);
        assert_eq!(overlay.len(), 0);
        let verdicts = overlay.apply(&updates, false).expect("sound");
        assert_eq!(verdicts, [RefDecision::Applied, RefDecision::Stale(None)]);
        assert_eq!(overlay.len(), 1);
    }
}

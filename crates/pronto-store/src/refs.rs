//! Values of refs, the decisions about ref updates, and the table that records the updates.

use std::collections::BTreeMap;
use std::ops::Bound;

use bstr::{BStr, BString, ByteSlice as _};
use pronto_hash::{Kind, ObjectId};
use pronto_refs::reftable::{Limits, RefRecord, RefValue, Snapshot, TableWriter, WriteOptions};

use crate::{Error, ErrorKind, Result};

/// The value of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
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

impl Value {
    /// Returns the value for an object that is not an annotated tag.
    pub fn direct(id: ObjectId) -> Self {
        Value::Direct { id, peeled: None }
    }
}

/// The value that a ref must have before an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
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
    pub old: Expected,
    /// The new value. `None` deletes the ref.
    pub new: Option<Value>,
}

/// The result of a ref update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The ref has the new value.
    Applied,
    /// The ref had this value instead of the expected one.
    Stale(Option<Value>),
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
    base: &'a Snapshot,
    changed: BTreeMap<BString, Option<Value>>,
}

impl<'a> Overlay<'a> {
    pub(crate) fn new(base: &'a Snapshot) -> Self {
        Overlay {
            base,
            changed: BTreeMap::new(),
        }
    }

    /// Returns the value of a ref.
    pub(crate) fn find(&self, name: &BStr) -> Result<Option<Value>> {
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
    pub(crate) fn apply(&mut self, updates: &[RefUpdate], is_atomic: bool) -> Result<Vec<Verdict>> {
        let before = self.changed.clone();
        let mut verdicts = Vec::with_capacity(updates.len());
        for update in updates {
            let verdict = self.judge(update)?;
            if verdict == Verdict::Applied {
                self.changed.insert(update.name.clone(), update.new.clone());
            }
            verdicts.push(verdict);
        }
        let is_refused = |verdict: &Verdict| *verdict != Verdict::Applied;
        if is_atomic && verdicts.iter().any(is_refused) {
            self.changed = before;
            for verdict in &mut verdicts {
                if *verdict == Verdict::Applied {
                    *verdict = Verdict::Aborted;
                }
            }
        }
        Ok(verdicts)
    }

    fn judge(&self, update: &RefUpdate) -> Result<Verdict> {
        let found = self.find(update.name.as_bstr())?;
        let fits = match (&update.old, &found) {
            (Expected::Any, _) | (Expected::Missing, None) => true,
            (Expected::Id(wanted), Some(Value::Direct { id, .. })) => wanted == id,
            (Expected::Symbolic(wanted), Some(Value::Symbolic(target))) => wanted == target,
            _ => false,
        };
        if !fits {
            return Ok(Verdict::Stale(found));
        }
        match found.is_none() && update.new.is_some() {
            true => Ok(self
                .conflict(&update.name)?
                .map_or(Verdict::Applied, Verdict::Conflicts)),
            false => Ok(Verdict::Applied),
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
        let limits = Limits {
            min: update_index,
            max: update_index,
        };
        let mut options = WriteOptions::default();
        // Most tables have a few records, for which a whole block would waste space.
        options.is_padded = false;
        let writer = TableWriter::new(Vec::new(), kind, limits, options);
        let mut writer = writer.map_err(refused)?;
        for (name, value) in &self.changed {
            let value = match value {
                None => RefValue::Deletion,
                Some(Value::Symbolic(target)) => RefValue::Symbolic(target.as_bstr()),
                Some(Value::Direct { id, peeled: None }) => RefValue::Direct(id),
                Some(Value::Direct {
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
pub(crate) fn find(refs: &Snapshot, name: &BStr) -> Result<Option<Value>> {
    let found = refs.find(name).map_err(broken)?;
    Ok(found.and_then(|entry| value_of(&entry.value)))
}

/// Returns all refs and `HEAD`, sorted by name.
///
/// # Errors
/// Fails with [`ErrorKind::Corrupt`] if a table is malformed.
pub(crate) fn all(refs: &Snapshot) -> Result<Vec<(BString, Value)>> {
    let mut all = Vec::new();
    let mut records = refs.refs().map_err(broken)?;
    while let Some(record) = records.next().map_err(broken)? {
        all.extend(value_of(&record.value).map(|value| (record.name.to_owned(), value)));
    }
    Ok(all)
}

fn value_of(value: &RefValue<'_>) -> Option<Value> {
    match *value {
        RefValue::Deletion => None,
        RefValue::Direct(id) => Some(Value::direct(id.to_owned())),
        RefValue::Peeled { object, target } => Some(Value::Direct {
            id: object.to_owned(),
            peeled: Some(target.to_owned()),
        }),
        RefValue::Symbolic(target) => Some(Value::Symbolic(target.to_owned())),
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

    fn set(name: &str, old: Expected, new: u8) -> RefUpdate {
        RefUpdate {
            name: name.into(),
            old,
            new: Some(Value::direct(id(new))),
        }
    }

    #[test]
    fn old_values_and_directories_decide() {
        let base = Snapshot::default();
        let mut overlay = Overlay::new(&base);
        let mut apply =
            |update: RefUpdate| overlay.apply(&[update], false).expect("sound").remove(0);
        assert_eq!(
            apply(set("refs/heads/a", Expected::Missing, 1)),
            Verdict::Applied
        );
        assert_eq!(
            apply(set("refs/heads/a", Expected::Missing, 2)),
            Verdict::Stale(Some(Value::direct(id(1))))
        );
        assert_eq!(
            apply(set("refs/heads/a", Expected::Id(id(1)), 2)),
            Verdict::Applied
        );
        assert_eq!(
            apply(set("refs/heads/a/b", Expected::Missing, 2)),
            Verdict::Conflicts("refs/heads/a".into())
        );
        assert_eq!(
            apply(set("refs/heads/c/d", Expected::Any, 2)),
            Verdict::Applied
        );
        assert_eq!(
            apply(set("refs/heads/c", Expected::Any, 2)),
            Verdict::Conflicts("refs/heads/c/d".into())
        );
        let deletion = RefUpdate {
            name: "refs/heads/c/d".into(),
            old: Expected::Id(id(2)),
            new: None,
        };
        assert_eq!(apply(deletion), Verdict::Applied);
        assert_eq!(
            apply(set("refs/heads/c", Expected::Any, 2)),
            Verdict::Applied
        );
    }

    #[test]
    fn an_atomic_push_changes_all_or_nothing() {
        let base = Snapshot::default();
        let mut overlay = Overlay::new(&base);
        let updates = [
            set("refs/heads/a", Expected::Missing, 1),
            set("refs/heads/b", Expected::Id(id(9)), 1),
        ];
        let verdicts = overlay.apply(&updates, true).expect("sound");
        assert_eq!(verdicts, [Verdict::Aborted, Verdict::Stale(None)]);
        assert_eq!(overlay.len(), 0);
        let verdicts = overlay.apply(&updates, false).expect("sound");
        assert_eq!(verdicts, [Verdict::Applied, Verdict::Stale(None)]);
        assert_eq!(overlay.len(), 1);
    }
}

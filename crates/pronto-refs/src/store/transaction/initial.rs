//! Writes the initial refs of a new repository to `packed-refs`.

use std::collections::BTreeMap;

use bstr::{BStr, ByteSlice};
use pronto_hash::ObjectId;

use super::super::RefHost;
use super::super::packed_file::{self, PackedLock};
use super::super::{RefTarget, name};
use super::{Edit, RefChangeKind, Transaction, prepare};
use pronto_config::{Error, ErrorKind, Result};

pub(super) fn commit(repository: &dyn RefHost, edits: &[Edit]) -> Result<()> {
    if repository.refs().tables().is_some() {
        let mut all = Transaction::new(repository);
        for edit in edits {
            all.push(edit.clone());
        }
        return all.commit();
    }
    let names = prepare::check_names(edits)?;
    let mut last: Option<&BStr> = None;
    for name in &names {
        if let Some(directory) = last
            && name
                .strip_prefix(directory.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"/"))
        {
            let message = format!("cannot process '{name}' and '{directory}' at the same time");
            return Err(Error::new(ErrorKind::Reference, message));
        }
        last = Some(name.as_bstr());
    }
    let mut records: BTreeMap<&BStr, (ObjectId, Option<ObjectId>)> = BTreeMap::new();
    let mut others = Transaction::new(repository);
    for edit in edits {
        match &edit.change {
            RefChangeKind::Set(RefTarget::Object(id))
                if !name::is_pseudo_syntax(edit.name.as_bstr()) =>
            {
                let peeled = match edit.peeled {
                    Some(peeled) => Some(peeled),
                    None => repository.peel_tag(*id)?,
                };
                records.insert(edit.name.as_bstr(), (*id, peeled));
            }
            _ => {
                others.push(edit.clone());
            }
        }
    }
    let mut lock = PackedLock::acquire(repository)?;
    let existing = repository.refs().packed()?;
    for found in existing
        .iter()
        .flat_map(|packed| packed.iter_from("".into()))
    {
        records
            .entry(found.name)
            .or_insert((found.id, found.peeled));
    }
    let records = records
        .iter()
        .map(|(name, (id, peeled))| (*name, *id, *peeled));
    let text = packed_file::whole(records);
    if let Some(existing) = &existing {
        existing.intact()?;
    }
    lock.write(repository, &text)?;
    lock.rename_into_place()?;
    drop(lock);
    others.commit()
}

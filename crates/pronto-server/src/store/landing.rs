//! The end of a push to a store: the pack is uploaded, and the ref updates are committed.

use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice as _};
use pronto::receive_pack::{self, CheckedPush, PushDestination, RefVerdict};
use pronto::refs::{self, Edit, RefTarget};
use pronto_store::{
    Error, ErrorKind, ExpectedRefValue, FileKind, GenerationBounds, GenerationView, NewPack,
    PackPush, RefUpdate, Result, StoreChange, StoredRefValue, StoredRepository, UploadFile,
};

use super::{StoredRepositories, tally};

/// The destination of a push to a store.
pub(super) struct StoreLanding {
    repositories: Arc<StoredRepositories>,
    stored: Arc<StoredRepository>,
    /// The view on which the push was checked.
    view: Arc<GenerationView>,
}

impl StoreLanding {
    pub(super) fn new(
        repositories: Arc<StoredRepositories>,
        stored: Arc<StoredRepository>,
        view: Arc<GenerationView>,
    ) -> Self {
        StoreLanding {
            repositories,
            stored,
            view,
        }
    }

    fn try_land(&self, checked: &CheckedPush<'_>) -> Result<Vec<RefVerdict>> {
        let store = &self.repositories.store;
        let mut push = PackPush {
            base: Some(self.view.number()),
            is_atomic: checked.is_atomic,
            bounds: GenerationBounds {
                bytes: checked.bounds.bytes.as_ref().map(|bound| bound.most),
                refs: checked.bounds.refs.as_ref().map(|bound| bound.most),
            },
            ..PackPush::default()
        };
        for edit in checked.edits {
            push.updates.push(update(checked.repository, edit)?);
        }
        if let Some(pack) = checked.pack {
            let pack = new_pack(pack)?;
            let uploaded = store.wait(self.stored.upload(&pack))?;
            if let Some(cache) = &self.repositories.cache {
                cache.keep(&self.view, &uploaded, &pack);
            }
            push.packs.push(uploaded);
        }
        let expected: Vec<ExpectedRefValue> =
            push.updates.iter().map(|it| it.old.clone()).collect();
        let outcome = store.wait(self.stored.commit(StoreChange::Push(push)))?;
        tally::saw_generation(outcome.generation);
        if let Some(upkeep) = self.repositories.upkeep.get() {
            upkeep.note_change(&self.stored);
        }
        let verdicts = outcome.verdicts.into_iter().zip(checked.edits);
        let verdicts = verdicts.zip(expected).map(|((verdict, edit), expected)| {
            if let Some(reason) = excess(&verdict, checked.bounds) {
                return RefVerdict::Refused {
                    reason,
                    detail: None,
                };
            }
            let name = edit.name.as_bstr();
            convert(verdict, name, &expected, checked.is_atomic)
        });
        Ok(verdicts.collect())
    }
}

impl PushDestination for StoreLanding {
    fn land(&self, checked: &CheckedPush<'_>) -> Vec<RefVerdict> {
        self.try_land(checked).unwrap_or_else(|error| {
            let (reason, detail) = explanation(&error);
            tally::failed(format!("{reason}: {error}"));
            let refused = RefVerdict::Refused {
                reason: reason.to_owned(),
                detail: None,
            };
            let mut verdicts = vec![refused; checked.edits.len()];
            if let Some(first) = verdicts.first_mut() {
                *first = RefVerdict::Refused {
                    reason: reason.to_owned(),
                    detail: Some(detail.to_owned()),
                };
            }
            verdicts
        })
    }
}

impl fmt::Debug for StoreLanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreLanding")
            .field(&self.stored.name())
            .finish()
    }
}

/// Returns the reason for the push report about an error, and a longer description.
fn explanation(error: &Error) -> (&'static str, &'static str) {
    match error.kind() {
        ErrorKind::Unknown => (
            "result unknown, fetch to check",
            "the store did not confirm the push: fetch to check whether it was recorded",
        ),
        ErrorKind::Unavailable => (
            "store does not respond",
            "the store does not respond, and nothing was changed: push again later",
        ),
        ErrorKind::Expired => (
            "push again",
            "the push took too long, or objects that it needs were deleted meanwhile: push again",
        ),
        ErrorKind::NotFound => (
            "repository was removed",
            "the repository was removed during the push",
        ),
        ErrorKind::Restored => (
            "store was reset to an older state",
            "the store was reset to an older state: contact the operator of the server",
        ),
        _ => (
            "store failed",
            "the store failed, and nothing was changed: contact the operator of the server",
        ),
    }
}

/// Returns the update of the ref that an edit changes, which is the target of a symbolic ref.
fn update(repository: &pronto::Repository, edit: &Edit) -> Result<RefUpdate> {
    let unreadable = |error: pronto::Error| error.map_kind(|_| ErrorKind::Repository);
    let name: BString = match repository.refs().resolve(&edit.name) {
        Ok(Some(found)) if found.is_symbolic => found.name,
        _ => edit.name.clone(),
    };
    let new = match &edit.change {
        refs::RefChangeKind::Set(RefTarget::Object(id)) => {
            let peeled = repository.peel_tag(*id).map_err(unreadable)?;
            let peeled = peeled.filter(|peeled| peeled != id);
            Some(StoredRefValue::Direct { id: *id, peeled })
        }
        refs::RefChangeKind::Set(RefTarget::Symbolic(target)) => {
            Some(StoredRefValue::Symbolic(target.as_bstr().to_owned()))
        }
        refs::RefChangeKind::Delete => None,
        refs::RefChangeKind::Verify => {
            let message = format!("the ref '{name}' does not change");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    };
    let old = match &edit.expected {
        refs::ExpectedValue::Missing => ExpectedRefValue::Missing,
        refs::ExpectedValue::Object(id) => ExpectedRefValue::Id(*id),
        refs::ExpectedValue::Symbolic(target) => ExpectedRefValue::Symbolic(target.clone()),
        refs::ExpectedValue::Anything | refs::ExpectedValue::Existing => ExpectedRefValue::Any,
    };
    Ok(RefUpdate { name, old, new })
}

/// Reads the pack at `path`, and its accompanying files.
fn new_pack(path: &Path) -> Result<NewPack> {
    let broken = || Error::new(ErrorKind::Repository, "the received pack is malformed");
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let id = stem.and_then(|stem| stem.strip_prefix("pack-"));
    let id = id.and_then(|id| pronto::hash::parse_hex(id.as_bytes()).ok());
    let mut header = [0; 12];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.map_err(|error| broken().because(error).at_path(path))?;
    let [.., a, b, c, d] = header;
    let mut files = Vec::new();
    for kind in [FileKind::Pack, FileKind::Index, FileKind::Reverse] {
        let file = path.with_extension(kind.extension());
        if kind != FileKind::Reverse || file.exists() {
            files.push(UploadFile::from_path(kind, &file)?);
        }
    }
    Ok(NewPack {
        id: id.ok_or_else(broken)?,
        objects: u32::from_be_bytes([a, b, c, d]),
        is_promisor: false,
        files,
    })
}

/// Returns the reason for a push that exceeds a bound.
fn excess(
    verdict: &pronto_store::RefDecision,
    bounds: &receive_pack::PushBounds,
) -> Option<String> {
    match (verdict, &bounds.bytes, &bounds.refs) {
        (pronto_store::RefDecision::TooManyBytes(bytes), Some(bound), _) => {
            let (most, origin) = (bound.most, &bound.origin);
            Some(format!(
                "the push is too large: the repository has {bytes} of {most} bytes: {origin}"
            ))
        }
        (pronto_store::RefDecision::TooManyRefs(refs), _, Some(bound)) => {
            let (most, origin) = (bound.most, &bound.origin);
            Some(format!(
                "the repository has {refs} of {most} refs: {origin}"
            ))
        }
        _ => None,
    }
}

/// Converts a verdict, with the reasons that Git uses.
fn convert(
    verdict: pronto_store::RefDecision,
    name: &BStr,
    expected: &ExpectedRefValue,
    is_atomic: bool,
) -> RefVerdict {
    let (reason, detail) = match verdict {
        pronto_store::RefDecision::Applied => return RefVerdict::Changed,
        pronto_store::RefDecision::Stale(found) => stale(found.as_ref(), name, expected),
        pronto_store::RefDecision::Conflicts(other) => (
            "refname conflict",
            Some(format!("'{other}' exists; cannot create '{name}'")),
        ),
        pronto_store::RefDecision::Aborted => ("atomic transaction failed", None),
        pronto_store::RefDecision::TooManyBytes(_) | pronto_store::RefDecision::TooManyRefs(_) => {
            ("quota exceeded", None)
        }
    };
    RefVerdict::Refused {
        reason: match is_atomic {
            true => "atomic transaction failed".to_owned(),
            false => reason.to_owned(),
        },
        detail: detail.map(|detail| format!("cannot lock ref '{name}': {detail}")),
    }
}

fn stale(
    found: Option<&StoredRefValue>,
    name: &BStr,
    expected: &ExpectedRefValue,
) -> (&'static str, Option<String>) {
    let value = |value: &StoredRefValue| match value {
        StoredRefValue::Direct { id, .. } => id.to_string(),
        StoredRefValue::Symbolic(target) => target.to_string(),
    };
    match (found, expected) {
        (None, _) => (
            "reference does not exist",
            Some(format!("unable to resolve reference '{name}'")),
        ),
        (Some(_), ExpectedRefValue::Missing) => (
            "reference already exists",
            Some("reference already exists".to_owned()),
        ),
        (Some(found), expected) => {
            let wanted = match expected {
                ExpectedRefValue::Id(id) => id.to_string(),
                ExpectedRefValue::Symbolic(target) => target.to_string(),
                ExpectedRefValue::Any | ExpectedRefValue::Missing => "nothing".to_owned(),
            };
            let detail = format!("is at {} but expected {wanted}", value(found));
            ("incorrect old value provided", Some(detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_outcome_is_not_called_a_failure() {
        let explained = |kind| explanation(&Error::new(kind, "x"));
        let (reason, detail) = explained(ErrorKind::Unknown);
        assert!(!reason.contains("fail") && !detail.contains("fail"));
        assert!(reason.contains("unknown") && detail.contains("fetch"));
        for kind in [ErrorKind::Unavailable, ErrorKind::Corrupt] {
            assert!(explained(kind).1.contains("nothing was changed"));
        }
    }

    #[test]
    fn refusals_have_the_reasons_of_git() {
        let id = |byte: u8| pronto::ObjectId::from_bytes_or_panic(&[byte; 20]);
        let name = BStr::new("refs/heads/a");
        let reason = |verdict, expected: ExpectedRefValue, is_atomic| match convert(
            verdict, name, &expected, is_atomic,
        ) {
            RefVerdict::Changed => "changed".to_owned(),
            RefVerdict::Refused { reason, .. } => reason,
        };
        let stale = |found: Option<u8>| {
            pronto_store::RefDecision::Stale(found.map(|byte| StoredRefValue::direct(id(byte))))
        };
        let wanted = || ExpectedRefValue::Id(id(1));
        assert_eq!(
            reason(stale(Some(2)), wanted(), false),
            "incorrect old value provided"
        );
        assert_eq!(
            reason(stale(None), wanted(), false),
            "reference does not exist"
        );
        assert_eq!(
            reason(stale(Some(2)), ExpectedRefValue::Missing, false),
            "reference already exists"
        );
        assert_eq!(
            reason(stale(None), wanted(), true),
            "atomic transaction failed"
        );
        assert_eq!(
            reason(pronto_store::RefDecision::Applied, wanted(), true),
            "changed"
        );
    }
}

//! The end of a push to a store: the pack is uploaded, and the ref updates are committed.

use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice as _};
use pronto::receive_pack::{self, CheckedPush, Landing, Verdict};
use pronto::refs::{self, Edit, Target};
use pronto_store::{
    Bounds, Change, Error, ErrorKind, Expected, FileKind, NewFile, NewPack, Push, RefUpdate,
    Result, Stored, Value, View,
};

use super::{StoredRepositories, tally};

/// The destination of a push to a store.
pub(super) struct StoreLanding {
    repositories: Arc<StoredRepositories>,
    stored: Arc<Stored>,
    /// The view on which the push was checked.
    view: Arc<View>,
}

impl StoreLanding {
    pub(super) fn new(
        repositories: Arc<StoredRepositories>,
        stored: Arc<Stored>,
        view: Arc<View>,
    ) -> Self {
        StoreLanding {
            repositories,
            stored,
            view,
        }
    }

    fn try_land(&self, checked: &CheckedPush<'_>) -> Result<Vec<Verdict>> {
        let store = &self.repositories.store;
        let mut push = Push {
            base: Some(self.view.number()),
            is_atomic: checked.is_atomic,
            bounds: Bounds {
                bytes: checked.bounds.bytes.as_ref().map(|bound| bound.most),
                refs: checked.bounds.refs.as_ref().map(|bound| bound.most),
            },
            ..Push::default()
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
        let expected: Vec<Expected> = push.updates.iter().map(|it| it.old.clone()).collect();
        let outcome = store.wait(self.stored.commit(Change::Push(push)))?;
        tally::saw_generation(outcome.generation);
        if let Some(upkeep) = self.repositories.upkeep.get() {
            upkeep.note_change(&self.stored);
        }
        let verdicts = outcome.verdicts.into_iter().zip(checked.edits);
        let verdicts = verdicts.zip(expected).map(|((verdict, edit), expected)| {
            if let Some(reason) = excess(&verdict, checked.bounds) {
                return Verdict::Refused {
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

impl Landing for StoreLanding {
    fn land(&self, checked: &CheckedPush<'_>) -> Vec<Verdict> {
        self.try_land(checked).unwrap_or_else(|error| {
            let (reason, detail) = explanation(&error);
            tally::failed(format!("{reason}: {error}"));
            let refused = Verdict::Refused {
                reason: reason.to_owned(),
                detail: None,
            };
            let mut verdicts = vec![refused; checked.edits.len()];
            if let Some(first) = verdicts.first_mut() {
                *first = Verdict::Refused {
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
            "outcome unknown, fetch to see it",
            "the store did not tell whether the push was recorded: fetch to see whether it was",
        ),
        ErrorKind::Unavailable => (
            "store does not answer",
            "the store does not answer, and nothing was changed: push again later",
        ),
        ErrorKind::Expired => (
            "must be pushed again",
            "objects were deleted meanwhile or the push took too long: push again",
        ),
        ErrorKind::NotFound => (
            "repository was removed",
            "the repository was removed while the push was under way",
        ),
        ErrorKind::Restored => (
            "store is older than before",
            "the store has an older state than before: tell the operator of the server",
        ),
        _ => (
            "store failed",
            "the store failed, and nothing was changed: tell the operator of the server",
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
        refs::Change::Set(Target::Object(id)) => {
            let peeled = repository.peel_tag(*id).map_err(unreadable)?;
            let peeled = peeled.filter(|peeled| peeled != id);
            Some(Value::Direct { id: *id, peeled })
        }
        refs::Change::Set(Target::Symbolic(target)) => {
            Some(Value::Symbolic(target.as_bstr().to_owned()))
        }
        refs::Change::Delete => None,
        refs::Change::Verify => {
            let message = format!("the ref '{name}' does not change");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    };
    let old = match &edit.expected {
        refs::Expected::Missing => Expected::Missing,
        refs::Expected::Object(id) => Expected::Id(*id),
        refs::Expected::Symbolic(target) => Expected::Symbolic(target.clone()),
        refs::Expected::Anything | refs::Expected::Existing => Expected::Any,
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
            files.push(NewFile::from_path(kind, &file)?);
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
fn excess(verdict: &pronto_store::Verdict, bounds: &receive_pack::Bounds) -> Option<String> {
    match (verdict, &bounds.bytes, &bounds.refs) {
        (pronto_store::Verdict::TooManyBytes(bytes), Some(bound), _) => {
            let (most, origin) = (bound.most, &bound.origin);
            Some(format!(
                "the push is too large: the repository has {bytes} of {most} bytes: {origin}"
            ))
        }
        (pronto_store::Verdict::TooManyRefs(refs), _, Some(bound)) => {
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
    verdict: pronto_store::Verdict,
    name: &BStr,
    expected: &Expected,
    is_atomic: bool,
) -> Verdict {
    let (reason, detail) = match verdict {
        pronto_store::Verdict::Applied => return Verdict::Changed,
        pronto_store::Verdict::Stale(found) => stale(found.as_ref(), name, expected),
        pronto_store::Verdict::Conflicts(other) => (
            "refname conflict",
            Some(format!("'{other}' exists; cannot create '{name}'")),
        ),
        pronto_store::Verdict::Aborted => ("atomic transaction failed", None),
        pronto_store::Verdict::TooManyBytes(_) | pronto_store::Verdict::TooManyRefs(_) => {
            ("quota exceeded", None)
        }
    };
    Verdict::Refused {
        reason: match is_atomic {
            true => "atomic transaction failed".to_owned(),
            false => reason.to_owned(),
        },
        detail: detail.map(|detail| format!("cannot lock ref '{name}': {detail}")),
    }
}

fn stale(
    found: Option<&Value>,
    name: &BStr,
    expected: &Expected,
) -> (&'static str, Option<String>) {
    let value = |value: &Value| match value {
        Value::Direct { id, .. } => id.to_string(),
        Value::Symbolic(target) => target.to_string(),
    };
    match (found, expected) {
        (None, _) => (
            "reference does not exist",
            Some(format!("unable to resolve reference '{name}'")),
        ),
        (Some(_), Expected::Missing) => (
            "reference already exists",
            Some("reference already exists".to_owned()),
        ),
        (Some(found), expected) => {
            let wanted = match expected {
                Expected::Id(id) => id.to_string(),
                Expected::Symbolic(target) => target.to_string(),
                Expected::Any | Expected::Missing => "nothing".to_owned(),
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
        let told = |kind| explanation(&Error::new(kind, "x"));
        let (reason, detail) = told(ErrorKind::Unknown);
        assert!(!reason.contains("fail") && !detail.contains("fail"));
        assert!(reason.contains("unknown") && detail.contains("fetch"));
        for kind in [ErrorKind::Unavailable, ErrorKind::Corrupt] {
            assert!(told(kind).1.contains("nothing was changed"));
        }
    }

    #[test]
    fn refusals_have_the_reasons_of_git() {
        let id = |byte: u8| pronto::ObjectId::from_bytes_or_panic(&[byte; 20]);
        let name = BStr::new("refs/heads/a");
        let reason = |verdict, expected: Expected, is_atomic| match convert(
            verdict, name, &expected, is_atomic,
        ) {
            Verdict::Changed => "changed".to_owned(),
            Verdict::Refused { reason, .. } => reason,
        };
        let stale = |found: Option<u8>| {
            pronto_store::Verdict::Stale(found.map(|byte| Value::direct(id(byte))))
        };
        let wanted = || Expected::Id(id(1));
        assert_eq!(
            reason(stale(Some(2)), wanted(), false),
            "incorrect old value provided"
        );
        assert_eq!(
            reason(stale(None), wanted(), false),
            "reference does not exist"
        );
        assert_eq!(
            reason(stale(Some(2)), Expected::Missing, false),
            "reference already exists"
        );
        assert_eq!(
            reason(stale(None), wanted(), true),
            "atomic transaction failed"
        );
        assert_eq!(
            reason(pronto_store::Verdict::Applied, wanted(), true),
            "changed"
        );
    }
}

//! Runs the hook `reference-transaction`.

use bstr::{BStr, ByteVec};

use super::super::RefHost;
use super::super::RefTarget;
use super::{Edit, ExpectedValue, RefChangeKind};
use pronto_config::{Error, ErrorKind, Result};

/// A line of the standard input of the hook, for one ref.
#[derive(Debug)]
pub(in super::super) struct HookLine<'a> {
    /// The expected old value: an object id, or `ref:` and a ref name. `None` if any value is
    /// accepted.
    pub(in super::super) old: Option<String>,
    /// The new value in the same form as the old one; `None` if the ref is deleted.
    pub(in super::super) new: Option<String>,
    /// The full name of the ref.
    pub(in super::super) name: &'a BStr,
}

/// Runs the hook with `state` and one line for each ref. Returns the exit code of the hook.
pub(in super::super) fn run<'a>(
    repository: &dyn RefHost,
    state: &str,
    lines: impl IntoIterator<Item = HookLine<'a>>,
) -> Result<Option<i32>> {
    let null = repository.refs().object_hash().null().to_string();
    let mut input = Vec::new();
    for line in lines {
        for value in [line.old, line.new] {
            input.push_str(value.unwrap_or_else(|| null.clone()));
            input.push(b' ');
        }
        input.push_str(line.name);
        input.push(b'\n');
    }
    repository.run_hook(state, input)
}

/// Returns the error for a hook that refused in the state `state`.
pub(in super::super) fn refused(state: &str) -> Error {
    let message = format!("in '{state}' phase, update aborted by the reference-transaction hook");
    Error::new(ErrorKind::Hook, message)
}

/// Returns the line of the hook's standard input for `edit`.
pub(super) fn line_of(edit: &Edit) -> HookLine<'_> {
    let symbolic = |target: &BStr| format!("ref:{target}");
    let old = match &edit.expected {
        ExpectedValue::Object(id) => Some(id.to_string()),
        ExpectedValue::Symbolic(target) => Some(symbolic(target.as_ref())),
        ExpectedValue::Anything | ExpectedValue::Missing | ExpectedValue::Existing => None,
    };
    let new = match &edit.change {
        RefChangeKind::Set(RefTarget::Object(id)) => Some(id.to_string()),
        RefChangeKind::Set(RefTarget::Symbolic(target)) => Some(symbolic(target)),
        RefChangeKind::Delete | RefChangeKind::Verify => None,
    };
    HookLine {
        old,
        new,
        name: edit.name.as_ref(),
    }
}

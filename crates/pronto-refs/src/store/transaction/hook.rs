//! Runs the hook `reference-transaction`.

use bstr::{BStr, ByteVec};

use super::super::Host;
use super::super::Target;
use super::{Change, Edit, Expected};
use pronto_config::{Error, ErrorKind, Result};

/// A line of the standard input of the hook, for one ref.
#[derive(Debug)]
pub(in super::super) struct Line<'a> {
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
    repository: &dyn Host,
    state: &str,
    lines: impl IntoIterator<Item = Line<'a>>,
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
pub(super) fn line_of(edit: &Edit) -> Line<'_> {
    let symbolic = |target: &BStr| format!("ref:{target}");
    let old = match &edit.expected {
        Expected::Object(id) => Some(id.to_string()),
        Expected::Symbolic(target) => Some(symbolic(target.as_ref())),
        Expected::Anything | Expected::Missing | Expected::Existing => None,
    };
    let new = match &edit.change {
        Change::Set(Target::Object(id)) => Some(id.to_string()),
        Change::Set(Target::Symbolic(target)) => Some(symbolic(target)),
        Change::Delete | Change::Verify => None,
    };
    Line {
        old,
        new,
        name: edit.name.as_ref(),
    }
}

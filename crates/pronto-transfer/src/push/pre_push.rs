//! The hook `pre-push`.

use bstr::{BStr, ByteSlice};

use super::{PushRemote, PushStatus, PushedRef};
use crate::{Repository, Result, hooks};

/// Runs the hook `pre-push`. Returns whether the hook accepted the push.
pub(super) fn run_pre_push(
    repository: &Repository,
    destination: &PushRemote,
    url: &BStr,
    refs: &[PushedRef],
) -> Result<bool> {
    let mut input = Vec::new();
    for pushed in refs {
        let Some(peer) = &pushed.peer else { continue };
        let is_pointless = matches!(
            pushed.status,
            PushStatus::RejectNonFastForward
                | PushStatus::RejectStale
                | PushStatus::RejectRemoteUpdated
                | PushStatus::UpToDate
        );
        if is_pointless {
            continue;
        }
        input.extend_from_slice(&peer.name);
        input.extend_from_slice(format!(" {} ", pushed.new).as_bytes());
        input.extend_from_slice(&pushed.name);
        input.extend_from_slice(format!(" {}\n", pushed.old).as_bytes());
    }
    let name = crate::path::borrow(destination.name.as_bstr());
    let call = hooks::HookCall {
        arguments: vec![name.as_os_str(), crate::path::borrow(url).as_os_str()],
        input,
        // If several hooks may run at once, Git collects the output of each hook, even of a single
        // one, and prints it on standard error.
        keeps_output: hooks::jobs(repository, "pre-push")? <= 1,
        needs_no_worktree: true,
        ..hooks::HookCall::default()
    };
    let code = hooks::run(repository, "pre-push", &call)?;
    Ok(code.is_none_or(|code| code == 0))
}

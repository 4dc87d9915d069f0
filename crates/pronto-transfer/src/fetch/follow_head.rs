//! Updates `refs/remotes/NAME/HEAD` to the `HEAD` of the remote (`remote.NAME.followRemoteHEAD`).

use bstr::{BStr, ByteSlice};
use pronto_wire::advertisement::RemoteRef;

use super::FetchRun;
use crate::refs::{Edit, ExpectedValue, RefChangeKind, RefName, RefTarget};
use crate::remote::FollowHead;
use crate::{Result, hooks};

/// Creates or updates the symref according to `remote.NAME.followRemoteHEAD`. Applies to a fetch
/// without refspecs.
///
/// # Errors
/// Fails with [`Hook`](crate::ErrorKind::Hook) if a hook refuses the change, and with other kinds if a ref
/// cannot be read or written.
pub(super) fn follow(work: &FetchRun<'_>, refs: &[RemoteRef]) -> Result<()> {
    let remote = work.remote;
    let is_wanted = !remote.fetch.is_empty()
        && remote.follow_head != FollowHead::Never
        && !work.options.dry_run;
    let Some(branch) = branch(refs).filter(|_| is_wanted) else {
        return Ok(());
    };
    let repository = work.repository;
    let is_mirror = remote.is_mirror && repository.is_bare();
    let (head, target) = match is_mirror {
        true => ("HEAD".to_owned(), format!("refs/heads/{branch}")),
        false => {
            let prefix = format!("refs/remotes/{}", remote.name);
            (format!("{prefix}/HEAD"), format!("{prefix}/{branch}"))
        }
    };
    let refs = repository.refs();
    let is_there = remote.follow_head == FollowHead::Create && refs.find(&head)?.is_some();
    let has_hook = hooks::has_programs(repository, "reference-transaction");
    if is_there && !has_hook {
        return Ok(());
    }
    if !is_mirror && refs.find(&target)?.is_none() {
        return Ok(());
    }
    let Ok(target) = RefName::new(target) else {
        return Ok(());
    };
    let mut transaction = repository.transaction();
    if is_there {
        // As in Git, the hook is notified of the attempt to create an existing ref.
        transaction.push(Edit {
            name: head.into(),
            change: RefChangeKind::Set(RefTarget::Symbolic(target)),
            expected: ExpectedValue::Missing,
            message: Some("fetch".into()),
            follow: false,
            create_log: false,
            peeled: None,
            log_from: None,
        });
        return match transaction.commit() {
            Err(error) if error.kind().ends_command() => Err(error),
            _ => Ok(()),
        };
    }
    transaction.set_symbolic(head, target, Some("fetch".into()));
    transaction.commit()
}

/// Returns the branch to which `HEAD` of the remote points, guessed if the remote does not report
/// it. `None` if several branches are possible.
fn branch(refs: &[RemoteRef]) -> Option<&BStr> {
    let head = refs.iter().find(|found| found.name == "HEAD")?;
    let mut branches = refs
        .iter()
        .filter(|found| match &head.symref_target {
            Some(target) => target.as_bstr() == found.name,
            None => found.id.is_some() && found.id == head.id,
        })
        .filter_map(|found| found.name.strip_prefix(b"refs/heads/"));
    let first = branches.next()?;
    branches.next().is_none().then_some(first.as_bstr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pronto_hash::{Kind, ObjectId};

    fn refs(target: Option<&str>, names: &[&str]) -> Vec<RemoteRef> {
        let one = |name: &&str| RemoteRef {
            name: (*name).into(),
            id: Some(ObjectId::null(Kind::Sha1)),
            peeled: None,
            symref_target: target
                .filter(|_| *name == "HEAD")
                .map(|name| RefName::new(name).expect("a name")),
        };
        names.iter().map(one).collect()
    }

    #[test]
    fn the_branch_is_told_or_the_only_one() {
        let names = ["HEAD", "refs/heads/a", "refs/heads/b", "refs/tags/c"];
        let reported = refs(Some("refs/heads/b"), &names);
        assert_eq!(branch(&reported), Some("b".into()));
        assert_eq!(branch(&refs(None, &names)), None);
        assert_eq!(branch(&refs(None, &names[..2])), Some("a".into()));
        assert_eq!(branch(&refs(None, &names[1..])), None);
        assert_eq!(branch(&refs(Some("refs/heads/x"), &names)), None);
    }
}

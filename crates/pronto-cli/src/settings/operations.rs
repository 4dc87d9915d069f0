//! The operations of the library that each command calls.

use pronto::support::Operation;

/// Returns the operations that `command` may call. Support for these operations is checked when the
/// repository is opened, because a command that has begun to print, or has finished the first of
/// several operations, can no longer be handed over to git.
pub fn operations_of(command: &str) -> &'static [Operation] {
    use Operation::*;
    match command {
        "" | "bugreport" | "help" | "version" => &[],
        "add" => &[Add],
        "archive" => &[Archive],
        "bundle" => &[CreateBundle],
        "cat-file" | "check-attr" | "diff-files" | "diff-index" | "diff-tree" | "hash-object"
        | "ls-files" => &[ReadAttributes],
        "check-ignore" => &[CheckIgnore],
        "checkout" => &[Switch, CheckoutFiles],
        "checkout-index" | "restore" => &[CheckoutFiles],
        "clone" => &[Clone],
        "commit" => &[Commit],
        "commit-graph" | "gc" => &[WriteCommitGraph],
        "fetch" => &[Fetch],
        "fetch-pack" => &[FetchPack],
        "init" => &[Init],
        "ls-remote" => &[ListRemote],
        "ls-tree" => &[ListTree],
        "pack-objects" => &[PackObjects],
        "pack-refs" | "reflog" | "refs" => &[WriteRefs],
        "push" | "send-pack" => &[Push],
        "read-tree" => &[ReadTree],
        "receive-pack" => &[ReceivePack],
        "remote" => &[ManageRemotes],
        "repack" => &[Repack],
        "reset" => &[Reset],
        "serve" => &[ServePeer],
        "sparse-checkout" => &[SparseCheckout],
        "status" => &[Status],
        "switch" => &[Switch],
        "symbolic-ref" => &[WriteSymbolicRefs],
        "sync" => &[Sync],
        "update-index" => &[UpdateIndex],
        "upload-archive" => &[UploadArchive],
        "upload-pack" => &[UploadPack],
        "worktree" => &[Worktrees],
        "write-tree" => &[WriteTree],
        _ => &[Read],
    }
}

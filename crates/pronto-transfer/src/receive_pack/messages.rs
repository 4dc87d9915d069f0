//! Git's explanations of the settings that refuse a push.

/// The explanation for a push to a checked out branch, if `receive.denyCurrentBranch` is not set.
pub(super) const CURRENT_BRANCH: &str = "\
By default, updating the current branch in a non-bare repository
is denied, because it will make the index and work tree inconsistent
with what you pushed, and will require 'git reset --hard' to match
the work tree to HEAD.

You can set the 'receive.denyCurrentBranch' configuration variable
to 'ignore' or 'warn' in the remote repository to allow pushing into
its current branch; however, this is not recommended unless you
arranged to update its work tree to match what you pushed in some
other way.

To squelch this message and still keep the default behaviour, set
'receive.denyCurrentBranch' configuration variable to 'refuse'.";

/// The explanation for the deletion of the current branch, if `receive.denyDeleteCurrent` is not
/// set.
pub(super) const DELETE_CURRENT: &str = "\
By default, deleting the current branch is denied, because the next
'git clone' won't result in any file checked out, causing confusion.

You can set 'receive.denyDeleteCurrent' configuration variable to
'warn' or 'ignore' in the remote repository to allow deleting the
current branch, with or without a warning message.

To squelch this message, you can set it to 'refuse'.";

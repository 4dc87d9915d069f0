# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_pronto_global_optspecs
    string join \n C= c= config-env= exec-path= p/paginate P/no-pager bare git-dir= work-tree= namespace= attr-source= no-replace-objects no-lazy-fetch no-optional-locks no-advice literal-pathspecs no-literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs trace-chrome= list-native v/version h/help
end

function __fish_pronto_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_pronto_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_pronto_using_subcommand
    set -l cmd (__fish_pronto_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c pronto -n "__fish_pronto_needs_command" -s C -d 'Run as if started in this directory' -r
complete -c pronto -n "__fish_pronto_needs_command" -s c -d 'Set a configuration variable' -r
complete -c pronto -n "__fish_pronto_needs_command" -l config-env -d 'Set a configuration variable to the value of an environment variable' -r
complete -c pronto -n "__fish_pronto_needs_command" -l exec-path -d 'The directory of git\'s programs' -r
complete -c pronto -n "__fish_pronto_needs_command" -l git-dir -d 'Use the repository at this path' -r
complete -c pronto -n "__fish_pronto_needs_command" -l work-tree -d 'Use the worktree at this path' -r
complete -c pronto -n "__fish_pronto_needs_command" -l namespace -d 'Use this namespace of refs' -r
complete -c pronto -n "__fish_pronto_needs_command" -l attr-source -d 'Read attributes from this tree' -r
complete -c pronto -n "__fish_pronto_needs_command" -l trace-chrome -d 'Write a trace for Chrome and Perfetto' -r
complete -c pronto -n "__fish_pronto_needs_command" -s p -l paginate -d 'Pass the output through a pager'
complete -c pronto -n "__fish_pronto_needs_command" -s P -l no-pager -d 'Do not use a pager'
complete -c pronto -n "__fish_pronto_needs_command" -l bare -d 'Treat the repository as bare'
complete -c pronto -n "__fish_pronto_needs_command" -l no-replace-objects -d 'Do not follow replacement refs'
complete -c pronto -n "__fish_pronto_needs_command" -l no-lazy-fetch -d 'Do not fetch missing objects on demand'
complete -c pronto -n "__fish_pronto_needs_command" -l no-optional-locks -d 'Do not take optional locks'
complete -c pronto -n "__fish_pronto_needs_command" -l no-advice -d 'Do not print advice'
complete -c pronto -n "__fish_pronto_needs_command" -l literal-pathspecs -d 'Treat pathspecs literally'
complete -c pronto -n "__fish_pronto_needs_command" -l no-literal-pathspecs -d 'Do not treat pathspecs literally'
complete -c pronto -n "__fish_pronto_needs_command" -l glob-pathspecs -d 'Treat all pathspecs as globs'
complete -c pronto -n "__fish_pronto_needs_command" -l noglob-pathspecs -d 'Treat no pathspec as a glob'
complete -c pronto -n "__fish_pronto_needs_command" -l icase-pathspecs -d 'Match pathspecs without regard to case'
complete -c pronto -n "__fish_pronto_needs_command" -l list-native -d 'List the native commands'
complete -c pronto -n "__fish_pronto_needs_command" -s v -l version -d 'Show the version'
complete -c pronto -n "__fish_pronto_needs_command" -s h -l help -d 'Show the commands, or the manual of one'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "add" -d 'stage the content of files'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "archive" -d 'write the files of a tree as tar or zip'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "bundle" -d 'exchange refs and objects by a file'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "cat-file" -d 'show the content, type or size of objects'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "check-attr" -d 'show the attributes of paths'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "check-ignore" -d 'show which paths are ignored, and why'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "checkout" -d 'switch branches or restore files'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "checkout-index" -d 'copy files from the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "clean" -d 'remove untracked files'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "clone" -d 'copy a repository into a new directory'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "commit" -d 'record staged changes'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "commit-graph" -d 'write and verify the commit-graph'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "config" -d 'read and change configuration'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "diff-files" -d 'compare files with the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "diff-index" -d 'compare a tree with files or the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "diff-tree" -d 'compare trees, and commits with their parents'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "fetch" -d 'get new objects and refs from other repositories'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "fetch-pack" -d 'get objects from one repository'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "for-each-repo" -d 'run a command in each configured repository'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "fsmonitor--daemon" -d 'watch the worktree for changes'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "gc" -d 'repack objects and remove unneeded ones'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "hash-object" -d 'compute the id of an object, and store it'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "help" -d 'show the commands, or the manual of one'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "index-pack" -d 'index a pack'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "init" -d 'create a repository, or update one'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "ls-files" -d 'list files of the index and the worktree'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "ls-remote" -d 'list the refs of another repository'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "ls-tree" -d 'list the entries of a tree'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "maintenance" -d 'keep a repository fast, now and on a schedule'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "merge-file" -d 'merge two versions of a file'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "multi-pack-index" -d 'write and verify one index for many packs'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "netsync" -d 'manage the key of the user, and trusted peers'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "pack-objects" -d 'make packs of objects'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "pack-refs" -d 'store refs in one file'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "prune" -d 'delete unreachable loose objects'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "prune-packed" -d 'delete loose objects that are packed, too'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "pull" -d 'receive from a peer and merge'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "push" -d 'send refs and objects to other repositories'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "read-tree" -d 'read trees into the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "receive-pack" -d 'serve a push on the standard streams'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "reflog" -d 'maintain reflogs'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "refs" -d 'move refs to another storage, and pack them'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "remote" -d 'manage remotes'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "repack" -d 'replace many packs and loose objects by few packs'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "reset" -d 'set the branch, the index and files to another commit'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "restore" -d 'restore files from the index or a commit'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "rev-list" -d 'list commits, and the objects that they lead to'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "rev-parse" -d 'resolve names to ids, and show properties of the repository'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "send-pack" -d 'push to one repository'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "serve" -d 'serve repositories to clients of Git, or to peers'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "shell" -d 'serve one request of a client that sshd has authenticated'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "show-index" -d 'show the index of a pack'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "show-ref" -d 'list refs and their values'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "sparse-checkout" -d 'check out a part of the tracked files'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "status" -d 'show changes in the worktree and the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "store" -d 'keep repositories in an object store'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "switch" -d 'switch branches'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "symbolic-ref" -d 'read and change symbolic refs'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "sync" -d 'synchronise with a peer in both directions'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "unpack-objects" -d 'unpack a pack into loose objects'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "update-index" -d 'change entries of the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "upload-archive" -d 'serve an archive'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "upload-pack" -d 'serve a fetch'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "verify-pack" -d 'verify packs and their indexes'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "version" -d 'show the version of pronto'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "worktree" -d 'manage the worktrees of a repository'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "write-tree" -d 'write the index as a tree'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l chmod -d 'Mark the files as executable in the index (+x), or not (-x)' -r
complete -c pronto -n "__fish_pronto_using_subcommand add" -l pathspec-from-file -d 'Read paths from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand add" -s n -l dry-run -d 'Show what would be done without doing it'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s v -l verbose -d 'Show the files that are added and removed'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s i -l interactive -d 'Choose interactively (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s p -l patch -d 'Choose hunks interactively (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s e -l edit -d 'Edit the difference and apply it (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s f -l force -d 'Add ignored files too'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s u -l update -d 'Update tracked files'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l renormalize -d 'Convert the line endings of tracked files again (implies -u)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s N -l intent-to-add -d 'Record only the intent to add the files later'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s A -l all -d 'Stage changes of all tracked and untracked files'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l ignore-removal -d 'Do not stage removals (same as --no-all)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l refresh -d 'Refresh stat data in the index without adding content'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l ignore-errors -d 'Continue after files that cannot be added'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l ignore-missing -d 'Report whether missing files would be ignored (with --dry-run)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l sparse -d 'Also update entries outside of the sparse checkout'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l no-warn-embedded-repo -d 'Do not warn about embedded repositories'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l pathspec-file-nul -d 'Paths in that file are separated by NUL'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l batch -d 'Print type, size and content of each object named on standard input' -r
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l batch-check -d 'Print type and size of each object named on standard input' -r
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l batch-command -d 'Execute commands from standard input: contents, info, flush' -r
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s e -d 'Exit with 0 if the object exists, and with 1 if not'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s p -d 'Print the object in a readable form for its type'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s t -d 'Print the type of the object'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s s -d 'Print the size of the object'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l allow-unknown-type -d 'Accepted for old scripts'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l batch-all-objects -d 'Process all objects of the repository instead of those on standard input'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l buffer -d 'Write when a buffer is full instead of after each object'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l unordered -d 'Process all objects in storage order'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s z -d 'Lines of standard input end with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s Z -d 'Lines of standard input and output end with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand check-attr" -s a -l all -d 'Show all attributes that are specified'
complete -c pronto -n "__fish_pronto_using_subcommand check-attr" -l cached -d 'Use only attributes files in the index'
complete -c pronto -n "__fish_pronto_using_subcommand check-attr" -l stdin -d 'Read paths from standard input'
complete -c pronto -n "__fish_pronto_using_subcommand check-attr" -s z -d 'Separate paths with NUL in input and output'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -s q -l quiet -d 'Print nothing'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -s v -l verbose -d 'Show the deciding pattern and its file'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -l stdin -d 'Read paths from standard input'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -s z -d 'Separate paths with NUL in input and output'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -s n -l non-matching -d 'Also show paths that match no pattern'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -l no-index -d 'Do not consult the index: examine tracked paths, too'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s t -l track -d 'Set the upstream of the new branch' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l orphan -d 'Create a branch without history' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l recurse-submodules -d 'Update submodules, too (handed to git)' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s b -d 'Create this branch and switch to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s B -d 'Create or reset this branch and switch to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l conflict -d 'The style of recreated conflicts: merge, diff3, zdiff3' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l pathspec-from-file -d 'Read paths from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l progress -d 'Show progress even if standard error is not a terminal'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s f -l force -d 'Discard local changes, and files that are in the way'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s d -l detach -d 'Detach HEAD at the commit'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l overwrite-ignore -d 'Overwrite ignored files (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l ignore-other-worktrees -d 'Check out a branch even if another worktree has it'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l guess -d 'Create a local branch for a remote branch of the same name (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s l -d 'Create a reflog for the new branch'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s 2 -l ours -d 'For files in conflict, check out the version of HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s 3 -l theirs -d 'For files in conflict, check out the other version'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s p -l patch -d 'Choose changes interactively (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s m -l merge -d 'Recreate conflicts; merge local changes into the new branch'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l overlay -d 'Keep tracked files that the commit does not have (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l ignore-skip-worktree-bits -d 'Include files outside of the sparse checkout'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l pathspec-file-nul -d 'Paths in that file are separated by NUL'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -l prefix -d 'Prepend this to file names' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -l stage -d 'For conflicts, use this stage (1, 2, 3 or all)' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s a -l all -d 'Copy all files of the index'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -l ignore-skip-worktree-bits -d 'Include files outside of the sparse checkout'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s f -l force -d 'Overwrite existing files'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s q -l quiet -d 'Do not report files that exist or are not in the index'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s n -l no-create -d 'Do not create new files'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s u -l index -d 'Record the stat data of written files in the index'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s z -d 'Separate paths with NUL in input and output'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -l stdin -d 'Read paths from standard input'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -l temp -d 'Write to temporary files and print their names'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s e -l exclude -d 'Ignore files that match this pattern, too' -r
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s n -l dry-run -d 'Show what would be removed without removing it'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s f -l force -d 'Remove files; twice: embedded repositories, too'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s i -l interactive -d 'Choose interactively (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s d -d 'Remove untracked directories too'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s x -d 'Remove ignored files too'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s X -d 'Remove only ignored files'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l recurse-submodules -d 'Clone submodules, too' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s j -l jobs -d 'Number of submodules to clone at once' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l template -d 'The directory of templates for new repositories' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l reference -d 'A local repository whose objects may be used' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l reference-if-able -d 'Like --reference, but without an error if it is missing' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s o -l origin -d 'The name of the remote' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s b -l branch -d 'Check out this branch instead of the remote\'s HEAD' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l revision -d 'Fetch only this revision, and detach HEAD there' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s u -l upload-pack -d 'The program that serves on the remote side' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l depth -d 'Fetch only this many commits of each branch' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l shallow-since -d 'Fetch only commits newer than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l shallow-exclude -d 'Exclude commits reachable from this ref' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l separate-git-dir -d 'Directory for the repository, separate from its worktree' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l ref-format -d 'The storage of refs: files or reftable' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s c -l config -d 'A configuration variable for the new repository' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l server-option -d 'A value for the hooks of the remote side' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l filter -d 'Omit these objects until they are needed' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l bundle-uri -d 'A bundle, or a list of bundles, to start from' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s v -l verbose -d 'Be more verbose'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l progress -d 'Show progress even if standard error is not a terminal'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l reject-shallow -d 'Refuse a shallow source'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l sparse -d 'Check out only the files at the top'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s n -l no-checkout -d 'Do not check out files'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l bare -d 'Create a bare repository'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l mirror -d 'Copy all refs unchanged, and mirror them in later fetches'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s l -l local -d 'Link or copy the object files of a local repository'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l no-hardlinks -d 'Copy object files of a local repository instead of linking them'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s s -l shared -d 'Use the objects of a local repository without copying them'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l single-branch -d 'Fetch only one branch'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l no-tags -d 'Fetch no tags'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l shallow-submodules -d 'Clone submodules with a depth of 1'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s 4 -l ipv4 -d 'Use only IPv4 addresses'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s 6 -l ipv6 -d 'Use only IPv6 addresses'
complete -c pronto -n "__fish_pronto_using_subcommand commit" -s m -l message -d 'The commit message; each further one is a paragraph' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit" -s F -l file -d 'Read the commit message from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit" -l cleanup -d 'Cleanup of the message: verbatim, whitespace, strip or default' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit" -s q -l quiet -d 'Print no summary (required: a commit with a summary is made by git)'
complete -c pronto -n "__fish_pronto_using_subcommand commit" -s n -l no-verify -d 'Skip the hooks pre-commit and commit-msg'
complete -c pronto -n "__fish_pronto_using_subcommand commit" -l allow-empty -d 'Allow a commit without changes'
complete -c pronto -n "__fish_pronto_using_subcommand commit" -l allow-empty-message -d 'Allow an empty message'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l object-dir -d 'The object directory: the repository\'s own or one of its alternates' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l max-new-filters -d 'Compute at most this many new filters' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l split -d 'Write a layer on top of others: `no-merge` keeps them, `replace` replaces them' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l max-commits -d 'Merge layers until the new one has at most this many commits' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l size-multiple -d 'Merge layers that are at most this many times as large as the new one' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l expire-time -d 'Keep files that are younger than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l reachable -d 'Write the commits reachable from refs'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l stdin-packs -d 'Write the commits of packs whose indexes are named on standard input'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l stdin-commits -d 'Write the commits whose ids are on standard input'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l append -d 'Also keep the commits of the present graph'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l changed-paths -d 'Write Bloom filters of changed paths'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l shallow -d 'Verify only the topmost layer'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l progress -d 'Show progress'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l abbrev -d 'Show ids with this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l diff-filter -d 'Show only these kinds of changes, by letters' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s M -l find-renames -d 'Detect renames' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s C -l find-copies -d 'Detect renames, and copies of changed files' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s l -d 'Compare at most this many files for renames' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l relative -d 'Show only paths below this directory (the current one), relative to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l ignore-submodules -d 'Ignore these changes of submodules' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s 0 -d 'For conflicts, report only that they exist'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s 1 -l base -d 'For conflicts, compare with the common ancestor'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s 2 -l ours -d 'For conflicts, compare with our side (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s 3 -l theirs -d 'For conflicts, compare with their side'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l raw -d 'Show modes, ids and paths (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l name-only -d 'Show only paths'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l name-status -d 'Show only paths and the kind of change'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s s -l no-patch -d 'Print nothing'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l quiet -d 'Print nothing, and report differences by the exit code'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l exit-code -d 'Exit with 1 if there are differences'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s z -d 'Terminate paths with NUL and do not quote them'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l full-index -d 'Accepted without effect'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s R -d 'Show the reverse difference'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l no-renames -d 'Do not detect renames'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l abbrev -d 'Show ids with this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l diff-filter -d 'Show only these kinds of changes, by letters' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s M -l find-renames -d 'Detect renames' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s C -l find-copies -d 'Detect renames, and copies of changed files' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s l -d 'Compare at most this many files for renames' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l relative -d 'Show only paths below this directory (the current one), relative to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l ignore-submodules -d 'Ignore these changes of submodules' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l cached -d 'Compare only with the index'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s m -d 'Treat missing files as unchanged'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l merge-base -d 'Compare with the common ancestor of the commit and HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l raw -d 'Show modes, ids and paths (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l name-only -d 'Show only paths'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l name-status -d 'Show only paths and the kind of change'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s s -l no-patch -d 'Print nothing'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l quiet -d 'Print nothing, and report differences by the exit code'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l exit-code -d 'Exit with 1 if there are differences'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s z -d 'Terminate paths with NUL and do not quote them'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l full-index -d 'Accepted without effect'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s R -d 'Show the reverse difference'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l no-renames -d 'Do not detect renames'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l abbrev -d 'Show ids with this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l diff-filter -d 'Show only these kinds of changes, by letters' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s M -l find-renames -d 'Detect renames' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s C -l find-copies -d 'Detect renames, and copies of changed files' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s l -d 'Compare at most this many files for renames' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l relative -d 'Show only paths below this directory (the current one), relative to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l ignore-submodules -d 'Ignore these changes of submodules' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s r -d 'Recurse into directories'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s t -d 'Also show the directories when recursing'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l root -d 'For a commit without parents, show its whole tree'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l stdin -d 'Read commits, or pairs of trees, from standard input'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s m -d 'Compare merges with each parent'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l no-commit-id -d 'Do not print the id of a commit before its changes'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l raw -d 'Show modes, ids and paths (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l name-only -d 'Show only paths'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l name-status -d 'Show only paths and the kind of change'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s s -l no-patch -d 'Print nothing'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l quiet -d 'Print nothing, and report differences by the exit code'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l exit-code -d 'Exit with 1 if there are differences'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s z -d 'Terminate paths with NUL and do not quote them'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l full-index -d 'Accepted without effect'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s R -d 'Show the reverse difference'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l no-renames -d 'Do not detect renames'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s j -l jobs -d 'Number of remotes to fetch from at once' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l upload-pack -d 'The program that serves on the remote side' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l depth -d 'Fetch only this many commits of each branch' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l deepen -d 'Deepen the shallow history by this many commits' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l shallow-since -d 'Fetch only commits newer than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l shallow-exclude -d 'Exclude commits reachable from this ref' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l refmap -d 'Map refs of the command line with this refspec instead of the configured ones' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s o -l server-option -d 'A value for the hooks of the remote side' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l filter -d 'Omit these objects until they are needed' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l negotiation-restrict -d 'Offer only the history of this revision, or of refs that match, in a negotiation' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l negotiation-tip -d 'The same as --negotiation-restrict' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l negotiation-include -d 'Always offer this commit, or those of refs that match, in a negotiation' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l recurse-submodules -d 'Whether to fetch in submodules, too' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l recurse-submodules-default -d 'When to fetch in submodules about which nothing is said' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l submodule-prefix -d 'The path of this submodule in messages' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s v -l verbose -d 'Be more verbose'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l progress -d 'Show progress even if standard error is not a terminal'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l all -d 'Fetch from all remotes'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s m -l multiple -d 'Fetch from several remotes'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s a -l append -d 'Append to FETCH_HEAD instead of overwriting it'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l atomic -d 'Update all refs or none'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s f -l force -d 'Allow updates of refs that are not fast-forwards'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s t -l tags -d 'Fetch all tags'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s n -d 'Fetch no tags'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s p -l prune -d 'Remove tracking refs that no longer exist on the remote side'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s P -l prune-tags -d 'Remove local tags that no longer exist on the remote side'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l dry-run -d 'Show what would be done without doing it'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l porcelain -d 'Print the result in a form for scripts'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l no-write-fetch-head -d 'Do not write FETCH_HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s k -l keep -d 'Keep the received pack'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s u -l update-head-ok -d 'Allow fetching into the current branch'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l unshallow -d 'Fetch the complete history of a shallow repository'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l update-shallow -d 'Accept updates of the list of shallow commits'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l refetch -d 'Fetch everything again, without negotiation'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l negotiate-only -d 'Print the commits that both sides have instead of fetching'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l prefetch -d 'Store refs below refs/prefetch/ instead of the configured names'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l set-upstream -d 'Let the current branch follow the fetched one'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l write-commit-graph -d 'Write a commit-graph afterwards'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l no-auto-maintenance -d 'Run no maintenance afterwards'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l no-auto-gc -d 'Run no maintenance afterwards'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l show-forced-updates -d 'Whether to report which updates are no fast-forwards'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l stdin -d 'Read more refspecs from standard input, one a line'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s 4 -l ipv4 -d 'Use only IPv4 addresses'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s 6 -l ipv6 -d 'Use only IPv6 addresses'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l upload-pack -d 'The program on the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l exec -d 'The program on the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l depth -d 'Fetch only this many commits of each ref' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l shallow-since -d 'Fetch only commits newer than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l shallow-exclude -d 'Exclude commits reachable from this ref' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l filter -d 'Omit these objects' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l all -d 'Fetch all refs'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l stdin -d 'Read more refs from standard input, one a line'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -s k -l keep -d 'Keep the received pack'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l thin -d 'Receive deltas against objects that are here'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l include-tag -d 'Receive tags that point at what is fetched, too'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l deepen-relative -d 'Count the depth from the present shallow commits'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l refetch -d 'Fetch everything again, without negotiation'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l no-filter -d 'Omit nothing'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l from-promisor -d 'Mark the pack as one of a repository that promises what is missing'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l lock-pack -d 'Print the name of the file that keeps the pack'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l cloning -d 'Accept the shallow commits of the other side, as a clone does'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l update-shallow -d 'Accept shallow commits of the other side that requested objects need'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l check-self-contained-and-connected -d 'Report whether a kept pack links to nothing outside of it'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l diag-url -d 'Print the parts of the address, and fetch nothing'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -s v -d 'Print the decisions, too'
complete -c pronto -n "__fish_pronto_using_subcommand fetch-pack" -l no-progress -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand fsmonitor--daemon" -l ipc-threads -d 'Accepted for compatibility: each client has a thread' -r
complete -c pronto -n "__fish_pronto_using_subcommand fsmonitor--daemon" -l start-timeout -d 'Seconds to wait for the start' -r
complete -c pronto -n "__fish_pronto_using_subcommand fsmonitor--daemon" -l detach -d 'Detach from the console'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l prune -d 'Remove unreachable objects older than this; never with --no-prune' -r
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l max-cruft-size -d 'Do not combine such packs from this size on' -r
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l expire-to -d 'The directory for a pack of removed objects' -r
complete -c pronto -n "__fish_pronto_using_subcommand gc" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l cruft -d 'Put unreachable objects into a pack of their own'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l aggressive -d 'Recompute all deltas, and take more time for it'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l auto -d 'Do nothing unless much has accumulated'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l detach -d 'Continue in the background'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l force -d 'Run even if another process collects garbage'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l keep-largest-pack -d 'Keep the largest pack as it is'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l skip-foreground-tasks -d 'Skip refs and reflogs'
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -s t -d 'The type of the object' -r
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -l path -d 'Convert as if the content were that of this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -s w -d 'Store the object'
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -l stdin -d 'Read the object from standard input'
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -l stdin-paths -d 'Read file names from standard input'
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -l no-filters -d 'Do not convert the content'
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -l literally -d 'Accept any type and content (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand help" -s a -l all -d 'List all commands, including those that are handed to git'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l strict -d 'Refuse malformed objects, and links to missing objects' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l fsck-objects -d 'Refuse malformed objects' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l keep -d 'Create a .keep file with this reason' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l promisor -d 'Create a .promisor file with this text' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l threads -d 'Number of threads' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l max-input-size -d 'Refuse packs larger than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l index-version -d 'The index version, and the smallest offset stored in 64 bits' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l object-format -d 'The hash function: sha1 or sha256' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -s o -d 'The file for the index' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l progress-title -d 'The title of the progress meter' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l pack_header -d 'The pack header, if the caller has already read it' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l stdin -d 'Read the pack from standard input and store it'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l fix-thin -d 'Add missing bases of a thin pack from the repository'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l rev-index -d 'Also write a reverse index'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l verify -d 'Verify the index instead of writing it'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l verify-stat -d 'Verify the index, and list the objects of the pack'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l verify-stat-only -d 'Verify the index, and print statistics of the pack'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -s v -d 'Show progress'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l show-resolving-progress -d 'Show at least the progress of resolving deltas'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l check-self-contained-and-connected -d 'Refuse broken links; exit with 1 if the pack links to objects outside of it'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l report-end-of-input -d 'Write a NUL to standard error when the whole pack has arrived'
complete -c pronto -n "__fish_pronto_using_subcommand init" -l template -d 'Copy the templates in this directory' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -l separate-git-dir -d 'Store the repository there, and a file that points to it in the worktree' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -l object-format -d 'The hash function: sha1 or sha256' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -l ref-format -d 'The storage of refs: files or reftable' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -s b -l initial-branch -d 'The name of the first branch' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -l shared -d 'Share the repository with a group or all users' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand init" -l bare -d 'Create a bare repository'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s x -l exclude -d 'Treat untracked files that match this pattern as ignored' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s X -l exclude-from -d 'Read ignore patterns from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l exclude-per-directory -d 'Read ignore patterns from files of this name in each directory' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l with-tree -d 'Treat files of this tree that are not in the index as present' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l abbrev -d 'Show ids with this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l format -d 'The format of each entry' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s z -d 'Terminate paths with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s t -d 'Prefix each path with a letter for its state'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s v -d 'Like -t, with lower case for files marked assume-unchanged'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s f -d 'Like -t, with lower case for files that the monitor vouches for'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s c -l cached -d 'List tracked files (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s d -l deleted -d 'List tracked files that are missing from the worktree'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s m -l modified -d 'List tracked files that have changed'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s o -l others -d 'List untracked files'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s i -l ignored -d 'List ignored files: untracked with -o, tracked with -c'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s s -l stage -d 'Show mode, id and stage of each entry'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s k -l killed -d 'List untracked files that are in the way of tracked ones'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l directory -d 'List an untracked directory instead of its files'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l eol -d 'Show the line endings of files'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l empty-directory -d 'With --directory, list empty directories, too'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s u -l unmerged -d 'List files in conflict'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l resolve-undo -d 'Show conflicts that were resolved'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l exclude-standard -d 'Use the standard ignore files'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l full-name -d 'Show paths relative to the top of the worktree'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l error-unmatch -d 'Exit with an error if a path is not in the index'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l debug -d 'Show all fields of each entry'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l deduplicate -d 'List each path only once'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l sparse -d 'Show directories of a sparse index as single entries'
complete -c pronto -n "__fish_pronto_using_subcommand ls-remote" -l upload-pack -l exec -d 'The program that serves on the remote side' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-remote" -l sort -d 'Sort by this key instead of the order of the server; repeatable' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-remote" -s o -l server-option -d 'A value for the hooks of the remote side' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-remote" -s q -l quiet -d 'Do not print the address of the default remote'
complete -c pronto -n "__fish_pronto_using_subcommand ls-remote" -s t -l tags -d 'List only tags'
complete -c pronto -n "__fish_pronto_using_subcommand ls-remote" -s b -s h -l branches -l heads -d 'List only branches'
complete -c pronto -n "__fish_pronto_using_subcommand ls-remote" -l refs -d 'Do not list HEAD and the objects that tags point to'
complete -c pronto -n "__fish_pronto_using_subcommand ls-remote" -l get-url -d 'Print the address of the remote without connecting to it'
complete -c pronto -n "__fish_pronto_using_subcommand ls-remote" -l exit-code -d 'Exit with 2 if no ref is listed'
complete -c pronto -n "__fish_pronto_using_subcommand ls-remote" -l symref -d 'Show the targets of symbolic refs'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l format -d 'The format of each entry' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l abbrev -d 'Show ids with this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -s d -d 'Show only trees'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -s r -d 'Recurse into trees'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -s t -d 'Also show trees when recursing'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -s z -d 'Terminate lines with NUL, and quote nothing'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -s l -l long -d 'Also show the sizes of files'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l name-only -d 'Show only names'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l name-status -d 'Show only names'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l object-only -d 'Show only ids'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l full-name -d 'Show paths relative to the top of the worktree'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l full-tree -d 'List the whole tree, whatever the current directory'
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l schedule -d 'Run only tasks with this schedule: hourly, daily or weekly (run)' -r
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l task -d 'Run only this task (run, is-needed)' -r
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l scheduler -d 'The scheduler: auto, crontab, systemd-timer, launchctl or schtasks (start)' -r
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l config-file -d 'The configuration file with the list of repositories (register, unregister)' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l auto -d 'Run only tasks that the repository needs (run, is-needed)'
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l detach -d 'Continue in the background (run)'
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l quiet -d 'Show no progress (run)'
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -s f -l force -d 'Do not fail if the repository is not registered (unregister)'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l marker-size -d 'The length of conflict markers' -r
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -s L -d 'The name of a file in conflicts; once for each file' -r
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -s p -l stdout -d 'Print the result instead of writing it to the first file'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l diff3 -d 'Also show the common ancestor in conflicts'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l zdiff3 -d 'Like --diff3, without common lines at the start and end of a conflict'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l ours -d 'Resolve conflicts with the first file\'s side'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l theirs -d 'Resolve conflicts with the last file\'s side'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l union -d 'Resolve conflicts with both sides'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -s q -l quiet -d 'Do not print errors'
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l object-dir -d 'The object directory: the repository\'s own or one of its alternates' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l preferred-pack -d 'Prefer this pack for objects that several packs contain' -r
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l refs-snapshot -d 'A file with the targets of refs, for the bitmap' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l batch-size -d 'Combine packs that together have at least this size' -r
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l stdin-packs -d 'Include only packs whose indexes are named on standard input'
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l bitmap -d 'Also write a bitmap'
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l incremental -d 'Write a layer for new packs on top of the present ones'
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l progress -d 'Show progress'
complete -c pronto -n "__fish_pronto_using_subcommand netsync; and not __fish_seen_subcommand_from keygen key peers trust revoke forget" -f -a "keygen" -d 'Create the key of the user, and show its public half'
complete -c pronto -n "__fish_pronto_using_subcommand netsync; and not __fish_seen_subcommand_from keygen key peers trust revoke forget" -f -a "key" -d 'Show the public key of the user'
complete -c pronto -n "__fish_pronto_using_subcommand netsync; and not __fish_seen_subcommand_from keygen key peers trust revoke forget" -f -a "peers" -d 'List the trusted peers'
complete -c pronto -n "__fish_pronto_using_subcommand netsync; and not __fish_seen_subcommand_from keygen key peers trust revoke forget" -f -a "trust" -d 'Trust a peer'
complete -c pronto -n "__fish_pronto_using_subcommand netsync; and not __fish_seen_subcommand_from keygen key peers trust revoke forget" -f -a "revoke" -d 'Revoke the trust in a peer'
complete -c pronto -n "__fish_pronto_using_subcommand netsync; and not __fish_seen_subcommand_from keygen key peers trust revoke forget" -f -a "forget" -d 'Forget a peer, so that another repository can use its name'
complete -c pronto -n "__fish_pronto_using_subcommand netsync; and __fish_seen_subcommand_from trust" -l roles -d 'The roles of the peer: \'read\' receives from here, \'write\' sends' -r
complete -c pronto -n "__fish_pronto_using_subcommand netsync; and __fish_seen_subcommand_from trust" -l at -d 'The address of the peer' -r
complete -c pronto -n "__fish_pronto_using_subcommand netsync; and __fish_seen_subcommand_from trust" -l only -d 'Let the peer see and send only these branches; refs if the glob begins with \'refs/\'' -r
complete -c pronto -n "__fish_pronto_using_subcommand netsync; and __fish_seen_subcommand_from trust" -l not -d 'Exclude these branches or refs' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l keep-pack -d 'Omit objects in this pack' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l window -d 'The number of objects that each object is compared with' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l window-memory -d 'The memory for compared objects, in each thread' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l depth -d 'The maximum length of delta chains' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l threads -d 'Number of threads that search for deltas' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l compression -d 'The compression level, 0 to 9' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l stdout -d 'Write the pack to standard output, without an index'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l revs -d 'Read revisions instead of objects, and pack everything reachable'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l all -d 'Pack everything reachable from refs'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l reflog -d 'Also pack objects that reflogs name'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l indexed-objects -d 'Also pack objects that the index names'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l unpacked -d 'Pack only unpacked commits, and what they lead to'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l incremental -d 'Omit objects that are already packed'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l local -d 'Omit objects of alternates'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l honor-pack-keep -d 'Omit objects in packs with a `.keep` file'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l thin -d 'Make a thin pack: deltas may be based on objects of the receiver'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l include-tag -d 'Also pack annotated tags of packed objects'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l delta-base-offset -d 'Use deltas that name their base by offset'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l no-reuse-delta -d 'Recompute all deltas'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l no-reuse-object -d 'Deflate all objects again'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l sparse -d 'Compare trees only along changed paths'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l use-bitmap-index -d 'Use bitmaps'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l write-bitmap-index -d 'Write a bitmap of the pack'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l non-empty -d 'Do not write an empty pack'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l keep-true-parents -d 'Ignore replacement objects and grafts'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l progress -d 'Show progress'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l all-progress -d 'Also show progress while writing to standard output'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l all-progress-implied -d 'Like `--all-progress`, if progress is shown'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -s q -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand pack-refs" -l include -d 'Pack refs that match this pattern' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-refs" -l exclude -d 'Do not pack refs that match this pattern' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-refs" -l all -d 'Pack all refs, not only tags'
complete -c pronto -n "__fish_pronto_using_subcommand pack-refs" -l no-prune -d 'Keep the files of packed refs'
complete -c pronto -n "__fish_pronto_using_subcommand pack-refs" -l auto -d 'Pack only if many refs are unpacked'
complete -c pronto -n "__fish_pronto_using_subcommand prune" -l expire -d 'Delete only objects older than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand prune" -s n -l dry-run -d 'Show what would be deleted without deleting it'
complete -c pronto -n "__fish_pronto_using_subcommand prune" -s v -l verbose -d 'Show what is deleted'
complete -c pronto -n "__fish_pronto_using_subcommand prune" -l progress -d 'Show progress'
complete -c pronto -n "__fish_pronto_using_subcommand prune" -l exclude-promisor-objects -d 'Do not follow objects that a remote has promised'
complete -c pronto -n "__fish_pronto_using_subcommand prune-packed" -s n -l dry-run -d 'Show what would be deleted without deleting it'
complete -c pronto -n "__fish_pronto_using_subcommand prune-packed" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -s r -l rebase -d 'Rebase the current branch onto that of the peer; --no-rebase merges, whatever is configured' -r
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l name -d 'The local name of the peer' -r
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l as -d 'The name of this repository at the peer; a server of netsync:// uses the name of its key' -r
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l remote-program -d 'The program on the other side of ssh' -r
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l netsync -d 'Receive from a peer in one conversation, without a configured remote'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l ff -d 'Fast-forward if possible (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l ff-only -d 'Fail unless a fast-forward is possible'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l allow-unrelated -d 'Accept histories that have nothing in common'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l progress -d 'Show progress even if standard error is not a terminal'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l repo -d 'The remote, if no other is named' -r
complete -c pronto -n "__fish_pronto_using_subcommand push" -l force-with-lease -d 'Allow such updates of refs that have the expected value' -r
complete -c pronto -n "__fish_pronto_using_subcommand push" -l recurse-submodules -d 'Whether to push in submodules, too' -r
complete -c pronto -n "__fish_pronto_using_subcommand push" -l receive-pack -d 'The program on the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand push" -l exec -d 'The program on the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand push" -l signed -d 'Sign the push' -r
complete -c pronto -n "__fish_pronto_using_subcommand push" -s o -l push-option -d 'A value for the hooks of the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand push" -s v -l verbose -d 'Be more verbose'
complete -c pronto -n "__fish_pronto_using_subcommand push" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l all -d 'Push all branches'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l branches -d 'Push all branches'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l mirror -d 'Push all refs, and delete those that do not exist here'
complete -c pronto -n "__fish_pronto_using_subcommand push" -s d -l delete -d 'Delete the named refs'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l tags -d 'Push all tags, too'
complete -c pronto -n "__fish_pronto_using_subcommand push" -s n -l dry-run -d 'Show what would be done without doing it'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l porcelain -d 'Print the result in a form for scripts'
complete -c pronto -n "__fish_pronto_using_subcommand push" -s f -l force -d 'Allow updates that are not fast-forwards'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l force-if-includes -d 'Allow such updates only of refs whose value was integrated here'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l thin -d 'Send deltas against objects of the other side'
complete -c pronto -n "__fish_pronto_using_subcommand push" -s u -l set-upstream -d 'Let the pushed branches follow those on the other side'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l progress -d 'Show progress even if standard error is not a terminal'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l prune -d 'Delete refs of the other side that do not exist here'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l no-verify -d 'Do not run the hook pre-push'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l follow-tags -d 'Push annotated tags that lead into what is pushed'
complete -c pronto -n "__fish_pronto_using_subcommand push" -l atomic -d 'Update all refs or none'
complete -c pronto -n "__fish_pronto_using_subcommand push" -s 4 -l ipv4 -d 'Use only IPv4 addresses'
complete -c pronto -n "__fish_pronto_using_subcommand push" -s 6 -l ipv6 -d 'Use only IPv6 addresses'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l index-output -d 'Write the index to this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l prefix -d 'Read the tree into this directory of the index' -r
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l empty -d 'Only empty the index'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s v -l verbose -d 'Show the progress of writing files'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s m -d 'Merge with the index'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l trivial -d 'Merge three trees only if no content merge is needed'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l aggressive -d 'Also merge removals and identical additions of three trees'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l reset -d 'Like -m, but discard conflicts and changes'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s u -d 'Also update the worktree'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s i -d 'Ignore the worktree'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s n -l dry-run -d 'Show whether it would fail, without writing the index'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l no-sparse-checkout -d 'Ignore the sparse checkout'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s q -l quiet -d 'Do not print errors'
complete -c pronto -n "__fish_pronto_using_subcommand receive-pack" -s q -l quiet -d 'Send no progress'
complete -c pronto -n "__fish_pronto_using_subcommand receive-pack" -l stateless-rpc -d 'Serve one request of a connection over HTTP'
complete -c pronto -n "__fish_pronto_using_subcommand receive-pack" -l http-backend-info-refs -d 'Only advertise refs, for the first request over HTTP'
complete -c pronto -n "__fish_pronto_using_subcommand receive-pack" -l skip-connectivity-check -d 'Trust that received objects are complete'
complete -c pronto -n "__fish_pronto_using_subcommand receive-pack" -l reject-thin-pack-for-testing -d 'Refuse thin packs'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l expire -d 'Remove entries older than this (expire)' -r
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l expire-unreachable -d 'Remove unreachable entries older than this (expire)' -r
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l rewrite -d 'Make the old value of each entry match the entry before it (expire, delete)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l updateref -d 'Set the ref to the value of the last entry (expire, delete)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l stale-fix -d 'Remove entries of incomplete commits (expire)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -s n -l dry-run -d 'Show what would be done without doing it (expire, delete)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l verbose -d 'Print what happens to each entry (expire, delete)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l all -d 'Process the reflogs of all refs (expire, drop)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l single-worktree -d 'Process only reflogs of this worktree (expire, drop)'
complete -c pronto -n "__fish_pronto_using_subcommand refs" -l ref-format -d 'The new storage: files or reftable (migrate)' -r
complete -c pronto -n "__fish_pronto_using_subcommand refs" -l include -d 'Pack refs that match this pattern (optimize)' -r
complete -c pronto -n "__fish_pronto_using_subcommand refs" -l exclude -d 'Do not pack refs that match this pattern (optimize)' -r
complete -c pronto -n "__fish_pronto_using_subcommand refs" -l dry-run -d 'Write the new storage beside the old one, and leave it there (migrate)'
complete -c pronto -n "__fish_pronto_using_subcommand refs" -l no-reflog -d 'Drop all reflogs (migrate)'
complete -c pronto -n "__fish_pronto_using_subcommand refs" -l all -d 'Pack all refs, not only tags (optimize)'
complete -c pronto -n "__fish_pronto_using_subcommand refs" -l no-prune -d 'Keep the files of packed refs (optimize)'
complete -c pronto -n "__fish_pronto_using_subcommand refs" -l auto -d 'Pack only if many refs are unpacked (optimize)'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -s t -l track -d 'Track only this branch; repeatable (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand remote" -s m -l master -d 'Let the HEAD of the remote point to this branch (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand remote" -l mirror -d 'Mirror all refs, by fetches (`fetch`) or pushes (`push`) (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand remote" -s v -l verbose -d 'Show URLs, and more of a fetch; before the command'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -s f -l fetch -d 'Fetch from the new remote (add)'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -l tags -d 'Always fetch all tags, or none (add)'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -l progress -d 'Show progress even if standard error is not a terminal (rename)'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -s a -l auto -d 'Use the branch that the remote has checked out (set-head)'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -s d -l delete -d 'Delete the HEAD of the remote (set-head), or URLs (set-url)'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -s n -l dry-run -d 'Do not contact the remote (show), or only show what would be removed (prune)'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -s p -l prune -d 'Remove tracking refs of branches that are gone (update)'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -l add -d 'Keep the present branches (set-branches) or URLs (set-url)'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -l push -d 'Use the URLs of pushes (get-url, set-url)'
complete -c pronto -n "__fish_pronto_using_subcommand remote" -l all -d 'Print all URLs (get-url)'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l window -d 'The number of objects that each object is compared with' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l window-memory -d 'The memory for compared objects' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l depth -d 'The maximum length of delta chains' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l threads -d 'Number of threads that search for deltas' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l keep-pack -d 'Keep this pack as it is' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s g -l geometric -d 'Combine packs until each has this many times the objects of the next smaller one' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l cruft-expiration -d 'With `--cruft`: remove objects older than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l combine-cruft-below-size -d 'With `--cruft`: do not combine such packs from this size on' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l max-cruft-size -d 'With `--cruft`: the maximum size of such packs' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l expire-to -d 'With `--cruft`: put removed objects into a pack with this path prefix' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l unpack-unreachable -d 'With `-A`: drop objects older than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s a -d 'Pack all reachable objects into one pack'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s A -d 'Like `-a`; unreachable objects of removed packs become loose'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s d -d 'Remove redundant packs and loose objects'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s f -d 'Recompute all deltas'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s F -d 'Deflate all objects again'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s n -d 'Do not update the files for servers without Git support'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s l -l local -d 'Omit objects of alternates'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s b -l write-bitmap-index -d 'Write a bitmap'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l pack-kept-objects -d 'Also pack objects of packs with a `.keep` file'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l cruft -d 'Like `-a`; unreachable objects go into a pack of their own'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s m -l write-midx -d 'Write one index for all packs'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l recurse-submodules -d 'Update submodules, too (handed to git)' -r
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l pathspec-from-file -d 'Read paths from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand reset" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l no-refresh -d 'Do not refresh the index afterwards'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l mixed -d 'Reset HEAD and the index (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l soft -d 'Reset only HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l hard -d 'Reset HEAD, the index and the worktree'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l merge -d 'Reset HEAD, the index and the worktree, but keep unstaged changes'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l keep -d 'Reset HEAD, but keep local changes'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -s p -l patch -d 'Choose changes interactively (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -s N -l intent-to-add -d 'Record removed paths with an intent to add them later'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l pathspec-file-nul -d 'Paths in that file are separated by NUL'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s s -l source -d 'The commit or tree to restore from (default: the index, or HEAD with --staged)' -r
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l recurse-submodules -d 'Update submodules, too (handed to git)' -r
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l conflict -d 'The style of recreated conflicts: merge, diff3, zdiff3' -r
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l pathspec-from-file -d 'Read paths from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s S -l staged -d 'Restore the index'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s W -l worktree -d 'Restore the worktree (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l ignore-unmerged -d 'Skip paths in conflict'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l overlay -d 'Keep tracked files that the source does not have'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l progress -d 'Show progress even if standard error is not a terminal'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s m -l merge -d 'Recreate conflicts'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s 2 -l ours -d 'For files in conflict, check out the version of HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s 3 -l theirs -d 'For files in conflict, check out the other version'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s p -l patch -d 'Choose changes interactively (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l ignore-skip-worktree-bits -d 'Include files outside of the sparse checkout'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l pathspec-file-nul -d 'Paths in that file are separated by NUL'
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l receive-pack -d 'The program on the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l exec -d 'The program on the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l remote -d 'The remote whose remote-tracking branches are updated' -r
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l push-option -d 'A value for the hooks of the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l signed -d 'Sign the push' -r
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -s v -l verbose -d 'Show refs that were up to date, too'
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l all -d 'Push all branches'
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -s n -l dry-run -d 'Show what would be done without doing it'
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l mirror -d 'Push all refs, and delete those that do not exist here'
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -s f -l force -d 'Allow updates that are not fast-forwards'
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l progress -d 'Show progress even if standard error is not a terminal'
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l thin -d 'Send deltas against objects of the other side'
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l atomic -d 'Update all refs or none'
complete -c pronto -n "__fish_pronto_using_subcommand send-pack" -l stdin -d 'Read more refspecs from standard input, one a line'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l daemon -d 'Serve git://, for reading, at this address' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l ssh -d 'Serve SSH at this address. Without --config, for reading as the user \'anonymous\'' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l tls-cert -d 'Serve HTTPS with this certificate chain (PEM)' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l tls-key -d 'The private key of the certificate (PEM)' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l config -d 'Read the configuration from this file' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l store -d 'Serve the repositories of an object store: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l generations -d 'With --store, keep generations in this database: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l cache -d 'With --store, the directory for views and downloaded files; each server needs its own' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l role -d 'With --store: \'serve\', \'upkeep\' (pack repositories again and delete what has expired) or \'both\', which is the default' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l netsync -d 'Serve netsync, in which both sides send and receive, at this address too. Without an address, serve only that: to one peer with --stdio, or to known peers with --listen' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l listen -d 'Listen at this address; a free port of this machine without. With --netsync, serve known peers by TLS; \'netsync\' manages the known peers' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l peer -d 'With --stdio, the local name of the peer: its branches become refs/remotes/NAME/*' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l max-connections -d 'The maximum number of sessions, and of waiting ones' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l memory -d 'The memory of all sessions in MiB; a session takes 12, and 48 more while the server works for it' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l max-received -d 'The maximum MiB to receive in a session' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l handshake-timeout -d 'The maximum seconds for handshake and greeting together' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l idle-timeout -d 'The maximum seconds for a peer to move 16 KiB, or to take a step of the protocol' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l slow-timeout -d 'The seconds without 40 KiB or a step after which a waiting session may take the place' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l wait-timeout -d 'The maximum seconds for a session to wait for a place; then the peer must try again later' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l session-timeout -d 'The maximum seconds of a session' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l write -d 'Let the user \'owner\' push and create repositories, with a token that is printed'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l check -d 'Check the configuration, and that a store can be reached, and exit'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l print-config -d 'Print the default configuration with comments, and exit'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l stdio -d 'Serve one peer on standard input and output, as started by \'sync\''
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l ff -d 'Fast-forward branches to those of the peer, unless they are checked out'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l allow-unrelated -d 'Accept histories that have nothing in common'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -l once -d 'Exit after the first connection'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -a "user" -d 'Add, remove and list users, and their keys'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -a "token" -d 'Give a user a token, and print it'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and not __fish_seen_subcommand_from user token repository" -a "repository" -d 'Create, remove and list repositories'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from user" -l config -d 'Read the configuration from this file' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from user" -l store -d 'Serve the repositories of an object store: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from user" -l generations -d 'With --store, keep generations in this database: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from user" -l cache -d 'With --store, the directory for views and downloaded files; each server needs its own' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from user" -f -a "add" -d 'Add a user'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from user" -f -a "remove" -d 'Remove a user, with the keys and tokens'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from user" -f -a "list" -d 'List the users, with the numbers of their tokens and keys'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from user" -f -a "key" -d 'Add, remove and list public keys'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from token" -l config -d 'Read the configuration from this file' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from token" -l store -d 'Serve the repositories of an object store: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from token" -l generations -d 'With --store, keep generations in this database: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from token" -l cache -d 'With --store, the directory for views and downloaded files; each server needs its own' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from token" -l replace -d 'Revoke the other tokens of the user'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from repository" -l config -d 'Read the configuration from this file' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from repository" -l store -d 'Serve the repositories of an object store: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from repository" -l generations -d 'With --store, keep generations in this database: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from repository" -l cache -d 'With --store, the directory for views and downloaded files; each server needs its own' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from repository" -f -a "create" -d 'Create an empty repository'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from repository" -f -a "remove" -d 'Remove a repository'
complete -c pronto -n "__fish_pronto_using_subcommand serve; and __fish_seen_subcommand_from repository" -f -a "list" -d 'List the repositories'
complete -c pronto -n "__fish_pronto_using_subcommand shell" -l config -d 'Read the configuration of the server from this file' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand shell" -l user -d 'The user of the client' -r
complete -c pronto -n "__fish_pronto_using_subcommand show-index" -l object-format -d 'The hash function: sha1 or sha256' -r
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -s s -l hash -d 'Show only ids, with this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l abbrev -d 'Show ids with this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l exclude-existing -d 'Print the refs on standard input that do not exist' -r
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l tags -d 'Show only tags'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l branches -d 'Show only branches'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l heads -d 'Show only branches'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -s h -l head -d 'Also show HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l verify -d 'Require full names that exist'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -s d -l dereference -d 'Also show the objects that tags peel to'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -s q -l quiet -d 'Print nothing'
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -l rules-file -d 'Check with the rules of this file' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -l cone -d 'Use directories instead of patterns'
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -l sparse-index -d 'Use a sparse index, with single entries for directories'
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -l stdin -d 'Read directories or patterns from standard input, too'
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -l skip-checks -d 'Do not check the arguments'
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -s z -d 'Separate paths with NUL in input and output'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l porcelain -d 'Show a stable format for scripts' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -s u -l untracked-files -d 'Show untracked files: all, normal, no' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -l ignored -d 'Show ignored files: traditional, matching, no' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -l ignore-submodules -d 'Ignore changes to submodules: all, dirty, untracked, none' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -s M -l find-renames -d 'Detect renames, optionally with a similarity' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -l column -d 'List untracked files in columns: always, never, auto, column, row, plain, dense, nodense' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -s s -l short -d 'Show the short format'
complete -c pronto -n "__fish_pronto_using_subcommand status" -s v -l verbose -d 'Show staged changes as a patch; twice, unstaged changes as well'
complete -c pronto -n "__fish_pronto_using_subcommand status" -s b -l branch -d 'Show the branch'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l show-stash -d 'Show the number of stash entries'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l ahead-behind -d 'Count the commits ahead of and behind the upstream'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l long -d 'Show the long format (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand status" -s z -l null -d 'Terminate entries with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l renames -d 'Detect renames'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l no-column -d 'List each untracked file on a line'
complete -c pronto -n "__fish_pronto_using_subcommand store; and not __fish_seen_subcommand_from import export copy verify upkeep list config head" -l generations -d 'The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and not __fish_seen_subcommand_from import export copy verify upkeep list config head" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand store; and not __fish_seen_subcommand_from import export copy verify upkeep list config head" -f -a "import" -d 'Import a Git repository, or every repository below a directory, into the store'
complete -c pronto -n "__fish_pronto_using_subcommand store; and not __fish_seen_subcommand_from import export copy verify upkeep list config head" -f -a "export" -d 'Export a generation as a bare Git repository'
complete -c pronto -n "__fish_pronto_using_subcommand store; and not __fish_seen_subcommand_from import export copy verify upkeep list config head" -f -a "copy" -d 'Copy a generation into a new repository of the same or another store'
complete -c pronto -n "__fish_pronto_using_subcommand store; and not __fish_seen_subcommand_from import export copy verify upkeep list config head" -f -a "verify" -d 'Read all objects, and list missing and damaged ones'
complete -c pronto -n "__fish_pronto_using_subcommand store; and not __fish_seen_subcommand_from import export copy verify upkeep list config head" -f -a "upkeep" -d 'Repack repositories if needed, and delete expired generations and objects'
complete -c pronto -n "__fish_pronto_using_subcommand store; and not __fish_seen_subcommand_from import export copy verify upkeep list config head" -f -a "list" -d 'List the repositories of the store, or the generations of one'
complete -c pronto -n "__fish_pronto_using_subcommand store; and not __fish_seen_subcommand_from import export copy verify upkeep list config head" -f -a "config" -d 'Show or change the configuration of a repository'
complete -c pronto -n "__fish_pronto_using_subcommand store; and not __fish_seen_subcommand_from import export copy verify upkeep list config head" -f -a "head" -d 'Show or change the default branch of a repository'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from import" -l scratch -d 'The directory for temporary files' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from import" -l generations -d 'The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from import" -l update -d 'Update repositories that already exist in the store'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from import" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from export" -l generation -d 'Use this generation instead of the newest one' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from export" -l ref-format -d 'Keep refs in this format: \'files\' or \'reftable\'' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from export" -l generations -d 'The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from export" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from copy" -l generation -d 'Use this generation instead of the newest one' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from copy" -l scratch -d 'The directory for temporary files' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from copy" -l target-generations -d 'The database with the generations of the second store' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from copy" -l generations -d 'The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from copy" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from verify" -l generations -d 'The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from verify" -l sizes-only -d 'Compare names and sizes only, and read no object'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from upkeep" -l every -d 'Run until the process is stopped, and check each repository at this interval in seconds' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from upkeep" -l prune-after -d 'Delete unreachable Git objects this many days after they were noticed; \'never\' keeps them' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from upkeep" -l cache -d 'Keep downloaded files in this directory, and use them again' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from upkeep" -l scratch -d 'The directory for temporary files' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from upkeep" -l generations -d 'The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from upkeep" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from list" -l generations -d 'The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from config" -l generations -d 'The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from config" -l add -d 'Add a value to those that the key has'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from config" -l unset -d 'Remove all values of the key'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from config" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from head" -l generations -d 'The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD' -r
complete -c pronto -n "__fish_pronto_using_subcommand store; and __fish_seen_subcommand_from head" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s t -l track -d 'Set the upstream of the new branch' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l orphan -d 'Create a branch without history' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l recurse-submodules -d 'Update submodules, too (handed to git)' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s c -l create -d 'Create this branch and switch to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s C -l force-create -d 'Create or reset this branch and switch to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l conflict -d 'The style of conflicts in such a merge: merge, diff3, zdiff3' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l progress -d 'Show progress even if standard error is not a terminal'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s f -l force -d 'Discard local changes, and files that are in the way'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s d -l detach -d 'Detach HEAD at the commit'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l overwrite-ignore -d 'Overwrite ignored files (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l ignore-other-worktrees -d 'Check out a branch even if another worktree has it'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l guess -d 'Create a local branch for a remote branch of the same name (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l discard-changes -d 'Discard local changes'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s m -l merge -d 'Merge local changes into the new branch'
complete -c pronto -n "__fish_pronto_using_subcommand symbolic-ref" -s m -d 'The reason, for the reflog' -r
complete -c pronto -n "__fish_pronto_using_subcommand symbolic-ref" -s q -l quiet -d 'Print no error if the ref is not symbolic'
complete -c pronto -n "__fish_pronto_using_subcommand symbolic-ref" -s d -l delete -d 'Remove the ref'
complete -c pronto -n "__fish_pronto_using_subcommand symbolic-ref" -l short -d 'Show the short name of the target'
complete -c pronto -n "__fish_pronto_using_subcommand symbolic-ref" -l no-recurse -d 'Show the direct target, even if it is symbolic itself'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l include -d 'Include only these branches; refs if the glob begins with \'refs/\'' -r
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l exclude -d 'Exclude these branches or refs' -r
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l name -d 'The local name of the peer: its branches become refs/remotes/NAME/*' -r
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l as -d 'The name of this repository at the peer; a server of netsync:// uses the name of its key' -r
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l remote-program -d 'The program on the other side of ssh' -r
complete -c pronto -n "__fish_pronto_using_subcommand sync" -s n -l dry-run -d 'Show what would be transferred'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l pull -d 'Only receive'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l push -d 'Only send'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l ff -d 'Fast-forward branches to those of the peer, unless they are checked out'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l allow-unrelated -d 'Accept histories that have nothing in common'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l json -d 'Print the result as JSON'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l progress -d 'Show progress even if standard error is not a terminal'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -s q -l quiet -d 'Print only errors'
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -l strict -d 'Write nothing that is malformed, or links to missing objects' -r
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -l max-input-size -d 'Refuse packs larger than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -l pack_header -d 'The pack header, if the caller has already read it' -r
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -s n -d 'Write nothing'
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -s q -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -s r -d 'Recover as much as possible from a damaged pack'
complete -c pronto -n "__fish_pronto_using_subcommand upload-pack" -l timeout -d 'End after this number of seconds in which the client does nothing' -r
complete -c pronto -n "__fish_pronto_using_subcommand upload-pack" -l stateless-rpc -d 'Quit after a single request and response'
complete -c pronto -n "__fish_pronto_using_subcommand upload-pack" -l no-stateless-rpc
complete -c pronto -n "__fish_pronto_using_subcommand upload-pack" -l advertise-refs -d 'Write the refs or capabilities only, for an HTTP server'
complete -c pronto -n "__fish_pronto_using_subcommand upload-pack" -l no-advertise-refs
complete -c pronto -n "__fish_pronto_using_subcommand upload-pack" -l http-backend-info-refs -d 'The same under the name by which git calls it'
complete -c pronto -n "__fish_pronto_using_subcommand upload-pack" -l strict -d 'Do not look for a repository inside the directory'
complete -c pronto -n "__fish_pronto_using_subcommand upload-pack" -l no-strict
complete -c pronto -n "__fish_pronto_using_subcommand verify-pack" -l object-format -d 'The hash function: sha1 or sha256' -r
complete -c pronto -n "__fish_pronto_using_subcommand verify-pack" -s v -l verbose -d 'List the objects of the packs'
complete -c pronto -n "__fish_pronto_using_subcommand verify-pack" -s s -l stat-only -d 'Print only statistics of the packs'
complete -c pronto -n "__fish_pronto_using_subcommand version" -l build-options -d 'Also show how this binary was built'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s b -d 'Create a branch (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s B -d 'Create or reset a branch (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l reason -d 'The reason of the lock (add, lock)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l track -d 'Set the upstream of the new branch (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l carry -d 'Carry ignored files that match, as in .gitignore; repeatable (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l carry-reflink -d 'Whether carried files share blocks: `always` (the default), `auto` or `never` (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l expire -d 'Process only worktrees unused since then (list, prune)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s f -l force -d 'Override checks: a branch or place in use; twice: a locked worktree (add, move, remove)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s d -l detach -d 'Detach HEAD (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l orphan -d 'Create a branch without commits (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l no-checkout -d 'Do not check out files (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l lock -d 'Keep the worktree locked (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s q -l quiet -d 'Print only errors (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l guess-remote -d 'Use a remote branch with the name of the directory (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l recurse-submodules -d 'Check out the submodules from the objects that the current worktree has (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l porcelain -d 'Print a format for scripts (list)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s z -d 'Terminate lines with NUL (list)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s v -l verbose -d 'Be more verbose (list, prune)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s n -l dry-run -d 'Show what would be removed without removing it (prune)'
complete -c pronto -n "__fish_pronto_using_subcommand write-tree" -l prefix -d 'Write only the tree of this directory' -r
complete -c pronto -n "__fish_pronto_using_subcommand write-tree" -l missing-ok -d 'Allow missing objects'

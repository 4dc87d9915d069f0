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
complete -c pronto -n "__fish_pronto_needs_command" -l exec-path -d 'Where git finds its programs' -r
complete -c pronto -n "__fish_pronto_needs_command" -l git-dir -d 'Use the repository at this path' -r
complete -c pronto -n "__fish_pronto_needs_command" -l work-tree -d 'Use the working tree at this path' -r
complete -c pronto -n "__fish_pronto_needs_command" -l namespace -d 'Use this namespace of refs' -r
complete -c pronto -n "__fish_pronto_needs_command" -l attr-source -d 'Read attributes from this tree' -r
complete -c pronto -n "__fish_pronto_needs_command" -l trace-chrome -d 'Leave a trace that Chrome and Perfetto open' -r
complete -c pronto -n "__fish_pronto_needs_command" -s p -l paginate -d 'Pass the output through a pager'
complete -c pronto -n "__fish_pronto_needs_command" -s P -l no-pager -d 'Use no pager'
complete -c pronto -n "__fish_pronto_needs_command" -l bare -d 'Take the repository as one without a working tree'
complete -c pronto -n "__fish_pronto_needs_command" -l no-replace-objects -d 'Do not follow replacement refs'
complete -c pronto -n "__fish_pronto_needs_command" -l no-lazy-fetch -d 'Do not fetch missing objects on demand'
complete -c pronto -n "__fish_pronto_needs_command" -l no-optional-locks -d 'Take no lock that can be done without'
complete -c pronto -n "__fish_pronto_needs_command" -l no-advice -d 'Print no hints'
complete -c pronto -n "__fish_pronto_needs_command" -l literal-pathspecs -d 'Take pathspecs literally'
complete -c pronto -n "__fish_pronto_needs_command" -l no-literal-pathspecs -d 'Do not take pathspecs literally'
complete -c pronto -n "__fish_pronto_needs_command" -l glob-pathspecs -d 'Take all pathspecs as globs'
complete -c pronto -n "__fish_pronto_needs_command" -l noglob-pathspecs -d 'Take no pathspec as a glob'
complete -c pronto -n "__fish_pronto_needs_command" -l icase-pathspecs -d 'Match pathspecs in any case'
complete -c pronto -n "__fish_pronto_needs_command" -l list-native -d 'List the commands that pronto runs itself'
complete -c pronto -n "__fish_pronto_needs_command" -s v -l version -d 'Show the version'
complete -c pronto -n "__fish_pronto_needs_command" -s h -l help -d 'Show the commands, or the manual of one'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "add" -d 'stage what is in files'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "cat-file" -d 'show the content, type or size of objects'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "check-attr" -d 'show what attributes files say of paths'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "check-ignore" -d 'tell which paths are ignored, and why'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "checkout" -d 'switch branches or put files back'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "checkout-index" -d 'copy files from the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "clean" -d 'remove files that are not tracked'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "clone" -d 'copy a repository into a new directory'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "commit" -d 'record what is staged'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "commit-graph" -d 'write and verify the commit-graph'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "config" -d 'read and change configuration'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "diff-files" -d 'compare files with the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "diff-index" -d 'compare a tree with files or the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "diff-tree" -d 'compare trees, and commits with their parents'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "fetch" -d 'take what is new from other repositories'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "for-each-repo" -d 'run a command in each of the repositories that are configured'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "fsmonitor--daemon" -d 'watch the working tree for changes'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "gc" -d 'repack, and remove what nothing needs any more'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "hash-object" -d 'tell the id of an object, and store it'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "help" -d 'show the commands, or the manual of one'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "index-pack" -d 'make the index of a pack'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "init" -d 'make a repository, or bring one up to date'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "ls-files" -d 'show information about files in the index and the working tree'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "ls-tree" -d 'list what is in a tree'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "maintenance" -d 'keep a repository fast, now and by a schedule'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "merge-file" -d 'bring together what two have made of one file'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "multi-pack-index" -d 'write and verify one index for many packs'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "netsync" -d 'say which peers are trusted, and with what'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "pack-objects" -d 'make packs of objects'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "pack-refs" -d 'put references into one file'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "prune" -d 'delete objects that nothing leads to'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "prune-packed" -d 'delete loose objects that are in a pack, too'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "pull" -d 'take what a peer has, and merge it'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "read-tree" -d 'read trees into the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "reflog" -d 'look after the logs of references'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "repack" -d 'put objects into few packs'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "reset" -d 'take the branch, the index and files to another commit'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "restore" -d 'put files back as the index or a commit has them'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "rev-parse" -d 'turn names into ids, and tell where things are'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "serve" -d 'let peers take part in a repository'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "show-index" -d 'show the index of a pack'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "show-ref" -d 'list references and what they hold'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "sparse-checkout" -d 'have a part of the tracked files in the working tree'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "status" -d 'show the working tree status'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "switch" -d 'switch branches'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "symbolic-ref" -d 'read and change references that stand for others'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "sync" -d 'become one history with a peer'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "unpack-objects" -d 'make loose objects of a pack'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "update-index" -d 'change single entries of the index'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "upload-pack" -d 'send objects to those who fetch'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "verify-pack" -d 'check packs and their indexes'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "version" -d 'show the version of pronto'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "worktree" -d 'manage the work trees of a repository'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "write-tree" -d 'make trees of the index'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l chmod -d 'Make the files executable in the index (+x), or not (-x)' -r
complete -c pronto -n "__fish_pronto_using_subcommand add" -l pathspec-from-file -d 'Read paths from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand add" -s n -l dry-run -d 'Only say what would be done'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s v -l verbose -d 'Name the files that are added and removed'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s i -l interactive -d 'Pick interactively (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s p -l patch -d 'Select hunks interactively (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s e -l edit -d 'Edit the difference and apply it (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s f -l force -d 'Add ignored files too'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s u -l update -d 'Update tracked files'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l renormalize -d 'Convert the line endings of tracked files anew (implies -u)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s N -l intent-to-add -d 'Record only that the files will be added later'
complete -c pronto -n "__fish_pronto_using_subcommand add" -s A -l all -d 'Add changes of all tracked and untracked files'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l ignore-removal -d 'Ignore files that were removed (same as --no-all)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l refresh -d 'Do not add, only refresh the index'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l ignore-errors -d 'Skip files that cannot be added because of errors'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l ignore-missing -d 'Check whether even missing files are ignored (with --dry-run)'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l sparse -d 'Update entries outside of the sparse checkout too'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l no-warn-embedded-repo -d 'Say nothing about other repositories that are added'
complete -c pronto -n "__fish_pronto_using_subcommand add" -l pathspec-file-nul -d 'Paths in that file end with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l batch -d 'Print type, size and content of each object named on the standard input' -r
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l batch-check -d 'Print type and size of each object named on the standard input' -r
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l batch-command -d 'Obey the commands on the standard input: contents, info, flush' -r
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s e -d 'Exit with zero if the object exists, with one if it does not'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s p -d 'Print the object in a form that suits its type'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s t -d 'Print the type of the object'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s s -d 'Print the size of the object'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l allow-unknown-type -d 'Accepted for the sake of old scripts'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l batch-all-objects -d 'Take all objects of the repository rather than those on the standard input'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l buffer -d 'Write when a buffer is full rather than after each object'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -l unordered -d 'Take all objects in the order in which they are stored'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s z -d 'The lines of the standard input end with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand cat-file" -s Z -d 'The lines of the standard input and output end with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand check-attr" -s a -l all -d 'All attributes of which anything is said'
complete -c pronto -n "__fish_pronto_using_subcommand check-attr" -l cached -d 'Only attributes files in the index count'
complete -c pronto -n "__fish_pronto_using_subcommand check-attr" -l stdin -d 'Read paths from the standard input'
complete -c pronto -n "__fish_pronto_using_subcommand check-attr" -s z -d 'Paths end with NUL, in and out'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -s q -l quiet -d 'Print nothing'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -s v -l verbose -d 'Also the line that decides'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -l stdin -d 'Read paths from the standard input'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -s z -d 'Paths end with NUL, in and out'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -s n -l non-matching -d 'Also paths about which no line decides'
complete -c pronto -n "__fish_pronto_using_subcommand check-ignore" -l no-index -d 'Look at paths that are tracked, too'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s t -l track -d 'Let the new branch follow the one it starts at' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l orphan -d 'Begin a branch without history' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l recurse-submodules -d 'Update submodules too (handed to git)' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s b -d 'Create this branch and go to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s B -d 'Create or move this branch and go to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l conflict -d 'How conflicts look, made anew: merge, diff3, zdiff3' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l pathspec-from-file -d 'Read paths from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s q -l quiet -d 'Say nothing but errors'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l progress -d 'Show progress even if the standard error is no terminal'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s f -l force -d 'Throw away local changes, and files that are in the way'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s d -l detach -d 'Leave all branches for the commit itself'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l overwrite-ignore -d 'Overwrite ignored files (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l ignore-other-worktrees -d 'Take a branch even if another work tree has it'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l guess -d 'Begin a local branch of the same name if a remote has one (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s l -d 'Begin a log for the new branch'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s 2 -l ours -d 'Of files in conflict, take the side of HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s 3 -l theirs -d 'Of files in conflict, take the other side'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s p -l patch -d 'Choose changes one by one (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -s m -l merge -d 'Make conflicts anew; merge local changes into the new branch'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l overlay -d 'Leave tracked files that the commit does not have (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l ignore-skip-worktree-bits -d 'Include files that are not to be in the work tree'
complete -c pronto -n "__fish_pronto_using_subcommand checkout" -l pathspec-file-nul -d 'Paths in that file end with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -l prefix -d 'Put this in front of the names of files' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -l stage -d 'Of a conflict, take this stage (1, 2, 3 or all)' -r
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s a -l all -d 'Copy all files in the index'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -l ignore-skip-worktree-bits -d 'Include files that are not to be in the work tree'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s f -l force -d 'Overwrite files that are there'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s q -l quiet -d 'Say nothing of files that are there, or not in the index'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s n -l no-create -d 'Write no file that is not there yet'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s u -l index -d 'Record the facts of what is written in the index'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -s z -d 'Paths end with NUL, in and out'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -l stdin -d 'Read paths from the standard input'
complete -c pronto -n "__fish_pronto_using_subcommand checkout-index" -l temp -d 'Write to files of new names, and tell these'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s e -l exclude -d 'Take this pattern for ignored, too' -r
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s q -l quiet -d 'Say nothing but errors'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s n -l dry-run -d 'Only say what would be removed'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s f -l force -d 'Remove; twice: repositories too'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s i -l interactive -d 'Ask what to remove (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s d -d 'Remove untracked directories too'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s x -d 'Remove ignored files too'
complete -c pronto -n "__fish_pronto_using_subcommand clean" -s X -d 'Remove only ignored files'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l recurse-submodules -d 'Clone the submodules too' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s j -l jobs -d 'How many submodules to clone at once' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l template -d 'Where the templates of new repositories are' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l reference -d 'A repository on this machine whose objects may be used' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l reference-if-able -d 'The same, if it is there' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s o -l origin -d 'What to call the remote' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s b -l branch -d 'What to check out in place of the remote\'s HEAD' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l revision -d 'Take one revision only, and detach HEAD there' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s u -l upload-pack -d 'The program that serves on the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l depth -d 'Take so many commits of each branch only' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l shallow-since -d 'Take only what is newer than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l shallow-exclude -d 'Take nothing that this reference leads to' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l separate-git-dir -d 'Where the repository itself goes, apart from its work tree' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s c -l config -d 'A setting for the new repository' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l server-option -d 'A value for the hooks of the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l filter -d 'What to leave out until it is needed' -r
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s v -l verbose -d 'Show more'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s q -l quiet -d 'Show nothing but errors'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l progress -d 'Show progress even if the standard error is no terminal'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l reject-shallow -d 'Refuse a source whose history is cut off'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l sparse -d 'Have the files at the top alone in the work tree'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s n -l no-checkout -d 'Do not check out files'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l bare -d 'Make a repository without a work tree'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l mirror -d 'Take all references as they are, and keep doing so'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s l -l local -d 'Take over the files of a repository on this machine'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l no-hardlinks -d 'Copy the files of a repository on this machine instead of linking them'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s s -l shared -d 'Use the objects of a repository on this machine where they are'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l single-branch -d 'Take only one branch'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l no-tags -d 'Take no tags'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -l shallow-submodules -d 'Clone submodules with a depth of one'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s 4 -l ipv4 -d 'Use internet addresses of version 4 only'
complete -c pronto -n "__fish_pronto_using_subcommand clone" -s 6 -l ipv6 -d 'Use internet addresses of version 6 only'
complete -c pronto -n "__fish_pronto_using_subcommand commit" -s m -l message -d 'What the commit says; each one more is a paragraph' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit" -s F -l file -d 'Read what it says from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit" -l cleanup -d 'What to take out of the message: verbatim, whitespace, strip or default' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit" -s q -l quiet -d 'Say nothing (a commit that is summed up is made by git)'
complete -c pronto -n "__fish_pronto_using_subcommand commit" -s n -l no-verify -d 'Do not ask the hooks pre-commit and commit-msg'
complete -c pronto -n "__fish_pronto_using_subcommand commit" -l allow-empty -d 'Record it even if nothing has changed'
complete -c pronto -n "__fish_pronto_using_subcommand commit" -l allow-empty-message -d 'Record it even if the message says nothing'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l object-dir -d 'The object directory to work in: the repository\'s own or one of its alternates' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l max-new-filters -d 'Make at most this many new filters' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l split -d 'Write a layer on top of others: `no-merge` leaves them alone, `replace` removes them' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l max-commits -d 'Merge layers until the new one has at most this many commits' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l size-multiple -d 'Merge layers that are at most this many times as large as the new one' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l expire-time -d 'Leave files alone that are younger than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l reachable -d 'Write the commits that references lead to'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l stdin-packs -d 'Write the commits of the packs whose indexes are named on the standard input'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l stdin-commits -d 'Write the commits whose ids stand on the standard input'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l append -d 'Keep what is in the graph now'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l changed-paths -d 'Write filters of the paths that each commit changed'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l shallow -d 'Look only at the topmost layer'
complete -c pronto -n "__fish_pronto_using_subcommand commit-graph" -l progress -d 'Show how far it is'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l abbrev -d 'Ids in this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l diff-filter -d 'Which sorts count, by letters' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s M -l find-renames -d 'Find files that were renamed' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s C -l find-copies -d 'Find files that were copied from changed ones, too' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s l -d 'Compare no more than this many files with each other' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l relative -d 'Only what is below this directory (the current one), by paths from there' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l ignore-submodules -d 'Which changes of submodules do not count' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s 0 -d 'Of conflicts, tell only that they are'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s 1 -l base -d 'Of conflicts, compare with the common ancestor'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s 2 -l ours -d 'Of conflicts, compare with our side (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s 3 -l theirs -d 'Of conflicts, compare with their side'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l raw -d 'Modes, ids and paths of what differs (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l name-only -d 'Only paths'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l name-status -d 'Only paths and what happened to them'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s s -l no-patch -d 'Print nothing'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l quiet -d 'Print nothing, and tell by the exit code'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l exit-code -d 'Exit with 1 if something differs'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s z -d 'Paths end with NUL and are not quoted'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l full-index -d 'Has no meaning for what is printed here'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -s R -d 'Tell the way back'
complete -c pronto -n "__fish_pronto_using_subcommand diff-files" -l no-renames -d 'Find no renames'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l abbrev -d 'Ids in this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l diff-filter -d 'Which sorts count, by letters' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s M -l find-renames -d 'Find files that were renamed' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s C -l find-copies -d 'Find files that were copied from changed ones, too' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s l -d 'Compare no more than this many files with each other' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l relative -d 'Only what is below this directory (the current one), by paths from there' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l ignore-submodules -d 'Which changes of submodules do not count' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l cached -d 'Compare with the index alone'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s m -d 'Files that are not there count as they are in the index'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l merge-base -d 'Compare with the common ancestor of the commit and HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l raw -d 'Modes, ids and paths of what differs (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l name-only -d 'Only paths'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l name-status -d 'Only paths and what happened to them'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s s -l no-patch -d 'Print nothing'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l quiet -d 'Print nothing, and tell by the exit code'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l exit-code -d 'Exit with 1 if something differs'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s z -d 'Paths end with NUL and are not quoted'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l full-index -d 'Has no meaning for what is printed here'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -s R -d 'Tell the way back'
complete -c pronto -n "__fish_pronto_using_subcommand diff-index" -l no-renames -d 'Find no renames'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l abbrev -d 'Ids in this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l diff-filter -d 'Which sorts count, by letters' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s M -l find-renames -d 'Find files that were renamed' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s C -l find-copies -d 'Find files that were copied from changed ones, too' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s l -d 'Compare no more than this many files with each other' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l relative -d 'Only what is below this directory (the current one), by paths from there' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l ignore-submodules -d 'Which changes of submodules do not count' -r
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s r -d 'Go into directories'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s t -d 'Tell of the directories, too, that are gone into'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l root -d 'Of a commit without parents, tell all that is in it'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l stdin -d 'Read commits, or pairs of trees, from the standard input'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s m -d 'Compare merges with each of their parents'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l no-commit-id -d 'Do not print the id of a commit before what it changed'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l raw -d 'Modes, ids and paths of what differs (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l name-only -d 'Only paths'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l name-status -d 'Only paths and what happened to them'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s s -l no-patch -d 'Print nothing'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l quiet -d 'Print nothing, and tell by the exit code'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l exit-code -d 'Exit with 1 if something differs'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s z -d 'Paths end with NUL and are not quoted'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l full-index -d 'Has no meaning for what is printed here'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -s R -d 'Tell the way back'
complete -c pronto -n "__fish_pronto_using_subcommand diff-tree" -l no-renames -d 'Find no renames'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s j -l jobs -d 'How many remotes to fetch from at once' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l upload-pack -d 'The program that serves on the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l depth -d 'Take so many commits of each branch only' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l deepen -d 'Take so many commits more beyond where the history is cut off' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l shallow-since -d 'Take only what is newer than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l shallow-exclude -d 'Take nothing that this reference leads to' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l refmap -d 'What references named on the command line are called here' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s o -l server-option -d 'A value for the hooks of the other side' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l filter -d 'What to leave out until it is needed' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l recurse-submodules -d 'Whether to fetch in submodules too' -r
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s v -l verbose -d 'Show more'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s q -l quiet -d 'Show nothing but errors'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l progress -d 'Show progress even if the standard error is no terminal'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l all -d 'Fetch from all remotes'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s m -l multiple -d 'Fetch from several remotes'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s a -l append -d 'Keep what FETCH_HEAD holds'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l atomic -d 'Change all references or none'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s f -l force -d 'Let references move to anything'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s t -l tags -d 'Fetch all tags; none with --no-tags'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s n -d 'Fetch no tags'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s p -l prune -d 'Remove references to what is gone on the other side'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s P -l prune-tags -d 'The same for tags'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l dry-run -d 'Change nothing'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l porcelain -d 'Tell what happened in a form for scripts'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l no-write-fetch-head -d 'Do not write FETCH_HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s k -l keep -d 'Keep the pack as it is'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s u -l update-head-ok -d 'Fetch even into the branch that is checked out'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l unshallow -d 'Take the whole history'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l update-shallow -d 'Let the other side\'s cut of its history become ours'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l refetch -d 'Ask for everything as if nothing were here'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l no-auto-maintenance -d 'Leave out the maintenance afterwards'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -l no-auto-gc -d 'Leave out the maintenance afterwards'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s 4 -l ipv4 -d 'Use internet addresses of version 4 only'
complete -c pronto -n "__fish_pronto_using_subcommand fetch" -s 6 -l ipv6 -d 'Use internet addresses of version 6 only'
complete -c pronto -n "__fish_pronto_using_subcommand fsmonitor--daemon" -l ipc-threads -d 'Taken for Git\'s sake: each client has a thread' -r
complete -c pronto -n "__fish_pronto_using_subcommand fsmonitor--daemon" -l start-timeout -d 'How many seconds to wait for the start' -r
complete -c pronto -n "__fish_pronto_using_subcommand fsmonitor--daemon" -l detach -d 'Detach from the console'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l prune -d 'From what age on unreachable objects are removed; never with --no-prune' -r
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l max-cruft-size -d 'The size from which on such packs are not combined' -r
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l expire-to -d 'Where a pack of what is removed goes' -r
complete -c pronto -n "__fish_pronto_using_subcommand gc" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l cruft -d 'Put unreachable objects into a pack of their own'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l aggressive -d 'Make all deltas anew, and take more time for it'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l auto -d 'Do nothing unless there is much to do'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l detach -d 'Go on in the background'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l force -d 'Do not care whether another process does it'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l keep-largest-pack -d 'Leave the largest pack as it is'
complete -c pronto -n "__fish_pronto_using_subcommand gc" -l skip-foreground-tasks -d 'Leave references and reflogs alone'
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -s t -d 'The type of the object' -r
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -l path -d 'Convert as if the content were that of this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -s w -d 'Store the object'
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -l stdin -d 'Read the object from the standard input'
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -l stdin-paths -d 'Read names of files from the standard input'
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -l no-filters -d 'Take files as they are'
complete -c pronto -n "__fish_pronto_using_subcommand hash-object" -l literally -d 'Make objects of any type and content (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand help" -s a -l all -d 'List all commands, with what becomes of those that pronto lacks'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l strict -d 'Refuse broken objects, and links to what is not there' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l fsck-objects -d 'Refuse broken objects' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l keep -d 'Mark the pack as one to be kept, and say why' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l promisor -d 'Mark the pack as one whose links may be missing' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l threads -d 'How many threads may compute' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l max-input-size -d 'Refuse packs of more bytes than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l index-version -d 'The version of the index, and from where on offsets take 64 bits' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l object-format -d 'How objects are named: sha1 or sha256' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -s o -d 'Where the index goes' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l progress-title -d 'What the progress is called' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l pack_header -d 'The start of the pack, which somebody has read already' -r
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l stdin -d 'Read the pack from the standard input, and keep it'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l fix-thin -d 'Add the bases that the pack lacks, if they are here'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l rev-index -d 'Write a reverse index too'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l verify -d 'Write nothing; see whether the index is right'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l verify-stat -d 'The same, and list what is in the pack'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l verify-stat-only -d 'The same, and count what is in the pack'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -s v -d 'Show progress'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l show-resolving-progress -d 'Show progress of the second phase at least'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l check-self-contained-and-connected -d 'Refuse broken links; end with 1 if the pack links to what it does not hold'
complete -c pronto -n "__fish_pronto_using_subcommand index-pack" -l report-end-of-input -d 'Write a NUL to the standard error when all has arrived'
complete -c pronto -n "__fish_pronto_using_subcommand init" -l template -d 'Fill the repository with what is in this directory' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -l separate-git-dir -d 'Put the repository there, and a file that points to it into the work tree' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -l object-format -d 'How objects are named: sha1 or sha256' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -l ref-format -d 'How references are stored: files' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -s b -l initial-branch -d 'The name of the first branch' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -l shared -d 'Who else may use it' -r
complete -c pronto -n "__fish_pronto_using_subcommand init" -s q -l quiet -d 'Say nothing but errors'
complete -c pronto -n "__fish_pronto_using_subcommand init" -l bare -d 'Make a repository without a work tree'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s x -l exclude -d 'Skip files matching pattern' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s X -l exclude-from -d 'Read exclude patterns from a file' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l exclude-per-directory -d 'Read additional per-directory exclude patterns from a file' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l with-tree -d 'Pretend that paths removed since this tree are still present' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l abbrev -d 'Use this many digits to display object names' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l format -d 'The format of each entry' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s z -d 'Separate paths with the NUL character'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s t -d 'Identify the file status with tags'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s v -d 'Use lowercase letters for \'assume unchanged\' files'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s f -d 'Use lowercase letters for \'fsmonitor clean\' files'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s c -l cached -d 'Show cached files in the output (default)'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s d -l deleted -d 'Show deleted files in the output'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s m -l modified -d 'Show modified files in the output'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s o -l others -d 'Show other files in the output'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s i -l ignored -d 'Show ignored files in the output'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s s -l stage -d 'Show staged contents\' object name in the output'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s k -l killed -d 'Show files on the filesystem that need to be removed'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l directory -d 'Show \'other\' directories\' names only'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l eol -d 'Show line endings of files'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l empty-directory -d 'Show empty directories as well'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -s u -l unmerged -d 'Show unmerged files in the output'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l resolve-undo -d 'Show resolve-undo information'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l exclude-standard -d 'Add the standard git exclusions'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l full-name -d 'Make the output relative to the top of the work tree'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l error-unmatch -d 'If any file is not in the index, treat this as an error'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l debug -d 'Show debugging data'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l deduplicate -d 'Suppress duplicate entries'
complete -c pronto -n "__fish_pronto_using_subcommand ls-files" -l sparse -d 'Show sparse directories in a sparse index'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l format -d 'What to show of each entry' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l abbrev -d 'Ids in this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -s d -d 'Only trees'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -s r -d 'Also what is in trees below'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -s t -d 'Also the trees that are looked into'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -s z -d 'End lines with NUL, and quote nothing'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -s l -l long -d 'Also the sizes of files'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l name-only -d 'Only names'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l name-status -d 'Only names'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l object-only -d 'Only ids'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l full-name -d 'Names from the top of the work tree'
complete -c pronto -n "__fish_pronto_using_subcommand ls-tree" -l full-tree -d 'Everything, wherever the caller stands'
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l schedule -d 'Only what is due that often: hourly, daily or weekly (run)' -r
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l task -d 'Only this task (run, is-needed)' -r
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l scheduler -d 'Which scheduler to use: auto, crontab, systemd-timer, launchctl or schtasks (start)' -r
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l config-file -d 'The file that lists maintained repositories (register, unregister)' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l auto -d 'Only what the state of the repository asks for (run, is-needed)'
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l detach -d 'Go on in the background (run)'
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -l quiet -d 'Show no progress (run)'
complete -c pronto -n "__fish_pronto_using_subcommand maintenance" -s f -l force -d 'Do not mind that it is not registered (unregister)'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l marker-size -d 'How many marks begin a line of a conflict' -r
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -s L -d 'What a file is called in conflicts; once for each' -r
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -s p -l stdout -d 'Print the result instead of writing it to the first file'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l diff3 -d 'Show in conflicts what both come from'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l zdiff3 -d 'Likewise, lines at their ends taken out'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l ours -d 'Of conflicts take the first file\'s side'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l theirs -d 'Of conflicts take the last file\'s side'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -l union -d 'Of conflicts take both sides'
complete -c pronto -n "__fish_pronto_using_subcommand merge-file" -s q -l quiet -d 'Do not say what is wrong'
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l object-dir -d 'The object directory to work in: the repository\'s own or one of its alternates' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l preferred-pack -d 'Take the copies of this pack of objects that are in several' -r
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l refs-snapshot -d 'What references point to, for the bitmap' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l batch-size -d 'Combine packs that together have at least this size' -r
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l stdin-packs -d 'Cover only the packs whose indexes are named on the standard input'
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l bitmap -d 'Write a bitmap, too'
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l incremental -d 'Leave what there is as it is, and cover new packs by a layer on top of it'
complete -c pronto -n "__fish_pronto_using_subcommand multi-pack-index" -l progress -d 'Show how far it is'
complete -c pronto -n "__fish_pronto_using_subcommand netsync" -l roles -d 'What a trusted peer may do: \'read\' takes from here, \'write\' gives' -r
complete -c pronto -n "__fish_pronto_using_subcommand netsync" -l at -d 'Where a trusted peer is reached' -r
complete -c pronto -n "__fish_pronto_using_subcommand netsync" -l only -d 'Let a trusted peer see and give only these branches, or references from \'refs/\' on' -r
complete -c pronto -n "__fish_pronto_using_subcommand netsync" -l not -d 'Let a trusted peer not see or give these' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l keep-pack -d 'Leave out what is in this pack' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l window -d 'With how many others each object is compared' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l window-memory -d 'How much memory objects may take that are compared, in each thread' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l depth -d 'The longest chain of deltas' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l threads -d 'How many threads may look for deltas' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l compression -d 'How hard to deflate, 0 to 9' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l stdout -d 'Write the pack to the standard output, without an index'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l revs -d 'Read revisions instead of objects: everything they lead to is packed'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l all -d 'Pack everything that references lead to'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l reflog -d 'Pack what the logs of references name'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l indexed-objects -d 'Pack what is staged'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l unpacked -d 'Pack only commits that are in no pack, and what they lead to'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l incremental -d 'Leave out what is in a pack already'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l local -d 'Leave out what an alternate has'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l honor-pack-keep -d 'Leave out what is in packs with a `.keep`'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l thin -d 'Let deltas be based on what the receiver has'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l include-tag -d 'Pack tags of what is packed, too'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l delta-base-offset -d 'Let deltas name their base by its distance'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l no-reuse-delta -d 'Make all deltas anew'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l no-reuse-object -d 'Deflate everything anew'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l sparse -d 'Compare trees only along paths on which something changed'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l use-bitmap-index -d 'Ask bitmaps'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l write-bitmap-index -d 'Write bitmaps beside the pack'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l non-empty -d 'Make no pack of nothing'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l keep-true-parents -d 'Take history as it was written'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l progress -d 'Show progress'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l all-progress -d 'Show progress while a stream is written, too'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -l all-progress-implied -d 'As `--all-progress`, if progress is shown'
complete -c pronto -n "__fish_pronto_using_subcommand pack-objects" -s q -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand pack-refs" -l include -d 'Pack references that match the pattern' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-refs" -l exclude -d 'Leave references that match the pattern' -r
complete -c pronto -n "__fish_pronto_using_subcommand pack-refs" -l all -d 'Pack all references, not only tags'
complete -c pronto -n "__fish_pronto_using_subcommand pack-refs" -l no-prune -d 'Leave the files of references that were packed'
complete -c pronto -n "__fish_pronto_using_subcommand pack-refs" -l auto -d 'Pack only if many references are not packed'
complete -c pronto -n "__fish_pronto_using_subcommand prune" -l expire -d 'Delete only what is older than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand prune" -s n -l dry-run -d 'Delete nothing; show what would be deleted'
complete -c pronto -n "__fish_pronto_using_subcommand prune" -s v -l verbose -d 'Show what is deleted'
complete -c pronto -n "__fish_pronto_using_subcommand prune" -l progress -d 'Show progress'
complete -c pronto -n "__fish_pronto_using_subcommand prune" -l exclude-promisor-objects -d 'Do not look at objects that a remote has promised'
complete -c pronto -n "__fish_pronto_using_subcommand prune-packed" -s n -l dry-run -d 'Delete nothing; show what would be deleted'
complete -c pronto -n "__fish_pronto_using_subcommand prune-packed" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -s r -l rebase -d 'Rebase the own commits upon those of the peer; --no-rebase merges, whatever is configured' -r
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l name -d 'What the peer is called here' -r
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l as -d 'What this repository is called there; a server of netsync:// knows it by its key' -r
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l remote-program -d 'The program on the other side of ssh' -r
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l netsync -d 'Take from a peer in one conversation, without a remote that is configured'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l ff -d 'Move the branch where no merge is needed (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l ff-only -d 'Fail where a merge is needed'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l allow-unrelated -d 'Take and merge even if the two histories have nothing in common'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -l progress -d 'Show progress even if the standard error is no terminal'
complete -c pronto -n "__fish_pronto_using_subcommand pull" -s q -l quiet -d 'Show nothing but errors'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l index-output -d 'Write the index to this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l prefix -d 'Read the tree into this directory of the index' -r
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l empty -d 'Only empty the index'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s v -l verbose -d 'Show the progress of writing files'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s m -d 'Merge with what is in the index'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l trivial -d 'Merge three trees only if no file has to be'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l aggressive -d 'Merge removals and identical additions of three trees, too'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l reset -d 'As -m, but drop what is in conflict and what is changed'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s u -d 'Update the working tree, too'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s i -d 'Do not look at files'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s n -l dry-run -d 'Write nothing'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -l no-sparse-checkout -d 'Take no notice of a sparse checkout'
complete -c pronto -n "__fish_pronto_using_subcommand read-tree" -s q -l quiet -d 'Do not say why it fails'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l expire -d 'Take out lines before this moment (expire)' -r
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l expire-unreachable -d 'Take out lines before this moment of what is not reachable any more (expire)' -r
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l rewrite -d 'Let each line begin where the one before it ends (expire, delete)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l updateref -d 'Let the reference hold what the last line says (expire, delete)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l stale-fix -d 'Take out lines of commits of which something is missing (expire)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -s n -l dry-run -d 'Change nothing (expire, delete)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l verbose -d 'Tell what becomes of each line (expire, delete)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l all -d 'The logs of all references (expire, drop)'
complete -c pronto -n "__fish_pronto_using_subcommand reflog" -l single-worktree -d 'Only those of this work tree (expire, drop)'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l window -d 'With how many others each object is compared' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l window-memory -d 'How much memory objects may take that are compared' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l depth -d 'The longest chain of deltas' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l threads -d 'How many threads may look for deltas' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l keep-pack -d 'Leave this pack as it is' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s g -l geometric -d 'Put packs together until each has so many times the objects of the next smaller one' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l cruft-expiration -d 'With `--cruft`: leave out what is older than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l combine-cruft-below-size -d 'With `--cruft`: leave packs of such objects as they are from this size on' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l max-cruft-size -d 'With `--cruft`: the size of packs of such objects at most' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l expire-to -d 'With `--cruft`: put what is left out into a pack whose path begins like this' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l unpack-unreachable -d 'With `-A`: drop what is older than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s a -d 'Put everything that something leads to into one pack'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s A -d 'As `-a`; what nothing leads to becomes loose when its pack is removed'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s d -d 'Remove packs and loose objects that are of no use any more'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s f -d 'Make all deltas anew'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s F -d 'Deflate everything anew'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s n -d 'Write no lists for servers that hand out files'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s q -l quiet -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s l -l local -d 'Leave objects of alternates where they are'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s b -l write-bitmap-index -d 'Write bitmaps'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l pack-kept-objects -d 'Pack the objects of packs with a `.keep` like others'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -l cruft -d 'As `-a`; what nothing leads to goes into a pack of its own'
complete -c pronto -n "__fish_pronto_using_subcommand repack" -s m -l write-midx -d 'Write one index for all packs'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l recurse-submodules -d 'Update submodules too (handed to git)' -r
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l pathspec-from-file -d 'Read paths from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand reset" -s q -l quiet -d 'Say nothing but errors'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l no-refresh -d 'Do not look which files are not as the new index says'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l mixed -d 'Reset HEAD and the index (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l soft -d 'Reset only HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l hard -d 'Reset HEAD, the index and the work tree'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l merge -d 'Reset HEAD, the index and the work tree, but keep changes that are not staged'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l keep -d 'Reset HEAD, but keep local changes'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -s p -l patch -d 'Choose changes one by one (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -s N -l intent-to-add -d 'Record that paths which leave the index will be added later'
complete -c pronto -n "__fish_pronto_using_subcommand reset" -l pathspec-file-nul -d 'Paths in that file end with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s s -l source -d 'Take contents from this commit or tree, not from the index (with --staged: not from HEAD)' -r
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l recurse-submodules -d 'Update submodules too (handed to git)' -r
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l conflict -d 'How conflicts look, made anew: merge, diff3, zdiff3' -r
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l pathspec-from-file -d 'Read paths from this file' -r
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s S -l staged -d 'Restore the index'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s W -l worktree -d 'Restore the work tree (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l ignore-unmerged -d 'Leave paths in conflict alone'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l overlay -d 'Leave tracked files that the source does not have'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s q -l quiet -d 'Say nothing but errors'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l progress -d 'Show progress even if the standard error is no terminal'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s m -l merge -d 'Make conflicts anew'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s 2 -l ours -d 'Of files in conflict, take the side of HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s 3 -l theirs -d 'Of files in conflict, take the other side'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -s p -l patch -d 'Choose changes one by one (handed to git)'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l ignore-skip-worktree-bits -d 'Include files that are not to be in the work tree'
complete -c pronto -n "__fish_pronto_using_subcommand restore" -l pathspec-file-nul -d 'Paths in that file end with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l listen -d 'Serve all known peers that connect to HOST:PORT, by TLS; \'netsync\' says who is known' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l peer -d 'What the peer is called here, with --stdio: its branches are refs/remotes/NAME/*' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l max-connections -d 'How many sessions may be under way, and how many may wait' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l memory -d 'How many MiB all sessions together may hold; a session takes 12, and 48 more while it is worked for' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l max-received -d 'How many MiB are taken in one session' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l handshake-timeout -d 'How many seconds the handshake and the greeting may take together' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l idle-timeout -d 'How many seconds a peer may take to move 16 KiB, or to take a step of the protocol' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l slow-timeout -d 'After how many seconds without 40 KiB or a step a session may lose its place to one that waits' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l wait-timeout -d 'How many seconds a session may wait for a place before it is told to try again later' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l session-timeout -d 'How many seconds a session may take in all' -r
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l netsync -d 'Speak netsync: both sides give and take'
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l stdio -d 'Serve one peer on the standard input and output, as \'sync\' has it done'
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l ff -d 'Move branches forward to those of the peer, unless they are checked out'
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l allow-unrelated -d 'Take part even if the two histories have nothing in common'
complete -c pronto -n "__fish_pronto_using_subcommand serve" -l once -d 'End after the first connection'
complete -c pronto -n "__fish_pronto_using_subcommand show-index" -l object-format -d 'How objects are named: sha1 or sha256' -r
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -s s -l hash -d 'Only ids, in this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l abbrev -d 'Ids in this many digits' -r
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l exclude-existing -d 'Of the references read from the standard input, those that do not exist' -r
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l tags -d 'Only tags'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l branches -d 'Only branches'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l heads -d 'Only branches'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -s h -l head -d 'Also HEAD'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -l verify -d 'Take names in full, and insist on them'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -s d -l dereference -d 'Also what tags point to in the end'
complete -c pronto -n "__fish_pronto_using_subcommand show-ref" -s q -l quiet -d 'Print nothing'
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -l rules-file -d 'Check by the rules of this file' -r -F
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -l cone -d 'Directories instead of patterns'
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -l sparse-index -d 'Have entries for whole directories in the index'
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -l stdin -d 'Read directories or patterns from the standard input, too'
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -l skip-checks -d 'Take the words as they are'
complete -c pronto -n "__fish_pronto_using_subcommand sparse-checkout" -s z -d 'End paths with a NUL, on both sides'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l porcelain -d 'Machine-readable output' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -s u -l untracked-files -d 'Show untracked files: all, normal, no' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -l ignored -d 'Show ignored files: traditional, matching, no' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -l ignore-submodules -d 'Ignore changes to submodules: all, dirty, untracked, none' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -s M -l find-renames -d 'Detect renames, optionally with a similarity' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -l column -d 'List untracked files in columns: always, never, auto, column, row, plain, dense, nodense' -r
complete -c pronto -n "__fish_pronto_using_subcommand status" -s s -l short -d 'Show status concisely'
complete -c pronto -n "__fish_pronto_using_subcommand status" -s v -l verbose -d 'Show staged changes line by line; twice, those of the work tree as well'
complete -c pronto -n "__fish_pronto_using_subcommand status" -s b -l branch -d 'Show branch information'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l show-stash -d 'Show stash information'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l ahead-behind -d 'Compute full ahead/behind values'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l long -d 'Show status in long format (default)'
complete -c pronto -n "__fish_pronto_using_subcommand status" -s z -l null -d 'Terminate entries with NUL'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l renames -d 'Detect renames'
complete -c pronto -n "__fish_pronto_using_subcommand status" -l no-column -d 'List untracked files one below the other'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s t -l track -d 'Let the new branch follow the one it starts at' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l orphan -d 'Begin a branch without history' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l recurse-submodules -d 'Update submodules too (handed to git)' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s c -l create -d 'Create this branch and go to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s C -l force-create -d 'Create or move this branch and go to it' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l conflict -d 'How conflicts look in such a merge: merge, diff3, zdiff3' -r
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s q -l quiet -d 'Say nothing but errors'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l progress -d 'Show progress even if the standard error is no terminal'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s f -l force -d 'Throw away local changes, and files that are in the way'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s d -l detach -d 'Leave all branches for the commit itself'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l overwrite-ignore -d 'Overwrite ignored files (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l ignore-other-worktrees -d 'Take a branch even if another work tree has it'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l guess -d 'Begin a local branch of the same name if a remote has one (the default)'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -l discard-changes -d 'Throw away local changes'
complete -c pronto -n "__fish_pronto_using_subcommand switch" -s m -l merge -d 'Merge local changes into the new branch'
complete -c pronto -n "__fish_pronto_using_subcommand symbolic-ref" -s m -d 'Why, for the log' -r
complete -c pronto -n "__fish_pronto_using_subcommand symbolic-ref" -s q -l quiet -d 'Say nothing when the reference is not symbolic'
complete -c pronto -n "__fish_pronto_using_subcommand symbolic-ref" -s d -l delete -d 'Remove the reference'
complete -c pronto -n "__fish_pronto_using_subcommand symbolic-ref" -l short -d 'Show the short name of the other reference'
complete -c pronto -n "__fish_pronto_using_subcommand symbolic-ref" -l no-recurse -d 'Show the next reference, even if that is symbolic too'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l include -d 'Let only these branches, or references from \'refs/\' on, take part' -r
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l exclude -d 'Let these take no part' -r
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l name -d 'What the peer is called here: its branches become refs/remotes/NAME/*' -r
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l as -d 'What this repository is called there; a server of netsync:// knows it by its key' -r
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l remote-program -d 'The program on the other side of ssh' -r
complete -c pronto -n "__fish_pronto_using_subcommand sync" -s n -l dry-run -d 'Only tell what would be done'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l pull -d 'Only take, give nothing'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l push -d 'Only give, take nothing'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l ff -d 'Move branches forward to those of the peer, unless they are checked out'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l allow-unrelated -d 'Sync even if the two histories have nothing in common'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l json -d 'Tell what was done as JSON'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -l progress -d 'Show progress even if the standard error is no terminal'
complete -c pronto -n "__fish_pronto_using_subcommand sync" -s q -l quiet -d 'Show nothing but errors'
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -l strict -d 'Write nothing that is broken, or links to what is not there' -r
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -l max-input-size -d 'Refuse packs of more bytes than this' -r
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -l pack_header -d 'The start of the pack, which somebody has read already' -r
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -s n -d 'Write nothing'
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -s q -d 'Show no progress'
complete -c pronto -n "__fish_pronto_using_subcommand unpack-objects" -s r -d 'Make what can be made of a broken pack'
complete -c pronto -n "__fish_pronto_using_subcommand verify-pack" -l object-format -d 'How objects are named: sha1 or sha256' -r
complete -c pronto -n "__fish_pronto_using_subcommand verify-pack" -s v -l verbose -d 'List what is in the packs'
complete -c pronto -n "__fish_pronto_using_subcommand verify-pack" -s s -l stat-only -d 'Count what is in the packs, and say nothing else'
complete -c pronto -n "__fish_pronto_using_subcommand version" -l build-options -d 'Also tell how this binary was built'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s b -d 'Make a branch (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s B -d 'Make or move a branch (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l reason -d 'Why it is locked (add, lock)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l track -d 'Let the new branch follow what it starts at (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l carry -d 'Give the new worktree the ignored files that match, as in .gitignore; several times (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l carry-reflink -d 'Whether what is carried shares its blocks: `always` (the default), `auto` or `never` (add)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l expire -d 'Only those unused since then (list, prune)' -r
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s f -l force -d 'Take a branch that is in use, or a place; twice: a locked one (add, move, remove)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s d -l detach -d 'Be on no branch (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l orphan -d 'Begin a branch without commits (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l no-checkout -d 'Write no files (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l lock -d 'Keep it locked (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s q -l quiet -d 'Say nothing but errors (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l guess-remote -d 'Take a branch of a remote with the name of the directory (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l recurse-submodules -d 'Check out the submodules too, from the objects that the current worktree has of them (add)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -l porcelain -d 'Print for scripts (list)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s z -d 'End lines with NUL (list)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s v -l verbose -d 'Say more (list, prune)'
complete -c pronto -n "__fish_pronto_using_subcommand worktree" -s n -l dry-run -d 'Only say what would go (prune)'
complete -c pronto -n "__fish_pronto_using_subcommand write-tree" -l prefix -d 'The tree of this directory' -r
complete -c pronto -n "__fish_pronto_using_subcommand write-tree" -l missing-ok -d 'Objects need not be there'

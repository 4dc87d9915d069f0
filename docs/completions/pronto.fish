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
complete -c pronto -n "__fish_pronto_needs_command" -f -a "help" -d 'show the commands, or the manual of one'
complete -c pronto -n "__fish_pronto_needs_command" -f -a "version" -d 'show the version of pronto'
complete -c pronto -n "__fish_pronto_using_subcommand help" -s a -l all -d 'List all commands, with what becomes of those that pronto lacks'
complete -c pronto -n "__fish_pronto_using_subcommand version" -l build-options -d 'Also tell how this binary was built'

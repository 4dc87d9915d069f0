# Completion for fish. `cargo xtask docs` writes this file; its source is in xtask/docs/src/completions.
#
# Install it as pronto.fish in a directory of fish_complete_path. `pronto completion-candidates` decides what may stand
# at the cursor. Calls that go to git are completed as those of git.

function __pronto_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    command -sq -- $program; or set program pronto
    set -l lines ($program completion-candidates fish $words "$current" 2>/dev/null)
    set -l flags (string split ' ' -- "$lines[1]")
    if contains -- git $flags
        # git, where that is pronto, has the completion of git already.
        if not string match -qr '(^|/)git$' -- $words[1]
            complete -C "git "(string join ' ' -- (string escape -- $words[2..-1]) "$current")
        end
    end
    if test (count $lines) -gt 1
        printf '%s\n' $lines[2..-1]
    end
    if contains -- files $flags
        __fish_complete_path "$current"
    else if contains -- directories $flags
        __fish_complete_directories "$current" ''
    end
end

complete -c pronto -f -a '(__pronto_complete)'
# Also for git where that is pronto.
if command -sq git; and command -sq pronto
    if test (realpath (command -s git)) = (realpath (command -s pronto))
        complete -c git -f -a '(__pronto_complete)'
    end
end

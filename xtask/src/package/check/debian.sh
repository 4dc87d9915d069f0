# What a Debian package adds: manual pages, completions in three shells, and a unit.
man pronto-clone | grep -q 'pronto clone'
man pronto >/dev/null
bash --norc -ec '
    . /usr/share/bash-completion/bash_completion
    for load in _comp_load __load_completion _completion_loader; do
        ! declare -F "$load" >/dev/null || { "$load" pronto || true; break; }
    done
    complete -p pronto
    COMP_WORDS=(pronto clo) COMP_CWORD=1 COMP_LINE="pronto clo" COMP_POINT=10
    compopt() { :; }
    _pronto
    printf "%s\n" "${COMPREPLY[@]}" | grep -q "^clone"
'
zsh -fc 'autoload -U compinit && compinit -u -D && [[ $_comps[pronto] = _pronto ]] && autoload -U +X _pronto'
fish -c 'complete -C "pronto clo"' | grep -q '^clone'
zcat /usr/share/doc/pronto/changelog.gz | grep -q '^pronto ('
test -s /usr/share/doc/pronto/copyright
dpkg --verify pronto

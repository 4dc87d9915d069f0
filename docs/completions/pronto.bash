# Completion for bash. `cargo xtask docs` writes this file; its source is in xtask/docs/src/completions.
#
# Source it, or install it as share/bash-completion/completions/pronto. `pronto completion-candidates` decides what may
# stand at the cursor. Calls that go to git are completed by git's own completion, if that is installed.

# Completes the words by the completion of git. Returns 1 if there is none.
_pronto_git() {
    local loader
    if ! declare -F __git_func_wrap >/dev/null; then
        for loader in _comp_load __load_completion _completion_loader; do
            if declare -F "$loader" >/dev/null; then
                "$loader" git >/dev/null 2>&1
                break
            fi
        done
        _pronto_register
    fi
    declare -F __git_func_wrap >/dev/null && declare -F __git_main >/dev/null || return 1
    # These candidates end with a space of their own.
    compopt -o nospace 2>/dev/null
    __git_func_wrap __git_main
}

# Adds a candidate that is not among COMPREPLY already.
_pronto_add() {
    local known
    for known in "${COMPREPLY[@]}"; do
        [[ ${known% } != "${1% }" ]] || return 0
    done
    COMPREPLY+=("$1")
}

_pronto() {
    local i=0 count=0 word line flags candidate current prefix program space=
    local rest=${COMP_LINE:0:COMP_POINT}
    local -a words
    # Readline breaks words at characters such as `=` and `:`. Those that touch each other are one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        line=${rest#"${rest%%[![:space:]]*}"}
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$line
        if ((i > 0)) && [[ $line == "$rest" ]]; then
            words[count - 1]+=$word
        else
            words[count++]=$word
        fi
        rest=${line:${#word}}
    done
    program=$(type -P -- "$1") || program=pronto
    line=$("$program" completion-candidates bash "${words[@]}" 2>/dev/null) || return
    # Without candidates there is a single line.
    line+=$'\n'
    flags=" ${line%%$'\n'*} "
    COMPREPLY=()
    if [[ $flags == *" git "* ]] && _pronto_git; then
        space=' '
    fi
    # Readline replaces only the text behind the last of these characters.
    current=${words[count - 1]}
    prefix=
    case $COMP_WORDBREAKS in
        *=*:* | *:*=*) prefix=${current%"${current##*[=:]}"} ;;
        *=*) prefix=${current%"${current##*=}"} ;;
        *:*) prefix=${current%"${current##*:}"} ;;
    esac
    while IFS= read -r candidate; do
        candidate=${candidate%%$'\t'*}
        [[ -n $candidate ]] || continue
        candidate=${candidate#"$prefix"}
        if [[ $flags != *" paths "* && $candidate == *[!A-Za-z0-9_./@%+,:=^-]* ]]; then
            printf -v candidate %q "$candidate"
        fi
        [[ $candidate == *[=/] ]] || candidate+=$space
        _pronto_add "$candidate"
    done <<<"${line#*$'\n'}"
    if [[ $flags == *" files "* || $flags == *" directories "* || ($flags == *" git "* && -z $space) ]]; then
        local kind=-f
        [[ $flags != *" directories "* ]] || kind=-d
        compopt -o filenames 2>/dev/null
        while IFS= read -r candidate; do
            [[ -z $candidate ]] || _pronto_add "$candidate"
        done < <(compgen "$kind" -- "${current#"$prefix"}")
    fi
    if [[ $flags == *" paths "* ]]; then
        compopt -o filenames 2>/dev/null
    fi
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

# Registers the completion of pronto, and of git where that is pronto.
_pronto_register() {
    local git pronto
    complete -F _pronto pronto
    git=$(type -P git) && pronto=$(type -P pronto) && [[ $git -ef $pronto ]] && complete -F _pronto git
}

_pronto_register

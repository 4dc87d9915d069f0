_pronto() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="pronto"
                ;;
            pronto,help)
                cmd="pronto__subcmd__help"
                ;;
            pronto,version)
                cmd="pronto__subcmd__version"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        pronto)
            opts="-C -c -p -P -v -h --config-env --exec-path --paginate --no-pager --bare --git-dir --work-tree --namespace --attr-source --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --literal-pathspecs --no-literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --trace-chrome --list-native --version --help help version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                -C)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -c)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config-env)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --git-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --work-tree)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --namespace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --attr-source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-chrome)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        pronto__subcmd__help)
            opts="-a --all"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        pronto__subcmd__version)
            opts="--build-options"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _pronto -o nosort -o bashdefault -o default pronto
else
    complete -F _pronto -o bashdefault -o default pronto
fi

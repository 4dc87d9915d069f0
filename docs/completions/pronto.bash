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
            pronto,add)
                cmd="pronto__subcmd__add"
                ;;
            pronto,archive)
                cmd="pronto__subcmd__archive"
                ;;
            pronto,bundle)
                cmd="pronto__subcmd__bundle"
                ;;
            pronto,cat-file)
                cmd="pronto__subcmd__cat__subcmd__file"
                ;;
            pronto,check-attr)
                cmd="pronto__subcmd__check__subcmd__attr"
                ;;
            pronto,check-ignore)
                cmd="pronto__subcmd__check__subcmd__ignore"
                ;;
            pronto,checkout)
                cmd="pronto__subcmd__checkout"
                ;;
            pronto,checkout-index)
                cmd="pronto__subcmd__checkout__subcmd__index"
                ;;
            pronto,clean)
                cmd="pronto__subcmd__clean"
                ;;
            pronto,clone)
                cmd="pronto__subcmd__clone"
                ;;
            pronto,commit)
                cmd="pronto__subcmd__commit"
                ;;
            pronto,commit-graph)
                cmd="pronto__subcmd__commit__subcmd__graph"
                ;;
            pronto,config)
                cmd="pronto__subcmd__config"
                ;;
            pronto,diff-files)
                cmd="pronto__subcmd__diff__subcmd__files"
                ;;
            pronto,diff-index)
                cmd="pronto__subcmd__diff__subcmd__index"
                ;;
            pronto,diff-tree)
                cmd="pronto__subcmd__diff__subcmd__tree"
                ;;
            pronto,fetch)
                cmd="pronto__subcmd__fetch"
                ;;
            pronto,fetch-pack)
                cmd="pronto__subcmd__fetch__subcmd__pack"
                ;;
            pronto,for-each-repo)
                cmd="pronto__subcmd__for__subcmd__each__subcmd__repo"
                ;;
            pronto,fsmonitor--daemon)
                cmd="pronto__subcmd__fsmonitor__subcmd____subcmd__daemon"
                ;;
            pronto,gc)
                cmd="pronto__subcmd__gc"
                ;;
            pronto,hash-object)
                cmd="pronto__subcmd__hash__subcmd__object"
                ;;
            pronto,help)
                cmd="pronto__subcmd__help"
                ;;
            pronto,index-pack)
                cmd="pronto__subcmd__index__subcmd__pack"
                ;;
            pronto,init)
                cmd="pronto__subcmd__init"
                ;;
            pronto,ls-files)
                cmd="pronto__subcmd__ls__subcmd__files"
                ;;
            pronto,ls-remote)
                cmd="pronto__subcmd__ls__subcmd__remote"
                ;;
            pronto,ls-tree)
                cmd="pronto__subcmd__ls__subcmd__tree"
                ;;
            pronto,maintenance)
                cmd="pronto__subcmd__maintenance"
                ;;
            pronto,merge-file)
                cmd="pronto__subcmd__merge__subcmd__file"
                ;;
            pronto,multi-pack-index)
                cmd="pronto__subcmd__multi__subcmd__pack__subcmd__index"
                ;;
            pronto,netsync)
                cmd="pronto__subcmd__netsync"
                ;;
            pronto,pack-objects)
                cmd="pronto__subcmd__pack__subcmd__objects"
                ;;
            pronto,pack-refs)
                cmd="pronto__subcmd__pack__subcmd__refs"
                ;;
            pronto,prune)
                cmd="pronto__subcmd__prune"
                ;;
            pronto,prune-packed)
                cmd="pronto__subcmd__prune__subcmd__packed"
                ;;
            pronto,pull)
                cmd="pronto__subcmd__pull"
                ;;
            pronto,push)
                cmd="pronto__subcmd__push"
                ;;
            pronto,read-tree)
                cmd="pronto__subcmd__read__subcmd__tree"
                ;;
            pronto,receive-pack)
                cmd="pronto__subcmd__receive__subcmd__pack"
                ;;
            pronto,reflog)
                cmd="pronto__subcmd__reflog"
                ;;
            pronto,refs)
                cmd="pronto__subcmd__refs"
                ;;
            pronto,remote)
                cmd="pronto__subcmd__remote"
                ;;
            pronto,repack)
                cmd="pronto__subcmd__repack"
                ;;
            pronto,reset)
                cmd="pronto__subcmd__reset"
                ;;
            pronto,restore)
                cmd="pronto__subcmd__restore"
                ;;
            pronto,rev-list)
                cmd="pronto__subcmd__rev__subcmd__list"
                ;;
            pronto,rev-parse)
                cmd="pronto__subcmd__rev__subcmd__parse"
                ;;
            pronto,send-pack)
                cmd="pronto__subcmd__send__subcmd__pack"
                ;;
            pronto,serve)
                cmd="pronto__subcmd__serve"
                ;;
            pronto,shell)
                cmd="pronto__subcmd__shell"
                ;;
            pronto,show-index)
                cmd="pronto__subcmd__show__subcmd__index"
                ;;
            pronto,show-ref)
                cmd="pronto__subcmd__show__subcmd__ref"
                ;;
            pronto,sparse-checkout)
                cmd="pronto__subcmd__sparse__subcmd__checkout"
                ;;
            pronto,status)
                cmd="pronto__subcmd__status"
                ;;
            pronto,store)
                cmd="pronto__subcmd__store"
                ;;
            pronto,switch)
                cmd="pronto__subcmd__switch"
                ;;
            pronto,symbolic-ref)
                cmd="pronto__subcmd__symbolic__subcmd__ref"
                ;;
            pronto,sync)
                cmd="pronto__subcmd__sync"
                ;;
            pronto,unpack-objects)
                cmd="pronto__subcmd__unpack__subcmd__objects"
                ;;
            pronto,update-index)
                cmd="pronto__subcmd__update__subcmd__index"
                ;;
            pronto,upload-archive)
                cmd="pronto__subcmd__upload__subcmd__archive"
                ;;
            pronto,upload-pack)
                cmd="pronto__subcmd__upload__subcmd__pack"
                ;;
            pronto,verify-pack)
                cmd="pronto__subcmd__verify__subcmd__pack"
                ;;
            pronto,version)
                cmd="pronto__subcmd__version"
                ;;
            pronto,worktree)
                cmd="pronto__subcmd__worktree"
                ;;
            pronto,write-tree)
                cmd="pronto__subcmd__write__subcmd__tree"
                ;;
            pronto__subcmd__netsync,forget)
                cmd="pronto__subcmd__netsync__subcmd__forget"
                ;;
            pronto__subcmd__netsync,key)
                cmd="pronto__subcmd__netsync__subcmd__key"
                ;;
            pronto__subcmd__netsync,keygen)
                cmd="pronto__subcmd__netsync__subcmd__keygen"
                ;;
            pronto__subcmd__netsync,peers)
                cmd="pronto__subcmd__netsync__subcmd__peers"
                ;;
            pronto__subcmd__netsync,revoke)
                cmd="pronto__subcmd__netsync__subcmd__revoke"
                ;;
            pronto__subcmd__netsync,trust)
                cmd="pronto__subcmd__netsync__subcmd__trust"
                ;;
            pronto__subcmd__serve,repository)
                cmd="pronto__subcmd__serve__subcmd__repository"
                ;;
            pronto__subcmd__serve,token)
                cmd="pronto__subcmd__serve__subcmd__token"
                ;;
            pronto__subcmd__serve,user)
                cmd="pronto__subcmd__serve__subcmd__user"
                ;;
            pronto__subcmd__serve__subcmd__repository,create)
                cmd="pronto__subcmd__serve__subcmd__repository__subcmd__create"
                ;;
            pronto__subcmd__serve__subcmd__repository,list)
                cmd="pronto__subcmd__serve__subcmd__repository__subcmd__list"
                ;;
            pronto__subcmd__serve__subcmd__repository,remove)
                cmd="pronto__subcmd__serve__subcmd__repository__subcmd__remove"
                ;;
            pronto__subcmd__serve__subcmd__user,add)
                cmd="pronto__subcmd__serve__subcmd__user__subcmd__add"
                ;;
            pronto__subcmd__serve__subcmd__user,key)
                cmd="pronto__subcmd__serve__subcmd__user__subcmd__key"
                ;;
            pronto__subcmd__serve__subcmd__user,list)
                cmd="pronto__subcmd__serve__subcmd__user__subcmd__list"
                ;;
            pronto__subcmd__serve__subcmd__user,remove)
                cmd="pronto__subcmd__serve__subcmd__user__subcmd__remove"
                ;;
            pronto__subcmd__serve__subcmd__user__subcmd__key,add)
                cmd="pronto__subcmd__serve__subcmd__user__subcmd__key__subcmd__add"
                ;;
            pronto__subcmd__serve__subcmd__user__subcmd__key,authorized)
                cmd="pronto__subcmd__serve__subcmd__user__subcmd__key__subcmd__authorized"
                ;;
            pronto__subcmd__serve__subcmd__user__subcmd__key,list)
                cmd="pronto__subcmd__serve__subcmd__user__subcmd__key__subcmd__list"
                ;;
            pronto__subcmd__serve__subcmd__user__subcmd__key,remove)
                cmd="pronto__subcmd__serve__subcmd__user__subcmd__key__subcmd__remove"
                ;;
            pronto__subcmd__store,config)
                cmd="pronto__subcmd__store__subcmd__config"
                ;;
            pronto__subcmd__store,copy)
                cmd="pronto__subcmd__store__subcmd__copy"
                ;;
            pronto__subcmd__store,export)
                cmd="pronto__subcmd__store__subcmd__export"
                ;;
            pronto__subcmd__store,head)
                cmd="pronto__subcmd__store__subcmd__head"
                ;;
            pronto__subcmd__store,import)
                cmd="pronto__subcmd__store__subcmd__import"
                ;;
            pronto__subcmd__store,list)
                cmd="pronto__subcmd__store__subcmd__list"
                ;;
            pronto__subcmd__store,upkeep)
                cmd="pronto__subcmd__store__subcmd__upkeep"
                ;;
            pronto__subcmd__store,verify)
                cmd="pronto__subcmd__store__subcmd__verify"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        pronto)
            opts="-C -c -p -P -v -h --config-env --exec-path --paginate --no-pager --bare --git-dir --work-tree --namespace --attr-source --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --literal-pathspecs --no-literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --trace-chrome --list-native --version --help add archive bundle cat-file check-attr check-ignore checkout checkout-index clean clone commit commit-graph config diff-files diff-index diff-tree fetch fetch-pack for-each-repo fsmonitor--daemon gc hash-object help index-pack init ls-files ls-remote ls-tree maintenance merge-file multi-pack-index netsync pack-objects pack-refs prune prune-packed pull push read-tree receive-pack reflog refs remote repack reset restore rev-list rev-parse send-pack serve shell show-index show-ref sparse-checkout status store switch symbolic-ref sync unpack-objects update-index upload-archive upload-pack verify-pack version worktree write-tree"
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
        pronto__subcmd__add)
            opts="-n -v -i -p -e -f -u -N -A --dry-run --verbose --interactive --patch --edit --force --update --renormalize --intent-to-add --all --ignore-removal --refresh --ignore-errors --ignore-missing --sparse --chmod --no-warn-embedded-repo --pathspec-from-file --pathspec-file-nul"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --chmod)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pathspec-from-file)
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
        pronto__subcmd__archive)
            opts=""
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
        pronto__subcmd__bundle)
            opts=""
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
        pronto__subcmd__cat__subcmd__file)
            opts="-e -p -t -s -z -Z --allow-unknown-type --batch --batch-check --batch-command --batch-all-objects --buffer --unordered"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --batch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --batch-check)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --batch-command)
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
        pronto__subcmd__check__subcmd__attr)
            opts="-a -z --all --cached --stdin"
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
        pronto__subcmd__check__subcmd__ignore)
            opts="-q -v -z -n --quiet --verbose --stdin --non-matching --no-index"
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
        pronto__subcmd__checkout)
            opts="-q -f -d -t -b -B -l -2 -3 -p -m --quiet --progress --force --detach --track --orphan --overwrite-ignore --ignore-other-worktrees --guess --recurse-submodules --ours --theirs --patch --merge --conflict --overlay --ignore-skip-worktree-bits --pathspec-from-file --pathspec-file-nul"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --track)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --orphan)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --recurse-submodules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -b)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -B)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --conflict)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pathspec-from-file)
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
        pronto__subcmd__checkout__subcmd__index)
            opts="-a -f -q -n -u -z --all --ignore-skip-worktree-bits --force --quiet --no-create --index --stdin --temp --prefix --stage"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --prefix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stage)
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
        pronto__subcmd__clean)
            opts="-q -n -f -i -d -e -x -X --quiet --dry-run --force --interactive --exclude"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --exclude)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -e)
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
        pronto__subcmd__clone)
            opts="-v -q -n -l -s -j -o -b -u -c -4 -6 --verbose --quiet --progress --reject-shallow --sparse --no-checkout --bare --mirror --local --no-hardlinks --shared --recurse-submodules --jobs --template --reference --reference-if-able --origin --branch --revision --upload-pack --depth --shallow-since --shallow-exclude --single-branch --no-tags --shallow-submodules --separate-git-dir --ref-format --config --server-option --filter --bundle-uri --ipv4 --ipv6"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --recurse-submodules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jobs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --template)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reference)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reference-if-able)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --origin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --branch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -b)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --revision)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --upload-pack)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -u)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shallow-since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shallow-exclude)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --separate-git-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ref-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -c)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-option)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --filter)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bundle-uri)
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
        pronto__subcmd__commit)
            opts="-q -m -F -n --quiet --message --file --no-verify --allow-empty --allow-empty-message --cleanup"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --message)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -m)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -F)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cleanup)
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
        pronto__subcmd__commit__subcmd__graph)
            opts="--object-dir --reachable --stdin-packs --stdin-commits --append --changed-paths --max-new-filters --split --max-commits --size-multiple --expire-time --shallow --progress"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --object-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-new-filters)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --split)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-commits)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size-multiple)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --expire-time)
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
        pronto__subcmd__config)
            opts=""
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
        pronto__subcmd__diff__subcmd__files)
            opts="-0 -1 -2 -3 -s -z -R -M -C -l --base --ours --theirs --raw --name-only --name-status --no-patch --quiet --exit-code --abbrev --full-index --diff-filter --find-renames --find-copies --no-renames --relative --ignore-submodules"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --abbrev)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --diff-filter)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --find-renames)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -M)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --find-copies)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -C)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -l)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --relative)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ignore-submodules)
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
        pronto__subcmd__diff__subcmd__index)
            opts="-m -s -z -R -M -C -l --cached --merge-base --raw --name-only --name-status --no-patch --quiet --exit-code --abbrev --full-index --diff-filter --find-renames --find-copies --no-renames --relative --ignore-submodules"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --abbrev)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --diff-filter)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --find-renames)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -M)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --find-copies)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -C)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -l)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --relative)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ignore-submodules)
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
        pronto__subcmd__diff__subcmd__tree)
            opts="-r -t -m -s -z -R -M -C -l --root --stdin --no-commit-id --raw --name-only --name-status --no-patch --quiet --exit-code --abbrev --full-index --diff-filter --find-renames --find-copies --no-renames --relative --ignore-submodules"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --abbrev)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --diff-filter)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --find-renames)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -M)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --find-copies)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -C)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -l)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --relative)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ignore-submodules)
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
        pronto__subcmd__fetch)
            opts="-v -q -m -j -a -f -t -n -p -P -k -u -o -4 -6 --verbose --quiet --progress --all --multiple --jobs --append --atomic --upload-pack --force --tags --prune --prune-tags --dry-run --porcelain --no-write-fetch-head --keep --update-head-ok --depth --deepen --shallow-since --shallow-exclude --unshallow --update-shallow --refmap --server-option --filter --refetch --negotiate-only --negotiation-restrict --negotiation-tip --negotiation-include --prefetch --set-upstream --write-commit-graph --no-auto-maintenance --no-auto-gc --show-forced-updates --stdin --recurse-submodules --recurse-submodules-default --submodule-prefix --ipv4 --ipv6"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --jobs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --upload-pack)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --deepen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shallow-since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shallow-exclude)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --refmap)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-option)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --filter)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --negotiation-restrict)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --negotiation-tip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --negotiation-include)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --recurse-submodules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --recurse-submodules-default)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --submodule-prefix)
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
        pronto__subcmd__fetch__subcmd__pack)
            opts="-q -k -v --all --stdin --quiet --keep --thin --include-tag --upload-pack --exec --depth --shallow-since --shallow-exclude --deepen-relative --refetch --filter --no-filter --from-promisor --lock-pack --cloning --update-shallow --check-self-contained-and-connected --diag-url --no-progress"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --upload-pack)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shallow-since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shallow-exclude)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --filter)
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
        pronto__subcmd__for__subcmd__each__subcmd__repo)
            opts=""
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
        pronto__subcmd__fsmonitor__subcmd____subcmd__daemon)
            opts="--detach --ipc-threads --start-timeout"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --ipc-threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --start-timeout)
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
        pronto__subcmd__gc)
            opts="-q --quiet --prune --cruft --max-cruft-size --aggressive --auto --detach --force --keep-largest-pack --expire-to --skip-foreground-tasks"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --prune)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cruft-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --expire-to)
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
        pronto__subcmd__hash__subcmd__object)
            opts="-t -w --stdin --stdin-paths --no-filters --literally --path"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path)
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
        pronto__subcmd__index__subcmd__pack)
            opts="-o -v --stdin --fix-thin --strict --fsck-objects --keep --promisor --threads --max-input-size --index-version --rev-index --verify --verify-stat --verify-stat-only --object-format --progress-title --show-resolving-progress --check-self-contained-and-connected --report-end-of-input --pack_header"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --strict)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fsck-objects)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --keep)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --promisor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-input-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --index-version)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --object-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --progress-title)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pack_header)
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
        pronto__subcmd__init)
            opts="-q -b --quiet --bare --template --separate-git-dir --object-format --ref-format --initial-branch --shared"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --template)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --separate-git-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --object-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ref-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --initial-branch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -b)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shared)
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
        pronto__subcmd__ls__subcmd__files)
            opts="-z -t -v -f -c -d -m -o -i -s -k -u -x -X --cached --deleted --modified --others --ignored --stage --killed --directory --eol --empty-directory --unmerged --resolve-undo --exclude --exclude-from --exclude-per-directory --exclude-standard --full-name --error-unmatch --with-tree --abbrev --debug --deduplicate --sparse --format"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --exclude)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -x)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -X)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude-per-directory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --with-tree)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --abbrev)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
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
        pronto__subcmd__ls__subcmd__remote)
            opts="-q -t -h -b -o --quiet --exec --upload-pack --tags --heads --branches --refs --get-url --sort --exit-code --symref --server-option"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --upload-pack)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-option)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
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
        pronto__subcmd__ls__subcmd__tree)
            opts="-d -r -t -z -l --long --name-only --name-status --object-only --full-name --full-tree --format --abbrev"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --abbrev)
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
        pronto__subcmd__maintenance)
            opts="-f --auto --detach --quiet --schedule --task --scheduler --config-file --force"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --schedule)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --task)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scheduler)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config-file)
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
        pronto__subcmd__merge__subcmd__file)
            opts="-p -q -L --stdout --diff3 --zdiff3 --ours --theirs --union --marker-size --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --marker-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -L)
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
        pronto__subcmd__multi__subcmd__pack__subcmd__index)
            opts="--object-dir --preferred-pack --stdin-packs --bitmap --refs-snapshot --incremental --batch-size --progress"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --object-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --preferred-pack)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --refs-snapshot)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --batch-size)
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
        pronto__subcmd__netsync)
            opts="keygen key peers trust revoke forget"
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
        pronto__subcmd__netsync__subcmd__forget)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
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
        pronto__subcmd__netsync__subcmd__key)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
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
        pronto__subcmd__netsync__subcmd__keygen)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
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
        pronto__subcmd__netsync__subcmd__peers)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
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
        pronto__subcmd__netsync__subcmd__revoke)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
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
        pronto__subcmd__netsync__subcmd__trust)
            opts="--roles --at --only --not"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --roles)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --only)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --not)
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
        pronto__subcmd__pack__subcmd__objects)
            opts="-q --stdout --revs --all --reflog --indexed-objects --unpacked --incremental --local --honor-pack-keep --keep-pack --thin --include-tag --delta-base-offset --no-reuse-delta --no-reuse-object --window --window-memory --depth --threads --compression --sparse --use-bitmap-index --write-bitmap-index --non-empty --keep-true-parents --progress --all-progress --all-progress-implied"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --keep-pack)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --window-memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --compression)
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
        pronto__subcmd__pack__subcmd__refs)
            opts="--all --no-prune --auto --include --exclude"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --include)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude)
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
        pronto__subcmd__prune)
            opts="-n -v --dry-run --verbose --progress --expire --exclude-promisor-objects"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --expire)
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
        pronto__subcmd__prune__subcmd__packed)
            opts="-n -q --dry-run --quiet"
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
        pronto__subcmd__pull)
            opts="-r -q --netsync --ff --ff-only --rebase --allow-unrelated --name --as --remote-program --progress --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --rebase)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -r)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --as)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --remote-program)
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
        pronto__subcmd__push)
            opts="-v -q -d -n -f -u -o -4 -6 --verbose --quiet --repo --all --branches --mirror --delete --tags --dry-run --porcelain --force --force-with-lease --force-if-includes --recurse-submodules --thin --receive-pack --exec --set-upstream --progress --prune --no-verify --follow-tags --signed --atomic --push-option --ipv4 --ipv6"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --repo)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --force-with-lease)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --recurse-submodules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --receive-pack)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --signed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --push-option)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
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
        pronto__subcmd__read__subcmd__tree)
            opts="-v -m -u -i -n -q --index-output --empty --verbose --trivial --aggressive --reset --prefix --dry-run --no-sparse-checkout --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --index-output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefix)
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
        pronto__subcmd__receive__subcmd__pack)
            opts="-q --quiet --stateless-rpc --http-backend-info-refs --skip-connectivity-check --reject-thin-pack-for-testing"
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
        pronto__subcmd__reflog)
            opts="-n --expire --expire-unreachable --rewrite --updateref --stale-fix --dry-run --verbose --all --single-worktree"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --expire)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --expire-unreachable)
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
        pronto__subcmd__refs)
            opts="--ref-format --dry-run --no-reflog --all --no-prune --auto --include --exclude"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --ref-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --include)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude)
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
        pronto__subcmd__remote)
            opts="-v -f -t -m -a -d -n -p --verbose --fetch --tags --track --master --mirror --progress --auto --delete --dry-run --prune --add --push --all"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --track)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --master)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -m)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mirror)
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
        pronto__subcmd__repack)
            opts="-a -A -d -f -F -n -q -l -b -g -m --quiet --local --write-bitmap-index --window --window-memory --depth --threads --pack-kept-objects --keep-pack --geometric --cruft --cruft-expiration --combine-cruft-below-size --max-cruft-size --expire-to --unpack-unreachable --write-midx"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --window-memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --keep-pack)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --geometric)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -g)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cruft-expiration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --combine-cruft-below-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cruft-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --expire-to)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --unpack-unreachable)
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
        pronto__subcmd__reset)
            opts="-q -p -N --quiet --no-refresh --mixed --soft --hard --merge --keep --recurse-submodules --patch --intent-to-add --pathspec-from-file --pathspec-file-nul"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --recurse-submodules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pathspec-from-file)
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
        pronto__subcmd__restore)
            opts="-s -S -W -q -m -2 -3 -p --source --staged --worktree --ignore-unmerged --overlay --quiet --recurse-submodules --progress --merge --conflict --ours --theirs --patch --ignore-skip-worktree-bits --pathspec-from-file --pathspec-file-nul"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -s)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --recurse-submodules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --conflict)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pathspec-from-file)
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
        pronto__subcmd__rev__subcmd__list)
            opts=""
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
        pronto__subcmd__rev__subcmd__parse)
            opts=""
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
        pronto__subcmd__send__subcmd__pack)
            opts="-v -q -n -f --verbose --quiet --receive-pack --exec --remote --all --dry-run --mirror --force --push-option --progress --thin --signed --atomic --stdin"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --receive-pack)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --remote)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --push-option)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --signed)
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
        pronto__subcmd__serve)
            opts="--write --daemon --ssh --tls-cert --tls-key --config --store --generations --cache --role --check --print-config --netsync --stdio --listen --peer --ff --allow-unrelated --once --max-connections --memory --max-received --handshake-timeout --idle-timeout --slow-timeout --wait-timeout --session-timeout user token repository"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --daemon)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ssh)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --role)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --netsync)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --peer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-connections)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-received)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --handshake-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --idle-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slow-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --session-timeout)
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
        pronto__subcmd__serve__subcmd__repository)
            opts="--config --store --generations --cache create remove list"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__repository__subcmd__create)
            opts="--config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__repository__subcmd__list)
            opts="--config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__repository__subcmd__remove)
            opts="--config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__token)
            opts="--replace --config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__user)
            opts="--config --store --generations --cache add remove list key"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__user__subcmd__add)
            opts="--config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__user__subcmd__key)
            opts="--config --store --generations --cache add remove list authorized"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__user__subcmd__key__subcmd__add)
            opts="--config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__user__subcmd__key__subcmd__authorized)
            opts="--config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__user__subcmd__key__subcmd__list)
            opts="--config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__user__subcmd__key__subcmd__remove)
            opts="--config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__user__subcmd__list)
            opts="--config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__serve__subcmd__user__subcmd__remove)
            opts="--config --store --generations --cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
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
        pronto__subcmd__shell)
            opts="--config --user"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --user)
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
        pronto__subcmd__show__subcmd__index)
            opts="--object-format"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --object-format)
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
        pronto__subcmd__show__subcmd__ref)
            opts="-h -d -s -q --tags --branches --heads --head --verify --dereference --hash --abbrev --quiet --exclude-existing"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --hash)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -s)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --abbrev)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude-existing)
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
        pronto__subcmd__sparse__subcmd__checkout)
            opts="-z --cone --sparse-index --stdin --skip-checks --rules-file"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --rules-file)
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
        pronto__subcmd__status)
            opts="-s -v -b -z -u -M --short --verbose --branch --show-stash --ahead-behind --porcelain --long --null --untracked-files --ignored --ignore-submodules --renames --find-renames --column --no-column"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --porcelain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --untracked-files)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -u)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ignored)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ignore-submodules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --find-renames)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -M)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --column)
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
        pronto__subcmd__store)
            opts="-q --generations --quiet import export copy verify upkeep list config head"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --generations)
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
        pronto__subcmd__store__subcmd__config)
            opts="-q --add --unset --generations --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --generations)
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
        pronto__subcmd__store__subcmd__copy)
            opts="-q --generation --scratch --target-generations --generations --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --generation)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scratch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --target-generations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
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
        pronto__subcmd__store__subcmd__export)
            opts="-q --generation --ref-format --generations --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --generation)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ref-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
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
        pronto__subcmd__store__subcmd__head)
            opts="-q --generations --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --generations)
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
        pronto__subcmd__store__subcmd__import)
            opts="-q --update --scratch --generations --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --scratch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
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
        pronto__subcmd__store__subcmd__list)
            opts="-q --generations --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --generations)
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
        pronto__subcmd__store__subcmd__upkeep)
            opts="-q --every --prune-after --cache --scratch --generations --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prune-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scratch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --generations)
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
        pronto__subcmd__store__subcmd__verify)
            opts="-q --sizes-only --generations --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --generations)
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
        pronto__subcmd__switch)
            opts="-q -f -d -t -c -C -m --quiet --progress --force --detach --track --orphan --overwrite-ignore --ignore-other-worktrees --guess --recurse-submodules --create --force-create --discard-changes --merge --conflict"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --track)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --orphan)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --recurse-submodules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --create)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -c)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --force-create)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -C)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --conflict)
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
        pronto__subcmd__symbolic__subcmd__ref)
            opts="-q -d -m --quiet --delete --short --no-recurse"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                -m)
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
        pronto__subcmd__sync)
            opts="-n -q --dry-run --pull --push --include --exclude --ff --allow-unrelated --name --as --remote-program --json --progress --quiet"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --include)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --as)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --remote-program)
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
        pronto__subcmd__unpack__subcmd__objects)
            opts="-n -q -r --strict --max-input-size --pack_header"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --strict)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-input-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pack_header)
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
        pronto__subcmd__update__subcmd__index)
            opts=""
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
        pronto__subcmd__upload__subcmd__archive)
            opts=""
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
        pronto__subcmd__upload__subcmd__pack)
            opts="--stateless-rpc --no-stateless-rpc --advertise-refs --no-advertise-refs --http-backend-info-refs --strict --no-strict --timeout"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --timeout)
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
        pronto__subcmd__verify__subcmd__pack)
            opts="-v -s --verbose --stat-only --object-format"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --object-format)
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
        pronto__subcmd__worktree)
            opts="-f -b -B -d -q -z -v -n --force --detach --orphan --no-checkout --lock --reason --quiet --track --guess-remote --carry --carry-reflink --recurse-submodules --porcelain --verbose --expire --dry-run"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                -b)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -B)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reason)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --track)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --carry)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --carry-reflink)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --expire)
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
        pronto__subcmd__write__subcmd__tree)
            opts="--missing-ok --prefix"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --prefix)
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
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _pronto -o nosort -o bashdefault -o default pronto
else
    complete -F _pronto -o bashdefault -o default pronto
fi

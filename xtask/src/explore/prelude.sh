# Functions of the recipes. A recipe starts in the root and makes the repository `r`, its remote `o.git` and
# what else belongs to it.
set -e
put() {
    case $1 in */*) mkdir -p "${1%/*}" ;; esac
    printf '%s\n' "$2" >"$1"
    # Another time for each file, so that git sees each change.
    written=$((written + 1))
    touch -d "@$written" "./$1"
}
tick=1112911993
written=1112900000
commit() {
    tick=$((tick + 60))
    GIT_AUTHOR_DATE="$tick -0700" GIT_COMMITTER_DATE="$tick -0700" git commit -q -m "$1"
}
# Makes `r` with three commits, the branch `side`, two tags, a remote and its branches.
base() {
    git init -q $FORMAT r
    cd r
    put a one
    put d/b two
    put d/e/c three
    put f.txt four
    put .gitignore '*.o'
    git add .
    commit first
    git tag light
    put a five
    git add a
    commit second
    git tag -a -m annotated v1
    git branch side
    put d/e/c six
    git add d
    commit third
    git clone -q --bare . ../o.git
    git remote add origin ../o.git
    git fetch -q origin
}
# Lets `main` and `side` change the same file.
divide() {
    git checkout -q side
    put a side
    put only-side side
    git add .
    commit side
    git checkout -q main
    put a main
    git add a
    commit main
}
# Adds the submodule `sub`.
submodule() {
    git init -q ../s
    put ../s/a inner
    git -C ../s add a
    git -C ../s -c user.name=n commit -q -m inner
    git -c protocol.file.allow=always submodule -q add ../s sub
    git add .
    commit submodule
}

//! The commands whose options are paired, and the values of options.

/// A command with its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    /// The command, with its subcommand.
    pub(crate) name: &'static str,
    /// The arguments that follow the options.
    pub(crate) arguments: &'static str,
    /// The file for standard input, relative to the directory of the repositories.
    pub(crate) input: Option<&'static str>,
}

/// The commands to compare. Long-running commands and servers are left out.
pub(crate) const SUBJECTS: &[Subject] = &[
    with("add", "n"),
    with("add", ""),
    with("archive", "HEAD a"),
    with("bundle create", "../b HEAD"),
    with("bundle list-heads", "../b"),
    with("cat-file", "HEAD"),
    with("cat-file", ""),
    with("check-attr", "text -- a"),
    with("check-ignore", "i"),
    with("checkout", ""),
    with("checkout", "side"),
    with("checkout", "side -- a"),
    with("checkout", "-- a b"),
    with("checkout-index", "a"),
    with("clean", ""),
    with("clean", "-f n"),
    with("clone", "../origin ../copy"),
    with("commit", ""),
    with("commit", "-m m b"),
    with("commit-graph write", ""),
    with("commit-graph verify", ""),
    with("config list", ""),
    with("config get", "core.bare"),
    with("config set", "a.b c"),
    with("config unset", "core.bare"),
    with("config", "core.bare"),
    with("diff-files", ""),
    with("diff-files", "a"),
    with("diff-index", "HEAD"),
    with("diff-tree", "HEAD"),
    with("fetch", ""),
    with("fetch", "origin side"),
    with("fetch-pack", "../origin refs/heads/main"),
    with("for-each-repo", "version"),
    with("hash-object", "a"),
    with("hash-object", ""),
    with("index-pack", "../pack"),
    reading("index-pack", "--stdin", "pack"),
    with("init", "../new"),
    with("init", ""),
    with("ls-files", ""),
    with("ls-files", "a"),
    with("ls-remote", ""),
    with("ls-remote", "origin main"),
    with("ls-tree", "HEAD"),
    with("ls-tree", "HEAD a"),
    with("maintenance run", ""),
    with("merge-file", "a b list"),
    with("multi-pack-index write", ""),
    with("multi-pack-index verify", ""),
    with("multi-pack-index repack", ""),
    with("pack-objects", "../p"),
    with("pack-refs", ""),
    with("prune", ""),
    with("prune-packed", ""),
    with("push", ""),
    with("push", "origin main"),
    with("read-tree", "HEAD"),
    with("read-tree", "main side"),
    with("reflog", ""),
    with("reflog expire", "HEAD"),
    with("reflog delete", "HEAD@{0}"),
    with("reflog exists", "HEAD"),
    with("refs migrate", ""),
    with("refs verify", ""),
    with("remote", ""),
    with("remote add", "up ../origin"),
    with("remote rename", "origin up"),
    with("remote remove", "origin"),
    with("remote prune", "origin"),
    with("remote show", "origin"),
    with("remote set-head", "origin"),
    with("remote set-url", "origin ../other"),
    with("remote get-url", "origin"),
    with("remote set-branches", "origin side"),
    with("remote update", ""),
    with("repack", ""),
    with("reset", ""),
    with("reset", "side"),
    with("reset", "-- a b"),
    with("restore", "a b"),
    with("restore", ""),
    with("rev-list", "HEAD"),
    with("rev-parse", "HEAD"),
    with("send-pack", "../origin main"),
    reading("show-index", "", "idx"),
    with("show-ref", ""),
    with("show-ref", "main"),
    with("sparse-checkout init", ""),
    with("sparse-checkout list", ""),
    with("sparse-checkout set", "d"),
    with("sparse-checkout add", "d"),
    with("sparse-checkout reapply", ""),
    with("sparse-checkout disable", ""),
    with("status", ""),
    with("status", "a"),
    with("switch", "side"),
    with("switch", ""),
    with("symbolic-ref", "HEAD"),
    with("symbolic-ref", "HEAD refs/heads/side"),
    reading("unpack-objects", "", "pack"),
    with("update-index", "b"),
    with("update-index", ""),
    with("verify-pack", "../pack"),
    with("worktree add", "../w"),
    with("worktree add", "../w side"),
    with("worktree list", ""),
    with("worktree lock", "../w"),
    with("worktree move", "../w ../v"),
    with("worktree prune", ""),
    with("worktree remove", "../w"),
    with("worktree repair", ""),
    with("write-tree", ""),
];

/// Options that are not compared: help, interaction, endless work, and output that depends on the
/// machine.
pub(crate) const LEFT_OUT: &[(&str, &str)] = &[
    ("", "--help"),
    ("maintenance", "--detach"),
    ("config", "--edit"),
    ("fetch-pack", "--stateless-rpc"),
];

/// Options that git does not list for completion.
pub(crate) const EXTRA_OPTIONS: &[(&str, &str)] = &[
    ("add", "-A -u -N -n -v -f"),
    (
        "archive",
        "--format=tar --list --prefix=p/ --worktree-attributes -v -o../o.tar \
         --mtime=2005-04-07T22:13:13 --add-file=list --add-virtual-file=x:y -1",
    ),
    (
        "cat-file",
        "-e -p -s -t -z -Z --batch=%(objectname) --batch-check --batch-command",
    ),
    ("checkout", "-b=new -bnew -Bmain -l -f -q -t -d -m -p -2 -3"),
    ("clean", "-d -x -X -n -f -e*.x -i"),
    ("commit", "-a -p -i -o -v -q -s -S -u -z -mx"),
    (
        "config",
        "-l --get --get-all --get-regexp --add --unset --replace-all --global --local --system -z \
         --name-only --show-origin --show-scope --type=bool --bool --int --default=x --file=list \
         --blob=HEAD:a --rename-section --remove-section --edit --get-color --get-colorbool \
         --get-urlmatch --null --list --fixed-value --comment=x --includes --no-includes \
         --worktree --no-type",
    ),
    (
        "diff-files",
        "-0 -1 -2 -3 --base --ours --theirs -c --cc -q -r -R -a -w -b -M -C -B -D -O/dev/null -Gx \
         -Sx -l1 -U1 -z -s -p -u",
    ),
    (
        "diff-index",
        "--cached -m --merge-base -r -t -R -a -w -b -M -C -B -D -Gx -Sx -z -s -p",
    ),
    (
        "diff-tree",
        "-r -t -R -m -c --cc -s -v --root --stdin --pretty --pretty=oneline --no-commit-id \
         --always --merge-base --combined-all-paths -z -p -M -C --no-notes --notes",
    ),
    (
        "fetch-pack",
        "--all --stdin -q --quiet -k --keep --thin --include-tag --upload-pack=git-upload-pack \
         --depth=1 --shallow-since=2005-01-01 --shallow-exclude=refs/heads/side --deepen-relative \
         --no-progress --check-self-contained-and-connected --refetch --filter=blob:none -v \
         --diag-url --stateless-rpc --lock-pack --from-promisor",
    ),
    ("hash-object", "-w -tblob -tcommit"),
    (
        "index-pack",
        "-v -o --keep --keep=x --promisor --index-version=2 --rev-index --no-rev-index --strict \
         --strict=missingEmail=ignore --fsck-objects --check-self-contained-and-connected \
         --threads=1 --verify --verify-stat --verify-stat-only --fix-thin --stdin \
         --max-input-size=1 --max-input-size=9999 --object-format=sha1 --progress-title=x",
    ),
    (
        "ls-files",
        "-c -d -o -i -s -u -k -m -t -v -f -z -x*.x -Xlist -r",
    ),
    ("ls-tree", "-d -r -t -l -z"),
    ("ls-remote", "-q -t -b -h"),
    ("push", "-f -d -u -n -q -v -4"),
    ("read-tree", "-m -u -i -n -v -q"),
    ("reflog", "expire list show"),
    (
        "reflog expire",
        "--all --expire=now --expire-unreachable=now --rewrite --updateref --stale-fix --dry-run \
         -n --verbose --single-worktree",
    ),
    ("reset", "-q -p -N"),
    ("restore", "-s=side -sside -W -S -2 -3 -m -p -q"),
    (
        "rev-list",
        "--count --max-count=1 -1 --skip=1 --since=2005-01-01 --until=2030-01-01 --all --branches \
         --tags --remotes --glob=refs/* --exclude=refs/heads/* --objects --objects-edge \
         --objects-edge-aggressive --unpacked --bisect --bisect-vars --bisect-all --left-right \
         --left-only --right-only --cherry-mark --cherry-pick --cherry --boundary --graph \
         --parents --children --timestamp --header --pretty --pretty=oneline --oneline \
         --format=%H --abbrev-commit --abbrev --no-abbrev --reverse --walk-reflogs -g --merges \
         --no-merges --min-parents=1 --max-parents=1 --first-parent --topo-order --date-order \
         --author-date-order --no-walk --do-walk --no-walk=sorted --no-walk=unsorted --disk-usage \
         --disk-usage=human --use-bitmap-index --test-bitmap --filter=blob:none --no-filter \
         --filter-provided-objects --filter-print-omitted --missing=print --missing=allow-any \
         --missing=error --exclude-promisor-objects --no-object-names --object-names \
         --in-commit-order --progress=x --quiet --not --stdin --ignore-missing --reflog \
         --indexed-objects --alternate-refs --simplify-by-decoration --full-history --dense \
         --sparse --simplify-merges --ancestry-path --show-pulls --no-commit-header \
         --commit-header --encoding=UTF-8 --no-encoding --exclude-hidden=fetch \
         --exclude-first-parent-only --author=a --grep=one --invert-grep --all-match -i -F -E -P \
         --maximal-only -z --single-worktree --expand-tabs --default=HEAD --relative-date \
         --date=iso --show-signature --log-size",
    ),
    (
        "rev-parse",
        "--verify -q --quiet --short --short=5 --sq --sq-quote --not --symbolic \
         --symbolic-full-name --abbrev-ref --abbrev-ref=strict --all --branches --tags --remotes \
         --glob=refs/* --exclude=x --disambiguate=ab --revs-only --no-revs --flags --no-flags \
         --default=HEAD --parseopt --keep-dashdash --git-dir --absolute-git-dir --git-common-dir \
         --show-toplevel --show-cdup --show-prefix --show-superproject-working-tree \
         --is-inside-git-dir --is-inside-work-tree --is-bare-repository --is-shallow-repository \
         --path-format=absolute --path-format=relative --show-object-format --show-ref-format \
         --local-env-vars --shared-index-path --since=2005-01-01 --until=2005-01-01 --output-object-format=sha1 \
         --exclude-hidden=fetch --resolve-git-dir --git-path",
    ),
    ("send-pack", "-f -n -v -q"),
    (
        "show-ref",
        "-d -s -q --hash --hash=5 --abbrev --abbrev=5 --exclude-existing --verify --exists --head \
         --branches --tags --dereference",
    ),
    ("status", "-s -b -v -uno -uall -z -M"),
    ("switch", "-cnew -Cmain -d -f -q -t -m"),
    ("symbolic-ref", "-q -d -mx"),
    (
        "update-index",
        "-q -z -g --add --remove --replace --refresh --really-refresh --unmerged --ignore-missing \
         --ignore-submodules --stdin --index-info --unresolve --again --assume-unchanged \
         --no-assume-unchanged --skip-worktree --no-skip-worktree --chmod=+x --chmod=-x \
         --force-remove --info-only --verbose --show-index-version --index-version=4 \
         --clear-resolve-undo --split-index --no-split-index --untracked-cache \
         --no-untracked-cache --force-write-index",
    ),
    ("unpack-objects", "-n -q -r --strict --max-input-size=1"),
    ("worktree add", "-bnew -Bmain -d -f -q"),
    ("worktree list", "-v -z"),
    ("worktree remove", "-f"),
];

/// The values of options, for all commands or for one. Other options have the value 1.
pub(crate) const VALUES: &[(&str, &str)] = &[
    ("--add-file=", "list"),
    ("--add-virtual-file=", "x:y"),
    ("--anchored=", "x"),
    ("--auto=", "1"),
    ("--author=", "x <x@x>"),
    ("--bundle-uri=", "../none"),
    ("--branch=", "side"),
    ("--chmod=", "+x"),
    ("--cleanup=", "strip"),
    ("--color-moved-ws=", "no"),
    ("--config=", "a.b=c"),
    ("--conflict=", "diff3"),
    ("--create=", "new"),
    ("--date=", "1112911993 -0700"),
    ("--default=", "x"),
    ("--diff-algorithm=", "patience"),
    ("--diff-filter=", "M"),
    ("--dst-prefix=", "d"),
    ("--exclude-from=", "list"),
    ("--exclude-hidden=", "fetch"),
    ("--exclude-per-directory=", ".gitignore"),
    ("--exclude-standard=", ""),
    ("--exclude=", "*.x"),
    ("--exec=", "git-upload-pack"),
    ("--expire-unreachable=", "now"),
    ("--expire=", "now"),
    ("--file=", "list"),
    ("--filter=", "blob:none"),
    ("--find-object=", "HEAD"),
    ("--fixup=", "HEAD"),
    ("--force-create=", "side"),
    ("--format=", "%(objectname)"),
    ("--index-output=", ".git/other"),
    ("--initial-branch=", "first"),
    ("--message=", "m"),
    ("--negotiation-tip=", "HEAD"),
    ("--negotiation-restrict=", "HEAD"),
    ("--negotiation-include=", "HEAD"),
    ("--object-format=", "sha1"),
    ("--orphan=", "new"),
    ("--origin=", "up"),
    ("--output=", "../out"),
    ("--path=", "a"),
    ("--pathspec-from-file=", "list"),
    ("--prefix=", "p/"),
    ("--push-option=", "x"),
    ("--reason=", "why"),
    ("--receive-pack=", "git-receive-pack"),
    ("--recurse-submodules=", "no"),
    ("--ref-format=", "files"),
    ("--reference-if-able=", "../origin"),
    ("--reference=", "../origin"),
    ("--refmap=", "refs/heads/*:refs/x/*"),
    ("--reedit-message=", "HEAD"),
    ("--repo=", "origin"),
    ("--reuse-message=", "HEAD"),
    ("--revision=", "refs/heads/main"),
    ("--rotate-to=", "a"),
    ("--schedule=", "daily"),
    ("--separate-git-dir=", "../separate"),
    ("--server-option=", "x"),
    ("--shallow-exclude=", "side"),
    ("--shallow-since=", "2005-01-01"),
    ("--shared=", "group"),
    ("--skip-to=", "a"),
    ("--sort=", "refname"),
    ("--source=", "side"),
    ("--squash=", "HEAD"),
    ("--stage=", "all"),
    ("--task=", "gc"),
    ("--template=", ""),
    ("--trailer=", "A: b"),
    ("--type=", "bool"),
    ("--upload-pack=", "git-upload-pack"),
    ("--value=", "x"),
    ("--with-tree=", "HEAD"),
    ("--word-diff-regex=", "."),
    ("--ws-error-highlight=", "new"),
    ("archive --exec=", "git-upload-archive"),
    ("archive --format=", "tar"),
    ("archive --output=", "../o.tar"),
    ("archive --remote=", "../origin"),
    ("config --file=", ".git/config"),
    ("config --blob=", "HEAD:a"),
    ("read-tree --prefix=", "p/"),
    ("refs migrate --ref-format=", "reftable"),
    ("rev-list --output=", "/dev/null"),
    ("show-ref --exclude-existing=", "x"),
    ("remote add --mirror=", "fetch"),
];

const fn with(name: &'static str, arguments: &'static str) -> Subject {
    Subject {
        name,
        arguments,
        input: None,
    }
}

const fn reading(name: &'static str, arguments: &'static str, input: &'static str) -> Subject {
    Subject {
        name,
        arguments,
        input: Some(input),
    }
}

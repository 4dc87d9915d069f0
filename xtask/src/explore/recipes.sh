== plain
base
== empty
git init -q r
git -C r remote add origin ../o.git
git init -q --bare o.git
== unborn
base
git checkout -q --orphan fresh
== detached
base
git checkout -q HEAD~1
== dirty
base
put a changed
put d/b staged
git add d/b
put new untracked
put d/new untracked
put ignored.o object
rm f.txt
== conflict
base
divide
git merge -q side || :
== merging
base
divide
git merge -q --no-commit -s ours side || :
== rebasing
base
divide
git rebase -q side || :
== picking
base
divide
git cherry-pick side || :
== reverting
base
divide
git revert --no-edit HEAD~1 || :
== bisecting
base
git bisect start -q HEAD HEAD~2 || :
== stashed
base
put a stashed
git stash -q
== ahead
base
git branch -q -u origin/main
put a ahead
git add a
commit ahead
== behind
base
git clone -q ../o.git ../r2
put ../r2/a theirs
git -C ../r2 add a
git -C ../r2 commit -q -m theirs
git -C ../r2 push -q ../o.git HEAD:main HEAD:extra
== cone
base
git sparse-checkout set --cone d/e
== sparse-index
base
git sparse-checkout set --cone --sparse-index d/e
== patterns
base
git sparse-checkout set --no-cone '/*' '!/d/e/'
== split-index
base
git update-index --split-index
put a split
git add a
== index-4
base
git update-index --index-version 4
== index-3
base
git add -N . 
put intended intent
git add -N intended
git update-index --skip-worktree a --assume-unchanged d/b
== reftable
FORMAT=--ref-format=reftable
base
== sha256
FORMAT=--object-format=sha256
base
== shallow
base
cd ..
mv r full
git clone -q --depth 2 "file://$PWD/full" r
cd r
== partial
base
cd ..
git -C o.git config uploadpack.allowFilter true
rm -rf r
git clone -q --filter=blob:none --no-checkout "file://$PWD/o.git" r
cd r
== treeless
base
cd ..
git -C o.git config uploadpack.allowFilter true
rm -rf r
git clone -q --filter=tree:0 --no-checkout "file://$PWD/o.git" r
cd r
== alternates
base
cd ..
mv r full
git clone -q -s full r
cd r
== replaced
base
git replace HEAD~1 HEAD~2
== grafted
base
echo "$(git rev-parse HEAD)" >.git/info/grafts || { mkdir .git/info; echo "$(git rev-parse HEAD)" >.git/info/grafts; }
== linked
base
git worktree add -q ../linked side
put ../linked/a changed
== linked-broken
base
git worktree add -q ../linked side
git worktree add -q --detach ../gone
rm -rf ../gone
rm ../linked/.git
== linked-moved
base
git worktree add -q ../linked side
mv ../linked ../moved
ln -s moved ../linked
== linked-locked
base
git worktree add -q --lock --reason why ../linked side
echo garbage >.git/worktrees/linked/commondir
== submodule
base
submodule
== submodule-dirty
base
submodule
put sub/a dirty
put sub/new untracked
== submodule-broken
base
submodule
rm -rf .git/modules/sub
== submodule-empty
base
submodule
git submodule -q deinit -f sub
== submodule-headless
base
submodule
rm .git/modules/sub/HEAD
== links
base
ln -s a link
ln -s d linkd
ln -s missing dangling
git add .
commit links
rm d/b
ln -s ../a d/b
== link-head
base
rm .git/HEAD
ln -s refs/heads/main .git/HEAD
== link-config
base
mv .git/config .git/settings
ln -s settings .git/config
ln -s gitignore-target .gitignore2
rm .gitignore
ln -s other-ignore .gitignore
put other-ignore '*.txt'
== odd-names
base
put 'with space' 1
put 'tab	name' 2
put 'quo"te' 3
put "$(printf 'caf\303\251')" 4
put ./-dash 5
put ':colon' 6
put '[x]*' 7
git add .
commit odd
put 'un	tracked' 8
== crlf
base
git config core.autocrlf true
printf 'one\r\ntwo\r\n' >crlf
printf 'one\ntwo\r\n' >mixed
touch -d '2005-04-07 22:13:13' crlf mixed
git -c core.safecrlf=false add crlf
commit crlf
== attributes
base
put .gitattributes '*.txt text eol=crlf
*.up filter=up
*.bin binary
d/** export-ignore
de**/f ident
[attr]mine -text'
git config filter.up.clean 'tr a-z A-Z'
git config filter.up.smudge 'tr A-Z a-z'
put x.up hello
put y.bin hello
git add .
commit attributes
put x.up changed
== encodings
base
put .gitattributes '*.u text working-tree-encoding=UTF-16
*.latin text working-tree-encoding=ISO-8859-1'
printf 'caf\351\n' >x.latin
touch -d '2005-04-07 22:13:13' x.latin
git add .
commit encodings
git update-index --add --cacheinfo 100644,$(git rev-parse HEAD:a),y.u
git commit -q -m second
put y.u 'not UTF-16'
== ignores
base
put .gitignore '*.o
/build
!keep.o
de**/f
d/*/
'
put x.o 1
put keep.o 2
put build/x 3
put deep/er/f 4
put d/e/z 5
== large
base
head -c 300000 /dev/zero | tr '\0' x >large
touch -d '2005-04-07 22:13:13' large
git -c core.bigFileThreshold=100k add large
commit large
== damaged-object
base
victim=$(git rev-parse HEAD:d/b)
chmod +w .git/objects/$(echo $victim | sed 's,^..,&/,')
echo garbage >.git/objects/$(echo $victim | sed 's,^..,&/,')
== missing-object
base
victim=$(git rev-parse HEAD~1^{tree})
rm -f .git/objects/$(echo $victim | sed 's,^..,&/,')
== damaged-index
base
printf 'DIRCxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' >.git/index
== damaged-ref
base
echo garbage >.git/refs/heads/bad
: >.git/refs/heads/zero
printf 0000000000000000000000000000000000000000 >.git/refs/heads/null
mkdir -p .git/refs/heads/empty
== damaged-head
base
echo garbage >.git/HEAD
== damaged-config
base
echo '[core' >>.git/config
== damaged-pack
base
git repack -q -ad
chmod +w .git/objects/pack/*.pack
printf 'xx' | dd of=$(ls .git/objects/pack/*.pack) bs=1 seek=40 conv=notrunc 2>/dev/null
== packed
base
git pack-refs --all
git repack -q -adb
git commit-graph write --reachable
git multi-pack-index write
put a loose
git add a
commit loose
== many-refs
base
head=$(git rev-parse HEAD)
i=0
while [ $i -lt 60 ]; do
echo "create refs/heads/many/$i $head"
echo "create refs/tags/t$i $head"
i=$((i + 1))
done | git update-ref --stdin
git symbolic-ref refs/heads/alias refs/heads/main
git symbolic-ref refs/heads/loop1 refs/heads/loop2
git symbolic-ref refs/heads/loop2 refs/heads/loop1
== odd-branches
base
head=$(git rev-parse HEAD)
mkdir -p .git/refs/heads
echo $head >.git/refs/heads/@
git branch -q HEAD-1
git update-ref refs/heads/HEAD $head
git tag main
git update-ref refs/heads/v1 $head
== renormalize
base
git update-index --add --cacheinfo 100755,$(git rev-parse HEAD:a),exec
git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),gitlink
git update-index --add --cacheinfo 120000,$(git rev-parse HEAD:a),symlink
== file-directory
base
rm a
put a/inner inner
rm -r d
put d file
== nested
base
git init -q nested
put nested/x nested
git -C nested add x
git -C nested commit -q -m nested
git init -q d/unborn
== notes
base
git notes add -m note
git update-ref refs/other/x HEAD
git update-ref -d refs/remotes/origin/HEAD || :
git tag -d v1
== bare-main
base
git config core.bare true
== separate
base
cd ..
git init -q --separate-git-dir "$PWD/elsewhere.git" r
cd r

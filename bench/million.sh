#!/bin/sh
# Makes a repository of many small files: million.sh DIRECTORY [DIRECTORIES [FILES-IN-EACH]]
# Without numbers a million files in 200,000 directories, in two levels. The files are checked out
# by stock git. tmpfs needs about 5 GiB for it.
set -eu
place=$1 directories=${2:-200000} files=${3:-5}
git init -q -b main "$place"
cd "$place"
git config core.fsmonitor false
awk -v directories="$directories" -v files="$files" 'BEGIN {
    print "blob\nmark :1\ndata 8\ncontent"
    print "commit refs/heads/main\ncommitter A U Thor <author@example.com> 1112911993 -0700\ndata 5\nmany"
    for (at = 0; at < directories; at++)
        for (file = 0; file < files; file++)
            printf "M 100644 :1 d%03d/d%04d/f%d\n", at / 1000, at % 1000, file
}' | git fast-import --quiet
git -c checkout.workers=0 checkout -q -f main

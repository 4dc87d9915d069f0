# Removes the tree as INSTALL.md says, and prints the files that are left.
tar -tzf /packages/pronto.tar.gz | grep -v '/$' | cut -d/ -f2- | (cd /usr/local && xargs rm -f)
# The link is a part of Debian.
find /usr/local ! -type d ! -path /usr/local/man -print

# Removes the package, and prints the files that are left. Formatted pages in /var/cache/man belong to man-db.
dpkg --purge pronto >/dev/null
find / -xdev \( -path /proc -o -path /work -o -path /srv -o -path /packages -o -path /tmp -o -path /var/cache/man \) -prune -o -name '*pronto*' -print

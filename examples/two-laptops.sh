#!/bin/sh
# Two laptops without a server: each makes a key, trusts the other's key and commits on its own. One
# call synchronises both. Everything happens in a temporary directory and on the loopback device.
#
#   examples/two-laptops.sh            builds pronto first
#   PRONTO=/path/to/pronto examples/two-laptops.sh
set -eu

if [ -z "${PRONTO:-}" ]; then
    root=$(cd "$(dirname "$0")/.." && pwd)
    cargo build --quiet --release --manifest-path "$root/Cargo.toml" --package pronto-cli
    PRONTO=$root/target/release/pronto
fi
world=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null; rm -rf "$world"' EXIT
cd "$world"

# Runs a command on one of the two, with its own home directory.
on() {
    laptop=$1
    shift
    echo "$laptop\$ $*" | sed "s,$PRONTO,pronto,"
    (
        cd "$world/$laptop/project"
        HOME=$world/$laptop XDG_CONFIG_HOME= GIT_CONFIG_NOSYSTEM=1 \
            GIT_AUTHOR_NAME=$laptop GIT_AUTHOR_EMAIL=$laptop@example.org \
            GIT_COMMITTER_NAME=$laptop GIT_COMMITTER_EMAIL=$laptop@example.org "$@"
    )
}
key_of() {
    HOME=$world/$1 XDG_CONFIG_HOME= "$PRONTO" netsync key | head -n 1
}

mkdir -p ada/project bob
on ada git init -q -b main
echo "shared" > ada/project/shared
on ada git add .
on ada git commit -q -m "Begin"
git clone -q ada/project bob/project

# Once: a key for each, and trust. The fingerprints are what two people would compare.
on ada "$PRONTO" netsync keygen
on bob "$PRONTO" netsync keygen
ada=$(key_of ada)
bob=$(key_of bob)
on ada "$PRONTO" netsync trust bob "$bob"

# Each works alone.
for laptop in ada bob; do
    echo "by $laptop" > "$laptop/project/$laptop"
    on "$laptop" git add .
    on "$laptop" git commit -q -m "Work of $laptop"
done

# One of them listens for a while, the other comes by.
echo 'ada$ pronto serve --netsync --listen 127.0.0.1:0 &'
(
    cd ada/project
    HOME=$world/ada XDG_CONFIG_HOME= exec "$PRONTO" serve --netsync --listen 127.0.0.1:0
) 2> log &
server=$!
while ! grep -q listening log; do
    kill -0 "$server"
    sleep 0.1
done
address=$(sed -n 's/.*"event":"listening","address":"\([^"]*\)".*/\1/p' log)
on bob "$PRONTO" netsync trust ada "$ada" --at "$address"
on bob "$PRONTO" sync --dry-run "netsync://$address"
on bob "$PRONTO" sync "netsync://$address"
kill "$server"
wait "$server"
server=
echo "what ada's server told:"
cat log

# Each has the other's work, under the other's name, and merges it as ever.
on bob git merge -q --no-edit ada/main
on ada git merge -q --no-edit bob/main
test -f ada/project/bob && test -f bob/project/ada
on ada git fsck --full --strict
on bob git fsck --full --strict
echo "both laptops have both commits"

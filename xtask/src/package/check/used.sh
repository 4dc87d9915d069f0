# Uses the programs below $prefix, on a system without git. A program that needs git fails.
export PRONTO_NO_FALLBACK=1
if command -v git; then exit 1; fi
pronto=$prefix/bin/pronto
[ "$(command -v pronto)" = "$pronto" ]
pronto version
pronto help clone | grep -q 'pronto clone'
pronto clone -q /work/project /tmp/copy
[ "$(cat /tmp/copy/file)" = content ]
echo changed >>/tmp/copy/file
pronto -C /tmp/copy status --short | grep -q '^ M file$'
pronto -C /tmp/copy add file
pronto -C /tmp/copy -c user.name=A -c user.email=a@example.com commit -q -m 'Change the file'
[ "$(pronto -C /tmp/copy rev-list --count HEAD)" = 2 ]
# A user by name.
pronto -C /tmp config --file x core.excludesFile '~root/ignored'
[ "$(pronto -C /tmp config --file x --path core.excludesFile)" = /root/ignored ]
pronto serve --print-config | grep -q drain_seconds
pronto store --help >/dev/null
# A host by name, with the sources that the system configures.
pronto ls-remote http://localhost:1/x 2>&1 | grep -qi 'refused'
# The name git: first in PATH, and gone with it.
PATH=$prefix/lib/pronto/bin:$PATH git version | grep -q '^git version'
PATH=$prefix/lib/pronto/bin:$PATH git -C /tmp/copy rev-parse HEAD
if command -v git; then exit 1; fi

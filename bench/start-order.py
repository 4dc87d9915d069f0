#!/usr/bin/env python3
"""Makes crates/pronto-cli/start-order.txt: the functions that small calls run, in the order of their first call.

usage: bench/start-order.py PRONTO > crates/pronto-cli/start-order.txt

PRONTO is an optimised program with symbols (`cargo build --release`). Needs valgrind, nm, cc and git. Patterns have no
hashes, so that they hold for other builds. Of the C library, which is not built with a section for each function, the list
has members of the archive.
"""

import bisect
import os
import re
import subprocess
import sys
import tempfile

CALLS = [
    "version", "rev-parse HEAD", "rev-parse --show-toplevel", "config --get user.name", "symbolic-ref HEAD",
    "status --porcelain", "ls-files", "cat-file -p HEAD", "show-ref", "rev-list -1 HEAD", "add d/f1", "diff-index HEAD",
    "check-ignore d/f1", "check-attr text d/f1", "hash-object d/f1", "update-index --refresh", "remote", "worktree list",
    "checkout -q d/f2", "commit -q -m x", "--help", "no-such-command", "log -1", "diff-files", "ls-tree HEAD",
    "switch -q -c other", "rev-parse --abbrev-ref HEAD", "remote get-url origin", "ls-remote .", "fetch -q .",
]

# Names of one function that the list has. Trivial functions have thousands.
MOST_NAMES = 400

HEADER = """\
# Functions that small calls run, in the order of their first call, as patterns of the names of their sections, and
# members of the C library (libc.a:NAME.o).
# The linker puts them side by side (build.rs), so that a small call touches few pages. Names that are not there are
# skipped. bench/start-order.py makes this list.
"""


def pattern(name):
    """Returns the pattern for a mangled name: without the hashes of crates, and what the optimiser adds."""
    if not name.startswith("_R"):
        return None
    # The linker merges most forms of these few functions, and which of their names it keeps changes with each build.
    for family in ["8grow_one", "11finish_grow", "21do_reserve_and_handle"]:
        if "5alloc7raw_vec" in name and family in name:
            return f"_R*5alloc7raw_vec*{family}*"
    name = re.sub(r"Cs[0-9A-Za-z]+_(?=\d)", "Cs*_", name)
    return re.sub(r"(\.llvm)?\.\d+$", "*", name)


def members_of_libc():
    """Returns the member of the C library that each of its functions is in."""
    library = subprocess.run(["cc", "-print-file-name=libc.a"], capture_output=True, text=True, check=True).stdout.strip()
    found, member = {}, None
    table = subprocess.run(["nm", "--defined-only", library], capture_output=True, text=True).stdout
    for line in table.splitlines():
        fields = line.split()
        if len(fields) == 1:
            member = fields[0].rstrip(":")
        elif len(fields) == 3 and fields[1] in "tTwWi":
            found.setdefault(fields[2], member)
    return found


def executed(lines, program, symbols):
    """Yields the addresses in the program that callgrind saw. It does not recognise the object of half of a static program:
    then they are those in memory."""
    of_libc = {name: address for address, name in symbols if not name.startswith("_R")}
    is_own, moved, name = False, None, None
    for line in lines:
        if line.startswith("ob="):
            is_own = line[3:].strip() == program
        elif line.startswith("fn="):
            name = line[3:].strip()
        elif line.startswith("0x"):
            address = int(line.split()[0], 16)
            if not is_own and moved is None and name in of_libc and (address - of_libc[name]) % 4096 == 0:
                moved = address - of_libc[name]
            if is_own or moved is not None:
                yield address - (0 if is_own else moved)


def make_repository(directory):
    run = lambda *words: subprocess.run(["git", "-C", directory, *words], check=True)
    run("init", "-q", "-b", "main")
    os.mkdir(os.path.join(directory, "d"))
    for number in range(50):
        with open(os.path.join(directory, f"d/f{number}"), "w") as file:
            file.write(f"{number}\n")
    run("config", "user.name", "a")
    run("config", "user.email", "a@x")
    run("add", ".")
    run("commit", "-q", "-m", "one")
    run("remote", "add", "origin", "../origin.git")


def main():
    program = os.path.realpath(sys.argv[1])
    table = subprocess.run(["nm", "-n", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    fields = [line.split() for line in table.splitlines()]
    symbols = [(int(line[0], 16), line[2]) for line in fields if line[1] in "tTwW"]
    # The linker merges functions with the same instructions, and keeps the section of one of the names.
    names = {}
    for address, name in symbols:
        names.setdefault(address, []).append(name)
    addresses = sorted(names)
    patterns = {}
    members = members_of_libc()
    with tempfile.TemporaryDirectory() as directory:
        make_repository(directory)
        counts = os.path.join(directory, ".git/counts")
        for call in CALLS:
            valgrind = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no"]
            subprocess.run(
                [*valgrind, f"--callgrind-out-file={counts}", program, *call.split()],
                cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            with open(counts) as file:
                for address in executed(file, program, symbols):
                    if addresses[0] <= address <= addresses[-1]:
                        at = bisect.bisect_right(addresses, address) - 1
                        for name in names[addresses[at]][:MOST_NAMES]:
                            if found := pattern(name):
                                patterns.setdefault(found)
                            elif name in members:
                                # Valgrind has no AVX-512. The processor of the user decides which form of a function is used.
                                member = re.sub(r"-(avx2|evex|sse2|avx512).*", "-*.o", members[name])
                                patterns.setdefault(f"libc.a:{member}")
    print(HEADER, end="")
    print("\n".join(patterns))


main()

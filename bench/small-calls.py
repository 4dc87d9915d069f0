#!/usr/bin/env python3
"""Measures small calls of pronto beside git: processor time with children, page faults and wall time.

usage: bench/small-calls.py [--pairs N] [--files N] [--refs N] [--only TEXT] [--git PROGRAM] [--pronto PROGRAM]

Each call runs N times with git and with pronto, in turn, each in its own copy of a repository of 50 files and three refs
(or as many as the options say). Times are medians. The processor time is that of wait4: of the process, and of the children that it waited for; starting the
process is in it. The table is Markdown.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REFERENCE = os.path.expanduser("~/.cache/pronto/reference-git/2.55.0/bin/git")


def change(repository, number):
    """Gives a file new content, of another size than before."""
    with open(os.path.join(repository, "d1/f1"), "w") as file:
        file.write("x" * (1 + number % 97))


def change_and_add(git):
    def prepare(repository, number):
        change(repository, number)
        subprocess.run([git, "-C", repository, "add", "d1/f1"], check=True)

    return prepare


def calls(git):
    """Returns the calls: a title, the arguments, and what happens before each call."""
    nothing = None
    branches = lambda number: ["switch", "-q", ["main", "other"][number % 2]]
    rows = [
        ("version", nothing),
        ("rev-parse HEAD", nothing),
        ("rev-parse --show-toplevel", nothing),
        ("config --get user.name", nothing),
        ("symbolic-ref HEAD", nothing),
        ("status --porcelain", nothing),
        ("ls-files", nothing),
        ("cat-file -p HEAD", nothing),
        ("show-ref", nothing),
        ("rev-list -1 HEAD", nothing),
        ("log -1", nothing),
        ("branch", nothing),
        ("diff", nothing),
        ("for-each-ref", nothing),
        ("show -s", nothing),
        ("merge-base HEAD other", nothing),
        ("stash list", nothing),
        ("add d1/f1", change),
        ("commit -q -m change", change_and_add(git)),
        ("diff-index HEAD", nothing),
        ("check-ignore d1/f1", nothing),
        ("check-attr text d1/f1", nothing),
        ("hash-object d1/f1", nothing),
        ("update-index --refresh", nothing),
        ("remote get-url origin", nothing),
        ("worktree list", nothing),
        ("ls-remote ../origin.git", nothing),
        ("fetch -q", nothing),
        ("push -q origin other", nothing),
        ("checkout -q d2/f2", nothing),
        ("--help", nothing),
        ("no-such-command", nothing),
        ("short", nothing),
    ]
    fixed = [(title, lambda _, words=title.split(): words, prepare) for title, prepare in rows]
    switch = ("switch -q BRANCH", branches, nothing)
    return fixed + [switch]


def make_repositories(git, directory, files, refs):
    """Makes a repository with a remote, and returns a copy for each program."""
    folders = max(5, files // 100)

    def run(where, *words):
        subprocess.run([git, "-C", where, *words], check=True, stdout=subprocess.DEVNULL)

    first, origin = os.path.join(directory, "first"), os.path.join(directory, "origin.git")
    run(directory, "init", "-q", "-b", "main", first)
    for number in range(files):
        path = os.path.join(first, f"d{number % folders}/f{number}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(f"{number}\n" * (number % 50 + 1))
    with open(os.path.join(first, ".gitignore"), "w") as file:
        file.write("*.o\n")
    # No maintenance in the background, which would pack the objects while they are copied.
    settings = {"user.name": "a", "user.email": "a@x", "alias.short": "rev-parse HEAD", "maintenance.auto": "false"}
    for name, value in settings.items():
        run(first, "config", name, value)
    run(first, "add", ".")
    run(first, "commit", "-q", "-m", "first")
    run(first, "switch", "-q", "-c", "other")
    change(first, 5)
    run(first, "commit", "-q", "-a", "-m", "second")
    run(first, "switch", "-q", "main")
    if refs:
        names = "".join(f"create refs/tags/series/{number} HEAD\n" for number in range(refs))
        subprocess.run([git, "-C", first, "update-ref", "--stdin"], check=True, input=names.encode())
        run(first, "pack-refs", "--all")
    run(directory, "clone", "-q", "--bare", first, origin)
    copies = []
    for name in ["of-git", "of-pronto"]:
        copy = os.path.join(directory, name)
        shutil.copytree(first, copy, symlinks=True)
        run(copy, "remote", "add", "origin", "../origin.git")
        run(copy, "fetch", "-q")
        # Later than the files, so that no file has to be compared again.
        time.sleep(1.1)
        run(copy, "update-index", "-q", "--refresh")
        copies.append(copy)
    return copies


def measure(program, words, directory, environment):
    """Runs a call once. Returns its processor time, page faults and wall time."""
    os.chdir(directory)
    null = os.open(os.devnull, os.O_RDWR)
    to_null = [(os.POSIX_SPAWN_DUP2, null, stream) for stream in (0, 1, 2)]
    begun = time.perf_counter()
    process = os.posix_spawn(program, [program, *words], environment, file_actions=to_null)
    _, status, used = os.wait4(process, 0)
    wall = time.perf_counter() - begun
    os.close(null)
    return status, (used.ru_utime + used.ru_stime, used.ru_minflt, wall)


def compare(call, programs, copies, pairs, environment):
    title, words, prepare = call
    measured = ([], [])
    for number in range(pairs + 3):
        codes = []
        for program, copy, all_of in zip(programs, copies, measured):
            if prepare:
                prepare(copy, number)
            status, figures = measure(program, words(number), copy, environment)
            codes.append(status)
            # The first calls fill caches.
            if number >= 3:
                all_of.append(figures)
        if codes[0] != codes[1]:
            sys.exit(f"'{title}': git ends with {codes[0]}, pronto with {codes[1]}")
    return [[statistics.median(column) for column in zip(*all_of)] for all_of in measured]


def main():
    parser = argparse.ArgumentParser(description="small calls of pronto beside git")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--refs", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--git", default=REFERENCE if os.path.exists(REFERENCE) else shutil.which("git"))
    parser.add_argument("--pronto", default=os.path.join(ROOT, "target/release/pronto"))
    options = parser.parse_args()
    programs = [os.path.abspath(options.git), os.path.abspath(options.pronto)]
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PRONTO_GIT": programs[0],
        "LC_ALL": "C",
    }
    print("| call | git, ms | pronto, ms | ratio | faults of git | of pronto | wall of git, ms | of pronto |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    sums = [0, 0]
    with tempfile.TemporaryDirectory(prefix="small-calls-") as directory:
        environment["HOME"] = directory
        os.environ.update(HOME=directory, GIT_CONFIG_NOSYSTEM="1")
        copies = make_repositories(programs[0], directory, options.files, options.refs)
        for call in calls(programs[0]):
            if options.only not in call[0]:
                continue
            git, pronto = compare(call, programs, copies, options.pairs, environment)
            sums = [sums[0] + git[0], sums[1] + pronto[0]]
            print(
                f"| `{call[0]}` | {git[0] * 1e3:.2f} | {pronto[0] * 1e3:.2f} | {pronto[0] / git[0]:.2f} "
                f"| {git[1]:.0f} | {pronto[1]:.0f} | {git[2] * 1e3:.2f} | {pronto[2] * 1e3:.2f} |",
                flush=True,
            )
        os.chdir(ROOT)
    if sums[0]:
        print(f"| sum | {sums[0] * 1e3:.2f} | {sums[1] * 1e3:.2f} | {sums[1] / sums[0]:.2f} | | | | |")


main()

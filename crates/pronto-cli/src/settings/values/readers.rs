//! The parts of Git that read settings, and the parts that each command calls.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// A set of readers: parts of Git that read settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readers(u64);

impl Readers {
    /// The empty set.
    pub const NONE: Readers = Readers(0);
    /// The default settings, which almost every command reads: `core`, `user`, `advice` and others.
    pub const DEFAULT: Readers = Readers(1);
    /// The settings of section `core` alone, for `init`.
    pub const CORE: Readers = Readers(1 << 1);
    /// The colours of every command (`color.ui`).
    pub const COLOR: Readers = Readers(1 << 2);
    /// The diff settings of plumbing commands.
    pub const DIFF: Readers = Readers(1 << 3);
    /// The diff settings of porcelain commands.
    pub const DIFF_UI: Readers = Readers(1 << 4);
    /// The diff drivers (`diff.NAME`).
    pub const USERDIFF: Readers = Readers(1 << 5);
    /// The settings of `status`.
    pub const STATUS: Readers = Readers(1 << 6);
    /// The settings of `commit` alone.
    pub const COMMIT: Readers = Readers(1 << 7);
    /// The remotes, their URLs, and the upstreams of branches.
    pub const REMOTES: Readers = Readers(1 << 8);
    /// The promisor remotes of partial clones.
    pub const PROMISOR: Readers = Readers(1 << 9);
    /// The conflict style (`merge.conflictStyle`).
    pub const CONFLICTS: Readers = Readers(1 << 10);
    /// The filter drivers (`filter.NAME`).
    pub const FILTERS: Readers = Readers(1 << 11);
    /// The setting `submodule.recurse`.
    pub const RECURSE: Readers = Readers(1 << 12);
    /// The settings of `add` alone.
    pub const ADD: Readers = Readers(1 << 13);
    /// The settings of `checkout`, `restore` and `switch`.
    pub const CHECKOUT: Readers = Readers(1 << 14);
    /// The settings of `clean` alone.
    pub const CLEAN: Readers = Readers(1 << 15);
    /// The settings of `clone` alone.
    pub const CLONE: Readers = Readers(1 << 16);
    /// The settings of `fetch` alone.
    pub const FETCH: Readers = Readers(1 << 17);
    /// The settings of `push` alone.
    pub const PUSH: Readers = Readers(1 << 18);
    /// The settings of `send-pack` alone.
    pub const SEND_PACK: Readers = Readers(1 << 19);
    /// The settings of `receive-pack` alone.
    pub const RECEIVE: Readers = Readers(1 << 20);
    /// The settings of `upload-pack` alone.
    pub const UPLOAD: Readers = Readers(1 << 21);
    /// The settings of `repack` alone.
    pub const REPACK: Readers = Readers(1 << 22);
    /// The settings of `index-pack` alone.
    pub const INDEX_PACK: Readers = Readers(1 << 23);
    /// The settings of `pack-objects` alone.
    pub const PACK_OBJECTS: Readers = Readers(1 << 24);
    /// The settings of `worktree` alone.
    pub const WORKTREE: Readers = Readers(1 << 25);
    /// The settings of archives in tar formats.
    pub const TAR: Readers = Readers(1 << 26);
    /// The settings of object checks in a fetch.
    pub const FETCH_FSCK: Readers = Readers(1 << 27);
    /// The settings of object checks in a repository.
    pub const FSCK: Readers = Readers(1 << 28);
    /// The settings of writing a commit-graph.
    pub const COMMIT_GRAPH: Readers = Readers(1 << 29);
    /// The settings of writing a multi-pack-index.
    pub const MULTI_PACK_INDEX: Readers = Readers(1 << 30);
    /// The settings of `fsmonitor--daemon` alone.
    pub const MONITOR: Readers = Readers(1 << 31);
    /// The hooks in the configuration (`hook.*`).
    pub const HOOKS: Readers = Readers(1 << 32);
    /// The settings of an opened repository, of which only the last value is checked.
    pub const REPOSITORY: Readers = Readers(1 << 33);
    /// The settings of the ref storage.
    pub const REFERENCES: Readers = Readers(1 << 34);
    /// The settings that affect paths in the repository directory.
    pub const PATHS: Readers = Readers(1 << 35);
    /// The settings of reading the index.
    pub const INDEX: Readers = Readers(1 << 36);
    /// The settings of comparing the index with files in several threads (`core.preloadIndex`).
    pub const PRELOAD: Readers = Readers(1 << 37);
    /// The settings of resolving abbreviated or ambiguous names.
    pub const NAMES: Readers = Readers(1 << 38);
    /// The settings of connecting to another repository.
    pub const CONNECTION: Readers = Readers(1 << 39);
    /// The settings of receiving objects.
    pub const UNPACK: Readers = Readers(1 << 41);
    /// The settings of `archive` alone.
    pub const ARCHIVE: Readers = Readers(1 << 42);
    /// The settings of reading a pack that may contain large objects (`core.bigFileThreshold`).
    pub const CONTENTS: Readers = Readers(1 << 43);
    /// Reading the URL of a remote (`transfer.credentialsInUrl`).
    pub const CREDENTIALS: Readers = Readers(1 << 40);

    /// The readers that look up a key by name, so that only its last value is checked.
    const LAZY: Readers = all(&[
        Self::REPOSITORY,
        Self::REFERENCES,
        Self::PATHS,
        Self::INDEX,
        Self::PRELOAD,
        Self::NAMES,
        Self::CONNECTION,
        Self::CREDENTIALS,
        Self::UNPACK,
        Self::ARCHIVE,
        Self::CONTENTS,
    ]);

    /// Returns whether all of these readers check only the last value of a key.
    pub(super) fn is_lazy(self) -> bool {
        self.0 & !Self::LAZY.0 == 0
    }

    /// Returns whether these readers read settings only if there is an index file.
    pub(super) fn needs_index(self) -> bool {
        self.0 & !all(&[Self::INDEX, Self::PRELOAD]).0 == 0
    }

    /// Returns whether the set is empty.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the sets have a reader in common.
    pub fn meet(self, other: Readers) -> bool {
        !self.and(other).is_empty()
    }

    /// Returns the readers that are in both sets.
    pub(super) const fn and(self, other: Readers) -> Readers {
        Readers(self.0 & other.0)
    }

    /// Returns the readers that are in either set.
    pub(super) const fn or(self, other: Readers) -> Readers {
        Readers(self.0 | other.0)
    }
}

const fn all(sets: &[Readers]) -> Readers {
    let mut bits = 0;
    let mut at = 0;
    while at < sets.len() {
        bits |= sets[at].0;
        at += 1;
    }
    Readers(bits)
}

use Readers as R;

/// The readers of a command that uses the objects of the repository around the current directory.
const USUAL: Readers = all(&[R::DEFAULT, R::REPOSITORY]);
const WITH_REFERENCES: Readers = all(&[USUAL, R::REFERENCES, R::PATHS]);
const DIFFERENCES: Readers = all(&[USUAL, R::DIFF, R::USERDIFF, R::INDEX]);
const REMOTES: Readers = all(&[R::REMOTES, R::REFERENCES]);
const MOVING: Readers = all(&[
    WITH_REFERENCES,
    R::CONFLICTS,
    R::RECURSE,
    R::CHECKOUT,
    R::HOOKS,
]);

/// Returns whether the `arguments` of `switch` or `checkout` create a branch at `HEAD`.
fn creates_at_head(arguments: &[OsString]) -> bool {
    let creates = |argument: &OsString| {
        ["-b", "-B", "-c", "-C", "--create", "--force-create"]
            .iter()
            .any(|option| argument == option)
    };
    let plain = |argument: &&OsString| !argument.as_bytes().starts_with(b"-");
    arguments.iter().any(creates) && arguments.iter().filter(plain).count() == 1
}

/// Returns the readers that `command` calls, whatever it is asked to do.
pub fn readers_of(command: &str, arguments: &[OsString]) -> Readers {
    let plain = |argument: &&OsString| !argument.as_bytes().starts_with(b"-");
    let first = arguments.iter().find(plain);
    let action = first.map_or(&b""[..], |first| first.as_bytes());
    match command {
        "add" => all(&[
            USUAL,
            R::ADD,
            R::COLOR,
            R::PATHS,
            R::INDEX,
            R::PROMISOR,
            R::HOOKS,
        ]),
        "archive" => all(&[WITH_REFERENCES, R::NAMES, R::TAR, R::ARCHIVE, R::PROMISOR]),
        "bundle" if action == b"create" => all(&[R::REPOSITORY, R::REFERENCES, R::PATHS, R::NAMES]),
        "cat-file" => all(&[USUAL, R::USERDIFF, R::REFERENCES]),
        "check-ignore" if arguments.iter().any(|argument| argument == "--no-index") => {
            all(&[R::DEFAULT, R::PATHS])
        }
        "check-attr" | "check-ignore" => all(&[USUAL, R::PATHS, R::INDEX]),
        "checkout" if arguments.iter().any(|argument| argument == "--") => {
            all(&[MOVING, R::INDEX, R::PRELOAD])
        }
        // The creation of a branch at `HEAD` changes no files.
        "checkout" | "switch" if creates_at_head(arguments) => all(&[MOVING, R::NAMES]),
        "checkout" | "switch" => all(&[MOVING, R::INDEX, R::PRELOAD, R::PROMISOR]),
        "restore" => all(&[MOVING, R::INDEX, R::PRELOAD]),
        "checkout-index" => all(&[WITH_REFERENCES, R::INDEX]),
        "clean" => all(&[USUAL, R::COLOR, R::CLEAN, R::PATHS, R::INDEX]),
        "clone" => all(&[WITH_REFERENCES, R::CLONE, R::CREDENTIALS, R::HOOKS]),
        "commit" => all(&[STATUS, R::COMMIT, R::HOOKS]),
        "status" => STATUS,
        "commit-graph" if action == b"write" => all(&[WITH_REFERENCES, R::COMMIT_GRAPH]),
        // Without a commit-graph, no object is read.
        "commit-graph" => R::DEFAULT,
        "diff-files" => all(&[DIFFERENCES, R::PRELOAD, R::PROMISOR]),
        "diff-index" => all(&[
            DIFFERENCES,
            R::REFERENCES,
            R::PATHS,
            R::PRELOAD,
            R::PROMISOR,
        ]),
        "diff-tree" => all(&[DIFFERENCES, R::REFERENCES, R::PATHS]),
        _ => of_history(command, action, arguments),
    }
}

const STATUS: Readers = all(&[
    WITH_REFERENCES,
    R::DIFF,
    R::DIFF_UI,
    R::USERDIFF,
    R::COLOR,
    R::STATUS,
    R::INDEX,
    R::PRELOAD,
    R::NAMES,
    R::PROMISOR,
]);

fn of_history(command: &str, action: &[u8], arguments: &[OsString]) -> Readers {
    let writes = arguments.iter().any(|argument| argument == "-w");
    match command {
        "hash-object" if writes => all(&[USUAL, R::PATHS]),
        "hash-object" => all(&[R::DEFAULT, R::PATHS]),
        "index-pack" => all(&[USUAL, R::INDEX_PACK, R::CONTENTS]),
        "init" => all(&[R::DEFAULT, R::REFERENCES, R::PATHS, R::HOOKS]),
        "ls-files" | "write-tree" => all(&[USUAL, R::INDEX]),
        "update-index" => all(&[USUAL, R::INDEX, R::PATHS, R::HOOKS]),
        "ls-tree" | "rev-list" => WITH_REFERENCES,
        "merge-file" => all(&[R::DEFAULT, R::CONFLICTS]),
        "multi-pack-index" if action == b"write" || action == b"repack" => {
            all(&[USUAL, R::MULTI_PACK_INDEX])
        }
        "multi-pack-index" | "verify-pack" => R::DEFAULT,
        "pack-objects" => all(&[WITH_REFERENCES, R::PACK_OBJECTS]),
        "pack-refs" => all(&[WITH_REFERENCES, R::HOOKS]),
        "prune" => R::PATHS,
        "read-tree" => all(&[WITH_REFERENCES, R::RECURSE, R::INDEX, R::HOOKS]),
        "reflog" => match action {
            b"expire" | b"delete" => WITH_REFERENCES,
            _ => R::REFERENCES,
        },
        "refs" => match action {
            b"optimize" => all(&[WITH_REFERENCES, R::HOOKS]),
            b"list" => all(&[USUAL, R::REFERENCES]),
            b"verify" => all(&[R::DEFAULT, R::FSCK, R::REFERENCES]),
            _ => R::REFERENCES,
        },
        "repack" => all(&[
            WITH_REFERENCES,
            R::REPACK,
            R::PROMISOR,
            R::PACK_OBJECTS,
            R::INDEX,
        ]),
        "gc" => all(&[WITH_REFERENCES, R::PROMISOR]),
        "maintenance" if action == b"run" => WITH_REFERENCES,
        "maintenance" if action == b"is-needed" => R::DEFAULT,
        "reset" => all(&[WITH_REFERENCES, R::RECURSE, R::INDEX, R::PROMISOR, R::HOOKS]),
        "rev-parse" if !action.is_empty() => all(&[USUAL, R::REFERENCES]),
        "rev-parse" => USUAL,
        "show-ref" => all(&[USUAL, R::REFERENCES]),
        "sparse-checkout" => match action {
            b"list" => USUAL,
            _ => all(&[USUAL, R::PATHS, R::HOOKS, R::PROMISOR]),
        },
        "symbolic-ref" if changes_symbolic_ref(arguments) => {
            all(&[R::DEFAULT, R::REFERENCES, R::PATHS, R::HOOKS])
        }
        "symbolic-ref" => all(&[R::DEFAULT, R::REFERENCES]),
        "unpack-objects" => all(&[USUAL, R::CONTENTS]),
        "worktree" => match action {
            b"add" => all(&[WITH_REFERENCES, R::WORKTREE]),
            b"prune" | b"repair" => all(&[USUAL, R::WORKTREE, R::PATHS]),
            _ => all(&[USUAL, R::WORKTREE, R::REFERENCES]),
        },
        "fsmonitor--daemon" => all(&[R::DEFAULT, R::MONITOR]),
        _ => of_exchange(command, action),
    }
}

/// Returns whether the `arguments` of `symbolic-ref` change or delete a ref.
fn changes_symbolic_ref(arguments: &[OsString]) -> bool {
    let plain = |argument: &&OsString| !argument.as_bytes().starts_with(b"-");
    let deletes = |argument: &OsString| argument == "-d" || argument == "--delete";
    arguments.iter().any(deletes) || arguments.iter().filter(plain).count() > 1
}

fn of_exchange(command: &str, action: &[u8]) -> Readers {
    match command {
        "fetch" => all(&[
            WITH_REFERENCES,
            REMOTES,
            R::FETCH,
            R::RECURSE,
            R::PROMISOR,
            R::CREDENTIALS,
            R::NAMES,
            R::INDEX,
            R::HOOKS,
        ]),
        "fetch-pack" => all(&[WITH_REFERENCES, R::FETCH_FSCK, R::CONNECTION, R::UNPACK]),
        "ls-remote" => all(&[REMOTES, R::CREDENTIALS]),
        "push" => all(&[
            WITH_REFERENCES,
            REMOTES,
            R::PUSH,
            R::CONNECTION,
            R::RECURSE,
            R::CREDENTIALS,
        ]),
        "receive-pack" => all(&[R::DEFAULT, R::RECEIVE, R::REFERENCES, R::PATHS]),
        "remote" => match action {
            b"remove" | b"rm" | b"rename" => all(&[REMOTES, R::PATHS, R::HOOKS]),
            b"add" | b"set-url" => all(&[REMOTES, R::PATHS]),
            _ => REMOTES,
        },
        "send-pack" => all(&[WITH_REFERENCES, R::SEND_PACK, R::CONNECTION]),
        "upload-pack" => all(&[R::UPLOAD, R::REPOSITORY, R::REFERENCES, R::PATHS]),
        _ => R::NONE,
    }
}

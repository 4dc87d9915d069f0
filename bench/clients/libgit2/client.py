"""libgit2 (pygit2) as a client of a Git server. ../README.md describes the operations."""

import os
import sys

import pygit2

# libgit2 lacks the operation.
UNSUPPORTED = 9

# Values of git_credential_t, whose Python names differ between releases.
USERPASS_PLAINTEXT, SSH_KEY, USERNAME = 1, 2, 32

# The release of libgit2 that has shallow clones.
SHALLOW = (1, 7)


class Rejected(Exception):
    """The server has refused changes of refs."""


class Callbacks(pygit2.RemoteCallbacks):
    """Answers what libgit2 asks, with the variables of the environment."""

    def __init__(self):
        super().__init__()
        self.asked = 0
        self.rejected = []

    def credentials(self, url, username_from_url, allowed_types):
        self.asked += 1
        if self.asked > 3:
            raise Rejected("authentication failed")
        if allowed_types & SSH_KEY:
            key = os.environ["CLIENT_KEY"]
            return pygit2.Keypair(username_from_url or "git", key + ".pub", key, "")
        if allowed_types & USERNAME:
            return pygit2.Username(username_from_url or "git")
        if allowed_types & USERPASS_PLAINTEXT and self.asked == 1:
            user, token = os.environ.get("CLIENT_USER", ""), os.environ.get("CLIENT_TOKEN", "")
            return pygit2.UserPass(user, token)
        raise Rejected("authentication failed")

    def sideband_progress(self, string):
        sys.stderr.write(string)

    def push_update_reference(self, refname, message):
        if message is not None:
            self.rejected.append(f"{refname}: {message}")


def clone(url, directory, **more):
    pygit2.clone_repository(url, directory, callbacks=Callbacks(), **more)


def fetch(directory, **more):
    remote = pygit2.Repository(directory).remotes["origin"]
    remote.fetch(callbacks=Callbacks(), **more)


def push(directory, refspecs):
    callbacks = Callbacks()
    pygit2.Repository(directory).remotes["origin"].push(refspecs, callbacks=callbacks)
    if callbacks.rejected:
        raise Rejected("; ".join(callbacks.rejected))


def has_shallow():
    release = tuple(int(number) for number in pygit2.LIBGIT2_VERSION.split(".")[:2])
    return release >= SHALLOW


def run(operation, arguments):
    authority = os.environ.get("CLIENT_CA")
    if authority:
        pygit2.settings.set_ssl_cert_locations(authority, None)
    if operation == "version":
        print(f"{pygit2.LIBGIT2_VERSION} (pygit2 {pygit2.__version__})")
    elif operation == "clone":
        clone(*arguments)
    elif operation == "shallow" and has_shallow():
        clone(*arguments, depth=1)
    elif operation == "deepen" and has_shallow():
        fetch(arguments[0], depth=int(arguments[1]))
    elif operation == "fetch":
        fetch(*arguments)
    elif operation == "push":
        push(arguments[0], arguments[1:])
    else:
        return UNSUPPORTED
    return 0


try:
    sys.exit(run(sys.argv[1], sys.argv[2:]))
except (pygit2.GitError, Rejected, KeyError, ValueError, OSError) as error:
    sys.exit(f"error: {error}")

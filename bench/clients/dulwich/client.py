"""dulwich as a client of a Git server. ../README.md describes the operations."""

import os
import sys

import dulwich
from dulwich import porcelain
from dulwich.repo import Repo

# dulwich lacks the operation.
UNSUPPORTED = 9

# The release of dulwich that has partial clones, and that does not hang when it fetches into shallow ones.
FILTER = (0, 22)


class Messages:
    """Standard error that notes whether a change of a ref has failed: dulwich raises no error."""

    def __init__(self):
        self.failed = False

    def write(self, data):
        self.failed = self.failed or b"failed" in data
        return sys.stderr.buffer.write(data)

    def flush(self):
        sys.stderr.buffer.flush()


def login(url):
    """Returns the arguments that hold a token."""
    token = os.environ.get("CLIENT_TOKEN")
    if token and url.startswith("http"):
        return {"username": os.environ.get("CLIENT_USER", ""), "password": token}
    return {}


def address(directory):
    """Returns the URL of the remote of a clone."""
    config = Repo(directory).get_config()
    return config.get((b"remote", b"origin"), b"url").decode()


def clone(url, directory, **more):
    porcelain.clone(url, directory, errstream=sys.stderr.buffer, **login(url), **more)


def fetch(directory, **more):
    porcelain.fetch(
        directory, "origin", errstream=sys.stderr.buffer, **login(address(directory)), **more
    )


def push(directory, refspecs):
    messages = Messages()
    porcelain.push(
        directory,
        "origin",
        refspecs,
        outstream=sys.stderr.buffer,
        errstream=messages,
        **login(address(directory)),
    )
    return 1 if messages.failed else 0


def run(operation, arguments):
    if operation == "version":
        print(".".join(str(number) for number in dulwich.__version__))
    elif operation == "clone":
        clone(*arguments)
    elif operation == "shallow":
        clone(*arguments, depth=1)
    elif operation == "partial" and dulwich.__version__ >= FILTER:
        # Its checkout does not fetch what is missing.
        clone(*arguments, filter_spec="blob:none", checkout=False)
    elif operation == "deepen":
        fetch(arguments[0], depth=int(arguments[1]))
    elif operation == "fetch":
        if dulwich.__version__ < FILTER and os.path.exists(arguments[0] + "/.git/shallow"):
            return UNSUPPORTED
        fetch(*arguments)
    elif operation == "push":
        return push(arguments[0], arguments[1:])
    else:
        return UNSUPPORTED
    return 0


try:
    status = run(sys.argv[1], sys.argv[2:])
# What it raises has no common class.
except Exception as error:  # noqa: BLE001
    sys.exit(f"error: {type(error).__name__}: {error}")
sys.exit(status)

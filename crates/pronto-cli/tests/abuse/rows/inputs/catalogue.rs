//! The table of inputs: each has its bound in `docs/serve.md`, and a function that makes a request
//! of a given size.

mod pushes;

use crate::stage::Stage;
use crate::wire::{get, packet, refs_of};

use super::arguments::{
    ARGUMENTS, Argument, CAPABILITIES, OLD_LINES, capability, greeting, old, old_haves, repeated,
    start,
};
use super::doors::{Content, Door, Reply, Who};

/// The names and ids that requests use.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) first: String,
    pub(super) second: String,
}

impl Known {
    pub(super) fn of(stage: &Stage) -> Self {
        Known {
            first: stage.site.ids.first.clone(),
            second: stage.site.ids.second.clone(),
        }
    }
}

/// The expected response: its status, if the protocol has one, and a part of its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    statuses: &'static [u16],
    text: &'static str,
}

impl Expected {
    pub(super) fn fits(&self, reply: &Reply) -> bool {
        let is_status = reply
            .status
            .is_none_or(|status| self.statuses.contains(&status));
        // The protocol tells errors with status 200, too.
        let is_reported = reply.status == Some(200) && reply.text.starts_with("ERR ");
        (is_status || is_reported) && reply.text.contains(self.text)
    }
}

/// A refusal because the client lacks the permission.
pub(super) const FORBIDDEN: Expected = Expected {
    statuses: &[401, 403],
    text: "",
};

/// A refusal because the client lacks the permission, by the management API, which reads the short
/// body of a call first.
pub(super) const NOT_MANAGED: Expected = Expected {
    statuses: &[400, 401, 403],
    text: "",
};

/// Any valid response, because the arguments may contradict each other.
const ANSWERED: Expected = Expected {
    statuses: &[200, 400],
    text: "",
};

const fn ok(text: &'static str) -> Expected {
    Expected {
        statuses: &[200, 201],
        text,
    }
}

const fn reported(statuses: &'static [u16], text: &'static str) -> Expected {
    Expected { statuses, text }
}

/// A function that makes a request of a size, in the unit of its bound.
type Make = Box<dyn Fn(&Known, usize) -> Content + Send + Sync>;

/// An input in a kind of request.
pub(super) struct Input {
    /// The row to which the input belongs. A row has one server.
    pub(super) group: &'static str,
    pub(super) name: String,
    /// The name of the bound in the document.
    pub(super) bound: &'static str,
    /// Lines for the section `limits` of the configuration.
    pub(super) limits: &'static str,
    /// The bound under these limits; `None` for the bound in the document.
    pub(super) size: Option<usize>,
    /// Configuration of the repositories.
    pub(super) settings: &'static [(&'static str, &'static str)],
    pub(super) doors: &'static [Door],
    pub(super) who: &'static [Who],
    /// The factor by which the largest size exceeds the bound.
    pub(super) far: usize,
    pub(super) at: Expected,
    pub(super) past: Expected,
    pub(super) make: Make,
}

/// All kinds of clients that have a token or no login.
const EVERYONE: &[Who] = &[Who::Stranger, Who::Reader, Who::Writer, Who::Administrator];

/// The encodings of HTTP bodies.
const BODIES: &[Door] = &[Door::Http, Door::Chunked, Door::Gzip];

/// The configuration with which a repository advertises every feature.
const OFFERS: &[(&str, &str)] = &[
    ("uploadpack.allowFilter", "true"),
    ("uploadpack.allowRefInWant", "true"),
    ("uploadpack.allowSidebandAll", "true"),
    ("uploadpack.advertiseBundleURIs", "true"),
    ("transfer.advertiseSID", "true"),
    ("transfer.advertiseObjectInfo", "true"),
    ("receive.advertisePushOptions", "true"),
    ("receive.certNonceSeed", "seed"),
];

fn input(
    group: &'static str,
    name: impl Into<String>,
    bound: &'static str,
    make: impl Fn(&Known, usize) -> Content + Send + Sync + 'static,
) -> Input {
    Input {
        group,
        name: name.into(),
        bound,
        limits: "",
        size: None,
        settings: &[],
        doors: &[Door::Http],
        who: EVERYONE,
        far: 16,
        at: ok(""),
        past: reported(&[400], ""),
        make: Box::new(make),
    }
}

/// Returns all inputs.
pub(super) fn catalogue() -> Vec<Input> {
    let mut all = heads();
    all.extend(names());
    all.extend(calls());
    all.extend(listings());
    all.extend(fetches());
    all.extend(old_fetches());
    all.extend(pushes::archives());
    all.extend(pushes::pushes());
    all
}

fn health(headers: String) -> Content {
    Content::Get("/healthz".to_owned(), headers)
}

fn heads() -> Vec<Input> {
    vec![
        Input {
            past: reported(&[431], ""),
            who: &[Who::Stranger],
            ..input("heads", "head", "head of a request of HTTP", |_, count| {
                let bare = get("/healthz", "x: \r\n").len();
                let pad = "x".repeat(count.saturating_sub(bare));
                health(format!("x: {pad}\r\n"))
            })
        },
        Input {
            past: reported(&[431], ""),
            who: &[Who::Stranger],
            ..input("heads", "headers", "headers of a request", |_, count| {
                // `Host` is one, too.
                health("x: y\r\n".repeat(count - 1))
            })
        },
        Input {
            at: reported(&[401], "invalid token"),
            past: reported(&[401], "invalid token"),
            who: &[Who::Stranger],
            far: 3,
            ..input(
                "heads",
                "authorization",
                "header `Authorization`",
                |_, count| {
                    let pad = "x".repeat(count - "Bearer ".len());
                    let header = format!("authorization: Bearer {pad}\r\n");
                    Content::Get(refs_of("open/p", "git-upload-pack"), header)
                },
            )
        },
        Input {
            past: reported(&[400], "the header Git-Protocol is malformed"),
            who: &[Who::Stranger],
            far: 8,
            ..input(
                "heads",
                "git-protocol",
                "header `Git-Protocol`, variable `GIT_PROTOCOL`",
                |_, count| {
                    let pad = "x".repeat(count - "version=2:".len());
                    let header = format!("git-protocol: version=2:{pad}\r\n");
                    Content::Get(refs_of("open/p", "git-upload-pack"), header)
                },
            )
        },
        Input {
            doors: &[Door::Git],
            who: &[Who::Stranger],
            at: ok("ls-refs"),
            past: reported(&[], "ERR the request is not a pkt-line"),
            far: 7,
            ..input("heads", "greeting", "request of `git://`", |_, count| {
                Content::Raw(greeting(count))
            })
        },
    ]
}

fn names() -> Vec<Input> {
    let who = &[Who::Stranger];
    let past = reported(&[400], "invalid repository name");
    vec![
        Input {
            who,
            past,
            at: reported(&[401, 404], ""),
            far: 20,
            ..input("names", "name", "name of a repository", |_, count| {
                let name = format!("open/{}", "x".repeat(count - 5));
                Content::Get(refs_of(&name, "git-upload-pack"), String::new())
            })
        },
        Input {
            who,
            past,
            at: reported(&[401, 404], ""),
            far: 20,
            ..input(
                "names",
                "components",
                "components of the name of a repository",
                |_, count| {
                    let name = format!("open{}", "/x".repeat(count - 1));
                    Content::Get(refs_of(&name, "git-upload-pack"), String::new())
                },
            )
        },
        Input {
            doors: &[Door::Ssh],
            who: &[Who::Keyed],
            at: reported(&[], "invalid repository name"),
            past: reported(&[], "the command is too long"),
            far: 6,
            ..input("command", "command", "command of SSH", |_, count| {
                let pad = "x".repeat(count - "git-upload-pack ''".len());
                Content::Command(format!("git-upload-pack '{pad}'"), String::new())
            })
        },
    ]
}

fn calls() -> Vec<Input> {
    let large = reported(&[400], "the request body is too large or cannot be read");
    vec![
        Input {
            past: large,
            doors: &[Door::Http, Door::Chunked],
            at: reported(&[201, 409], ""),
            ..input(
                "calls",
                "call",
                "body of a call of the interface for programs",
                |_, count| {
                    let start = "{\"name\": \"new\"";
                    let pad = " ".repeat(count - start.len() - 1);
                    Content::Call("/api/v1/users", format!("{start}{pad}}}").into_bytes())
                },
            )
        },
        Input {
            who: &[Who::Stranger, Who::Writer, Who::Administrator],
            at: reported(&[201, 409], ""),
            past: reported(&[400, 403], ""),
            ..input(
                "calls",
                "line-of-a-key",
                "line of a public key",
                |_, count| {
                    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMYe0hKNkgqXHfHRrYhUDUeJfVqvUrPEi5Wpn2uIKcFd ";
                    let pad = "x".repeat(count - key.len());
                    let body = format!("{{\"key\": \"{key}{pad}\"}}");
                    Content::Call("/api/v1/users/bob/keys", body.into_bytes())
                },
            )
        },
    ]
}

/// Returns a list of refs with `count` bytes of prefixes.
fn long_prefixes(count: usize) -> Vec<u8> {
    let mut body = start("ls-refs");
    let (mut left, longest) = (count, 65_000);
    while left > 0 {
        let length = left.min(longest);
        body.extend(packet(format!("ref-prefix {}", "x".repeat(length))));
        left -= length;
    }
    body.extend_from_slice(b"0000");
    body
}

fn listings() -> Vec<Input> {
    let doors = &[Door::Http, Door::Chunked, Door::Gzip, Door::Ssh];
    let who = &[
        Who::Stranger,
        Who::Reader,
        Who::Writer,
        Who::Administrator,
        Who::Keyed,
    ];
    vec![
        Input {
            doors,
            who,
            far: 4,
            past: reported(&[200, 400], "the prefixes of ls-refs have more than"),
            ..input(
                "listings",
                "bytes-of-prefixes",
                "prefixes of `ls-refs`",
                |_, count| Content::Fetch(long_prefixes(count)),
            )
        },
        Input {
            doors: &[Door::Git],
            who: &[Who::Stranger],
            far: 4,
            // As with git, the conversation only ends; the log has the reason.
            past: ok("version 2"),
            ..input(
                "listings",
                "bytes-of-prefixes over git",
                "prefixes of `ls-refs`",
                |_, count| Content::Fetch(long_prefixes(count)),
            )
        },
        Input {
            past: ok("refs/heads/main"),
            far: 3,
            who: &[Who::Stranger, Who::Administrator],
            ..input(
                "listings",
                "number-of-prefixes",
                "number of prefixes, above which all refs are listed",
                |_, count| {
                    let mut body = start("ls-refs");
                    body.extend(packet("ref-prefix x").repeat(count));
                    body.extend_from_slice(b"0000");
                    Content::Fetch(body)
                },
            )
        },
        Input {
            doors,
            who: &[Who::Stranger, Who::Administrator, Who::Keyed],
            at: reported(&[400], "unknown capability"),
            past: reported(&[400], "protocol error"),
            // Four digits cannot tell more.
            far: 0,
            ..input("listings", "packet", "packet", |_, count| {
                let mut body = packet("command=ls-refs\n");
                body.extend(format!("{count:04x}").into_bytes());
                body.extend(vec![b'x'; count - 4]);
                body.extend_from_slice(b"00010000");
                Content::Fetch(body)
            })
        },
    ]
}

/// The limit of fetch bodies in these rows, which is small to save time.
const SMALL: usize = 1 << 16;
const SMALL_FETCH: &str = "fetch_bytes = 65536";
const FETCH_BYTES: &str = "body of a fetch, as sent and inflated";

/// Creates the input for the body of a fetch.
fn of_fetch(
    group: &'static str,
    name: String,
    make: impl Fn(&Known, usize) -> Content + Send + Sync + 'static,
) -> Input {
    Input {
        limits: SMALL_FETCH,
        size: Some(SMALL),
        settings: OFFERS,
        doors: BODIES,
        who: &[Who::Stranger, Who::Administrator],
        far: 2,
        at: ANSWERED,
        // An early answer is broken off.
        past: reported(&[0, 400, 413], ""),
        ..input(group, name, FETCH_BYTES, make)
    }
}

fn fetches() -> Vec<Input> {
    let mut all: Vec<Input> = Vec::new();
    for Argument { command, line } in ARGUMENTS.iter().copied() {
        all.push(of_fetch(
            command,
            format!("{command} {line}"),
            move |known, count| Content::Fetch(repeated(Argument { command, line }, known, count)),
        ));
    }
    for line in CAPABILITIES.iter().copied() {
        all.push(of_fetch(
            "capabilities",
            line.to_owned(),
            move |known, count| Content::Fetch(capability(line, known, count)),
        ));
    }
    all
}

fn old_fetches() -> Vec<Input> {
    let mut all: Vec<Input> = Vec::new();
    for line in OLD_LINES.iter().copied() {
        all.push(of_fetch(
            "old-fetch",
            line.trim().to_owned(),
            move |known, count| Content::OldFetch(old(line, known, count)),
        ));
    }
    all.push(of_fetch("old-fetch", "have".to_owned(), |known, count| {
        Content::OldFetch(old_haves(known, count))
    }));
    all
}

//! The entry points of the server: protocols and encodings of bodies.

use crate::client::Connection;
use crate::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, RESET, fields, frame};
use crate::stage::Stage;
use crate::wire::{FETCH, PUSH, V2, packet, unbanded};

/// A kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Stranger,
    /// Bob, who has read permission.
    Reader,
    /// Alice, who has write permission.
    Writer,
    /// Root, who manages the server.
    Administrator,
    /// Mallory with a key, who manages `own/*`.
    Keyed,
}

/// The permission that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    Read,
    Write,
    /// Reading as an authenticated user.
    ReadAsUser,
    /// Managing users.
    Manage,
}

impl Who {
    pub(super) fn may(self, right: Right) -> bool {
        match right {
            Right::Read => true,
            Right::ReadAsUser => self != Who::Stranger,
            Right::Write => matches!(self, Who::Writer | Who::Administrator | Who::Keyed),
            Right::Manage => self == Who::Administrator,
        }
    }

    pub(super) fn user(self) -> Option<&'static str> {
        match self {
            Who::Stranger => None,
            Who::Reader => Some("bob"),
            Who::Writer => Some("alice"),
            Who::Administrator => Some("root"),
            Who::Keyed => Some("mallory"),
        }
    }

    pub(super) fn repository(self) -> &'static str {
        match self {
            Who::Stranger => "open/p",
            Who::Keyed => "own/m",
            _ => "team/a",
        }
    }
}

/// An entry point of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// HTTP/1.1 with a body of a known length.
    Http,
    /// HTTP/1.1 with a chunked body.
    Chunked,
    /// HTTP/1.1 with a compressed body.
    Gzip,
    Http2,
    Git,
    Ssh,
}

impl Door {
    pub(super) const ALL: &[Door] = &[
        Door::Http,
        Door::Chunked,
        Door::Gzip,
        Door::Http2,
        Door::Git,
        Door::Ssh,
    ];

    /// Returns whether the client can use the entry point.
    pub(super) fn is_for(self, who: Who) -> bool {
        match self {
            Door::Git => who == Who::Stranger,
            Door::Ssh => who == Who::Keyed,
            _ => who != Who::Keyed,
        }
    }
}

/// A request, independent of the protocol.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// A fetch request of version 2.
    Fetch(Vec<u8>),
    /// A fetch request of versions 0 and 1.
    OldFetch(Vec<u8>),
    /// A push: commands, options and a pack.
    Push(Vec<u8>),
    Archive(Vec<u8>),
    /// A request without a body: its path and headers.
    Get(String, String),
    /// A call of the management API.
    Call(&'static str, Vec<u8>),
    /// The first bytes of a connection.
    Raw(Vec<u8>),
    /// An SSH command, and the value of `GIT_PROTOCOL`.
    Command(String, String),
}

impl Content {
    pub(super) fn len(&self) -> usize {
        match self {
            Content::Fetch(body)
            | Content::OldFetch(body)
            | Content::Push(body)
            | Content::Archive(body)
            | Content::Call(_, body)
            | Content::Raw(body) => body.len(),
            Content::Get(path, headers) => path.len() + headers.len(),
            Content::Command(command, protocol) => command.len() + protocol.len(),
        }
    }

    pub(super) fn needs(&self) -> Right {
        match self {
            Content::Push(_) => Right::Write,
            Content::Archive(_) => Right::ReadAsUser,
            Content::Call(..) => Right::Manage,
            _ => Right::Read,
        }
    }

    fn body(&self) -> &[u8] {
        match self {
            Content::Fetch(body)
            | Content::OldFetch(body)
            | Content::Push(body)
            | Content::Archive(body)
            | Content::Call(_, body)
            | Content::Raw(body) => body,
            Content::Get(..) | Content::Command(..) => &[],
        }
    }

    fn service(&self) -> &'static str {
        match self {
            Content::Push(_) => PUSH,
            Content::Archive(_) => "git-upload-archive",
            _ => FETCH,
        }
    }

    /// Returns the path over HTTP, and the content type of the body.
    fn address(&self, who: Who) -> (String, String) {
        let service = self.service();
        match self {
            Content::Get(path, _) => (path.clone(), String::new()),
            Content::Call(path, _) => ((*path).to_owned(), "application/json".to_owned()),
            _ => (
                format!("/{}/{service}", who.repository()),
                format!("application/x-{service}-request"),
            ),
        }
    }

    fn headers(&self) -> &str {
        match self {
            Content::Fetch(_) => V2,
            Content::Get(_, headers) => headers,
            _ => "",
        }
    }
}

/// The status of a response that starts successfully and is truncated.
const BROKEN_OFF: u16 = 0;

/// A response.
#[derive(Clone, Debug, Default)]
pub(super) struct Reply {
    /// The HTTP status; `None` for other protocols.
    pub(super) status: Option<u16>,
    pub(super) text: String,
}

fn compressed(content: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut bytes = vec![0; compressor.gzip_compress_bound(content.len())];
    let length = compressor.gzip_compress(content, &mut bytes);
    bytes.truncate(length.expect("there is room"));
    bytes
}

/// Returns an HTTP/1.1 request: its head, and its encoded body.
fn of_http(stage: &Stage, door: Door, who: Who, content: &Content) -> (String, Vec<u8>) {
    let (path, kind) = content.address(who);
    let token = who.user().map(|user| stage.token(user));
    let mut head = content.headers().to_owned();
    if !head.to_ascii_lowercase().contains("authorization:") {
        head.push_str(&token.unwrap_or_default());
    }
    if let Content::Get(..) = content {
        return (
            format!("GET {path} HTTP/1.1\r\nhost: x\r\n{head}\r\n"),
            Vec::new(),
        );
    }
    let (more, body) = match door {
        Door::Gzip => ("content-encoding: gzip\r\n", compressed(content.body())),
        Door::Chunked => ("transfer-encoding: chunked\r\n", chunks(content.body())),
        _ => ("", content.body().to_vec()),
    };
    let length = match door {
        Door::Chunked => String::new(),
        _ => format!("content-length: {}\r\n", body.len()),
    };
    let start = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\n");
    (format!("{start}{head}{more}{length}\r\n"), body)
}

fn chunks(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in body.chunks(1 << 16) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// Returns the bytes that a client sends over `git://`.
fn of_git(who: Who, content: &Content) -> Vec<u8> {
    if let Content::Raw(bytes) = content {
        return bytes.clone();
    }
    let version = match content {
        Content::Fetch(_) => "\0version=2\0",
        _ => "",
    };
    let path = who.repository();
    let line = format!("{} /{path}\0host=x\0{version}", content.service());
    [packet(line), content.body().to_vec()].concat()
}

/// Sends a request, and returns the response.
pub(super) fn send(
    stage: &mut Stage,
    door: Door,
    who: Who,
    content: &Content,
) -> Result<Reply, String> {
    match door {
        Door::Http | Door::Chunked | Door::Gzip => {
            let (head, body) = of_http(stage, door, who, content);
            let mut connection = stage.connect();
            let answer = connection.send(head).send(body).answer();
            if answer
                .as_ref()
                .is_err_and(|text| text.contains("is broken off"))
            {
                return Ok(Reply {
                    status: Some(BROKEN_OFF),
                    ..Reply::default()
                });
            }
            let answer = answer?;
            Ok(Reply {
                status: Some(answer.status),
                text: String::from_utf8_lossy(&unbanded(&answer.body)).into_owned()
                    + &answer.text(),
            })
        }
        Door::Http2 => over_frames(stage, who, content),
        Door::Git => {
            let mut connection = stage.connect_git();
            connection.send(of_git(who, content));
            let bytes = connection.shut().ends()?;
            Ok(Reply {
                status: None,
                text: String::from_utf8_lossy(&bytes).into_owned(),
            })
        }
        Door::Ssh => Ok(over_ssh(stage, who, content)),
    }
}

fn over_ssh(stage: &mut Stage, who: Who, content: &Content) -> Reply {
    let (command, protocol) = match content {
        Content::Command(command, protocol) => (command.clone(), protocol.clone()),
        Content::Fetch(_) => (String::new(), "version=2".to_owned()),
        _ => Default::default(),
    };
    let command = match command.is_empty() {
        true => format!("{} '{}'", content.service(), who.repository()),
        false => command,
    };
    let output = stage.ssh().converse(&command, &protocol, content.body());
    let text = [unbanded(&output.stdout), output.stdout, output.stderr].concat();
    Reply {
        status: None,
        text: String::from_utf8_lossy(&text).into_owned(),
    }
}

/// Sends a request over HTTP/2, up to the initial flow-control windows.
fn over_frames(stage: &mut Stage, who: Who, content: &Content) -> Result<Reply, String> {
    let (path, kind) = content.address(who);
    let token = who.user().map(|user| stage.site.ids.token(user).to_owned());
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut more = vec![("content-type", kind.as_str())];
    if let Content::Fetch(_) = content {
        more.push(("git-protocol", "version=2"));
    }
    if let Some(bearer) = &bearer {
        more.push(("authorization", bearer));
    }
    let mut attack = stage.frames();
    let head = fields("POST", &path, &more);
    attack.send(frame(HEADERS, END_HEADERS, 1, &head));
    let body = content.body();
    let most = body.len().min(WINDOW_BYTES);
    for part in body[..most].chunks(1 << 14) {
        attack.send(frame(DATA, 0, 1, part));
    }
    attack.send(frame(DATA, END_STREAM, 1, b""));
    let mut reply = Reply {
        // The status is compressed; the text tells enough.
        status: None,
        text: String::new(),
    };
    loop {
        let got = attack.next()?;
        match got.kind {
            DATA => reply.text.push_str(&String::from_utf8_lossy(&got.payload)),
            RESET => return Ok(reply),
            _ => {}
        }
        let ends = matches!(got.kind, DATA | HEADERS) && got.flags & END_STREAM != 0;
        if ends && got.stream == 1 {
            return Ok(reply);
        }
    }
}

/// The initial flow-control window of HTTP/2.
const WINDOW_BYTES: usize = 65_535;

/// Sends the first half of a request, and leaves the connection open.
pub(super) fn begin(
    stage: &mut Stage,
    door: Door,
    who: Who,
    content: &Content,
) -> Option<Connection> {
    match door {
        Door::Http | Door::Chunked | Door::Gzip => {
            let (head, body) = of_http(stage, door, who, content);
            let bytes = [head.as_bytes(), &body].concat();
            // All of a head, and half of a body.
            let half = match body.is_empty() {
                true => bytes.len() / 2,
                false => head.len() + body.len() / 2,
            };
            let mut connection = stage.connect();
            connection.send(&bytes[..half]);
            Some(connection)
        }
        Door::Git => {
            let bytes = of_git(who, content);
            let mut connection = stage.connect_git();
            connection.send(&bytes[..bytes.len() / 2]);
            Some(connection)
        }
        // `streams` and `shell` have rows for these.
        Door::Http2 | Door::Ssh => None,
    }
}

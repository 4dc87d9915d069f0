//! A minimal HTTP server: one request and one response for each connection.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::Duplex;
use super::git::{Offer, line};

/// An HTTP request.
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path and the query.
    pub(crate) target: String,
    pub(crate) headers: Vec<Header>,
    pub(crate) body: Vec<u8>,
}

/// A header field.
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value.as_str())
    }

    pub(crate) fn is_authorized(&self) -> bool {
        self.header("authorization").is_some()
    }
}

/// Serves one connection.
pub(super) fn serve<A>(mut stream: &mut dyn Duplex, answer: &A) -> io::Result<()>
where
    A: Fn(&Request, &mut dyn Write) -> io::Result<()>,
{
    let Some(request) = read(stream)? else {
        return Ok(());
    };
    answer(&request, &mut stream)?;
    stream.flush()
}

fn read(stream: &mut dyn Duplex) -> io::Result<Option<Request>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut rows = head.lines();
    let mut words = rows.next().unwrap_or_default().split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (method, target) = (word(), word());
    let headers = rows.filter_map(|row| {
        let (name, value) = row.split_once(':')?;
        Some(Header {
            name: name.to_owned(),
            value: value.trim().to_owned(),
        })
    });
    let mut request = Request {
        method,
        target,
        headers: headers.collect(),
        body: Vec::new(),
    };
    if let Some(length) = request.header("content-length") {
        let length = length.parse().map_err(io::Error::other)?;
        request.body = vec![0; length];
        stream.read_exact(&mut request.body)?;
    } else if request.header("transfer-encoding").is_some() {
        request.body = read_chunks(stream)?;
    }
    Ok(Some(request))
}

fn read_chunks(stream: &mut dyn Duplex) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = Vec::new();
        while !size.ends_with(b"\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            size.push(byte[0]);
        }
        let text = String::from_utf8_lossy(&size).trim().to_owned();
        let length = usize::from_str_radix(&text, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; length + 2];
        stream.read_exact(&mut chunk)?;
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&chunk[..length]);
    }
}

/// Writes a complete response.
pub(crate) fn respond(
    out: &mut dyn Write,
    status: &str,
    headers: &[&str],
    body: &[u8],
) -> io::Result<()> {
    begin(out, status, headers)?;
    write!(out, "Content-Length: {}\r\n\r\n", body.len())?;
    out.write_all(body)?;
    out.flush()
}

/// Writes the status line and first header fields of a response. More fields may follow.
pub(crate) fn begin(out: &mut dyn Write, status: &str, headers: &[&str]) -> io::Result<()> {
    write!(out, "HTTP/1.1 {status}\r\nConnection: close\r\n")?;
    for header in headers {
        write!(out, "{header}\r\n")?;
    }
    Ok(())
}

/// Redirects the client.
pub(crate) fn redirect(out: &mut dyn Write, target: &str) -> io::Result<()> {
    let location = format!("Location: {target}");
    respond(out, "302 Found", &[&location], b"")
}

/// Requests a password.
pub(crate) fn challenge(out: &mut dyn Write) -> io::Result<()> {
    let wanted = "WWW-Authenticate: Basic realm=\"canary\"";
    respond(out, "401 Unauthorized", &[wanted], b"")
}

const ADVERTISEMENT: &str = "Content-Type: application/x-git-upload-pack-advertisement";
const RESULT: &str = "Content-Type: application/x-git-upload-pack-result";

/// Responds as a Git server with `offer`.
pub(crate) fn offer(offer: &Offer, request: &Request, out: &mut dyn Write) -> io::Result<()> {
    if request.method == "POST" {
        return respond(out, "200 OK", &[RESULT], &offer.answer(&request.body));
    }
    let service = line("# service=git-upload-pack\n");
    let body = [&service[..], b"0000", &offer.first_words()].concat();
    respond(out, "200 OK", &[ADVERTISEMENT], &body)
}

/// Responds as a server of the repository at `path`, by means of real git.
pub(crate) fn repository(path: &Path, request: &Request, out: &mut dyn Write) -> io::Result<()> {
    let is_post = request.method == "POST";
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*", "upload-pack", "--stateless-rpc"]);
    if !is_post {
        command.arg("--advertise-refs");
    }
    let mut child = command
        .arg(path)
        .env("GIT_PROTOCOL", request.header("git-protocol").unwrap_or(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().expect("it is a pipe");
    // git may not read the whole request.
    let _ = input.write_all(&request.body);
    drop(input);
    let answer = child.wait_with_output()?.stdout;
    if is_post {
        return respond(out, "200 OK", &[RESULT], &answer);
    }
    let service = line("# service=git-upload-pack\n");
    respond(
        out,
        "200 OK",
        &[ADVERTISEMENT],
        &[&service[..], b"0000", &answer].concat(),
    )
}

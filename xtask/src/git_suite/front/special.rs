//! Responses that a Git server does not make: files, redirects, and intentional errors.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use super::FrontExchange;
use super::http::{self, BodyLength};
use super::routes::GitServer;

/// The credentials of the suite's user, as HTTP Basic sends them: `user@host:pass@host`.
const USER: &str = "Basic dXNlckBob3N0OnBhc3NAaG9zdA==";

/// The credentials of a user without any permission: `forbidden-user@host:pass@host`.
const FORBIDDEN: &str = "Basic Zm9yYmlkZGVuLXVzZXJAaG9zdDpwYXNzQGhvc3Q=";

/// The name of the script of a test that changes one response.
const SCRIPT: &str = "one-time-script";

impl FrontExchange<'_> {
    /// Sends a file. A protected file requires the credentials of the suite's user.
    pub(super) fn file(&mut self, path: &str) -> io::Result<()> {
        if path.starts_with("auth/") {
            match self.head.header("authorization") {
                Some(USER) => {}
                Some(FORBIDDEN) => return self.answer("403 Forbidden", "", b"forbidden\n"),
                _ => {
                    let header = "WWW-Authenticate: Basic realm=\"git-auth\"\r\n";
                    return self.answer("401 Unauthorized", header, b"unauthorized\n");
                }
            }
        }
        if !matches!(self.head.method.as_str(), "GET" | "HEAD") {
            return self.answer("405 Method Not Allowed", "Allow: GET, HEAD\r\n", b"");
        }
        let is_plain = path.split('/').all(|part| part != "..");
        let file = self.front.root.join("www").join(path);
        match file.is_file() && is_plain {
            true => self.answer("200 OK", "", &std::fs::read(file)?),
            false => self.answer("404 Not Found", "", b"not found\n"),
        }
    }

    pub(super) fn redirect(&mut self, status: u16, location: &str) -> io::Result<()> {
        let location = match location.starts_with('/') {
            true => format!("http://{}{location}", self.front.listen),
            false => location.to_owned(),
        };
        let header = format!("Location: {location}\r\n");
        self.answer(&format!("{status} Elsewhere"), &header, b"")
    }

    /// Sends an error of the server, with the content type and the character set that `name`
    /// selects.
    pub(super) fn error(&mut self, name: &str) -> io::Result<()> {
        let name = name.split('/').next().unwrap_or_default();
        let (kind, is_wide) = match name {
            "html" => ("text/html", false),
            "text" => ("text/plain", false),
            "charset" => ("text/plain; charset=utf-8", false),
            "utf16" => ("text/plain; charset=utf-16", true),
            "odd-spacing" => ("text/plain; foo=bar ;charset=utf-16; other=nonsense", true),
            _ => ("", false),
        };
        let text = "this is the error message\n";
        let body = match is_wide {
            true => [0xfeff]
                .into_iter()
                .chain(text.encode_utf16())
                .flat_map(u16::to_be_bytes)
                .collect(),
            false => text.as_bytes().to_vec(),
        };
        let header = match kind {
            "" => String::new(),
            kind => format!("Content-Type: {kind}\r\n"),
        };
        self.answer("500 Intentional Breakage", &header, &body)
    }

    /// Sends the response to a push without a report about refs: `unpack ok`, a message, and the
    /// end.
    pub(super) fn no_report(&mut self) -> io::Result<()> {
        let header = "Content-Type: application/x-git-receive-pack-result\r\n";
        let body = b"0013\x01000eunpack ok\n0015\x02skipping report\n0009\x0100000000";
        self.answer("200 OK", header, body)
    }

    /// Forwards a request with the credentials of the test, and challenges all other requests. The
    /// files with credentials and challenges have lines `id=ID creds=VALUE`, `id=ID status=STATUS`
    /// and `id=ID response=HEADER`. The id of challenges is `default`.
    pub(super) fn challenge(&mut self, target: &str) -> io::Result<()> {
        let read = |name: &str| {
            std::fs::read(self.front.root.join(name))
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .unwrap_or_default()
        };
        let (valid, challenges) = (read("custom-auth.valid"), read("custom-auth.challenge"));
        let value = self.head.header("authorization").unwrap_or_default();
        let creds = format!("creds={value}");
        let line = valid
            .lines()
            .find(|line| !value.is_empty() && line.contains(&creds));
        let id = line.and_then(|line| line.split([' ', '=']).nth(1));
        let mark = format!("id={} ", id.unwrap_or("default"));
        let of_id = |field: &str| {
            let lines = challenges
                .lines()
                .filter_map(|line| line.strip_prefix(&mark));
            let found = lines.filter_map(|line| line.split_once(field));
            found.map(|(_, value)| value.to_owned()).collect::<Vec<_>>()
        };
        let status = match id {
            Some(_) => of_id("status=").into_iter().next().unwrap_or_default(),
            None => "401".to_owned(),
        };
        if status == "200" {
            self.head.remove("authorization");
            return self.forward(GitServer::Main, target);
        }
        let headers: String = (of_id("response=").iter())
            .map(|line| format!("{line}\r\n"))
            .collect();
        self.answer(&format!("{status} Challenge"), &headers, b"")
    }

    /// Runs the script of the test on the response of the server. If the script changes the
    /// response, the script is removed.
    pub(super) fn once(&mut self, target: &str) -> io::Result<()> {
        let script = self.front.root.join(SCRIPT);
        if !script.is_file() {
            return self.forward(GitServer::Main, target);
        }
        let mut body = Vec::new();
        BodyLength::of(&self.head)?.read(&mut self.reader, &mut body)?;
        let mut upstream = TcpStream::connect(self.front.main)?;
        // The server's response to HTTP/1.0 has no chunks.
        let length = Some(body.len());
        upstream.write_all(&self.head.bytes_for(target, "HTTP/1.0", length))?;
        upstream.write_all(&body)?;
        let mut answers = BufReader::new(upstream);
        let mut lines = http::read_lines(&mut answers)?;
        let status = match lines.is_empty() {
            true => return Err(io::ErrorKind::UnexpectedEof.into()),
            false => lines.remove(0),
        };
        lines.retain(|line| line.to_ascii_lowercase().starts_with("content-type"));
        let mut answer = format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes();
        answers.read_to_end(&mut answer)?;
        std::fs::write(self.front.root.join("answer"), &answer)?;
        let changed = Command::new(&script)
            .arg("answer")
            .current_dir(&self.front.root)
            .env("LC_ALL", "C")
            .output()?
            .stdout;
        if changed != answer {
            std::fs::remove_file(&script)?;
        }
        let end = changed.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let (head, rest) = changed.split_at(end.map_or(0, |end| end + 4));
        let headers = String::from_utf8_lossy(head).trim_end().to_owned() + "\r\n";
        let status = status.split_once(' ').map_or("", |(_, status)| status);
        self.answer(status, headers.trim_start(), rest)
    }
}

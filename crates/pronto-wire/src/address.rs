//! Addresses of repositories: URLs, scp-like `host:path`, and paths, distinguished as in Git.

use bstr::{BStr, BString, ByteSlice};

use crate::error::{Error, ErrorKind};
use crate::escapes::decoded;
use crate::url::Url;

/// The parsed address of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteAddress {
    /// A repository on this machine: a path, or `file://` and a path.
    File {
        /// The path as it was given.
        path: BString,
    },
    /// `git://`: a git daemon, without encryption or authentication.
    Git {
        /// The name or IP address of the host, without brackets.
        host: String,
        /// The port, if it was given.
        port: Option<u16>,
        /// The path on the host.
        path: BString,
    },
    /// `ssh://` and `host:path`.
    Ssh {
        /// The host, with `user@` if one is given, without brackets.
        host: String,
        /// The port, if one is given.
        port: Option<u16>,
        /// The path on the host.
        path: BString,
    },
    /// `http://` and `https://`.
    Http {
        /// The URL, including user and password.
        url: Url,
    },
}

impl RemoteAddress {
    /// Parses `text`. Does not check whether a path exists.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`] if the scheme is unknown, or [`ErrorKind::Address`] if
    /// there is no path, or a program could treat a part of the address as an option.
    pub fn parse(text: &BStr) -> Result<Self, Error> {
        if let Some(helper) = helper_name(text) {
            let message = format!("remote helper '{helper}' is not supported");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let Some((scheme, rest)) = text.split_once_str("://").filter(|_| is_url(text)) else {
            return if is_local(text) {
                file(text)
            } else {
                scp(text)
            };
        };
        match scheme {
            b"http" | b"https" => Ok(RemoteAddress::Http {
                url: Url::parse(text)?,
            }),
            b"file" => {
                let rest = decoded(rest);
                let start = rest.find_byte(b'/').ok_or_else(no_path)?;
                file(rest[start..].as_bstr())
            }
            b"git" => with_host(rest, |host, port, path| RemoteAddress::Git {
                host,
                port,
                path,
            }),
            b"ssh" | b"git+ssh" | b"ssh+git" => with_host(rest, |host, port, path| {
                RemoteAddress::Ssh { host, port, path }
            }),
            _ => {
                let scheme = scheme.as_bstr();
                let message = format!("remote helper '{scheme}' is not supported");
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// Returns the name of the transport in `protocol.NAME.allow`.
    pub fn protocol(&self) -> &'static str {
        match self {
            RemoteAddress::File { .. } => "file",
            RemoteAddress::Git { .. } => "git",
            RemoteAddress::Ssh { .. } => "ssh",
            RemoteAddress::Http { url } if url.scheme() == "https" => "https",
            RemoteAddress::Http { .. } => "http",
        }
    }
}

/// Returns whether `text` starts with a scheme and `://`.
pub fn is_url(text: &BStr) -> bool {
    match text.find("://") {
        Some(end) if end > 0 => text[..end]
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')),
        _ => false,
    }
}

/// Returns whether `text` is a path instead of `host:path`: no colon precedes the first slash.
pub fn is_local(text: &BStr) -> bool {
    match (text.find_byte(b':'), text.find_byte(b'/')) {
        (None, _) => true,
        (Some(colon), Some(slash)) => slash < colon,
        (Some(_), None) => false,
    }
}

/// Returns `text` without user and password, for messages and files.
///
/// Accepts texts that are not valid URLs, too. In these everything that may be a login is removed: all
/// up to the last `@` before the path.
pub fn without_credentials(text: &BStr) -> BString {
    let Some((scheme, rest)) = text.split_once_str("://") else {
        return text.into();
    };
    let authority_end = rest.find_byte(b'/').unwrap_or(rest.len());
    match rest[..authority_end].rfind_byte(b'@') {
        Some(at) => [scheme, b"://", &rest[at + 1..]].concat().into(),
        None => text.into(),
    }
}

fn helper_name(text: &BStr) -> Option<&BStr> {
    let (name, _) = text.split_once_str("::")?;
    let valid = !name.is_empty()
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'.'));
    valid.then(|| name.as_bstr())
}

fn file(path: &BStr) -> Result<RemoteAddress, Error> {
    Ok(RemoteAddress::File {
        path: checked_path(path)?,
    })
}

fn with_host(
    rest: &[u8],
    make: impl FnOnce(String, Option<u16>, BString) -> RemoteAddress,
) -> Result<RemoteAddress, Error> {
    let rest = decoded(rest);
    let after_brackets = bracket_end(&rest);
    let start = rest[after_brackets..]
        .find_byte(b'/')
        .map(|at| at + after_brackets)
        .ok_or_else(no_path)?;
    if let Some(at) = rest[..start].find_byteset(b"?#") {
        let byte = char::from(rest[at]);
        return Err(bad(format!("'{byte}' makes the host ambiguous")));
    }
    let (host, port) = host_and_port(&rest[..start])?;
    let path = home_relative(&rest[start..]);
    Ok(make(host, port, checked_path(path)?))
}

fn scp(text: &BStr) -> Result<RemoteAddress, Error> {
    let after_brackets = bracket_end(text);
    let colon = text[after_brackets..]
        .find_byte(b':')
        .map(|at| at + after_brackets)
        .ok_or_else(no_path)?;
    let path = &text[colon + 1..];
    if path.is_empty() {
        return Err(no_path());
    }
    let (host, port) = host_and_port(&text[..colon])?;
    let path = checked_path(home_relative(path))?;
    Ok(RemoteAddress::Ssh { host, port, path })
}

/// Removes the slash before `~user`, so that the path is relative to the home directory of the user.
fn home_relative(path: &[u8]) -> &BStr {
    match path {
        [b'/', rest @ ..] if rest.starts_with(b"~") => rest.as_bstr(),
        _ => path.as_bstr(),
    }
}

/// Returns the end of the `[...]` around the host, or 0.
fn bracket_end(text: &[u8]) -> usize {
    let start = text.find(b"@[").map_or(0, |at| at + 1);
    if text.get(start) != Some(&b'[') {
        return 0;
    }
    text[start..]
        .find_byte(b']')
        .map_or(0, |end| start + end + 1)
}

fn host_and_port(text: &[u8]) -> Result<(String, Option<u16>), Error> {
    let text = text
        .to_str()
        .map_err(|_| bad(format!("strange hostname '{}' blocked", text.as_bstr())))?;
    let end = bracket_end(text.as_bytes());
    let (host, port) = if end > 0 {
        let start = text.find('[').unwrap_or(0);
        let inner = &text[start + 1..end - 1];
        let port = text[end..].strip_prefix(':').unwrap_or("");
        let user = &text[..start];
        match inner.split_once(':') {
            // The brackets contain host and port: `[host:port]:path`, but not `[::1]:path`.
            Some((host, port)) if !port.contains(':') => (format!("{user}{host}"), port),
            _ => (format!("{user}{inner}"), port),
        }
    } else {
        port_after_host(text)
    };
    if host.starts_with('-') {
        return Err(bad(format!("strange hostname '{host}' blocked")));
    }
    if host.contains(['\n', '\0']) {
        return Err(bad("newline is forbidden in git:// hosts and repo paths"));
    }
    if host.bytes().any(|byte| byte.is_ascii_control()) {
        let shown = host.escape_default();
        return Err(bad(format!("strange hostname '{shown}' blocked")));
    }
    if port.is_empty() {
        return Ok((host, None));
    }
    match port.parse() {
        Ok(port) => Ok((host, Some(port))),
        Err(_) => Err(bad(format!("bad port '{port}' in '{text}'"))),
    }
}

/// Splits the port after the first colon off a host. Text that is not a number is part of the host, as
/// in an IPv6 address without brackets, or after a login with a password.
fn port_after_host(text: &str) -> (String, &str) {
    match text.split_once(':') {
        Some((host, port)) if port.is_empty() || port.parse::<u16>().is_ok() => {
            (host.to_owned(), port)
        }
        _ => (text.to_owned(), ""),
    }
}

fn checked_path(path: &BStr) -> Result<BString, Error> {
    if path.starts_with(b"-") {
        return Err(bad(format!("strange pathname '{path}' blocked")));
    }
    if path.find_byteset(b"\0").is_some() {
        return Err(bad("the path contains a NUL byte"));
    }
    Ok(path.into())
}

fn no_path() -> Error {
    bad("no path specified; see 'git help pull' for valid url syntax")
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Address, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match RemoteAddress::parse(text.into()) {
            Ok(RemoteAddress::File { path }) => format!("file {path}"),
            Ok(RemoteAddress::Git { host, port, path }) => format!("git {host} {port:?} {path}"),
            Ok(RemoteAddress::Ssh { host, port, path }) => format!("ssh {host} {port:?} {path}"),
            Ok(RemoteAddress::Http { url }) => format!("http {url} {:?}", url.user()),
            Err(error) => format!("error {error}"),
        }
    }

    #[test]
    fn addresses_are_taken_apart_as_git_does() {
        let cases = [
            ("/a/b", "file /a/b"),
            ("./a:b", "file ./a:b"),
            ("file:///a%20b", "file /a b"),
            ("file://host/a", "file /a"),
            ("host:a/b", "ssh host None a/b"),
            ("me@host:/a", "ssh me@host None /a"),
            ("host:~you/a", "ssh host None ~you/a"),
            ("host:/~you/a", "ssh host None ~you/a"),
            ("[::1]:a", "ssh ::1 None a"),
            ("[host:22]:a", "ssh host Some(22) a"),
            ("me@[::1]:a", "ssh me@::1 None a"),
            ("ssh://me@host:2222/a", "ssh me@host Some(2222) /a"),
            ("ssh://[::1]:22/~me/a", "ssh ::1 Some(22) ~me/a"),
            ("ssh://me@::1/a", "ssh me@::1 None /a"),
            ("ssh://me:word@host/a", "ssh me:word@host None /a"),
            ("ssh://me:w@rd@host:22/a", "ssh me:w@rd@host:22 None /a"),
            ("ssh://host:/a", "ssh host None /a"),
            ("ssh+git://host/a", "ssh host None /a"),
            ("git://host:1/a", "git host Some(1) /a"),
            ("git://host/~a", "git host None ~a"),
            ("https://u:p@host/a", "http https://host/a Some(\"u\")"),
            (
                "ssh://-oProxyCommand=x/a",
                "error strange hostname '-oProxyCommand=x' blocked",
            ),
            ("-host:a", "error strange hostname '-host' blocked"),
            ("host:-a", "error strange pathname '-a' blocked"),
            ("ssh://host?@other/a", "error '?' makes the host ambiguous"),
            ("git://a\u{1}/b", "error strange hostname 'a\\u{1}' blocked"),
            (
                "ssh://host",
                "error no path specified; see 'git help pull' for valid url syntax",
            ),
            ("ext::sh -c x", "error remote helper 'ext' is not supported"),
            ("foo://x/y", "error remote helper 'foo' is not supported"),
        ];
        for (text, expected) in cases {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn credentials_are_left_out() {
        let shown = without_credentials("https://u:p@host/a@b".into());
        assert_eq!(shown, "https://host/a@b");
    }
}

//! Normalises URLs and matches them against URLs in configuration keys (`http.<url>.*`).

use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use crate::{Error, ErrorKind, Result};

/// A URL in the normal form in which Git compares URLs (RFC 3986): scheme and host in lower case,
/// no unnecessary escapes, no default port, no dot segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalUrl {
    scheme: BString,
    /// The user name, without the password.
    user: Option<BString>,
    host: BString,
    port: BString,
    path: BString,
}

/// The quality of the match of a key's URL. A greater value is a better match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct UrlMatch {
    host: usize,
    path: usize,
    user: bool,
}

impl NormalUrl {
    /// Parses and normalises `url`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if `url` has no scheme, no required host, or a
    /// malformed part.
    pub fn parse(url: &BStr) -> Result<Self> {
        let parsed = split(url).and_then(|parts| Self::from_parts(&parts, false));
        parsed.map_err(|reason| Error::new(ErrorKind::InvalidInput, reason))
    }

    /// Normalises a URL that was already split. With `globs`, the host may contain `*`.
    ///
    /// # Errors
    /// Returns a description of the invalid part.
    pub fn from_parts(parts: &UrlParts<'_>, globs: bool) -> Result<Self, &'static str> {
        let scheme = parts.scheme.to_ascii_lowercase();
        let user = match parts.login {
            Some(login) => {
                let login = escape_normally(login)?;
                let end = login.find_byte(b':').unwrap_or(login.len());
                Some(login[..end].into())
            }
            None => None,
        };
        let (host, port) = (parts.host, parts.port.filter(|port| !port.is_empty()));
        if host.is_empty() && scheme != b"file" {
            return Err("missing host and scheme is not 'file:'");
        }
        if host.is_empty() && port.is_some() {
            return Err("a 'file:' URL may not have a port number");
        }
        let is_host = |&byte: &u8| {
            byte.is_ascii_alphanumeric() || b".-_[:]".contains(&byte) || (globs && byte == b'*')
        };
        if !host.iter().all(is_host) {
            return Err("invalid characters in host name");
        }
        Ok(NormalUrl {
            port: normal_port(port.unwrap_or_default(), &scheme)?,
            scheme: scheme.into(),
            user,
            host: host.to_ascii_lowercase().into(),
            path: normal_path(parts.rest)?,
        })
    }

    /// Returns the quality of the match between this URL and the key's URL `pattern`, or `None` if
    /// they do not match. In hosts of `pattern`, `*` matches any one label.
    pub fn matched_by(&self, pattern: &BStr) -> Option<UrlMatch> {
        let parts = split(pattern).ok()?;
        let pattern = Self::from_parts(&parts, true).ok()?;
        let user_fits = pattern.user.is_none() || pattern.user == self.user;
        let fits = pattern.scheme == self.scheme
            && user_fits
            && host_matches(self.host.as_bstr(), pattern.host.as_bstr())
            && pattern.port == self.port;
        let path = path_match(&self.path, &pattern.path).filter(|_| fits)?;
        Some(UrlMatch {
            host: pattern.host.len(),
            path,
            user: pattern.user.is_some(),
        })
    }
}

impl fmt::Display for NormalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        write!(f, "{}", self.host)?;
        if !self.port.is_empty() {
            write!(f, ":{}", self.port)?;
        }
        write!(f, "{}", self.path)
    }
}

fn host_matches(host: &BStr, pattern: &BStr) -> bool {
    let mut labels = host.split_str(".");
    let mut patterns = pattern.split_str(".");
    loop {
        match (labels.next(), patterns.next()) {
            (None, None) => return true,
            (Some(label), Some(pattern)) if pattern == b"*" || label == pattern => {}
            _ => return false,
        }
    }
}

/// Returns the length of `prefix` with a trailing `/` if `path` equals `prefix` or is below it.
fn path_match(path: &[u8], prefix: &[u8]) -> Option<usize> {
    let prefix = prefix.strip_suffix(b"/").unwrap_or(prefix);
    let rest = path.strip_prefix(prefix)?;
    (rest.is_empty() || rest[0] == b'/').then_some(prefix.len() + 1)
}

fn normal_port(port: &[u8], scheme: &[u8]) -> Result<BString, &'static str> {
    if port.is_empty() {
        return Ok(BString::default());
    }
    let text = port.to_str().map_err(|_| "invalid port number")?;
    let digits = text.trim_start_matches('0');
    let number: u16 = digits.parse().map_err(|_| "invalid port number")?;
    let default = match scheme {
        b"http" => 80,
        b"https" => 443,
        _ => 0,
    };
    if number == default {
        return Ok(BString::default());
    }
    Ok(number.to_string().into())
}

fn normal_path(path: &[u8]) -> Result<BString, &'static str> {
    let end = path.find_byteset(b"?#").unwrap_or(path.len());
    let (path, tail) = path.split_at(end);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let mut normal = vec![b'/'];
    let mut segments = path.split_str("/").peekable();
    while let Some(segment) = segments.next() {
        let segment = escape_normally(segment)?;
        match segment.as_slice() {
            b"." => {}
            b".." => {
                normal
                    .pop()
                    .filter(|_| normal.len() > 1)
                    .ok_or("invalid '..' path segment")?;
                let keep = normal.rfind_byte(b'/').map_or(1, |at| at + 1);
                normal.truncate(keep);
            }
            segment => {
                normal.extend_from_slice(segment);
                if segments.peek().is_some() {
                    normal.push(b'/');
                }
            }
        }
    }
    if !tail.is_empty() {
        normal.extend_from_slice(&escape_normally(tail)?);
    }
    Ok(normal.into())
}

/// Normalises the escapes of `text`. Reserved characters stay as they are written.
fn escape_normally(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        let (byte, escaped) = if byte == b'%' {
            let digits = text.get(at..at + 2).and_then(|digits| digits.to_str().ok());
            let digits = digits.ok_or("invalid %XX escape sequence")?;
            at += 2;
            let byte = u8::from_str_radix(digits, 16);
            (byte.map_err(|_| "invalid %XX escape sequence")?, true)
        } else {
            (byte, false)
        };
        let unsafe_byte = byte <= 0x1f || byte >= 0x7f || b" <>\"%{}|\\^`".contains(&byte);
        if unsafe_byte || (escaped && b":/?#[]@!$&'()*+,;=".contains(&byte)) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(byte);
        }
    }
    Ok(out)
}

/// The parts of a URL, as they are written.
pub struct UrlParts<'a> {
    /// The part before `://`.
    pub scheme: &'a [u8],
    /// The part before the first `@` of the authority: user name and password.
    pub login: Option<&'a [u8]>,
    /// The host, an IPv6 address with its brackets.
    pub host: &'a [u8],
    /// The part after the last colon of the authority.
    pub port: Option<&'a [u8]>,
    /// The path, the query and the fragment, from the end of the authority.
    pub rest: &'a [u8],
}

/// Splits a URL as RFC 3986 does: the authority ends at the first `/`, `?` or `#`.
///
/// # Errors
/// Returns a description of the error in the URL.
pub fn split(url: &BStr) -> Result<UrlParts<'_>, &'static str> {
    let no_scheme = "invalid URL scheme name or missing '://' suffix";
    let colon = url.find(b"://").ok_or(no_scheme)?;
    let (scheme, after) = (&url[..colon], &url[colon + 3..]);
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
    if !scheme.first().is_some_and(u8::is_ascii_alphabetic) || !scheme.iter().all(is_scheme) {
        return Err(no_scheme);
    }
    let end = after.find_byteset(b"/?#").unwrap_or(after.len());
    let (authority, rest) = after.split_at(end);
    let (login, authority) = match authority.find_byte(b'@') {
        Some(at) => (Some(&authority[..at]), &authority[at + 1..]),
        None => (None, authority),
    };
    // The last colon outside of the brackets of an IPv6 address.
    let (host, port) = match authority.rfind_byteset(b":]") {
        Some(at) if authority[at] == b':' => (&authority[..at], Some(&authority[at + 1..])),
        _ => (authority, None),
    };
    Ok(UrlParts {
        scheme,
        login,
        host,
        port,
        rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(url: &str, pattern: &str) -> Option<UrlMatch> {
        let url = NormalUrl::parse(url.into()).expect("a URL");
        url.matched_by(pattern.into())
    }

    #[test]
    fn urls_match_in_normal_form_at_path_boundaries() {
        let url = "https://me@Example.com:443/a/../b%2e/c";
        for pattern in [
            "https://example.com",
            "https://example.com/b./",
            "https://*.com/b./c",
            "HTTPS://me@example.com/",
        ] {
            assert!(matched(url, pattern).is_some(), "{pattern}");
        }
        for pattern in [
            "http://example.com",
            "https://example.com/b",
            "https://you@example.com",
            "https://*/",
            "https://example.com:8443",
            "example.com",
        ] {
            assert!(matched(url, pattern).is_none(), "{pattern}");
        }
    }

    #[test]
    fn longer_hosts_then_longer_paths_then_users_win() {
        let url = "https://me@abc.com/x/y";
        assert!(matched(url, "https://abc.com") > matched(url, "https://*.com/x"));
        assert!(matched(url, "https://abc.com/x") > matched(url, "https://me@abc.com"));
        assert!(matched(url, "https://me@abc.com") > matched(url, "https://abc.com"));
    }
}

//! The only parser of URLs, for connections, credentials, settings, proxies and redirects; and the
//! origin to which secrets are bound.

use std::fmt;
use std::net::Ipv6Addr;

use bstr::{BStr, BString, ByteSlice};

use crate::error::{Error, ErrorKind};
use crate::escapes::{decoded, redacted};

use pronto_config::url::split;
pub use pronto_config::url::{NormalUrl, UrlMatch};

/// A parsed absolute URL with a host.
///
/// Ambiguous texts are rejected: a second `@`, an `@` after a `?` or `#` that ends the authority,
/// backslashes and escapes in the authority, and control characters.
///
/// ```
/// use pronto_wire::url::Url;
/// let url = Url::parse("https://me@Example.com:443/a".into())?;
/// assert_eq!(url.origin(), Url::parse("https://example.com/b".into())?.origin());
/// assert!(Url::parse("https://example.com?@example.org/a".into()).is_err());
/// # Ok::<(), pronto_wire::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    origin: UrlOrigin,
    user: Option<BString>,
    password: Option<BString>,
    /// The path and query, escaped for a request; empty or with a `/` or `?` at the start.
    path: String,
    normal: NormalUrl,
}

/// The scheme, host and port, to which secrets are bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UrlOrigin {
    scheme: String,
    host: String,
    port: u16,
}

/// The reason for which a text is not accepted as a URL.
enum InvalidUrl {
    /// A malformed or ambiguous URL.
    Bad(&'static str),
    /// A URL that only git supports.
    Beyond(&'static str),
}

impl Url {
    /// Parses `text`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Address`] if `text` is not a URL or is ambiguous, or with
    /// [`ErrorKind::Unsupported`] if the notation of the host is not supported.
    pub fn parse(text: &BStr) -> Result<Self, Error> {
        parse(text).map_err(|refusal| {
            let (kind, reason) = match refusal {
                InvalidUrl::Bad(reason) => (ErrorKind::Address, reason),
                InvalidUrl::Beyond(reason) => (ErrorKind::Unsupported, reason),
            };
            let shown = redacted(text);
            let message = format!("unable to parse URL '{}': {reason}", shown.escape_ascii());
            Error::new(kind, message)
        })
    }

    /// Returns the scheme in lower case.
    pub fn scheme(&self) -> &str {
        &self.origin.scheme
    }

    /// Returns the user, without escapes.
    pub fn user(&self) -> Option<&BStr> {
        self.user.as_ref().map(|user| user.as_bstr())
    }

    /// Returns the password, without escapes.
    pub fn password(&self) -> Option<&BStr> {
        self.password.as_ref().map(|password| password.as_bstr())
    }

    /// Returns the host in lower case; an IPv6 address with its brackets.
    pub fn host(&self) -> &str {
        &self.origin.host
    }

    /// Returns the host without brackets.
    pub fn bare_host(&self) -> &str {
        self.origin.host.trim_matches(['[', ']'])
    }

    /// Returns the port, which is the default port of the scheme if none was given.
    pub fn port(&self) -> u16 {
        self.origin.port
    }

    /// Returns the path and the query, escaped for a request.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path and the query without escapes and without slashes at the ends, for credential
    /// helpers (`credential.useHttpPath`).
    pub fn decoded_path(&self) -> BString {
        decoded(self.path.trim_matches('/').as_bytes())
    }

    /// Returns the scheme, host and port.
    pub fn origin(&self) -> &UrlOrigin {
        &self.origin
    }

    /// Returns the normalized form against which configuration keys are matched (`http.<url>.*`).
    pub fn normal(&self) -> &NormalUrl {
        &self.normal
    }

    /// Returns the same URL with another user, and without a password.
    ///
    /// # Errors
    /// Never fails for a user of another parsed URL.
    pub fn with_user(&self, user: Option<&BStr>) -> Result<Self, Error> {
        let Some(user) = user else {
            return Url::parse(self.to_string().as_str().into());
        };
        let mut escaped = String::new();
        for &byte in user.as_bytes() {
            match byte {
                byte if byte.is_ascii_alphanumeric() => escaped.push(char::from(byte)),
                byte => escaped.push_str(&format!("%{byte:02X}")),
            }
        }
        let text = format!("{}://{escaped}@{}", self.scheme(), self.after_scheme());
        Url::parse(text.as_str().into())
    }

    /// Returns this URL without login, followed by `suffix`.
    ///
    /// # Errors
    /// Fails as [`parse`](Self::parse) does if the result is not a URL.
    pub fn append(&self, suffix: &str) -> Result<Self, Error> {
        Url::parse(format!("{self}{suffix}").as_str().into())
    }

    /// Returns this URL without login, and without slashes at the end of its path.
    ///
    /// # Errors
    /// Never fails for a parsed URL.
    pub fn base(&self) -> Result<Self, Error> {
        Url::parse(self.to_string().trim_end_matches('/').into())
    }

    /// Resolves the `Location` header of a response to this URL (RFC 3986, section 5.2). A login in
    /// `location` is removed, because a server must not choose the user.
    ///
    /// # Errors
    /// Fails as [`parse`](Self::parse) does if the result is not a URL.
    pub fn join(&self, location: &BStr) -> Result<Self, Error> {
        let end = location.find_byte(b'#').unwrap_or(location.len());
        let location = &location[..end];
        let path_end = self.path.find('?').unwrap_or(self.path.len());
        let path = &self.path[..path_end];
        let directory = &path[..path.rfind('/').map_or(0, |at| at + 1)];
        let origin = self.origin.to_string();
        let text: Vec<u8> = if has_scheme(location) {
            location.to_vec()
        } else if location.starts_with(b"//") {
            [self.scheme().as_bytes(), b":", location].concat()
        } else if location.starts_with(b"/") {
            [origin.as_bytes(), location].concat()
        } else if location.is_empty() || location.starts_with(b"?") {
            [origin.as_bytes(), path.as_bytes(), location].concat()
        } else {
            let slash = if directory.is_empty() { "/" } else { directory };
            [origin.as_bytes(), slash.as_bytes(), location].concat()
        };
        let mut target = Url::parse(text.as_bstr())?;
        if target.user.is_some() {
            target = Url::parse(target.to_string().as_str().into())?;
        }
        Ok(target)
    }

    fn after_scheme(&self) -> String {
        format!("{}{}", self.origin.authority(), self.path)
    }
}

/// Writes the URL without login, escaped for a request.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Url").field(&self.to_string()).finish()
    }
}

impl UrlOrigin {
    /// Returns the scheme in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns the host, with the port unless it is the default port of the scheme.
    pub fn authority(&self) -> String {
        if self.port == default_port(&self.scheme) {
            return self.host.clone();
        }
        format!("{}:{}", self.host, self.port)
    }
}

/// Writes `scheme://host`, with the port unless it is the default port of the scheme.
impl fmt::Display for UrlOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority())
    }
}

fn parse(text: &BStr) -> Result<Url, InvalidUrl> {
    if text.iter().any(u8::is_ascii_control) {
        return Err(InvalidUrl::Bad("it contains a control character"));
    }
    let parts = split(text).map_err(InvalidUrl::Bad)?;
    check_rest(parts.rest)?;
    let (user, password) = match parts.login {
        Some(login) => split_login(login)?,
        None => (None, None),
    };
    let host = checked_host(parts.host)?;
    let normal = NormalUrl::from_parts(&parts, false).map_err(InvalidUrl::Bad)?;
    let scheme = parts
        .scheme
        .to_ascii_lowercase()
        .to_str_lossy()
        .into_owned();
    let port = match parts.port.filter(|port| !port.is_empty()) {
        Some(port) => port_number(port)?,
        None => default_port(&scheme),
    };
    Ok(Url {
        origin: UrlOrigin { scheme, host, port },
        user,
        password,
        path: escaped(parts.rest),
        normal,
    })
}

fn check_rest(rest: &[u8]) -> Result<(), InvalidUrl> {
    let head = &rest[..rest.find_byte(b'/').unwrap_or(rest.len())];
    if head.contains(&b'@') {
        let reason = "'@' after '?' or '#' makes the host ambiguous";
        return Err(InvalidUrl::Bad(reason));
    }
    if rest.contains(&b'#') {
        return Err(InvalidUrl::Bad("write '#' as '%23'"));
    }
    check_decoded(rest)
}

/// Refuses escapes of characters that end a line in the protocol of credential helpers.
fn check_decoded(text: &[u8]) -> Result<(), InvalidUrl> {
    let is_end = |digits: &[u8]| digits.eq_ignore_ascii_case(b"0a") || digits == b"00";
    let ends = text
        .windows(3)
        .any(|escape| escape[0] == b'%' && is_end(&escape[1..]));
    match ends {
        true => Err(InvalidUrl::Bad("it contains an escaped newline or NUL")),
        false => Ok(()),
    }
}

type UrlLogin = (Option<BString>, Option<BString>);

fn split_login(login: &[u8]) -> Result<UrlLogin, InvalidUrl> {
    if login.iter().any(|byte| b"\\ ".contains(byte)) {
        return Err(InvalidUrl::Bad("the user contains a backslash or a space"));
    }
    check_decoded(login)?;
    let (user, password) = match login.split_once_str(":") {
        Some((user, password)) => (user, Some(decoded(password))),
        None => (login, None),
    };
    Ok((Some(decoded(user)), password))
}

/// Returns the host in lower case, if it is a name or an IP address in the usual notation.
fn checked_host(host: &[u8]) -> Result<String, InvalidUrl> {
    if host.is_empty() {
        return Err(InvalidUrl::Bad("it has no host"));
    }
    if host.contains(&b'@') {
        return Err(InvalidUrl::Bad(
            "a second '@' makes the host ambiguous; write '@' in the user or password as '%40'",
        ));
    }
    if !host.is_ascii() {
        return Err(InvalidUrl::Beyond(
            "its host contains characters that are not ASCII",
        ));
    }
    let text = host.to_str_lossy().to_ascii_lowercase();
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']');
        let address = inner.ok_or(InvalidUrl::Bad("invalid characters in host name"))?;
        return match address.parse::<Ipv6Addr>() {
            Ok(_) => Ok(text),
            Err(_) if address.contains("%25") => Err(InvalidUrl::Beyond(
                "its host is an IPv6 address with a zone",
            )),
            Err(_) => Err(InvalidUrl::Bad("invalid IPv6 address")),
        };
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    match text.bytes().all(is_name) {
        true => Ok(text),
        false => Err(InvalidUrl::Bad("invalid characters in host name")),
    }
}

fn port_number(digits: &[u8]) -> Result<u16, InvalidUrl> {
    let port = digits.to_str().ok().and_then(|text| text.parse().ok());
    port.filter(|port| *port > 0 && digits.iter().all(u8::is_ascii_digit))
        .ok_or(InvalidUrl::Bad("invalid port number"))
}

fn default_port(scheme: &str) -> u16 {
    match scheme {
        "http" => 80,
        "https" => 443,
        "ssh" => 22,
        "git" => 9418,
        // The default of curl and of the client library for SOCKS proxies.
        _ if scheme.starts_with("socks") => 1080,
        _ => 0,
    }
}

/// Returns whether `text` starts with a scheme and a colon.
fn has_scheme(text: &[u8]) -> bool {
    let end = text.find_byteset(b":/?");
    let scheme = match end {
        Some(end) if text[end] == b':' => &text[..end],
        _ => return false,
    };
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_scheme)
}

/// Escapes the bytes of `text` that are not permitted in a request as `%XX`.
fn escaped(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                out.push_str(&format!("%{byte:02X}"));
            }
            0x21..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests;

//! Names and passwords in the file `.netrc`, by host.

use bstr::{BStr, BString, ByteSlice};

/// A login in the file.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NetrcLogin {
    /// The user name.
    pub user: BString,
    /// The password.
    pub password: BString,
}

/// Finds the first login for `host`: that of its `machine` entry or of `default`. With a `user`, only
/// logins of this user match. Entries without a name or a password are skipped.
pub fn find(text: &[u8], host: &str, user: Option<&BStr>) -> Option<NetrcLogin> {
    let mut words = NetrcWords { rest: text };
    let mut entry: Option<(NetrcLogin, bool)> = None;
    let is_found = |entry: &Option<(NetrcLogin, bool)>| {
        let (login, is_meant) = entry.as_ref()?;
        let fits = user.is_none_or(|user| user == login.user);
        let is_whole = !login.user.is_empty() && !login.password.is_empty();
        (*is_meant && fits && is_whole).then(|| login.clone())
    };
    while let Some(word) = words.next() {
        match word.as_slice() {
            b"machine" | b"default" => {
                if let Some(found) = is_found(&entry) {
                    return Some(found);
                }
                let is_meant = match word.as_slice() {
                    b"machine" => words.next()?.eq_ignore_ascii_case(host.as_bytes()),
                    _ => true,
                };
                entry = Some((NetrcLogin::default(), is_meant));
            }
            b"macdef" => words.skip_macro(),
            b"login" | b"password" | b"account" => {
                let value = words.next()?;
                match (word.as_slice(), &mut entry) {
                    (b"login", Some((login, _))) => login.user = value,
                    (b"password", Some((login, _))) => login.password = value,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    is_found(&entry)
}

/// The words of the file: separated by white space, or quoted with backslash escapes. A line that
/// begins with `#` is a comment.
struct NetrcWords<'a> {
    rest: &'a [u8],
}

impl Iterator for NetrcWords<'_> {
    type Item = BString;

    fn next(&mut self) -> Option<BString> {
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.first()? {
                b'#' => self.skip_line(),
                b'"' => return Some(self.quoted()),
                _ => break,
            }
        }
        let is_end = |byte: &u8| byte.is_ascii_whitespace();
        let end = self.rest.iter().position(is_end);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Some(word.into())
    }
}

impl NetrcWords<'_> {
    fn skip_line(&mut self) {
        let end = self
            .rest
            .find_byte(b'\n')
            .map_or(self.rest.len(), |end| end + 1);
        self.rest = self.rest.get(end..).unwrap_or_default();
    }

    /// Skips a macro, which ends at an empty line.
    fn skip_macro(&mut self) {
        self.skip_line();
        while !self.rest.is_empty() && !matches!(self.rest, [b'\n', ..] | [b'\r', b'\n', ..]) {
            self.skip_line();
        }
    }

    /// Reads a quoted word.
    fn quoted(&mut self) -> BString {
        let mut word = BString::default();
        let mut bytes = self.rest.iter().enumerate().skip(1);
        let mut end = self.rest.len();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    end = at + 1;
                    break;
                }
                b'\\' => match bytes.next() {
                    Some((_, b'n')) => word.push(b'\n'),
                    Some((_, b'r')) => word.push(b'\r'),
                    Some((_, b't')) => word.push(b'\t'),
                    Some((_, byte)) => word.push(*byte),
                    None => {}
                },
                byte => word.push(*byte),
            }
        }
        self.rest = self.rest.get(end..).unwrap_or_default();
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# machine no login no password no\n\
        machine a login me password one\n\
        machine b login x password \"two words\\\"\"\n\
        macdef init\nmachine c login macro password macro\n\n\
        machine A login you\npassword three account z\n\
        machine d login only\n\
        default login any password last";

    fn found(host: &str, user: Option<&str>) -> Option<(String, String)> {
        let login = find(TEXT.as_bytes(), host, user.map(BStr::new))?;
        Some((login.user.to_string(), login.password.to_string()))
    }

    #[test]
    fn the_first_login_for_the_host_is_found() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(found("a", None), pair("me", "one"));
        assert_eq!(found("a", Some("you")), pair("you", "three"));
        assert_eq!(found("b", None), pair("x", "two words\""));
        for other in ["c", "d", "no"] {
            assert_eq!(found(other, None), pair("any", "last"), "{other}");
        }
        assert_eq!(found("a", Some("other")), None);
        assert!(find(b"machine", "a", None).is_none() && find(b"", "a", None).is_none());
    }
}

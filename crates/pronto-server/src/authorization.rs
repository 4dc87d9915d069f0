//! Parses the header `Authorization`: `Basic` with a token as the password (RFC 7617), and `Bearer`
//! (RFC 6750).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bstr::ByteSlice as _;

/// The largest length of the header in bytes.
pub(crate) const LONGEST_BYTES: usize = 4096;

/// The credentials from the header of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The name of the user, if the header contains a name.
    pub user: Option<String>,
    /// The token, as sent.
    pub token: Vec<u8>,
}

/// Parses the value of the header. Returns `None` if the value is malformed or has another scheme.
pub fn parse(value: &[u8]) -> Option<ClientCredentials> {
    if value.len() > LONGEST_BYTES {
        return None;
    }
    let (scheme, rest) = value.split_once_str(" ")?;
    let rest = rest.trim_with(|character| character == ' ');
    if scheme.eq_ignore_ascii_case(b"bearer") {
        let is_token = |byte: &u8| byte.is_ascii_graphic();
        let token = rest.to_vec();
        return (!token.is_empty() && token.iter().all(is_token))
            .then_some(ClientCredentials { user: None, token });
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    // Clients may leave out the padding.
    let decoded = STANDARD_NO_PAD
        .decode(rest.trim_end_with(|character| character == '='))
        .ok()?;
    let (user, token) = decoded.split_once_str(":")?;
    let user = String::from_utf8(user.to_vec()).ok()?;
    if user.chars().any(char::is_control) {
        return None;
    }
    Some(ClientCredentials {
        user: (!user.is_empty()).then_some(user),
        token: token.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &str) -> Option<(Option<String>, String)> {
        let found = parse(value.as_bytes())?;
        let token = String::from_utf8(found.token).expect("text");
        Some((found.user, token))
    }

    #[test]
    fn both_schemes_are_understood() {
        let expected = Some((Some("alice".to_owned()), "a:b".to_owned()));
        assert_eq!(parsed("Basic YWxpY2U6YTpi"), expected);
        assert_eq!(parsed("basic  YWxpY2U6YTpi "), expected);
        assert_eq!(parsed("Basic OnQ="), Some((None, "t".to_owned())));
        assert_eq!(parsed("Bearer abc"), Some((None, "abc".to_owned())));
    }

    #[test]
    fn malformed_headers_are_refused() {
        for broken in [
            "",
            "Basic",
            "Basic ",
            "Basic !",
            "Basic YQ",
            "Basic YWx",
            "Bearer ",
            "Bearer a b",
            "Digest abc",
            "Basic AGE6Yg==",
            "Basic A",
        ] {
            assert!(parse(broken.as_bytes()).is_none(), "{broken}");
        }
        assert!(parse(format!("Bearer {}", "a".repeat(5000)).as_bytes()).is_none());
    }
}

//! Fuzzes the header field `Authorization`: decoding returns the encoded credentials.

use pronto_server::authorization::parse;

pub(crate) fn run(data: &[u8]) {
    let Some(found) = parse(data) else { return };
    assert!(found.token.len() <= data.len());
    if let Some(user) = found.user {
        assert!(!user.is_empty() && user.len() <= data.len());
        assert!(!user.contains(':') && !user.chars().any(char::is_control));
    }
}

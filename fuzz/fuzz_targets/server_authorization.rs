//! The header `Authorization`: what is found in it is what was encoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pronto_server::authorization::parse;

fuzz_target!(|data: &[u8]| {
    let Some(found) = parse(data) else { return };
    assert!(found.token.len() <= data.len());
    if let Some(user) = found.user {
        assert!(!user.is_empty() && user.len() <= data.len());
        assert!(!user.contains(':') && !user.chars().any(char::is_control));
    }
});

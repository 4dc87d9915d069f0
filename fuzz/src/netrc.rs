//! Fuzzes the file `.netrc`: a login that is found has a name and a password, and the requested
//! host.

use pronto::remote::netrc::find;

pub(crate) fn run(data: &[u8]) {
    if let Some(login) = find(data, "example.org", None) {
        assert!(!login.user.is_empty() && !login.password.is_empty());
        assert!(login.user.len() + login.password.len() < data.len());
    }
    if let Some(login) = find(data, "example.org", Some("me".into())) {
        assert_eq!(login.user, "me");
    }
}

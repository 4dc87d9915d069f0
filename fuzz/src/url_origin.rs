//! Fuzzes URLs: the origin to which secrets belong is the origin to which the connection is made.

use bstr::ByteSlice;
use pronto_wire::url::{NormalUrl, Url};

pub(crate) fn run(data: &[u8]) {
    let (location, text) = data.split_at(data.find_byte(b'\n').unwrap_or(0));
    let text = text.strip_prefix(b"\n").unwrap_or(text);
    let _ = NormalUrl::parse(text.as_bstr());
    let Ok(url) = Url::parse(text.as_bstr()) else {
        return;
    };
    check(&url);
    let normal = url.normal().to_string();
    let again = NormalUrl::parse(normal.as_str().into()).expect("a normal form is a URL");
    assert_eq!(again.to_string(), normal, "normal forms stay as they are");
    if let Ok(target) = url.join(location.as_bstr()) {
        assert!(target.user().is_none() && target.password().is_none());
        check(&target);
    }
    if let Ok(base) = url.base() {
        assert_eq!(base.origin(), url.origin());
        let again = base
            .with_user(url.user())
            .expect("users can be carried over");
        assert_eq!((again.user(), again.origin()), (url.user(), url.origin()));
    }
}

/// Checks that the HTTP client connects to the same host if it gets the formatted `url`.
fn check(url: &Url) {
    let text = url.to_string();
    let again = Url::parse(text.as_str().into()).expect("what it prints is a URL");
    assert_eq!(
        (again.origin(), again.to_string()),
        (url.origin(), text.clone())
    );
    assert!(again.user().is_none() && again.password().is_none());
    if let Ok(uri) = text.parse::<ureq::http::Uri>() {
        assert_eq!(uri.scheme_str(), Some(url.scheme()));
        assert_eq!(uri.host(), Some(url.host()));
        let shown = url.origin().authority();
        let port = shown
            .strip_prefix(url.host())
            .and_then(|port| port.strip_prefix(':'));
        assert_eq!(uri.port_u16().map(|port| port.to_string()).as_deref(), port);
        assert!(
            !uri.authority()
                .expect("it has a host")
                .as_str()
                .contains('@')
        );
    }
}

//! Tests of parsing URLs and their origins.

use super::*;

fn parsed(text: &str) -> Result<Url, Error> {
    Url::parse(text.into())
}

#[test]
fn origins_have_lower_case_and_a_port() {
    let cases = [
        ("HTTPS://Me@Example.COM/x", "https://example.com"),
        ("https://example.com:443", "https://example.com"),
        ("https://example.com:/x", "https://example.com"),
        ("http://example.com:443/x", "http://example.com:443"),
        ("https://example.com?q/x", "https://example.com"),
        (
            "https://user:p%40ss@example.com:8080/@",
            "https://example.com:8080",
        ),
        ("http://[::1]:81/x", "http://[::1]:81"),
        ("http://127.0.0.1/x?a@b", "http://127.0.0.1"),
        ("socks5h://u:p@proxy", "socks5h://proxy"),
    ];
    for (text, origin) in cases {
        let url = parsed(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(url.origin().to_string(), origin, "{text}");
        let again = parsed(&url.to_string()).expect("what it prints is a URL");
        assert_eq!(again.origin(), url.origin(), "{text}");
        assert_eq!(again.to_string(), url.to_string(), "{text}");
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    for text in [
        "https://github.com?@evil.example/x",
        "https://github.com#@evil.example/x",
        "https://github.com?x@evil.example",
        "https://a@b@evil.example/x",
        "https://a:b@c:d@evil.example/x",
        "https://github.com\\@evil.example/x",
        "https://github.com\\.evil.example/x",
        "https://github.com%2f.evil.example/x",
        "https://github.com%00.evil.example/x",
        "https://git hub.com/x",
        "https://user name@example.com/x",
        "https://github.com\n.evil.example/x",
        "https://us%0aer@example.com/x",
        "https://user:pass%00@example.com/x",
        "https://example.com/x%0Ahost=evil.example",
        "https://example.com/x\r\ny",
        "https://example.com/x#y",
        "https:///x",
        "https://:80/x",
        "https://user@/x",
        "https://example.com:x/",
        "https://example.com:0/",
        "https://example.com:+80/",
        "https://example.com:65536/",
        "https://a:b:80/x",
        "https://[::1/x",
        "https://[::1]x/x",
        "https://[example.com]/x",
        "example.com/x",
        "://example.com",
    ] {
        let error = parsed(text).err().unwrap_or_else(|| panic!("{text:?}"));
        assert_eq!(error.kind(), ErrorKind::Address, "{text:?}");
    }
    for text in ["https://m\u{fc}ller.example/", "http://[fe80::1%25eth0]/"] {
        let error = parsed(text).err().unwrap_or_else(|| panic!("{text:?}"));
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{text:?}");
    }
}

#[test]
fn refusals_do_not_print_passwords() {
    for text in [
        "https://me:secret@host:x/",
        "https://me:sec@ret@host/",
        "https://me:secret?@host/",
    ] {
        let error = parsed(text).expect_err(text).to_string();
        assert!(!error.contains("ret"), "{error}");
    }
}

#[test]
fn locations_are_resolved_without_login() {
    let from = parsed("https://me:secret@host:8443/a/b?c=d").expect("a URL");
    let cases = [
        ("http://other/x", "http://other/x"),
        ("//other/x#y", "https://other/x"),
        ("/x?y", "https://host:8443/x?y"),
        ("x", "https://host:8443/a/x"),
        ("?x", "https://host:8443/a/b?x"),
        ("", "https://host:8443/a/b"),
        ("https://host@other/x", "https://other/x"),
        ("x:y", ""),
        ("https:x", ""),
        ("https:\\\\other", ""),
        ("//host\\@other/x", ""),
        ("//host?@other/x", ""),
    ];
    for (location, expected) in cases {
        let target = from.join(location.into());
        let shown = target.map_or_else(
            |_| String::new(),
            |target| {
                assert!(target.user().is_none() && target.password().is_none());
                target.to_string()
            },
        );
        assert_eq!(shown, expected, "{location}");
    }
}

#[test]
fn users_are_kept_apart_from_the_rest() {
    let url = parsed("https://m%40e:p%3Aq@host/a b").expect("a URL");
    assert_eq!(url.user(), Some("m@e".into()));
    assert_eq!(url.password(), Some("p:q".into()));
    assert_eq!(url.to_string(), "https://host/a%20b");
    let other = parsed("https://host/c").expect("a URL");
    let other = other.with_user(url.user()).expect("a URL");
    assert_eq!((other.user(), other.password()), (Some("m@e".into()), None));
    assert_eq!(format!("{url:?}"), "Url(\"https://host/a%20b\")");
}

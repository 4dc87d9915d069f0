//! Passwords, headers and redirects.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use pronto_io::interrupt::Interrupt;
use pronto_wire::ErrorKind;
use pronto_wire::address::RemoteAddress;
use pronto_wire::archive;
use pronto_wire::client::FetchClient;
use pronto_wire::fetch::{Nothing, Request};
use pronto_wire::transport::{Options, http};

use test_support::skip;

use crate::servers::{Login, Web};
use crate::support::{Fixed, Listener, Password, Scene, connect, connect_with, refs};

#[test]
fn passwords_are_asked_for_and_remembered() {
    let scene = Scene::new("sha1");
    let Some(web) = Web::start(scene.path(), Login::Basic) else {
        skip!("lighttpd is not installed");
    };
    let options = Options::default();
    let attempt = |password: &'static str| {
        let notes = Arc::new(Mutex::new(String::new()));
        let set = Fixed {
            credentials: Some(Box::new(Password(password, Arc::clone(&notes)))),
            ..Fixed::default()
        };
        (connect_with(&web.url("origin"), &options, set), notes)
    };
    let (client, notes) = attempt("secret");
    let mut client = client.expect("the password is right");
    let wants: Vec<_> = refs(&mut client)
        .iter()
        .filter_map(|found| found.id)
        .collect();
    let request = Request {
        wants,
        ..Request::default()
    };
    client.fetch(&request, &mut Nothing, &()).expect("a pack");
    assert_eq!(*notes.lock().expect("no panics"), "fill approve ");

    let (client, notes) = attempt("wrong");
    let error = client.err().expect("the password is wrong");
    assert_eq!(error.kind(), ErrorKind::Authentication);
    let expected = format!("Authentication failed for '{}/'", web.url("origin"));
    assert_eq!(error.to_string(), expected);
    assert_eq!(*notes.lock().expect("no panics"), "fill reject ");
}

#[test]
fn passwords_in_urls_and_headers() {
    let scene = Scene::new("sha1");
    let Some(web) = Web::start(scene.path(), Login::Basic) else {
        skip!("lighttpd is not installed");
    };
    let options = Options::default();
    let url = web.url_with_login("me:secret", "origin");
    connect(&url, &options).expect("the password is in the URL");
    let url = web.url_with_login("me:wrong", "origin");
    let error = connect(&url, &options).err().expect("it is wrong");
    assert!(!error.to_string().contains("wrong"), "{error}");
    let header = "Authorization: Basic bWU6c2VjcmV0";
    let mut set = Fixed::default();
    set.options.extra_headers.push(http::ExtraHeader {
        line: header.into(),
        for_url: false,
    });
    connect_with(&web.url("origin"), &options, set).expect("the password is in a header");
}

#[test]
fn redirections_are_told_and_can_be_refused() {
    let scene = Scene::new("sha1");
    let Some(web) = Web::start(scene.path(), Login::Open) else {
        skip!("lighttpd is not installed");
    };
    let address = RemoteAddress::parse(web.moved_url("origin").as_str().into()).expect("a URL");
    let listener = Listener::default();
    let options = Options::default();
    let interrupt = Interrupt::new();
    let unset = Box::new(http::Unset);
    FetchClient::connect(&address, &options, unset, &listener, &interrupt).expect("it is found");
    let said = listener.0.lock().expect("no panics").clone();
    assert_eq!(
        said,
        [format!("warning: redirecting to {}/", web.url("origin"))]
    );
    let mut set = Fixed::default();
    set.options.follow_redirects = http::Redirects::Never;
    connect_with(&web.moved_url("origin"), &options, set)
        .err()
        .expect("it may not");
}

/// Returns the URL of a server that answers each request with `advertisement`.
fn advertising(advertisement: &'static str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|got| got > 0)
            {
                request.push(byte[0]);
            }
            let length = advertisement.len();
            // A client that has what it needs may disconnect.
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\
                 Content-Length: {length}\r\nConnection: close\r\n\r\n{advertisement}"
            );
        }
    });
    format!("http://127.0.0.1:{port}/x")
}

#[test]
fn archives_need_version_2() {
    let connect = |advertisement| {
        let address =
            RemoteAddress::parse(advertising(advertisement).as_str().into()).expect("a URL");
        let unset = Box::new(http::Unset);
        archive::RemoteArchive::connect(
            &address,
            &Options::default(),
            unset,
            &(),
            &Interrupt::new(),
        )
    };
    let service = "001e# service=git-upload-pack\n0000000eversion 2\n0000";
    for advertisement in ["000eversion 2\n0000", service] {
        connect(advertisement).expect("it speaks version 2");
    }
    let refused = (
        ErrorKind::Connection,
        "can't connect to subservice git-upload-archive",
    );
    let expected = [
        ("000eversion 1\n0000", refused),
        (
            "000eversion 2x0000",
            (
                ErrorKind::Malformed,
                "protocol error: expected an object id, got 'version'",
            ),
        ),
        (
            "001e# service=git-upload-pack\n0000000eversion 1\n0000",
            refused,
        ),
        ("", refused),
        (
            "junk",
            (
                ErrorKind::Malformed,
                "protocol error: bad line length character: junk",
            ),
        ),
    ];
    let found = expected.map(|(advertisement, _)| {
        let error = connect(advertisement).err().expect("it is no version 2");
        (advertisement, error.kind(), error.to_string())
    });
    let expected =
        expected.map(|(advertisement, (kind, message))| (advertisement, kind, message.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn what_is_no_repository_is_refused() {
    let scene = Scene::new("sha1");
    let Some(web) = Web::start(scene.path(), Login::Open) else {
        skip!("lighttpd is not installed");
    };
    let url = format!("http://127.0.0.1:{}/passwords", web.port());
    let error = connect(&url, &Options::default())
        .err()
        .expect("not a repository");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let closed = crate::servers::free_port();
    let url = format!("http://127.0.0.1:{closed}/x");
    let error = connect(&url, &Options::default())
        .err()
        .expect("nobody is there");
    let expected = format!(
        "unable to access '{url}/': Failed to connect to 127.0.0.1:{closed}: Connection refused"
    );
    assert_eq!(error.to_string(), expected);
}

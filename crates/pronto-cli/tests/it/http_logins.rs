//! Logins over HTTP, by credential helpers with additional capabilities and by `.netrc`.

use std::path::Path;
use std::process::Output;

use crate::http_secrets::{Recorder, answer, pronto};

/// A server that challenges with `challenges` until a request has `accepted` in its head.
fn server(challenges: &'static str, accepted: &'static str) -> Recorder {
    Recorder::start(move |request| match request.contains(accepted) {
        true => answer("404 Not Found", ""),
        false => answer("401 No", challenges),
    })
}

/// Lists the refs of the server with a helper that is a script.
fn list(folder: &Path, server: &Recorder, helper: &str) -> Output {
    let helper = format!("credential.helper=!{helper}");
    let url = format!("{}/x", server.url());
    pronto(folder, &["-c", &helper, "ls-remote", &url], &[])
}

/// The server has accepted the login: it answers that there is no repository.
fn assert_accepted(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("not found"), "{said}");
}

const BASIC_AND_BEARER: &str =
    "WWW-Authenticate: Bearer realm=\"x\"\r\nWWW-Authenticate: Basic realm=\"x\"\r\n";

#[test]
fn a_helper_gives_a_whole_header() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(BASIC_AND_BEARER, "authorization: Bearer canary\r\n");
    let helper = "f() { cat >>said; echo \"capability[]=authtype\"; echo authtype=Bearer; \
                  echo credential=canary; }; f";
    assert_accepted(&list(folder.path(), &server, helper));
    let said = std::fs::read_to_string(folder.path().join("said")).expect("it was asked");
    assert!(said.starts_with("capability[]=authtype\ncapability[]=state\nprotocol=http\n"));
    assert!(said.contains("wwwauth[]=Bearer realm=\"x\"\nwwwauth[]=Basic realm=\"x\"\n"));
}

#[test]
fn a_login_has_stages() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server("WWW-Authenticate: Steps realm=\"x\"\r\n", "Steps two\r\n");
    let helper = "f() { cat >asked; echo \"capability[]=authtype\"; echo \"capability[]=state\"; \
                  echo authtype=Steps; if grep -q 'state..=h:1' asked; then echo credential=two; \
                  else echo credential=one; echo continue=1; echo \"state[]=h:1\"; fi; }; f";
    assert_accepted(&list(folder.path(), &server, helper));
    assert!(server.log().contains("Steps one"), "{}", server.log());
    // A helper that always has another stage is not asked for ever.
    let endless = "f() { echo \"capability[]=authtype\"; echo \"capability[]=state\"; \
                   echo authtype=Steps; echo credential=no; echo continue=1; }; f";
    let output = list(folder.path(), &server, endless);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Authentication failed"), "{said}");
}

#[test]
fn a_password_is_not_sent_where_it_is_not_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server("WWW-Authenticate: Bearer realm=\"x\"\r\n", "never");
    let helper = "f() { echo username=me; echo password=canary; }; f";
    let output = list(folder.path(), &server, helper);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Authentication failed"), "{said}");
    assert!(!server.log().contains("authorization"), "{}", server.log());
}

#[test]
fn netrc_is_read_before_helpers() {
    let folder = tempfile::tempdir().expect("a folder");
    let netrc = folder.path().join(".netrc");
    std::fs::write(&netrc, "machine 127.0.0.1 login me password secret\n").expect("a file");
    let helper = "f() { echo \"$1\" >>said; echo username=me; echo password=secret; }; f";
    let challenge = "WWW-Authenticate: Basic realm=\"x\"\r\n";
    let login = "authorization: Basic bWU6c2VjcmV0\r\n";
    assert_accepted(&list(folder.path(), &server(challenge, login), helper));
    assert!(!folder.path().join("said").exists());
    // What the server refuses is followed by what the helpers know.
    std::fs::write(&netrc, "machine 127.0.0.1 login me password wrong\n").expect("a file");
    assert_accepted(&list(folder.path(), &server(challenge, login), helper));
    assert!(folder.path().join("said").exists());
}

#[test]
fn the_text_of_the_server_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "first\x1b[2J\nsecond";
    let server = Recorder::start(move |_| {
        let head = "HTTP/1.1 403 No\r\nContent-Type: text/plain; charset=utf-16\r\n";
        let body: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let length = body.len();
        let head = format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n");
        [head.into_bytes(), body].concat()
    });
    let url = format!("{}/x", server.url());
    let output = pronto(folder.path(), &["ls-remote", &url], &[]);
    let expected = format!(
        "remote: first^[[2J\nremote: second\n\
         fatal: unable to access '{url}/': The requested URL returned error: 403\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
}

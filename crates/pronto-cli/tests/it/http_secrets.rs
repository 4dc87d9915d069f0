//! Secrets over HTTP are sent only to their origin, and unsupported settings send nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use test_support::skip;

use crate::servers::{Login, Web};
use crate::support::write_program;

/// A web server that answers each request with `answer`, and records all requests.
pub(crate) struct Recorder {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub(crate) fn start(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let request = read_request(&stream);
                kept.lock().expect("no panics").push(request.clone());
                // A client that disconnects is not an error.
                let _ = (&stream).write_all(&answer(&request));
            }
        });
        Recorder { port, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn log(&self) -> String {
        self.requests.lock().expect("no panics").join("\n")
    }
}

/// Reads the head and the body of a request with `Content-Length`.
fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let start = request.len();
        if !reader.read_line(&mut request).is_ok_and(|count| count > 2) {
            break;
        }
        let line = request[start..].to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    request.push_str(&String::from_utf8_lossy(&body));
    request
}

pub(crate) fn answer(status: &str, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n").into()
}

fn redirect(to: &str) -> impl Fn(&str) -> Vec<u8> + Send + 'static {
    let to = to.to_owned();
    move |request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        answer("302 Found", &format!("Location: {to}{path}\r\n"))
    }
}

fn challenge(_: &str) -> Vec<u8> {
    answer("401 No", "WWW-Authenticate: Basic realm=\"x\"\r\n")
}

pub(crate) fn pronto(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pronto"))
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .env("GIT_CONFIG_GLOBAL", folder.join("gitconfig"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("http_proxy")
        .env_remove("all_proxy")
        .env("PRONTO_NO_FALLBACK", "1")
        .envs(variables.iter().copied())
        .output()
        .expect("it can be started")
}

/// Returns the setting of a credential helper that writes its input to `file` and answers.
fn helper(scope: &str, file: &str) -> String {
    format!(
        "credential.{scope}helper=!f() {{ cat >>{file}; echo username=me; \
         echo password=canary; }}; f"
    )
}

#[test]
fn ambiguous_urls_are_not_contacted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (Recorder::start(challenge), Recorder::start(challenge));
    let (one, other) = (&one, &other);
    let helper = helper("", "asked");
    for between in ["?@", "#@", "\\@", "?x#@", "@127.0.0.1@", "%00@", "%0a@"] {
        let url = format!(
            "http://127.0.0.1:{}{between}127.0.0.1:{}/x",
            one.port, other.port
        );
        let output = pronto(folder.path(), &["-c", &helper, "clone", &url, "copy"], &[]);
        assert_eq!(output.status.code(), Some(128), "{url}");
        assert_eq!(one.log() + &other.log(), "", "{url}");
        assert!(!folder.path().join("asked").exists(), "{url}");
    }
}

#[test]
fn a_redirect_carries_no_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = Recorder::start(challenge);
    let one = Recorder::start(redirect(&other.url()));
    let settings = [
        format!("http.{}.extraHeader=X-Own: canary-own", one.url()),
        "http.extraHeader=Authorization: canary-general".into(),
        "http.extraHeader=X-Plain: plain".into(),
        helper(&format!("{}.", one.url()), "asked"),
        helper(&format!("{}.", other.url()), "other-asked"),
        format!("credential.{}.username=somebody", one.url()),
    ];
    let mut arguments = Vec::new();
    for setting in &settings {
        arguments.extend(["-c", setting.as_str()]);
    }
    let url = format!("http://user:canary-url@127.0.0.1:{}/x", one.port);
    arguments.extend(["clone", &url, "copy"]);
    let output = pronto(folder.path(), &arguments, &[]);
    assert_eq!(output.status.code(), Some(128));
    let first = one.log();
    for sent in ["canary-own", "canary-general", "plain"] {
        assert!(first.contains(sent), "{sent}: {first}");
    }
    let requests = other.log();
    let before = requests.split("GET").nth(1).expect("it was asked");
    assert!(before.to_ascii_lowercase().contains("x-plain"), "{before}");
    assert!(
        !requests.contains("canary") && !before.contains("uthorization"),
        "{requests}"
    );
    assert!(!folder.path().join("asked").exists());
    let asked = std::fs::read_to_string(folder.path().join("other-asked")).expect("asked");
    let host = format!("host=127.0.0.1:{}\n", other.port);
    assert!(
        asked.contains(&host) && !asked.contains("user\n") && !asked.contains("somebody"),
        "{asked}"
    );
}

#[test]
fn a_redirect_does_not_count_as_a_choice_of_the_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = Recorder::start(challenge);
    let one = Recorder::start(redirect(&other.url()));
    let url = format!("{}/x", one.url());
    let user = ["-c", "protocol.http.allow=user", "clone", &url, "copy"];
    let output = pronto(folder.path(), &user, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("transport 'http' not allowed"), "{said}");
    assert_eq!(other.log(), "");
    for target in [
        "file:///etc",
        "ssh://-oProxyCommand=x",
        "ftp://127.0.0.1",
        "ext::x",
    ] {
        let one = Recorder::start(redirect(target));
        let url = format!("{}/x", one.url());
        let output = pronto(folder.path(), &["clone", &url, "copy"], &[]);
        assert_eq!(output.status.code(), Some(128), "{target}");
        assert!(!folder.path().join("copy").exists(), "{target}");
    }
}

#[test]
fn redirects_and_challenges_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let round = Recorder::start(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        answer("302 Found", &format!("Location: /x{path}\r\n"))
    });
    let output = pronto(
        folder.path(),
        &["clone", &format!("{}/a", round.url())],
        &[],
    );
    assert_eq!(output.status.code(), Some(128));
    assert_eq!(round.log().matches("GET").count(), 21);
    let never = Recorder::start(challenge);
    let url = format!("{}/a", never.url());
    let helper = helper("", "asked");
    let output = pronto(folder.path(), &["-c", &helper, "clone", &url], &[]);
    assert_eq!(output.status.code(), Some(128));
    assert_eq!(never.log().matches("GET").count(), 2);
}

#[test]
fn a_password_is_sent_only_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    for headers in ["", "WWW-Authenticate: Digest realm=\"x\", nonce=\"y\"\r\n"] {
        let server = Recorder::start(move |_| answer("401 No", headers));
        let url = format!("{}/a", server.url());
        let helper = helper("", "asked");
        let output = pronto(folder.path(), &["-c", &helper, "clone", &url], &[]);
        assert_eq!(output.status.code(), Some(128));
        assert!(!server.log().contains("uthorization"), "{}", server.log());
    }
}

#[test]
fn slow_transfers_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/x", listener.local_addr().expect("it is bound"));
    let arguments = ["-c", "http.lowSpeedTime=1", "clone", &url];
    let output = pronto(
        folder.path(),
        &arguments,
        &[("GIT_HTTP_LOW_SPEED_LIMIT", "1000")],
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Operation too slow"), "{said}");
}

#[test]
fn unsupported_settings_send_nothing_and_go_to_git() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Recorder::start(challenge);
    let git = folder.path().join("git");
    write_program(&git, "#!/bin/sh\necho \"$@\" >>called\n");
    let to_git = [
        ("PRONTO_NO_FALLBACK", "0"),
        ("PRONTO_GIT", git.to_str().expect("a name in ASCII")),
    ];
    pronto(folder.path(), &["init", "-q", "old"], &[]);
    let fetch_head = folder.path().join("old/.git/FETCH_HEAD");
    std::fs::write(&fetch_head, "kept\n").expect("a file");
    let called = |folder: &Path| std::fs::read_to_string(folder.join("called")).unwrap_or_default();
    for (scheme, setting) in [
        ("http", "http.curloptResolve=a.example:80:127.0.0.1"),
        ("http", "http.cookieFile=cookies"),
        ("http", "http.emptyAuth=true"),
        ("http", "http.proactiveAuth=basic"),
        ("http", "http.delegation=always"),
        ("https", "http.pinnedPubkey=sha256//x"),
        ("https", "http.https://127.0.0.1.pinnedPubkey=sha256//x"),
        ("https", "http.sslVersion=tlsv1.3"),
        ("https", "http.sslCipherList=x"),
        ("https", "http.sslBackend=openssl"),
    ] {
        let url = format!("{scheme}://127.0.0.1:{}/x", server.port);
        let setting = setting.replace("1.pinned", &format!("1:{}.pinned", server.port));
        for command in [&["clone", &url, "copy"][..], &["-C", "old", "fetch", &url]] {
            let arguments = [&["-c", &setting], command].concat();
            let output = pronto(folder.path(), &arguments, &[]);
            assert_eq!(output.status.code(), Some(128), "{setting}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("PRONTO_NO_FALLBACK"), "{setting}: {said}");
            let output = pronto(folder.path(), &arguments, &to_git);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), &*said), (Some(0), ""), "{setting}");
        }
        assert_eq!(server.log(), "", "{setting}");
    }
    assert_eq!(called(folder.path()).lines().count(), 20);
    assert!(!folder.path().join("copy").exists());
    assert_eq!(
        std::fs::read_to_string(fetch_head).expect("it is there"),
        "kept\n"
    );
}

/// Redirects POST requests to `web`, and forwards everything else.
fn front(web: u16) -> Recorder {
    Recorder::start(move |request| {
        if request.starts_with("POST") {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let location = format!("Location: http://127.0.0.1:{web}{path}\r\n");
            return answer("307 There", &location);
        }
        let mut stream = TcpStream::connect(("127.0.0.1", web)).expect("it listens");
        let request = request.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        answer
    })
}

#[test]
fn later_requests_are_redirected_only_by_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = folder.path().join("origin");
    pronto(folder.path(), &["init", "-q", "origin"], &[]);
    std::fs::write(origin.join("file"), "text").expect("a file");
    let who = [
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@x"),
        ("GIT_COMMITTER_NAME", "c"),
        ("GIT_COMMITTER_EMAIL", "c@x"),
    ];
    pronto(&origin, &["add", "file"], &[]);
    pronto(&origin, &["commit", "-q", "-m", "one"], &who);
    let Some(web) = Web::start(folder.path(), Login::Open) else {
        skip!("lighttpd is not installed");
    };
    let front = front(web.port());
    let url = format!("{}/git/origin", front.url());
    for (value, succeeds) in [("initial", false), ("false", false), ("true", true)] {
        let setting = format!("http.followRedirects={value}");
        let version = ["-c", "protocol.version=0"];
        let call = ["-c", &setting, "clone", "-q", &url, "copy"];
        let output = pronto(folder.path(), &[&version[..], &call].concat(), &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), succeeds, "{value}: {said}");
    }
    assert!(folder.path().join("copy/file").exists());
}

#[test]
fn connections_to_daemons_use_the_configured_proxy_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = folder.path().join("origin");
    pronto(folder.path(), &["init", "-q", "origin"], &[]);
    let proxy = folder.path().join("proxy");
    let root = folder.path().display();
    let script = format!(
        "#!/bin/sh\necho \"$@\" >'{root}/called'\n\
         exec git daemon --inetd --export-all --base-path='{root}' '{root}'\n"
    );
    write_program(&proxy, &script);
    let proxy = proxy.to_str().expect("a name in ASCII");
    let setting = format!("core.gitProxy={proxy} for host.example");
    let called = folder.path().join("called");
    let clone = ["clone", "-q", "git://host.example/origin"];
    for (count, is_setting) in [true, false].into_iter().enumerate() {
        let name = format!("copy{count}");
        let (options, variables) = match is_setting {
            true => (&["-c", setting.as_str()][..], &[][..]),
            false => (&[][..], &[("GIT_PROXY_COMMAND", proxy)][..]),
        };
        let arguments = [options, &clone[..], &[name.as_str()]].concat();
        let output = pronto(folder.path(), &arguments, variables);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        let reported = std::fs::read_to_string(&called).expect("it was called");
        assert_eq!(reported, "host.example 9418\n");
        std::fs::remove_file(&called).expect("it is there");
    }
    assert!(origin.exists());
}

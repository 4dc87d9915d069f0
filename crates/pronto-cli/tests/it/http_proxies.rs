//! Requests for `http://` URLs through a proxy, which receives the full URL, as curl sends it.

use test_support::skip;

use crate::http_secrets::{Recorder, pronto};
use crate::servers::Tls;

/// A server that has the empty repository for every request.
fn empty(_: &str) -> Vec<u8> {
    let packet = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let id = "0".repeat(40);
    let body = [
        packet("# service=git-upload-pack\n"),
        "0000".to_owned(),
        packet(&format!("{id} capabilities^{{}}\0agent=x\n")),
        "0000".to_owned(),
    ]
    .concat();
    let kind = "application/x-git-upload-pack-advertisement";
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    [head, body].concat().into()
}

/// A host that only the proxy could resolve.
const URL: &str = "http://host.invalid:81/x";

fn authority(proxy: &Recorder) -> String {
    proxy.url().trim_start_matches("http://").to_owned()
}

#[test]
fn requests_go_to_the_proxy_with_their_full_url() {
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Recorder::start(empty);
    let setting = format!("http.proxy=http://me:pass@{}", authority(&proxy));
    let call = ["-c", "protocol.version=0", "-c", &setting, "ls-remote", URL];
    let output = pronto(folder.path(), &call, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let log = proxy.log();
    let first = "GET http://host.invalid:81/x/info/refs?service=git-upload-pack HTTP/1.1\r\n";
    assert!(log.starts_with(first), "{log}");
    let log = log.to_ascii_lowercase();
    assert!(log.contains("\r\nhost: host.invalid:81\r\n"), "{log}");
    assert!(
        log.contains("proxy-authorization: basic bwu6cgfzcw=="),
        "{log}"
    );
}

#[test]
fn requests_go_whole_to_a_proxy_with_encrypted_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Recorder::start(empty);
    let port = authority(&proxy);
    let port = port.rsplit(':').next().and_then(|port| port.parse().ok());
    let Some(tls) = Tls::before(port.expect("a port")) else {
        skip!("certificates cannot be made");
    };
    let address = tls.url("").replace("/git/", "");
    let setting = format!("http.proxy={address}");
    // As with git, settings about the server's certificate are not for proxies: those that the system trusts are.
    let own = tls.authority.display().to_string();
    let list_refs = |trusted: &str, others: &[(&str, &str)]| {
        let call = ["-c", "protocol.version=0", "-c", &setting, "ls-remote", URL];
        let system = [("SSL_CERT_FILE", trusted), ("SSL_CERT_DIR", "")];
        pronto(folder.path(), &call, &[&system[..], others].concat())
    };
    for others in [("GIT_SSL_CAINFO", &*own), ("GIT_SSL_NO_VERIFY", "1")] {
        let refused = list_refs("/dev/null", &[others]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains("certificate"), "{others:?}: {said}");
    }
    let output = list_refs(&own, &[("GIT_SSL_CAINFO", "/dev/null")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let log = proxy.log();
    assert!(
        log.trim_start()
            .starts_with("GET http://host.invalid:81/x/"),
        "{log}"
    );
}

#[test]
fn every_setting_of_a_proxy_counts_in_a_clone() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases: [(&str, &[&str], bool); 7] = [
        ("", &["-c", "remote.origin.proxy=PROXY"], true),
        ("", &["-o", "up", "-c", "remote.up.proxy=PROXY"], true),
        ("", &["-o", "up", "-c", "remote.origin.proxy=PROXY"], false),
        ("", &["-c", "http.proxy=PROXY"], true),
        ("http_proxy", &[], true),
        ("all_proxy", &[], true),
        ("http_proxy", &["-c", "remote.origin.proxy="], false),
    ];
    for (number, (variable, options, reaches)) in cases.into_iter().enumerate() {
        let proxy = Recorder::start(empty);
        let options: Vec<String> = options
            .iter()
            .map(|option| option.replace("PROXY", &proxy.url()))
            .collect();
        let name = format!("copy{number}");
        let mut call = vec!["-c", "protocol.version=0", "clone", "-q"];
        call.extend(options.iter().map(String::as_str));
        call.extend([URL, &name]);
        let address = authority(&proxy);
        let variables = [(variable, address.as_str())];
        let variables = if variable.is_empty() {
            &[][..]
        } else {
            &variables[..]
        };
        let output = pronto(folder.path(), &call, variables);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), reaches, "{call:?}: {said}");
        assert_eq!(
            proxy.log().starts_with("GET http://host"),
            reaches,
            "{call:?}"
        );
    }
}

#[test]
fn hosts_of_no_proxy_are_reached_directly() {
    let folder = tempfile::tempdir().expect("a folder");
    let (proxy, server) = (Recorder::start(empty), Recorder::start(empty));
    let (address, url) = (proxy.url(), format!("{}/x", server.url()));
    let variables = [("http_proxy", address.as_str()), ("no_proxy", "127.0.0.1")];
    let call = ["-c", "protocol.version=0", "ls-remote", &url];
    let output = pronto(folder.path(), &call, &variables);
    assert!(output.status.success());
    assert_eq!(proxy.log(), "");
    assert!(
        server.log().starts_with("GET /x/info/refs"),
        "{}",
        server.log()
    );
}

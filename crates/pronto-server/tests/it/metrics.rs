//! Tests of `/metrics`: the clients that may read them, and their values.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use pronto_server::Event;
use pronto_server::config::{MetricsReaders, TlsFiles};
use test_support::authority::self_signed;

use crate::stored::{Place, in_both_places};
use crate::support::{Server, Site, status};

in_both_places!(
    only_administrators_read_metrics_by_default,
    an_address_serves_nothing_but_metrics_and_health,
    failed_reloads_and_the_end_of_the_certificate_are_metrics,
);

/// A grant that makes a user an administrator.
const ADMIN: &str = "[[grant]]\nrepository = \"**\"\nusers = [\"root\"]\nrole = \"admin\"\n\
                     [[grant]]\nrepository = \"**\"\nusers = [\"anonymous\", \"alice\"]\nrole = \"read\"\n";

fn only_administrators_read_metrics_by_default(place: Place) {
    let site = Site::new(place);
    let (root, alice) = (site.user("root"), site.user("alice"));
    let mut config = site.config(ADMIN);
    config.metrics = MetricsReaders::default();
    let server = Server::start(&site, config);
    let read = |headers: &str| status(&server.request("GET", "/metrics", headers, ""));
    let token = |token: &str| format!("authorization: Bearer {token}\r\n");
    // The connection comes from this machine, as do those of a proxy.
    assert_eq!(read(""), 403);
    assert_eq!(read("x-forwarded-for: 192.0.2.1\r\n"), 403);
    assert_eq!(read(&token(&alice)), 403);
    assert_eq!(read(&token(&root)), 200);
}

/// Sends a request to an address of a server, and returns the answer.
fn ask(address: std::net::SocketAddr, method: &str, path: &str, host: &str) -> String {
    let mut connection = TcpStream::connect(address).expect("it listens");
    let request = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("text");
    answer
}

fn an_address_serves_nothing_but_metrics_and_health(place: Place) {
    let site = Site::new(place);
    let mut config = site.config("[metrics]\nlisten = [\"127.0.0.1:0\"]\n");
    config.metrics = MetricsReaders::default();
    let server = Server::start(&site, config);
    let address = server.started.metrics[0];
    server.wait_for(|event| {
        matches!(event, Event::Listening { protocol: "metrics", address: at } if *at == address)
    });
    let answer = ask(address, "GET", "/metrics", "localhost");
    assert_eq!(status(&answer), 200, "{answer}");
    for name in [
        "pronto_server_requests_waiting 0\n",
        "pronto_server_resident_memory_bytes ",
        "pronto_server_anonymous_memory_bytes ",
        "pronto_server_request_wait_seconds_bucket{le=\"0.001\"}",
        "pronto_server_failed_reloads_total 0\n",
    ] {
        assert!(answer.contains(name), "{name}: {answer}");
    }
    let name = "pronto_server_certificate_expiry";
    let is_there = answer.lines().any(|line| line.starts_with(name));
    assert!(!is_there, "{answer}");
    assert_eq!(status(&ask(address, "GET", "/healthz", "localhost")), 200);
    for path in [
        "/team/a/info/refs?service=git-upload-pack",
        "/team/a/info/refs?service=git-receive-pack",
        "/api/v1/repositories",
        "/api/v1/users",
    ] {
        assert_eq!(
            status(&ask(address, "GET", path, "localhost")),
            404,
            "{path}"
        );
    }
    assert_eq!(status(&ask(address, "POST", "/metrics", "localhost")), 405);
    // A web page with a host name of its own.
    assert_eq!(
        status(&ask(address, "GET", "/metrics", "evil.example.org")),
        421
    );
    // The other address does not serve them.
    assert_eq!(status(&server.request("GET", "/metrics", "", "")), 403);
}

fn failed_reloads_and_the_end_of_the_certificate_are_metrics(place: Place) {
    let site = Site::new(place);
    let dates = ["20200101000000Z", "20491231235959Z"];
    let Some(made) = self_signed("subjectAltName=DNS:localhost\n", dates) else {
        test_support::skip!("openssl is not installed");
    };
    let (certificate, key) = (site.path("c.pem"), site.path("k.pem"));
    std::fs::write(&certificate, &made.certificate).expect("a file");
    std::fs::write(&key, &made.key).expect("a file");
    let mut config = site.config("[metrics]\nlisten = [\"127.0.0.1:0\"]\n");
    config.tls = Some(TlsFiles {
        certificate,
        key,
        client_ca: None,
    });
    let server = Server::start(&site, config);
    let address = server.started.metrics[0];
    let answer = ask(address, "GET", "/metrics", "localhost");
    let line = "pronto_server_certificate_expiry_timestamp_seconds 2524607999\n";
    assert!(answer.contains(line), "{answer}");
    std::fs::write(site.path("pronto-server.toml"), "nonsense = 1").expect("a file");
    server.reload.trigger();
    server.wait_for(|event| matches!(event, Event::Reloaded { error: Some(_) }));
    let answer = ask(address, "GET", "/metrics", "localhost");
    assert!(
        answer.contains("pronto_server_failed_reloads_total 1\n"),
        "{answer}"
    );
    assert!(
        answer.contains("pronto_server_reloads_total 0\n"),
        "{answer}"
    );
}

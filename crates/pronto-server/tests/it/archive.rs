//! Archives: `git archive --remote`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use test_support::git::reference;
use test_support::report_missing_reference;

use crate::stored::{Place, in_both_places};
use crate::support::{Server, Site, status};

in_both_places!(
    users_get_archives_and_others_where_that_is_allowed,
    the_daemon_serves_archives_where_that_is_allowed,
);

/// The request for the archive of a tree.
fn request(tree: &str) -> String {
    let line = format!("argument {tree}\n");
    format!("{:04x}{line}0000", line.len() + 4)
}

fn ask(server: &Server, headers: &str, tree: &str) -> String {
    let kind = "content-type: application/x-git-upload-archive-request\r\n";
    let headers = format!("{kind}{headers}");
    server.request(
        "POST",
        "/team/a/git-upload-archive",
        &headers,
        &request(tree),
    )
}

fn users_get_archives_and_others_where_that_is_allowed(place: Place) {
    if place == Place::Store && reference().is_none() {
        return report_missing_reference(&"archives from a store");
    }
    let site = Site::new(place);
    let token = site.user("alice");
    let server = Server::start(&site, site.config(""));
    let bearer = format!("authorization: Bearer {token}\r\n");
    let answer = ask(&server, &bearer, "main");
    assert_eq!(status(&answer), 200, "{answer}");
    let kind = "content-type: application/x-git-upload-archive-result";
    // A chunk of HTTP may begin behind each packet.
    assert!(
        answer.contains(kind) && answer.contains("0008ACK\n"),
        "{answer}"
    );
    assert!(answer.contains("pax_global_header"), "{answer}");
    // Git tells the client why there is none.
    let answer = ask(&server, &bearer, "nowhere");
    assert!(answer.contains("nowhere"), "{answer}");
    assert_eq!(status(&ask(&server, "", "main")), 403);
    let repository = site.path("root/team/a.git");
    site.git(&repository, &["config", "http.uploadArchive", "true"]);
    site.publish("team/a");
    assert_eq!(status(&ask(&server, "", "main")), 200);
    site.git(&repository, &["config", "http.uploadArchive", "false"]);
    site.publish("team/a");
    assert_eq!(status(&ask(&server, &bearer, "main")), 403);
}

fn the_daemon_serves_archives_where_that_is_allowed(place: Place) {
    if place == Place::Store && reference().is_none() {
        return report_missing_reference(&"archives from a store");
    }
    let site = Site::new(place);
    let mut config = site.config("");
    config.daemon = vec![([127, 0, 0, 1], 0).into()];
    let server = Server::start(&site, config);
    let ask = || {
        let mut socket = TcpStream::connect(server.started.daemon[0]).expect("it listens");
        let line = "git-upload-archive /team/a\0host=x\0";
        let text = format!("{:04x}{line}{}", line.len() + 4, request("main"));
        socket.write_all(text.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    assert!(ask().contains("ERR the repository does not allow this: daemon.uploadarch"));
    let repository = site.path("root/team/a.git");
    site.git(&repository, &["config", "daemon.uploadArch", "true"]);
    site.publish("team/a");
    assert!(ask().contains("pax_global_header"));
}

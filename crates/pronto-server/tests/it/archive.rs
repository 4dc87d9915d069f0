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

/// The request for an archive.
fn request(arguments: &str) -> String {
    let mut request = String::new();
    for argument in arguments.split(' ') {
        let line = format!("argument {argument}\n");
        request.push_str(&format!("{:04x}{line}", line.len() + 4));
    }
    request + "0000"
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

#[test]
fn only_refs_that_are_shown_are_archived() {
    let site = Site::new(Place::Directory);
    let token = site.user("alice");
    let server = Server::start(&site, site.config(""));
    let bearer = format!("authorization: Bearer {token}\r\n");
    let repository = site.path("root/team/a.git");
    site.git(&repository, &["update-ref", "refs/secret/x", "main"]);
    let id = site.git(&repository, &["rev-parse", "main"]);
    let gets = |tree: &str| ask(&server, &bearer, tree).contains("ustar");
    assert!(gets("refs/secret/x") && gets("v1") && gets("main:"));
    site.git(&repository, &["config", "transfer.hideRefs", "refs/secret"]);
    for tree in [
        "refs/secret/x",
        "secret/x",
        "refs/secret/x:",
        id.trim(),
        "main^0",
        "main~0:",
        ":",
    ] {
        let answer = ask(&server, &bearer, tree);
        assert!(answer.contains("fatal: no such ref: "), "{answer}");
        assert!(!answer.contains("ustar"), "{tree}");
    }
    site.git(
        &repository,
        &["config", "uploadArchive.allowUnreachable", "true"],
    );
    assert!(gets(id.trim()) && gets("main^0"));
}

#[test]
fn no_argument_reads_or_writes_files_of_the_server() {
    let site = Site::new(Place::Directory);
    let token = site.user("alice");
    let server = Server::start(&site, site.config(""));
    let bearer = format!("authorization: Bearer {token}\r\n");
    let secret = site.path("secret");
    std::fs::write(&secret, "secret").expect("a file");
    let secret = secret.to_str().expect("it is UTF-8");
    for (arguments, reason) in [
        (
            format!("--add-file={secret} main"),
            "cannot be used together",
        ),
        (
            format!("--add-file={secret}x main"),
            "cannot be used together",
        ),
        (
            format!("--add-virtual-file=a:{secret} main"),
            "cannot be used together",
        ),
        (
            format!("--output={secret} main"),
            "Unexpected option --output",
        ),
        (format!("-o {secret} main"), "Unexpected option --output"),
        (
            format!("--remote={secret} main"),
            "Unexpected option --remote",
        ),
        (format!("--exec={secret} main"), "requires '--remote'"),
        ("--unknown main".to_owned(), "unknown option `unknown'"),
    ] {
        let answer = ask(&server, &bearer, &arguments);
        assert!(answer.contains(reason), "{arguments}: {answer}");
        assert!(answer.contains("archiver died with error"), "{answer}");
    }
    assert_eq!(std::fs::read(secret).ok(), Some(b"secret".to_vec()));
}

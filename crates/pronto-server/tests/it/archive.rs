//! Tests of archives: `git archive --remote`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::stored::{Place, in_a_directory_only, in_both_places};
use crate::support::{Server, Site, status};

in_both_places!(
    users_get_archives_and_others_where_that_is_allowed,
    the_daemon_serves_archives_where_that_is_allowed,
    only_refs_that_are_shown_are_archived,
    placeholders_do_not_name_hidden_refs,
    no_argument_reads_or_writes_files_of_the_server,
);
in_a_directory_only!(
    /// No repository of a store is a partial clone.
    missing_objects_are_not_fetched,
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
    // Git reports to the client why the archive is missing.
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
    assert!(ask().contains("ERR the repository forbids this: see its setting daemon.uploadarch"));
    // The client of git still writes its request when it is refused.
    let remote = format!("--remote=git://{}/team/a", server.started.daemon[0]);
    let client = |arguments: &[&str]| {
        let all = [&["archive", &remote], arguments].concat();
        let output = site.try_git(&site.path(""), &all);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let refused =
        "fatal: remote error: the repository forbids this: see its setting daemon.uploadarch";
    let said = client(&["main"]);
    assert!(said.starts_with(refused), "{said}");
    let repository = site.path("root/team/a.git");
    site.git(&repository, &["config", "daemon.uploadArch", "true"]);
    site.publish("team/a");
    assert!(ask().contains("pax_global_header"));
    let said = client(&[vec!["main"], vec!["x"; 2000]].concat());
    assert!(said.contains("fatal: Too many options (>63)"), "{said}");
}

fn only_refs_that_are_shown_are_archived(place: Place) {
    let site = Site::new(place);
    let token = site.user("alice");
    let server = Server::start(&site, site.config(""));
    let bearer = format!("authorization: Bearer {token}\r\n");
    let repository = site.path("root/team/a.git");
    site.git(&repository, &["update-ref", "refs/secret/x", "main"]);
    site.publish("team/a");
    let id = site.git(&repository, &["rev-parse", "main"]);
    let gets = |tree: &str| ask(&server, &bearer, tree).contains("ustar");
    assert!(gets("refs/secret/x") && gets("v1") && gets("main:"));
    site.git(&repository, &["config", "transfer.hideRefs", "refs/secret"]);
    site.publish("team/a");
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
    site.publish("team/a");
    assert!(gets(id.trim()) && gets("main^0"));
}

fn placeholders_do_not_name_hidden_refs(place: Place) {
    let site = Site::new(place);
    let token = site.user("alice");
    let server = Server::start(&site, site.config(""));
    let bearer = format!("authorization: Bearer {token}\r\n");
    let repository = site.path("root/team/a.git");
    let work = site.path("work");
    std::fs::write(work.join(".gitattributes"), "refs export-subst\n").expect("a file");
    std::fs::write(work.join("refs"), "[$Format:%D$][$Format:%d$]\n").expect("a file");
    site.git(&work, &["add", "."]);
    site.git(&work, &["commit", "-qm", "placeholders"]);
    let refs = ["HEAD:main", "HEAD:refs/heads/shown", "HEAD:refs/secret/x"];
    let push = ["push", "-q", "../root/team/a.git"];
    site.git(&work, &[&push[..], &refs].concat());
    let shown = || {
        site.publish("team/a");
        let answer = ask(&server, &bearer, "shown refs");
        assert!(answer.contains("ustar"), "{answer}");
        let found = answer.split('\0').find(|text| text.starts_with('['));
        found.unwrap_or_default().to_owned()
    };
    let both = |text: &str| format!("[{text}][ ({text})]\n");
    assert_eq!(shown(), both("HEAD -> main, refs/secret/x, shown"));
    site.git(&repository, &["config", "transfer.hideRefs", "refs/secret"]);
    assert_eq!(shown(), both("HEAD -> main, shown"));
    let hide = ["config", "--add", "uploadpack.hideRefs", "refs/heads/main"];
    site.git(&repository, &hide);
    assert_eq!(shown(), both("HEAD, shown"));
    site.git(
        &repository,
        &["config", "--add", "transfer.hideRefs", "HEAD"],
    );
    assert_eq!(shown(), both("shown"));
}

fn missing_objects_are_not_fetched() {
    let site = Site::new(Place::Directory);
    let token = site.user("alice");
    let (source, partial) = (site.path("source.git"), site.path("root/team/a.git"));
    std::fs::rename(&partial, &source).expect("a repository");
    site.git(&source, &["config", "uploadpack.allowFilter", "true"]);
    site.git(
        &source,
        &["config", "uploadpack.allowAnySHA1InWant", "true"],
    );
    let url = format!("file://{}", source.display());
    let partial = partial.to_str().expect("it is UTF-8");
    let clone = ["clone", "-q", "--bare", "--filter=blob:none", &url, partial];
    site.git(&site.path(""), &clone);
    let server = Server::start(&site, site.config(""));
    let bearer = format!("authorization: Bearer {token}\r\n");
    let answer = ask(&server, &bearer, "main");
    assert!(answer.contains("fatal: cannot read '"), "{answer}");
    let missing = ["rev-list", "--objects", "--missing=print", "main"];
    let listed = site.git(&site.path("root/team/a.git"), &missing);
    assert!(listed.lines().any(|line| line.starts_with('?')), "{listed}");
}

fn no_argument_reads_or_writes_files_of_the_server(place: Place) {
    let site = Site::new(place);
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

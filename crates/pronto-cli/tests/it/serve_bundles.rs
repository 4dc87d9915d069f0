//! Clones that start from a bundle of the server: its header, and the pack of the repository.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use test_support::git::reference;
use test_support::report_missing_reference;

use crate::serve::Server;
use crate::stored::{Place, Root, in_both_places};
use crate::support::{Scratch, process, pronto_path, stderr, stdout};

in_both_places!(
    clones_start_from_the_pack_and_fetch_the_rest,
    a_bundle_is_a_file_that_can_be_resumed,
    what_refs_do_not_show_is_in_no_bundle,
    bundles_are_for_readers_and_can_be_turned_off,
);

/// A request for the bundles, as a client sends it.
const REQUEST: &str = "0017command=bundle-uri\n0000";

/// A served repository `a.git`, and the repository `work` from which it was cloned.
struct Site {
    scratch: Scratch,
    root: Root,
    git: &'static Path,
}

impl Site {
    /// Makes a repository with branches, tags and a merge, packed with bitmaps.
    fn new(place: Place, git: &'static Path, hash: &str) -> Site {
        let scratch = Scratch::new();
        let site = Site {
            root: Root::new(scratch.path(), place),
            scratch,
            git,
        };
        // Archives of git without links have the helper under one name only.
        std::fs::create_dir(site.path("helpers")).expect("a directory");
        let programs = site.git(&["--exec-path"]);
        let helper = Path::new(programs.trim()).join("git-remote-http");
        let link = site.path("helpers/git-remote-https");
        std::os::unix::fs::symlink(helper, link).expect("a link");
        let format = format!("--object-format={hash}");
        site.git(&["init", "-q", "-b", "main", &format, "work"]);
        for number in 0..30 {
            site.commit(&format!("{number}"));
        }
        site.work(&["switch", "-q", "-c", "side", "main~3"]);
        site.commit("side");
        site.work(&["switch", "-q", "main"]);
        site.work(&["merge", "-q", "-m", "merge", "-s", "ours", "side"]);
        site.work(&["tag", "-m", "annotated", "v1", "side"]);
        site.git(&["clone", "-q", "--mirror", "work", "root/a.git"]);
        site.repack();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    fn output(&self, program: &Path, arguments: &[&str]) -> std::process::Output {
        let mut command = process(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let helpers = std::iter::once(self.path("helpers"));
        let path = std::env::join_paths(helpers.chain(std::env::split_paths(&path)));
        command.env("PATH", path.expect("a path"));
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "A");
            command.env(format!("GIT_{who}_EMAIL"), "a@example.org");
        }
        command
            .args(arguments)
            .current_dir(self.scratch.path())
            .env("HOME", self.scratch.path())
            .env("GIT_TERMINAL_PROMPT", "0");
        command.output().expect("it runs")
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> String {
        let output = self.output(program, arguments);
        let said = stderr(&output);
        assert!(output.status.success(), "{program:?} {arguments:?}: {said}");
        stdout(&output)
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.run(self.git, arguments)
    }

    fn work(&self, arguments: &[&str]) -> String {
        self.git(&[&["-C", "work"], arguments].concat())
    }

    fn origin(&self, arguments: &[&str]) -> String {
        let done = self.git(&[&["-C", "root/a.git"], arguments].concat());
        self.publish();
        done
    }

    fn commit(&self, text: &str) {
        let lines = (0..200).map(|line| format!("{text} {}\n", line * text.len()));
        let content: String = lines.collect();
        std::fs::write(self.path("work").join(format!("f{text}")), content).expect("a file");
        self.work(&["add", "."]);
        self.work(&["commit", "-q", "-m", text]);
    }

    fn repack(&self) {
        self.run(
            pronto_path(),
            &["-C", "root/a.git", "repack", "-q", "-a", "-d", "-b"],
        );
    }

    /// Makes what was done to the repository visible to the server.
    fn publish(&self) {
        self.root.publish("a");
    }

    fn serve(&self, rest: &str) -> Server {
        self.publish();
        let store = self.root.section("cache");
        let config = format!("root = \"root\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n{rest}{store}");
        std::fs::write(self.path("pronto-server.toml"), config).expect("a file");
        let arguments = ["--config", "pronto-server.toml"];
        Server::start(self.scratch.path(), &arguments, "git clone ")
    }

    /// The address of `a.git`.
    fn url(server: &Server) -> String {
        let url = server.url();
        let base = url.rsplit_once('/').expect("a path").0;
        format!("{base}/a.git")
    }

    fn curl(&self, arguments: &[&str]) -> String {
        let arguments = [&["-sS", "--max-time", "60"], arguments].concat();
        self.run(Path::new("curl"), &arguments)
    }

    /// Whether version 2 has the command.
    fn is_advertised(&self, url: &str) -> bool {
        let url = format!("{url}/info/refs?service=git-upload-pack");
        let text = self.curl(&["-H", "Git-Protocol: version=2", &url]);
        assert!(text.contains("ls-refs"), "{text}");
        text.contains("bundle-uri")
    }

    /// The address of the bundle that the server names.
    fn offered(&self, url: &str, hash: &str) -> Option<String> {
        let request = match hash {
            "sha256" => REQUEST.replace("0000", "0019object-format=sha256\n0000"),
            _ => REQUEST.to_owned(),
        };
        let call = format!("{url}/git-upload-pack");
        let text = self.curl(&[
            "-H",
            "Git-Protocol: version=2",
            "-H",
            "Content-Type: application/x-git-upload-pack-request",
            "--data-binary",
            &request,
            &call,
        ]);
        assert!(text.ends_with("0000"), "{text}");
        let rest = text.split_once("bundle.clone.uri=")?.1;
        let relative = rest.split_once('\n').map_or(rest, |parts| parts.0);
        let relative = relative.trim_end_matches("0000");
        assert!(text.contains("bundle.version=1") && text.contains("bundle.mode=all"));
        Some(format!("{url}/{relative}"))
    }

    fn status(&self, url: &str, arguments: &[&str]) -> String {
        let fixed = ["-o", "/dev/null", "-w", "%{http_code}", url];
        self.curl(&[&fixed[..], arguments].concat())
    }
}

fn newest() -> Option<&'static Path> {
    let found = reference();
    if found.is_none() {
        report_missing_reference(&"bundles for clones");
    }
    found
}

/// The requests of the log of a service: their status and the bytes that were sent.
fn requests(log: &str, service: &str) -> Vec<(u64, u64)> {
    let lines = log.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_meant = line["service"] == service;
        is_meant.then(|| {
            let number = |name: &str| line[name].as_u64().expect("a number");
            (number("status"), number("sent_bytes"))
        })
    });
    lines.collect()
}

fn clones_start_from_the_pack_and_fetch_the_rest(place: Place) {
    let Some(git) = newest() else {
        return;
    };
    for hash in ["sha1", "sha256"] {
        let site = Site::new(place, git, hash);
        let server = site.serve("[clone]\nbundle_least_bytes = 1\n");
        let url = Site::url(&server);
        let first = site.offered(&url, hash).expect("an offer");
        // What is newer than the pack is fetched: a merge, a branch, and a tag of it.
        site.work(&["switch", "-q", "-c", "topic", "main~5"]);
        site.commit("topic");
        site.work(&["switch", "-q", "main"]);
        site.commit("new");
        site.work(&["merge", "-q", "-m", "two", "topic"]);
        site.work(&["tag", "-m", "two", "v2"]);
        site.work(&["push", "-q", "../root/a.git", "main", "topic", "v2"]);
        site.publish();
        assert_eq!(site.offered(&url, hash), Some(first));
        let expected = site.origin(&["for-each-ref", "refs/tags"]);
        let option = "transfer.bundleURI=true";
        for (number, program) in [git, pronto_path()].into_iter().enumerate() {
            let name = format!("clone{number}");
            let output = site.output(program, &["-c", option, "clone", &url, &name]);
            let said = stderr(&output);
            assert!(
                output.status.success() && !said.contains("warning"),
                "{said}"
            );
            site.git(&["-C", &name, "fsck", "--strict", "--no-references"]);
            assert_eq!(
                site.git(&["-C", &name, "for-each-ref", "refs/tags"]),
                expected
            );
            let heads = |place: &str| site.git(&["-C", place, "rev-parse", "HEAD"]);
            assert_eq!(heads(&name), heads("root/a.git"));
        }
        let refs = site.git(&["-C", "clone0", "for-each-ref", "refs/bundles"]);
        assert!(refs.contains("refs/bundles/"), "{refs}");
        site.git(&["clone", "-q", &url, "plain"]);
        server.signal(Signal::TERM);
        let log = server.end();
        let bundles = requests(&log, "bundle");
        assert!(!bundles.is_empty(), "{log}");
        assert!(bundles.iter().all(|found| found.0 == 200), "{log}");
        let sent = bundles[0].1;
        // The first clone has fetched less than the last, by about what the bundle has.
        let fetched = requests(&log, "git-upload-pack");
        let whole = fetched.iter().map(|found| found.1).max().expect("fetches");
        assert!(sent > 5_000 && whole > sent, "{sent} {log}");
        let of_pack = fetched.iter().filter(|found| found.1 > sent);
        assert_eq!(of_pack.count(), 3 - bundles.len(), "{log}");
    }
}

fn a_bundle_is_a_file_that_can_be_resumed(place: Place) {
    let Some(git) = newest() else {
        return;
    };
    for hash in ["sha1", "sha256"] {
        let site = Site::new(place, git, hash);
        let server = site.serve("[clone]\nbundle_least_bytes = 1\n");
        let url = Site::url(&server);
        let uri = site.offered(&url, hash).expect("an offer");
        site.curl(&["-f", "-o", "whole.bundle", &uri]);
        site.git(&["clone", "-q", "--mirror", "whole.bundle", "b.git"]);
        let refs = |place: &str| site.git(&["-C", place, "rev-parse", "main", "v1", "v1^{}"]);
        assert_eq!(refs("b.git"), refs("root/a.git"));
        let whole = std::fs::read(site.path("whole.bundle")).expect("a file");
        std::fs::write(site.path("part.bundle"), &whole[..50]).expect("a file");
        site.curl(&["-f", "-C", "-", "-o", "part.bundle", &uri]);
        assert_eq!(
            std::fs::read(site.path("part.bundle")).expect("a file"),
            whole
        );
        // A range that begins in the header and ends in the pack, and one in the pack.
        let end = whole
            .windows(4)
            .position(|four| four == b"PACK")
            .expect("a pack");
        for range in [end - 10..end + 20, end + 5..end + 9, 0..10] {
            let header = format!("{}-{}", range.start, range.end - 1);
            site.curl(&["-f", "-r", &header, "-o", "range", &uri]);
            assert_eq!(
                std::fs::read(site.path("range")).expect("a file"),
                whole[range]
            );
        }
        let outside = format!("{}-", whole.len());
        assert_eq!(site.status(&uri, &["-r", &outside]), "416");
        let head = site.curl(&["-f", "-I", &uri]).to_lowercase();
        let length = format!("content-length: {}\r\n", whole.len());
        assert!(
            head.contains(&length) && head.contains("etag: \""),
            "{head}"
        );
        assert!(
            head.contains("immutable") && head.contains("accept-ranges: bytes"),
            "{head}"
        );
        let other = format!("{url}/bundle/x.bundle");
        assert_eq!(site.status(&other, &[]), "404");
        let other = uri.replace("a.git/", "b/");
        assert_eq!(site.status(&other, &[]), "404");
        assert_eq!(site.status(&uri, &["-X", "POST"]), "405");
        server.signal(Signal::TERM);
        server.end();
    }
}

fn what_refs_do_not_show_is_in_no_bundle(place: Place) {
    let Some(git) = newest() else {
        return;
    };
    let site = Site::new(place, git, "sha1");
    let server = site.serve("[clone]\nbundle_least_bytes = 1\n");
    let url = Site::url(&server);
    let uri = site.offered(&url, "sha1").expect("an offer");
    let is_gone = |why: &str| {
        assert_eq!(site.offered(&url, "sha1"), None, "{why}");
        assert_eq!(site.status(&uri, &[]), "404", "{why}");
    };
    let is_there = |why: &str| {
        assert_eq!(site.offered(&url, "sha1").as_deref(), Some(&*uri), "{why}");
        assert_eq!(site.status(&uri, &[]), "200", "{why}");
    };
    is_there("as it was packed");
    // The tag alone leads to its object.
    let tag = site.origin(&["rev-parse", "v1"]);
    site.origin(&["config", "transfer.hideRefs", "refs/tags"]);
    is_gone("hidden");
    site.origin(&["config", "transfer.hideRefs", "refs/secret"]);
    site.origin(&["config", "--unset", "transfer.hideRefs"]);
    is_there("shown again");
    site.origin(&["update-ref", "-d", "refs/tags/v1"]);
    is_gone("deleted");
    site.origin(&["update-ref", "refs/tags/v1", tag.trim()]);
    is_there("back");
    // A store takes no shallow repositories.
    if !site.root.is_store() {
        let head = site.origin(&["rev-parse", "HEAD"]);
        std::fs::write(site.path("root/a.git/shallow"), head).expect("a file");
        is_gone("shallow");
        std::fs::remove_file(site.path("root/a.git/shallow")).expect("it is there");
        is_there("not shallow");
    }
    site.origin(&["config", "uploadpack.advertiseBundleURIs", "false"]);
    assert!(!site.is_advertised(&url));
    assert_eq!(site.status(&uri, &[]), "404");
    site.origin(&["config", "uploadpack.advertiseBundleURIs", "true"]);
    assert!(site.is_advertised(&url));
    is_gone("the repository decides");
    site.origin(&["config", "--unset", "uploadpack.advertiseBundleURIs"]);
    // A new pack has a new address.
    site.origin(&["update-ref", "-d", "refs/tags/v1"]);
    site.repack();
    site.root.replace("a");
    let again = site.offered(&url, "sha1").expect("an offer");
    assert_ne!(again, uri);
    assert_eq!(site.status(&uri, &[]), "404");
    assert_eq!(site.status(&again, &[]), "200");
    server.signal(Signal::TERM);
    let log = server.end();
    assert!(!log.contains("\"status\":500"), "{log}");
}

fn bundles_are_for_readers_and_can_be_turned_off(place: Place) {
    let Some(git) = newest() else {
        return;
    };
    let site = Site::new(place, git, "sha1");
    let mut uri = String::new();
    for (config, is_offered) in [
        ("[clone]\nbundle_least_bytes = 1\n", true),
        (
            "[clone]\nbundle_least_bytes = 1\nbundle_uri = false\n",
            false,
        ),
        // The pack is smaller than that.
        ("", false),
    ] {
        let server = site.serve(config);
        let url = Site::url(&server);
        assert_eq!(site.is_advertised(&url), is_offered, "{config}");
        if is_offered {
            uri = site.offered(&url, "sha1").expect("an offer");
        }
        let name = uri.rsplit_once('/').expect("a path").1;
        let expected = if is_offered { "200" } else { "404" };
        let uri = format!("{url}/bundle/{name}");
        assert_eq!(site.status(&uri, &[]), expected, "{config}");
    }
    let grants = "[[grant]]\nrepository = \"a\"\nusers = [\"alice\"]\nrole = \"read\"\n\
        [[grant]]\nrepository = \"b\"\nusers = [\"bob\"]\nrole = \"read\"\n\
        [clone]\nbundle_least_bytes = 1\n";
    let server = site.serve(grants);
    let manage = |arguments: &[&str]| {
        let fixed = ["serve", "--config", "pronto-server.toml"];
        site.run(pronto_path(), &[&fixed[..], arguments].concat())
    };
    let name = uri.rsplit_once('/').expect("a path").1;
    let uri = format!("{}/bundle/{name}", Site::url(&server));
    assert_eq!(site.status(&uri, &[]), "401");
    for (user, expected) in [("alice", "200"), ("bob", "404")] {
        manage(&["user", "add", user]);
        let token = manage(&["token", user]);
        let token = token.lines().find_map(|line| {
            let words = line.split_whitespace();
            words.into_iter().find(|word| word.starts_with("pronto_"))
        });
        let login = format!("{user}:{}", token.expect("a token"));
        // Changes of users count within a second.
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert_eq!(site.status(&uri, &["-u", &login]), expected, "{user}");
    }
}

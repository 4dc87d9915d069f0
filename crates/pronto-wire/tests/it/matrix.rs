//! Every protocol version over every transport.

use std::path::Path;

use pronto_hash::Kind;
use pronto_wire::advertisement::ProtocolVersion;
use pronto_wire::fetch::{Deepen, Nothing, Request};
use pronto_wire::transport::{Options, http};

use test_support::skip;

use crate::servers::{Daemon, Login, Ssh, Tls, Web};
use crate::support::{Fixed, Scene, VERSIONS, connect, connect_with, fetch, find, git, refs};

/// Clones `url` in each protocol version and checks the result with stock git.
fn clone_in_all_versions(url: &str, options: &Options, scene: &Scene, format: &str) {
    clone_with(url, options, &http::Options::default(), scene, format);
}

/// The same with settings for HTTP.
fn clone_with(url: &str, options: &Options, web: &http::Options, scene: &Scene, format: &str) {
    let head = git(&scene.origin(), &["rev-parse", "main"]);
    for version in VERSIONS {
        let mut options = options.clone();
        options.version = version;
        let set = Fixed {
            options: web.clone(),
            ..Fixed::default()
        };
        let mut client = connect_with(url, &options, set).expect("a connection");
        assert_eq!(client.version(), version, "{url}");
        let refs = refs(&mut client);
        let main = find(&refs, "refs/heads/main");
        assert_eq!(main.id.expect("born").to_string(), head);
        let symbolic = find(&refs, "HEAD").symref_target.as_ref();
        assert_eq!(symbolic.expect("symbolic"), "refs/heads/main");
        let tag = find(&refs, "refs/tags/v1");
        assert!(tag.peeled.is_some(), "{tag:?}");
        let into = target(scene.path(), &format!("{version:?}"), format);
        let request = Request {
            wants: refs.iter().filter_map(|found| found.id).collect(),
            ..Request::default()
        };
        let shallow = fetch(&mut client, &request, &mut Nothing, &into);
        assert!(shallow.is_empty());
        client.close().expect("the server ends well");
        git(&into, &["update-ref", "refs/heads/main", &head]);
        git(&into, &["fsck", "--full", "--strict"]);
        std::fs::remove_dir_all(&into).expect("a folder of ours");
    }
}

fn target(folder: &Path, name: &str, format: &str) -> std::path::PathBuf {
    let format = format!("--object-format={format}");
    git(folder, &["init", "-q", "--bare", &format, name]);
    folder.join(name)
}

#[test]
fn local_processes() {
    let scene = Scene::new("sha1");
    let url = scene.origin();
    let url = url.to_str().expect("a name in ASCII");
    clone_in_all_versions(url, &Options::default(), &scene, "sha1");
    clone_in_all_versions(
        &format!("file://{url}"),
        &Options::default(),
        &scene,
        "sha1",
    );
    let mut options = Options::default();
    options.command = Some("FOO=1 git-upload-pack".into());
    clone_in_all_versions(url, &options, &scene, "sha1");
}

#[test]
fn sha256_repositories() {
    let scene = Scene::new("sha256");
    let url = scene.origin();
    let url = url.to_str().expect("a name in ASCII");
    let client = connect(url, &Options::default()).expect("a connection");
    assert_eq!(client.object_format(), Kind::Sha256);
    clone_in_all_versions(url, &Options::default(), &scene, "sha256");
}

#[test]
fn daemon() {
    let scene = Scene::new("sha1");
    let daemon = Daemon::start(scene.path());
    let url = daemon.url("origin");
    clone_in_all_versions(&url, &Options::default(), &scene, "sha1");
    let error = connect(&daemon.url("missing"), &Options::default()).err();
    let error = error.expect("it is not there").to_string();
    assert!(
        error.starts_with("remote error: no such repository"),
        "{error}"
    );
}

#[test]
fn ssh() {
    let Some(ssh) = Ssh::start() else {
        skip!("sshd is not installed, or the user cannot log in");
    };
    let scene = Scene::new("sha1");
    let mut options = Options::default();
    options.ssh.command = Some(ssh.command().into());
    clone_in_all_versions(&ssh.url(&scene.origin()), &options, &scene, "sha1");
    clone_in_all_versions(&ssh.scp_url(&scene.origin()), &options, &scene, "sha1");
    options.ssh.command = None;
    options.ssh.program = Some(ssh.wrapper());
    clone_in_all_versions(&ssh.url(&scene.origin()), &options, &scene, "sha1");
    let error = connect(&ssh.url(&scene.path().join("missing")), &options).err();
    let error = error.expect("it is not there").to_string();
    assert!(error.starts_with("Could not read from remote"), "{error}");
}

#[test]
fn http() {
    let scene = Scene::new("sha1");
    let Some(web) = Web::start(scene.path(), Login::Open) else {
        skip!("lighttpd is not installed");
    };
    clone_in_all_versions(&web.url("origin"), &Options::default(), &scene, "sha1");
    clone_in_all_versions(
        &web.moved_url("origin"),
        &Options::default(),
        &scene,
        "sha1",
    );
    let error = connect(&web.url("missing"), &Options::default()).err();
    let error = error.expect("it is not there").to_string();
    assert_eq!(
        error,
        format!("repository '{}/' not found", web.url("missing"))
    );
}

#[test]
fn https() {
    let scene = Scene::new("sha1");
    let Some(web) = Web::start(scene.path(), Login::Open) else {
        skip!("lighttpd is not installed");
    };
    let Some(tls) = Tls::before(web.port()) else {
        skip!("openssl is not installed");
    };
    let options = Options::default();
    let error = connect(&tls.url("origin"), &options).err();
    let error = error.expect("nobody knows the authority").to_string();
    assert!(error.starts_with("unable to access"), "{error}");
    let mut known = http::Options::default();
    known.ssl_ca_info = Some(tls.authority.clone());
    clone_with(&tls.url("origin"), &options, &known, &scene, "sha1");
    let mut unverified = http::Options::default();
    unverified.ssl_verify = false;
    clone_with(&tls.url("origin"), &options, &unverified, &scene, "sha1");
}

#[test]
fn cut_histories_and_filters() {
    let scene = Scene::new("sha1");
    let daemon = Daemon::start(scene.path());
    let Some(web) = Web::start(scene.path(), Login::Open) else {
        skip!("lighttpd is not installed");
    };
    let local = scene.origin();
    let local = local.to_str().expect("a name in ASCII").to_owned();
    for url in [local, daemon.url("origin"), web.url("origin")] {
        for version in VERSIONS {
            let into = target(scene.path(), "cut", "sha1");
            let mut options = Options::default();
            options.version = version;
            let mut client = connect(&url, &options).expect("a connection");
            let head = find(&refs(&mut client), "refs/heads/main")
                .id
                .expect("born");
            let mut request = Request {
                wants: vec![head],
                deepen: Deepen {
                    depth: Some(1),
                    ..Deepen::default()
                },
                ..Request::default()
            };
            let shallow = fetch(&mut client, &request, &mut Nothing, &into);
            assert_eq!(shallow.shallow, [head], "{url} {version:?}");
            client.close().expect("the server ends well");
            std::fs::write(into.join("shallow"), format!("{head}\n")).expect("a file");

            request.shallow = vec![head];
            request.deepen.depth = Some(2);
            request.filter = Some("blob:none".into());
            let mut client = connect(&url, &options).expect("a connection");
            assert!(client.can_filter());
            let shallow = fetch(&mut client, &request, &mut Nothing, &into);
            assert_eq!(shallow.unshallow, [head], "{url} {version:?}");
            assert_eq!(shallow.shallow.len(), 1);
            std::fs::remove_dir_all(&into).expect("a folder of ours");
        }
    }
}

#[test]
fn an_unborn_branch_is_told_in_version_2() {
    let folder = tempfile::tempdir().expect("a folder");
    git(
        folder.path(),
        &[
            "init",
            "-q",
            "-b",
            "trunk",
            "--object-format=sha256",
            "empty",
        ],
    );
    let url = folder.path().join("empty");
    let url = url.to_str().expect("a name in ASCII");
    for version in VERSIONS {
        let mut options = Options::default();
        options.version = version;
        let mut client = connect(url, &options).expect("a connection");
        let refs = refs(&mut client);
        if version == ProtocolVersion::V2 {
            assert_eq!(refs.len(), 1);
            assert_eq!(find(&refs, "HEAD").id, None);
            let target = refs[0].symref_target.as_ref();
            assert_eq!(target.expect("symbolic"), "refs/heads/trunk");
            assert_eq!(client.object_format(), Kind::Sha256);
        } else {
            // Older protocol versions without references have no place for capabilities.
            assert!(refs.is_empty());
        }
        client.close().expect("the server ends well");
    }
}

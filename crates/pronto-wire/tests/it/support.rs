//! Repositories created by stock git, and packs checked by it.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use pronto_hash::{ObjectId, oid};
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::{Meter, Progress, ProgressMessage};
use pronto_wire::advertisement::{LsRefs, ProtocolVersion, RemoteRef};
use pronto_wire::client::FetchClient;
use pronto_wire::fetch::{Negotiator, Request, ShallowUpdate};
use pronto_wire::negotiate::{CommitInfo, CommitSupplier};
use pronto_wire::transport::{Options, http};
use pronto_wire::url::Url;
use pronto_wire::{Error, address::RemoteAddress};

pub(crate) const VERSIONS: [ProtocolVersion; 3] = [
    ProtocolVersion::V0,
    ProtocolVersion::V1,
    ProtocolVersion::V2,
];

/// Runs git in `directory` without the user's settings. Returns its output, trimmed.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
        .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
        .output()
        .expect("git is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A directory with the repository `origin`: a few commits, two branches, an annotated tag.
pub(crate) struct Scene {
    pub(crate) folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new(format: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scene = Scene { folder };
        let format = format!("--object-format={format}");
        git(
            scene.path(),
            &["init", "-q", "-b", "main", &format, "origin"],
        );
        let origin = scene.origin();
        for setting in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
            git(&origin, &["config", setting, "true"]);
        }
        scene.commit("one");
        scene.commit("two");
        git(&origin, &["tag", "-a", "-m", "tagged", "v1"]);
        git(&origin, &["branch", "side"]);
        scene.commit("three");
        scene
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn origin(&self) -> PathBuf {
        self.path().join("origin")
    }

    /// Adds a commit with a file of this name.
    pub(crate) fn commit(&self, name: &str) {
        let origin = self.origin();
        std::fs::write(origin.join(name), format!("{name}\n").repeat(50)).expect("a file");
        git(&origin, &["add", name]);
        git(&origin, &["commit", "-q", "-m", name]);
    }
}

/// Records messages of the other side.
#[derive(Default)]
pub(crate) struct Listener(pub(crate) Mutex<Vec<String>>);

impl Progress for Listener {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        Meter::new(title, total)
    }

    fn message(&self, message: ProgressMessage<'_>) {
        let mut lines = self.0.lock().expect("no panics while it is held");
        let is_overwritten = matches!(
            message,
            ProgressMessage::Remote {
                is_overwritten: true,
                ..
            }
        );
        let end = if is_overwritten { "\r" } else { "" };
        lines.push(format!("{}{message}{end}", message.prefix()));
    }
}

/// The password that the servers of these tests require, or another one.
pub(crate) struct Password(
    pub(crate) &'static str,
    pub(crate) std::sync::Arc<Mutex<String>>,
);

impl http::CredentialProvider for Password {
    fn fill(
        &mut self,
        url: &Url,
        challenges: &[String],
    ) -> Result<Option<http::HttpSecret>, Error> {
        assert_eq!(url.scheme(), "http");
        assert!(challenges[0].starts_with("Basic"), "{challenges:?}");
        self.note("fill ");
        Ok(Some(http::HttpSecret::Basic {
            user: "me".into(),
            password: self.0.into(),
        }))
    }

    fn approve(&mut self) {
        self.note("approve ");
    }

    fn reject(&mut self) {
        self.note("reject ");
    }
}

impl Password {
    fn note(&self, what: &str) {
        self.1.lock().expect("no panics").push_str(what);
    }
}

/// The same HTTP settings for every URL. Credentials are given once.
#[derive(Default)]
pub(crate) struct Fixed {
    pub(crate) options: http::Options,
    pub(crate) credentials: Option<Box<dyn http::CredentialProvider>>,
}

impl http::Settings for Fixed {
    fn for_url(&mut self, _: &Url) -> Result<http::UrlSettings, Error> {
        let mut settings = http::UrlSettings::default();
        settings.options = self.options.clone();
        settings.credentials = self.credentials.take();
        Ok(settings)
    }
}

pub(crate) fn connect(url: &str, options: &Options) -> Result<FetchClient, Error> {
    connect_with(url, options, Fixed::default())
}

pub(crate) fn connect_with(url: &str, options: &Options, set: Fixed) -> Result<FetchClient, Error> {
    let address = RemoteAddress::parse(url.into())?;
    FetchClient::connect(&address, options, Box::new(set), &(), &Interrupt::new())
}

pub(crate) fn find<'a>(refs: &'a [RemoteRef], name: &str) -> &'a RemoteRef {
    refs.iter()
        .find(|found| found.name == name)
        .unwrap_or_else(|| panic!("{name} is not in {refs:?}"))
}

/// Fetches into the repository `into` with git's index-pack.
pub(crate) fn fetch(
    client: &mut FetchClient,
    request: &Request,
    negotiator: &mut dyn Negotiator,
    into: &Path,
) -> ShallowUpdate {
    let mut response = client
        .fetch(request, negotiator, &())
        .expect("the server sends a pack");
    let mut child = Command::new("git")
        .args(["index-pack", "--stdin", "--fix-thin"])
        .current_dir(into)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("git is installed");
    let mut input = child.stdin.take().expect("it is piped");
    loop {
        let data = response.pack.fill_buf().expect("the pack arrives");
        if data.is_empty() {
            break;
        }
        input.write_all(data).expect("index-pack reads");
        let length = data.len();
        response.pack.consume(length);
    }
    drop(input);
    response.pack.finish(&[]).expect("nothing follows");
    assert!(child.wait().expect("a child").success(), "index-pack");
    response.fetch_info.shallow
}

/// All references.
pub(crate) fn refs(client: &mut FetchClient) -> Vec<RemoteRef> {
    client.refs(&LsRefs::default()).expect("references")
}

/// Returns the commits of a repository.
pub(crate) struct Local(HashMap<ObjectId, CommitInfo>);

impl Local {
    pub(crate) fn of(repository: &Path) -> Self {
        let log = git(repository, &["log", "--all", "--format=%H %ct %P"]);
        let parse = |hex: &str| ObjectId::from_hex(hex.as_bytes()).expect("git prints ids");
        let commits = log.lines().map(|line| {
            let mut fields = line.split_whitespace();
            let id = parse(fields.next().expect("an id"));
            let time = fields.next().and_then(|time| time.parse().ok());
            let commit = CommitInfo {
                time: time.expect("a time"),
                parents: fields.map(parse).collect(),
            };
            (id, commit)
        });
        Local(commits.collect())
    }
}

impl CommitSupplier for Local {
    fn commit(&mut self, id: &oid) -> Result<Option<CommitInfo>, Error> {
        Ok(self.0.get(id).cloned())
    }
}

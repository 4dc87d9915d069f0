//! The environment of one row: a site, its server, and the tools of an attacker.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use crate::client::{ATTACKER, Answer, Connection, RequestIds};
use crate::frames::Frames;
use crate::honest::{Access, Honest};
use crate::judge::refs_of;
use crate::server::{Server, wait_until};
use crate::site::{ACCESS, Site};
use crate::ssh::{self, Ssh};
use crate::stored::Place;
use crate::tls::{Tls, certificates};
use crate::wire::{FETCH, PUSH, V2, get, packets, post, unbanded};

/// The result of a row. The error describes the violated condition.
pub(crate) type Verdict = Result<(), String>;

/// The largest memory of a server, unless a row sets another limit.
const MOST_MEBIBYTES: u64 = 160;

/// A ref that a row may create or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) repository: String,
    pub(crate) name: String,
}

/// The state of a repository that pushes change.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The newest generation in a store; `None` if there is none.
    Generation(Option<u64>),
    /// The values of the refs in a directory, by their names.
    Refs(BTreeMap<String, String>),
}

pub(crate) struct Stage {
    pub(crate) site: Site,
    pub(crate) ids: RequestIds,
    pub(crate) most_mebibytes: u64,
    pub(crate) allowed: Vec<Allowed>,
    /// The files in repositories that the row itself writes.
    own: Vec<PathBuf>,
    limits: String,
    http: String,
    daemon: String,
    more: String,
    tls: Option<Tls>,
    has_ssh: bool,
    has_honest: bool,
    server: Option<Server>,
    honest: Option<Honest>,
}

impl Stage {
    pub(crate) fn new(place: Place) -> Self {
        Stage {
            site: Site::new(place),
            ids: RequestIds::default(),
            most_mebibytes: MOST_MEBIBYTES,
            allowed: Vec::new(),
            own: Vec::new(),
            limits: String::new(),
            http: String::new(),
            daemon: String::new(),
            more: String::new(),
            tls: None,
            has_ssh: false,
            has_honest: true,
            server: None,
            honest: None,
        }
    }

    /// Sets limits, as lines of the configuration.
    pub(crate) fn limits(&mut self, lines: &str) {
        self.limits.push_str(lines);
        self.limits.push('\n');
    }

    /// Adds lines to the start of the configuration.
    pub(crate) fn set(&mut self, lines: &str) {
        self.more.push_str(lines);
        self.more.push('\n');
    }

    /// Enables netsync, unless the row has configured it.
    pub(crate) fn netsync(&mut self) {
        if !self.more.contains("[netsync]") {
            self.set("[netsync]\nlisten = [\"127.0.0.1:0\"]");
        }
    }

    /// Adds lines to the HTTP section of the configuration.
    pub(crate) fn http(&mut self, lines: &str) {
        self.http.push_str(lines);
    }

    /// Adds lines to the `git://` section of the configuration.
    pub(crate) fn daemon(&mut self, lines: &str) {
        self.daemon.push_str(lines);
    }

    /// Disables the honest client during the attack, because the server would refuse it.
    pub(crate) fn alone(&mut self) {
        self.has_honest = false;
    }

    /// Enables HTTPS, with Alice's certificate for her user. Returns `false` if openssl is not
    /// installed.
    pub(crate) fn secure(&mut self) -> bool {
        let Some(made) = certificates() else {
            test_support::report_skip(&"openssl", &test_support::INSTALL);
            return false;
        };
        let path = |name| made.path(name).display().to_string();
        let lines = format!(
            "tls_certificate = \"{}\"\ntls_key = \"{}\"\nclient_ca = \"{}\"\n",
            path("server.pem"),
            path("server.key"),
            path("authority.pem")
        );
        self.http.push_str(&lines);
        self.more
            .push_str("[[certificate]]\nuser = \"alice\"\nsubject = \"Alice\"\n");
        self.tls = Some(made.client(None));
        true
    }

    /// Enables SSH, with a key of Mallory. Returns `false` if no SSH client is installed.
    pub(crate) fn shell(&mut self) -> bool {
        self.has_ssh = ssh::add_key(&self.site, "mallory");
        self.has_ssh
    }

    /// Returns Mallory's SSH client, which uses the address of attackers.
    pub(crate) fn ssh(&mut self) -> Ssh {
        let address = self.ssh_address();
        Ssh::new(&self.site, address, &self.ids)
    }

    /// Opens a plain socket of the attacker to the SSH port.
    pub(crate) fn connect_ssh(&mut self) -> Connection {
        self.connect_ssh_from(ATTACKER)
    }

    pub(crate) fn connect_ssh_from(&mut self, source: Ipv4Addr) -> Connection {
        let to = self.ssh_address();
        Connection::open(source, to, None, &self.ids)
    }

    fn ssh_address(&mut self) -> SocketAddr {
        self.server().ssh.expect("it serves SSH")
    }

    /// Permits the row to create or change a ref.
    pub(crate) fn allow(&mut self, repository: &str, name: &str) {
        self.allowed.push(Allowed {
            repository: repository.to_owned(),
            name: name.to_owned(),
        });
    }

    /// Sets a key in the configuration of a served repository.
    pub(crate) fn configure(&mut self, repository: &str, key: &str, value: &str) {
        self.site.configure(repository, key, value);
        self.own(repository, "config");
    }

    /// Installs a hook in a served repository.
    pub(crate) fn hook(&mut self, repository: &str, name: &str, script: &str) {
        self.site.hook(repository, name, script);
        self.own(repository, &format!("hooks/{name}"));
    }

    /// Permits the row itself to change a file of a repository.
    pub(crate) fn own(&mut self, repository: &str, path: &str) {
        self.own
            .push(self.site.path(format!("root/{repository}.git")).join(path));
    }

    /// Returns whether the row itself may change a file of a repository.
    pub(crate) fn owns(&self, repository: &str, path: &Path) -> bool {
        self.own
            .contains(&self.site.path(format!("root/{repository}.git")).join(path))
    }

    /// Returns the repositories that the row or the honest client has changed.
    pub(crate) fn changed_repositories(&self) -> BTreeSet<String> {
        let allowed = self.allowed.iter();
        let allowed = allowed.map(|allowed| allowed.repository.clone());
        allowed.chain(["team/a".to_owned()]).collect()
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns the server. The first call starts it.
    pub(crate) fn server(&mut self) -> &mut Server {
        if self.server.is_none() {
            let store = self.site.publish();
            let config = format!(
                "root = \"root\"\n{}{ACCESS}\n[http]\nlisten = [\"127.0.0.1:0\"]\n{}\
                 [daemon]\nlisten = [\"127.0.0.1:0\"]\n{}{}\
                 [limits]\ndrain_seconds = 1\n{}\n{store}",
                self.more,
                self.http,
                self.daemon,
                match self.has_ssh {
                    true => "[ssh]\nlisten = [\"127.0.0.1:0\"]\n",
                    false => "",
                },
                self.limits
            );
            let server = Server::start(&self.site, &config);
            if self.has_honest {
                self.honest = Some(Honest::start(Access {
                    server: server.http,
                    tls: self.tls.clone(),
                    token: self.site.ids.token("alice").to_owned(),
                    ids: Arc::clone(&self.ids),
                }));
            }
            self.server = Some(server);
        }
        self.server.as_mut().expect("it was started")
    }

    /// Stops the server, and starts another one.
    pub(crate) fn restart(&mut self) -> Verdict {
        self.server();
        if let Some(honest) = self.honest.take() {
            honest.end()?;
        }
        self.server().end()?;
        self.server = None;
        self.ids.lock().expect("no panic").clear();
        self.server();
        Ok(())
    }

    pub(crate) fn take_honest(&mut self) -> Option<Honest> {
        self.honest.take()
    }

    /// Opens a connection of the attacker to HTTP or HTTPS.
    pub(crate) fn connect(&mut self) -> Connection {
        self.connect_from(ATTACKER)
    }

    pub(crate) fn connect_from(&mut self, source: Ipv4Addr) -> Connection {
        let to = self.server().http;
        Connection::open(source, to, self.tls.as_ref(), &self.ids)
    }

    /// Opens a connection to HTTPS with a client certificate, if one is given.
    pub(crate) fn connect_with(&mut self, certificate: Option<&str>) -> Connection {
        let tls = certificates().map(|made| made.client(certificate));
        let to = self.server().http;
        Connection::open(ATTACKER, to, tls.as_ref(), &self.ids)
    }

    /// Opens a connection of the attacker without TLS.
    pub(crate) fn connect_plain(&mut self) -> Connection {
        let to = self.server().http;
        Connection::open(ATTACKER, to, None, &self.ids)
    }

    /// Opens a connection of the attacker to `git://`.
    pub(crate) fn connect_git(&mut self) -> Connection {
        self.connect_git_from(ATTACKER)
    }

    pub(crate) fn connect_git_from(&mut self, source: Ipv4Addr) -> Connection {
        let to = self.server().git;
        Connection::open(source, to, None, &self.ids)
    }

    /// Opens an HTTP/2 connection of the attacker.
    pub(crate) fn frames(&mut self) -> Frames {
        Frames::over(self.connect())
    }

    /// Returns the `Authorization` header with a user's token.
    pub(crate) fn token(&self, user: &str) -> String {
        format!("authorization: Bearer {}\r\n", self.site.ids.token(user))
    }

    /// Sends a request, and returns the response.
    pub(crate) fn ask(&mut self, request: impl AsRef<[u8]>) -> Result<Answer, String> {
        self.connect().send(request).answer()
    }

    /// Sends a fetch request of version 2, as a user or anonymously.
    pub(crate) fn fetch(
        &mut self,
        user: Option<&str>,
        repository: &str,
        body: &[u8],
    ) -> Result<Answer, String> {
        let token = user.map(|user| self.token(user)).unwrap_or_default();
        let headers = format!("{V2}{token}");
        self.ask(post(repository, FETCH, &headers, body))
    }

    /// Pushes as a user. Returns the response, with the side bands in its body decoded.
    pub(crate) fn push(
        &mut self,
        user: &str,
        repository: &str,
        commands: &[u8],
        pack: &[u8],
    ) -> Result<Answer, String> {
        let token = self.token(user);
        let body = [commands, pack].concat();
        let mut answer = self.ask(post(repository, PUSH, &token, &body))?;
        if answer.status == 200 {
            answer.body = unbanded(&answer.body);
        }
        Ok(answer)
    }

    /// Runs a step that must not change a repository: afterwards, a store has no new generation of
    /// the repository, and a directory has the same refs.
    pub(crate) fn changing_nothing<T>(
        &mut self,
        repository: &str,
        act: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        self.server();
        let before = self.state(repository);
        let done = act(self)?;
        let now = self.state(repository);
        match now == before {
            true => Ok(done),
            false => Err(format!("{repository} is {now:?}, not {before:?}")),
        }
    }

    fn state(&self, repository: &str) -> State {
        match self.site.is_store() {
            true => State::Generation(self.site.generation(repository)),
            false => State::Refs(refs_of(&self.repository(repository))),
        }
    }

    /// Returns the refs of a served repository, with their values.
    pub(crate) fn refs(&self, repository: &str) -> String {
        let at = self.repository(repository);
        let format = "--format=%(refname) %(objectname) %(symref)";
        self.site.git(&at, &["for-each-ref", format])
    }

    /// Requires that a push is refused with a report that contains these words, and that nothing
    /// changes.
    pub(crate) fn refuses_push(
        &mut self,
        user: &str,
        repository: &str,
        commands: &[u8],
        pack: &[u8],
        reason: &str,
    ) -> Verdict {
        let push = |stage: &mut Self| stage.push(user, repository, commands, pack);
        let answer = self.changing_nothing(repository, push)?;
        let text = answer.text();
        match answer.status == 200 && text.contains("ng ") && text.contains(reason) {
            true => Ok(()),
            false => Err(format!(
                "the push is not refused for '{reason}': {answer:?} {text}"
            )),
        }
    }

    /// Runs stock git as a user with a URL of a repository as its last argument.
    pub(crate) fn git_as(&mut self, user: &str, arguments: &[&str], repository: &str) -> Output {
        let token = self.site.ids.token(user);
        let url = format!("http://{user}:{token}@{}/{repository}", self.server().http);
        let work = self.site.path("work");
        let mut all: Vec<&str> = arguments.to_vec();
        let at = all.iter().position(|word| *word == "URL");
        all[at.expect("a place for the URL")] = &url;
        self.site.try_git(&work, &all)
    }

    /// Returns the metrics of the server.
    pub(crate) fn metrics(&mut self) -> Result<String, String> {
        let mut connection = self.connect_from(Ipv4Addr::LOCALHOST);
        let token = self.token("root");
        Ok(connection.send(get("/metrics", &token)).answer()?.text())
    }

    /// Waits until the value of a metric matches `fits`.
    pub(crate) fn measures(&mut self, name: &str, fits: impl Fn(i64) -> bool) -> Verdict {
        let mut last = None;
        let is_right = wait_until(|| {
            last = self.measured(name);
            last.is_some_and(&fits)
        });
        match is_right {
            true => Ok(()),
            false => Err(format!("the metric {name} stays {last:?}")),
        }
    }

    /// Returns the value of a metric.
    pub(crate) fn measured(&mut self, name: &str) -> Option<i64> {
        let start = format!("pronto_server_{name} ");
        let text = self.metrics().unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|value| value.parse().ok())
    }

    /// Waits until `count` requests hold a slot.
    pub(crate) fn slots(&mut self, count: i64) -> Verdict {
        self.measures("requests_under_way", |found| found >= count)
    }

    /// Requires that a finished request of the attacker was logged with this status.
    pub(crate) fn logged(&mut self, status: u64, error: &str) -> Verdict {
        self.logged_on("http", status, error)
    }

    /// Requires that a finished request of another address was logged with this status.
    pub(crate) fn logged_from(&mut self, source: Ipv4Addr, status: u64, error: &str) -> Verdict {
        let source = source.to_string();
        let found = self.server().logged(|event| {
            let text = |name: &str| event[name].as_str().unwrap_or_default();
            text("event") == "request"
                && text("address").starts_with(&source)
                && event["status"] == status
                && text("error").contains(error)
        });
        found
            .map(|_| ())
            .map_err(|problem| format!("{status} {error}: {problem}"))
    }

    pub(crate) fn logged_on(&mut self, protocol: &str, status: u64, error: &str) -> Verdict {
        let attacker = ATTACKER.to_string();
        let found = self.server().logged(|event| {
            let text = |name: &str| event[name].as_str().unwrap_or_default();
            text("event") == "request"
                && text("protocol") == protocol
                && text("address").starts_with(&attacker)
                && event["status"] == status
                && text("error").contains(error)
        });
        found
            .map(|_| ())
            .map_err(|problem| format!("{status} {error}: {problem}"))
    }

    /// Requires that a connection of the attacker was logged as refused.
    pub(crate) fn logged_refusal(&mut self, reason: &str) -> Verdict {
        let attacker = ATTACKER.to_string();
        let found = self.server().logged(|event| {
            let text = |name: &str| event[name].as_str().unwrap_or_default();
            text("event") == "refused"
                && text("address").starts_with(&attacker)
                && text("reason").contains(reason)
        });
        found
            .map(|_| ())
            .map_err(|problem| format!("{reason}: {problem}"))
    }

    /// Returns the directory of a served repository.
    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        self.site.repository(name)
    }

    /// Starts a request that holds a slot until its connection is dropped.
    pub(crate) fn hold(&mut self, user: Option<&str>) -> Connection {
        let token = user.map(|user| self.token(user)).unwrap_or_default();
        let repository = if user.is_some() { "team/a" } else { "open/p" };
        let head = crate::wire::post_head(repository, FETCH, &format!("{V2}{token}"));
        let mut connection = self.connect();
        connection.send(format!("{head}content-length: 1000\r\n\r\n"));
        connection
    }
}

/// Requires a refusal with this status, and with a text of one line that contains a request id.
pub(crate) fn refused(answer: &Answer, status: u16) -> Verdict {
    let text = answer.text();
    let has_id = answer
        .header("x-request-id")
        .is_some_and(|id| text.contains(id));
    match answer.status == status && text.ends_with('\n') && has_id {
        true => Ok(()),
        false => Err(format!(
            "it is not refused with {status}: {answer:?} {text}"
        )),
    }
}

/// Fails with the message `what` unless `holds`.
pub(crate) fn require(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    match holds {
        true => Ok(()),
        false => Err(what()),
    }
}

/// Returns a request for a list of refs.
pub(crate) fn listing() -> Vec<u8> {
    crate::wire::command("ls-refs", ["peel", "symrefs"])
}

/// Returns packets with push options.
pub(crate) fn options<P: AsRef<[u8]>>(options: impl IntoIterator<Item = P>) -> Vec<u8> {
    packets(options)
}

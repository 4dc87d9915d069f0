//! A server in this process, repositories created by git, and raw requests.

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use pronto::Environment;
use pronto_io::interrupt::Interrupt;
use pronto_server::config::{MetricsReaders, ServerConfig};
use pronto_server::service::{GitProgram, Native};
use pronto_server::users::{self, TokenMode};
use pronto_server::{Control, Event, Options, Started, serve};
use test_support::git::reference;
use test_support::{Scratch, on_path};

use crate::stored::{Place, Root};

/// A directory or a store with repositories, a configuration and users.
pub(crate) struct Site {
    pub(crate) scratch: Scratch,
    root: Root,
    /// The number of configurations, each of which has a separate cache.
    configured: Cell<usize>,
}

impl Site {
    /// Creates a site with the repository `team/a.git`, which has two commits.
    pub(crate) fn new(place: Place) -> Self {
        let scratch = Scratch::new();
        let site = Site {
            root: Root::new(scratch.path(), place),
            configured: Cell::new(0),
            scratch,
        };
        let work = site.path("work");
        std::fs::create_dir_all(site.path("root/team")).expect("a directory");
        site.git(site.scratch.path(), &["init", "-q", "-b", "main", "work"]);
        for number in 0..2 {
            std::fs::write(work.join("file"), number.to_string()).expect("a file");
            site.git(&work, &["add", "."]);
            site.git(&work, &["commit", "-q", "-m", "change"]);
        }
        site.git(&work, &["tag", "-a", "-m", "first", "v1", "HEAD~"]);
        site.git(
            site.scratch.path(),
            &["clone", "-q", "--bare", "work", "root/team/a.git"],
        );
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Returns the configuration file of the last server.
    pub(crate) fn file(&self, text: &str) -> String {
        format!(
            "root = \"root\"\n{text}\n{}",
            self.root.section(&self.cache())
        )
    }

    /// Returns the name of the last server's cache.
    fn cache(&self) -> String {
        format!("cache{}", self.configured.get())
    }

    /// Returns the temporary files that pushes to a repository of the last server have left.
    pub(crate) fn leftovers(&self, name: &str) -> Vec<PathBuf> {
        self.root.leftovers(name, &self.cache())
    }

    /// Publishes changes of a directory below `root` to the server.
    pub(crate) fn publish(&self, name: &str) {
        self.root.publish(name);
    }

    /// Returns a bare repository with the content of a served one.
    pub(crate) fn served(&self, name: &str) -> PathBuf {
        self.root.served(name)
    }

    /// Returns whether a repository is served.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.root.has(name)
    }

    /// Writes a configuration for the repositories, and parses it.
    pub(crate) fn config(&self, text: &str) -> ServerConfig {
        self.configured.set(self.configured.get() + 1);
        let file = self.path("pronto-server.toml");
        let text = self.file(text);
        std::fs::write(&file, text).expect("a file");
        let mut config = ServerConfig::read(&file).expect("it is valid");
        config.http = vec![([127, 0, 0, 1], 0).into()];
        config.metrics = MetricsReaders::Loopback;
        config
    }

    /// Adds a user, and returns a token.
    pub(crate) fn user(&self, name: &str) -> String {
        let made = users::change(&self.path("pronto-users.toml"), |users| {
            users.add(name)?;
            users.add_token(name, TokenMode::Add)
        });
        made.expect("the file can be written")
    }

    /// Runs git in `directory`, and returns its output. The command must succeed.
    pub(crate) fn git(&self, directory: &Path, arguments: &[&str]) -> String {
        let output = self.try_git(directory, arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {text}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs git in `directory`.
    pub(crate) fn try_git(&self, directory: &Path, arguments: &[&str]) -> Output {
        let mut command = self.git_command(directory);
        command.args(arguments).output().expect("git runs")
    }

    pub(crate) fn git_command(&self, directory: &Path) -> Command {
        let mut command = Command::new(on_path("git"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.scratch.path())
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_AUTHOR_NAME", "A")
            .env("GIT_AUTHOR_EMAIL", "a@example.org")
            .env("GIT_COMMITTER_NAME", "A")
            .env("GIT_COMMITTER_EMAIL", "a@example.org")
            .current_dir(directory);
        command
    }
}

/// The events of a server, and a signal for each.
#[derive(Debug, Default)]
pub(crate) struct Events {
    all: Mutex<Vec<Event>>,
    changed: Condvar,
}

impl Events {
    fn push(&self, event: Event) {
        self.all.lock().expect("no panic").push(event);
        self.changed.notify_all();
    }
}

/// A running server.
pub(crate) struct Server {
    pub(crate) started: Started,
    pub(crate) drain: Interrupt,
    pub(crate) stop: Interrupt,
    pub(crate) reload: Interrupt,
    events: Arc<Events>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(site: &Site, config: ServerConfig) -> Self {
        site.root.publish_new();
        let mut environment = Environment::empty(site.scratch.path());
        environment.set("HOME", site.scratch.path());
        if let Some(git) = reference().filter(|_| site.root.is_store()) {
            // Older versions of git read no reftables, which repositories of a store have.
            let path = std::env::var_os("PATH").unwrap_or_default();
            let first = git.parent().expect("it is in a directory").to_owned();
            let all = std::iter::once(first).chain(std::env::split_paths(&path));
            environment.set("PATH", std::env::join_paths(all).expect("a path"));
        }
        let (drain, stop, reload) = (Interrupt::new(), Interrupt::new(), Interrupt::new());
        let events = Arc::new(Events::default());
        let log = Arc::clone(&events);
        let mut options = Options::new(
            config,
            environment,
            Box::new(Native {
                program: "git".into(),
                maintain: Box::new(|_| ()),
                packs: None,
                selections: Arc::default(),
                listings: None,
                bundles: None,
                git: GitProgram::default(),
            }),
            Box::new(move |event| log.push(event.clone())),
        );
        let file = site.path("pronto-server.toml");
        options.read = Some(Box::new(move || ServerConfig::read(&file)));
        options.owner = None;
        let (sender, receiver) = channel();
        let flags = (drain.clone(), stop.clone(), reload.clone());
        let thread = std::thread::spawn(move || {
            let (drain, stop, reload) = &flags;
            let control = Control {
                drain,
                stop,
                reload: &|| reload.take(),
                started: &|started| sender.send(started.clone()).expect("it is awaited"),
            };
            serve(options, &control).expect("it serves");
        });
        Server {
            started: receiver.recv().expect("it starts"),
            drain,
            stop,
            reload,
            events,
            thread: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.started.http[0]
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address())
    }

    /// Returns an address with a user and a token.
    pub(crate) fn url_of(&self, user: &str, token: &str, path: &str) -> String {
        format!("http://{user}:{token}@{}/{path}", self.address())
    }

    /// Sends `bytes`, and returns all received bytes until the server closes the connection.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut socket = TcpStream::connect(self.address()).expect("it listens");
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a socket");
        // A server that has already refused may have closed its end.
        let _ = socket.write_all(bytes);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Makes a request with additional header lines, and returns the response.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let length = match body.is_empty() {
            true => String::new(),
            false => format!("content-length: {}\r\n", body.len()),
        };
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{length}{headers}\r\n{body}"
        );
        self.raw(text.as_bytes())
    }

    /// Waits until `count` Git requests have a slot.
    pub(crate) fn wait_for_slots(&self, count: usize) {
        let line = format!("pronto_server_requests_under_way {count}\n");
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while !self.request("GET", "/metrics", "", "").contains(&line) {
            assert!(std::time::Instant::now() < end, "the request has no slot");
        }
    }

    /// Waits until the server has ended.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ends well");
        }
    }

    /// Waits for a matching event.
    pub(crate) fn wait_for(&self, fits: impl Fn(&Event) -> bool) -> Event {
        let find = |events: &[Event]| events.iter().find(|event| fits(event)).cloned();
        let all = self.events.all.lock().expect("no panic");
        let wait = Duration::from_secs(20);
        let lacks = |events: &mut Vec<Event>| find(events).is_none();
        let waited = self.events.changed.wait_timeout_while(all, wait, lacks);
        find(&waited.expect("no panic").0).expect("there is such an event")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.trigger();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the HTTP status of a response.
pub(crate) fn status(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1).and_then(|text| text.parse().ok());
    status.unwrap_or_default()
}

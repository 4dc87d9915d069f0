//! The repositories and users of the netsync server that the tests use.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Output;

use rustix::process::Signal;

use crate::netsync_peers::World;
use crate::serve::Server;
use crate::support::{stderr, stdout};

pub(super) const CONFIG: &str = r#"
root = "root"
create_on_push = true
[http]
metrics = "loopback"
listen = []
[netsync]
listen = ["127.0.0.1:0"]
[[grant]]
repository = "**"
users = ["alice"]
role = "admin"
[[grant]]
repository = "team/**"
users = ["bob"]
role = "read"
[[grant]]
repository = "open"
users = ["anonymous"]
role = "read"
[[rule]]
repository = "**"
refs = "refs/heads/release"
users = ["carol"]
[[rule]]
repository = "**"
refs = "refs/tags/**"
create = false
"#;

/// A server with the repositories `team/a`, `open` and `private`, and the users alice and bob.
pub(super) struct Site {
    pub(super) world: World,
    pub(super) server: Option<Server>,
    pub(super) keys: Vec<String>,
}

impl Site {
    /// Creates a site. `more` is appended to the configuration.
    pub(super) fn new(more: &str) -> Self {
        Self::of(&format!("{CONFIG}{more}"))
    }

    /// Creates a site with this configuration.
    pub(super) fn of(config: &str) -> Self {
        let world = World::new();
        world.repository("work");
        std::fs::create_dir_all(world.path("root/team")).expect("a directory");
        for name in ["root/team/a.git", "root/open.git", "root/private.git"] {
            world.git(".", &["clone", "-q", "--bare", "work", name]);
            // Hooks of the machine's template are removed.
            let _ = std::fs::remove_dir_all(world.path(name).join("hooks"));
        }
        std::fs::write(world.path("server.toml"), config).expect("a file");
        let mut site = Site {
            world,
            server: None,
            keys: Vec::new(),
        };
        for user in ["alice", "bob", "mallory"] {
            let key = site.world.key(user);
            if user != "mallory" {
                site.manage(&["user", "add", user]);
                site.manage(&["user", "key", "add", user, &key]);
            }
            site.keys.push(key);
        }
        site.start();
        for user in ["alice", "bob", "mallory"] {
            let (key, at) = (site.printed("the key of netsync is "), site.address());
            let trusted = ["netsync", "trust", "desk", &key, "--at", &at];
            site.world.done(user, ".", &trusted);
        }
        site
    }

    pub(super) fn start(&mut self) {
        let directory = self.world.path(".");
        let text = std::fs::read_to_string(self.world.path("server.toml")).expect("text");
        let last = match text.contains("listen = []") {
            true => "pronto sync netsync://",
            false => "git clone http://",
        };
        let server = Server::start(&directory, &["--config", "server.toml"], last);
        self.server = Some(server);
    }

    pub(super) fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    /// Returns the rest of the printed line that begins with `start`.
    pub(super) fn printed(&self, start: &str) -> String {
        let mut lines = self.server().lines.iter();
        let rest = lines.find_map(|line| line.strip_prefix(start));
        rest.expect("it is printed").to_owned()
    }

    pub(super) fn address(&self) -> String {
        let address = self.printed("serving at netsync://");
        address.trim_end_matches('/').to_owned()
    }

    pub(super) fn url(&self, name: &str) -> String {
        format!("netsync://{}/{name}", self.address())
    }

    /// Runs a management command.
    pub(super) fn manage(&self, arguments: &[&str]) -> String {
        let arguments = [&["serve", "--config", "server.toml"], arguments].concat();
        self.world.done("server", ".", &arguments)
    }

    /// Syncs the server's repository `name` as the user `who` in the directory `place`.
    pub(super) fn sync(&self, who: &str, place: &str, name: &str, arguments: &[&str]) -> Output {
        let url = self.url(name);
        let arguments = [&["sync", &url], arguments].concat();
        self.world.pronto(who, place, &arguments)
    }

    pub(super) fn done(&self, who: &str, place: &str, arguments: &[&str]) -> String {
        let output = self.sync(who, place, "team/a", arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    }

    pub(super) fn metrics(&self) -> String {
        let address = self.printed("serving at http://");
        let mut socket = TcpStream::connect(address.trim_end_matches('/')).expect("it listens");
        let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        socket.write_all(request).expect("it reads");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("text");
        answer
    }

    /// Stops the server and returns its log.
    pub(super) fn end(&mut self) -> String {
        let server = self.server.take().expect("it runs");
        server.signal(Signal::TERM);
        server.end()
    }

    pub(super) fn rev(&self, place: &str, name: &str) -> String {
        self.world.git(place, &["rev-parse", name])
    }
}

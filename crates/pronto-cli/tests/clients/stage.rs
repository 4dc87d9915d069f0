//! The servers that all trials use, and the logins of their clients.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use test_support::{report_skip, write_program};

use crate::pronto::Pronto;
use crate::report::Row;
use crate::repositories::Templates;
use crate::servers::{Daemon, Login as WebLogin, Ssh, Tls, Web};
use crate::stored::{Behind, Place};

/// A transport of Git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Http,
    /// HTTPS, with a certificate of a test authority. Reading requires a token. The URL has a host
    /// name, because some clients do not compare addresses with certificates.
    Https,
    Git,
    Ssh,
}

impl Transport {
    pub(crate) const ALL: [Transport; 4] = [
        Transport::Http,
        Transport::Https,
        Transport::Git,
        Transport::Ssh,
    ];

    /// Returns whether the transport is read-only.
    pub(crate) fn is_for_reading(self) -> bool {
        self == Transport::Git
    }

    /// Returns the directory of the transport's repositories. Reading those of `private` requires a
    /// login.
    pub(crate) fn group(self) -> &'static str {
        match self {
            Transport::Https | Transport::Ssh => "private",
            Transport::Http | Transport::Git => "open",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Transport::Http => "http",
            Transport::Https => "https",
            Transport::Git => "git",
            Transport::Ssh => "ssh",
        })
    }
}

/// One of the two compared servers: pronto's or git's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Pronto,
    Git,
}

impl Side {
    pub(crate) const BOTH: [Side; 2] = [Side::Pronto, Side::Git];

    /// Returns the name of the directory for the server's repositories and its clients' clones.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Pronto => "pronto",
            Side::Git => "git",
        }
    }
}

/// A user of a server: the token and the key.
pub(crate) struct User {
    pub(crate) name: &'static str,
    pub(crate) token: String,
    pub(crate) key: PathBuf,
    home: PathBuf,
}

/// The environment variables that give a client its login.
pub(crate) struct Login<'a> {
    user: &'a User,
    authority: &'a Path,
    hosts: PathBuf,
}

impl Login<'_> {
    pub(crate) fn apply(&self, command: &mut Command) {
        let (user, hosts) = (self.user, self.hosts.display());
        let ssh = format!(
            "ssh -F /dev/null -i {} -o IdentitiesOnly=yes -o BatchMode=yes -o LogLevel=ERROR \
             -o StrictHostKeyChecking=yes -o UserKnownHostsFile={hosts}",
            user.key.display(),
        );
        command
            .env("HOME", &user.home)
            .env("CLIENT_USER", user.name)
            .env("CLIENT_TOKEN", &user.token)
            .env("CLIENT_KEY", &user.key)
            .env("CLIENT_KNOWN_HOSTS", &self.hosts)
            .env("CLIENT_CA", self.authority)
            .env("GIT_SSH_COMMAND", ssh);
    }
}

/// All servers, and the files that they serve. Dropping the value stops the servers.
pub(crate) struct Stage {
    pronto: Pronto,
    /// The object store of pronto's servers, if they use one.
    behind: Option<Behind>,
    web: Web,
    /// The password-protected web server behind `tls`.
    _closed: Web,
    tls: Tls,
    daemon: Daemon,
    ssh: Ssh,
    me: [User; 2],
    guest: User,
    stranger: User,
    pub(crate) templates: Templates,
    pub(crate) rows: Mutex<Vec<Row>>,
    folder: tempfile::TempDir,
}

impl Stage {
    /// Starts the servers. Returns `None` if a program is missing.
    pub(crate) fn new(place: Place) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path();
        // The servers have a home directory of their own.
        let home = path.join("server");
        std::fs::create_dir(&home).expect("a directory");
        let behind =
            (place == Place::Store).then(|| Behind::new(&path.join("behind")).with_home(&home));
        for side in Side::BOTH {
            for group in ["open", "private"] {
                let root = path.join(side.name()).join(group);
                std::fs::create_dir_all(root).expect("a directory");
            }
        }
        let root = path.join(Side::Git.name());
        let webs = [WebLogin::Open, WebLogin::Basic].map(|login| Web::start(&root, login));
        let tls = webs[1].as_ref().and_then(|web| Tls::before(web.port()));
        let ([Some(web), Some(closed)], Some(tls), Some(ssh)) = (webs, tls, Ssh::start()) else {
            let missing = "lighttpd, openssl or sshd is missing, or the user cannot log in";
            report_skip(&missing, &test_support::INSTALL);
            return None;
        };
        let keys = (ssh.private_key(), tls.authority.clone());
        let pronto = Pronto::start(path, &keys.0, &keys.1, behind.as_ref());
        let hosts = [
            (pronto.ssh.port(), pronto.host_key.clone()),
            (ssh.port(), ssh.host_key()),
        ];
        write_hosts(path, &hosts);
        let authority = tls.authority.clone();
        let user = |name, token: &str, key: &Path| make_user(path, &authority, name, token, key);
        Some(Stage {
            me: [
                user("me", &pronto.tokens[0], &ssh.private_key()),
                user("me", "secret", &ssh.private_key()),
            ],
            guest: user("guest", &pronto.tokens[1], &pronto.guest_key),
            stranger: user("me", "wrong", &pronto.stranger_key),
            daemon: Daemon::start(&root),
            templates: Templates::new(&path.join("templates")),
            rows: Mutex::new(Vec::new()),
            pronto,
            behind,
            web,
            _closed: closed,
            tls,
            ssh,
            folder,
        })
    }

    /// Returns a bare repository with the state of a server.
    pub(crate) fn served(&self, side: Side, transport: Transport, name: &str) -> PathBuf {
        match &self.behind {
            Some(behind) if side == Side::Pronto => {
                let stored = format!("{}/{name}", transport.group());
                let exported = self.folder.path().join(format!("exported/{stored}.git"));
                behind.export(&stored, &exported);
                exported
            }
            _ => self.repository(side, transport, name),
        }
    }

    /// Publishes the changes in the directory of a repository to the server.
    pub(crate) fn publish(&self, side: Side, transport: Transport, name: &str) {
        if let Some(behind) = self.behind.as_ref().filter(|_| side == Side::Pronto) {
            let directory = self.repository(side, transport, name);
            behind.publish(&directory, &format!("{}/{name}", transport.group()));
        }
    }

    /// Returns the directory in which the repository `name` of a server is created.
    pub(crate) fn repository(&self, side: Side, transport: Transport, name: &str) -> PathBuf {
        let root = self.folder.path().join(side.name());
        root.join(transport.group()).join(format!("{name}.git"))
    }

    /// Returns the directory for clones of a server.
    pub(crate) fn clones(&self, side: Side, name: &str) -> PathBuf {
        self.folder
            .path()
            .join("clones")
            .join(side.name())
            .join(name)
    }

    /// Returns the URL of the repository `name`.
    pub(crate) fn url(&self, side: Side, transport: Transport, name: &str) -> String {
        let path = format!("{}/{name}.git", transport.group());
        match (side, transport) {
            (Side::Pronto, Transport::Http) => format!("http://{}/{path}", self.pronto.http),
            (Side::Pronto, Transport::Https) => {
                format!("https://localhost:{}/{path}", self.pronto.https.port())
            }
            (Side::Pronto, Transport::Git) => format!("git://{}/{path}", self.pronto.git),
            (Side::Pronto, Transport::Ssh) => format!("ssh://git@{}/{path}", self.pronto.ssh),
            (Side::Git, Transport::Http) => self.web.url(&path),
            (Side::Git, Transport::Https) => self.tls.url(&path).replace("127.0.0.1", "localhost"),
            (Side::Git, Transport::Git) => self.daemon.url(&path),
            (Side::Git, Transport::Ssh) => {
                let place = self.repository(side, transport, name);
                self.ssh
                    .url(&place)
                    .replace("ssh://", &format!("ssh://{}@", account()))
            }
        }
    }

    /// Returns the login of the user with all permissions.
    pub(crate) fn me(&self, side: Side) -> Login<'_> {
        self.login(match side {
            Side::Pronto => &self.me[0],
            Side::Git => &self.me[1],
        })
    }

    /// Returns the login of a user of pronto's server with only read permission.
    pub(crate) fn guest(&self) -> Login<'_> {
        self.login(&self.guest)
    }

    /// Returns a login that no server accepts.
    pub(crate) fn stranger(&self) -> Login<'_> {
        self.login(&self.stranger)
    }

    fn login<'a>(&'a self, user: &'a User) -> Login<'a> {
        Login {
            user,
            authority: &self.tls.authority,
            hosts: self.folder.path().join("known_hosts"),
        }
    }

    /// Returns the log of pronto's servers.
    pub(crate) fn log(&self) -> String {
        self.pronto.log()
    }
}

/// Returns the name of the current user account.
fn account() -> String {
    let output = Command::new("id").arg("-un").output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn write_hosts(path: &Path, servers: &[(u16, PathBuf)]) {
    let mut text = String::new();
    for (port, key) in servers {
        let key = std::fs::read_to_string(key).expect("a key");
        text.push_str(&format!("[127.0.0.1]:{port} {}\n", key.trim()));
    }
    std::fs::write(path.join("known_hosts"), text).expect("a file");
}

/// Creates the home directory of a user.
fn make_user(path: &Path, authority: &Path, name: &'static str, token: &str, key: &Path) -> User {
    let homes = path.join("homes");
    std::fs::create_dir_all(&homes).expect("a directory");
    let number = std::fs::read_dir(&homes).expect("a directory").count();
    let home = homes.join(number.to_string());
    std::fs::create_dir_all(home.join(".ssh")).expect("a directory");
    let hosts = std::fs::read(path.join("known_hosts")).expect("a file");
    std::fs::write(home.join(".ssh/known_hosts"), hosts).expect("a file");
    let helper = home.join("helper");
    let text = "#!/bin/sh\n[ \"$1\" = get ] || exit 0\nprintf 'username=%s\\npassword=%s\\n' \"$CLIENT_USER\" \"$CLIENT_TOKEN\"\n";
    write_program(&helper, text);
    let config = format!(
        "[http]\n\tsslCAInfo = {}\n[credential]\n\thelper = {}\n\
         [user]\n\tname = me\n\temail = me@example.org\n",
        authority.display(),
        helper.display()
    );
    std::fs::write(home.join(".gitconfig"), config).expect("a file");
    User {
        name,
        token: token.to_owned(),
        key: key.to_owned(),
        home,
    }
}

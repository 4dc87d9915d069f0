//! `git http-backend` behind lighttpd.

use std::path::Path;
use std::process::Command;

use super::{Server, free_port, installed};

/// Whether the server requires a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    /// No password.
    Open,
    /// The user `me` with the password `secret`.
    Basic,
}

/// A web server that serves repositories below `/git/` and redirects `/moved/` to it.
pub(crate) struct Web {
    server: Server,
    _folder: tempfile::TempDir,
}

impl Web {
    /// Serves every repository below `root`. `None` if no web server is installed.
    pub(crate) fn start(root: &Path, login: Login) -> Option<Self> {
        let lighttpd = installed(&["/usr/sbin/lighttpd", "/usr/bin/lighttpd"])?;
        let backend = installed(&[
            "/usr/lib/git-core/git-http-backend",
            "/usr/libexec/git-core/git-http-backend",
        ])?;
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let passwords = folder.path().join("passwords");
        std::fs::write(&passwords, "me:secret\n").expect("a file");
        let mut configuration = format!(
            r#"server.document-root = "{folder}"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{folder}/errors"
server.upload-dirs = ( "{folder}" )
server.stream-response-body = 1
server.modules = ( "mod_auth", "mod_authn_file", "mod_redirect", "mod_alias", "mod_setenv", "mod_cgi" )
url.redirect = ( "^/moved/(.*)$" => "/git/$1" )
alias.url = ( "/git" => "{backend}" )
$HTTP["url"] =~ "^/git/" {{
  cgi.assign = ( "" => "" )
  setenv.add-environment = ( "GIT_PROJECT_ROOT" => "{root}", "GIT_HTTP_EXPORT_ALL" => "1", "HOME" => "{folder}" )
}}
"#,
            folder = folder.path().display(),
            backend = backend.display(),
            root = root.display(),
        );
        if login == Login::Basic {
            configuration.push_str(&format!(
                r#"auth.backend = "plain"
auth.backend.plain.userfile = "{}"
auth.require = ( "/git/" => ( "method" => "basic", "realm" => "repositories", "require" => "valid-user" ) )
"#,
                passwords.display()
            ));
        }
        let file = folder.path().join("lighttpd.conf");
        std::fs::write(&file, configuration).expect("a file");
        let mut command = Command::new(lighttpd);
        command.arg("-D").arg("-f").arg(file);
        Some(Web {
            server: Server::start(command, port),
            _folder: folder,
        })
    }

    /// The port it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.server.port
    }

    /// The URL of the repository `name`.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/git/{name}", self.port())
    }

    /// The same with user and password.
    pub(crate) fn url_with_login(&self, login: &str, name: &str) -> String {
        format!("http://{login}@127.0.0.1:{}/git/{name}", self.port())
    }

    /// A URL that redirects to the repository `name`.
    pub(crate) fn moved_url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/moved/{name}", self.port())
    }
}

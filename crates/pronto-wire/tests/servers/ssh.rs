//! `sshd` with its own keys.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use test_support::keys::make_ssh_key;

use super::{Server, free_port, installed};

/// An ssh server that accepts the current user with a key.
pub(crate) struct Ssh {
    server: Server,
    folder: tempfile::TempDir,
}

impl Ssh {
    /// Starts one. `None` if it is not installed, or if the current user cannot log in (without a
    /// login shell).
    pub(crate) fn start() -> Option<Self> {
        let sshd = installed(&["/usr/sbin/sshd", "/usr/local/sbin/sshd"])?;
        installed(&["/usr/bin/ssh", "/usr/local/bin/ssh"])?;
        // Only root needs it, and only root can create it.
        let _ = fs::create_dir_all("/run/sshd");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        for name in ["host", "user"] {
            if !make_ssh_key(&path.join(name)) {
                return None;
            }
        }
        fs::copy(path.join("user.pub"), path.join("authorized")).expect("a file");
        let port = free_port();
        let shown = path.display();
        let lines = [
            format!("ListenAddress 127.0.0.1:{port}"),
            format!("HostKey {shown}/host"),
            format!("AuthorizedKeysFile {shown}/authorized"),
            format!("PidFile {shown}/pid"),
            "AcceptEnv GIT_PROTOCOL".into(),
            "StrictModes no".into(),
            "UsePAM no".into(),
            "PasswordAuthentication no".into(),
            "PermitRootLogin prohibit-password".into(),
        ];
        let file = path.join("sshd_config");
        fs::write(&file, lines.join("\n") + "\n").expect("a file");
        let mut command = Command::new(sshd);
        command.arg("-D").arg("-e").arg("-f").arg(file);
        let server = Server::start(command, port);
        let ssh = Ssh { server, folder };
        test_support::write_program(
            &ssh.wrapper(),
            &format!("#!/bin/sh\nexec {} \"$@\"\n", ssh.command()),
        );
        match ssh.log_in() {
            Ok(()) => Some(ssh),
            Err(reason) => {
                let missing = format!("the current user cannot log in: {reason}");
                test_support::report_skip(&missing, &test_support::INSTALL);
                None
            }
        }
    }

    /// Logs in as the current user. Returns the exit status and the messages of ssh if that fails.
    fn log_in(&self) -> Result<(), String> {
        let port = self.port().to_string();
        let output = Command::new(self.wrapper())
            .args(["-p", &port, "127.0.0.1", "true"])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "{}, {}",
                output.status,
                output.stderr.escape_ascii()
            )),
        }
    }

    /// Returns a command line that connects to the server without questions.
    pub(crate) fn command(&self) -> String {
        let path = self.folder.path().display();
        format!(
            "ssh -F /dev/null -i {path}/user -o IdentitiesOnly=yes -o BatchMode=yes \
             -o LogLevel=ERROR -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
        )
    }

    /// Returns the public key of the user.
    pub(crate) fn public_key(&self) -> std::path::PathBuf {
        self.folder.path().join("user.pub")
    }

    /// Returns the private key of the user.
    pub(crate) fn private_key(&self) -> std::path::PathBuf {
        self.folder.path().join("user")
    }

    /// Returns the public key of the server.
    pub(crate) fn host_key(&self) -> std::path::PathBuf {
        self.folder.path().join("host.pub")
    }

    /// Replaces the lines of `authorized_keys`.
    pub(crate) fn authorize(&self, lines: &str) {
        fs::write(self.folder.path().join("authorized"), lines).expect("a file");
    }

    /// Returns the path of a program that does the same.
    pub(crate) fn wrapper(&self) -> std::path::PathBuf {
        self.folder.path().join("wrapper")
    }

    /// The port it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.server.port
    }

    /// The `ssh://` URL of the repository at `path`.
    pub(crate) fn url(&self, path: &Path) -> String {
        format!("ssh://127.0.0.1:{}{}", self.port(), path.display())
    }

    /// Returns the same in the form of scp.
    pub(crate) fn scp_url(&self, path: &Path) -> String {
        format!("[127.0.0.1:{}]:{}", self.port(), path.display())
    }
}

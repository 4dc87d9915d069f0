//! `sshd` with its own keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Server, free_port, installed};

/// An ssh server that accepts the current user with a key.
pub(crate) struct Ssh {
    server: Server,
    folder: tempfile::TempDir,
}

impl Ssh {
    /// Starts one; `None` if it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let sshd = installed(&["/usr/sbin/sshd", "/usr/local/sbin/sshd"])?;
        let keygen = installed(&["/usr/bin/ssh-keygen", "/usr/local/bin/ssh-keygen"])?;
        installed(&["/usr/bin/ssh", "/usr/local/bin/ssh"])?;
        // Only root needs it, and only root can create it.
        let _ = fs::create_dir_all("/run/sshd");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        for name in ["host", "user"] {
            let status = Command::new(&keygen)
                .args(["-q", "-t", "ed25519", "-N", "", "-f", name])
                .current_dir(path)
                .stdout(Stdio::null())
                .status()
                .expect("ssh-keygen runs");
            assert!(status.success(), "ssh-keygen {name}");
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
        ssh.write_wrapper();
        Some(ssh)
    }

    /// Returns a command line that connects to the server without questions.
    pub(crate) fn command(&self) -> String {
        let path = self.folder.path().display();
        format!(
            "ssh -F /dev/null -i {path}/user -o IdentitiesOnly=yes -o BatchMode=yes \
             -o LogLevel=ERROR -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
        )
    }

    /// Writes the same as a program.
    pub(crate) fn wrapper(&self) -> std::path::PathBuf {
        self.folder.path().join("wrapper")
    }

    fn write_wrapper(&self) {
        let script = format!("#!/bin/sh\nexec {} \"$@\"\n", self.command());
        fs::write(self.wrapper(), script).expect("a file");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.wrapper(), mode).expect("a file of ours");
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

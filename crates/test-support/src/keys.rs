//! Creates keys of OpenSSH and gpg.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::{on_path, output_if_installed};

/// Creates an OpenSSH key without a passphrase at `path`, and its public key at the same path with
/// the extension `pub`. Returns `false` if ssh-keygen is not installed.
///
/// # Panics
/// Panics if ssh-keygen fails.
#[must_use]
pub fn make_ssh_key(path: &Path) -> bool {
    let mut command = Command::new(on_path("ssh-keygen"));
    command.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
    command.arg(path).stdin(Stdio::null());
    let Some(output) = output_if_installed(&mut command) else {
        return false;
    };
    assert!(output.status.success(), "ssh-keygen: {output:?}");
    true
}

/// A home directory of gpg. Dropping the value ends the agents that use the directory.
pub struct GpgHome(TempDir);

impl GpgHome {
    /// Creates an empty home directory.
    ///
    /// # Panics
    /// Panics if `/tmp` does not exist.
    #[must_use]
    pub fn new() -> Self {
        // The directory contains gpg's sockets, whose paths have a maximum length.
        GpgHome(tempfile::tempdir_in("/tmp").expect("a directory"))
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Creates a key without a passphrase for the user `name`. Returns `false` if gpg is not
    /// installed.
    ///
    /// # Panics
    /// Panics if gpg fails.
    #[must_use]
    pub fn make_key(&self, name: &str) -> bool {
        let mut command = Command::new(on_path("gpg"));
        command
            .env("GNUPGHOME", self.path())
            .args(["--batch", "--quiet", "--passphrase", ""])
            .args(["--quick-generate-key", name, "ed25519", "sign", "never"])
            .stdin(Stdio::null());
        let Some(output) = output_if_installed(&mut command) else {
            return false;
        };
        assert!(output.status.success(), "gpg: {output:?}");
        true
    }
}

impl Default for GpgHome {
    fn default() -> Self {
        GpgHome::new()
    }
}

impl Drop for GpgHome {
    fn drop(&mut self) {
        let mut command = Command::new(on_path("gpgconf"));
        command.arg("--homedir").arg(self.path());
        // Fails if gpg is not installed; then there are no agents.
        let _ = command.args(["--kill", "all"]).output();
    }
}

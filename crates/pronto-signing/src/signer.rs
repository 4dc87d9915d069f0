//! Signs texts and verifies signatures with external programs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bstr::{BStr, BString, ByteSlice};
use pronto_config::{Environment, Error, ErrorKind, Result, path};
use pronto_io::child;
use pronto_io::interrupt::Interrupt;

use crate::program::{ProgramContext, ProgramOutput, is_interrupted};
use crate::temporary::PrivateDirectory;
use crate::{Settings, SignatureCheck, SignatureFormat, status};

/// The namespace of SSH signatures for Git.
const NAMESPACE: &str = "git";

const TOO_OLD_TO_SIGN: &str =
    "ssh-keygen -Y sign is needed for ssh signing (available in openssh version 8.2p1+)";
const TOO_OLD_TO_CHECK: &str = "ssh-keygen -Y find-principals/verify is needed for ssh signature \
    verification (available in openssh version 8.2p1+)";
const NO_ALLOWED_SIGNERS: &str = "gpg.ssh.allowedSignersFile needs to be configured and exist for \
    ssh signature verification";

/// A signing key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKey(BString);

impl SigningKey {
    /// Returns the key as configured: an id or a name for gpg, a path or a public key for SSH.
    pub fn text(&self) -> &BStr {
        self.0.as_bstr()
    }

    /// Returns the public key if the key is configured as a literal and not as a path.
    fn literal(&self) -> Option<&[u8]> {
        literal(&self.0)
    }
}

fn literal(text: &[u8]) -> Option<&[u8]> {
    let marked = text.strip_prefix(b"key::");
    marked.or_else(|| text.starts_with(b"ssh-").then_some(text))
}

/// Signs texts and verifies signatures with the configured programs.
#[derive(Clone, Copy, Debug)]
pub struct Signer<'a> {
    settings: &'a Settings,
    around: ProgramContext<'a>,
}

impl<'a> Signer<'a> {
    /// Creates a signer. Its programs run in `directory` with `environment`, and may prompt for a
    /// passphrase. They are killed when `interrupt` is triggered.
    pub fn new(
        settings: &'a Settings,
        directory: &'a Path,
        environment: &'a Environment,
        interrupt: &'a Interrupt,
    ) -> Self {
        let around = ProgramContext {
            directory,
            environment,
            interrupt,
            is_detached: false,
            deadline: None,
        };
        Signer { settings, around }
    }

    /// Runs the programs without a terminal, as a server does. When a program is killed, its child
    /// processes are killed, too.
    #[must_use]
    pub fn detached(mut self) -> Self {
        self.around.is_detached = true;
        self
    }

    /// Sets the deadline of the programs, `limit` from now. At the deadline, running programs are
    /// killed and their calls fail.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.around.deadline = Instant::now().checked_add(limit);
        self
    }

    /// Returns the signing key: the configured key, or the default. The default for
    /// [`SignatureFormat::OpenPgp`] and [`SignatureFormat::X509`] is the result of `identity`; for [`SignatureFormat::Ssh`] it
    /// is printed by `gpg.ssh.defaultKeyCommand`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Signing`] if there is no key, and with the errors of `identity`.
    pub fn key(&self, identity: impl FnOnce() -> Result<BString>) -> Result<SigningKey> {
        if let Some(key) = &self.settings.signing_key {
            return Ok(SigningKey(key.clone()));
        }
        match self.settings.format {
            SignatureFormat::Ssh => self.default_ssh_key(),
            _ => identity().map(SigningKey),
        }
    }

    /// Returns the name of the key in the push certificate of a signed push: for SSH its
    /// fingerprint, otherwise its text.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Signing`] if the fingerprint of the key cannot be determined.
    pub fn key_id(&self, key: &SigningKey) -> Result<BString> {
        if self.settings.format != SignatureFormat::Ssh {
            return Ok(key.0.clone());
        }
        let failed = || {
            let message = format!("failed to get the ssh fingerprint for key '{}'", key.text());
            Error::new(ErrorKind::Signing, message)
        };
        let mut command = child::command(SignatureFormat::Ssh.program());
        let input = match key.literal() {
            Some(literal) => {
                command.args(["-lf", "-"]);
                literal
            }
            None => {
                command.arg("-lf").arg(self.file_of(key)?);
                b""
            }
        };
        let output = self.run(command, input)?;
        if !output.status.success() {
            let reported = output.stderr.trim_end().to_str_lossy().into_owned();
            return Err(failed().because(reported));
        }
        let fields: Vec<&[u8]> = output.stdout.splitn_str(3, " ").collect();
        match fields.as_slice() {
            [_, fingerprint, _] => Ok((*fingerprint).into()),
            _ => Err(failed()),
        }
    }

    /// Signs a text. Returns the signature, which the caller appends to the text.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Signing`] if the program cannot be started or fails (the message
    /// contains its output), with [`ErrorKind::Io`] if a temporary file cannot be used, and with
    /// [`ErrorKind::Interrupted`] after an interrupt.
    pub fn sign(&self, text: &[u8], key: &SigningKey) -> Result<Vec<u8>> {
        let mut signature = match self.settings.format {
            SignatureFormat::Ssh => self.sign_with_ssh(text, key)?,
            format => self.sign_with_gpg(text, key, format)?,
        };
        remove_carriage_returns(&mut signature);
        Ok(signature)
    }

    /// Verifies the signature of a text. The first line of the signature determines its format.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::UnknownSignature`] if the format is unknown, and with
    /// [`ErrorKind::Signing`] if the program cannot be started or a required setting is missing. A
    /// bad signature is not an error.
    pub fn check(&self, text: &[u8], signature: &[u8]) -> Result<SignatureCheck> {
        let Some(format) = SignatureFormat::of_signature(signature) else {
            let start = signature.get(..100).unwrap_or(signature).as_bstr();
            let message = format!("bad/incompatible signature '{start}'");
            return Err(Error::new(ErrorKind::UnknownSignature, message));
        };
        match format {
            SignatureFormat::Ssh => self.check_with_ssh(text, signature),
            format => self.check_with_gpg(text, signature, format),
        }
    }

    fn sign_with_gpg(
        &self,
        text: &[u8],
        key: &SigningKey,
        format: SignatureFormat,
    ) -> Result<Vec<u8>> {
        let mut command = child::command(self.settings.program(format));
        command.args(["--status-fd=2", "-bsau"]);
        command.arg(path::borrow(key.text()));
        let output = match self.run(command, text) {
            Ok(output) => output,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                let message = format!("gpg failed to sign the data:\n{error}");
                return Err(Error::new(ErrorKind::Signing, message));
            }
        };
        let mut lines = output.stderr.lines();
        let is_created = lines.any(|line| line.starts_with(b"[GNUPG:] SIG_CREATED "));
        if output.status.success() && is_created {
            return Ok(output.stdout);
        }
        let printed = match output.stderr.is_empty() {
            true => "(no gpg output)".into(),
            false => output.stderr.to_str_lossy(),
        };
        let message = format!("gpg failed to sign the data:\n{printed}");
        Err(Error::new(ErrorKind::Signing, message))
    }

    fn sign_with_ssh(&self, text: &[u8], key: &SigningKey) -> Result<Vec<u8>> {
        if key.0.is_empty() {
            let message = "user.signingKey needs to be set for ssh signing";
            return Err(Error::new(ErrorKind::Signing, message));
        }
        let directory = self.temporary()?;
        let key_file = match key.literal() {
            Some(literal) => {
                let written = directory.write("key", literal);
                written.map_err(|error| {
                    let message = "failed writing ssh signing key to a temporary file";
                    Error::new(ErrorKind::Io, message).because(error)
                })?
            }
            None => self.file_of(key)?,
        };
        let buffer = directory.write("buffer", text).map_err(|error| {
            let message = "failed writing ssh signing key buffer to a temporary file";
            Error::new(ErrorKind::Io, message).because(error)
        })?;
        let mut command = child::command(self.settings.program(SignatureFormat::Ssh));
        command.args(["-Y", "sign", "-n", NAMESPACE, "-f"]);
        command.arg(key_file);
        if key.literal().is_some() {
            // The private key is in an agent.
            command.arg("-U");
        }
        command.arg(&buffer);
        let output = self.run(command, b"")?;
        if !output.status.success() {
            let printed = output.stderr.to_str_lossy().into_owned();
            let message = match output.stderr.contains_str("usage:") {
                true => format!("{TOO_OLD_TO_SIGN}\n{printed}"),
                false => printed,
            };
            return Err(Error::new(ErrorKind::Signing, message));
        }
        let file = buffer.with_extension("sig");
        pronto_io::untrusted::content(&file).map_err(|error| {
            let message = "failed reading ssh signing data buffer";
            Error::new(ErrorKind::Io, message)
                .at_path(&file)
                .because(error)
        })
    }

    /// Returns the first key that `gpg.ssh.defaultKeyCommand` prints.
    fn default_ssh_key(&self) -> Result<SigningKey> {
        let failed = |message: String| Error::new(ErrorKind::Signing, message);
        let Some(line) = &self.settings.ssh_default_key_command else {
            let message =
                "either user.signingkey or gpg.ssh.defaultKeyCommand needs to be configured";
            return Err(failed(message.to_owned()));
        };
        let Some(words) = pronto_config::quote::split_words(line) else {
            let message = "malformed build-time gpg.ssh.defaultKeyCommand: unclosed quote";
            return Err(failed(message.to_owned()));
        };
        let mut words = words.iter().map(|word| path::borrow(word));
        let mut command = child::command(words.next().unwrap_or(Path::new("")));
        command.args(words);
        let output = self.run(command, b"")?;
        let (stdout, stderr) = (output.stdout.as_bstr(), output.stderr.as_bstr());
        if !output.status.success() {
            let message = format!("gpg.ssh.defaultKeyCommand failed: {stderr} {stdout}");
            return Err(failed(message));
        }
        let first = output.stdout.split(|byte| *byte == b'\n').next();
        match first.filter(|line| literal(line).is_some()) {
            Some(line) => Ok(SigningKey(line.into())),
            None => Err(failed(format!(
                "gpg.ssh.defaultKeyCommand succeeded but returned no keys: {stderr} {stdout}"
            ))),
        }
    }

    fn check_with_gpg(
        &self,
        text: &[u8],
        signature: &[u8],
        format: SignatureFormat,
    ) -> Result<SignatureCheck> {
        let directory = self.temporary()?;
        let file = self.written(&directory, signature)?;
        let mut command = child::command(self.settings.program(format));
        if format == SignatureFormat::OpenPgp {
            command.arg("--keyid-format=long");
        }
        command.args(["--status-fd=1", "--verify"]);
        command.arg(&file).arg("-");
        let output = self.run(command, text)?;
        let mut check = SignatureCheck {
            output: output.stderr.into(),
            raw_output: output.stdout.into(),
            ..SignatureCheck::default()
        };
        let lines = check.raw_output.clone();
        status::read_gpg(&lines, &mut check);
        check.is_accepted = output.status.success();
        Ok(check)
    }

    fn check_with_ssh(&self, text: &[u8], signature: &[u8]) -> Result<SignatureCheck> {
        let Some(allowed) = &self.settings.ssh_allowed_signers else {
            return Err(Error::new(ErrorKind::Signing, NO_ALLOWED_SIGNERS));
        };
        let directory = self.temporary()?;
        let file = self.written(&directory, signature)?;
        let mut command = self.ssh("find-principals");
        command.arg("-f").arg(allowed).arg("-s").arg(&file);
        let found = self.run(command, b"")?;
        if !found.status.success() && found.stderr.contains_str("usage:") {
            return Err(Error::new(ErrorKind::Signing, TOO_OLD_TO_CHECK));
        }
        let mut check = SignatureCheck::default();
        let principals: Vec<&[u8]> = match found.status.success() {
            true => found.stdout.lines().filter(|it| !it.is_empty()).collect(),
            false => Vec::new(),
        };
        let mut last = None;
        for principal in &principals {
            let output = self.verify(text, principal, &file, &mut check)?;
            check.is_accepted = output.status.success() && output.stdout.starts_with(b"Good");
            last = Some(output);
            if check.is_accepted {
                break;
            }
        }
        let output = match last {
            Some(output) => output,
            // The key is not in the allowed signers file. This command verifies the signature and
            // prints the key.
            None => {
                let mut command = self.ssh("check-novalidate");
                command.args(["-n", NAMESPACE, "-s"]).arg(&file);
                self.run(command, text)?
            }
        };
        status::read_ssh(&output.stdout, &mut check);
        let shown = [
            output.stdout.as_slice(),
            found.stderr.as_slice(),
            output.stderr.as_slice(),
        ];
        check.output = shown.concat().into();
        check.raw_output = check.output.clone();
        Ok(check)
    }

    fn verify(
        &self,
        text: &[u8],
        principal: &[u8],
        file: &Path,
        check: &mut SignatureCheck,
    ) -> Result<ProgramOutput> {
        let mut command = self.ssh("verify");
        command.args(["-n", NAMESPACE]);
        if let Some(allowed) = &self.settings.ssh_allowed_signers {
            command.arg("-f").arg(allowed);
        }
        command.arg("-I").arg(path::borrow(principal));
        command.arg("-s").arg(file);
        if let Some(revoked) = &self.settings.ssh_revocation_file {
            match self.around.directory.join(revoked).exists() {
                true => _ = command.arg("-r").arg(revoked),
                false => check.missing_revocation_file = Some(revoked.clone()),
            }
        }
        self.run(command, text)
    }

    fn ssh(&self, operation: &str) -> Command {
        let mut command = child::command(self.settings.program(SignatureFormat::Ssh));
        command.args(["-Y", operation]);
        command
    }

    /// Returns the path of a key that is configured as a path.
    fn file_of(&self, key: &SigningKey) -> Result<PathBuf> {
        let home = self.around.environment.home();
        path::expand_user(key.text(), home).ok_or_else(|| {
            let message = format!("failed to expand user dir in: '{}'", key.text());
            Error::new(ErrorKind::Signing, message)
        })
    }

    fn temporary(&self) -> Result<PrivateDirectory> {
        PrivateDirectory::new(self.around.environment).map_err(|error| {
            Error::new(ErrorKind::Io, "could not create temporary file").because(error)
        })
    }

    fn written(&self, directory: &PrivateDirectory, signature: &[u8]) -> Result<PathBuf> {
        directory.write("signature", signature).map_err(|error| {
            let message = "failed writing detached signature to a temporary file";
            Error::new(ErrorKind::Io, message).because(error)
        })
    }

    fn run(&self, command: Command, input: &[u8]) -> Result<ProgramOutput> {
        let program = command.get_program().to_string_lossy().into_owned();
        self.around.run(command, input).map_err(|error| {
            if is_interrupted(&error) {
                return Error::new(ErrorKind::Interrupted, "interrupted");
            }
            let reason = match error.kind() {
                io::ErrorKind::NotFound => "No such file or directory".to_owned(),
                _ => error.to_string(),
            };
            let message = format!("cannot run {program}: {reason}");
            Error::new(ErrorKind::Signing, message)
        })
    }
}

/// Removes the carriage returns of line endings.
fn remove_carriage_returns(text: &mut Vec<u8>) {
    if text.contains(&b'\r') {
        *text = text.replace("\r\n", "\n");
    }
}

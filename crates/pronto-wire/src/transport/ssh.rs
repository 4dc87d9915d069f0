//! Servers that are reached through the ssh program of the system.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use bstr::{BStr, ByteSlice};
use pronto_io::child;

use super::process::{Process, quoted_call};
use super::{AddressFamily, LOCAL_VARIABLES, Options, Service, version_parameter};
use crate::error::{Error, ErrorKind};

/// The host, port and path to connect to.
pub(super) struct SshTarget<'a> {
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
    pub(super) path: &'a BStr,
}

/// The variant of the ssh program, which determines its options (`ssh.variant`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    /// OpenSSH.
    Ssh,
    /// PuTTY's plink. `batch` prevents TortoisePlink from opening a dialog.
    Plink { batch: bool },
    /// A program that accepts only host and command.
    Simple,
}

pub(super) fn connect(
    target: &SshTarget<'_>,
    service: Service,
    options: &Options,
) -> Result<Process, Error> {
    let variant = match known_variant(options) {
        Some(variant) => variant,
        None => probe(target, options)?,
    };
    let mut command = program(options);
    push_options(&mut command, variant, target, options)?;
    command.arg(target.host);
    let server = match &options.command {
        Some(server) => server.as_ref(),
        None => service.program().into(),
    };
    let call = quoted_call(server, target.path);
    command.arg(OsStr::from_bytes(&call));
    // The program may serve a repository on this machine instead of using ssh.
    for name in LOCAL_VARIABLES {
        command.env_remove(name);
    }
    Process::start(command, options)
}

/// Returns the ssh program, run by a shell if it is a command line.
fn program(options: &Options) -> Command {
    match &options.ssh.command {
        Some(line) if child::needs_shell(line) => {
            let mut script = OsString::from(OsStr::from_bytes(line));
            script.push(" \"$@\"");
            child::shell(script, OsStr::from_bytes(line))
        }
        Some(line) => child::command(OsStr::from_bytes(line)),
        None => match &options.ssh.program {
            Some(program) => child::command(program),
            None => child::command("ssh"),
        },
    }
}

fn push_options(
    command: &mut Command,
    variant: Variant,
    target: &SshTarget<'_>,
    options: &Options,
) -> Result<(), Error> {
    if variant == Variant::Ssh
        && let Some(value) = version_parameter(options.version)
    {
        command.arg("-o").arg("SendEnv=GIT_PROTOCOL");
        command.env("GIT_PROTOCOL", value);
    }
    let family = match options.family {
        AddressFamily::Any => None,
        AddressFamily::V4 => Some("-4"),
        AddressFamily::V6 => Some("-6"),
    };
    if let Some(family) = family {
        if variant == Variant::Simple {
            return Err(simple_cannot(family));
        }
        command.arg(family);
    }
    if variant == (Variant::Plink { batch: true }) {
        command.arg("-batch");
    }
    if let Some(port) = target.port {
        let option = match variant {
            Variant::Ssh => "-p",
            Variant::Plink { .. } => "-P",
            Variant::Simple => return Err(simple_cannot("setting port")),
        };
        command.arg(option).arg(port.to_string());
    }
    Ok(())
}

fn simple_cannot(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("ssh variant 'simple' does not support {what}"),
    )
}

/// Returns the variant according to the settings or the name of the program.
fn known_variant(options: &Options) -> Option<Variant> {
    let set = options.ssh.variant.as_deref().unwrap_or("auto");
    match set.to_ascii_lowercase().as_str() {
        "auto" => {}
        "plink" | "putty" => return Some(Variant::Plink { batch: false }),
        "tortoiseplink" => return Some(Variant::Plink { batch: true }),
        "simple" => return Some(Variant::Simple),
        _ => return Some(Variant::Ssh),
    }
    let program = match (&options.ssh.command, &options.ssh.program) {
        (Some(line), _) => first_word(line.as_ref()),
        (None, Some(program)) => program.as_os_str().as_bytes().to_vec(),
        (None, None) => b"ssh".to_vec(),
    };
    let name = Path::new(OsStr::from_bytes(&program))
        .file_name()?
        .to_ascii_lowercase();
    let name = name.as_bytes();
    match name.strip_suffix(b".exe").unwrap_or(name) {
        b"ssh" => Some(Variant::Ssh),
        b"plink" => Some(Variant::Plink { batch: false }),
        b"tortoiseplink" => Some(Variant::Plink { batch: true }),
        _ => None,
    }
}

/// Returns the first word of a command line without quotes.
fn first_word(line: &BStr) -> Vec<u8> {
    let mut word = Vec::new();
    let mut quote = None;
    let mut bytes = line.trim_start().iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\'' | b'"', None) => quote = Some(byte),
            (byte, Some(open)) if byte == open => quote = None,
            (b'\\', None | Some(b'"')) => word.extend(bytes.next()),
            (byte, None) if byte.is_ascii_whitespace() => break,
            _ => word.push(byte),
        }
    }
    word
}

/// Determines whether an unknown program accepts the options of OpenSSH: `-G` prints the configuration
/// without connecting.
fn probe(target: &SshTarget<'_>, options: &Options) -> Result<Variant, Error> {
    let mut command = program(options);
    if let Some(directory) = &options.directory {
        command.current_dir(directory);
    }
    command.arg("-G");
    push_options(&mut command, Variant::Ssh, target, options)?;
    command
        .arg(target.host)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match child::status(&mut command) {
        Ok(status) if status.success() => Ok(Variant::Ssh),
        _ => Ok(Variant::Simple),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variant_is_read_from_the_name() {
        let variant = |command: &str| {
            let mut options = Options::default();
            options.ssh.command = Some(command.into());
            known_variant(&options)
        };
        assert_eq!(variant("ssh -i key"), Some(Variant::Ssh));
        assert_eq!(
            variant("'/opt/my ssh/plink.exe' -v"),
            Some(Variant::Plink { batch: false })
        );
        assert_eq!(
            variant("TortoisePlink"),
            Some(Variant::Plink { batch: true })
        );
        assert_eq!(variant("./wrapper.sh"), None);
    }
}

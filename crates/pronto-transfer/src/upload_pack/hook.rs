//! Runs `uploadpack.packObjectsHook`, a program that replaces `git pack-objects`.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use bstr::{BStr, BString, ByteSlice};

use super::bands::UploadBands;
use super::unwritable;
use super::wish::Wish;
use crate::{Error, ErrorKind, Repository, Result};

/// The size of the pieces in which output is read.
const PIECE_BYTES: usize = 64 << 10;

/// The longest line before a pack. A longer line is pack data.
const LONGEST_LINE: usize = 64 << 10;

/// A call of the program.
pub(super) struct PackObjectsHook<'a> {
    pub(super) hook: &'a BString,
    pub(super) view: &'a Repository,
    pub(super) wish: &'a Wish,
}

/// Runs the program with the arguments and the input of `git pack-objects`, and sends its output.
/// Returns no counts, because the program reports them itself.
///
/// # Errors
/// Fails with [`ErrorKind::Hook`] if the program cannot be started or fails, and with another kind
/// if the connection breaks.
pub(super) fn run<T>(hook: &PackObjectsHook<'_>, bands: &UploadBands<'_>) -> Result<Option<T>> {
    let input = hook.input()?;
    let mut command = hook.command();
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let traced = pronto_io::child::started("upload-pack", &command);
    let failed = |error: io::Error| {
        let message = "git upload-pack: unable to fork git-pack-objects";
        Error::new(ErrorKind::Hook, message).because(error)
    };
    let mut child = HookChild(command.spawn().map_err(failed)?);
    let streams = (
        child.0.stdin.take(),
        child.0.stdout.take(),
        child.0.stderr.take(),
    );
    let (Some(mut stdin), Some(stdout), Some(stderr)) = streams else {
        return Err(Error::new(ErrorKind::Hook, "unable to create pipe"));
    };
    let has_uris = !hook.wish.uri_protocols.is_empty();
    std::thread::scope(|scope| {
        // A program that does not read its input reports its own error.
        scope.spawn(move || _ = stdin.write_all(&input));
        scope.spawn(|| relay_messages(stderr, bands));
        relay_pack(stdout, has_uris, bands)
    })
    .map_err(unwritable)?;
    let status = child.0.wait().map_err(failed)?;
    traced.ended(child.0.id(), status);
    match status.success() {
        true => Ok(None),
        false => Err(Error::new(ErrorKind::Hook, "git-pack-objects died")),
    }
}

impl PackObjectsHook<'_> {
    fn command(&self) -> Command {
        let mut line = self.hook.to_vec();
        line.extend_from_slice(b" \"$@\"");
        let name = OsStr::from_bytes(self.hook);
        let mut command = pronto_io::child::shell(OsStr::from_bytes(&line), name);
        command.arg("git");
        let wish = self.wish;
        if wish.is_cut {
            command.args(["--shallow-file", ""]);
        }
        command.args(["pack-objects", "--revs"]);
        let flags = [
            (wish.thin, "--thin"),
            (true, "--stdout"),
            (wish.is_cut, "--shallow"),
            (!wish.no_progress, "--progress"),
            (wish.offset_deltas, "--delta-base-offset"),
            (wish.include_tags, "--include-tag"),
            (!wish.promisors.is_empty(), "--missing=allow-promisor"),
        ];
        for (is_given, flag) in flags {
            if is_given {
                command.arg(flag);
            }
        }
        let mut value = |option: &str, value: &BStr| {
            let argument = [option.as_bytes(), value.as_bytes()].concat();
            command.arg(OsStr::from_bytes(&argument));
        };
        if let Some(filter) = &wish.filter {
            value("--filter=", filter.to_spec().as_bstr());
        }
        for protocol in &wish.uri_protocols {
            value("--uri-protocol=", protocol.as_bstr());
        }
        // The same environment as in Git's server, which changes into the git directory.
        command.current_dir(self.view.git_dir()).env("GIT_DIR", ".");
        command
    }

    fn input(&self) -> Result<Vec<u8>> {
        let mut lines = String::new();
        let mut line = |start: &str, id: &dyn std::fmt::Display| {
            lines.push_str(&format!("{start}{id}\n"));
        };
        if self.wish.is_cut {
            for id in self.view.shallow_commits()? {
                line("--shallow ", id);
            }
        }
        for id in &self.wish.wants {
            line("", id);
        }
        line("--not", &"");
        for id in &self.wish.haves {
            line("", id);
        }
        line("", &"");
        Ok(lines.into_bytes())
    }
}

fn relay_messages(mut from: ChildStderr, bands: &UploadBands<'_>) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        // A broken connection is detected when the pack is sent.
        let _ = bands.put(2, piece.get(..count).unwrap_or_default());
    }
}

/// Sends the pack. With `has_uris`, the program prints the URIs of packs before it, one on each
/// line.
fn relay_pack(mut from: ChildStdout, has_uris: bool, bands: &UploadBands<'_>) -> io::Result<()> {
    let mut waiting = Vec::new();
    let mut uris: Vec<BString> = Vec::new();
    let mut has_begun = !has_uris;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = from.read(&mut piece)?;
        if count == 0 {
            break;
        }
        waiting.extend_from_slice(piece.get(..count).unwrap_or_default());
        while !has_begun {
            if waiting.starts_with(b"PACK") || waiting.len() > LONGEST_LINE {
                bands.uris(&std::mem::take(&mut uris))?;
                has_begun = true;
            } else if let Some(end) = waiting.find_byte(b'\n') {
                let rest = waiting.split_off(end + 1);
                waiting.pop();
                uris.push(std::mem::replace(&mut waiting, rest).into());
            } else {
                break;
            }
        }
        if has_begun {
            bands.put(1, &waiting)?;
            waiting.clear();
        }
    }
    Ok(())
}

/// A child process, which is ended on drop.
struct HookChild(Child);

impl Drop for HookChild {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

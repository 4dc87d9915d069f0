//! Writes the content of a path.

use std::io::{self, Read};

use bstr::BStr;
use pronto_index::mode;
use pronto_io::dir::{Directory, Metadata, NewFile, Overwriter};
use pronto_io::interrupt::Interrupt;
use rustix::io::Errno;

use super::CheckoutItem;
use super::reflink::ReflinkSource;
use crate::{Error, ErrorKind};

/// The size of the pieces in which a large file is written, in bytes.
const PIECE_LEN: usize = 256 * 1024;

/// The location of a new file: its directory, and its name in this directory.
#[derive(Clone, Copy)]
pub(super) struct NewPath<'a> {
    pub(super) directory: &'a Directory,
    pub(super) name: &'a BStr,
}

/// The content of a new file or symbolic link.
pub(super) enum NewContent<'a> {
    File(&'a [u8]),
    /// A file whose content has not been read yet.
    Stream(&'a mut dyn Read),
    /// A file of another worktree that may have the same content, and a buffer for verification.
    Reflink(&'a ReflinkSource<'a>, &'a mut Vec<u8>),
    Symlink(&'a [u8]),
    Submodule,
}

/// The reason for which a file was not created.
pub(super) enum Trouble {
    /// The path exists already.
    Exists,
    Failed(Error),
}

impl NewContent<'_> {
    /// Overwrites the content of the existing file in place, if the result equals a new file.
    pub(super) fn overwrite(
        &self,
        in_place: Option<&Overwriter>,
        target: NewPath<'_>,
        item: &CheckoutItem,
    ) -> Result<Option<Metadata>, Error> {
        let (Some(in_place), NewContent::File(bytes), true) = (in_place, self, item.is_regular())
        else {
            return Ok(None);
        };
        let is_executable = item.mode == mode::EXECUTABLE;
        let overwritten = in_place.overwrite(target.directory, target.name, is_executable, bytes);
        overwritten.map_err(|error| {
            // An incomplete file is removed.
            let _ = target.directory.remove_file(target.name);
            unwritable(&error, item)
        })
    }

    /// Creates the file, which must not exist. After [`Trouble::Exists`] the call can be repeated.
    pub(super) fn create(
        &mut self,
        target: NewPath<'_>,
        item: &CheckoutItem,
        interrupt: &Interrupt,
    ) -> Result<Metadata, Trouble> {
        let NewPath { directory, name } = target;
        match self {
            NewContent::File(bytes) => create_file(target, item, |file| {
                file.write_all(bytes)
                    .map_err(|error| unwritable(&error, item))
            }),
            NewContent::Stream(reader) => {
                create_file(target, item, |file| copy(*reader, file, item, interrupt))
            }
            NewContent::Reflink(source, piece) => {
                let made = directory.create_readable_file(name, item.mode == mode::EXECUTABLE);
                fill_file(made, target, item, |file| {
                    source.fill(file, item, piece, interrupt)
                })
            }
            NewContent::Symlink(target) => directory
                .make_symlink(target, name)
                .and_then(|()| directory.metadata(name))
                .map_err(|error| trouble(&error, "unable to create symlink", item)),
            NewContent::Submodule => match directory.make_directory(name) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    Err(trouble(&error, "cannot create submodule directory", item))
                }
                made => match directory.metadata(name) {
                    // As in Git, no stat data are recorded for an existing directory.
                    Ok(metadata) if metadata.is_directory() && made.is_err() => {
                        Ok(Metadata::default())
                    }
                    Ok(metadata) if metadata.is_directory() => Ok(metadata),
                    Ok(_) => Err(Trouble::Exists),
                    Err(error) => Err(trouble(&error, "unable to stat just-written file", item)),
                },
            },
        }
    }
}

fn create_file(
    target: NewPath<'_>,
    item: &CheckoutItem,
    fill: impl FnOnce(&mut NewFile) -> Result<(), Error>,
) -> Result<Metadata, Trouble> {
    let NewPath { directory, name } = target;
    let made = directory.create_file(name, item.mode == mode::EXECUTABLE);
    fill_file(made, target, item, fill)
}

fn fill_file(
    made: io::Result<NewFile>,
    target: NewPath<'_>,
    item: &CheckoutItem,
    fill: impl FnOnce(&mut NewFile) -> Result<(), Error>,
) -> Result<Metadata, Trouble> {
    let NewPath { directory, name } = target;
    let mut file = made.map_err(|error| {
        if may_have_made(&error) {
            remove_if_empty(directory, name);
        }
        trouble(&error, "unable to create file", item)
    })?;
    let filled = fill(&mut file);
    let finished = file.finish().map_err(|error| unwritable(&error, item));
    filled.and(finished).map_err(|error| {
        // An incomplete file is removed.
        let _ = directory.remove_file(name);
        Trouble::Failed(error)
    })
}

/// Returns whether the file may exist although its creation failed with `error`. A network file system
/// may create a file and then fail to report the success or the attributes. These errors occur after
/// the kernel has looked up the name and found no file. After any other error, an empty file of that
/// name belongs to another process.
fn may_have_made(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::IO
                | Errno::STALE
                | Errno::TIMEDOUT
                | Errno::INTR
                | Errno::NOSPC
                | Errno::DQUOT
                | Errno::ACCESS
                | Errno::PERM
        )
    )
}

fn remove_if_empty(directory: &Directory, name: &BStr) {
    let there = directory.metadata(name);
    if there.is_ok_and(|there| there.is_file() && there.size_bytes == 0) {
        let _ = directory.remove_file(name);
    }
}

/// Copies the content of `reader` to the file, in pieces.
fn copy(
    reader: &mut dyn Read,
    file: &mut NewFile,
    item: &CheckoutItem,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let mut piece = vec![0; PIECE_LEN];
    loop {
        let mut len = 0;
        // A reader may return fewer bytes than requested.
        while len < piece.len() {
            match reader.read(&mut piece[len..]) {
                Ok(0) => break,
                Ok(more) => len += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let error = Error::new(ErrorKind::CorruptObject, error.to_string());
                    return Err(unreadable(item)(error));
                }
            }
        }
        if len == 0 {
            return Ok(());
        }
        if let Err(reason) = interrupt.check() {
            return Err(Error::new(ErrorKind::Interrupted, reason.to_string()));
        }
        file.write_all(&piece[..len])
            .map_err(|error| unwritable(&error, item))?;
    }
}

fn unwritable(error: &io::Error, item: &CheckoutItem) -> Error {
    failure(error, "unable to write file", None, item)
}

fn trouble(error: &io::Error, verb: &str, item: &CheckoutItem) -> Trouble {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Trouble::Exists;
    }
    Trouble::Failed(failure(error, verb, None, item))
}

/// Returns the error that `verb`, or a `step` of it, failed, with the reason of the operating system.
pub(super) fn failure(
    error: &io::Error,
    verb: &str,
    step: Option<&str>,
    item: &CheckoutItem,
) -> Error {
    let reason = pronto_io::error::reason(error);
    let step = step.map_or(String::new(), |step| format!("{step}: "));
    Error::new(
        ErrorKind::Io,
        format!("{verb} {}: {step}{reason}", item.path),
    )
}

pub(super) fn unreadable(item: &CheckoutItem) -> impl FnOnce(Error) -> Error + '_ {
    |error| {
        let message = format!("unable to read sha1 file of {} ({})", item.path, item.id);
        Error::new(error.kind(), message).because(error)
    }
}

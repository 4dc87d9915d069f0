//! One worker: one path after another, from blob to file.

use std::io;

use bstr::{BStr, ByteSlice};
use pronto_index::{Stat, mode};
use pronto_io::dir::{Directory, Metadata};
use pronto_io::error::IoContext;
use pronto_odb::Location;

use super::directories::{Directories, Opened, is_obstructed};
use super::order::Next;
use super::{Context, Failure, Item, Obstructions, Options};
use crate::attributes::Stack;
use crate::filter::{Conversion, Internal};
use crate::recorded::recorded;
use crate::{Error, ErrorKind, objects};

/// What became of one item.
pub(super) enum Written {
    /// It is there.
    Done(Stat),
    /// Something that the plan did not expect is in its place.
    Collided,
    /// A program must make its content; it has not been touched.
    NeedsProgram,
    /// It is not there.
    Failed(Error),
}

/// Writes items. One per thread; its buffers grow to the largest blob.
pub(super) struct Writer<'a> {
    context: &'a Context<'a>,
    options: &'a Options,
    opened: Opened<'a>,
    attributes: Stack,
    pub(super) blob: Vec<u8>,
    pub(super) internal: Internal,
    /// What was found out, by item.
    pub(super) done: Vec<(u32, Stat)>,
    pub(super) collided: Vec<u32>,
    pub(super) need_program: Vec<u32>,
    pub(super) failed: Vec<(u32, Failure)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        options: &'a Options,
        directories: &'a Directories<'a>,
    ) -> Self {
        Writer {
            context,
            options,
            opened: Opened::new(directories),
            attributes: context.attributes.stack(),
            blob: Vec::new(),
            internal: Internal::default(),
            done: Vec::new(),
            collided: Vec::new(),
            need_program: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Writes the item and remembers what became of it.
    pub(super) fn write(&mut self, next: Next, item: &Item) {
        let written = self
            .try_write(item, next.position)
            .unwrap_or_else(Written::Failed);
        self.note(next.at, item, written);
    }

    pub(super) fn note(&mut self, at: u32, item: &Item, written: Written) {
        match written {
            Written::Done(stat) => self.done.push((at, stat)),
            Written::Collided => self.collided.push(at),
            Written::NeedsProgram => self.need_program.push(at),
            Written::Failed(error) => {
                let path = item.path.clone();
                self.failed.push((at, Failure { path, error }));
            }
        }
    }

    fn try_write(&mut self, item: &Item, position: Option<Location>) -> Result<Written, Error> {
        if item.mode == mode::GITLINK {
            return self.place(item, Content::Submodule);
        }
        if !item.is_regular() {
            objects::blob(self.context.objects, &item.id, &mut self.blob)
                .map_err(unreadable(item))?;
            let blob = std::mem::take(&mut self.blob);
            let content = if self.options.symlinks {
                Content::Symlink(&blob)
            } else {
                Content::File(&blob)
            };
            let written = self.place(item, content);
            self.blob = blob;
            return written;
        }
        let conversion = self.conversion(item.path.as_bstr())?;
        if conversion.needs_program(self.context.settings) {
            return Ok(Written::NeedsProgram);
        }
        self.read(item, position)?;
        self.write_converted(item, &conversion)
    }

    fn read(&mut self, item: &Item, position: Option<Location>) -> Result<(), Error> {
        objects::blob_at(self.context.objects, position, &item.id, &mut self.blob)
            .map_err(unreadable(item))
    }

    pub(super) fn conversion(&mut self, path: &BStr) -> Result<Conversion, Error> {
        let states = self.attributes.states(path)?;
        Ok(self.context.settings.conversion(states))
    }

    fn write_converted(&mut self, item: &Item, conversion: &Conversion) -> Result<Written, Error> {
        let (blob, mut internal) = (
            std::mem::take(&mut self.blob),
            std::mem::take(&mut self.internal),
        );
        let path = item.path.as_bstr();
        let written = internal
            .to_worktree(path, &blob, conversion, self.context.settings)
            .and_then(|content| self.place(item, Content::File(content)));
        (self.blob, self.internal) = (blob, internal);
        written
    }

    /// Puts the finished content where it belongs.
    pub(super) fn place(&mut self, item: &Item, content: Content<'_>) -> Result<Written, Error> {
        let collides = self.options.obstructions == Obstructions::Collide;
        let directory = match self.opened.open(item.directory()) {
            Ok(directory) => directory,
            Err(error) if collides && is_obstructed(&error) => return Ok(Written::Collided),
            Err(error) => {
                let made = Err(error);
                return made.context(
                    ErrorKind::Io,
                    "cannot create directory at",
                    show(item.directory()),
                );
            }
        };
        let name = item.name();
        if item.replaces && !matches!(content, Content::Submodule) {
            // Whatever it says: creating the file tells whether something is in the way.
            let _ = directory.remove_file(name);
        }
        for _ in 0..4 {
            match content.create(directory, name, item) {
                Err(Trouble::Exists) if collides => return Ok(Written::Collided),
                Err(Trouble::Exists) => directory
                    .remove_all(name)
                    .or_else(|error| match error.kind() {
                        io::ErrorKind::NotFound => Ok(()),
                        _ => Err(error),
                    })
                    .context(
                        ErrorKind::Io,
                        "unable to unlink old",
                        show(item.path.as_bstr()),
                    )?,
                Err(Trouble::Failed(error)) => return Err(error),
                Ok(metadata) => return Ok(Written::Done(recorded(&metadata))),
            }
        }
        let message = format!("unable to create file {}: File exists", item.path);
        Err(Error::new(ErrorKind::Io, message))
    }
}

/// What is put in a place.
#[derive(Clone, Copy)]
pub(super) enum Content<'a> {
    File(&'a [u8]),
    Symlink(&'a [u8]),
    Submodule,
}

enum Trouble {
    Exists,
    Failed(Error),
}

impl Content<'_> {
    fn create(self, directory: &Directory, name: &BStr, item: &Item) -> Result<Metadata, Trouble> {
        match self {
            Content::File(bytes) => create_file(directory, name, item, bytes),
            Content::Symlink(target) => directory
                .make_symlink(target, name)
                .and_then(|()| directory.metadata(name))
                .map_err(|error| trouble(&error, "unable to create symlink", item)),
            Content::Submodule => match directory.make_directory(name) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    Err(trouble(&error, "cannot create submodule directory", item))
                }
                _ => match directory.metadata(name) {
                    Ok(metadata) if metadata.is_directory() => Ok(metadata),
                    Ok(_) => Err(Trouble::Exists),
                    Err(error) => Err(trouble(&error, "unable to stat just-written file", item)),
                },
            },
        }
    }
}

fn create_file(
    directory: &Directory,
    name: &BStr,
    item: &Item,
    bytes: &[u8],
) -> Result<Metadata, Trouble> {
    let mut file = directory
        .create_file(name, item.mode == mode::EXECUTABLE)
        .map_err(|error| trouble(&error, "unable to create file", item))?;
    let written = file.write_all(bytes).and_then(|()| file.finish());
    written.map_err(|error| {
        // A file that is not whole is worse than none.
        let _ = directory.remove_file(name);
        trouble(&error, "unable to write file", item)
    })
}

fn trouble(error: &io::Error, verb: &str, item: &Item) -> Trouble {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Trouble::Exists;
    }
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text);
    let message = format!("{verb} {}: {reason}", item.path);
    Trouble::Failed(Error::new(ErrorKind::Io, message))
}

fn unreadable(item: &Item) -> impl FnOnce(Error) -> Error + '_ {
    |error| {
        let message = format!("unable to read sha1 file of {} ({})", item.path, item.id);
        Error::new(*error.kind(), message).because(error)
    }
}

fn show(path: &BStr) -> String {
    path.to_str_lossy().into_owned()
}

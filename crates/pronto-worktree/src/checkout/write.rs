//! A worker of the checkout: writes one path after another from blob to file.
//!
//! Memory use: the content of one file below [`STREAMED_FROM_BYTES`], and its converted form. A larger
//! file without conversion is copied from the object store in pieces of 256 KiB. A larger file with a
//! conversion is held in memory as a whole, by one worker at a time, and freed afterwards.

use std::io;

use bstr::{BStr, ByteSlice};
use pronto_index::{Stat, mode};
use pronto_io::error::IoContext;
use pronto_io::progress::Meter;
use pronto_odb::PackLocation;

use super::content::{NewContent, NewPath, Trouble, failure, unreadable};
use super::directories::{OpenDirectories, SharedDirectories, is_obstructed};
use super::order::OrderedItem;
use super::{
    CheckoutContext, CheckoutFailure, CheckoutItem, CheckoutWarning, Obstructions, Options,
};
use crate::attributes::AttributeStack;
use crate::filter::{
    Delayed, FileToSmudge, FilterAnswer, FilterPrograms, Internal, PathConversion,
};
use crate::recorded::recorded;
use crate::{Error, ErrorKind, objects};

/// The size from which a blob without conversion is not held in memory as a whole. This limits the
/// contents of all workers together to 64 MiB.
pub(super) const STREAMED_FROM_BYTES: u64 = 1 << 20;

/// The result for an item.
pub(super) enum WriteResult {
    /// The file is written.
    Done(Stat),
    /// An unexpected file or directory exists at the path.
    Collided,
    /// A long-running filter process must create the content. The file was not touched.
    NeedsProgram,
    /// The file is not written.
    Failed(Error),
}

/// The time at which a smudged file is written.
pub(super) enum Smudged {
    Now(WriteResult),
    /// The process delivers the content later.
    Later(Delayed),
}

/// Writes items. Each thread has its own writer, whose buffers grow to the size of the largest blob.
pub(super) struct Writer<'a> {
    context: &'a CheckoutContext<'a>,
    options: &'a Options,
    directories: &'a SharedDirectories<'a>,
    opened: OpenDirectories<'a>,
    meter: &'a Meter,
    attributes: AttributeStack,
    blob: Vec<u8>,
    internal: Internal,
    /// The filter programs, which are started with the first file that needs one.
    pub(super) programs: Option<FilterPrograms>,
    /// The output of a filter program.
    pub(super) filtered: Vec<u8>,
    /// The stat data of written items.
    pub(super) done: Vec<(u32, Stat)>,
    pub(super) collided: Vec<u32>,
    pub(super) need_program: Vec<u32>,
    pub(super) failed: Vec<(u32, CheckoutFailure)>,
    /// The warnings about items.
    pub(super) warnings: Vec<(u32, CheckoutWarning)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        context: &'a CheckoutContext<'a>,
        options: &'a Options,
        directories: &'a SharedDirectories<'a>,
        meter: &'a Meter,
    ) -> Self {
        Writer {
            context,
            options,
            directories,
            opened: OpenDirectories::new(directories),
            meter,
            attributes: context.attributes.stack(),
            blob: Vec::new(),
            internal: Internal::default(),
            programs: None,
            filtered: Vec::new(),
            done: Vec::new(),
            collided: Vec::new(),
            need_program: Vec::new(),
            failed: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Writes the item and records the result.
    pub(super) fn write(&mut self, next: OrderedItem, item: &CheckoutItem) {
        let written = self
            .try_write(item, next.position)
            .unwrap_or_else(WriteResult::Failed);
        self.note(next.at, item, written);
    }

    /// Does the same as [`write`](Self::write), and waits for a long-running filter process if
    /// necessary.
    pub(super) fn write_at_once(&mut self, next: OrderedItem, item: &CheckoutItem) {
        let mut written = self.try_write(item, next.position);
        if let Ok(WriteResult::NeedsProgram) = written {
            written = self
                .conversion(item.path.as_bstr())
                .and_then(|conversion| self.write_file(item, None, &conversion, false))
                .map(|smudged| match smudged {
                    Smudged::Now(written) => written,
                    Smudged::Later(_) => WriteResult::NeedsProgram,
                });
        }
        self.note(next.at, item, written.unwrap_or_else(WriteResult::Failed));
    }

    pub(super) fn note(&mut self, at: u32, item: &CheckoutItem, written: WriteResult) {
        let programs = self.programs.as_mut().map(FilterPrograms::take_warnings);
        let filters = self.internal.take_warnings().into_iter();
        let filters = filters.chain(programs.into_iter().flatten());
        self.warnings
            .extend(filters.map(|warning| (at, CheckoutWarning::Filter(warning))));
        match written {
            WriteResult::Done(stat) => self.done.push((at, stat)),
            WriteResult::Collided => self.collided.push(at),
            WriteResult::NeedsProgram => self.need_program.push(at),
            WriteResult::Failed(error) => {
                let path = item.path.clone();
                self.failed.push((at, CheckoutFailure { path, error }));
            }
        }
    }

    fn try_write(
        &mut self,
        item: &CheckoutItem,
        position: Option<PackLocation>,
    ) -> Result<WriteResult, Error> {
        if item.mode == mode::GITLINK {
            return self.place(item, NewContent::Submodule);
        }
        if !item.is_regular() {
            objects::blob(self.context.objects, &item.id, &mut self.blob)
                .map_err(unreadable(item))?;
            let blob = std::mem::take(&mut self.blob);
            let content = if self.options.symlinks {
                NewContent::Symlink(&blob)
            } else {
                NewContent::File(&blob)
            };
            let written = self.place(item, content);
            self.blob = blob;
            return written;
        }
        let conversion = self.conversion(item.path.as_bstr())?;
        if conversion.needs_process(self.context.settings) {
            return Ok(WriteResult::NeedsProgram);
        }
        match self.write_file(item, position, &conversion, false)? {
            Smudged::Now(written) => Ok(written),
            // Only a process can delay its answer, and only if that is permitted.
            Smudged::Later(_) => Ok(WriteResult::NeedsProgram),
        }
    }

    /// Writes a regular file, with any conversion of its content.
    pub(super) fn write_file(
        &mut self,
        item: &CheckoutItem,
        position: Option<PackLocation>,
        conversion: &PathConversion,
        may_delay: bool,
    ) -> Result<Smudged, Error> {
        if let Some(written) = self.share(item, conversion) {
            return Ok(Smudged::Now(written));
        }
        let (objects, below) = (self.context.objects, STREAMED_FROM_BYTES);
        let large = objects::blob_or_reader(objects, position, &item.id, below, &mut self.blob);
        let Some(mut large) = large.map_err(unreadable(item))? else {
            return self.write_converted(item, conversion, may_delay);
        };
        if conversion.keeps_towards_worktree(self.context.settings) {
            let content = NewContent::Stream(&mut *large.reader);
            return self.place(item, content).map(Smudged::Now);
        }
        let _alone = self.directories.one_large_at_a_time();
        let read = large.read_into(&mut self.blob).map_err(unreadable(item));
        let written = read.and_then(|()| self.write_converted(item, conversion, may_delay));
        // The memory of a large file is freed.
        self.blob = Vec::new();
        self.filtered = Vec::new();
        self.internal.shrink();
        written
    }

    /// Shares the blocks of a file of another worktree that has the content, if there is such a file.
    fn share(&mut self, item: &CheckoutItem, conversion: &PathConversion) -> Option<WriteResult> {
        let sources = self.options.reflink_sources.as_deref()?;
        if !conversion.keeps_towards_worktree(self.context.settings) {
            return None;
        }
        let mut piece = std::mem::take(&mut self.blob);
        let mut sources = sources.of(item);
        // After any failure the file is written normally, which reports errors.
        let shared = sources.find_map(|source| {
            let content = NewContent::Reflink(&source, &mut piece);
            self.place(item, content).ok()
        });
        self.blob = piece;
        shared
    }

    pub(super) fn conversion(&mut self, path: &BStr) -> Result<PathConversion, Error> {
        match self.attributes.states(path) {
            Ok(states) => Ok(self.context.settings.conversion(states)),
            Err(error) => {
                let message = format!("unable to create file {path}: {error}");
                Err(Error::new(error.kind(), message))
            }
        }
    }

    fn write_converted(
        &mut self,
        item: &CheckoutItem,
        conversion: &PathConversion,
        may_delay: bool,
    ) -> Result<Smudged, Error> {
        let (blob, mut internal) = (
            std::mem::take(&mut self.blob),
            std::mem::take(&mut self.internal),
        );
        let settings = self.context.settings;
        let path = item.path.as_bstr();
        let converted = internal.to_worktree(path, &blob, conversion, settings);
        let written = converted.and_then(|content| {
            if !conversion.needs_program(settings) {
                return self
                    .place(item, NewContent::File(content))
                    .map(Smudged::Now);
            }
            let file = FileToSmudge {
                path,
                id: item.id,
                content,
                conversion,
                may_delay,
            };
            self.smudge(item, &file)
        });
        (self.blob, self.internal) = (blob, internal);
        written
    }

    fn smudge(&mut self, item: &CheckoutItem, file: &FileToSmudge<'_>) -> Result<Smudged, Error> {
        let settings = self.context.settings;
        let mut filtered = std::mem::take(&mut self.filtered);
        let programs = self.programs();
        let written = match programs.smudge(file, settings, &mut filtered) {
            Ok(FilterAnswer::Filtered) => self
                .place(item, NewContent::File(&filtered))
                .map(Smudged::Now),
            Ok(FilterAnswer::Unfiltered) => self
                .place(item, NewContent::File(file.content))
                .map(Smudged::Now),
            Ok(FilterAnswer::Delayed(process)) => Ok(Smudged::Later(process)),
            Err(error) => Err(error),
        };
        self.filtered = filtered;
        written
    }

    /// Returns the filter programs of this worker.
    pub(super) fn programs(&mut self) -> &mut FilterPrograms {
        let settings = self.context.settings;
        self.programs
            .get_or_insert_with(|| FilterPrograms::new(settings))
    }

    /// Renames the finished content into place.
    pub(super) fn place(
        &mut self,
        item: &CheckoutItem,
        mut content: NewContent<'_>,
    ) -> Result<WriteResult, Error> {
        let collides = self.options.obstructions == Obstructions::Collide;
        let directory = match self.opened.open(item.directory()) {
            Ok(directory) => directory,
            Err(error) if collides && is_obstructed(&error) => return Ok(WriteResult::Collided),
            Err(error) => {
                let verb = format!("cannot create directory at '{}'", item.directory());
                return Err(failure(&error, "unable to create file", Some(&verb), item));
            }
        };
        let target = NewPath {
            directory,
            name: item.name(),
        };
        if item.replaces && !matches!(content, NewContent::Submodule) {
            let in_place = self.directories.in_place.as_ref();
            if let Some(metadata) = content.overwrite(in_place, target, item)? {
                self.meter.add_bytes(metadata.size_bytes);
                return Ok(WriteResult::Done(recorded(&metadata)));
            }
            // A failure is ignored: the creation of the file reports the obstruction.
            let _ = directory.remove_file(target.name);
        }
        for _ in 0..4 {
            match content.create(target, item, self.context.interrupt) {
                Err(Trouble::Exists) if collides => return Ok(WriteResult::Collided),
                Err(Trouble::Exists) => directory
                    .remove_all(target.name)
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
                Ok(metadata) => {
                    self.meter.add_bytes(metadata.size_bytes);
                    return Ok(WriteResult::Done(recorded(&metadata)));
                }
            }
        }
        let message = format!("unable to create file {}: File exists", item.path);
        Err(Error::new(ErrorKind::Io, message))
    }
}

fn show(path: &BStr) -> String {
    path.to_str_lossy().into_owned()
}

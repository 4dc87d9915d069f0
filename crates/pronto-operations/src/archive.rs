//! Archives of trees (`git archive`): tar, tar compressed with gzip, and zip.
//!
//! An archive is prepared first: [`prepare`] walks the tree, and decides on paths and attributes.
//! Writing the archive then reads one blob after another. A blob above `core.bigFileThreshold` is
//! streamed without conversion.
//!
//! Costs one walk of the tree, and memory for the paths of all entries and for one blob. Threads
//! can share an [`Archive`].

mod arguments;
mod contents;
mod formats;
mod listing;
mod program;
mod subject;
mod substitute;
mod tar;
mod zip;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use flate2::{Compression, GzBuilder};
use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_worktree::filter::{PathConversion, Settings};

use crate::errors::from_worktree;
use crate::remote::Exact;
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

pub use arguments::{AddedFile, ArchiveArguments, ArgumentsError, USAGE};
use contents::{ContentConverter, ContentLimits, EntryBody};
use formats::Method;
pub use formats::{ArchiveFormat, Formats};
use listing::ArchiveListing;
use program::FilterProgram;
pub(crate) use subject::ArchivedObject;
use substitute::Substitution;
use tar::Tar;
use zip::Zip;

/// The default of `core.bigFileThreshold`, the size from which on blobs are streamed.
const BIG_FILE_BYTES: u64 = 512 << 20;

/// The default of `tar.umask`, the permission bits that are cleared in tar archives.
const TAR_UMASK: u32 = 0o002;

/// The default compression level of zlib.
const DEFAULT_LEVEL: u32 = 6;

/// The largest content that a served archive holds in memory if the content cannot be streamed: the
/// target of a symbolic link, and a file with the attribute `export-subst`, before and after the
/// substitution.
const MOST_SERVED_BYTES: u64 = 64 << 20;

/// The limit of memory for the entries of a served archive.
const MOST_SERVED_ENTRY_BYTES: u64 = 256 << 20;

/// The content of a file that is not in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtraContent {
    /// The content of the file at this path (`--add-file`). The whole file is read when the archive
    /// is written.
    File(PathBuf),
    /// The given bytes (`--add-virtual-file`).
    Bytes(Vec<u8>),
}

/// An untracked file that is added to an archive, after the files of the tree (`--add-file`,
/// `--add-virtual-file`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtraFile {
    /// The path in the archive.
    pub path: BString,
    /// The content of the file.
    pub content: ExtraContent,
    /// Whether the file is executable.
    pub is_executable: bool,
}

impl ExtraFile {
    /// Creates a file that is not executable.
    pub fn new(path: impl Into<BString>, content: ExtraContent) -> Self {
        ExtraFile {
            path: path.into(),
            content,
            is_executable: false,
        }
    }
}

/// Options of an archive.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The format (`--format`).
    pub format: ArchiveFormat,
    /// The compression level (`-0` to `-9`), see [`ArchiveFormat::check_level`].
    pub level: Option<u32>,
    /// The text before each path of the tree (`--prefix`).
    pub prefix: BString,
    /// The modification time of all entries, in seconds since 1970 (`--mtime`). Unset, the
    /// committer date of the commit is used, or for a tree the current time.
    pub modified: Option<i64>,
    /// Read attributes from the worktree, too (`--worktree-attributes`), instead of only from the
    /// tree.
    pub worktree_attributes: bool,
    /// The pathspecs that select files. If empty, the archive contains all files.
    pub pathspecs: Vec<BString>,
    /// Additional files that are not in the tree.
    pub extra: Vec<ExtraFile>,
    /// Whether the archive is for a remote client (`git upload-archive`). In that case filter
    /// programs run in the git directory and in their own process group; a content that must be
    /// held in memory is limited to 64 MiB, and all entries of the tree to 256 MiB; decorations do
    /// not show hidden refs; and missing objects are not fetched.
    pub is_served: bool,
}

/// An event while an archive is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The entry with this path will be written next (`--verbose`).
    Entry(&'a BStr),
    /// The filter program of the format has written these bytes to its standard error.
    ErrorOutput(&'a [u8]),
}

/// Receives events, from several threads.
pub type OnArchiveEvent<'a> = dyn Fn(Event<'_>) + Sync + 'a;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberKind {
    /// A directory, or a submodule.
    Directory,
    Link,
    File {
        is_executable: bool,
    },
}

/// One entry of an archive.
#[derive(Clone, Debug)]
struct Entry {
    /// The path below the prefix of the archive. The path of a directory ends with a slash.
    path: BString,
    kind: MemberKind,
    id: ObjectId,
    conversion: PathConversion,
    /// Whether placeholders in the content are replaced (attribute `export-subst`).
    substitutes: bool,
    /// Whether the attribute `diff` or its driver marks the file as binary or text.
    is_binary: Option<bool>,
}

/// An archive that is ready to be written.
pub struct Archive<'r> {
    repository: &'r Repository,
    options: Options,
    tree: ObjectId,
    commit: Option<ObjectId>,
    /// The modification time of all entries.
    modified: i64,
    umask: u32,
    big_file_bytes: u64,
    settings: Arc<Settings>,
    entries: Vec<Entry>,
    substitution: Option<Substitution<'r>>,
}

impl std::fmt::Debug for Archive<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").finish_non_exhaustive()
    }
}

/// Prepares an archive of `treeish`: selects the entries, and fetches missing objects of a partial
/// clone, unless the archive is served. Costs one walk of the tree; files with placeholders are
/// also read.
///
/// # Errors
/// - [`ErrorKind::Unsupported`] if a file with the attribute `export-subst` has an unsupported
///   placeholder.
/// - [`ErrorKind::Interrupted`] if the operation is interrupted.
/// - [`ErrorKind::Object`] if an object is missing or malformed, and `ErrorKind::UnknownRevision`
///   if `treeish` cannot be resolved.
/// - Other kinds, with Git's message, if a pathspec matches no file or a setting is malformed.
pub fn prepare<'r>(
    repository: &'r Repository,
    treeish: &BStr,
    options: Options,
    watch: &Watch<'_>,
) -> Result<Archive<'r>> {
    let checked = options.level.map(|level| options.format.check_level(level));
    checked.transpose()?;
    let subject = ArchivedObject::named(repository, treeish)?;
    prepare_subject(repository, subject, options, watch)
}

/// Does the same as [`prepare`] for a resolved object. The caller has checked the compression
/// level.
///
/// # Errors
/// The same as for [`prepare`].
pub(crate) fn prepare_subject<'r>(
    repository: &'r Repository,
    subject: ArchivedObject,
    options: Options,
    watch: &Watch<'_>,
) -> Result<Archive<'r>> {
    support::require(repository, Operation::Archive)?;
    let ArchivedObject { id, reference } = subject;
    let commit = repository.peel_to(id, Kind::Commit)?;
    let tree = repository.peel_to(id, Kind::Tree)?;
    let tree = tree.ok_or_else(|| {
        let message = format!("not a tree object: {id}");
        Error::new(ErrorKind::Object, message)
    })?;
    let modified = match (options.modified, commit) {
        (Some(given), _) => given,
        (None, Some(commit)) => repository.commit_links(&commit, &mut Vec::new())?.time,
        (None, None) => crate::identity::now().seconds,
    };
    let mut settings = repository.filter_settings()?;
    settings.check_drivers().map_err(from_worktree)?;
    settings.ref_name = reference;
    settings.treeish = commit.or(Some(tree));
    let big_file_bytes = repository.config().u64("core.bigfilethreshold")?;
    let mut archive = Archive {
        repository,
        umask: umask(repository)?,
        options,
        tree,
        commit,
        modified,
        big_file_bytes: big_file_bytes.unwrap_or(BIG_FILE_BYTES),
        settings: Arc::new(settings),
        entries: Vec::new(),
        substitution: None,
    };
    let most_bytes = match archive.options.is_served {
        true => MOST_SERVED_ENTRY_BYTES,
        false => u64::MAX,
    };
    let listing = ArchiveListing::read(repository, tree, most_bytes, watch)?;
    archive.entries = listing.select(repository, &archive.options, &archive.settings, watch)?;
    if !archive.options.is_served {
        let blobs = archive.entries.iter();
        let blobs = blobs.filter(|entry| entry.kind != MemberKind::Directory);
        let exact = Exact { repository, watch };
        exact.fetch_promised(blobs.map(|entry| entry.id), repository.objects()?)?;
    }
    archive.prepare_substitution(watch)?;
    Ok(archive)
}

fn unsupported(what: &str) -> Error {
    let message = format!("{what} is not implemented natively");
    Error::new(ErrorKind::Unsupported, message)
}

/// Returns the error for a content that must be held in memory and is too large for that.
fn too_large(path: &BStr, most_bytes: u64) -> Error {
    let message = format!(
        "'{path}' has more than {most_bytes} bytes, which is too large for a link or a file with \
         the attribute export-subst"
    );
    Error::new(ErrorKind::Refused, message)
}

/// Returns `tar.umask`.
fn umask(repository: &Repository) -> Result<u32> {
    let config = repository.config();
    if config.raw("tar.umask").is_some_and(|value| value == "user") {
        let umask = pronto_io::process::umask();
        return umask.ok_or_else(|| unsupported("setting 'tar.umask=user' without a known umask"));
    }
    let configured = config.i32("tar.umask")?;
    Ok(configured.map_or(TAR_UMASK, i32::cast_unsigned))
}

impl Archive<'_> {
    /// Substitutes the placeholders of all files once, so that an error is found before the first
    /// byte is written.
    fn prepare_substitution(&mut self, watch: &Watch<'_>) -> Result<()> {
        let mut entries = self
            .entries
            .iter()
            .filter(|entry| entry.substitutes)
            .peekable();
        let (Some(commit), Some(_)) = (self.commit, entries.peek()) else {
            return Ok(());
        };
        let most_bytes = self.most_held_bytes();
        let is_served = self.options.is_served;
        let substitution = Substitution::new(self.repository, commit, is_served, most_bytes)?;
        let mut contents = self.contents(Some(&substitution), watch)?;
        for entry in entries {
            check(watch)?;
            contents.read(entry)?;
        }
        drop(contents);
        self.substitution = Some(substitution);
        Ok(())
    }

    /// Returns the limit for contents that must be held in memory although they could be long.
    fn most_held_bytes(&self) -> u64 {
        match self.options.is_served {
            true => MOST_SERVED_BYTES,
            false => u64::MAX,
        }
    }

    fn contents<'a>(
        &'a self,
        substitution: Option<&'a Substitution<'a>>,
        watch: &'a Watch<'a>,
    ) -> Result<ContentConverter<'a>> {
        let limits = ContentLimits {
            big_file_bytes: self.big_file_bytes,
            most_held_bytes: self.most_held_bytes(),
        };
        let contents = ContentConverter::new(self.repository, &self.settings, limits, watch)?;
        Ok(contents.substituting(substitution))
    }

    /// Writes the archive to `output`. Costs memory for one blob. A format with a filter program
    /// also starts the program and two threads, and the program has ended when the call returns.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a blob is missing or cannot be read or converted, with
    /// [`ErrorKind::Io`] if `output` or the filter program fails, and with
    /// [`ErrorKind::Interrupted`] if the operation is interrupted. The written part is incomplete
    /// then.
    pub fn write(
        &self,
        output: &mut (dyn Write + Send),
        events: &OnArchiveEvent<'_>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let level = self.options.level.unwrap_or(DEFAULT_LEVEL);
        match &self.options.format.method {
            Method::Tar => self.write_tar(output, events, watch),
            Method::Gzip => {
                // As in Git, the field for the operating system always means Unix.
                let builder = GzBuilder::new().mtime(0).operating_system(3);
                let mut gzip = builder.write(output, Compression::new(level));
                self.write_tar(&mut gzip, events, watch)?;
                gzip.finish().map(|_| ()).map_err(from_output)
            }
            Method::Command(line) => {
                let mut line = line.clone();
                if let Some(level) = self.options.level {
                    line.extend_from_slice(format!(" -{level}").as_bytes());
                }
                let program = FilterProgram {
                    line: line.as_bstr(),
                    directory: match self.options.is_served {
                        true => self.repository.git_dir(),
                        false => self.repository.working_dir(),
                    },
                    prefix: self.repository.prefix().unwrap_or_default(),
                    is_served: self.options.is_served,
                };
                let mut produce = |input: &mut dyn Write| self.write_tar(input, events, watch);
                let streams = program::ProgramStreams { output, events };
                program.filter(streams, &mut produce, watch)
            }
            Method::Zip => {
                let mut zip = Zip::new(output, self.modified, level)?;
                self.write_entries(&mut zip, events, watch)?;
                zip.finish(self.commit.as_ref())
            }
        }
    }

    fn write_tar(
        &self,
        output: &mut dyn Write,
        events: &OnArchiveEvent<'_>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let mut tar = Tar::new(output, self.modified, self.umask);
        tar.global_header(self.commit.as_ref())?;
        self.write_entries(&mut tar, events, watch)?;
        tar.finish()
    }

    fn write_entries(
        &self,
        writer: &mut dyn EntryWriter,
        events: &OnArchiveEvent<'_>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        if let Some(path) = directory_of_prefix(self.options.prefix.as_bstr()) {
            events(Event::Entry(path));
            let item = ArchiveMember::new(path, MemberKind::Directory, self.tree);
            writer.write(&item, EntryBody::Bytes(b""))?;
        }
        let mut contents = self.contents(self.substitution.as_ref(), watch)?;
        for entry in &self.entries {
            check(watch)?;
            let path = BString::from([self.options.prefix.as_slice(), &entry.path].concat());
            events(Event::Entry(path.as_bstr()));
            let mut item = ArchiveMember::new(path.as_bstr(), entry.kind, entry.id);
            item.is_binary = entry.is_binary;
            writer.write(&item, contents.read(entry)?)?;
        }
        for (number, extra) in (1_u64..).zip(&self.options.extra) {
            check(watch)?;
            self.write_extra(writer, extra, number)?;
        }
        Ok(())
    }

    fn write_extra(
        &self,
        writer: &mut dyn EntryWriter,
        extra: &ExtraFile,
        number: u64,
    ) -> Result<()> {
        let read;
        let content = match &extra.content {
            ExtraContent::Bytes(bytes) => bytes,
            ExtraContent::File(path) => {
                read = std::fs::read(path).map_err(|error| {
                    let message = format!("cannot read '{}'", path.display());
                    let reason = pronto_io::error::OsReason(error);
                    Error::new(ErrorKind::Io, message).because(reason)
                })?;
                &read
            }
        };
        // As in Git, these files have consecutive numbers in place of object ids.
        let mut id = self.repository.object_hash().null();
        id.as_mut_slice()[..8].copy_from_slice(&number.to_be_bytes());
        let is_executable = extra.is_executable;
        let kind = MemberKind::File { is_executable };
        let item = ArchiveMember::new(extra.path.as_bstr(), kind, id);
        writer.write(&item, EntryBody::Bytes(content))
    }
}

/// Returns the directory that a prefix names, with one slash at the end.
fn directory_of_prefix(prefix: &BStr) -> Option<&BStr> {
    if !prefix.ends_with(b"/") {
        return None;
    }
    let name = prefix.trim_end_with(|byte| byte == '/').len();
    Some(prefix[..=name].as_bstr())
}

/// An entry, as passed to the writers of formats.
struct ArchiveMember<'a> {
    /// The full path in the archive.
    path: &'a BStr,
    kind: MemberKind,
    id: ObjectId,
    is_binary: Option<bool>,
}

impl<'a> ArchiveMember<'a> {
    fn new(path: &'a BStr, kind: MemberKind, id: ObjectId) -> Self {
        ArchiveMember {
            path,
            kind,
            id,
            is_binary: None,
        }
    }
}

/// A writer of an archive format.
trait EntryWriter {
    /// Appends an entry.
    fn write(&mut self, item: &ArchiveMember<'_>, body: EntryBody<'_>) -> Result<()>;
}

fn check(watch: &Watch<'_>) -> Result<()> {
    match watch.interrupt().is_triggered() {
        true => Err(Error::new(ErrorKind::Interrupted, "interrupted")),
        false => Ok(()),
    }
}

fn from_output(error: io::Error) -> Error {
    let message = "cannot write the archive";
    Error::new(ErrorKind::Io, message).because(pronto_io::error::OsReason(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_prefixes() {
        for (prefix, directory) in [
            ("", None),
            ("a", None),
            ("a/", Some("a/")),
            ("a/b//", Some("a/b/")),
            ("/", Some("/")),
            ("//", Some("/")),
        ] {
            let directory = directory.map(BStr::new);
            assert_eq!(directory_of_prefix(prefix.into()), directory, "{prefix}");
        }
    }
}

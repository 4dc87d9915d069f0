//! The server of archives, for `git archive --remote` (`git upload-archive`).
//!
//! A client requests a tree in a format. Unless `uploadArchive.allowUnreachable` is set, only
//! `HEAD`, refs, and paths below them can be archived. No argument makes the server read a file
//! that is not in the repository, or fetch an object from another repository.

mod bands;

use std::io::{Read, Write};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use pronto_io::watch::Watch;
use pronto_wire::archive::read_arguments;
use pronto_wire::reader::PacketReader;

use crate::archive::{
    self, ArchiveArguments, ArchiveFormat, ArchivedObject, Event, Formats, USAGE,
};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};
use bands::ArchiveBands;
use pronto_repository::{Notice, NoticeQueue, Severity};
use pronto_transfer::upload_pack::hidden::Hidden;

/// The last message of a failed request, after the reason.
const FAILED: &str = "git upload-archive: archiver died with error";

/// The maximum length of an argument. The formats repeat a prefix for each entry, also in memory.
const LONGEST_ARGUMENT_BYTES: usize = 4096;

/// Options of the server.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Reject refs that are hidden from fetches (`transfer.hideRefs`, `uploadpack.hideRefs`). Git's
    /// own server does not hide them. The placeholders of `export-subst` never show hidden refs.
    pub hides_refs: bool,
}

/// The streams of the connection.
pub struct ArchiveStreams<'a> {
    /// The request.
    pub input: &'a mut dyn Read,
    /// The response. The writer need not be buffered.
    pub output: &'a mut (dyn Write + Send),
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum ArchiveRequestEnd {
    /// The archive, or the list of formats, was sent.
    Served,
    /// No archive was sent, and the client was notified of the reason.
    Failed {
        /// The reason, for the log of the server.
        reason: BString,
        /// The line that Git prints.
        line: BString,
    },
}

/// The reason why no archive is sent.
enum ArchiveFailure {
    Error(Error),
    /// Message lines in Git's words.
    Text(String),
}

impl From<Error> for ArchiveFailure {
    fn from(error: Error) -> Self {
        ArchiveFailure::Error(error)
    }
}

/// Serves one request on the calling thread. An error while the repository is opened is sent to the
/// client. Costs as much as [`prepare`](crate::archive::prepare) and
/// [`write`](crate::archive::Archive::write), and memory for one packet.
///
/// # Errors
/// Fails with [`ErrorKind::Transport`] if the connection breaks, and with
/// [`ErrorKind::Interrupted`] if the operation is interrupted. The client recognizes an incomplete
/// archive, because the last packet is missing.
pub fn serve(
    repository: Result<&Repository>,
    options: &Options,
    streams: ArchiveStreams<'_>,
    watch: &Watch<'_>,
) -> Result<ArchiveRequestEnd> {
    let ArchiveStreams { input, output } = streams;
    let bands = ArchiveBands::new(output);
    bands.confirm().map_err(broken)?;
    let served = match repository {
        Ok(repository) => support::require(repository, Operation::UploadArchive)
            .map_err(ArchiveFailure::Error)
            .and_then(|()| answer(repository, options, &bands, input, watch)),
        Err(error) => Err(ArchiveFailure::Error(error)),
    };
    let failure = match served {
        Ok(()) => {
            return bands
                .end()
                .map(|()| ArchiveRequestEnd::Served)
                .map_err(broken);
        }
        Err(failure) => failure,
    };
    if let ArchiveFailure::Error(error) = &failure
        && (bands.is_broken() || error.kind() == ErrorKind::Interrupted)
    {
        let kind = error.kind();
        return Err(Error::new(kind, "the archive is incomplete").because(error.to_string()));
    }
    let text = match failure {
        ArchiveFailure::Error(error) if error.kind() == ErrorKind::Unsupported => {
            format!("fatal: {error}\n")
        }
        ArchiveFailure::Error(error) => {
            let before = error
                .reported_before()
                .map(|line| format!("error: {line}\n"));
            format!("{}fatal: {error}\n", before.unwrap_or_default())
        }
        ArchiveFailure::Text(text) => text,
    };
    bands.say(text.as_bytes());
    bands.fail(FAILED.as_bytes()).map_err(broken)?;
    let reason = text.lines().next().unwrap_or_default();
    let reason = reason.strip_prefix("fatal: ").unwrap_or(reason);
    Ok(ArchiveRequestEnd::Failed {
        reason: reason.into(),
        line: format!("fatal: sent error to the client: {FAILED}\n").into(),
    })
}

fn answer(
    repository: &Repository,
    options: &Options,
    bands: &ArchiveBands<'_>,
    input: &mut dyn Read,
    watch: &Watch<'_>,
) -> Result<(), ArchiveFailure> {
    let notices = Arc::new(NoticeQueue::default());
    let request = Request {
        repository: &repository.reporting_to(Arc::clone(&notices))?,
        notices,
        options,
        bands,
    };
    request.answer(input, watch)
}

fn broken(error: std::io::Error) -> Error {
    let message = "lost the connection to the client";
    Error::new(ErrorKind::Transport, message).because(error)
}

fn fatal(message: impl Into<String>) -> ArchiveFailure {
    ArchiveFailure::Error(Error::new(ErrorKind::Refused, message))
}

/// A request that is being served.
struct Request<'a, 'b> {
    repository: &'a Repository,
    /// The queue of the notices for the client.
    notices: Arc<NoticeQueue>,
    options: &'a Options,
    bands: &'a ArchiveBands<'b>,
}

impl Request<'_, '_> {
    fn answer(&self, input: &mut dyn Read, watch: &Watch<'_>) -> Result<(), ArchiveFailure> {
        let arguments = read_arguments(&mut PacketReader::new(input));
        let arguments = arguments.map_err(|error| fatal(error.to_string()))?;
        if arguments
            .iter()
            .any(|argument| argument.len() > LONGEST_ARGUMENT_BYTES)
        {
            let message = format!("an argument has more than {LONGEST_ARGUMENT_BYTES} bytes");
            return Err(fatal(message));
        }
        let arguments =
            ArchiveArguments::parse(arguments.iter().map(|argument| argument.as_bstr()))
                .map_err(|error| ArchiveFailure::Text(error.to_string()))?;
        arguments.check_places()?;
        if !arguments.added.is_empty() {
            let message = "options '--add-file' and '--remote' cannot be used together";
            return Err(fatal(message));
        }
        self.check_support()?;
        let formats = Formats::configured(self.repository.config())?;
        if arguments.lists {
            let mut data = self.bands;
            let lines = arguments.listing(&formats, true)?;
            return Ok(data.write_all(&lines).map_err(broken)?);
        }
        let Some(tree) = arguments.operands.first() else {
            return Err(ArchiveFailure::Text(USAGE.to_owned()));
        };
        let mut options = arguments.options(choose(&arguments, &formats)?)?;
        options.is_served = true;
        let subject = self.find(tree.as_bstr())?;
        let prepared = archive::prepare_subject(self.repository, subject, options, watch);
        self.report();
        let mut data = self.bands;
        let events = |event: Event<'_>| match event {
            Event::Entry(path) if arguments.is_verbose => {
                self.bands.say(&[path.as_bytes(), b"\n"].concat());
            }
            Event::ErrorOutput(text) => self.bands.say(text),
            _ => {}
        };
        let written = prepared?.write(&mut data, &events, watch);
        self.report();
        Ok(written?)
    }

    /// Rejects settings that archives do not support: with `attr.tree`, the attributes of another
    /// tree would decide which files are left out.
    fn check_support(&self) -> Result<()> {
        let tree = self.repository.config().string("attr.tree")?;
        match tree.is_some_and(|tree| !tree.is_empty()) {
            true => Err(Error::new(
                ErrorKind::Unsupported,
                "setting 'attr.tree' is not implemented natively",
            )),
            false => Ok(()),
        }
    }

    /// Finds the tree called `name`, if a client may receive it: the tree of a ref, or a path below
    /// it. After this check, the name is not resolved again, because an object id could have the
    /// same name.
    fn find(&self, name: &BStr) -> Result<ArchivedObject, ArchiveFailure> {
        let config = self.repository.config();
        if config.bool_or("uploadarchive.allowunreachable", false)? {
            return Ok(ArchivedObject::named(self.repository, name)?);
        }
        let end = name.find_byte(b':').unwrap_or(name.len());
        let reference = name[..end].as_bstr();
        let found = self.repository.find_reference(reference)?;
        let hidden = self.options.hides_refs.then(|| Hidden::configured(config));
        let is_hidden = |name: &BStr| hidden.as_ref().is_some_and(|hidden| hidden.hides(name));
        match found {
            Some(found) if is_shown(&found.direct) && !is_hidden(found.direct.as_bstr()) => {
                Ok(ArchivedObject::below(self.repository, found, name)?)
            }
            _ => Err(fatal(format!("no such ref: {reference}"))),
        }
    }

    /// Sends the notices of the repository to the client.
    fn report(&self) {
        for notice in self.notices.take() {
            self.bands.say(line(&notice).as_bytes());
        }
    }
}

/// Returns whether fetches advertise the ref, unless it is hidden. `ORIG_HEAD` and the refs of
/// other worktrees (`worktrees/NAME/HEAD`, `main-worktree/HEAD`) can point to abandoned commits.
fn is_shown(name: &[u8]) -> bool {
    name == b"HEAD" || name.starts_with(b"refs/")
}

fn line(notice: &Notice) -> String {
    let prefix = match notice.severity() {
        Severity::Error => "error: ",
        Severity::Warning => "warning: ",
        Severity::Hint => "hint: ",
        Severity::Remark => "",
    };
    format!("{prefix}{notice}\n")
}

fn choose<'f>(
    arguments: &ArchiveArguments,
    formats: &'f Formats,
) -> Result<&'f ArchiveFormat, ArchiveFailure> {
    let name = (arguments.format.as_ref()).map_or(BStr::new("tar"), |name| name.as_bstr());
    let format = formats.find(name).filter(|format| format.is_remote());
    format.ok_or_else(|| fatal(format!("Unknown archive format '{name}'")))
}

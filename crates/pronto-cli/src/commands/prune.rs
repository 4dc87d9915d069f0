//! `prune`: delete unreachable loose objects.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::ByteSlice;
use pronto::prune::{self, Options, PrunedFile};
use pronto::remote::has_whole_history;
use pronto::worktrees::ExpiryAge;
use pronto::{Repository, Watch};

use crate::{CliError, Context, ExitCode};

/// Arguments of `prune`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Show what would be deleted without deleting it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Show what is deleted
    #[arg(short = 'v', long)]
    verbose: bool,
    /// Show progress
    #[arg(long)]
    progress: Option<bool>,
    /// Delete only objects older than this
    #[arg(long, value_name = "TIME")]
    expire: Option<OsString>,
    /// Do not follow objects that a remote has promised
    #[arg(long)]
    exclude_promisor_objects: bool,
    /// Keep these objects and everything reachable from them
    #[arg(value_name = "HEAD")]
    heads: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = open(context, "prune")?;
    let config = repository.config();
    if config.bool_or("extensions.preciousobjects", false)? {
        return Err(CliError::fatal("cannot prune in a precious-objects repo"));
    }
    let is_lacking = args.exclude_promisor_objects
        || config.contains("gc.recentobjectshook")
        || !has_whole_history(&repository)?
        || !repository.objects()?.promisor_packs()?.is_empty();
    if is_lacking {
        return Err(CliError::unsupported(
            "this combination of arguments of 'prune'",
        ));
    }
    let mut heads = Vec::new();
    for head in &args.heads {
        let spec = head.as_bytes();
        let id = repository.resolve(spec);
        heads.push(
            id.map_err(|_| CliError::fatal(format!("unrecognized argument: {}", spec.as_bstr())))?,
        );
    }
    let mut options = Options::default();
    options.expire = expiry(args.expire.as_deref())?;
    options.heads = heads;
    options.dry_run = args.dry_run;
    let progress = context.progress(args.progress, false);
    let mut report = Report {
        repository: &repository,
        dry_run: args.dry_run,
        verbose: args.verbose,
        out: Vec::new(),
        remarks: Vec::new(),
    };
    let mut print = |removed: &PrunedFile| report.print(removed);
    let pruned = prune::prune(
        &repository,
        &options,
        &mut print,
        &Watch::from(&context.interrupt).with_progress(&*progress),
    );
    let (out, remarks) = (report.out, report.remarks);
    context.out.write_all(&out)?;
    context.remark_all(&remarks)?;
    context.report_warnings();
    let _ = pruned?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the repository without replace refs.
pub(super) fn open(context: &mut Context, command: &str) -> Result<Repository, CliError> {
    let mut environment = context.environment()?;
    environment.set("GIT_NO_REPLACE_OBJECTS", "1");
    let elsewhere =
        |_| CliError::unsupported(format!("'{command}' in a repository that cannot be opened"));
    let start = environment.current_dir().to_owned();
    let found = Repository::discover(&start, &environment).map_err(elsewhere)?;
    let mut repository = context.receive_notices(found);
    context.check_opened(&mut repository)?;
    Ok(repository)
}

/// Parses the expiry time: older unreachable objects are deleted (`--expire`).
pub(super) fn expiry(text: Option<&std::ffi::OsStr>) -> Result<ExpiryAge, CliError> {
    let Some(text) = text.map(OsStrExt::as_bytes) else {
        return Ok(ExpiryAge::Now);
    };
    ExpiryAge::parse(text.as_bstr()).ok_or_else(|| {
        let message = format!("malformed expiration date '{}'", text.as_bstr());
        CliError::fatal(message)
    })
}

/// Prints the deleted objects.
pub(super) struct Report<'a> {
    pub(super) repository: &'a Repository,
    pub(super) dry_run: bool,
    pub(super) verbose: bool,
    pub(super) out: Vec<u8>,
    pub(super) remarks: Vec<String>,
}

impl Report<'_> {
    pub(super) fn print(&mut self, removed: &PrunedFile) {
        let is_shown = self.dry_run || self.verbose;
        match removed {
            PrunedFile::Object(id, kind) if is_shown => {
                let kind = kind.map_or("unknown".into(), |kind| kind.to_string());
                self.line(format!("{id} {kind}").as_bytes());
            }
            PrunedFile::Duplicate(path) if self.dry_run => self.about(b"rm -f ", path),
            PrunedFile::TemporaryFile(path) if is_shown => {
                self.about(b"Removing stale temporary file ", path);
            }
            PrunedFile::TemporaryDirectory(path) if is_shown => {
                self.about(b"Removing stale temporary directory ", path);
            }
            PrunedFile::Shallow(id) if self.dry_run => {
                self.line(format!("Removing {id} from .git/shallow").as_bytes());
            }
            PrunedFile::Garbage(path) => {
                let path = self.repository.display_path(path);
                self.remarks
                    .push(format!("bad sha1 file: {}", path.display()));
            }
            _ => {}
        }
    }

    fn about(&mut self, what: &[u8], path: &Path) {
        let path = self.repository.display_path(path);
        let line = [what, path.as_os_str().as_bytes()].concat();
        self.line(&line);
    }

    fn line(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
        self.out.push(b'\n');
    }
}

//! `index-pack`: write the index of a pack, from a file or from standard input.

mod input;
mod verify;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use pronto::fsck::{FsckInspector, InspectionScope, Levels};
use pronto::remote::{Both, PackLinks, keep_linked_objects};
use pronto::repository::hash_named;
use pronto::{Repository, config, packs};
use pronto_hash::{Kind, ObjectId};
use pronto_odb::Inventory;
use pronto_pack::indexer::{self, INDEXING, Inspect, Options, Outcome, RECEIVING};

use crate::commands::shared::bad_pack;
use crate::{CliError, Context, ExitCode};
pub(super) use input::IndexWatch;
pub(super) use input::PackInput;
pub(super) use verify::{Verification, VerifyListing};

/// Arguments of `index-pack`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Read the pack from standard input and store it
    #[arg(long)]
    stdin: bool,
    /// Add missing bases of a thin pack from the repository
    #[arg(long)]
    fix_thin: bool,
    /// Refuse malformed objects, and links to missing objects
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "ID=SEVERITY,…")]
    strict: Option<OsString>,
    /// Refuse malformed objects
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "ID=SEVERITY,…")]
    fsck_objects: Option<OsString>,
    /// Create a .keep file with this reason
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "WHY")]
    keep: Option<OsString>,
    /// Create a .promisor file with this text
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "TEXT")]
    promisor: Option<OsString>,
    /// Number of threads
    #[arg(long, value_name = "N")]
    threads: Option<String>,
    /// Refuse packs larger than this
    #[arg(long, value_name = "BYTES")]
    max_input_size: Option<String>,
    /// The index version, and the smallest offset stored in 64 bits
    #[arg(long, value_name = "VERSION[,OFFSET]")]
    index_version: Option<String>,
    /// Also write a reverse index
    #[arg(long)]
    rev_index: Option<bool>,
    /// Verify the index instead of writing it
    #[arg(long)]
    verify: bool,
    /// Verify the index, and list the objects of the pack
    #[arg(long)]
    verify_stat: bool,
    /// Verify the index, and print statistics of the pack
    #[arg(long)]
    verify_stat_only: bool,
    /// The hash function: sha1 or sha256
    #[arg(long, value_name = "FORMAT")]
    object_format: Option<OsString>,
    /// The file for the index
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show progress
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    verbose: u8,
    /// The title of the progress meter
    #[arg(long, value_name = "TITLE")]
    progress_title: Option<String>,
    /// Show at least the progress of resolving deltas
    #[arg(long)]
    show_resolving_progress: bool,
    /// Refuse broken links; exit with 1 if the pack links to objects outside of it
    #[arg(long)]
    check_self_contained_and_connected: bool,
    /// Write a NUL to standard error when the whole pack has arrived
    #[arg(long)]
    report_end_of_input: bool,
    /// The pack header, if the caller has already read it
    #[arg(long = "pack_header", value_name = "VERSION,COUNT")]
    pack_header: Option<String>,
    /// The pack
    #[arg(value_name = "PACK")]
    packs: Vec<PathBuf>,
}

impl Args {
    fn checks_links(&self) -> bool {
        self.strict.is_some() || self.check_self_contained_and_connected
    }

    fn verifies(&self) -> bool {
        self.verify || self.verify_stat || self.verify_stat_only
    }

    fn listing(&self) -> VerifyListing {
        match (self.verify_stat_only, self.verify_stat) {
            (true, _) => VerifyListing::Counts,
            (_, true) => VerifyListing::Entries,
            _ => VerifyListing::Nothing,
        }
    }
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let pack = pack_to_index(args, &context.arguments)?;
    let repository = context.repository_if_any()?;
    if let Some(repository) = repository.as_deref().filter(|_| args.fix_thin)
        && repository.has_promisor()?
    {
        // A delta base may have to be fetched.
        return Err(CliError::unsupported(
            "'index-pack --fix-thin' in a partial clone",
        ));
    }
    let mut options = options(args, repository.as_deref(), context)?;
    refuse_nonsense(args, repository.is_some())?;
    let index = match (&args.output, pack) {
        (Some(index), _) => Some(index.clone()),
        (None, Some(pack)) => Some(with_other_end(pack, "pack", "idx")?),
        (None, None) => None,
    };
    if options.reverse_index
        && let Some(index) = &index
    {
        with_other_end(index, "idx", "rev")?;
    }
    let watch = IndexWatch::asked_for(args);
    let levels = levels(args)?;
    let shallow = match repository.as_deref() {
        Some(repository) => pronto::remote::shallow::read(repository)?,
        None => BTreeSet::new(),
    };
    let inspector = inspector(args, &options, &levels, repository.as_deref(), &shallow)?;
    if args.verifies() {
        let missing = || CliError::fatal("--verify with no packfile name given");
        let index = index.as_deref().ok_or_else(missing)?;
        let Some(pack) = pack.filter(|_| !args.stdin) else {
            return Err(CliError::unsupported("'index-pack --verify --stdin'"));
        };
        let verification = Verification {
            pack,
            index,
            listing: args.listing(),
            watch: &watch,
            inspector: inspector.as_ref(),
        };
        verification.run(&options, context)?;
        return found(args, inspector.as_ref(), context);
    }
    let links = collector(args, options.kind, &shallow);
    let job = IndexJob {
        args,
        inspector: inspector.as_ref(),
        links: links.as_ref(),
        repository: repository.as_deref(),
        pack,
        index: index.as_deref(),
        watch: &watch,
    };
    if let (Some(pack), true) = (pack, options.keep.is_some() || options.promisor.is_some()) {
        with_other_end(pack, "pack", "keep")?;
    }
    options.pack_path = pack.map(Path::to_owned).filter(|_| args.stdin);
    options.index_path.clone_from(&args.output);
    options.forbid_duplicates = args.checks_links();
    let outcome = job.index(&options, context)?;
    keep_linked(repository.as_deref(), links, context)?;
    finish(args, &outcome, inspector.as_ref(), context)
}

/// Returns the pack that the arguments name. `given` are all arguments as typed.
fn pack_to_index<'a>(args: &'a Args, given: &[OsString]) -> Result<Option<&'a Path>, CliError> {
    let is_joined = |word: &OsString| word.len() > 2 && word.as_bytes().starts_with(b"-o");
    if given.iter().any(is_joined) {
        return Err(CliError::misuse("'-o' and its value must be two arguments"));
    }
    match (&args.packs[..], args.stdin) {
        ([], true) => Ok(None),
        ([pack], _) => Ok(Some(pack.as_path())),
        _ => Err(CliError::misuse(
            "index-pack takes exactly one pack, or --stdin",
        )),
    }
}

/// Returns the collector of links that a promisor pack needs (`--promisor`).
fn collector<'a>(
    args: &Args,
    kind: Kind,
    shallow: &'a BTreeSet<ObjectId>,
) -> Option<PackLinks<'a>> {
    let promisor = args.promisor.as_ref();
    promisor.map(|_| PackLinks::new(kind, shallow))
}

/// Writes a promisor pack with the local objects that the received promisor objects link to.
/// Otherwise Git would treat these objects as available from the promisor remote.
fn keep_linked(
    repository: Option<&Repository>,
    links: Option<PackLinks<'_>>,
    context: &Context,
) -> Result<(), CliError> {
    let (Some(repository), Some(links)) = (repository, links) else {
        return Ok(());
    };
    let ids = links.into_ids();
    if ids.is_empty() {
        return Ok(());
    }
    let store = repository.objects()?;
    store.refresh()?;
    let directory = repository.objects_dir().join("pack");
    let watch = pronto::Watch::from(&context.interrupt);
    keep_linked_objects(repository, store, &ids, &directory, &watch)?;
    Ok(())
}

/// Refuses options that exclude each other, or that need a repository.
fn refuse_nonsense(args: &Args, in_repository: bool) -> Result<(), CliError> {
    if args.fix_thin && !args.stdin {
        return Err(CliError::fatal(
            "the option '--fix-thin' requires '--stdin'",
        ));
    }
    if args.stdin && !in_repository {
        return Err(CliError::fatal("--stdin requires a git repository"));
    }
    if args.stdin && args.object_format.is_some() {
        let message = "options '--object-format' and '--stdin' cannot be used together";
        return Err(CliError::fatal(message));
    }
    if args.promisor.is_some() && !args.packs.is_empty() {
        let message = "--promisor cannot be used with a pack name";
        return Err(CliError::fatal(message));
    }
    Ok(())
}

/// A pack to index, and the paths of the files to write.
struct IndexJob<'a> {
    args: &'a Args,
    inspector: Option<&'a FsckInspector<'a>>,
    /// The collector of links from objects of a promisor pack.
    links: Option<&'a PackLinks<'a>>,
    repository: Option<&'a Repository>,
    pack: Option<&'a Path>,
    index: Option<&'a Path>,
    watch: &'a IndexWatch,
}

impl IndexJob<'_> {
    fn index(&self, options: &Options, context: &mut Context) -> Result<Outcome, CliError> {
        if let Some(repository) = self.repository.filter(|_| self.args.stdin) {
            repository.objects()?.begin_writing()?;
        }
        let inventory = self.inventory()?;
        let both = Both {
            one: self.links.map(|links| links as &dyn Inspect),
            other: self.inspector.map(|inspector| inspector as &dyn Inspect),
        };
        let inspect = both.is_needed().then_some(&both as &dyn Inspect);
        let outcome = self
            .watch
            .over(inventory.as_ref(), inspect, context, |watched| {
                match (self.pack, self.index, self.repository) {
                    (Some(pack), Some(index), _) if !self.args.stdin => {
                        indexer::index_file(pack, index, options, watched)
                    }
                    (_, _, Some(repository)) => {
                        let mut input = PackInput::new(self.args.pack_header.as_deref())?;
                        let mut options = options.clone();
                        options.must_end = input.is_file();
                        let directory = repository.objects_dir().join("pack");
                        if options.pack_path.is_none() {
                            input::make_directory(&directory)?;
                        }
                        let ready = input.readiness()?;
                        let watched = indexer::IndexContext {
                            ready: Some(&ready),
                            ..*watched
                        };
                        indexer::index_stream(&mut input, &directory, &options, &watched)
                    }
                    _ => Err(input::no_input()),
                }
            });
        if let Some(inspector) = self.inspector {
            bad_pack::print(inspector, context);
        }
        outcome.map_err(|error| bad_pack::report(error, options.max_input_size_bytes, context))
    }

    /// Returns the existing objects of the repository, for the collision check: a received object
    /// must not have the id of an existing object with different content.
    fn inventory(&self) -> Result<Option<Inventory>, CliError> {
        match self.repository {
            Some(repository) => Ok(Some(repository.objects()?.inventory()?)),
            None => Ok(None),
        }
    }
}

/// Prints the name of the pack, and forwards the input after the end of the pack.
fn finish(
    args: &Args,
    outcome: &Outcome,
    inspector: Option<&FsckInspector<'_>>,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let checksum = outcome.checksum;
    match (args.stdin, &outcome.keep) {
        (false, _) => writeln!(context.out, "{checksum}")?,
        (true, None) => writeln!(context.out, "pack\t{checksum}")?,
        (true, Some(_)) => writeln!(context.out, "keep\t{checksum}")?,
    }
    if args.stdin {
        context.out.write_all(&outcome.leftover)?;
    }
    found(args, inspector, context)
}

/// Prints the findings that the caller handles.
fn found(
    args: &Args,
    inspector: Option<&FsckInspector<'_>>,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let Some(inspector) = inspector else {
        return Ok(ExitCode::SUCCESS);
    };
    for id in inspector.missing_modules() {
        writeln!(context.out, "{id}")?;
    }
    match args.check_self_contained_and_connected && inspector.foreign_links() > 0 {
        true => Ok(ExitCode::FAILURE),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Returns the severity of each finding (`--strict=LIST`, `--fsck-objects=LIST`).
fn levels(args: &Args) -> Result<Levels, CliError> {
    let mut levels = Levels::strict();
    for list in [&args.strict, &args.fsck_objects].into_iter().flatten() {
        levels.set_all(list.as_bytes().as_bstr())?;
    }
    Ok(levels)
}

/// Returns the inspector of objects if objects are checked (`--strict`, `--fsck-objects`).
fn inspector<'a>(
    args: &Args,
    options: &Options,
    levels: &'a Levels,
    repository: Option<&'a Repository>,
    shallow: &'a BTreeSet<ObjectId>,
) -> Result<Option<FsckInspector<'a>>, CliError> {
    let scope = InspectionScope {
        objects: args.strict.is_some() || args.fsck_objects.is_some(),
        links: args.checks_links(),
        shallow: Some(shallow),
        store: repository.map(Repository::objects).transpose()?,
        promised: options.promisor.is_some(),
        leave_modules: true,
    };
    let wanted = scope.objects || scope.links;
    Ok(wanted.then(|| FsckInspector::new(options.kind, levels, scope)))
}

fn options(
    args: &Args,
    repository: Option<&Repository>,
    context: &Context,
) -> Result<Options, CliError> {
    let kind = match &args.object_format {
        Some(name) => object_format(name)?,
        None => repository.map_or(Kind::Sha1, Repository::object_hash),
    };
    let mut options = options_of(repository, kind, context)?;
    if let Some(text) = &args.threads {
        let wrong = |_| {
            CliError::misuse(format!(
                "bad value '{text}' for '--threads': it is not a number"
            ))
        };
        options.threads = text.parse().map_err(wrong)?;
    }
    if let Some(text) = &args.max_input_size {
        let limit = leading_number(text);
        options.max_input_size_bytes = (limit > 0).then_some(limit);
    }
    if let Some(text) = &args.index_version {
        index_version(text, &mut options)?;
    }
    options.reverse_index = args.rev_index.unwrap_or(options.reverse_index);
    options.fix_thin = args.fix_thin;
    options.keep = args.keep.as_deref().map(line);
    options.promisor = args.promisor.as_deref().map(line);
    options.title = match &args.progress_title {
        // The text is leaked at most once in a process.
        Some(title) => Box::leak(title.clone().into_boxed_str()),
        None if args.stdin => RECEIVING,
        None => INDEXING,
    };
    options.show_bytes = args.stdin;
    Ok(options)
}

/// Returns the pack options from the configuration, inside or outside of a repository.
pub(super) fn options_of(
    repository: Option<&Repository>,
    kind: Kind,
    context: &Context,
) -> Result<Options, CliError> {
    Ok(match repository {
        Some(repository) => packs::indexer_options(repository.config(), kind)?,
        None => {
            let config = config::without_repository(&context.environment()?)?;
            packs::indexer_options(&config, kind)?
        }
    })
}

/// Returns the hash function called `name`.
pub(super) fn object_format(name: &OsStr) -> Result<Kind, CliError> {
    hash_named(name.as_bytes().as_bstr()).ok_or_else(|| {
        let name = name.to_string_lossy();
        CliError::fatal(format!("unknown hash algorithm '{name}'"))
    })
}

/// Returns the content of a marker file of a pack: `.keep` or `.promisor`.
fn line(text: &OsStr) -> Vec<u8> {
    match text.as_bytes() {
        [] => Vec::new(),
        text => [text, b"\n"].concat(),
    }
}

/// Parses the number at the start of `text`. The result is zero without a number, and the maximum
/// if the number is too large.
pub(super) fn leading_number(text: &str) -> u64 {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    match text[..end].parse() {
        Ok(number) => number,
        Err(_) if end == 0 => 0,
        Err(_) => u64::MAX,
    }
}

/// Parses the value of `--index-version`: `VERSION[,OFFSET]`. The offset may be decimal, octal or
/// hexadecimal, as in C.
fn index_version(text: &str, options: &mut Options) -> Result<(), CliError> {
    let bad = || CliError::fatal(format!("bad --index-version={text}"));
    let (version, limit) = match text.split_once(',') {
        Some((version, limit)) => (version, Some(limit)),
        None => (text, None),
    };
    options.index_version = match version.parse() {
        Ok(2) => pronto_pack::idx::PackIndexVersion::Two,
        Ok(0 | 1) => pronto_pack::idx::PackIndexVersion::One,
        _ => return Err(bad()),
    };
    if let Some(limit) = limit {
        let limit = match limit.strip_prefix("0x").or(limit.strip_prefix("0X")) {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
            None if limit.len() > 1 && limit.starts_with('0') => u64::from_str_radix(limit, 8),
            None => limit.parse(),
        };
        let limit = limit.ok().filter(|limit| *limit < 1 << 31);
        options.index_offset_limit = limit.ok_or_else(bad)?;
    }
    Ok(())
}

/// Returns `path` with the suffix `end` replaced by `other`.
pub(super) fn with_other_end(path: &Path, end: &str, other: &str) -> Result<PathBuf, CliError> {
    let bytes = path.as_os_str().as_bytes();
    let stem = bytes
        .strip_suffix(end.as_bytes())
        .and_then(|stem| stem.strip_suffix(b"."));
    let Some(stem) = stem else {
        let path = path.display();
        let message = format!("packfile name '{path}' does not end with '.{end}'");
        return Err(CliError::fatal(message));
    };
    let other = [stem, b".", other.as_bytes()].concat();
    Ok(PathBuf::from(OsStr::from_bytes(&other)))
}

//! `pack-objects`: pack the objects listed on standard input, or the objects that are reachable
//! from revisions.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use bstr::{BStr, ByteSlice};
use pronto::config::value::parse_u64;
use pronto::pack_objects::{self, LeaveOut, Select, SelectedObjects};
use pronto::remote::has_whole_history;
use pronto::revision::RevisionSet;
use pronto::{Repository, Watch, bitmaps, packs};
use pronto_io::progress::{Meter, Progress, ProgressMessage};
use pronto_odb::packing::{Options, PackContents, PackCounts, PackMember};
use pronto_pack::bitmap::name_hash;

use crate::{CliError, Context, ExitCode, fallback};

/// The warning if a pack does not contain every object that is reachable from its commits.
const NO_CLOSURE: &str = "disabling bitmap writing, as some objects are not being packed";

/// Arguments of `pack-objects`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Write the pack to standard output, without an index
    #[arg(long)]
    stdout: bool,
    /// Read revisions instead of objects, and pack everything reachable
    #[arg(long)]
    revs: bool,
    /// Pack everything reachable from refs
    #[arg(long)]
    all: bool,
    /// Also pack objects that reflogs name
    #[arg(long)]
    reflog: bool,
    /// Also pack objects that the index names
    #[arg(long)]
    indexed_objects: bool,
    /// Pack only unpacked commits, and what they lead to
    #[arg(long)]
    unpacked: bool,
    /// Omit objects that are already packed
    #[arg(long)]
    incremental: bool,
    /// Omit objects of alternates
    #[arg(long)]
    local: bool,
    /// Omit objects in packs with a `.keep` file
    #[arg(long)]
    honor_pack_keep: bool,
    /// Omit objects in this pack
    #[arg(long, value_name = "NAME")]
    keep_pack: Vec<OsString>,
    /// Make a thin pack: deltas may be based on objects of the receiver
    #[arg(long)]
    thin: bool,
    /// Also pack annotated tags of packed objects
    #[arg(long)]
    include_tag: bool,
    /// Use deltas that name their base by offset
    #[arg(long)]
    delta_base_offset: bool,
    /// Recompute all deltas
    #[arg(long)]
    no_reuse_delta: bool,
    /// Deflate all objects again
    #[arg(long)]
    no_reuse_object: bool,
    /// The number of objects that each object is compared with
    #[arg(long, value_name = "N")]
    window: Option<usize>,
    /// The memory for compared objects, in each thread
    #[arg(long, value_name = "BYTES")]
    window_memory: Option<String>,
    /// The maximum length of delta chains
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Number of threads that search for deltas
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// The compression level, 0 to 9
    #[arg(long, value_name = "LEVEL")]
    compression: Option<u8>,
    /// Compare trees only along changed paths
    #[arg(long)]
    sparse: Option<bool>,
    /// Use bitmaps
    #[arg(long)]
    use_bitmap_index: Option<bool>,
    /// Write a bitmap of the pack
    #[arg(long)]
    write_bitmap_index: bool,
    /// Do not write an empty pack
    #[arg(long)]
    non_empty: bool,
    /// Ignore replacement objects and grafts
    #[arg(long)]
    keep_true_parents: bool,
    /// Show progress
    #[arg(long)]
    progress: bool,
    /// Also show progress while writing to standard output
    #[arg(long)]
    all_progress: bool,
    /// Like `--all-progress`, if progress is shown
    #[arg(long)]
    all_progress_implied: bool,
    /// Show no progress
    #[arg(short = 'q')]
    quiet: bool,
    /// The prefix of the names of pack and index
    #[arg(value_name = "BASE-NAME")]
    base_name: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    // git reports an invalid call.
    let is_file = match (args.stdout, args.base_name.len()) {
        (true, 0) => false,
        (false, 1) if !args.thin => true,
        _ => {
            return Err(CliError::unsupported(
                "this combination of arguments of 'pack-objects'",
            ));
        }
    };
    let repository = repository_to_pack(args, context)?;
    let options = options(args, &repository)?;
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;
    let shown = args.progress || args.all_progress || !args.quiet && io::stderr().is_terminal();
    let progress = PhaseProgress {
        inner: context.prompt_progress(shown),
        writing: is_file || args.all_progress || args.all_progress_implied,
    };
    let Some(mut selection) = select(args, context, &repository, &input, &progress)? else {
        return with_git(context, &input);
    };
    let is_part = pack_objects::leave_out(&repository, &mut selection, &leave_out(args))?;
    context.report_warnings();
    if selection.members.is_empty() && args.non_empty {
        return Ok(ExitCode::SUCCESS);
    }
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt).with_progress(&progress);
    let counts = match args.base_name.first() {
        None => {
            let output: File = io::stdout().as_fd().try_clone_to_owned()?.into();
            let mut output = BufWriter::with_capacity(1 << 16, output);
            pack_objects::send(&repository, &selection, &options, &mut output, &watch)?.counts
        }
        Some(base) => {
            // In a repository with a worktree, Git resolves the path from the top of the worktree.
            let base = match (repository.prefix(), repository.work_tree()) {
                (Some(_), Some(top)) => top.join(base),
                _ => Path::new(base).to_owned(),
            };
            let made = make_files(&repository, &selection, &options, &base, &watch)?;
            if args.write_bitmap_index && is_part {
                context.warn(NO_CLOSURE);
            } else if args.write_bitmap_index && args.all {
                let tips = bitmaps::tips(&repository)?;
                let settings = bitmaps::settings(&repository)?;
                bitmaps::write(&repository, &made.0.index, &tips, &settings, &watch)?;
            }
            writeln!(context.out, "{}", made.0.checksum)?;
            made.1
        }
    };
    pronto_io::data!("pack-objects", "write_pack_file/wrote", counts.objects);
    if shown {
        pack_objects::report_totals(&counts, &watch);
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the repository without replace refs, or hands the call over if only git can pack the
/// repository.
fn repository_to_pack(args: &Args, context: &mut Context) -> Result<Repository, CliError> {
    let mut environment = context.environment()?;
    environment.set("GIT_NO_REPLACE_OBJECTS", "1");
    let elsewhere =
        |_| CliError::unsupported("'pack-objects' in a repository that cannot be opened");
    let start = environment.current_dir().to_owned();
    let found = Repository::discover(&start, &environment).map_err(elsewhere)?;
    let mut repository = context.receive_notices(found);
    context.check_opened(&mut repository)?;
    // Only git splits packs by size.
    let is_split = repository.config().u64("pack.packsizelimit")?.unwrap_or(0) > 0;
    if is_split
        || !has_whole_history(&repository)?
        || args.compression.is_some_and(|level| level > 9)
    {
        return Err(CliError::unsupported(
            "'pack-objects' in a shallow or partial clone, with pack.packSizeLimit, or with this \
             --compression",
        ));
    }
    Ok(repository)
}

fn options(args: &Args, repository: &Repository) -> Result<Options, CliError> {
    let mut options = pack_objects::packing_options(repository)?;
    options.offset_deltas = args.delta_base_offset;
    options.reuse_objects = !args.no_reuse_object;
    options.reuse_deltas = !args.no_reuse_delta && options.reuse_objects;
    let search = &mut options.search;
    search.window = args.window.unwrap_or(search.window);
    search.depth = args.depth.unwrap_or(search.depth).min(4095);
    if let Some(threads) = args.threads.filter(|threads| *threads > 0) {
        search.threads = threads;
    }
    if let Some(text) = &args.window_memory {
        // git reports an invalid number.
        let wrong = |_| CliError::unsupported("this value of '--window-memory'");
        let bytes = parse_u64(BStr::new(text)).map_err(wrong)?;
        search.window_memory_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    options.level = args.compression.unwrap_or(options.level);
    Ok(options)
}

/// Selects the objects to pack. Returns `None` if only git supports the request.
fn select(
    args: &Args,
    context: &Context,
    repository: &Repository,
    input: &[u8],
    progress: &dyn Progress,
) -> Result<Option<SelectedObjects>, CliError> {
    let walks = args.revs || args.all || args.thin || args.unpacked;
    let mut selection = match walks || args.reflog || args.indexed_objects {
        false => match listed(repository, input)? {
            Some(selection) => selection,
            None => return Ok(None),
        },
        true => {
            let Some(set) = revisions(repository, input)? else {
                return Ok(None);
            };
            let (mut wants, haves) = (set.ids(false), set.ids(true));
            if args.all {
                wants.extend(repository.work_tree_heads()?);
                wants.extend(pack_objects::ref_tips(repository)?);
            }
            if args.reflog {
                wants.extend(pack_objects::reflog_tips(repository)?);
            }
            let config = repository.config();
            let select = Select {
                thin: args.thin,
                sparse: match args.sparse {
                    Some(sparse) => sparse,
                    None => config.bool_or("pack.usesparse", true)?,
                },
                bitmaps: args.use_bitmap_index.unwrap_or(args.stdout) && !args.unpacked,
                unpacked: args.unpacked,
                ..Select::default()
            };
            let watch = Watch::from(&context.interrupt).with_progress(progress);
            let mut found = pack_objects::select(repository, &wants, &haves, &select, &watch)?;
            if args.indexed_objects {
                pack_objects::include_indexed(
                    repository,
                    &mut found,
                    &Watch::from(&context.interrupt),
                )?;
            }
            found
        }
    };
    if args.include_tag {
        pack_objects::include_tags(repository, &mut selection)?;
    }
    Ok(Some(selection))
}

/// Returns the objects to omit from the selection (`--incremental`, `--local`, `--honor-pack-keep`,
/// `--keep-pack`).
fn leave_out(args: &Args) -> LeaveOut {
    let names = args.keep_pack.iter();
    let mut options = LeaveOut::default();
    options.packed = args.incremental;
    options.elsewhere = args.local;
    options.kept = args.honor_pack_keep;
    options.packs = names.map(|name| name.as_encoded_bytes().into()).collect();
    options
}

/// Parses the list of objects on standard input: one on each line, with an optional path.
fn listed(repository: &Repository, input: &[u8]) -> Result<Option<SelectedObjects>, CliError> {
    let mut selection = SelectedObjects::default();
    let mut kept_whole = pack_objects::kept_whole(repository)?;
    let mut seen = HashSet::new();
    let len = repository.object_hash().len_in_hex();
    for whole in input.lines_with_terminator() {
        let line = whole.strip_suffix(b"\n").unwrap_or(whole);
        if line.starts_with(b"-") {
            return Ok(None);
        }
        let id = line
            .get(..len)
            .and_then(|hex| pronto_hash::parse_hex(hex).ok());
        let id = id.ok_or_else(|| {
            let line = whole.as_bstr();
            CliError::fatal(format!("expected object ID, got garbage:\n {line}"))
        })?;
        if seen.insert(id) {
            let name = line.get(len + 1..);
            if let Some(name) = name
                && kept_whole.has(name.as_bstr())?
            {
                selection.whole.insert(id);
            }
            let name_hash = name_hash(0, name.unwrap_or_default());
            selection.members.push(PackMember { id, name_hash });
        }
    }
    Ok(Some(selection))
}

/// Parses revisions, wanted or excluded (`--revs`). Returns `None` if only git supports them.
fn revisions(repository: &Repository, input: &[u8]) -> Result<Option<RevisionSet>, CliError> {
    let mut set = RevisionSet::default();
    let mut is_negated = false;
    for line in input.lines().map(ByteSlice::as_bstr) {
        if line.is_empty() {
            break;
        }
        if line == "--not" {
            is_negated = !is_negated;
        } else if line.starts_with(b"-") {
            return Ok(None);
        } else if !matches!(set.add_text(repository, line, is_negated), Ok(true)) {
            return Err(CliError::fatal(format!("bad revision '{line}'")));
        }
    }
    Ok(Some(set))
}

fn make_files(
    repository: &Repository,
    selection: &SelectedObjects,
    options: &Options,
    base: &Path,
    watch: &Watch<'_>,
) -> Result<(pronto_pack::writer::WrittenPack, PackCounts), CliError> {
    let mut files = packs::writer_options(repository.config(), repository.object_hash())?;
    let directory = match base.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    files.files.name_prefix = base.file_name().map(OsString::from);
    let contents = PackContents {
        members: &selection.members,
        whole: Some(&selection.whole),
        ..PackContents::default()
    };
    selection.report_count(watch);
    let store = repository.objects()?;
    Ok(store.pack_into(&contents, options, directory, files, watch)?)
}

/// Runs git for a call whose standard input has been read, with `input` as its standard input.
fn with_git(context: &mut Context, input: &[u8]) -> Result<ExitCode, CliError> {
    let git = fallback::git(&context.globals)?;
    context.out.flush()?;
    let mut child = git
        .command()
        .arg("pack-objects")
        .args(&context.arguments)
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // If git does not read the input, it reports why.
        let _ = stdin.write_all(input);
    }
    match child.wait()?.success() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(CliError::silent(ExitCode::FATAL)),
    }
}

/// A progress observer that shows only the requested phases.
struct PhaseProgress {
    inner: Arc<dyn Progress>,
    /// Whether the phase "Writing objects" is shown.
    writing: bool,
}

impl Progress for PhaseProgress {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        match title == "Writing objects" && !self.writing {
            true => Meter::new(title, total),
            false => self.inner.begin(title, total),
        }
    }

    fn message(&self, message: ProgressMessage<'_>) {
        self.inner.message(message);
    }
}

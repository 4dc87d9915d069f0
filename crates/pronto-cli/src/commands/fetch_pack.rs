//! `fetch-pack`: fetch objects from one repository, without changing refs.

mod address;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use pronto::fetch::{self, FetchRules, FetchSelection, FetchedPack, Options, Sought};
use pronto::remote::connection::Settings;
use pronto::remote::{Deepen, Remote, Tags, checks_objects, combined_filter, filter_spec};
use pronto::{ObjectId, Repository, Watch};

use crate::commands::shared::bad_pack;
use crate::{CliError, Context, ExitCode};

/// The largest size of the list of refs on standard input.
const LARGEST_LIST_BYTES: u64 = 64 << 20;

/// Arguments of `fetch-pack`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Fetch all refs
    #[arg(long)]
    all: bool,
    /// Read more refs from standard input, one a line
    #[arg(long)]
    stdin: bool,
    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
    /// Keep the received pack
    #[arg(long, short, action = clap::ArgAction::Count)]
    keep: u8,
    /// Receive deltas against objects that are here
    #[arg(long)]
    thin: bool,
    /// Receive tags that point at what is fetched, too
    #[arg(long)]
    include_tag: bool,
    /// The program on the other side
    #[arg(long, value_name = "PATH")]
    upload_pack: Option<OsString>,
    /// The program on the other side
    #[arg(long, value_name = "PATH", hide = true)]
    exec: Option<OsString>,
    /// Fetch only this many commits of each ref
    #[arg(long, value_name = "DEPTH")]
    depth: Option<String>,
    /// Fetch only commits newer than this
    #[arg(long, value_name = "TIME")]
    shallow_since: Option<String>,
    /// Exclude commits reachable from this ref
    #[arg(long, value_name = "REF")]
    shallow_exclude: Vec<OsString>,
    /// Count the depth from the present shallow commits
    #[arg(long)]
    deepen_relative: bool,
    /// Fetch everything again, without negotiation
    #[arg(long)]
    refetch: bool,
    /// Omit these objects
    #[arg(
        long,
        value_name = "FILTER",
        require_equals = true,
        overrides_with = "no_filter"
    )]
    filter: Vec<OsString>,
    /// Omit nothing
    #[arg(long, overrides_with = "filter")]
    no_filter: bool,
    /// Mark the pack as one of a repository that promises what is missing
    #[arg(long)]
    from_promisor: bool,
    /// Print the name of the file that keeps the pack
    #[arg(long)]
    lock_pack: bool,
    /// Accept the shallow commits of the other side, as a clone does
    #[arg(long)]
    cloning: bool,
    /// Accept shallow commits of the other side that requested objects need
    #[arg(long)]
    update_shallow: bool,
    /// Report whether a kept pack links to nothing outside of it
    #[arg(long)]
    check_self_contained_and_connected: bool,
    /// Print the parts of the address, and fetch nothing
    #[arg(long)]
    diag_url: bool,
    /// Print the decisions, too
    #[arg(short = 'v')]
    verbose: bool,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
    /// The repository to fetch from, and the refs or objects to fetch
    #[arg(value_name = "REPOSITORY")]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let [place, names @ ..] = &args.arguments[..] else {
        return Err(CliError::misuse("fetch-pack needs the URL of a repository"));
    };
    let repository = context.repository()?;
    let url = BStr::new(place.as_bytes());
    address::check(url)?;
    if args.diag_url {
        return address::print(url, context);
    }
    let remote = Remote {
        name: url.to_owned(),
        urls: vec![url.to_owned()],
        ..Remote::default()
    };
    let locks = Locks::read(args, &context.arguments);
    let mut options = options(args)?;
    // Calls for git are handed over before anything is read.
    fetch::check(&repository, &remote, &options).map_err(CliError::of)?;
    let mut selection = FetchSelection::default();
    selection.all = args.all;
    selection.sought = sought(args, names)?;
    let rules = rules(args, locks, &selection, &repository);
    options.rules = Some(rules);
    // As in Git, a shallow commit is accepted only if it is requested by its id.
    let by_id = selection.sought.iter().any(|sought| sought.id.is_some());
    options.update_shallow = args.cloning || (args.update_shallow && by_id);
    let packed = fetch(args, &repository, &remote, &selection, &options, context)?;
    report_packs(args, locks, &packed, &repository, context)?;
    report(&packed, context)
}

/// The effect of the options `--keep` and `--lock-pack`. As in Git, their order matters.
#[derive(Clone, Copy)]
struct Locks {
    /// Whether a kept pack gets a `.keep` file even if packs are otherwise unpacked.
    lock_kept: bool,
    /// Whether the name of the `.keep` file is printed.
    is_printed: bool,
}

impl Locks {
    fn read(args: &Args, arguments: &[OsString]) -> Self {
        let (mut keep, mut lock_kept) = (false, false);
        for word in arguments {
            match word.as_bytes() {
                b"-k" | b"--keep" => lock_kept = std::mem::replace(&mut keep, true),
                b"--lock-pack" => lock_kept = true,
                word if word.starts_with(b"-") => {}
                _ => break,
            }
        }
        Locks {
            lock_kept,
            is_printed: args.lock_pack,
        }
    }
}

/// Returns the rules for the received pack.
fn rules(
    args: &Args,
    locks: Locks,
    selection: &FetchSelection,
    repository: &Repository,
) -> FetchRules {
    let mut rules = FetchRules::default();
    rules.lock_kept = locks.lock_kept;
    rules.checks_links = args.check_self_contained_and_connected;
    rules.is_verbose = args.verbose;
    if args.from_promisor {
        let null = ObjectId::null(repository.object_hash());
        let mut text = Vec::new();
        for sought in selection.distinct().iter().filter(|_| locks.is_printed) {
            let id = sought.id.unwrap_or(null);
            text.extend_from_slice(format!("{id} ").as_bytes());
            text.extend_from_slice(&sought.name);
            text.push(b'\n');
        }
        rules.promised = Some(text);
    }
    rules
}

/// Prints the checksums of the received packs, or the names of their `.keep` files.
fn report_packs(
    args: &Args,
    locks: Locks,
    packed: &FetchedPack,
    repository: &Repository,
    context: &mut Context,
) -> Result<(), CliError> {
    // In Git, `index-pack` prints the checksum, unless `fetch-pack` reads its output.
    let is_read = locks.is_printed || checks_objects(repository.config())?;
    for pack in &packed.packs {
        let word = if pack.is_locked { "keep" } else { "pack" };
        if locks.is_printed && pack.is_locked {
            let directory = repository.display_path(&repository.objects_dir());
            let directory = match directory == Path::new("objects") {
                true => Path::new(".").join(directory),
                false => directory,
            };
            let file = directory.join(format!("pack/pack-{}.keep", pack.checksum));
            writeln!(context.out, "lock {}", file.display())?;
        } else if !is_read {
            writeln!(context.out, "{word}\t{}", pack.checksum)?;
        }
    }
    if args.check_self_contained_and_connected && packed.is_self_contained {
        writeln!(context.out, "connectivity-ok")?;
    }
    Ok(())
}

/// Prints the fetched refs, and reports refs that the server lacks and objects that it refuses.
fn report(packed: &FetchedPack, context: &mut Context) -> Result<ExitCode, CliError> {
    for name in &packed.refused {
        let what = "Server does not allow request for unadvertised object";
        context.report_error(&format!("{what} {name}"));
    }
    for name in &packed.missing {
        context.report_error(&format!("no such remote ref {name}"));
    }
    for tip in &packed.refs {
        write!(context.out, "{} ", tip.id)?;
        context.out.write_all(&tip.name)?;
        context.out.write_all(b"\n")?;
    }
    let is_whole = packed.refused.is_empty() && packed.missing.is_empty();
    Ok(match is_whole && !packed.refs.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn fetch(
    args: &Args,
    repository: &Repository,
    remote: &Remote,
    selection: &FetchSelection,
    options: &Options,
    context: &mut Context,
) -> Result<FetchedPack, CliError> {
    // As in Git, progress is shown in files and pipes, too.
    let progress = context.progress(Some(options.show_unpacking), false);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    let packed = fetch::fetch_pack(repository, remote, selection, options, &watch);
    context.report();
    // Git checks connectivity in another process, whose error is printed first.
    if let Err(error) = &packed
        && error.kind() == pronto::ErrorKind::BrokenLink
    {
        let ending = match args.lock_pack {
            true => "fetch-pack: invalid index-pack output",
            false => "index-pack failed",
        };
        return Err(CliError::fatal(error.message()).and(ending));
    }
    let ending = match args.keep > 0 {
        true => "fetch-pack: invalid index-pack output",
        false => "index-pack failed",
    };
    packed.map_err(|error| bad_pack::refused(error, ending, context))
}

fn options(args: &Args) -> Result<Options, CliError> {
    let program = args.upload_pack.as_ref().or(args.exec.as_ref());
    let mut settings = Settings::default();
    settings.upload_pack = program.map(|program| program.as_bytes().into());
    let mut deepen = Deepen::default();
    deepen.depth = match &args.depth {
        Some(text) => Some(depth(text).ok_or_else(|| {
            CliError::unsupported(format!("'fetch-pack' with the depth '{text}'"))
        })?),
        None => None,
    };
    // As in Git, a depth of zero is no limit.
    deepen.depth = deepen.depth.filter(|depth| *depth != 0);
    let since = args.shallow_since.as_ref();
    deepen.since = since.map(|time| pronto::revision::approximate_date(time.as_str().into()));
    let excluded = args.shallow_exclude.iter();
    deepen.not = excluded.map(|name| name.as_bytes().into()).collect();
    deepen.relative = args.deepen_relative;
    settings.no_bundles = true;
    let mut options = Options::default();
    options.settings = settings;
    options.deepen = deepen;
    options.tags = Some(match args.include_tag {
        true => Tags::Follow,
        false => Tags::None,
    });
    options.filter = filter(&args.filter)?;
    options.thin_pack = args.thin;
    options.keep = args.keep > 0;
    options.refetch = args.refetch;
    options.lock_packs = true;
    // The server sends progress even with `--quiet`.
    options.show_progress = !args.no_progress;
    options.show_unpacking = !args.quiet && !args.no_progress;
    Ok(options)
}

/// Parses the number at the start of `text` as `strtol` does: hexadecimal after `0x`, octal after
/// `0`, and zero if there is no number. Returns `None` if the number is negative or too large.
fn depth(text: &str) -> Option<u32> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix('+').unwrap_or(text);
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let is_hexadecimal = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_hexdigit());
    let (digits, base) = match hexadecimal.filter(is_hexadecimal) {
        Some(rest) => (rest, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(base));
    match &digits[..end.unwrap_or(digits.len())] {
        "" if digits.starts_with('-') => None,
        "" => Some(0),
        digits => u32::from_str_radix(digits, base).ok(),
    }
}

/// Returns the filter that omits every object that one of `specs` omits.
fn filter(specs: &[OsString]) -> Result<Option<BString>, CliError> {
    let specs = specs
        .iter()
        .map(|spec| filter_spec(BStr::new(spec.as_bytes())));
    let specs = specs.collect::<Result<Vec<_>, _>>()?;
    Ok(match &specs[..] {
        [] => None,
        [spec] => Some(spec.clone()),
        _ => Some(combined_filter(&specs)?),
    })
}

/// Returns the refs and objects of the command line and of standard input.
fn sought(args: &Args, names: &[OsString]) -> Result<Vec<Sought>, CliError> {
    let mut sought: Vec<Sought> = names
        .iter()
        .map(|name| Sought::parse(name.as_bytes()))
        .collect();
    if args.stdin {
        let mut list = Vec::new();
        let input = std::io::stdin().lock();
        let read = input.take(LARGEST_LIST_BYTES + 1).read_to_end(&mut list);
        read.map_err(|error| CliError::fatal(format!("cannot read the refs: {error}")))?;
        if list.len() as u64 > LARGEST_LIST_BYTES {
            return Err(CliError::fatal("the list of refs is too long"));
        }
        let lines = list.lines_with_terminator();
        let lines = lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line));
        sought.extend(lines.map(Sought::parse));
    }
    Ok(sought)
}

//! `fetch-pack`: get objects from one repository, without changing refs.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, ByteSlice};
use pronto::fetch::{self, Options, Selection, Sought};
use pronto::remote::connection::{self, Settings};
use pronto::remote::{Deepen, Remote, Tags, parse_date};
use pronto::{Repository, Watch};

use crate::{CliError, Context, ExitCode, bad_pack};

/// The longest list of refs on standard input.
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
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
    /// The repository to fetch from, and the refs or objects to fetch
    #[arg(value_name = "REPOSITORY")]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let [place, names @ ..] = &args.arguments[..] else {
        return Err(CliError::misuse("'fetch-pack' without a repository"));
    };
    if args.keep > 1 {
        return Err(CliError::unsupported("'fetch-pack' with a locked pack"));
    }
    let repository = context.repository()?;
    let url = BStr::new(place.as_bytes());
    if connection::is_bundle(url, repository.environment()) || url.starts_with(b"http") {
        return Err(CliError::unsupported(
            "'fetch-pack' from a bundle or over HTTP",
        ));
    }
    let remote = Remote {
        name: url.to_owned(),
        urls: vec![url.to_owned()],
        ..Remote::default()
    };
    let options = options(args)?;
    // Calls for git are handed over before anything is read.
    fetch::check(&repository, &remote, &options).map_err(CliError::of)?;
    let mut selection = Selection::default();
    selection.all = args.all;
    selection.sought = sought(args, names)?;
    let packed = fetch(args, &repository, &remote, &selection, &options, context)?;
    for pack in &packed.packs {
        let word = if pack.is_locked { "keep" } else { "pack" };
        writeln!(context.out, "{word}\t{}", pack.checksum)?;
    }
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
    selection: &Selection,
    options: &Options,
    context: &mut Context,
) -> Result<fetch::Packed, CliError> {
    // As in Git, it is shown in files and pipes, too.
    let progress = context.progress(Some(options.show_unpacking), false);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    let packed = fetch::fetch_pack(repository, remote, selection, options, &watch);
    context.report();
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
        Some(depth) => Some(depth.parse().map_err(|_| {
            CliError::unsupported(format!("'fetch-pack' with the depth '{depth}'"))
        })?),
        None => None,
    };
    // As in Git, no depth.
    deepen.depth = deepen.depth.filter(|depth| *depth != 0);
    deepen.since = match &args.shallow_since {
        Some(time) => Some(parse_date(time)?),
        None => None,
    };
    let excluded = args.shallow_exclude.iter();
    deepen.not = excluded.map(|name| name.as_bytes().into()).collect();
    deepen.relative = args.deepen_relative;
    let mut options = Options::default();
    options.settings = settings;
    options.deepen = deepen;
    options.tags = Some(match args.include_tag {
        true => Tags::Follow,
        false => Tags::None,
    });
    options.thin_pack = args.thin;
    options.keep = args.keep > 0;
    options.refetch = args.refetch;
    options.lock_packs = true;
    // The other side reports with --quiet, too.
    options.show_progress = !args.no_progress;
    options.show_unpacking = !args.quiet && !args.no_progress;
    Ok(options)
}

/// The refs and objects of the command line and of standard input.
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

//! `send-pack`: push to one repository, without the settings of a remote.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use pronto::Watch;
use pronto::push::{self, Leases, Options, Outcome, PushRemote, PushSpec, Signed};
use pronto::remote::connection::Settings;

use super::push::checks::refuse_settings;
use super::push::{signed, table};
use crate::terminal::colors::{ADVICE, TRANSPORT};
use crate::{CliError, Context, ExitCode};

/// Git's exit code of `send-pack` for failures other than rejected refs.
const FAILED: ExitCode = ExitCode::new(255);

/// The largest size of the list of refs on standard input.
const LARGEST_LIST_BYTES: u64 = 64 << 20;

/// Arguments of `send-pack`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Show refs that were up to date, too
    #[arg(long, short)]
    verbose: bool,
    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
    /// The program on the other side
    #[arg(long, value_name = "PATH")]
    receive_pack: Option<OsString>,
    /// The program on the other side
    #[arg(long, value_name = "PATH", hide = true)]
    exec: Option<OsString>,
    /// The remote whose remote-tracking branches are updated
    #[arg(long, value_name = "REMOTE")]
    remote: Option<OsString>,
    /// Push all branches
    #[arg(long)]
    all: bool,
    /// Show what would be done without doing it
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Push all refs, and delete those that do not exist here
    #[arg(long)]
    mirror: bool,
    /// Allow updates that are not fast-forwards
    #[arg(long, short)]
    force: bool,
    /// A value for the hooks of the other side
    #[arg(long, value_name = "VALUE")]
    push_option: Vec<OsString>,
    /// Show progress even if standard error is not a terminal
    #[arg(long)]
    progress: Option<bool>,
    /// Send deltas against objects of the other side
    #[arg(long)]
    thin: bool,
    /// Sign the push
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, default_missing_value = "yes")]
    signed: Option<String>,
    /// Update all refs or none
    #[arg(long)]
    atomic: bool,
    /// Read more refspecs from standard input, one a line
    #[arg(long)]
    stdin: bool,
    /// The repository to push to, and the refs to push
    #[arg(value_name = "REPOSITORY")]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let [place, refspecs @ ..] = &args.arguments[..] else {
        return Err(CliError::misuse("send-pack needs the URL of a repository"));
    };
    let repository = context.repository()?;
    let config = repository.config();
    refuse_settings(&repository)?;
    let environment = context.environment()?;
    ADVICE.read(config, &environment)?;
    let Ok(Ok(rejected)) = TRANSPORT.read_used(config, &environment) else {
        // In Git, some malformed colours are an error only after the push, and others only cause a
        // warning.
        return Err(CliError::unsupported("a malformed color.* setting"));
    };
    let url = BStr::new(place.as_bytes());
    let mut destination = PushRemote {
        name: url.to_owned(),
        urls: vec![url.to_owned()],
        ..PushRemote::default()
    };
    if let Some(remote) = &args.remote {
        destination.fetch = PushRemote::find(&repository, remote.as_bytes().into())?.fetch;
    }
    if (args.all || args.mirror) && !refspecs.is_empty() || args.all && args.mirror {
        return Err(CliError::misuse(
            "--all, --mirror and refspecs cannot be combined",
        ));
    }
    let specs = specs(args, refspecs)?;
    if (args.all || args.mirror) && !specs.is_empty() {
        // git cannot read the list on standard input again.
        return Err(CliError::usage(
            "--all, --mirror and refspecs cannot be combined",
        ));
    }
    // A malformed setting is an error, and no other has an effect here.
    Signed::configured(config)?;
    let mut options = options(args, specs, context);
    options.negotiate = config.bool_or("push.negotiate", false)?;
    if let Some(given) = &args.signed {
        options.signed = signed::given(given)?;
    }
    let meters = context.shows_progress(args.progress, args.quiet);
    // Messages of the server are shown even by a quiet push.
    let progress = context.progress(Some(meters), false);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    let outcome = push::push(&repository, &destination, url, &options, &watch)?;
    context.report();
    signed::warn(&outcome, context);
    let mode = table::Mode {
        verbose: args.verbose,
        porcelain: false,
        rejected,
    };
    show(mode, &outcome, url, context)
}

/// Prints the result of each ref update.
fn show(
    mode: table::Mode,
    outcome: &Outcome,
    url: &BStr,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    if outcome.decided {
        let text = table::render(&repository, outcome, url, mode)?;
        context.remark_colored(&text);
    }
    if outcome.failed {
        return Ok(FAILED);
    }
    if outcome.has_errors() {
        return Ok(ExitCode::FAILURE);
    }
    if !outcome.has_changes() {
        context.remark("Everything up-to-date");
    }
    context.out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn options(args: &Args, specs: Vec<PushSpec>, context: &Context) -> Options {
    let program = args.receive_pack.as_ref().or(args.exec.as_ref());
    let push_options = args.push_option.iter();
    let mut connection = Settings::default();
    connection.server = crate::programs::own().ok();
    let mut options = Options::default();
    options.specs = specs;
    options.all = args.all;
    options.mirror = args.mirror;
    options.force = args.force;
    options.dry_run = args.dry_run;
    options.atomic = args.atomic;
    options.no_thin = !args.thin;
    options.no_verify = true;
    options.push_options = push_options.map(|it| it.as_bytes().into()).collect();
    options.leases = Leases::default();
    options.quiet = args.quiet || !context.shows_progress(args.progress, args.quiet);
    options.receive_pack = program.map(|program| program.as_bytes().into());
    options.connection = connection;
    options
}

fn specs(args: &Args, given: &[OsString]) -> Result<Vec<PushSpec>, CliError> {
    let mut texts: Vec<BString> = given.iter().map(|text| text.as_bytes().into()).collect();
    if args.stdin {
        let mut list = Vec::new();
        let input = std::io::stdin().lock();
        let read = input.take(LARGEST_LIST_BYTES).read_to_end(&mut list);
        read.map_err(|error| {
            CliError::fatal(format!("cannot read refs from standard input: {error}"))
        })?;
        texts.extend(list.lines().map(BString::from));
    }
    let specs = texts.iter().map(|text| PushSpec::parse(text.as_bstr()));
    Ok(specs.collect::<Result<_, _>>()?)
}

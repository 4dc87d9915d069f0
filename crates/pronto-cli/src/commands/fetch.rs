//! `fetch`: fetch objects and refs from other repositories.

mod action;
mod bundles;
mod deepen;
mod document;
mod graph;
mod negotiation;
mod options;
mod refspecs;
mod submodules;
mod table;
mod upstream;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use pronto::config::value;
use pronto::fetch::{self, Options, Outcome};
use pronto::remote::Remote;
use pronto::{ErrorKind, Repository, Watch};

use crate::commands::shared::bad_pack;
use crate::json::Json;
use crate::terminal::transferred::TransferCounter;
use crate::{CliError, Context, ExitCode, maintenance};

/// Arguments of `fetch`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The remote, or several with --multiple
    repository: Option<OsString>,
    /// Refspecs to fetch instead of the configured ones
    refspecs: Vec<OsString>,
    /// Be more verbose
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
    /// Show progress even if standard error is not a terminal
    #[arg(long)]
    progress: Option<bool>,
    /// Fetch from all remotes
    #[arg(long)]
    all: Option<bool>,
    /// Fetch from several remotes
    #[arg(long, short)]
    multiple: bool,
    /// Number of remotes to fetch from at once
    #[arg(long, short, value_name = "N")]
    jobs: Option<String>,
    /// Append to FETCH_HEAD instead of overwriting it
    #[arg(long, short)]
    append: bool,
    /// Update all refs or none
    #[arg(long)]
    atomic: bool,
    /// The program that serves on the remote side
    #[arg(long, value_name = "PATH")]
    upload_pack: Option<OsString>,
    /// Allow updates of refs that are not fast-forwards
    #[arg(long, short)]
    force: bool,
    /// Fetch all tags
    #[arg(long, short, overrides_with = "no_tags_short")]
    tags: Option<bool>,
    /// Fetch no tags
    #[arg(short = 'n', overrides_with = "tags")]
    no_tags_short: bool,
    /// Remove tracking refs that no longer exist on the remote side
    #[arg(long, short)]
    prune: Option<bool>,
    /// Remove local tags that no longer exist on the remote side
    #[arg(long, short = 'P')]
    prune_tags: Option<bool>,
    /// Show what would be done without doing it
    #[arg(long)]
    dry_run: bool,
    /// Print the result in a form for scripts
    #[arg(long)]
    porcelain: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Do not write FETCH_HEAD
    #[arg(long)]
    no_write_fetch_head: bool,
    /// Keep the received pack
    #[arg(long, short)]
    keep: bool,
    /// Allow fetching into the current branch
    #[arg(long, short = 'u')]
    update_head_ok: bool,
    /// Fetch only this many commits of each branch
    #[arg(long, value_name = "DEPTH")]
    depth: Option<String>,
    /// Deepen the shallow history by this many commits
    #[arg(long, value_name = "DEPTH")]
    deepen: Option<String>,
    /// Fetch only commits newer than this
    #[arg(long, value_name = "TIME")]
    shallow_since: Option<String>,
    /// Exclude commits reachable from this ref
    #[arg(long, value_name = "REF")]
    shallow_exclude: Vec<OsString>,
    /// Fetch the complete history of a shallow repository
    #[arg(long)]
    unshallow: bool,
    /// Accept updates of the list of shallow commits
    #[arg(long)]
    update_shallow: bool,
    /// Map refs of the command line with this refspec instead of the configured ones
    #[arg(long, value_name = "REFMAP")]
    refmap: Vec<OsString>,
    /// A value for the hooks of the remote side
    #[arg(long, short = 'o', value_name = "VALUE")]
    server_option: Vec<OsString>,
    /// Omit these objects until they are needed
    #[arg(long, value_name = "FILTER")]
    filter: Option<OsString>,
    /// Fetch everything again, without negotiation
    #[arg(long)]
    refetch: bool,
    /// Print the commits that both sides have instead of fetching
    #[arg(long)]
    negotiate_only: bool,
    /// Offer only the history of this revision, or of refs that match, in a negotiation
    #[arg(long, value_name = "REVISION")]
    negotiation_restrict: Vec<OsString>,
    /// The same as --negotiation-restrict
    #[arg(long, value_name = "REVISION")]
    negotiation_tip: Vec<OsString>,
    /// Always offer this commit, or those of refs that match, in a negotiation
    #[arg(long, value_name = "REVISION")]
    negotiation_include: Vec<OsString>,
    /// Store refs below refs/prefetch/ instead of the configured names
    #[arg(long)]
    prefetch: bool,
    /// Let the current branch follow the fetched one
    #[arg(long)]
    set_upstream: bool,
    /// Write a commit-graph afterwards
    #[arg(long)]
    write_commit_graph: Option<bool>,
    /// Run no maintenance afterwards
    #[arg(long)]
    no_auto_maintenance: bool,
    /// Run no maintenance afterwards
    #[arg(long)]
    no_auto_gc: bool,
    /// Whether to report which updates are no fast-forwards
    #[arg(long)]
    show_forced_updates: Option<bool>,
    /// Read more refspecs from standard input, one a line
    #[arg(long)]
    stdin: bool,
    /// Whether to fetch in submodules, too
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, default_missing_value = "yes")]
    recurse_submodules: Option<String>,
    /// When to fetch in submodules about which nothing is said
    #[arg(long, value_name = "WHETHER", hide = true)]
    recurse_submodules_default: Option<String>,
    /// The path of this submodule in messages
    #[arg(long, value_name = "PATH", hide = true)]
    submodule_prefix: Option<OsString>,
    /// Use only IPv4 addresses
    #[arg(long, short = '4', overrides_with = "ipv6")]
    ipv4: bool,
    /// Use only IPv6 addresses
    #[arg(long, short = '6', overrides_with = "ipv4")]
    ipv6: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    check_output(args, &repository)?;
    document::check(args)?;
    let modules = submodules::SubmoduleTreatment::choose(args, &repository)?;
    let fetch_all = args.all.unwrap_or(false)
        || (args.all.is_none()
            && args.repository.is_none()
            && repository.config().bool_or("fetch.all", false)?);
    let mut options = options::options(args, context, &repository)?;
    let remotes = remotes(args, fetch_all, &repository)?;
    options.offer = negotiation::offer(args);
    let several = are_several(args, fetch_all, remotes.len());
    check_combinations(args, several)?;
    let writes_graph = graph::is_wanted(args, &repository)?;
    check_remotes(args, &remotes, &options, &repository)?;
    if args.negotiate_only {
        return negotiation::print_common(&remotes, &options, context);
    }
    if !several {
        options.refspecs = refspecs::all(args)?;
    }
    bundles::take(&repository, context)?;
    if several || remotes.is_empty() {
        begin_fetch_head(&mut options, &repository)?;
    }
    let mut code = ExitCode::SUCCESS;
    let mut entries = Vec::new();
    for remote in &remotes {
        if several && !args.quiet && !args.porcelain && !args.json {
            writeln!(context.out, "Fetching {}", remote.name)?;
            context.out.flush()?;
        }
        if several {
            options.action = action::of_many(args, remote).into();
            // Git does not pass `--prefetch` to the processes for several remotes.
            options.prefetch = false;
        }
        let fetched = one(args, remote, &options, several, context);
        let finished = fetched.and_then(|(outcome, received)| {
            if args.json {
                entries.push(document::entry(remote, &outcome, received));
            }
            match outcome.failed {
                true => Ok(true),
                false => modules.fetch(args, &options, remote, &outcome, context),
            }
        });
        match finished {
            Ok(false) => {}
            Ok(true) => code = ExitCode::FAILURE,
            Err(error) if several => {
                if args.json {
                    entries.push(document::failed_entry(remote, &error));
                }
                context.remark(error.render().trim_end());
                context.report_error(&format!("could not fetch {}", remote.name));
                code = ExitCode::FAILURE;
            }
            Err(error) => return Err(error),
        }
    }
    if writes_graph {
        graph::write(args, &repository, context)?;
    }
    document::print(args, &options, entries, context)?;
    maintain(args, &repository, context)?;
    Ok(code)
}

/// Empties `FETCH_HEAD`, to which the fetch from each remote appends.
fn begin_fetch_head(options: &mut Options, repository: &Repository) -> Result<(), CliError> {
    if options.write_fetch_head && !options.append {
        fetch::truncate(repository)?;
    }
    options.append = true;
    Ok(())
}

/// Refuses remotes that only git supports, before anything changes.
fn check_remotes(
    args: &Args,
    remotes: &[Remote],
    options: &Options,
    repository: &Repository,
) -> Result<(), CliError> {
    for remote in remotes {
        if args.verbose > 0 && remote.urls.iter().any(|url| url.starts_with(b"git://")) {
            return Err(CliError::unsupported("'fetch --verbose' with a git:// URL"));
        }
        fetch::check(repository, remote, options).map_err(CliError::of)?;
    }
    Ok(())
}

/// Returns whether Git fetches from a list of `count` remotes, which may have a single entry.
/// Without arguments, Git fetches from the default remote even with `--multiple`.
fn are_several(args: &Args, fetch_all: bool, count: usize) -> bool {
    match (fetch_all, &args.repository) {
        (true, _) => count != 1,
        (false, Some(_)) => args.multiple || count > 1,
        (false, None) => false,
    }
}

/// Refuses options for a single remote if there may be several.
fn check_combinations(args: &Args, several: bool) -> Result<(), CliError> {
    if !several {
        return Ok(());
    }
    let message = if args.filter.is_some() {
        "--filter can only be used with the remote configured in extensions.partialclone"
    } else if args.atomic {
        "--atomic can only be used when fetching from one remote"
    } else if args.stdin {
        "--stdin can only be used when fetching from one remote"
    } else {
        return Ok(());
    };
    Err(CliError::fatal(message))
}

/// Starts automatic maintenance, unless it is turned off (`--no-auto-maintenance`).
fn maintain(args: &Args, repository: &Repository, context: &mut Context) -> Result<(), CliError> {
    if args.no_auto_maintenance || args.no_auto_gc {
        return Ok(());
    }
    match args.refetch {
        true => maintenance::maintain_refetched(repository, args.quiet, context),
        false => maintenance::maintain(repository, args.quiet, context),
    }
}

/// Checks the format of the output (`fetch.output`).
fn check_output(args: &Args, repository: &Repository) -> Result<(), CliError> {
    let asks = args.recurse_submodules.as_deref();
    if args.porcelain
        && asks.is_some_and(|when| value::parse_bool(Some(when.into())) != Some(false))
    {
        let message = "options '--porcelain' and '--recurse-submodules' cannot be used together";
        return Err(CliError::fatal(message));
    }
    let Some(format) = repository.config().string("fetch.output")? else {
        return Ok(());
    };
    let known = [&b"compact"[..], b"full"];
    match known.iter().any(|known| format.eq_ignore_ascii_case(known)) {
        true => Ok(()),
        false => Err(CliError::fatal(format!(
            "invalid value for 'fetch.output': '{format}'"
        ))),
    }
}

/// Fetches from one remote. Also returns the numbers of received objects and bytes.
fn one(
    args: &Args,
    remote: &Remote,
    options: &Options,
    is_one_of_several: bool,
    context: &mut Context,
) -> Result<(Outcome, Json), CliError> {
    let repository = &context.repository()?;
    let counter = TransferCounter::new(context.progress(args.progress, args.quiet));
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt).with_progress(&*counter);
    let fetched = fetch::fetch(repository, remote, options, &watch);
    let received = counter.take();
    let ending = match args.keep {
        true => "fetch-pack: invalid index-pack output",
        false => "index-pack failed",
    };
    let outcome = fetched.map_err(|error| match error.kind() {
        ErrorKind::Bundle => {
            bad_pack::report_bundle(&error, context);
            CliError::silent(ExitCode::FAILURE).caused_by(error.kind())
        }
        ErrorKind::Incomplete => {
            bad_pack::report_absent(&error, context);
            CliError::error(error.message()).caused_by(error.kind())
        }
        // git cannot read the list on standard input again.
        ErrorKind::Unsupported if args.stdin => CliError::fatal(error.message()),
        _ => bad_pack::refused(error, ending, context),
    })?;
    for warning in &outcome.warnings {
        context.warn(&warning.to_string());
    }
    if args.set_upstream && !is_one_of_several && upstream::may_follow(&outcome, args.atomic) {
        upstream::set(repository, remote, &outcome.unmapped, context)?;
    }
    warn_of_hidden(options, repository, context)?;
    context.report();
    for error in &outcome.errors {
        context.report_error(&error.to_string());
    }
    if args.porcelain {
        for update in &outcome.updates {
            let sign = update.flag.sign();
            writeln!(
                context.out,
                "{sign} {} {} {}",
                update.old, update.new, update.local
            )?;
        }
    } else if !args.quiet && !args.json {
        let compact = repository.config().raw("fetch.output");
        let compact = compact.is_some_and(|format| format.eq_ignore_ascii_case(b"compact"));
        let text = table::render(&outcome, compact, options.dry_run);
        if !text.is_empty() {
            context.remark(text.trim_end_matches('\n'));
        }
    }
    Ok((outcome, received))
}

/// Warns if `fetch.showForcedUpdates` or its option turns the search for forced updates off.
fn warn_of_hidden(
    options: &Options,
    repository: &Repository,
    context: &mut Context,
) -> Result<(), CliError> {
    let config = repository.config();
    let shows = options.shows_forced_updates(config)?;
    let key = "advice.fetchshowforcedupdates";
    if !shows && context.wants_advice() && config.bool_or(key, true)? {
        context.warn(
            "fetch normally indicates which branches had a forced update,\n\
             but that check has been disabled; to re-enable, use '--show-forced-updates'\n\
             flag or run 'git config fetch.showForcedUpdates true'",
        );
    }
    Ok(())
}

/// Returns the remotes from which to fetch.
fn remotes(args: &Args, all: bool, repository: &Arc<Repository>) -> Result<Vec<Remote>, CliError> {
    let config = repository.config();
    if all {
        if args.repository.is_some() {
            let message = match args.refspecs.is_empty() {
                true => "fetch --all does not take a repository argument",
                false => "fetch --all does not make sense with refspecs",
            };
            return Err(CliError::fatal(message));
        }
        let mut remotes = Vec::new();
        for name in config.subsections("remote") {
            let remote = Remote::configured(config, name)?;
            if remote.is_configured && !remote.skip_fetch_all {
                remotes.push(remote);
            }
        }
        return Ok(remotes);
    }
    let Some(first) = &args.repository else {
        let remote = Remote::default_of(repository)?;
        // A remote without URLs is not fetched.
        return Ok(match remote.urls.is_empty() {
            true => Vec::new(),
            false => vec![remote],
        });
    };
    let names: Vec<&OsString> = match args.multiple {
        true => std::iter::once(first).chain(&args.refspecs).collect(),
        false => vec![first],
    };
    let mut remotes = Vec::new();
    for name in names {
        let group = [b"remotes.", name.as_bytes()].concat();
        let members: Vec<_> = config.strings(group).collect();
        if members.is_empty() {
            let remote = Remote::find(repository, name.as_bytes().into())?;
            if args.multiple && !remote.is_configured {
                let name = &remote.name;
                let message = format!("no such remote or remote group: {name}");
                return Err(CliError::fatal(message));
            }
            remotes.push(remote);
        } else if !args.refspecs.is_empty() && !args.multiple {
            let message = "fetching a group and specifying refspecs does not make sense";
            return Err(CliError::fatal(message));
        }
        for members in members {
            for member in members.split(|byte| byte.is_ascii_whitespace()) {
                if !member.is_empty() {
                    remotes.push(Remote::find(repository, member.into())?);
                }
            }
        }
    }
    Ok(remotes)
}

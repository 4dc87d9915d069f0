//! `push`: send refs, and the objects that are reachable from them, to another repository.

mod advice;
pub(super) mod checks;
mod document;
mod group;
pub(super) mod signed;
mod submodules;
pub(super) mod table;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use pronto::Watch;
use pronto::push::{
    Options, Outcome, PushRemote, PushSpec, UpstreamToSet, default_specs, expand_spec,
};
use pronto::remote::AddressFamily;
use pronto::remote::connection::{self, Settings};
use pronto::{Repository, switch};

use crate::json::Json;
use crate::terminal::colors::{PUSH, Paint, TRANSPORT};
use crate::terminal::transferred::TransferCounter;
use crate::{CliError, Context, ExitCode};
use submodules::Recursion;

/// Arguments of `push`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The remote, or the address of a repository
    repository: Option<OsString>,
    /// The refs to push, and their names on the other side
    refspecs: Vec<OsString>,
    /// Be more verbose
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
    /// The remote, if no other is named
    #[arg(long, value_name = "REPOSITORY")]
    repo: Option<OsString>,
    /// Push all branches
    #[arg(long)]
    all: bool,
    /// Push all branches
    #[arg(long)]
    branches: bool,
    /// Push all refs, and delete those that do not exist here
    #[arg(long)]
    mirror: bool,
    /// Delete the named refs
    #[arg(long, short)]
    delete: bool,
    /// Push all tags, too
    #[arg(long)]
    tags: bool,
    /// Show what would be done without doing it
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Print the result in a form for scripts
    #[arg(long)]
    porcelain: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Allow updates that are not fast-forwards
    #[arg(long, short)]
    force: bool,
    /// Allow such updates of refs that have the expected value
    #[arg(
        long,
        value_name = "REF:EXPECTED",
        num_args = 0..=1,
        default_missing_value = "",
        action = clap::ArgAction::Append
    )]
    force_with_lease: Vec<OsString>,
    /// Allow such updates only of refs whose value was integrated here
    #[arg(long)]
    force_if_includes: Option<bool>,
    /// Whether to push in submodules, too
    #[arg(long, value_name = "WHETHER", action = clap::ArgAction::Append)]
    recurse_submodules: Vec<String>,
    /// Send deltas against objects of the other side
    #[arg(long)]
    thin: Option<bool>,
    /// The program on the other side
    #[arg(long, value_name = "PATH")]
    receive_pack: Option<OsString>,
    /// The program on the other side
    #[arg(long, value_name = "PATH", hide = true)]
    exec: Option<OsString>,
    /// Let the pushed branches follow those on the other side
    #[arg(long, short = 'u')]
    set_upstream: bool,
    /// Show progress even if standard error is not a terminal
    #[arg(long)]
    progress: Option<bool>,
    /// Delete refs of the other side that do not exist here
    #[arg(long)]
    prune: bool,
    /// Do not run the hook pre-push
    #[arg(long)]
    no_verify: bool,
    /// Push annotated tags that lead into what is pushed
    #[arg(long)]
    follow_tags: Option<bool>,
    /// Sign the push
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, default_missing_value = "yes")]
    signed: Option<String>,
    /// Update all refs or none
    #[arg(long)]
    atomic: bool,
    /// A value for the hooks of the other side
    #[arg(long, short = 'o', value_name = "VALUE")]
    push_option: Vec<OsString>,
    /// Use only IPv4 addresses
    #[arg(long, short = '4', overrides_with = "ipv6")]
    ipv4: bool,
    /// Use only IPv6 addresses
    #[arg(long, short = '6', overrides_with = "ipv4")]
    ipv6: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    checks::refuse_malformed_settings(&repository)?;
    checks::check_settings(repository.config(), context)?;
    let recursion = submodules::choose(&args.recurse_submodules, repository.config(), context)?;
    checks::refuse_submodules(&repository, recursion)?;
    checks::check_combinations(args)?;
    document::check(args)?;
    let named = args.repository.as_ref().or(args.repo.as_ref());
    if named.is_some_and(|name| name.is_empty()) {
        return Err(CliError::fatal("bad repository ''"));
    }
    let mut options = options(args, context, &repository)?;
    let name = named.map(|name| BStr::new(name.as_bytes()));
    let members = name.map(|name| group::members(repository.config(), name));
    let members = members.unwrap_or_default();
    let name = match &members[..] {
        [] => name,
        [member] => Some(member.as_bstr()),
        _ if args.json => {
            return Err(
                CliError::fatal("option '--json' cannot be used with a group of remotes")
                    .with_hint("push to each remote of the group with a call of its own"),
            );
        }
        _ => return group::push(args, &members, context),
    };
    checks::check_refspecs(args)?;
    let destination = match name {
        Some(name) => PushRemote::find(&repository, name),
        None => PushRemote::default_of(&repository),
    };
    let destination = destination.map_err(CliError::of)?;
    if destination.urls.is_empty() {
        return Err(CliError::unsupported(
            "'push' without a configured destination",
        ));
    }
    options.specs = specs(args, &repository, &destination)?;
    options.mirror |= destination.is_mirror;
    options.force |= options.mirror;
    if options.mirror && !args.refspecs.is_empty() {
        return Err(CliError::fatal("--mirror can't be combined with refspecs"));
    }
    let needs_defaults = !options.mirror || !destination.push.is_empty();
    if options.specs.is_empty() && !options.all && needs_defaults {
        let defaults = default_specs(&repository, &destination, options.set_upstream)?;
        options.specs = defaults.specs;
        options.set_upstream = defaults.set_upstream;
    }
    let settings = &options.connection;
    for url in &destination.urls {
        // Calls for git are handed over before anything changes.
        let (config, environment) = (repository.config(), repository.environment());
        connection::check(url.as_bstr(), settings, config, environment).map_err(CliError::of)?;
    }
    let run = PushRun {
        args,
        destination: &destination,
        options: &options,
        recursion,
    };
    run.push(context)
}

/// A push to the URLs of one destination.
struct PushRun<'a> {
    args: &'a Args,
    destination: &'a PushRemote,
    options: &'a Options,
    recursion: Recursion,
}

impl PushRun<'_> {
    /// Pushes to each URL of the destination.
    fn push(&self, context: &mut Context) -> Result<ExitCode, CliError> {
        let mut code = ExitCode::SUCCESS;
        let mut entries = Vec::new();
        for url in &self.destination.urls {
            match self.push_to(url.as_bstr(), &mut entries, context) {
                Ok(true) => {}
                Ok(false) => code = ExitCode::FAILURE,
                Err(error) if self.args.json && !entries.is_empty() => {
                    let shown = connection::shown(url.as_bstr());
                    entries.push(document::failed_entry(&shown, Some(&error)));
                    let fields = document::fields(self.options, entries, context);
                    context.print_document(fields)?;
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        if self.args.json {
            let fields = document::fields(self.options, entries, context);
            context.print_document(fields)?;
        }
        Ok(code)
    }

    /// Pushes to one URL, and adds the result to `entries`. Returns whether the push succeeded.
    fn push_to(
        &self,
        url: &BStr,
        entries: &mut Vec<Json>,
        context: &mut Context,
    ) -> Result<bool, CliError> {
        let args = self.args;
        let repository = context.repository()?;
        let shown = connection::shown(url);
        if args.verbose > 0 {
            context.remark(&format!("Pushing to {shown}"));
        }
        if connection::is_bundle(url, repository.environment()) {
            entries.push(document::failed_entry(&shown, None));
            report_failure(&repository, &shown, context)?;
            return Ok(false);
        }
        let mode = match TRANSPORT.read_used(repository.config(), &context.environment()?)? {
            Ok(rejected) => table::Mode {
                verbose: args.verbose > 0 || args.porcelain,
                porcelain: args.porcelain,
                rejected,
            },
            Err(bad) => {
                context.report_error(&bad.to_string());
                entries.push(document::failed_entry(&shown, None));
                report_failure(&repository, &shown, context)?;
                return Ok(false);
            }
        };
        let (outcome, sent) = self.send(url, &repository, context)?;
        signed::warn(&outcome, context);
        entries.push(document::entry(&shown, &outcome, sent));
        let mut rejections = advice::Rejections::default();
        if outcome.decided {
            if !args.json && (!args.quiet || outcome.has_errors()) {
                let text = table::render(&repository, &outcome, shown.as_bstr(), mode)?;
                match args.porcelain {
                    true => context.out.write_all(text.as_bytes())?,
                    false => context.remark_colored(&text),
                }
            }
            show(args, self.destination, &outcome, context)?;
            rejections = advice::Rejections::of(&repository, &outcome)?;
        }
        if outcome.has_errors() {
            context.out.flush()?;
            report_failure(&repository, &shown, context)?;
            rejections.advise(repository.config(), context)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Sends the refs and objects. Also returns the numbers of sent objects and bytes.
    fn send(
        &self,
        url: &BStr,
        repository: &Repository,
        context: &mut Context,
    ) -> Result<(Outcome, Json), CliError> {
        let args = self.args;
        let meters = context.shows_progress(args.progress, args.quiet);
        // Messages of the server are shown even by a quiet push.
        let counter = TransferCounter::new(context.progress(Some(meters), false));
        let interrupt = context.interrupt.clone();
        let watch = Watch::from(&interrupt).with_progress(&*counter);
        let modules = submodules::SubmodulePush {
            repository,
            destination: self.destination,
            options: self.options,
            recursion: self.recursion,
        };
        let pushed = modules.push(url, &watch, context);
        let sent = counter.take();
        let outcome = pushed?;
        context.report();
        Ok((outcome, sent))
    }
}

/// Reports that the push to `url` failed.
fn report_failure(
    repository: &Repository,
    url: &BString,
    context: &mut Context,
) -> Result<(), CliError> {
    let paint = PUSH.read(repository.config(), &context.environment()?)?;
    // Git writes the line end before the sequence that resets the colour.
    let after = paint.end.clone();
    let paint = Paint {
        end: format!("\n{after}"),
        ..paint
    };
    let message = format!("error: failed to push some refs to '{url}'");
    context.remark_painted(&paint, &message, "");
    Ok(())
}

/// Prints the table of updated refs and the result of the push.
fn show(
    args: &Args,
    destination: &PushRemote,
    outcome: &Outcome,
    context: &mut Context,
) -> Result<(), CliError> {
    let repository = context.repository()?;
    let is_failed = outcome.has_errors();
    for upstream in &outcome.upstreams {
        match follow(args, &repository, destination, upstream) {
            Ok(line) if !args.quiet && !args.json => writeln!(context.out, "{line}")?,
            Ok(_) => {}
            // The refs have been pushed, so a failure to set the upstream is reported but does not
            // end the command.
            Err(error) if error.is_minor() => context.remark(error.render().trim_end()),
            Err(error) => return Err(error),
        }
    }
    for update in &outcome.tracked {
        if args.verbose > 0 {
            context.remark(&format!("updating local tracking ref '{}'", update.name));
        }
        match &update.failure {
            Some(error) if error.kind().ends_command() => {
                return Err(CliError::fatal(error.to_string()));
            }
            Some(error) => context.report_error(&error.to_string()),
            None => {}
        }
    }
    if args.porcelain && !outcome.failed {
        writeln!(context.out, "Done")?;
    } else if !args.porcelain && !args.json && !args.quiet && !is_failed && !outcome.has_changes() {
        context.remark("Everything up-to-date");
    }
    Ok(())
}

/// Sets the upstream of the pushed branches (`--set-upstream`). Returns the messages for the user.
fn follow(
    args: &Args,
    repository: &Repository,
    destination: &PushRemote,
    upstream: &UpstreamToSet,
) -> Result<String, CliError> {
    let (branch, followed) = (upstream.branch.as_bstr(), upstream.followed.as_bstr());
    let remote = destination.name.as_bstr();
    if args.dry_run {
        let short = followed.strip_prefix(b"refs/heads/").unwrap_or(followed);
        let short = short.as_bstr();
        return Ok(format!(
            "Would set upstream of '{branch}' to '{short}' of '{remote}'"
        ));
    }
    let set_up = switch::set_upstream(repository, branch, remote, followed);
    let set_up = set_up.map_err(|error| match error.kind() {
        pronto::ErrorKind::Config => CliError::of(error).into_error(),
        _ => CliError::of(error),
    })?;
    Ok(set_up.to_string())
}

fn options(args: &Args, context: &Context, repository: &Repository) -> Result<Options, CliError> {
    let config = repository.config();
    let mut options = Options::configured(config)?;
    for lease in &args.force_with_lease {
        match lease.is_empty() {
            true => options.leases.others = true,
            false => options
                .leases
                .add(repository, lease.as_bytes().into())
                .map_err(|error| CliError::usage(error.message()))?,
        }
    }
    if let Some(includes) = args.force_if_includes {
        options.leases.includes = includes;
    }
    if !args.push_option.is_empty() {
        let given = args.push_option.iter();
        options.push_options = given.map(|option| option.as_bytes().into()).collect();
    }
    if options
        .push_options
        .iter()
        .any(|option| option.contains(&b'\n'))
    {
        let message = "push options must not have new line characters";
        return Err(CliError::fatal(message));
    }
    let family = match (args.ipv4, args.ipv6) {
        (true, _) => AddressFamily::V4,
        (_, true) => AddressFamily::V6,
        _ => AddressFamily::Any,
    };
    let program = args.receive_pack.as_ref().or(args.exec.as_ref());
    let mut connection = Settings::default();
    connection.family = family;
    connection.server = crate::programs::own().ok();
    if let Some(given) = &args.signed {
        options.signed = signed::given(given)?;
    }
    if let Some(follow) = args.follow_tags {
        options.follow_tags = follow;
    }
    options.all = args.all || args.branches;
    options.mirror = args.mirror;
    options.prune = args.prune;
    options.force = args.force;
    options.dry_run = args.dry_run;
    options.atomic = args.atomic;
    options.no_thin = args.thin == Some(false);
    options.no_verify = args.no_verify;
    options.set_upstream = args.set_upstream;
    options.quiet = args.quiet || !context.shows_progress(args.progress, args.quiet);
    options.receive_pack = program.map(|program| program.as_bytes().into());
    options.connection = connection;
    Ok(options)
}

/// Returns the refspecs of the command line.
fn specs(
    args: &Args,
    repository: &Repository,
    destination: &PushRemote,
) -> Result<Vec<PushSpec>, CliError> {
    let mut specs = Vec::new();
    if args.tags {
        specs.push(PushSpec::parse("refs/tags/*".into())?);
    }
    let mut given = args.refspecs.iter();
    while let Some(text) = given.next() {
        let text = text.as_bytes();
        let deletes = if args.delete { &b":"[..] } else { b"" };
        if text == b"tag" {
            let Some(name) = given.next() else {
                return Err(CliError::fatal("tag shorthand without <tag>"));
            };
            let text = [deletes, b"refs/tags/", name.as_bytes()].concat();
            specs.push(PushSpec::parse(text.as_bstr())?);
        } else if args.delete {
            if text.is_empty() || text.contains(&b':') {
                let message = "--delete only accepts plain target ref names";
                return Err(CliError::fatal(message));
            }
            specs.push(PushSpec::parse([deletes, text].concat().as_bstr())?);
        } else {
            specs.push(expand_spec(repository, destination, text.as_bstr())?);
        }
    }
    Ok(specs)
}

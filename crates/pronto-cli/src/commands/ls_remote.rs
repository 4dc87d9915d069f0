//! `ls-remote`: list the refs of another repository.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, ByteSlice};
use pronto::config::{self, Config};
use pronto::ls_remote::{self, Options, RefSortKey};
use pronto::remote::Remote;
use pronto::remote::connection;
use pronto::{Environment, ErrorKind, Repository, Watch};

use crate::{CliError, Context, ExitCode};

/// The exit code with `--exit-code` if no ref is listed.
const NOTHING_LISTED: ExitCode = ExitCode::new(2);

/// Arguments of `ls-remote`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Do not print the address of the default remote
    #[arg(long, short)]
    quiet: bool,
    /// The program that serves on the remote side
    #[arg(long, visible_alias = "exec", value_name = "PATH")]
    upload_pack: Option<OsString>,
    /// List only tags
    #[arg(long, short)]
    tags: bool,
    /// List only branches
    #[arg(long, short, visible_alias = "heads", visible_short_alias = 'h')]
    branches: bool,
    /// Do not list HEAD and the objects that tags point to
    #[arg(long)]
    refs: bool,
    /// Print the address of the remote without connecting to it
    #[arg(long)]
    get_url: bool,
    /// Sort by this key instead of the order of the server; repeatable
    #[arg(long, value_name = "KEY")]
    sort: Vec<OsString>,
    /// Exit with 2 if no ref is listed
    #[arg(long)]
    exit_code: bool,
    /// Show the targets of symbolic refs
    #[arg(long)]
    symref: bool,
    /// A value for the hooks of the remote side
    #[arg(long, short = 'o', value_name = "VALUE")]
    server_option: Vec<OsString>,
    /// The remote, or the address of a repository
    repository: Option<OsString>,
    /// Patterns for the last components of names
    patterns: Vec<OsString>,
}

/// The environment of a call: with a repository or outside of one.
pub(super) struct CallContext {
    pub(super) repository: Option<std::sync::Arc<Repository>>,
    pub(super) environment: Environment,
    pub(super) config: Config,
}

impl CallContext {
    pub(super) fn find(context: &mut Context) -> Result<Self, CliError> {
        let repository = context.repository_if_any()?;
        let (environment, config) = match &repository {
            Some(found) => (found.environment().clone(), found.config().clone()),
            None => {
                let environment = context.environment()?;
                let config = config::without_repository(&environment)?;
                context.check_config(&config, &environment)?;
                (environment, config)
            }
        };
        Ok(CallContext {
            repository,
            environment,
            config,
        })
    }

    pub(super) fn remote(&self, name: Option<&BStr>) -> Result<Remote, CliError> {
        if name.is_some_and(|name| name.is_empty()) {
            return Err(CliError::fatal("bad repository ''"));
        }
        let found = match (&self.repository, name) {
            (Some(repository), Some(name)) => Remote::find(repository, name),
            (Some(repository), None) => Remote::default_of(repository),
            (None, Some(name)) => Remote::find_without_repository(&self.config, name),
            (None, None) => Remote::configured(&self.config, "origin".into()),
        };
        found.map_err(CliError::of)
    }
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let place = CallContext::find(context)?;
    let options = options(args);
    // The keys are checked before anything is read: git runs calls with unsupported keys.
    let keys = sort_keys(args)?;
    let name = args.repository.as_ref().map(|name| name.as_bytes().into());
    let remote = place.remote(name)?;
    let Some(url) = remote.urls.first() else {
        return Err(CliError::fatal("No remote configured to list refs from."));
    };
    if args.get_url {
        context.out.write_foreign(url)?;
        context.out.write_all(b"\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = options.settings.for_remote(&remote, &place.config)?;
    connection::check(url.as_bstr(), &settings, &place.config, &place.environment)
        .map_err(CliError::of)?;
    let progress = context.progress(Some(false), false);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    let listed = ls_remote::ls_remote(&remote, &options, &place.config, &place.environment, &watch);
    let listed = listed.map_err(|error| {
        if error.kind() == ErrorKind::ProtocolTooOld {
            context.hint("see protocol.version in 'git help config' for more details");
        }
        // Nothing has been printed yet, so git can run the call if pronto does not understand the
        // server.
        CliError::of(error)
    })?;
    context.report();
    if args.repository.is_none() && !args.quiet {
        context.remark(&format!("From {url}"));
    }
    let listed = ls_remote::sort(listed, &keys, place.repository.as_deref());
    let listed = listed.map_err(|error| CliError::fatal(error.message()))?;
    for found in &listed {
        if let (true, Some(target)) = (args.symref, &found.symref_target) {
            context.out.write_all(b"ref: ")?;
            context.out.write_foreign(target)?;
            context.out.write_all(b"\t")?;
            context.out.write_foreign(&found.name)?;
            context.out.write_all(b"\n")?;
        }
        write!(context.out, "{}\t", found.id)?;
        context.out.write_foreign(&found.name)?;
        context.out.write_all(b"\n")?;
    }
    Ok(match args.exit_code && listed.is_empty() {
        true => NOTHING_LISTED,
        false => ExitCode::SUCCESS,
    })
}

fn options(args: &Args) -> Options {
    let mut options = Options::default();
    options.branches = args.branches;
    options.tags = args.tags;
    options.refs_only = args.refs;
    let patterns = args.patterns.iter();
    options.patterns = patterns.map(|text| text.as_bytes().into()).collect();
    options.settings.upload_pack = args
        .upload_pack
        .as_ref()
        .map(|program| program.as_bytes().into());
    let values = args.server_option.iter();
    options.server_options = values.map(|value| value.as_bytes().into()).collect();
    options
}

/// Returns the sort order (`--sort`). A call with an unsupported key is handed to git.
fn sort_keys(args: &Args) -> Result<Vec<RefSortKey>, CliError> {
    let keys = args.sort.iter().map(|key| {
        let text = BStr::new(key.as_bytes());
        let parsed = RefSortKey::parse(text);
        parsed.ok_or_else(|| CliError::unsupported(format!("the sort key '{text}'")))
    });
    keys.collect()
}

//! `gc`: repack objects, and delete unreachable ones.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use bstr::BStr;
use pronto::commit_graph::{self, CommitSource, GraphWriteOptions};
use pronto::config::value::parse_u64;
use pronto::maintenance::{GcOptions, Repacking, Settings};
use pronto::{ErrorKind, NoticeQueue, Repository, Severity, Watch};

use crate::maintenance::{Background, BackgroundResult, Subprocesses, in_background, own_program};
use crate::{CliError, Context, ExitCode};

/// Arguments of `gc`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "CONFIGURATION: `gc.*` works as in git. With `--auto` and `gc.autoDetach` the work is done in \
    the background. Its messages are in `gc.log` of the repository, and a run that failed or had no effect is not repeated until \
    `gc.logExpiry` has passed."
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    /// Remove unreachable objects older than this; never with --no-prune
    #[arg(long, value_name = "DATE", num_args = 0..=1)]
    prune: Option<Option<OsString>>,
    /// Put unreachable objects into a pack of their own
    #[arg(long)]
    cruft: Option<bool>,
    /// Do not combine such packs from this size on
    #[arg(long, value_name = "BYTES")]
    max_cruft_size: Option<String>,
    /// Recompute all deltas, and take more time for it
    #[arg(long)]
    aggressive: bool,
    /// Do nothing unless much has accumulated
    #[arg(long)]
    auto: bool,
    /// Continue in the background
    #[arg(long)]
    detach: Option<bool>,
    /// Run even if another process collects garbage
    #[arg(long)]
    force: bool,
    /// Keep the largest pack as it is
    #[arg(long)]
    keep_largest_pack: Option<bool>,
    /// The directory for a pack of removed objects
    #[arg(long, value_name = "DIRECTORY")]
    expire_to: Option<OsString>,
    /// Skip refs and reflogs
    #[arg(long, hide = true)]
    skip_foreground_tasks: bool,
    #[arg(hide = true)]
    rest: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if !args.rest.is_empty() {
        return Err(CliError::unsupported(
            "this combination of arguments of 'gc'",
        ));
    }
    let is_background = Background::of(context) == Some(Background::Gc);
    let repository = context.repository()?;
    if repository.has_promisor()? {
        return Err(CliError::unsupported("'gc' in a partial clone"));
    }
    let settings = args.settings(&repository, &context.arguments)?;
    let mut options = GcOptions::default();
    options.aggressive = args.aggressive;
    options.auto = args.auto;
    options.quiet = args.quiet;
    options.keep_largest_pack = args.keep_largest_pack;
    options.skips_foreground = args.skip_foreground_tasks;
    options.is_permitted = is_background;
    let planned = pronto::maintenance::plan_gc(&repository, &options, &settings);
    let Some(repacking) = planned.map_err(CliError::of)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let work = GarbageCollection {
        repository: &repository,
        settings: &settings,
        options: &options,
        repacking: &repacking,
        force: args.force,
    };
    if is_background {
        return in_background(&repository, context, |context| {
            work.run(true, context).map(|_| BackgroundResult::Counts)
        });
    }
    let detaches = args.detach.unwrap_or(args.auto && settings.detach);
    if args.auto && !args.quiet {
        let place = if detaches { " in background" } else { "" };
        context.remark(&format!(
            "Auto packing the repository{place} for optimum performance."
        ));
        context.remark("See \"git help gc\" for manual housekeeping.");
    }
    match detaches {
        true => work.detach(context),
        false => work.run(false, context),
    }
}

impl Args {
    /// Returns the settings, overridden by the options of the command line.
    fn settings(
        &self,
        repository: &Repository,
        arguments: &[OsString],
    ) -> Result<Settings, CliError> {
        let mut settings = Settings::of(repository).map_err(CliError::of)?;
        settings.cruft_packs = self.cruft.unwrap_or(settings.cruft_packs);
        if let Some(size) = &self.max_cruft_size {
            // git reports an invalid size.
            settings.max_cruft_size = parse_u64(BStr::new(size.as_bytes()))
                .map_err(|_| CliError::unsupported("this value of '--max-cruft-size'"))?;
        }
        settings.expire_to.clone_from(&self.expire_to);
        // No option other than `--no-prune` begins with `--no-p`.
        let is_about = |word: &&OsString| word.as_bytes().starts_with(b"--no-p");
        let is_given = |word: &&OsString| word.as_bytes().starts_with(b"--p");
        let mut words = arguments.iter().rev();
        let last = words.find(|word| is_about(word) || is_given(word));
        match &self.prune {
            _ if last.is_some_and(|word| is_about(&word)) => settings.prune_expire = None,
            Some(Some(date)) => {
                let date = BStr::new(date.as_bytes());
                if pronto::revision::parse_expiry(date).is_none() {
                    let message = format!("failed to parse prune expiry value {date}");
                    return Err(CliError::fatal(message));
                }
                settings.prune_expire = Some(date.to_owned());
            }
            // `gc.pruneExpire` applies.
            _ => {}
        }
        Ok(settings)
    }
}

/// A garbage collection to be run.
struct GarbageCollection<'a> {
    repository: &'a Repository,
    settings: &'a Settings,
    options: &'a GcOptions,
    repacking: &'a Repacking,
    force: bool,
}

impl GarbageCollection<'_> {
    fn foreground(&self, context: &mut Context) -> Result<(), CliError> {
        let mut runner = Subprocesses {
            context,
            rest: Vec::new(),
        };
        let done =
            pronto::maintenance::gc_foreground(self.options.auto, self.settings, &mut runner);
        match done {
            Err(error) if error.kind() == ErrorKind::Refused => {
                Err(CliError::error(error.to_string()).with_code(ExitCode::FATAL))
            }
            done => done.map_err(CliError::from),
        }
    }

    /// Does the foreground part, and starts a background process for the rest (`--detach`).
    fn detach(&self, context: &mut Context) -> Result<ExitCode, CliError> {
        let repository = self.repository;
        if let Some(said) =
            pronto::maintenance::gc_log(repository, self.settings.log_expires_before)?
        {
            let path = repository.git_path("gc.log");
            let path = repository.display_path(&path);
            context.warn(&format!(
                "The last gc run reported the following. Please correct the root cause\n\
                 and remove {}\n\
                 Automatic cleanup will not be performed until the file is removed.\n\n{said}",
                path.display()
            ));
            return Ok(ExitCode::SUCCESS);
        }
        if !self.options.skips_foreground {
            let Ok(_lock) = pronto::maintenance::lock_gc(repository, self.force)? else {
                return Ok(ExitCode::SUCCESS);
            };
            self.foreground(context)?;
        }
        let mut command = own_program(context)?;
        command.arg("gc").args(&context.arguments);
        command.args(["--no-detach", "--skip-foreground-tasks"]);
        match Background::Gc.spawn(&mut command) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(_) => self.run(false, context),
        }
    }

    fn run(&self, is_background: bool, context: &mut Context) -> Result<ExitCode, CliError> {
        let (repository, options) = (self.repository, self.options);
        let _lock = match pronto::maintenance::lock_gc(repository, self.force)? {
            Ok(lock) => lock,
            Err(_) if options.auto => return Ok(ExitCode::SUCCESS),
            Err(busy) => {
                let message = format!(
                    "gc is already running on machine '{}' pid {} (use --force if not)",
                    busy.host, busy.process
                );
                return Err(CliError::fatal(message));
            }
        };
        if !options.skips_foreground
            && let Err(error) = self.foreground(context)
        {
            context.remark(error.render().trim_end());
        }
        let mut runner = Subprocesses {
            context,
            rest: Vec::new(),
        };
        pronto::maintenance::gc_background(
            repository,
            options,
            self.repacking,
            self.settings,
            &mut runner,
        )?;
        if pronto::maintenance::writes_graph_in_gc(repository)? {
            self.write_graph(is_background, context)?;
        }
        if options.auto && pronto::maintenance::has_loose_objects_left(repository, self.settings) {
            context.warn(
                "There are too many unreachable loose objects; run 'git prune' to remove them.",
            );
        }
        if !is_background {
            pronto::maintenance::remove_gc_log(repository);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write_graph(&self, is_background: bool, context: &mut Context) -> Result<(), CliError> {
        // The store has loaded its list of packs before the new packs were written.
        let start = context.environment()?;
        let found = Repository::discover(start.current_dir(), &start).map_err(CliError::of)?;
        let notices = Arc::new(NoticeQueue::default());
        let repository = found.with_notices(Arc::clone(&notices));
        let shown = !self.options.quiet && !is_background;
        let progress = context.progress(Some(shown), false);
        let interrupt = context.interrupt.clone();
        let mut write = GraphWriteOptions::default();
        write.source = CommitSource::Reachable;
        let written = commit_graph::write(
            &repository,
            &write,
            &Watch::from(&interrupt).with_progress(&*progress),
        );
        for warning in notices.take_of(Severity::Warning) {
            context.warn(&warning.to_string());
        }
        match written {
            // Git reports the error and continues.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                context.report_error(&error.to_string());
                Ok(())
            }
            written => Ok(written?),
        }
    }
}

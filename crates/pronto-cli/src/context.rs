//! The context of a command: repository, output, options before the command, and interruption.

mod checks;
mod documents;
mod notices;
mod on_demand;

pub(crate) use documents::error_of;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pronto::config::Config;
use pronto::{Environment, ErrorKind, NoticeQueue, Repository};
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;
use pronto_io::signals;
use pronto_trace::TraceSession;

use crate::error::{CliError, ExitCode};
use crate::globals::Globals;
use crate::output::StdoutWriter;
use crate::programs;
use crate::settings;
use crate::terminal::colors::{ADVICE, Paint, RemoteWords};
use crate::terminal::progress::{PrintedMessages, ProgressStyle, Terminal};
use crate::terminal::text::{write_colored, write_painted, write_to_stderr};

/// The environment variable with the purpose of a background process. Child processes do not
/// inherit it.
pub(crate) const BACKGROUND_VARIABLE: &str = "PRONTO_BACKGROUND";

/// A function that runs a command with the definition of its arguments.
pub(crate) type RunCommand =
    fn(clap::Command, Vec<OsString>, &mut Context) -> Result<ExitCode, CliError>;

/// A command that only `pronto-server` runs: the name, and the `run` function in that program.
pub(crate) type ServerCommand = (&'static str, RunCommand);

/// The state that every command uses: the options before the command, standard output, the
/// repository and the interrupt.
#[derive(Debug)]
pub struct Context {
    /// Standard output, buffered and flushed at the end.
    pub out: StdoutWriter,
    /// The options before the command.
    pub globals: Globals,
    /// The interrupt that a signal triggers. It must be passed to every long operation.
    pub interrupt: Interrupt,
    /// The arguments of the command as given, before normalisation.
    pub arguments: Vec<OsString>,
    /// The number of plain arguments before a `--`, if there was one.
    pub separator: Option<usize>,
    /// Whether this process was started under the name `git`.
    pub called_as_git: bool,
    /// The name of the command in the JSON document that `--json` requests and that is not printed yet.
    pub(crate) json: Option<String>,
    /// The name of the running native command; empty until its arguments are parsed.
    command: &'static str,
    /// All arguments of the process.
    pub(crate) process: Vec<OsString>,
    pub(crate) begun: Instant,
    /// The alias that was called and the expanded command line.
    pub(crate) alias: Option<(OsString, Vec<OsString>)>,
    repository: Option<Arc<Repository>>,
    /// The queue that receives the notices of the repositories of this command.
    notices: Arc<NoticeQueue>,
    terminal: Option<Terminal>,
    pub(crate) trace: Option<TraceSession>,
    /// The commands that this program runs itself. Other programs continue in `pronto-server` for
    /// them.
    pub(crate) served: &'static [ServerCommand],
}

impl Context {
    pub(crate) fn new(
        globals: Globals,
        called_as_git: bool,
        process: &[OsString],
        begun: Instant,
    ) -> Self {
        Context {
            out: StdoutWriter::new(),
            globals,
            interrupt: Interrupt::new(),
            arguments: Vec::new(),
            separator: None,
            called_as_git,
            json: None,
            command: "",
            process: process.to_vec(),
            begun,
            alias: None,
            repository: None,
            notices: Arc::default(),
            terminal: None,
            trace: None,
            served: &[],
        }
    }

    /// Returns the progress observer of an operation. `explicit` is `--progress` or
    /// `--no-progress`. If neither is given, meters are drawn on a terminal unless `quiet`.
    /// Messages of a server are always shown. Local messages are shown unless `quiet`.
    pub fn progress(&mut self, explicit: Option<bool>, quiet: bool) -> Arc<dyn Progress> {
        let meters = self.shows_progress(explicit, quiet);
        let messages = match quiet && !meters {
            true => PrintedMessages::OfRemote,
            false => PrintedMessages::All,
        };
        let delay = self.number("GIT_PROGRESS_DELAY").unwrap_or(1);
        self.terminal(meters, messages, Duration::from_secs(delay))
    }

    /// Does the same as [`progress`](Self::progress) for a command that shows every phase without a
    /// delay.
    pub fn prompt_progress(&mut self, meters: bool) -> Arc<dyn Progress> {
        match meters {
            true => self.terminal(true, PrintedMessages::All, Duration::ZERO),
            false => Arc::new(()),
        }
    }

    /// Returns the value of an environment variable as a number.
    fn number(&self, name: &str) -> Option<u64> {
        self.globals.variable(name)?.to_str()?.parse().ok()
    }

    fn terminal(
        &mut self,
        meters: bool,
        messages: PrintedMessages,
        delay: Duration,
    ) -> Arc<dyn Progress> {
        let stderr = io::stderr();
        let is_terminal = stderr.is_terminal();
        let is_dumb = self
            .globals
            .variable("TERM")
            .is_none_or(|term| term == "dumb");
        let look = ProgressStyle {
            meters,
            messages,
            clears: is_terminal && !is_dumb,
            delay,
            columns: columns(self.number("COLUMNS")),
        };
        let words = self.remote_words();
        let terminal = Terminal::with_words(look, Box::new(stderr), words);
        self.terminal = Some(terminal.clone());
        Arc::new(terminal)
    }

    /// Returns whether [`progress`](Self::progress) would draw meters.
    pub fn shows_progress(&self, explicit: Option<bool>, quiet: bool) -> bool {
        explicit.unwrap_or(!quiet && io::stderr().is_terminal())
    }

    /// Returns the environment of this process, with the changes by options before the command.
    ///
    /// # Errors
    /// Fails if the current directory cannot be determined.
    pub fn environment(&self) -> Result<Environment, CliError> {
        let mut environment = Environment::from_process()?;
        for (name, value) in self.globals.variables() {
            environment.set(name, value);
        }
        // The variable concerns only this process, and hooks must not inherit it.
        environment.remove(BACKGROUND_VARIABLE);
        if let Some(original) = &self.globals.original_dir {
            environment.set_original_dir(original);
        }
        if self.globals.bare {
            environment.treat_as_bare();
        }
        if let Ok(program) = programs::own() {
            environment.set_server(program);
        }
        environment.set_session_id(self.session_id());
        Ok(environment)
    }

    /// Returns the effective configuration, inside or outside of a repository.
    ///
    /// # Errors
    /// Fails if a configuration file cannot be read or is malformed.
    pub(crate) fn configuration(&self) -> Result<Config, CliError> {
        let environment = self.environment()?;
        match Repository::discover(environment.current_dir(), &environment) {
            Ok(repository) => Ok(repository.config().clone()),
            Err(_) => Ok(pronto::config::without_repository(&environment)?),
        }
    }

    /// Returns the repository around the current directory. The repository is discovered once, and
    /// later calls cost nothing. Its warnings are printed at the end of the command, or by
    /// [`report`](Self::report).
    ///
    /// # Errors
    /// Fails if there is no repository or if it cannot be opened. Fails with
    /// [`Kind::Unsupported`](crate::error::Kind::Unsupported) if the repository needs features that
    /// pronto lacks; git runs the call.
    pub fn repository(&mut self) -> Result<Arc<Repository>, CliError> {
        if let Some(repository) = &self.repository {
            return Ok(Arc::clone(repository));
        }
        let environment = self.environment()?;
        let found = Repository::discover(environment.current_dir(), &environment);
        let mut found = self.receive_notices(found.map_err(CliError::of)?);
        self.check(&mut found)?;
        on_demand::enable(self, &found)?;
        Ok(self.take(found))
    }

    /// Does the same as [`repository`](Self::repository) for commands that can run outside of a
    /// repository: returns `None` there.
    ///
    /// # Errors
    /// Fails if there is a repository that cannot be opened.
    pub fn repository_if_any(&mut self) -> Result<Option<Arc<Repository>>, CliError> {
        if let Some(repository) = &self.repository {
            return Ok(Some(Arc::clone(repository)));
        }
        let environment = self.environment()?;
        let Some(found) = self.discover_optional(&environment)? else {
            return Ok(None);
        };
        let mut found = self.receive_notices(found);
        self.check(&mut found)?;
        on_demand::enable(self, &found)?;
        Ok(Some(self.take(found)))
    }

    /// Does the same as [`repository_if_any`](Self::repository_if_any), without checks of the
    /// configuration.
    ///
    /// # Errors
    /// Fails if there is a repository that cannot be opened.
    pub(crate) fn discover_optional(
        &mut self,
        environment: &Environment,
    ) -> Result<Option<Repository>, CliError> {
        match Repository::discover_optional(environment.current_dir(), environment) {
            // As in Git, a repository in an unknown format counts as no repository for commands
            // that need none.
            Err(error) if error.kind() == ErrorKind::UnknownFormat => {
                self.warn(error.message());
                Ok(None)
            }
            found => found.map_err(CliError::of),
        }
    }

    /// Returns the repository around the current directory as an owned value, which the caller
    /// changes and then passes to [`take`](Self::take).
    ///
    /// # Errors
    /// Fails with the errors of [`repository`](Self::repository).
    pub(crate) fn own_repository(&mut self) -> Result<Repository, CliError> {
        let environment = self.environment()?;
        let found = Repository::discover(environment.current_dir(), &environment);
        let mut found = self.receive_notices(found.map_err(CliError::of)?);
        self.check(&mut found)?;
        Ok(found)
    }

    /// Makes `found` the repository of this command. The notices of `found` must already go to the
    /// queue of this command ([`receive_notices`](Self::receive_notices)).
    pub(crate) fn take(&mut self, found: Repository) -> Arc<Repository> {
        let repository = Arc::new(found);
        if let Some(trace) = &self.trace {
            let place = repository.work_tree().unwrap_or(repository.git_dir());
            trace.repository(&place.to_string_lossy());
        }
        self.repository = Some(Arc::clone(&repository));
        repository
    }

    /// Called when the arguments of `command` are parsed and it is about to run. Starts the
    /// requested traces. With `signals`, SIGINT and similar signals from here on trigger
    /// [`interrupt`](Self::interrupt) and clean up before they end the process.
    pub(crate) fn prepare(&mut self, command: &'static str, signals: bool) -> Result<(), CliError> {
        self.obey_as(command)?;
        if self.wants_pager(command) {
            return Err(CliError::unsupported("option --paginate"));
        }
        self.begin_trace(command);
        if signals {
            signals::watch(&self.interrupt).map_err(|error| {
                CliError::fatal(format!("cannot install signal handlers: {error}"))
            })?;
        }
        Ok(())
    }

    /// Checks the environment variables for `command`: the running command, or another command that
    /// does part of its work.
    ///
    /// # Errors
    /// Fails with [`Kind::Unsupported`](crate::error::Kind::Unsupported) if an environment variable
    /// is set that `command` does not support.
    pub(crate) fn obey_as(&mut self, command: &'static str) -> Result<(), CliError> {
        self.command = command;
        settings::check_variables(command, |name| self.globals.variable(name))
    }

    /// Returns whether standard output is a terminal and `pager.COMMAND` is enabled.
    fn wants_pager(&mut self, command: &str) -> bool {
        const WITHOUT_REPOSITORY: &[&str] = &["clone", "help", "init", "version"];
        if self.globals.paginate == Some(false)
            || WITHOUT_REPOSITORY.contains(&command)
            || !io::stdout().is_terminal()
        {
            return false;
        }
        let Ok(repository) = self.repository() else {
            return false;
        };
        match repository.config().entry_of(format!("pager.{command}")) {
            // A value that is not a boolean names the pager.
            Some(entry) => entry.bool().unwrap_or(true),
            None => false,
        }
    }

    /// Returns a flag that the first signal sets. Only the second signal triggers
    /// [`interrupt`](Self::interrupt) and ends the process.
    #[cfg(feature = "serve")]
    pub(crate) fn drain(&self) -> Interrupt {
        let drain = Interrupt::new();
        signals::drain_first(&drain);
        drain
    }

    /// Replaces this process by `pronto-server` with the same arguments, for `command`. Returns
    /// only if that fails.
    pub(crate) fn become_server(&self, command: &str) -> CliError {
        programs::become_server(command, &self.process, self.globals.start.as_ref())
    }

    /// Ends the process if a signal has requested that.
    pub(crate) fn exit_if_signalled(&self) {
        self.settle();
        signals::exit_if_signalled(|signal| {
            if let Some(trace) = &self.trace {
                trace.signal(signal);
            }
        });
    }

    /// Draws the final state of finished meters, so that later output appears below them.
    pub(crate) fn settle(&self) {
        if let Some(terminal) = &self.terminal {
            terminal.settle();
        }
    }

    /// Returns the name of this program for messages.
    pub fn program(&self) -> &'static str {
        if self.called_as_git { "git" } else { "pronto" }
    }

    /// Flushes the output and prints `warning: MESSAGE` on standard error.
    pub fn warn(&mut self, message: &str) {
        self.say("warning: ", message);
    }

    /// Prints `error: MESSAGE` on standard error, for a failure that does not end the command.
    pub fn report_error(&mut self, message: &str) {
        self.say("error: ", message);
    }

    /// Prints `MESSAGE` as a line on standard error.
    pub fn remark(&mut self, message: &str) {
        self.say("", message);
    }

    /// Prints the pending notices of the repository, flushes the output, and prints each of
    /// `messages` as a line on standard error. The messages are findings of a verification.
    pub(crate) fn remark_all(&mut self, messages: &[String]) -> io::Result<()> {
        self.report();
        self.out.flush()?;
        for message in messages {
            self.remark(message);
        }
        Ok(())
    }

    /// Prints each line of `advice` after `hint: `, unless `GIT_ADVICE` turns advice off.
    pub fn hint(&mut self, advice: &str) {
        if self.wants_advice() {
            self.explain(advice);
        }
    }

    /// Prints each line of `explanation` after `hint: `, regardless of `GIT_ADVICE`: Git has no
    /// setting for these hints.
    pub(crate) fn explain(&mut self, explanation: &str) {
        let paint = self.paint_of_advice();
        for line in explanation.split('\n') {
            let prefix = if line.is_empty() { "hint:" } else { "hint: " };
            self.remark_painted(&paint, &format!("{prefix}{line}"), "\n");
        }
    }

    /// Returns the colours of advice; no colours if the settings are malformed.
    fn paint_of_advice(&self) -> Paint {
        let Ok(environment) = self.environment() else {
            return Paint::default();
        };
        let read = match &self.repository {
            Some(repository) => ADVICE.read(repository.config(), &environment),
            None => match pronto::config::without_repository(&environment) {
                Ok(config) => ADVICE.read(&config, &environment),
                Err(_) => return Paint::default(),
            },
        };
        read.unwrap_or_default()
    }

    /// Returns the function that reads the colours for lines of a server (`color.remote`).
    fn remote_words(&self) -> impl FnOnce() -> RemoteWords + Send + 'static {
        let (repository, environment) = (self.repository.clone(), self.environment());
        move || match (repository, environment) {
            (Some(repository), Ok(environment)) => {
                RemoteWords::read(repository.config(), &environment)
            }
            (None, Ok(environment)) => pronto::config::without_repository(&environment)
                .map(|config| RemoteWords::read(&config, &environment))
                .unwrap_or_default(),
            (_, Err(_)) => RemoteWords::default(),
        }
    }

    /// Prints `text` in the colours of `paint`, followed by `end`, on standard error.
    pub(crate) fn remark_painted(&mut self, paint: &Paint, text: &str, end: &str) {
        self.report_store();
        let _ = self.out.flush();
        self.settle();
        write_painted(paint, text, end);
    }

    /// Prints `text`, which may be coloured, on standard error.
    pub(crate) fn remark_colored(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.report_store();
        let _ = self.out.flush();
        self.settle();
        write_colored(text);
    }

    /// Prints advice that `advice.NAME` turns off. If that setting is unset, a line about turning
    /// the advice off follows.
    pub(crate) fn advise(&mut self, config: &Config, name: &str, advice: &str) {
        let decided = config.bool(format!("advice.{name}"));
        match decided.unwrap_or_default() {
            Some(false) => {}
            Some(true) => self.hint(advice),
            None => self.hint(&format!(
                "{advice}\nDisable this message with \"git config set advice.{name} false\""
            )),
        }
    }

    /// Returns whether `GIT_ADVICE` permits advice.
    pub(crate) fn wants_advice(&self) -> bool {
        let value = self.globals.variable("GIT_ADVICE");
        value.is_none_or(|value| {
            let value = value.as_encoded_bytes().into();
            pronto::config::value::parse_bool(Some(value)).unwrap_or(true)
        })
    }

    fn say(&mut self, prefix: &str, message: &str) {
        self.report_store();
        // A closed standard output is reported at the end of the command.
        let _ = self.out.flush();
        self.settle();
        write_to_stderr(&format!("{prefix}{message}\n"));
    }
}

/// Returns the width of the terminal.
fn columns(variable: Option<u64>) -> usize {
    let wanted = variable.and_then(|columns| usize::try_from(columns).ok());
    wanted.filter(|&columns| columns > 0).unwrap_or_else(|| {
        rustix::termios::tcgetwinsize(rustix::stdio::stderr())
            .ok()
            .filter(|size| size.ws_col > 0)
            .map_or(80, |size| usize::from(size.ws_col))
    })
}

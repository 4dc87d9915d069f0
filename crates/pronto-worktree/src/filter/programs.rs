//! The programs of `filter.<name>`: one run for each file, or one long-running process that handles
//! many files and may delay its answers.

use std::io::Read;

use bstr::{BStr, BString};
use gix_filter::driver::apply::{Context, Delay, MaybeDelayed};
use gix_filter::driver::{Key, Operation, Process, State, shutdown};
use pronto_hash::ObjectId;

use super::{Direction, Driver, FilterWarning, PathConversion, Settings};
use crate::{Error, ErrorKind};

/// Runs filter programs for one operation, in one thread. Long-running processes end when the value is
/// dropped.
pub struct FilterPrograms {
    state: State,
    /// The shell text that changes to the top of the worktree before each program.
    prelude: BString,
    warnings: Vec<FilterWarning>,
}

/// The result of running a filter program.
#[derive(Debug)]
pub enum FilterAnswer {
    /// The buffer holds the result.
    Filtered,
    /// The content is unchanged: there is no program, or an optional program failed.
    Unfiltered,
    /// The process delivers the result later.
    Delayed(Delayed),
}

/// A process with delayed answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Delayed {
    key: Key,
    /// The command `filter.<name>.process`.
    command: BString,
}

impl Delayed {
    /// Returns the error for a process that offers the file `path`, for which no answer is pending.
    pub fn unexpected(&self, path: &BStr) -> Error {
        let message = format!(
            "external filter '{}' signaled that '{path}' is now available although it has not been \
             delayed earlier",
            self.command
        );
        Error::new(ErrorKind::Filter, message)
    }
}

impl std::fmt::Debug for FilterPrograms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Programs").finish_non_exhaustive()
    }
}

impl FilterPrograms {
    /// Creates the value without starting a program.
    pub fn new(settings: &Settings) -> Self {
        let mut state = State::default();
        state.context.git_dir.clone_from(&settings.git_dir);
        FilterPrograms {
            state,
            prelude: prelude(settings),
            warnings: Vec::new(),
        }
    }

    /// Smudges `file.content` into `out`. With [`FileToSmudge::may_delay`] a long-running process may
    /// delay its answer.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Filter`] if the program is required and fails.
    pub fn smudge(
        &mut self,
        file: &FileToSmudge<'_>,
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<FilterAnswer, Error> {
        let Some(driver) = file.conversion.driver(settings) else {
            return Ok(FilterAnswer::Unfiltered);
        };
        let delay = if file.may_delay {
            Delay::Allow
        } else {
            Delay::Forbid
        };
        let ref_name = settings.ref_name.as_ref();
        let context = Context {
            rela_path: file.path,
            ref_name: ref_name.map(|name| name.as_ref()),
            treeish: settings.treeish,
            blob: Some(file.id),
        };
        self.apply(
            driver,
            Direction::ToWorktree,
            file.content,
            delay,
            context,
            out,
        )
    }

    /// Returns the shell text that runs `command` at the top of the worktree. The shell changes the
    /// directory, so that the program inherits the environment of the caller unchanged.
    fn at_the_top(&self, command: &BString) -> BString {
        let mut text = self.prelude.clone();
        text.extend_from_slice(command);
        text
    }

    /// Cleans `content` of the file `path` into `out`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Filter`] if the program is required and fails.
    pub(super) fn clean(
        &mut self,
        path: &BStr,
        content: &[u8],
        driver: &Driver,
        out: &mut Vec<u8>,
    ) -> Result<FilterAnswer, Error> {
        let context = Context {
            rela_path: path,
            ref_name: None,
            treeish: None,
            blob: None,
        };
        self.apply(
            driver,
            Direction::ToGit,
            content,
            Delay::Forbid,
            context,
            out,
        )
    }

    fn apply(
        &mut self,
        driver: &Driver,
        direction: Direction,
        content: &[u8],
        delay: Delay,
        context: Context<'_, '_>,
        out: &mut Vec<u8>,
    ) -> Result<FilterAnswer, Error> {
        out.clear();
        let (operation, verb) = match direction {
            Direction::ToWorktree => (Operation::Smudge, "smudge"),
            Direction::ToGit => (Operation::Clean, "clean"),
        };
        let path = context.rela_path;
        let given = |command: &Option<BString>| {
            let command = command.as_ref().filter(|text| !text.is_empty());
            command.map(|text| self.at_the_top(text))
        };
        let program = gix_filter::Driver {
            name: driver.name.clone(),
            clean: given(&driver.clean),
            smudge: given(&driver.smudge),
            process: given(&driver.process),
            // Any failure is returned as an error, which is interpreted below.
            required: true,
        };
        let missing = missing_program(driver, direction);
        let received = match &missing {
            Some(_) => RawAnswer::Nothing,
            None => {
                let input = &mut &content[..];
                let answer = self
                    .state
                    .apply_delayed(&program, input, operation, delay, context);
                receive(answer, driver.process.is_some(), out)
            }
        };
        let failed = match received {
            RawAnswer::Filtered => return Ok(FilterAnswer::Filtered),
            RawAnswer::Delayed(key) => {
                let command = driver.process.clone().unwrap_or_default();
                return Ok(FilterAnswer::Delayed(Delayed { key, command }));
            }
            RawAnswer::Nothing => None,
            RawAnswer::Refused => Some(None),
            RawAnswer::Broken(error) => {
                if driver.process.is_some() && error.kind() != std::io::ErrorKind::Other {
                    self.forget(&program, operation, path);
                }
                Some(exit_code(&error))
            }
        };
        out.clear();
        if let Some(code) = failed {
            self.warn_of_failure(driver, direction, code);
        }
        self.warnings.extend(missing.into_iter().flatten());
        if driver.required {
            let message = match direction {
                Direction::ToWorktree => format!("{path}: {verb} filter {} failed", driver.name),
                Direction::ToGit => format!("{path}: {verb} filter '{}' failed", driver.name),
            };
            return Err(Error::new(ErrorKind::Filter, message));
        }
        Ok(FilterAnswer::Unfiltered)
    }

    /// Stores the warnings about a failed program, with the exit code if there is one.
    fn warn_of_failure(&mut self, driver: &Driver, direction: Direction, code: Option<i64>) {
        let command = driver.process.as_ref().or(match direction {
            Direction::ToWorktree => driver.smudge.as_ref(),
            Direction::ToGit => driver.clean.as_ref(),
        });
        let command = command.cloned().unwrap_or_default();
        self.warnings
            .extend(code.map(|code| FilterWarning::ProgramExited {
                command: command.clone(),
                code,
            }));
        self.warnings.push(FilterWarning::ProgramFailed { command });
    }

    /// Forgets the process of `program`, which ended in the middle of an answer, so that the next
    /// file starts another one.
    fn forget(&mut self, program: &gix_filter::Driver, operation: Operation, path: &BStr) {
        let process = self.state.maybe_launch_process(program, operation, path);
        if let Ok(Some(Process::MultiFile { key, .. })) = process {
            // A request that cannot be sent removes the process.
            let _ = self.state.list_delayed_paths(&key);
        }
    }

    /// Returns the files whose delayed results are ready. An empty list means that there are no further
    /// results.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Filter`] if the process has ended or violates the protocol.
    pub fn ready(&mut self, process: &Delayed) -> Result<Vec<BString>, Error> {
        self.state
            .list_delayed_paths(&process.key)
            .map_err(|error| Error::new(ErrorKind::Filter, error.to_string()))
    }

    /// Fetches the delayed result for `path`, which [`ready`](Self::ready) has listed, into `out`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Filter`] if the process has ended or failed for this file.
    pub fn fetch(
        &mut self,
        process: &Delayed,
        path: &BStr,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let failed = |text: String| Error::new(ErrorKind::Filter, text).at_path(path.to_string());
        let mut output = self
            .state
            .fetch_delayed(&process.key, path, Operation::Smudge)
            .map_err(|error| failed(error.to_string()))?;
        out.clear();
        output
            .read_to_end(out)
            .map_err(|error| failed(error.to_string()))?;
        Ok(())
    }

    /// Removes and returns the collected warnings.
    pub fn take_warnings(&mut self) -> Vec<FilterWarning> {
        std::mem::take(&mut self.warnings)
    }
}

impl Drop for FilterPrograms {
    fn drop(&mut self) {
        // As in Git, exit codes are ignored: every answer was checked before.
        let _ = self.state.shutdown(shutdown::Mode::WaitForProcesses);
    }
}

/// Returns the warnings about a filter program that does not exist. Returns `None` if the program
/// exists, or if the command is a path or needs a shell.
fn missing_program(driver: &Driver, direction: Direction) -> Option<Vec<FilterWarning>> {
    use std::os::unix::ffi::OsStrExt;
    let given = |command: &'_ Option<BString>| command.clone().filter(|text| !text.is_empty());
    let process = given(&driver.process);
    let is_process = process.is_some();
    let single = match direction {
        Direction::ToWorktree => &driver.smudge,
        Direction::ToGit => &driver.clean,
    };
    let command = process.or_else(|| given(single))?;
    let is_elsewhere = command.contains(&b'/') || pronto_io::child::needs_shell(&command);
    if is_elsewhere || pronto_io::child::find(std::ffi::OsStr::from_bytes(&command)).is_some() {
        return None;
    }
    let mut warnings = vec![FilterWarning::ProgramMissing {
        command: command.clone(),
        is_process,
    }];
    if !is_process {
        warnings.push(FilterWarning::ProgramFailed { command });
    }
    Some(warnings)
}

/// The answer of a program, as it was read.
enum RawAnswer {
    /// The whole result.
    Filtered,
    /// The process has delayed its answer.
    Delayed(Key),
    /// No program is configured for this direction.
    Nothing,
    /// The request could not be sent, or the program refused it.
    Refused,
    /// Reading the result failed before its end.
    Broken(std::io::Error),
}

/// Reads the answer of a program into `out`.
fn receive(
    answer: gix_error::Result<Option<MaybeDelayed<'_>>>,
    is_process: bool,
    out: &mut Vec<u8>,
) -> RawAnswer {
    match answer {
        Ok(Some(MaybeDelayed::Delayed(key))) => RawAnswer::Delayed(key),
        Ok(Some(MaybeDelayed::Immediate(mut output))) => match output.read_to_end(out) {
            Ok(_) => RawAnswer::Filtered,
            // A program with exit code 0 need not read its whole input; its output is complete.
            Err(error) if !is_process && error.kind() == std::io::ErrorKind::BrokenPipe => {
                RawAnswer::Filtered
            }
            Err(error) => RawAnswer::Broken(error),
        },
        Ok(None) => RawAnswer::Nothing,
        Err(_) => RawAnswer::Refused,
    }
}

/// Returns the exit code of a failed program, if it has one.
fn exit_code(error: &std::io::Error) -> Option<i64> {
    let message = error.get_ref()?.downcast_ref::<gix_error::Message>()?;
    match message.values.get("exit_code")? {
        gix_error::MetadataValue::I64(code) => Some(*code),
        _ => None,
    }
}

/// Returns the shell text before each program: it sets the configuration of the command line, and
/// changes to the top of the worktree.
fn prelude(settings: &Settings) -> BString {
    use std::os::unix::ffi::OsStrExt;
    let mut text = BString::default();
    if let Some(parameters) = &settings.config_parameters {
        text.extend_from_slice(b"GIT_CONFIG_PARAMETERS='");
        quote(parameters, &mut text);
        text.extend_from_slice(b"'; export GIT_CONFIG_PARAMETERS; ");
    }
    if let Some(top) = &settings.worktree {
        text.extend_from_slice(b"cd '");
        quote(top.as_os_str().as_bytes(), &mut text);
        text.extend_from_slice(b"' && ");
    }
    text
}

/// Appends `bytes`, escaped for single quotes.
fn quote(bytes: &[u8], text: &mut BString) {
    for byte in bytes {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            // A percent sign is quoted, so that it is not taken for a placeholder of a file name.
            b'%' => text.extend_from_slice(b"%''"),
            _ => text.push(*byte),
        }
    }
}

/// A file that is smudged.
#[derive(Clone, Copy, Debug)]
pub struct FileToSmudge<'a> {
    /// The path of the file from the top of the worktree.
    pub path: &'a BStr,
    /// The id of the blob.
    pub id: ObjectId,
    /// The content, after the conversions of [`Internal`](super::Internal).
    pub content: &'a [u8],
    /// The conversion of the path, which determines the program.
    pub conversion: &'a PathConversion,
    /// Whether a long-running process may delay its answer.
    pub may_delay: bool,
}

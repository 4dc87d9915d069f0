//! Runs a process: from its arguments to the command, and back to the exit code.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use clap::Command as Definition;
use pronto_io::lock_wait;

use crate::alias;
use crate::commands::{self, COMMANDS};
use crate::completion;
use crate::context::{Context, ServerCommand};
use crate::error::{CliError, ExitCode, Kind};
use crate::fallback;
use crate::git_names;
use crate::globals::{Globals, Rest};
use crate::terminal::text::write_to_stderr;

/// Runs the command line `arguments`, of which the first is the name of the program. `served` are
/// the commands of servers that this program runs itself.
pub(crate) fn run(arguments: &[OsString], served: &'static [ServerCommand]) -> ExitCode {
    let begun = Instant::now();
    lock_wait::report_to(report_wait);
    let name = arguments
        .first()
        .map(|name| base_name(name))
        .unwrap_or_default();
    let called_as_git = name == b"git" || name.starts_with(b"git-");
    let (globals, rest) = match name.strip_prefix(b"git-") {
        Some(_) => (Globals::default(), Ok(Rest::Nothing)),
        None => match Globals::read(arguments) {
            Ok((globals, rest)) => (globals, Ok(rest)),
            Err((globals, error)) => (globals, Err(error)),
        },
    };
    let mut context = Context::new(globals, called_as_git, arguments, begun);
    context.served = served;
    let result = match (name.strip_prefix(b"git-"), rest) {
        (Some(command), _) => dispatch(OsStr::from_bytes(command), &arguments[1..], &mut context),
        (None, Ok(rest)) => begin(&rest, arguments, &mut context),
        (None, Err(error)) => Err(error),
    };
    // The name of the program may name the command, as in `git-receive-pack`.
    let command = name.strip_prefix(b"git-").map(OsStr::from_bytes);
    let rest = arguments.get(1..).unwrap_or_default();
    let given: Vec<OsString> = command
        .map(OsStr::to_owned)
        .into_iter()
        .chain(rest.iter().cloned())
        .collect();
    let result = match result {
        Err(error) if hands_over(&error) => Err(hand_over(error, &given, &mut context)),
        other => other,
    };
    let code = finish(result, &mut context);
    // A trace writes its last event when it is dropped. All other values are leaked: the end of the
    // process frees them faster.
    drop(context.trace.take());
    std::mem::forget(context);
    code
}

/// Reports on a terminal that the process waits for the lock of `path`. Git says nothing, so nothing
/// is written elsewhere.
fn report_wait(path: &Path) {
    if std::io::stderr().is_terminal() {
        write_to_stderr(&format!("waiting for lock '{}'\n", path.display()));
    }
}

fn base_name(path: &OsStr) -> &[u8] {
    path.as_bytes()
        .rsplit(|&byte| byte == b'/')
        .next()
        .unwrap_or_default()
}

fn begin(rest: &Rest, arguments: &[OsString], context: &mut Context) -> Result<ExitCode, CliError> {
    match *rest {
        Rest::Command(at) => dispatch(&arguments[at], &arguments[at + 1..], context),
        Rest::Version => dispatch(OsStr::new("version"), &[], context),
        Rest::Help(at) => dispatch(OsStr::new("help"), &arguments[at + 1..], context),
        Rest::Nothing => dispatch(OsStr::new("help"), &[], context).map(|_| ExitCode::FAILURE),
        Rest::ListNative => {
            for command in COMMANDS {
                writeln!(context.out, "{}", command.name)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Rest::Unknown(at) => Err(CliError::misuse(format!(
            "option '{}' is not implemented natively",
            arguments[at].to_string_lossy()
        ))),
    }
}

fn dispatch(
    name: &OsStr,
    arguments: &[OsString],
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let is_gits = context.called_as_git && git_names::is_meant(name, context);
    let own = name.to_str().and_then(commands::find);
    let Some(command) = own.filter(|_| !is_gits) else {
        if name == completion::NAME && !is_gits {
            return completion::run(arguments, context);
        }
        return match alias::expand(name, arguments, context)? {
            Some(words) => {
                context.alias = Some((name.to_owned(), words.clone()));
                dispatch(&words[0], &words[1..], context)
            }
            None => Err(fallback::missing_command(name)),
        };
    };
    if command.asks_for_manual(arguments) {
        let words = command.manual_words(arguments);
        return dispatch(OsStr::new("help"), &words, context);
    }
    if context.globals.paginate == Some(true)
        && command.name != "help"
        && std::io::stdout().is_terminal()
    {
        return Err(CliError::unsupported("option --paginate"));
    }
    let asked = command.asked_usage(arguments);
    if let Some(definition) = asked {
        if context.called_as_git && git_names::is_command(name) && fallback::is_possible() {
            return Err(CliError::unsupported("the usage text of git"));
        }
        write!(context.out, "{}", usage(definition, context.called_as_git))?;
        return Ok(ExitCode::USAGE);
    }
    let result = command.run(arguments, context);
    match git_names::is_own_call(command.name, arguments) {
        true => result.map_err(|error| error.without_git(&command.called(arguments))),
        false => result,
    }
}

/// Returns the usage of a command. The usage begins like that of git's commands, with the name of
/// the program as called.
fn usage(definition: Definition, called_as_git: bool) -> impl std::fmt::Display {
    let name = definition.get_bin_name().unwrap_or_default();
    let name = name.replacen("pronto", "git", 1);
    let definition = match called_as_git {
        true => definition.bin_name(name),
        false => definition,
    };
    let template = match definition.has_subcommands() {
        true => "usage: {usage}\n\n{about}\n\nCommands:\n{subcommands}\n\n{all-args}{after-help}\n",
        false => "usage: {usage}\n\n{about}\n\n{all-args}\n",
    };
    definition.help_template(template).render_help()
}

/// Returns whether the call is handed to git. Usage errors before the command are included, because
/// git reports them in its own words.
fn hands_over(error: &CliError) -> bool {
    matches!(error.kind(), Kind::Unsupported)
}

fn hand_over(error: CliError, arguments: &[OsString], context: &mut Context) -> CliError {
    if context.json.is_some() {
        return error.with_hint(
            "git has no option '--json'; without the option, git runs this call if it is installed",
        );
    }
    if fallback::is_forbidden() {
        return fallback::refusal(error);
    }
    context.out.discard();
    context.trace_exec();
    fallback::exec(&context.globals, arguments).after(error.to_string())
}

/// Flushes the output, reports the error if there is one, and returns the exit code.
fn finish(result: Result<ExitCode, CliError>, context: &mut Context) -> ExitCode {
    context.exit_if_signalled();
    context.report();
    let flushed = context.out.flush().map_err(CliError::from);
    let error = match result.and_then(|code| flushed.map(|()| code)) {
        Ok(code) => {
            context.trace_exit(code);
            return code;
        }
        Err(error) => error,
    };
    context.trace_error(&error);
    if error.kind() == Kind::BrokenPipe {
        pronto_io::signals::die_of(rustix::process::Signal::PIPE.as_raw());
    }
    // If standard output cannot be written, standard error still has the message.
    let _ = context.print_error_document(&error);
    write_to_stderr(&error.render());
    context.trace_exit(error.code());
    error.code()
}

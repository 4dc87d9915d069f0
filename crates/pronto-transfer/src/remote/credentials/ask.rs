//! Runs credential helpers, and prompts the user.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use bstr::{BStr, ByteSlice as _};
use pronto_io::child;

use super::description::HelperOperation;
use crate::path;

/// The largest output of a helper or an askpass program.
const LARGEST_BYTES: u64 = 1 << 20;

/// A program that prompts the user (`GIT_ASKPASS`, `core.askPass`).
#[derive(Clone, Copy)]
pub(super) struct AskPassProgram<'a> {
    pub(super) program: &'a Path,
    /// The current directory of the program.
    pub(super) directory: &'a Path,
}

/// Runs the shell command of a helper in `directory`, with the operation as additional argument.
/// Returns its output, which is empty if the helper cannot be run.
pub(super) fn run(
    command: &BStr,
    operation: HelperOperation,
    input: &[u8],
    directory: &Path,
) -> Vec<u8> {
    let script = [command.as_bytes(), b" ", operation.name().as_bytes()].concat();
    let mut helper = child::shell(path::borrow(&script), "sh");
    helper.current_dir(directory);
    helper.stdin(Stdio::piped()).stdout(match operation {
        HelperOperation::Get => Stdio::piped(),
        HelperOperation::Store | HelperOperation::Erase => Stdio::null(),
    });
    let record = child::started("cred", &helper);
    let Ok(mut process) = child::spawn(&mut helper) else {
        return Vec::new();
    };
    if let Some(mut stdin) = process.stdin.take() {
        // A helper need not read its input.
        let _ = stdin.write_all(input);
    }
    let mut output = Vec::new();
    if let Some(stdout) = process.stdout.take() {
        let _ = stdout.take(LARGEST_BYTES).read_to_end(&mut output);
    }
    if let Ok(status) = process.wait() {
        record.ended(process.id(), status);
    }
    output
}

/// The part of a login to prompt for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CredentialPart {
    Username,
    Password,
}

impl CredentialPart {
    pub(super) fn name(self) -> &'static str {
        match self {
            CredentialPart::Username => "Username",
            CredentialPart::Password => "Password",
        }
    }
}

/// Prompts the user with the configured askpass program, or else on the terminal if that is
/// allowed.
///
/// # Errors
/// Fails with a message if there is no response.
pub(super) fn user(
    wanted: CredentialPart,
    server: &str,
    program: Option<AskPassProgram<'_>>,
    may_prompt: bool,
) -> Result<String, String> {
    let prompt = format!("{} for '{server}': ", wanted.name());
    if let Some(answer) = program.and_then(|program| by_program(program, &prompt)) {
        return Ok(answer);
    }
    if !may_prompt {
        return Err("terminal prompts disabled".to_owned());
    }
    let options = gix_prompt::Options {
        askpass: None,
        mode: match wanted {
            CredentialPart::Username => gix_prompt::Mode::Visible,
            CredentialPart::Password => gix_prompt::Mode::Hidden,
        },
    };
    gix_prompt::ask(&prompt, &options).map_err(|error| error.to_string())
}

fn by_program(asked: AskPassProgram<'_>, prompt: &str) -> Option<String> {
    let mut asking = child::command(asked.program);
    asking
        .current_dir(asked.directory)
        .arg(prompt)
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped());
    let record = child::started("askpass", &asking);
    let mut process = child::spawn(&mut asking).ok()?;
    let mut output = Vec::new();
    if let Some(stdout) = process.stdout.take() {
        let _ = stdout.take(LARGEST_BYTES).read_to_end(&mut output);
    }
    let status = process.wait().ok()?;
    record.ended(process.id(), status);
    let line = output.lines().next().unwrap_or_default();
    let answer = String::from_utf8(line.to_vec()).ok()?;
    status.success().then_some(answer)
}

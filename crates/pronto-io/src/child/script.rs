//! Runs scripts without an interpreter line with `/bin/sh`.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use super::{find_in, search_path};

/// The shell that runs scripts.
const SHELL: &str = "/bin/sh";

/// C strings for the kernel, and an array of pointers to them. The strings never change, so the
/// pointers stay valid.
struct ScriptText {
    pointers: Vec<*const libc::c_char>,
    _texts: Vec<CString>,
}

// SAFETY: the pointers lead to the texts that the value owns, and nothing changes either.
unsafe impl Send for ScriptText {}
// SAFETY: as above.
unsafe impl Sync for ScriptText {}

impl ScriptText {
    fn new(texts: impl Iterator<Item = Vec<u8>>) -> io::Result<Self> {
        let texts = texts
            .map(CString::new)
            .collect::<Result<Vec<_>, _>>()
            .map_err(io::Error::from)?;
        let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        pointers.push(ptr::null());
        Ok(ScriptText {
            pointers,
            _texts: texts,
        })
    }
}

/// Makes `command` start the shell with its program as a script. The streams, the directory, the
/// arguments and the environment of `command` stay unchanged.
///
/// # Errors
/// Fails with `InvalidInput` if an argument or an environment variable contains a zero byte.
pub(super) fn run_by_shell(command: &mut Command) -> io::Result<()> {
    let script = script_of(command.get_program());
    let start = [OsStr::new(SHELL).as_bytes(), script.as_bytes()].map(<[u8]>::to_vec);
    let rest = command.get_args().map(|text| text.as_bytes().to_vec());
    let arguments = ScriptText::new(start.into_iter().chain(rest))?;
    let variables = variables_of(command).into_iter().map(|(name, value)| {
        let mut text = name.as_bytes().to_vec();
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        text
    });
    let variables = ScriptText::new(variables)?;
    let shell = CString::new(SHELL).map_err(io::Error::from)?;
    let run = move || {
        // The whole blocks move into the closure, not only their pointers.
        let (arguments, variables) = (&arguments, &variables);
        // SAFETY: the texts end in zero bytes and the lists in null pointers, and both outlive the call. The
        // call allocates nothing, so it may be made between `fork` and `exec`.
        unsafe {
            libc::execve(
                shell.as_ptr(),
                arguments.pointers.as_ptr(),
                variables.pointers.as_ptr(),
            );
        }
        Err(io::Error::last_os_error())
    };
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(run);
    }
    Ok(())
}

/// Returns the path of the script. A name without a slash is searched in `PATH`, like any program.
fn script_of(program: &OsStr) -> OsString {
    if program.as_bytes().contains(&b'/') {
        return program.into();
    }
    let path = search_path();
    let found = find_in(program, &path).next();
    found.map_or_else(|| program.into(), Into::into)
}

/// Returns the environment of the process that `command` starts.
fn variables_of(command: &Command) -> BTreeMap<OsString, OsString> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a child process inherits the environment"
    )]
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => variables.insert(name.into(), value.into()),
            None => variables.remove(name),
        };
    }
    variables
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Stdio;

    use crate::child::{command, spawn};

    #[test]
    fn a_script_without_an_interpreter_line_is_run_by_the_shell() {
        let directory = tempfile::tempdir().expect("there is a temporary directory");
        let script = directory.path().join("script");
        std::fs::write(&script, "echo \"$0 $1 $2 $VALUE $(pwd -P)\"\n").expect("it is writable");
        let runnable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&script, runnable).expect("it is ours");
        let mut command = command("./script");
        command
            .args(["a b", "c"])
            .env("VALUE", "set")
            .current_dir(directory.path())
            .stdout(Stdio::piped());
        let mut process = spawn(&mut command).expect("the shell runs it");
        let mut output = String::new();
        let mut stdout = process.stdout.take().expect("it is a pipe");
        stdout.read_to_string(&mut output).expect("it is text");
        assert!(process.wait().expect("it ends").success());
        let place = directory.path().canonicalize().expect("it exists");
        assert_eq!(output, format!("./script a b c set {}\n", place.display()));
    }
}

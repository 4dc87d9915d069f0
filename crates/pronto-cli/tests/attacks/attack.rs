//! The command of a row, and the conditions that must hold after it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Child;

use test_support::{INSTALL, report_skip};

use crate::process::Outcome;
use crate::sandbox::Sandbox;
use crate::servers::Server;

/// The program under test in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Pronto,
    Git,
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Program::Pronto => "pronto",
            Program::Git => "git",
        }
    }
}

/// The required exit code of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The code is 0.
    Succeeds,
    /// The code is not 0.
    Fails,
    /// Any code: only the effects are checked.
    Any,
}

/// An additional check of a row after the command.
type Check = Box<dyn Fn(&Scene, &Outcome) -> Result<(), String>>;

/// The sandbox of a row, and the servers in it.
pub(crate) struct Scene {
    pub(crate) sandbox: Sandbox,
    pub(crate) program: Program,
    pub(crate) servers: Vec<Server>,
    /// The canaries, each with the server that may receive it.
    pub(crate) secrets: Vec<Secret>,
    /// The programs that run at the same time as the command.
    pub(crate) beside: Vec<Child>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in &mut self.beside {
            // The process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A canary.
pub(crate) struct Secret {
    pub(crate) text: String,
    /// The port of the only server that may receive the canary; `None` for no server.
    pub(crate) owner: Option<u16>,
}

impl std::ops::Deref for Scene {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Scene {
    pub(crate) fn new(program: Program) -> Self {
        Scene {
            sandbox: Sandbox::new(),
            program,
            servers: Vec::new(),
            secrets: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// Creates a canary that only the server at the port `owner` may receive, or no server if
    /// `owner` is `None`.
    pub(crate) fn secret(&mut self, owner: Option<u16>) -> String {
        let text = format!("CANARY{}", 71_993 + self.secrets.len());
        self.secrets.push(Secret {
            text: text.clone(),
            owner,
        });
        text
    }

    /// Returns all bytes that the server at `port` has received.
    pub(crate) fn log_of(&self, port: u16) -> Vec<u8> {
        let server = self.servers.iter().find(|server| server.port == port);
        server.map(|server| server.log.bytes()).unwrap_or_default()
    }
}

/// The command of a row, and the conditions that must hold after it.
pub(crate) struct Attack {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: String,
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) exit: Exit,
    pub(crate) input: Vec<u8>,
    pub(crate) is_on_terminal: bool,
    pub(crate) has_raw_output: bool,
    pub(crate) may_hand_over: bool,
    pub(crate) seconds: u64,
    pub(crate) mebibytes: u64,
    pub(crate) kept: Vec<PathBuf>,
    pub(crate) absent: Vec<PathBuf>,
    pub(crate) checks: Vec<Check>,
    /// The reason why git does not satisfy the conditions that pronto must satisfy.
    pub(crate) git_differs: Option<&'static str>,
    /// The reason why the row cannot run with git.
    pub(crate) only_pronto: Option<&'static str>,
    pub(crate) skipped: Option<&'static str>,
}

/// Creates an attack whose command runs in `work`, may exit with any code, and must not change
/// anything outside of `work`.
pub(crate) fn command<W: Into<OsString>>(arguments: impl IntoIterator<Item = W>) -> Attack {
    Attack {
        arguments: arguments.into_iter().map(Into::into).collect(),
        directory: "work".to_owned(),
        variables: Vec::new(),
        exit: Exit::Any,
        input: Vec::new(),
        is_on_terminal: false,
        has_raw_output: false,
        may_hand_over: false,
        seconds: 180,
        mebibytes: 384,
        kept: Vec::new(),
        absent: Vec::new(),
        checks: Vec::new(),
        git_differs: None,
        only_pronto: None,
        skipped: None,
    }
}

/// Creates a row that cannot run on this machine, which lacks `missing`.
pub(crate) fn skip(missing: &'static str) -> Attack {
    report_skip(&missing, &INSTALL);
    elsewhere(missing)
}

/// Creates a row that does not run in this suite. The reason says which test covers it.
pub(crate) fn elsewhere(reason: &'static str) -> Attack {
    let mut attack = command(["version"]);
    attack.skipped = Some(reason);
    attack
}

impl Attack {
    /// Requires a code other than 0.
    pub(crate) fn fails(mut self) -> Self {
        self.exit = Exit::Fails;
        self
    }

    /// Requires code 0.
    pub(crate) fn succeeds(mut self) -> Self {
        self.exit = Exit::Succeeds;
        self
    }

    /// Passes `input` to the standard input of the command.
    pub(crate) fn reads(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// Runs in another directory of the sandbox.
    pub(crate) fn within(mut self, directory: &str) -> Self {
        directory.clone_into(&mut self.directory);
        self
    }

    pub(crate) fn variable(
        mut self,
        name: impl Into<OsString>,
        value: impl Into<OsString>,
    ) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Runs with a terminal as standard output and error.
    pub(crate) fn on_terminal(mut self) -> Self {
        self.is_on_terminal = true;
        self
    }

    /// Permits any bytes on standard output, which is data.
    pub(crate) fn with_raw_output(mut self) -> Self {
        self.has_raw_output = true;
        self
    }

    /// Permits pronto to hand the command over to git.
    pub(crate) fn with_fallback(mut self) -> Self {
        self.may_hand_over = true;
        self
    }

    /// Sets the timeout of the command. Even on a busy machine, an attack takes much less time.
    pub(crate) fn seconds(mut self, seconds: u64) -> Self {
        self.seconds = seconds;
        self
    }

    /// Sets the largest memory of the command.
    pub(crate) fn mebibytes(mut self, mebibytes: u64) -> Self {
        self.mebibytes = mebibytes;
        self
    }

    /// Protects a path in `work` too.
    pub(crate) fn keeps(mut self, path: impl Into<PathBuf>) -> Self {
        self.kept.push(path.into());
        self
    }

    /// Requires that nothing exists at this path afterwards.
    pub(crate) fn leaves_no(mut self, path: impl Into<PathBuf>) -> Self {
        self.absent.push(path.into());
        self
    }

    /// Adds a check.
    pub(crate) fn check(
        mut self,
        check: impl Fn(&Scene, &Outcome) -> Result<(), String> + 'static,
    ) -> Self {
        self.checks.push(Box::new(check));
        self
    }

    /// Requires that the server at `port` has received nothing.
    pub(crate) fn never_contacts(self, port: u16) -> Self {
        self.check(move |scene, _| match scene.log_of(port).is_empty() {
            true => Ok(()),
            false => Err(format!("contacts the server at port {port}")),
        })
    }

    /// Marks the row as one whose conditions git does not satisfy: git runs, but its result is not
    /// checked.
    pub(crate) fn git_differs(mut self, reason: &'static str) -> Self {
        self.git_differs = Some(reason);
        self
    }

    /// Does the same as [`Self::git_differs`] for some of the rows of a group.
    pub(crate) fn git_differs_if(self, differs: bool, reason: &'static str) -> Self {
        match differs {
            true => self.git_differs(reason),
            false => self,
        }
    }

    /// Omits the control run with git, for this reason.
    pub(crate) fn only_pronto(mut self, reason: &'static str) -> Self {
        self.only_pronto = Some(reason);
        self
    }
}

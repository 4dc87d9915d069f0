//! A command of the suite, and the conditions that must hold afterwards.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Child;

use test_support::{INSTALL, report_skip};

use crate::process::Outcome;
use crate::sandbox::Sandbox;
use crate::servers::Server;

/// The program that a row runs.
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

/// The expected end of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// With 0.
    Succeeds,
    /// With another code.
    Fails,
    /// With any code: what counts are the traces it leaves.
    Any,
}

/// A check of a row's own, after the command.
type Check = Box<dyn Fn(&Scene, &Outcome) -> Result<(), String>>;

/// The sandbox of a row, and the servers in it.
pub(crate) struct Scene {
    pub(crate) sandbox: Sandbox,
    pub(crate) program: Program,
    pub(crate) servers: Vec<Server>,
    /// Canaries, each with the server that may see it.
    pub(crate) secrets: Vec<Secret>,
    /// Programs that run beside the command.
    pub(crate) beside: Vec<Child>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in &mut self.beside {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A canary.
pub(crate) struct Secret {
    pub(crate) text: String,
    /// The port of the one server that may see it.
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

    /// A canary that only the server at the port `owner` may see; nobody, if that is `None`.
    pub(crate) fn secret(&mut self, owner: Option<u16>) -> String {
        let text = format!("CANARY{}", 71_993 + self.secrets.len());
        self.secrets.push(Secret {
            text: text.clone(),
            owner,
        });
        text
    }

    /// Everything that the server at `port` has received.
    pub(crate) fn log_of(&self, port: u16) -> Vec<u8> {
        let server = self.servers.iter().find(|server| server.port == port);
        server.map(|server| server.log.bytes()).unwrap_or_default()
    }
}

/// A command that meets an attack, and what must hold afterwards.
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
    /// The reason why the control does not hold what pronto has to.
    pub(crate) git_differs: Option<&'static str>,
    /// The reason why there is nothing to run with git.
    pub(crate) only_pronto: Option<&'static str>,
    pub(crate) skipped: Option<&'static str>,
}

/// A command that runs in `work`, may end with any code, and must keep everything outside of `work`.
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
        seconds: 60,
        mebibytes: 384,
        kept: Vec::new(),
        absent: Vec::new(),
        checks: Vec::new(),
        git_differs: None,
        only_pronto: None,
        skipped: None,
    }
}

/// A row that cannot run on this machine, which lacks `missing`.
pub(crate) fn skip(missing: &'static str) -> Attack {
    report_skip(&missing, &INSTALL);
    elsewhere(missing)
}

/// A row that does not run in this suite, with the reason and where it is tested.
pub(crate) fn elsewhere(reason: &'static str) -> Attack {
    let mut attack = command(["version"]);
    attack.skipped = Some(reason);
    attack
}

impl Attack {
    /// The command has to end with a code other than 0.
    pub(crate) fn fails(mut self) -> Self {
        self.exit = Exit::Fails;
        self
    }

    /// The command has to end with 0.
    pub(crate) fn succeeds(mut self) -> Self {
        self.exit = Exit::Succeeds;
        self
    }

    /// The command reads `input`.
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

    /// Standard output is data, which may hold any bytes.
    pub(crate) fn with_raw_output(mut self) -> Self {
        self.has_raw_output = true;
        self
    }

    /// Allows the control to do the parts that pronto hands over.
    pub(crate) fn with_fallback(mut self) -> Self {
        self.may_hand_over = true;
        self
    }

    /// The time after which the command counts as hanging.
    pub(crate) fn seconds(mut self, seconds: u64) -> Self {
        self.seconds = seconds;
        self
    }

    /// The most memory that the command may have in use.
    pub(crate) fn mebibytes(mut self, mebibytes: u64) -> Self {
        self.mebibytes = mebibytes;
        self
    }

    /// Protects a path in `work` too.
    pub(crate) fn keeps(mut self, path: impl Into<PathBuf>) -> Self {
        self.kept.push(path.into());
        self
    }

    /// Nothing may stand at this path afterwards.
    pub(crate) fn leaves_no(mut self, path: impl Into<PathBuf>) -> Self {
        self.absent.push(path.into());
        self
    }

    /// Holds this too.
    pub(crate) fn check(
        mut self,
        check: impl Fn(&Scene, &Outcome) -> Result<(), String> + 'static,
    ) -> Self {
        self.checks.push(Box::new(check));
        self
    }

    /// The server at `port` must have received nothing.
    pub(crate) fn never_contacts(self, port: u16) -> Self {
        self.check(move |scene, _| match scene.log_of(port).is_empty() {
            true => Ok(()),
            false => Err(format!("contacts the server at port {port}")),
        })
    }

    /// The control does not hold this: it runs, and is not judged.
    pub(crate) fn git_differs(mut self, reason: &'static str) -> Self {
        self.git_differs = Some(reason);
        self
    }

    /// Like [`Self::git_differs`], for some of the rows that are made together.
    pub(crate) fn git_differs_if(self, differs: bool, reason: &'static str) -> Self {
        match differs {
            true => self.git_differs(reason),
            false => self,
        }
    }

    /// There is no control, for this reason.
    pub(crate) fn only_pronto(mut self, reason: &'static str) -> Self {
        self.only_pronto = Some(reason);
        self
    }
}

//! Provides user names and passwords, from the file `.netrc`, credential helpers or the user.

mod ask;
mod description;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bstr::{BStr, BString, ByteSlice};
use pronto_io::{child, untrusted};
use pronto_wire::transport::http::{CredentialProvider, HttpSecret};
use pronto_wire::url::Url;
use pronto_wire::{Error, ErrorKind};

use super::netrc;
use crate::Result;
use crate::config::{Config, ConfigKey};
use crate::environment::Environment;
use crate::{path, quote};
use ask::CredentialPart;
use description::{Description, HelperOperation};

/// The name of the netrc file in the home directory.
const NETRC: &str = ".netrc";

/// The largest netrc file that is read.
const LARGEST_NETRC_BYTES: u64 = 1 << 20;

/// The credential helpers that are configured for one URL (`credential.helper`).
pub(super) struct Helpers {
    /// The shell commands of the helpers.
    commands: Vec<BString>,
    username: Option<BString>,
    use_http_path: bool,
    protect_protocol: bool,
    askpass: Option<PathBuf>,
    /// The current directory of helpers and the askpass program.
    directory: PathBuf,
    may_prompt: bool,
    /// The path of the netrc file; `None` after the file was read.
    netrc: Option<PathBuf>,
    given: Option<CredentialSource>,
}

/// The source of the last credentials.
enum CredentialSource {
    Netrc,
    Helpers(Box<Description>),
}

impl Helpers {
    /// Returns the helpers for `url`. Helpers that are given by name are run by `git`, or found on
    /// `PATH`.
    pub(super) fn new(
        url: &Url,
        git: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self> {
        let normal = url.normal();
        let mut commands: Vec<BString> = Vec::new();
        for entry in config.iter() {
            let key = ConfigKey::split(entry.key);
            let meant = key.section == "credential"
                && key.variable == "helper"
                && key
                    .subsection
                    .is_none_or(|pattern| normal.matched_by(pattern).is_some());
            match entry.value {
                Some(value) if meant && value.is_empty() => commands.clear(),
                Some(value) if meant => commands.push(command(value, git)),
                _ => {}
            }
        }
        let entry = |name: &str| config.for_url("credential", name, normal);
        let username = entry("username").map(|entry| entry.string()).transpose()?;
        let use_http_path = entry("usehttppath").map(|entry| entry.bool()).transpose()?;
        let protect_protocol = entry("protectprotocol")
            .map(|entry| entry.bool())
            .transpose()?;
        let is_interactive = match entry("interactive") {
            Some(entry) if entry.value == Some("never".into()) => false,
            Some(entry) if matches!(entry.value, Some(value) if is_word(value)) => true,
            Some(entry) => entry.bool()?,
            None => true,
        };
        let askpass = match environment.path("GIT_ASKPASS") {
            Some(program) => Some(program.to_owned()),
            None => config
                .path("core.askpass", environment.home())?
                .or_else(|| environment.path("SSH_ASKPASS").map(PathBuf::from)),
        };
        Ok(Helpers {
            commands,
            username: username.map(|name| name.to_owned()),
            use_http_path: use_http_path.unwrap_or(false),
            protect_protocol: protect_protocol.unwrap_or(true),
            askpass: askpass.filter(|program| is_interactive && !program.as_os_str().is_empty()),
            directory: environment.working_dir().to_owned(),
            may_prompt: is_interactive && environment.boolean("GIT_TERMINAL_PROMPT", true)?,
            netrc: environment.home().map(|home| home.join(NETRC)),
            given: None,
        })
    }

    /// Disables the use of the netrc file.
    pub(super) fn forget_netrc(&mut self) {
        self.netrc = None;
    }

    /// Returns the login from the netrc file. Only the first call returns a login.
    fn netrc(&mut self, url: &Url) -> Option<HttpSecret> {
        let path = self.netrc.take()?;
        // As with curl, an unreadable file has no logins.
        let text =
            untrusted::read(&path, untrusted::SymlinkPolicy::Follow, LARGEST_NETRC_BYTES).ok()?;
        let login = netrc::find(&text, url.host(), url.user())?;
        self.given = Some(CredentialSource::Netrc);
        Some(HttpSecret::Basic {
            user: login.user,
            password: login.password,
        })
    }

    /// Returns the description for helpers, from the parts of the URL that the connection uses.
    /// Helpers never receive a URL that they could parse differently.
    fn description(&self, url: &Url, challenges: &[String]) -> Description {
        let user = url.user().map(ToOwned::to_owned);
        Description {
            protocol: url.scheme().into(),
            host: url.origin().authority().into(),
            path: match self.use_http_path {
                true => url.decoded_path(),
                false => BString::default(),
            },
            username: user.or_else(|| self.username.clone()),
            challenges: challenges.iter().map(|text| text.as_str().into()).collect(),
            ..Description::default()
        }
    }

    /// Queries the helpers in order, until the credential is complete.
    fn ask_helpers(&self, known: &mut Description) -> Result<(), Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_secs());
        for command in &self.commands {
            let input = known.input(HelperOperation::Get, self.protect_protocol);
            let input = input.map_err(|message| Error::new(ErrorKind::Address, message))?;
            let output = ask::run(
                command.as_bstr(),
                HelperOperation::Get,
                &input,
                &self.directory,
            );
            let failed = |message| Error::new(ErrorKind::Authentication, message);
            known.take(&output, now).map_err(failed)?;
            if known.is_complete() {
                return Ok(());
            }
            if known.quits() {
                let message = format!("credential helper '{command}' told us to quit");
                return Err(Error::new(ErrorKind::Authentication, message));
            }
        }
        Ok(())
    }

    /// Prompts the user for the missing parts of the credential.
    fn ask_user(&self, known: &mut Description) -> Result<(), Error> {
        let ask = |wanted: CredentialPart, known: &Description| {
            let server = known.shown();
            let program = self.askpass.as_deref();
            let program = program.map(|program| ask::AskPassProgram {
                program,
                directory: &self.directory,
            });
            let answer = ask::user(wanted, &server, program, self.may_prompt);
            answer.map_err(|reason| {
                let message = format!("could not read {} for '{server}': {reason}", wanted.name());
                Error::new(ErrorKind::Authentication, message)
            })
        };
        if known.username.is_none() {
            known.username = Some(ask(CredentialPart::Username, known)?.into());
        }
        if known.password.is_none() {
            known.password = Some(ask(CredentialPart::Password, known)?.into());
        }
        Ok(())
    }

    /// Notifies the helpers whether the last credentials were accepted (`store` or `erase`).
    fn conclude(&mut self, operation: HelperOperation) {
        let Some(CredentialSource::Helpers(mut known)) = self.given.take() else {
            return;
        };
        known.advance();
        // A helper that fails to store or erase a password does not fail the operation.
        let Ok(input) = known.input(operation, self.protect_protocol) else {
            return;
        };
        for command in &self.commands {
            let _ = ask::run(command.as_bstr(), operation, &input, &self.directory);
        }
    }
}

/// Returns the shell command for a helper. A plain name means the program `git-credential-NAME` on
/// `PATH`; the helpers that are part of git are run by `git`.
fn command(definition: &BStr, git: Option<&Path>) -> BString {
    if let Some(script) = definition.strip_prefix(b"!") {
        return script.into();
    }
    if definition.starts_with(b"/") {
        return definition.into();
    }
    let end = definition.find_byte(b' ').unwrap_or(definition.len());
    let (name, arguments) = definition.split_at(end);
    let own = [b"git-credential-", name].concat();
    let mut command = BString::default();
    match child::find(OsStr::from_bytes(&own)) {
        Some(program) => quote::shell_quote_into(path::as_bytes(&program), &mut command),
        None => {
            let found = git.map(Path::to_owned);
            let found = found.or_else(|| child::find(OsStr::new("git")));
            let program = found.unwrap_or_else(|| "git".into());
            quote::shell_quote_into(path::as_bytes(&program), &mut command);
            command.extend_from_slice(b" credential-");
            command.extend_from_slice(name);
        }
    }
    command.extend_from_slice(arguments);
    command
}

impl CredentialProvider for Helpers {
    fn fill(&mut self, url: &Url, challenges: &[String]) -> Result<Option<HttpSecret>, Error> {
        if challenges.is_empty() {
            return Ok(None);
        }
        let offers = |scheme: &str| challenges.iter().any(|text| names(text, scheme));
        if !offers("basic") && LEFT_TO_GIT.into_iter().any(offers) {
            let message = format!(
                "'{}' offers no authentication method that pronto implements",
                url.origin()
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if offers("basic")
            && let Some(secret) = self.netrc(url)
        {
            return Ok(Some(secret));
        }
        let mut known = match self.given.take() {
            Some(CredentialSource::Helpers(known)) => known.next_stage(challenges),
            Some(CredentialSource::Netrc) | None => self.description(url, challenges),
        };
        self.ask_helpers(&mut known)?;
        if !known.is_complete() && offers("basic") {
            self.ask_user(&mut known)?;
        }
        let secret = known.secret(offers("basic"));
        self.given = Some(CredentialSource::Helpers(Box::new(known)));
        Ok(secret)
    }

    fn continues(&self) -> bool {
        match &self.given {
            Some(CredentialSource::Netrc) => true,
            Some(CredentialSource::Helpers(known)) => known.continues(),
            None => false,
        }
    }

    fn approve(&mut self) {
        self.conclude(HelperOperation::Store);
    }

    fn reject(&mut self) {
        self.conclude(HelperOperation::Erase);
    }
}

/// The authentication schemes that git supports and pronto lacks.
const LEFT_TO_GIT: [&str; 3] = ["digest", "negotiate", "ntlm"];

/// Whether a `WWW-Authenticate` header, which may contain several schemes, contains `wanted`. A
/// password is not sent in clear text to a server that did not request basic authentication.
fn names(challenge: &str, wanted: &str) -> bool {
    challenge
        .split(',')
        .filter_map(|part| part.split_whitespace().next())
        .any(|scheme| scheme.eq_ignore_ascii_case(wanted))
}

/// Whether `value` is one of the words for the default of `credential.interactive`.
fn is_word(value: &BStr) -> bool {
    value == "auto" || value == "always"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_that_are_names_are_run_by_the_chosen_git() {
        let git = Some(Path::new("/opt/it's/git"));
        let shown = |definition: &str| command(definition.into(), git).to_string();
        let quoted = r"'/opt/it'\''s/git' credential-store --file=x";
        assert_eq!(shown("store --file=x"), quoted);
        assert_eq!(shown("!echo"), "echo");
        assert_eq!(shown("/bin/helper"), "/bin/helper");
    }
}

//! User names and passwords, from credential helpers or the user.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use gix_credentials::Program;
use gix_credentials::helper::{Action, Cascade, NextAction};
use gix_credentials::protocol::{Context, ContextOptions};
use pronto_io::child;
use pronto_wire::transport::http::{Credentials, Secret};
use pronto_wire::url::Url;
use pronto_wire::{Error, ErrorKind};

use crate::Result;
use crate::config::{Config, Key};
use crate::environment::Environment;
use crate::{path, quote};

/// The helpers that are configured for one URL.
pub(super) struct Helpers {
    definitions: Vec<BString>,
    username: Option<String>,
    use_http_path: bool,
    protect_protocol: bool,
    askpass: Option<PathBuf>,
    may_prompt: bool,
    given: Option<NextAction>,
}

impl Helpers {
    /// The helpers for `url`. Those that are called by a name are run by `git`, or by the one that
    /// `PATH` has.
    pub(super) fn new(
        url: &Url,
        git: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self> {
        let normal = url.normal();
        let mut definitions: Vec<BString> = Vec::new();
        for entry in config.iter() {
            let key = Key::split(entry.key);
            let meant = key.section == "credential"
                && key.variable == "helper"
                && key
                    .subsection
                    .is_none_or(|pattern| normal.matched_by(pattern).is_some());
            match entry.value {
                Some(value) if meant && value.is_empty() => definitions.clear(),
                Some(value) if meant => definitions.push(with_program(value, git)),
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
            definitions,
            username: username.map(|name| name.to_string()),
            use_http_path: use_http_path.unwrap_or(false),
            protect_protocol: protect_protocol.unwrap_or(true),
            askpass: askpass.filter(|program| is_interactive && !program.as_os_str().is_empty()),
            may_prompt: is_interactive && environment.boolean("GIT_TERMINAL_PROMPT", true)?,
            given: None,
        })
    }

    fn cascade(&self) -> Cascade {
        let programs = self
            .definitions
            .iter()
            .filter_map(|definition| Program::from_custom_definition(definition.clone()).ok());
        let mut cascade = Cascade::default().extend(programs);
        cascade.context_options = self.context_options();
        cascade
    }

    fn context_options(&self) -> ContextOptions {
        ContextOptions {
            protect_protocol: self.protect_protocol,
        }
    }

    /// Returns the data for helpers, from the parts of the URL that the connection uses: helpers
    /// never see a URL that they could parse in another way.
    fn context(&self, url: &Url, challenges: &[String]) -> Result<Context, Error> {
        let text = |value: &BStr| {
            value.to_str().map(str::to_owned).map_err(|_| {
                let message = "a user name for a credential helper must be UTF-8";
                Error::new(ErrorKind::Address, message)
            })
        };
        let user = url.user().map(text).transpose()?;
        Ok(Context {
            options: self.context_options(),
            protocol: Some(url.scheme().to_owned()),
            host: Some(url.origin().authority()),
            path: self.use_http_path.then(|| url.decoded_path()),
            username: user.or_else(|| self.username.clone()),
            www_authenticate: challenges.iter().map(|text| text.as_str().into()).collect(),
            ..Context::default()
        })
    }

    fn prompt(&self) -> gix_prompt::Options {
        gix_prompt::Options {
            askpass: self.askpass.clone(),
            // A program that asks may do so where the terminal may not be used.
            mode: match self.may_prompt || self.askpass.is_some() {
                true => gix_prompt::Mode::default(),
                false => gix_prompt::Mode::Disable,
            },
        }
    }

    fn conclude(&mut self, action: impl FnOnce(NextAction) -> Action) {
        if let Some(given) = self.given.take() {
            // A helper that cannot store or forget a password does not undo what was done with it.
            let _ = self.cascade().invoke(action(given), self.prompt());
        }
    }
}

/// `definition` of a helper, where one that is a name becomes a command of the shell: the crate that
/// runs helpers would take any `git` of `PATH`, even one of the current directory. A program
/// `git-credential-NAME` on `PATH` needs no git; the ones that come with git are run by `git`.
fn with_program(definition: &BStr, git: Option<&Path>) -> BString {
    if definition.starts_with(b"!") || definition.starts_with(b"/") {
        return definition.into();
    }
    let end = definition.find_byte(b' ').unwrap_or(definition.len());
    let (name, arguments) = definition.split_at(end);
    let own = [b"git-credential-", name].concat();
    let mut command = BString::from("!");
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

impl Credentials for Helpers {
    fn fill(&mut self, url: &Url, challenges: &[String]) -> Result<Option<Secret>, Error> {
        if challenges.is_empty() {
            return Ok(None);
        }
        if !challenges.iter().any(|challenge| offers_basic(challenge)) {
            let message = format!("'{}' offers no way to log in that pronto has", url.origin());
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let context = self.context(url, challenges)?;
        let outcome = self
            .cascade()
            .invoke(Action::Get(context), self.prompt())
            .map_err(|error| {
                let message = format!("could not read Username for '{}'", url.origin());
                if self.may_prompt {
                    Error::new(ErrorKind::Authentication, message).because(error.to_string())
                } else {
                    let message = format!("{message}: terminal prompts disabled");
                    Error::new(ErrorKind::Authentication, message)
                }
            })?;
        Ok(outcome.map(|outcome| {
            self.given = Some(outcome.next);
            Secret::Basic {
                user: outcome.identity.username.into(),
                password: outcome.identity.password.into(),
            }
        }))
    }

    fn approve(&mut self) {
        self.conclude(NextAction::store);
    }

    fn reject(&mut self) {
        self.conclude(NextAction::erase);
    }
}

/// Whether a `WWW-Authenticate` header, which may name several schemes, names the basic one: a
/// password is not shown in clear to a server that did not ask for it.
fn offers_basic(challenge: &str) -> bool {
    challenge
        .split(',')
        .filter_map(|part| part.split_whitespace().next())
        .any(|scheme| scheme.eq_ignore_ascii_case("basic"))
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
        let command = |definition: &str| with_program(definition.into(), git).to_string();
        let quoted = r"!'/opt/it'\''s/git' credential-store --file=x";
        assert_eq!(command("store --file=x"), quoted);
        assert_eq!(command("!echo"), "!echo");
        assert_eq!(command("/bin/helper"), "/bin/helper");
    }
}

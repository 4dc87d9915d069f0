//! Names and passwords, from the user's credential helpers or the user.

use std::path::PathBuf;

use bstr::{BString, ByteSlice};
use gix_credentials::helper::{Action, Cascade, NextAction};
use gix_credentials::protocol::Context;
use gix_credentials::{Program, protocol};
use pronto_wire::transport::http::{Credentials, Secret};
use pronto_wire::{Error, ErrorKind};

use crate::Result;
use crate::config::{Config, Key, NormalUrl};
use crate::environment::Environment;

/// The helpers that are configured for one URL.
pub(super) struct Helpers {
    definitions: Vec<BString>,
    username: Option<String>,
    use_http_path: bool,
    askpass: Option<PathBuf>,
    may_prompt: bool,
    given: Option<NextAction>,
}

impl Helpers {
    pub(super) fn new(url: &str, config: &Config, environment: &Environment) -> Result<Self> {
        let normal = NormalUrl::parse(url.into())?;
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
                Some(value) if meant => definitions.push(value.into()),
                _ => {}
            }
        }
        let entry = |name: &str| config.for_url("credential", name, &normal);
        let username = entry("username").map(|entry| entry.string()).transpose()?;
        let use_http_path = entry("usehttppath").map(|entry| entry.bool()).transpose()?;
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
            askpass: askpass.filter(|program| !program.as_os_str().is_empty()),
            may_prompt: environment.boolean("GIT_TERMINAL_PROMPT", true)?,
            given: None,
        })
    }

    fn cascade(&self) -> Cascade {
        let programs = self
            .definitions
            .iter()
            .filter_map(|definition| Program::from_custom_definition(definition.clone()).ok());
        Cascade::default()
            .extend(programs)
            .use_http_path(self.use_http_path)
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

impl Credentials for Helpers {
    fn fill(&mut self, url: &str, challenges: &[String]) -> Result<Option<Secret>, Error> {
        let mut context = Context::from_url(url, protocol::ContextOptions::default());
        context.www_authenticate = challenges.iter().map(|text| text.as_str().into()).collect();
        if !url.contains('@') {
            context.username.clone_from(&self.username);
        }
        let outcome = self
            .cascade()
            .invoke(Action::Get(context), self.prompt())
            .map_err(|error| {
                let message = format!("could not read Username for '{}'", origin(url));
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

/// Scheme and host of a URL, as prompts show it.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url.as_bytes()[start..].find_byte(b'/');
    &url[..end.map_or(url.len(), |at| start + at)]
}

//! Identities: the author and the committer of commits, and the user account of the system.

use bstr::{BStr, BString, ByteSlice};
use gix_date::Time;

use pronto_config::account;
use pronto_object::date;

use crate::config::Config;
use crate::environment::Environment;
use crate::{Error, ErrorKind, Result};

pub use pronto_object::Signature;
pub use pronto_object::date::local_now as now;

/// The person of a commit that an identity is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityRole {
    /// The author, who wrote the change (`GIT_AUTHOR_*`).
    Author,
    /// The committer, who recorded the change (`GIT_COMMITTER_*`).
    Committer,
}

impl IdentityRole {
    fn section(self) -> &'static str {
        match self {
            IdentityRole::Author => "author",
            IdentityRole::Committer => "committer",
        }
    }

    fn variable(self, what: &str) -> String {
        format!("GIT_{}_{what}", self.section().to_ascii_uppercase())
    }
}

/// The treatment of missing parts of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Name and address must be configured, or be found without guessing. Commits require this.
    Strict,
    /// Name and address may be guessed from the system. Reflog entries use this.
    Lenient,
}

const ADVICE: &str = "Please tell me who you are.\n\nRun\n\n\
    \x20 git config --global user.email \"you@example.com\"\n\
    \x20 git config --global user.name \"Your Name\"\n\n\
    to set your account's default identity.\n\
    Omit --global to set the identity only in this repository.";

/// Returns the signature of the author or the committer: from the environment, the configuration and
/// the system, in this order.
///
/// # Errors
/// Fails with [`ErrorKind::Identity`] if, with [`Care::Strict`], name or address are not configured, or
/// with [`ErrorKind::IdentityDate`] if the date in the environment is malformed.
pub fn signature(
    role: IdentityRole,
    care: Care,
    config: &Config,
    env: &Environment,
) -> Result<Signature> {
    signature_at(now(), role, care, config, env)
}

/// Does the same as [`signature`], with `time` as the default date.
///
/// # Errors
/// As for [`signature`].
pub fn signature_at(
    time: Time,
    role: IdentityRole,
    care: Care,
    config: &Config,
    env: &Environment,
) -> Result<Signature> {
    let of_role = |what: &str| -> Result<Option<BString>> {
        if let Some(value) = env.bytes(&role.variable(&what.to_ascii_uppercase())) {
            return Ok(Some(value.into()));
        }
        let value = config.string(format!("{}.{what}", role.section()))?;
        Ok(value
            .filter(|value| !value.is_empty())
            .map(ToOwned::to_owned))
    };
    let of_user = |what: &str| -> Result<Option<BString>> {
        Ok(config
            .string(format!("user.{what}"))?
            .map(ToOwned::to_owned))
    };
    let config_only = config.bool_or("user.useconfigonly", false)?;
    let email = match of_role("email")?.map_or_else(|| of_user("email"), |it| Ok(Some(it)))? {
        Some(email) => email,
        None => default_email(role, care, config_only, env)?,
    };
    let given = of_role("name")?;
    let is_given = given.is_some();
    let name = match given.map_or_else(|| of_user("name"), |it| Ok(Some(it)))? {
        Some(name) => name,
        None => default_name(role, care, config_only)?,
    };
    if care == Care::Strict {
        // Git gives no advice about a name that is given for this role.
        check_name(&name, &email).map_err(|error| match is_given || !name.is_empty() {
            true => error,
            false => unknown(role, error.message().to_owned()),
        })?;
    }
    let login = name.is_empty().then(account::own).flatten();
    let name = login.map_or(name, |account| account.login);
    Ok(Signature {
        name: without_crud(name.as_bstr()),
        email: without_crud(email.as_bstr()),
        time: time_of(role, env)?.unwrap_or(time),
    })
}

fn unknown(role: IdentityRole, message: String) -> Error {
    let who = match role {
        IdentityRole::Author => "Author identity unknown",
        IdentityRole::Committer => "Committer identity unknown",
    };
    Error::new(ErrorKind::Identity, message).with_hint(format!("{who}\n\n{ADVICE}"))
}

fn default_email(
    role: IdentityRole,
    care: Care,
    config_only: bool,
    env: &Environment,
) -> Result<BString> {
    let strict = care == Care::Strict;
    if strict && config_only {
        let message = "no email was given and auto-detection is disabled";
        return Err(unknown(role, message.into()));
    }
    if let Some(email) = env.bytes("EMAIL").filter(|email| !email.is_empty()) {
        return Ok(email.trim_ascii().into());
    }
    let login = account::own().map(|account| account.login);
    let host = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim_ascii();
    let is_guess = login.is_none() || !host.contains(&b'.');
    let suffix = if host.contains(&b'.') { "" } else { ".(none)" };
    let login = login.unwrap_or_else(|| "unknown".into());
    let email = BString::from(format!("{login}@{}{suffix}", host.as_bstr()));
    if strict && is_guess {
        let message = format!("unable to auto-detect email address (got '{email}')");
        return Err(unknown(role, message));
    }
    Ok(email)
}

fn default_name(role: IdentityRole, care: Care, config_only: bool) -> Result<BString> {
    let strict = care == Care::Strict;
    if strict && config_only {
        let message = "no name was given and auto-detection is disabled";
        return Err(unknown(role, message.into()));
    }
    match account::own() {
        Some(account) => Ok(account.full_name),
        None if strict => {
            let message = "unable to auto-detect name (got 'unknown')";
            Err(unknown(role, message.into()))
        }
        None => Ok("unknown".into()),
    }
}

fn check_name(name: &BString, email: &BString) -> Result<()> {
    let message = if name.is_empty() {
        format!("empty ident name (for <{email}>) not allowed")
    } else if name.iter().all(|&byte| is_crud(byte)) {
        format!("name consists only of disallowed characters: {name}")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Identity, message))
}

/// Returns the date that the environment sets (`GIT_AUTHOR_DATE`, `GIT_COMMITTER_DATE`).
fn time_of(role: IdentityRole, env: &Environment) -> Result<Option<Time>> {
    let given = env
        .bytes(&role.variable("DATE"))
        .filter(|date| !date.is_empty());
    let Some(given) = given else {
        return Ok(None);
    };
    let parsed = date::parse_exact_date(given.as_bstr());
    let invalid = || {
        let message = format!("invalid date format: {}", given.as_bstr());
        Error::new(ErrorKind::IdentityDate, message)
    };
    parsed.ok_or_else(invalid).map(Some)
}

/// Returns whether Git strips the character from the ends of a name or an address.
fn is_crud(byte: u8) -> bool {
    byte <= b' ' || b",:;<>\"\\'".contains(&byte)
}

fn without_crud(text: &BStr) -> BString {
    let inner = text.trim_with(|c| u8::try_from(c).is_ok_and(is_crud));
    let is_kept = |byte: &u8| !matches!(byte, b'\n' | b'<' | b'>');
    inner
        .iter()
        .copied()
        .filter(is_kept)
        .collect::<Vec<u8>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(pairs: &[(&str, &str)], care: Care) -> Result<Signature> {
        let mut environment = Environment::empty("/");
        for (name, value) in pairs {
            environment.set(name, value);
        }
        signature(
            IdentityRole::Committer,
            care,
            &Config::default(),
            &environment,
        )
    }

    #[test]
    fn the_environment_names_the_committer() {
        let given = person(
            &[
                ("GIT_COMMITTER_NAME", " A <b> C."),
                ("GIT_COMMITTER_EMAIL", "<a@b>"),
                ("GIT_COMMITTER_DATE", "1112911993 -0730"),
            ],
            Care::Strict,
        );
        let text = given.expect("all is given").to_string();
        assert_eq!(text, "A b C. <a@b> 1112911993 -0730");
    }

    #[test]
    fn now_is_in_the_zone_of_the_system() {
        let (before, now, after) = (Time::now_local_or_utc(), now(), Time::now_local_or_utc());
        assert!(before.seconds <= now.seconds && now.seconds <= after.seconds);
        // The offset may change between two looks, but not back.
        assert!(now.offset == before.offset || now.offset == after.offset);
    }

    #[test]
    fn nameless_people_and_impossible_dates_are_refused() {
        let message = |pairs: &[_]| {
            person(pairs, Care::Strict)
                .expect_err("refused")
                .to_string()
        };
        let email = ("GIT_COMMITTER_EMAIL", "a@b");
        assert_eq!(
            message(&[email, ("GIT_COMMITTER_NAME", "")]),
            "empty ident name (for <a@b>) not allowed"
        );
        assert_eq!(
            message(&[email, ("GIT_COMMITTER_NAME", "<>")]),
            "name consists only of disallowed characters: <>"
        );
        assert_eq!(
            message(&[
                email,
                ("GIT_COMMITTER_NAME", "x"),
                ("GIT_COMMITTER_DATE", "never ever")
            ]),
            "invalid date format: never ever"
        );
    }
}
